"""A farm on loopback: known, lost, silent, and gone when it ends."""

import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tvm_practice import engines

ROOT = Path(__file__).parent.parent.parent


@pytest.mark.pages
@pytest.mark.real_processes
@pytest.mark.slow
def test_a_farm_opens_loses_and_closes() -> None:
    if reason := engines.unavailable_reason("current"):
        pytest.skip(reason)
    seen = engines.call("current", "tests.farm.functions:open_lose_and_close")
    assert seen == {"known": 2, "answer": 42, "left": 1, "again": 2, "alive": 0}


HOLDER = """
import os, signal
from tvm_practice import engines
engines.activate("current")
from tvm_practice.farm.local import LocalFarm
farm = LocalFarm(1).__enter__()
print(farm.tracker_pid, *farm.pids, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.real_processes
@pytest.mark.pages
@pytest.mark.slow
def test_a_farm_ends_with_a_process_that_is_killed(tmp_path: Path) -> None:
    if reason := engines.unavailable_reason("current"):
        pytest.skip(reason)
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as holder:
        assert holder.stdout is not None
        pids = [int(each) for each in holder.stdout.readline().split()]
    assert len(pids) == 2
    family = [psutil.Process(pid) for pid in pids if psutil.pid_exists(pid)]
    _, alive = psutil.wait_procs(family, timeout=20)
    assert not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]
