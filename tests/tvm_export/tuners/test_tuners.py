"""The three tuners at work: records, failures, interruption, and going on from a log."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.test_kill import measured, require_ended
from tests.tvm_export.tuners.conftest import ENGINE_OF, engine_of
from tvm_practice import engines
from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.tvm_export.tuners import Trial, ansor, autotvm, count_errors, metaschedule

FUNCTIONS = "tests.tvm_export.tuners.tuner_functions"
HISTORY: dict[str, Callable[..., list[Trial]]] = {
    "autotvm": autotvm.history,
    "ansor": ansor.history,
    "metaschedule": metaschedule.history,
}

pytestmark = pytest.mark.slow


# Ansor's search costs as much as the other two together: in `make follow`.
_TUNERS = [
    pytest.param(each, marks=[pytest.mark.pages] if each == "ansor" else []) for each in ENGINE_OF
]


@pytest.fixture(scope="module", params=_TUNERS)
def tuner(request: pytest.FixtureRequest) -> str:
    engine_of(request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def session(tuner: str) -> Iterator[engines.Session]:
    with engines.Session(engine_of(tuner)) as opened:
        yield opened


@pytest.fixture(scope="module")
def log(tuner: str, session: engines.Session, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The log of 6 trials."""
    path = tmp_path_factory.mktemp(tuner) / "log"
    session.call(f"{FUNCTIONS}:tune", {"tuner": tuner, "log": str(path), "trials": 6})
    return path


def test_log_holds_the_trials(tuner: str, log: Path) -> None:
    trials = HISTORY[tuner](log, started=time.time() - 1000)
    assert len(trials) == 6
    assert not count_errors(trials)
    assert len({trial.task for trial in trials}) == 1
    elapsed = [trial.elapsed for trial in trials]
    assert None not in elapsed and elapsed == sorted(elapsed)  # type: ignore[type-var]


def test_code_of_the_best_schedule_makes_it(
    tuner: str, session: engines.Session, log: Path
) -> None:
    arguments = {"tuner": tuner, "log": str(log)}
    made, wanted = session.call(f"{FUNCTIONS}:code_makes_the_schedule", arguments)
    assert made == wanted


def test_the_cost_model_predicts_the_later_rounds(
    tuner: str, session: engines.Session, log: Path
) -> None:
    arguments = {"tuner": tuner, "log": str(log), "size": 3}
    found = session.call(f"{FUNCTIONS}:predictions", arguments)
    trials = HISTORY[tuner](log)
    assert [each["number"] for each in found] == [4, 5, 6]
    assert [each["seconds"] for each in found] == [trial.seconds for trial in trials[3:]]
    assert all(isinstance(each["score"], float) for each in found)


def test_measuring_nothing_is_an_error(
    tuner: str, session: engines.Session, tmp_path: Path
) -> None:
    arguments = {"tuner": tuner, "log": str(tmp_path / "log")}
    with pytest.raises(NothingMeasured, match=r"measured nothing: all of its \d trials"):
        session.call(f"{FUNCTIONS}:tune_what_fails", arguments)
    trials = HISTORY[tuner](tmp_path / "log")
    assert trials and all(trial.seconds is None and trial.error for trial in trials)


def test_workers_have_the_engine_and_its_threads(tuner: str, session: engines.Session) -> None:
    seen = session.call(f"{FUNCTIONS}:workers_threads", {"tuner": tuner})
    assert seen["threads"] == seen["wanted"]
    assert seen["bind"] == "0"
    assert seen["version"].startswith("0.27" if tuner == "metaschedule" else "0.17")


def _records(tuner: str, log: Path) -> int:
    file = log / "database_tuning_record.json" if tuner == "metaschedule" else log
    return file.read_text().count("\n") if file.exists() else 0


