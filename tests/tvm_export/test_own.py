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
    assert won["own"] is None and won["stayed"] and won["over_untuned"] == 0.5
    made = Counter(won["functions"].values())
    assert made["record"] >= 2 and "fallback" not in made
    assert one["stayed"] and Counter(one["functions"].values())["fallback"] == 1
    for each in (none, model):
        assert not each["stayed"]
        assert Counter(each["functions"].values())["fallback"] == made["record"]
        assert "record" not in each["functions"].values()
    assert (none["over_untuned"], model["over_untuned"]) == (None, 2.0)


@pytest.mark.pages  # a search of each
def test_autotvms_own_result_is_kept_apart(tmp_path: Path, process_of: Processes) -> None:
    won, one, none, model = _shipped("autotvm", "classic", WINS, tmp_path, process_of)
    assert won["own"] is None and won["stayed"] and won["over_untuned"] == 0.5
    assert Counter(won["functions"].values())["record"] == 2
    made = Counter(one["functions"].values())
    assert one["stayed"] and (made["record"], made["fallback"]) == (1, 1) and made["rule"]
    for each in (none, model):
        assert not each["stayed"]
        assert "record" not in each["functions"].values()
    assert Counter(none["functions"].values())["fallback"] == 2
    assert (none["over_untuned"], model["over_untuned"]) == (None, 2.0)


@pytest.mark.pages
def test_ansors_records_stay_where_the_whole_model_is_faster(
    tmp_path: Path, process_of: Processes
) -> None:
    won, model = _shipped("ansor", "classic", [WINS[0], WINS[3]], tmp_path, process_of)
    assert won["own"] is None and won["stayed"] and won["over_untuned"] == 0.5
    assert "record" in won["functions"].values() and "fallback" not in won["functions"].values()
    assert model["over_untuned"] == 2.0
    assert not model["stayed"] and "record" not in model["functions"].values()
