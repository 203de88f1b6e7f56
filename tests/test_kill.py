"""An export that is killed goes on where it was: `kill -9` at random moments of `run_autotvm`.

pytest tests/test_kill.py --kills 10 -s    # ten kills of 60 trials each: 8 minutes
"""

import json
import os
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.conftest import needs_classic
from tests.test_command_lines import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.real_processes]

# AutoTVM's journal is Ansor's; tests/tvm_export/tuners/test_tuners.py kills it.
TUNERS = ["metaschedule", pytest.param("ansor", marks=needs_classic)]


def _lines(file: Path) -> list[Any]:
    """The whole lines of a log of JSON texts."""
    try:
        text = file.read_text()
    except FileNotFoundError:  # also of a journal, which goes when the log has what is in it
        return []
    return [json.loads(each) for each in text.splitlines(True) if each.endswith("\n")]


def _frozen(value: Any) -> Any:
    """A JSON value as one that a set can hold; 1 and true, of a log and a journal, are equal."""
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value


def measured(tuner: str, log: Path) -> set[Any]:
    """What identifies each trial that is on disk, in the log or not yet."""
    if tuner == "metaschedule":
        records = _lines(log / "database_tuning_record.json")
        records += [each["record"] for each in _lines(log / "journal.jsonl")]
        return {_frozen([workload, trace]) for workload, (trace, *_) in records}
    records = _lines(log) + _lines(log.with_name(f"{log.name}.journal"))
    keys = (each["i"] if tuner == "ansor" else [each["input"], each["config"]] for each in records)
    return {json.dumps(key) for key in keys}


def require_ended(workers: list[psutil.Process]) -> None:
    """Assert that processes end within half a minute."""
    _, alive = psutil.wait_procs(workers, timeout=30)
    assert not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]


def kill_and_go_on(tuner: str, folder: Path, *, trials: int, kills: int, seed: int) -> list[int]:
    """Run an export, kill it `kills` times, let it end; trials on disk at each kill.

    Asserts that no process is left and nothing that was on disk is lost, that the last run ends
    with exit code 0 and verified artifacts, and that exactly `trials` were recorded in all.
    """
    chance = random.Random(seed)
    artifacts, log = folder / "artifacts", folder / "log"
    command = [
        *(sys.executable, "-m", "tvm_practice.run_autotvm", "tvm_practice.models:load_mlp"),
        *("--tuner", tuner, "--tuning-trials", str(trials), "--tuning-log", str(log)),
        *("--artifacts", str(artifacts), "--measure-repeats", "5", "--measure-warmup", "1"),
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    counts: list[int] = []
    known: set[Any] = set()
    for number in range(kills):
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
        )
        if number % 3 == 2:  # while it starts, imports, reads its records
            time.sleep(chance.random() * 4)
        else:  # while trials are measured
            wanted = min(trials, len(known) + chance.randint(1, max(1, trials // kills)))
            while process.poll() is None and len(measured(tuner, log)) < wanted:
                time.sleep(0.02)
            time.sleep(chance.random() * 0.2)
        assert process.poll() is None, "it ended before it was killed"
        workers = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait()
        require_ended(workers)
        found = measured(tuner, log)
        assert known <= found
        known = found
        counts.append(len(known))
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=550
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert known <= measured(tuner, log)
    metadata = json.loads((artifacts / "metadata.json").read_text())
    assert metadata["verification"]["verified"] and metadata["tuning"]["trials"] == trials
    return counts


@pytest.mark.pages
@pytest.mark.parametrize("tuner", TUNERS)
def test_killed_runs_lose_nothing_that_was_measured(
    tuner: str, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    kills = pytestconfig.getoption("kills")
    counts = kill_and_go_on(tuner, tmp_path, trials=6 * kills, kills=kills, seed=5)
    print(f"{tuner}: trials on disk at each kill {counts}")
    assert counts == sorted(counts) and counts[-1] > 0
