"""A tuner's worker ends with its parent, whatever it is doing."""

import signal
import subprocess
import sys

import psutil
import pytest

from tvm_practice.engines import ENGINES, Engine, unavailable_reason

# The worker is told to give up after a second, when its parent is gone: it fails to say so.
PARENT = """
import threading, time
from tvm_practice import engines
engines.activate({engine!r})
if {engine!r} == "classic":
    from tvm.contrib.popen_pool import PopenWorker
    worker = PopenWorker()
else:
    from tvm.support.popen_pool import PopenWorker
    from tvm_practice.engines.orphans import end_with_parent
    worker = PopenWorker(initializer=end_with_parent)
worker.send(abs, [0])
worker.recv()
worker.send(time.sleep, [5], timeout=1)
print("busy", flush=True)
time.sleep(60)
"""


@pytest.mark.pages
@pytest.mark.real_processes
@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
def test_a_worker_that_runs_out_of_time_alone_ends(engine: Engine) -> None:
    if reason := unavailable_reason(engine):
        pytest.skip(reason)
    with subprocess.Popen(
        [sys.executable, "-c", PARENT.format(engine=engine)], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None and parent.stdout.readline() == "busy\n"
        workers = psutil.Process(parent.pid).children(recursive=True)
        assert workers
        parent.send_signal(signal.SIGKILL)
        parent.wait()
    _, alive = psutil.wait_procs(workers, timeout=20)
    assert not [each for each in alive if each.status() != psutil.STATUS_ZOMBIE]
