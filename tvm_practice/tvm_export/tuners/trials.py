"""One trial, in a worker process: a candidate timed beside an earlier one of its task.

A machine that others share changes its speed by a third within seconds. The times of two trials
then tell less about two schedules than about two moments, and a search follows the moments. So
the first candidate of a task that runs is kept, and each later one is timed in turns with it. One
that is much faster takes its place, so that trials do not wait for the slower.
"""

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

# A candidate that takes longer is timed by one call.
_SLOW_SECONDS = 0.1
_SAMPLES, _SAMPLE_SECONDS = 7, 0.005


@dataclass(frozen=True)
class _Candidate:
    """What a sample calls, and how often."""

    run: Any
    arguments: Sequence[Any]
    device: Any
    calls: int

    def sample(self) -> float:
        """The seconds of a call."""
        started = time.perf_counter()
        for _ in range(self.calls):
            self.run(*self.arguments)
        self.device.sync()
        return (time.perf_counter() - started) / self.calls


# The machine's speed at two moments differs by no more than this factor.
_MACHINE_RANGE = 2.0
# So many times as fast as the reference is a candidate that becomes it.
_MUCH_FASTER = 2

# In a worker: a task's reference, and the seconds of a call when it was measured itself. A worker
# that is started anew, because a candidate hung, begins without.
_references: dict[int, tuple[_Candidate, float]] = {}
_kept_arguments: dict[str, Any] = {}


def time_candidate(task: int, artifact: str, device_type: str, infos: Sequence[Any]) -> list[float]:
    """The seconds of a call, if the machine were as fast as at the task's first trial.

    Args:
        task: which candidates compute the same.
        artifact: the library with the candidate.
        device_type: "cpu", "cuda", ...
        infos: MetaSchedule's description of each argument, as JSON.

    Returns:
        One figure, a median: a sample that was disturbed drops out. It is at most twice, and at
        least half, the time that was seen.

    Raises RuntimeError if there is no such device, or the candidate does not run.
    """
    import tvm

    device = tvm.runtime.device(device_type, 0)
    if not device.exist:
        raise RuntimeError(f"no {device_type} device here")
    module = tvm.runtime.load_module(artifact)
    candidate = _Candidate(module["main"], _arguments(device, infos), device, calls=1)
    once = candidate.sample()
    if once > _SLOW_SECONDS:
        return [once]
    candidate = replace(candidate, calls=max(1, round(_SAMPLE_SECONDS / once)))
    if task not in _references:
        seconds = statistics.median(candidate.sample() for _ in range(_SAMPLES))
        _references[task] = candidate, seconds
        return [seconds]
    reference, seconds = _references[task]
    pairs = [(candidate.sample(), reference.sample()) for _ in range(_SAMPLES)]
    corrected = seconds * statistics.median(own / other for own, other in pairs)
    # Not far from a time that was really seen: errors of one reference after another multiply.
    seen = statistics.median(own for own, _ in pairs)
    corrected = min(max(corrected, seen / _MACHINE_RANGE), seen * _MACHINE_RANGE)
    if corrected * _MUCH_FASTER < seconds:
        _references[task] = candidate, corrected
    return [corrected]


def _arguments(device: Any, infos: Sequence[Any]) -> Any:
    """A candidate's arguments; those of the last candidate if they are alike."""
    from tvm.s_tir.meta_schedule.runner.local_runner import default_alloc_argument

    key = json.dumps(infos)
    if key not in _kept_arguments:
        _kept_arguments.clear()
        [_kept_arguments[key]] = default_alloc_argument(device, infos, 1)
    return _kept_arguments[key]
