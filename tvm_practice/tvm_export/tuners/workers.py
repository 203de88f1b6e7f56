"""The worker processes of the tuners."""

import concurrent.futures
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tvm_practice.engines.orphans import end_with_parent

_MOST_PATIENCE = 2.0  # some candidates never end


def patient(seconds: float) -> float:
    """A limit by the clock, made longer where programs share the processors.

    A candidate that compiles in time on an idle machine must not fail, and be remembered as one
    that does, because the machine is busy.
    """
    share: float = psutil.getloadavg()[0] / (psutil.cpu_count() or 1)
    return seconds * min(max(1.0, share), _MOST_PATIENCE)


@contextmanager
def unbound_threads() -> Iterator[None]:
    """Have processes that start in the block leave TVM's threads to the operating system.

    TVM binds each thread of its pool to a core, all but the one that calls it. When that one
    lands on a bound core the two take turns, and a candidate looks half as fast as it is.
    """
    with variable("TVM_BIND_THREADS", "0"):
        yield


@contextmanager
def without_torch() -> Iterator[None]:
    """Have Python processes that start in the block take PyTorch for missing.

    Current TVM imports it wherever it is installed, which takes a worker longer than all else
    that it imports.
    """
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "torch.py").write_text('raise ImportError("a worker does without")\n')
        paths = os.environ.get("PYTHONPATH")
        with variable("PYTHONPATH", os.pathsep.join(filter(None, (folder, paths)))):
            yield


@contextmanager
def variable(name: str, value: str) -> Iterator[None]:
    """Have processes that start in the block see this variable of the environment."""
    before = os.environ.get(name)
    os.environ[name] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before


@contextmanager
def processes(count: int, **options: Any) -> Iterator[Any]:
    """A PopenPoolExecutor of current TVM whose processes start at once, and end with the block.

    Args:
        count: how many processes.
        options: of PopenPoolExecutor; `timeout` in seconds.
    """
    from tvm.support.popen_pool import PopenPoolExecutor

    pool = PopenPoolExecutor(count, initializer=end_with_parent, **options)
    starts = [pool.submit(abs, 0) for _ in range(count)]
    try:
        yield pool
    finally:
        # A process that was just started has no pipes yet, over which TVM's shutdown() stumbles.
        concurrent.futures.wait(starts)
        pool.shutdown(wait=False)