@pytest.mark.pages
@pytest.mark.slow
@pytest.mark.real_processes
@pytest.mark.parametrize(
    ("tuner", "how"),
    # tests/test_kill.py kills the others.
    [*((each, signal.SIGINT) for each in ENGINE_OF), ("autotvm", signal.SIGKILL)],
    indirect=["tuner"],
)
def test_what_was_measured_survives(tuner: str, tmp_path: Path, how: signal.Signals) -> None:
    """Killed or interrupted, the log keeps every line, no process is left, and a search goes on."""
    log = tmp_path / "log"
    command = [sys.executable, "-m", FUNCTIONS, tuner, str(log)]
    with subprocess.Popen(
        [*command, "200"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while _records(tuner, log) < 2:
            assert process.poll() is None
            time.sleep(0.05)
        workers = psutil.Process(process.pid).children(recursive=True)
        assert workers
        process.send_signal(how)
        assert process.wait(300) == (130 if how == signal.SIGINT else -signal.SIGKILL)
    require_ended(workers)
    kept = HISTORY[tuner](log)
    assert len(kept) >= 2
    on_disk = len(measured(tuner, log))  # some are in the journal alone
    subprocess.run([*command, "2"], check=True, stdout=subprocess.DEVNULL)
    trials = HISTORY[tuner](log)
    assert len(trials) == on_disk + 2
    assert [trial.seconds for trial in trials[: len(kept)]] == [trial.seconds for trial in kept]


@pytest.fixture(scope="module")
def current() -> Iterator[engines.Session]:
    with engines.Session(engines.CURRENT) as opened:
        yield opened


@pytest.mark.pages
def test_metaschedule_tunes_several_tasks_in_one_call(
    current: engines.Session, tmp_path: Path
) -> None:
    applied = current.call(f"{FUNCTIONS}:tuned_twice_at_once", {"log": str(tmp_path)})
    assert applied == {"matmul": True, "dense": True}
    assert {trial.task for trial in metaschedule.history(tmp_path)} == {"matmul", "dense"}


@pytest.mark.pages
def test_a_kill_after_one_task_of_two_loses_no_trial(tmp_path: Path) -> None:
    """MetaSchedule measures a round of every task before it writes the first."""
    engine_of("metaschedule")
    log, counted = tmp_path / "log", tmp_path / "counted"
    arguments = {"log": str(log), "counted": str(counted)}
    with pytest.raises(engines.EngineDied):
        engines.call("current", f"{FUNCTIONS}:die_after_the_first_round", arguments)
    trials = len(counted.read_text())
    assert 0 < len(metaschedule.history(log)) < trials
    assert len(measured("metaschedule", log)) == trials
    metaschedule.recover(log)
    assert len(metaschedule.history(log)) == trials
    assert len(measured("metaschedule", log)) == trials


def test_equal_functions_of_a_model_share_a_task(current: engines.Session) -> None:
    found = current.call(f"{FUNCTIONS}:extracted")
    assert sorted(found["weights"]) == [1.0, 2.0]
    assert len(found["tasks"]) == 2


def test_a_cpu_task_does_not_parse_gpu_intrinsics(current: engines.Session) -> None:
    assert not [name for name in current.call(f"{FUNCTIONS}:intrinsics_imported") if "cuda" in name]


def test_terminal_shows_a_bar(tmp_path: Path) -> None:
    """On a terminal the display is a bar that ends full."""
    master, terminal = os.openpty()
    script = (
        "from tvm_practice.tvm_export.tuners.progress import Outcome, Progress\n"
        "with Progress('Ansor', 2) as p:\n"
        "    p.add([Outcome(1e-3, 2e6)])\n"
        "    p.add([Outcome(1e-3, 2e6)])\n"
    )
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    subprocess.run([sys.executable, "-c", script], stdout=terminal, env=environment, check=True)
    os.close(terminal)
    shown = b""
    while True:
        try:
            shown += os.read(master, 4096)
        except OSError:  # the other end is closed
            break
    assert b"2/2" in shown and b"best 2.0 GFLOP/s" in shown
