"""Tuning for a machine that this one is not: measured, and judged, on a farm's server."""

from pathlib import Path
from typing import Any

import pytest

from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.tuners.remote_functions"


def tuned_by(tuner: str, folder: Path) -> dict[str, Any]:
    engine = engines.CURRENT if tuner == "metaschedule" else engines.CLASSIC
    if reason := engines.unavailable_reason(engine):
        pytest.skip(reason)
    given = {"folder": str(folder / "artifacts"), "tuner": tuner}
    found: dict[str, Any] = engines.call(engine, f"{FUNCTIONS}:tuned_elsewhere", given)
    return found


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return tuned_by("metaschedule", tmp_path_factory.mktemp("elsewhere"))


@pytest.mark.slow
@pytest.mark.pages
def test_a_target_that_this_machine_cannot_run_is_tuned_on_a_server(tuned: dict[str, Any]) -> None:
    tuning = tuned["tuning"]
    assert tuned["not_run"] == "code for a board" and tuned["latency"] is None
    assert tuning["trials"] >= 6 and tuning["errors"] == 0
    assert tuning["records_kept"] + tuning["records_slower_than_default"] == tuning["tasks"] == 1
    assert set(tuned["functions"].values()) <= {"record", "fallback", "rule"}
    assert (Path(tuned["artifacts"]) / "deploy_lib.tar").stat().st_size > 0


@pytest.mark.slow
@pytest.mark.pages
def test_a_servers_trials_are_in_the_journal_before_the_log(tuned: dict[str, Any]) -> None:
    assert tuned["journalled"] == tuned["tuning"]["trials"]


@pytest.mark.slow
@pytest.mark.pages
@pytest.mark.parametrize("tuner", ["autotvm", "ansor"])
def test_the_classic_tuners_measure_and_judge_on_a_server(tuner: str, tmp_path: Path) -> None:
    tuned = tuned_by(tuner, tmp_path)
    tuning = tuned["tuning"]
    assert tuned["not_run"] == "code for a board" and tuned["latency"] is None
    assert tuning["trials"] >= 6 and tuning["errors"] == 0
    assert tuned["journalled"] == tuning["trials"]
    assert tuning["tasks"] == 1
    # Both models where a record stayed; and AutoTVM's record and the fallback configuration.
    models = 2 if "ratio_to_untuned" in tuning else 0
    assert models == 2 or tuner == "autotvm"
    assert tuned["sent"] == models + (2 if tuner == "autotvm" else 0)
    assert (Path(tuned["artifacts"]) / "deploy_lib.tar").stat().st_size > 0


def test_a_tracker_without_such_a_server_is_said() -> None:
    said = engines.call(engines.CURRENT, f"{FUNCTIONS}:without_a_server")
    assert "has no server 'board'" in said and "\n" not in said
