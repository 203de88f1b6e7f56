"""A tuner's own result beside the artifact, which default schedules may have entered."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Processes
from tvm_practice import engines

pytestmark = pytest.mark.slow
WINS = [[True, True, True], [False, True, True], [False, False, True], [True, True, False]]


def _shipped(
    tuner: str, engine: engines.Engine, wins: list[list[bool]], folder: Path, process_of: Processes
) -> list[dict[str, Any]]:
    if reason := engines.unavailable_reason(engine):
        pytest.skip(reason)
    given = {"tuner": tuner, "folder": str(folder), "wins": wins}
    found: list[dict[str, Any]] = process_of(engine).call(
        "tests.tvm_export.own_functions:shipped", given
    )
    assert all(each["verified"] for each in found)
    for each in found:  # there is a figure where there is another build, and only there
        assert (each["own"] is None) == (each["tuners_own"] is None)
        if own := each["tuners_own"]:
            assert own["latency"]["p50"] > 0 and own["ratio_to_pytorch"]["value"] > 0
            assert "record" in each["own"].values() and "fallback" not in each["own"].values()
    return found


@pytest.mark.pages
def test_metaschedules_own_result_is_kept_apart(tmp_path: Path, process_of: Processes) -> None:
    won, one, none, model = _shipped("metaschedule", "current", WINS, tmp_path, process_of)
    assert won["own"] is None and won["stayed"]
    made = Counter(won["functions"].values())
    assert made["record"] >= 2 and "fallback" not in made
    assert one["stayed"] and Counter(one["functions"].values())["fallback"] == 1
    for each in (none, model):
        assert not each["stayed"]
        assert Counter(each["functions"].values())["fallback"] == made["record"]
        assert "record" not in each["functions"].values()


@pytest.mark.pages  # a search of each
def test_autotvms_own_result_is_kept_apart(tmp_path: Path, process_of: Processes) -> None:
    won, one, none = _shipped("autotvm", "classic", WINS[:3], tmp_path, process_of)
    assert won["own"] is None and won["stayed"]
    assert Counter(won["functions"].values())["record"] == 2
    made = Counter(one["functions"].values())
    assert one["stayed"] and (made["record"], made["fallback"]) == (1, 1) and made["rule"]
    assert not none["stayed"] and Counter(none["functions"].values())["fallback"] == 2


@pytest.mark.pages
def test_ansors_records_always_stay(tmp_path: Path, process_of: Processes) -> None:
    (won,) = _shipped("ansor", "classic", WINS[:1], tmp_path, process_of)
    assert won["own"] is None and won["stayed"]
    assert "record" in won["functions"].values() and "fallback" not in won["functions"].values()
