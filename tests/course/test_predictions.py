"""What a phase asks before a run, and what it says after it."""

from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tvm_practice.course.phase import phase_command
from tvm_practice.course.predictions import PREDICTIONS, ask, compare
from tvm_practice.course.progress import Progress

RESULTS = {
    "current": {
        "figures": {
            "gflops": {"naive": 2.0, "tile": 20.0, "packed_matmul": 180.0},
            "first_calls_ms": [3.0, 1.0, 0.5, 0.5, 0.5],
            "break_even": {"pays_from": 96, "certain_from": 128},
            "MLP": {
                "kernels": 4,
                "comparison": {
                    "baseline": "eager",
                    "ratio": {"eager": {"value": 1.0}, "relax": {"value": 2.5}},
                },
            },
            "comparison": {"ratio": {"MetaSchedule": {"value": 0.8}}},
        }
    },
    "classic": {"figures": {"comparison": {"ratio": {"Ansor": {"value": None}}}}},
}
MEASURED = {
    "manual_schedule": [10, 90],
    "schedule_analysis": [96, 6],
    "relay_import": [4, 2.5],
    "auto_tune": [1.25, None],  # the machine was too busy for a ratio
}


@pytest.fixture
def progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Progress:
    monkeypatch.setenv("TVM_PRACTICE_HOME", str(tmp_path))
    return Progress(print)


def test_each_number_is_found_in_a_runs_results() -> None:
    found = {name: [each.measured(RESULTS) for each in some] for name, some in PREDICTIONS.items()}
    assert found == MEASURED
    nothing = {"current": {"unavailable": "why"}, "classic": {"figures": {}}}
    for each in (each for some in PREDICTIONS.values() for each in some):
        assert each.measured(nothing) is None and each.measured({}) is None


def _asked(answers: str) -> str:
    @click.command
    def command() -> None:
        ask("manual_schedule", Progress(print))

    done = CliRunner().invoke(command, input=answers, catch_exceptions=False)
    return done.output


def test_a_number_is_asked_once_and_compared(progress: Progress) -> None:
    shown = _asked("many\n-1\n12\n\n")
    assert shown.count("a number above 0") == 2 and "packed_matmul" in shown
    assert Progress(print).predictions == {"manual_schedule.tile": 12}
    again = _asked("9\n")
    assert "naive" not in again, "it is said already, and stays"
    lines = compare("manual_schedule", RESULTS, Progress(print))
    assert lines == [
        "tile: you said 12 times, it is 10: close",
        "packed_matmul: you said 9 times, it is 90: off by a factor of 10.0",
    ]
    assert _asked("") == "" and compare("te_basics", RESULTS, Progress(print)) == []


def test_a_run_compares_what_was_said(
    progress: Progress, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tvm_practice.course.phase.run_phase", lambda *_, **__: RESULTS)
    command = phase_command("manual_schedule", "")
    silent = CliRunner().invoke(command, ["--out", str(tmp_path)])
    assert silent.exit_code == 0 and silent.output == "", "no terminal, no questions"
    done = CliRunner().invoke(command, ["--predict", "--out", str(tmp_path)], input="20\n\n")
    assert done.exit_code == 0
    assert "tile: you said 20 times, it is 10: off by a factor of 2.0" in done.output
