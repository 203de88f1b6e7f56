"""Settings of a search: what is refused, and the limits that end one."""

import time
from pathlib import Path

import pytest
from pydantic import ValidationError

from tests.tvm_export.tuners.conftest import TunersProcesses
from tvm_practice.tvm_export import ExportConfig
from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.tvm_export.tuners.progress import Outcome, Progress, Stopped
from tvm_practice.tvm_export.tuners.search import Search, going, searching

FUNCTIONS = "tests.tvm_export.tuners.search_functions"


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"early_stopping": 0}, "early_stopping"),
        ({"seconds": -1}, "seconds"),
        ({"seed": "x"}, "seed"),
        ({"cost_model": "mlp"}, "cost_model"),
        ({"space": "no-colon"}, "space"),
        ({"rpc_tracker": "host"}, "rpc_tracker"),
        ({"population": 0}, "population"),
        ({"samples": "few"}, "samples"),
        ({"polizy": "xgb"}, "polizy"),
    ],
)
def test_a_bad_setting_is_named(settings: dict[str, object], field: str) -> None:
    with pytest.raises(ValidationError, match=field):
        Search.model_validate(settings)


@pytest.mark.parametrize(
    ("tuner", "settings", "message"),
    [
        ("ansor", {"policy": "ga"}, "policy: ansor has sketch.xgb, sketch.random, not 'ga'"),
        ("autotvm", {"cost_model": "random"}, "cost_model"),
        ("autotvm", {"space": "module:function"}, "space"),
        ("ansor", {"transfer": True}, "transfer: of MetaSchedule's register tiles"),
        ("autotvm", {"population": 9}, "population: of Ansor"),
        ("metaschedule", {"iterations": 2, "policy": "replay-trace"}, "iterations: of the policy"),
        ("metaschedule", {"samples": 2, "space": "register-tiles"}, "samples: register-tiles"),
    ],
)
def test_what_a_tuner_cannot_do_is_refused(
    tuner: str, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ValidationError, match=message):
        ExportConfig.model_validate({"example_input": None, "tuner": tuner, "search": settings})


def test_sizes_of_an_evolutionary_search_reach_ansor() -> None:
    from tvm_practice.tvm_export.tuners.ansor import fast_search_params

    usual = fast_search_params()
    with searching(Search(population=16, samples=4)):
        assert fast_search_params() == {
            "evolutionary_search_population": 16,
            "evolutionary_search_num_iters": usual["evolutionary_search_num_iters"],
            "sample_init_min_population": 4,
        }


def test_sizes_of_an_evolutionary_search_reach_metaschedule(process_for: TunersProcesses) -> None:
    given = {"search": {"population": 16, "iterations": 3, "samples": 4}}
    assert process_for("metaschedule").call(f"{FUNCTIONS}:strategy", given) == {
        "population_size": 16,
        "genetic_num_iters": 3,
        "init_min_unmeasured": 4,
    }


def _trials(seconds: list[float]) -> int:
    """How many of these trials are measured before the search ends."""
    with Progress("Ansor", len(seconds)) as progress:
        for each in seconds:
            progress.add([Outcome(each, 1e6, task="a")])
    return progress.done


def test_it_ends_after_trials_in_vain(capsys: pytest.CaptureFixture[str]) -> None:
    with searching(Search(early_stopping=2)):
        assert _trials([5, 4, 4, 3, 3, 3, 2]) == 6
    assert "the last 2 trials were no better" in capsys.readouterr().out


def test_a_better_trial_of_any_task_counts() -> None:
    with searching(Search(early_stopping=2)), Progress("Ansor", 9) as progress:
        for task, seconds in (("a", 1.0), ("b", 5.0), ("a", 1.0), ("b", 4.0), ("a", 2.0)):
            progress.add([Outcome(seconds, 1e6, task=task)])
    assert progress.done == 5


def test_it_ends_when_its_time_is_over(capsys: pytest.CaptureFixture[str]) -> None:
    with searching(Search(seconds=0.05)):
        time.sleep(0.06)
        assert _trials([3, 2, 1]) == 1
    assert "0.05 s are over" in capsys.readouterr().out


def test_it_ends_quietly_at_the_number_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with searching(Search(), most=2):
        assert _trials([3, 2, 1]) == 2
    assert "stops" not in capsys.readouterr().out


def test_ended_early_without_a_valid_trial_is_still_an_error() -> None:
    with (
        searching(Search(), most=1),
        pytest.raises(NothingMeasured),
        Progress("Ansor", 3) as progress,
    ):
        progress.add([Outcome(None, 1e6, "it does not compile")])


def test_other_errors_are_not_swallowed() -> None:
    with searching(Search()), pytest.raises(Stopped), Progress("Ansor", 3):
        raise Stopped
    assert going().search == Search()


@pytest.mark.slow
@pytest.mark.pages
@pytest.mark.parametrize(
    ("tuner", "settings"),
    [
        ("metaschedule", {"seed": 3, "policy": "replay-trace", "space": "post-order-apply"}),
        ("metaschedule", {"population": 8, "iterations": 1, "samples": 4}),
        ("ansor", {"population": 16, "iterations": 1, "samples": 4}),
        ("ansor", {"policy": "sketch.random"}),
        ("autotvm", {"policy": "ga"}),
    ],
)
def test_other_ways_to_search(
    tuner: str, settings: dict[str, object], tmp_path: Path, process_for: TunersProcesses
) -> None:
    log = str(tmp_path / "log")
    arguments = {"tuner": tuner, "trials": 4, "log": log, "search": settings}
    session = process_for(tuner)
    found = session.call(f"{FUNCTIONS}:export", arguments)
    assert found["tuning"]["trials"] == 4 and found["error"] < 1e-4
    again = session.call(f"{FUNCTIONS}:export", arguments)
    assert again["tuning"]["trials_of_earlier_runs"] == again["tuning"]["trials"] == 4
    if "seed" in settings:
        other = session.call(f"{FUNCTIONS}:export", {**arguments, "log": str(tmp_path / "other")})
        assert other["traces"] == found["traces"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tuner", "settings"),
    [("metaschedule", {"space": "register-tiles"}), ("ansor", {}), ("autotvm", {})],
)
def test_a_model_without_a_task_is_exported_untuned(
    tuner: str, settings: dict[str, object], tmp_path: Path, process_for: TunersProcesses
) -> None:
    arguments = {"tuner": tuner, "log": str(tmp_path / "log"), "search": settings}
    found = process_for(tuner).call(f"{FUNCTIONS}:export_without_tasks", arguments)
    assert found["tuner"] == tuner and found["error"] == 0
    assert found["tuning"]["tasks"] == found["tuning"]["trials"] == 0
    assert "it is exported untuned" in found["tuning"]["note"]
