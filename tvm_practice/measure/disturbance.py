"""Whether something else used the machine while a measurement ran.

On a busy machine, thread pools spin for their turn and lose in different ways: PyTorch's loses more
than TVM's, so even a ratio of interleaved times is wrong. What disturbed a measurement is therefore
read from the operating system while the samples are taken.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

ACCEPT_LOAD = "TVM_PRACTICE_ACCEPT_LOAD"
"""Set to 1, this environment variable has ratios shown although the machine was busy."""

# Shares of the processors that a measurement uses, from which on it counts as disturbed.
_OTHERS_SHARE = 0.03
LITTLE_SHARE = 0.005
"""Load that only shows in a measurement whose samples are far apart."""
_STOLEN_SHARE = 0.02
# Linux counts the processors' time in ticks of 10 ms.
_CLOCK_SECONDS = 0.03
_POLL_SECONDS = 0.5
_CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class _Counters:
    """Seconds of processor time since the machine started, and periods this group was throttled."""

    clock: float
    busy: float
    stolen: float
    own: float
    throttled: int


def load_is_accepted() -> bool:
    """Whether `ACCEPT_LOAD` asks for ratios on a busy machine too."""
    return os.environ.get(ACCEPT_LOAD, "") not in ("", "0")


class Meter:
    """Reads what else the machine does, from its creation on."""

    def __init__(self) -> None:
        self._before = _read()

    def disturbance(self, share: float = _OTHERS_SHARE) -> str | None:
        """What disturbed this process since the meter was made, in words; None for nothing.

        Args:
            share: of the processors that this process uses; what others may take of them.
        """
        before, after = self._before, _read()
        seconds = after.clock - before.clock
        processors = len(_allowed())
        if seconds <= 0 or not processors:
            return None
        used = min(processors, int(os.environ.get("TVM_NUM_THREADS") or processors))
        # Processors that ours leave free may be used by others.
        others = (after.busy - before.busy) - (after.own - before.own)
        missing = others - (processors - used) * seconds
        if missing > share * used * seconds + _CLOCK_SECONDS:
            taken = others / (processors * seconds)
            return f"other programs took {taken:.0%} of the processors"
        stolen = after.stolen - before.stolen
        if stolen > _STOLEN_SHARE * processors * seconds + _CLOCK_SECONDS:
            taken = stolen / (processors * seconds)
            return f"the hypervisor took {taken:.0%} of the processors"
        if after.throttled > before.throttled:
            return "the control group's quota stopped this process"
        return None


def wait_for_quiet(limit: float) -> None:
    """Wait until nothing else uses the machine, at most `limit` seconds."""
    for _ in range(max(1, round(limit / _POLL_SECONDS))):
        meter = Meter()
        time.sleep(_POLL_SECONDS)
        if meter.disturbance() is None:
            return


def _allowed() -> set[int]:
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(psutil.cpu_count() or 1))


def _read() -> _Counters:
    times = psutil.cpu_times(percpu=True)
    busy = stolen = 0.0
    for number in _allowed():
        if number >= len(times):
            continue
        each = times[number]
        # Linux counts a guest's time as the user's as well.
        busy += each.user + each.system + getattr(each, "nice", 0.0)
        busy += getattr(each, "irq", 0.0) + getattr(each, "softirq", 0.0)
        stolen += getattr(each, "steal", 0.0)
    return _Counters(time.monotonic(), busy, stolen, _own_seconds(), _throttled())


def _own_seconds() -> float:
    """Processor time of this process and all that it started, ended ones included."""
    this = psutil.Process()
    seconds = 0.0
    for process in (this, *this.children(recursive=True)):
        try:
            seconds += sum(process.cpu_times()[:4])  # user, system, and its ended children's
        except psutil.NoSuchProcess:
            continue
    return seconds


def _throttled() -> int:
    """How many periods the control group of this process was stopped in, by its quota."""
    for folder in _control_groups():
        try:
            lines = (folder / "cpu.stat").read_text().splitlines()
        except OSError:
            continue
        for line in lines:
            if line.startswith("nr_throttled "):
                return int(line.split()[1])
    return 0


def _control_groups() -> list[Path]:
    """Where the processor accounting of this process may be: version 2, then version 1."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers == "" or "cpu" in controllers.split(","):
            mount = _CGROUPS / controllers if controllers else _CGROUPS
            # A container sees its own group as the mount's root.
            found += [mount / path.lstrip("/"), mount]
    return found
