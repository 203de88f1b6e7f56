"""Keeping the thread pools of one process out of each other's measurements."""

import os
import threading
import time
from pathlib import Path

_POLL_SECONDS = 0.01
_QUIET_SHARE = 0.1  # of one processor
_TASKS = Path("/proc/self/task")


def quiesce(limit: float = 0.5) -> None:
    """Wait until no thread of this process is working, then stand clear of bound workers.

    A thread pool spins after a call in case another comes: OpenMP's for about 10 ms, OpenBLAS's
    and TVM's for more than 100 ms. What runs meanwhile shares its cores with them.

    TVM binds each of its workers to a core and lets the caller land on any. On a worker's core
    the two take turns, and a parallel call takes as long as a serial one until the operating
    system notices. So the calling thread is moved to another core, which it may leave again.

    Args:
        limit: seconds to wait at most.
    """
    for _ in range(max(1, round(limit / _POLL_SECONDS))):
        before = time.process_time()
        time.sleep(_POLL_SECONDS)
        used = time.process_time() - before
        # Where other programs take the processors, a spinning thread may not have used any.
        if used < _QUIET_SHARE * _POLL_SECONDS and not _others_runnable():
            break
    _stand_clear()


def _others_runnable() -> bool:
    """Whether another thread of this process runs or waits for a processor (Linux)."""
    if not _TASKS.is_dir():
        return False
    for task in _TASKS.iterdir():
        if int(task.name) == threading.get_native_id():
            continue
        try:
            status = (task / "stat").read_text()
        except OSError:  # it has just ended
            continue
        if status.rpartition(")")[2].split()[0] == "R":  # "state" of proc(5)
            return True
    return False


def _stand_clear() -> None:
    """Move the calling thread to a core that no other thread of the process is bound to."""
    if not _TASKS.is_dir():  # not Linux
        return
    allowed = os.sched_getaffinity(0)
    clear = allowed - bound_cores()
    if clear and clear != allowed:
        os.sched_setaffinity(0, clear)
        # At once, or a pool that starts during the next call would be confined to these.
        os.sched_setaffinity(0, allowed)


def bound_cores() -> set[int]:
    """Cores that threads of this process are bound to, each to one core alone."""
    bound: set[int] = set()
    for task in _TASKS.iterdir():
        try:
            cores = os.sched_getaffinity(int(task.name))
        except ProcessLookupError:  # it has just ended
            continue
        if len(cores) == 1:
            bound |= cores
    return bound
