"""A machine whose clock the grader turns, so that what a check measures is known exactly."""

import contextlib
import itertools
import math
import time
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType
from typing import Any
from unittest import mock

from tvm_practice import measure
from tvm_practice.measure import threads

_quiesce = measure.quiesce


class Machine:
    """A simulated machine: its clock goes on only by calls, and a little by each look.

    After a call its thread pool spins for 120 ms. Meanwhile any other thing's call takes 12 ms
    longer; a pool that is asleep takes 2 ms to wake. A call need not keep the processor busy, and
    somebody sets the wall clock while it is read.

    Args:
        waits: whether `quiesce` waits for the pools, which takes a while to simulate.
    """

    _SPIN, _STOLEN, _WAKE, _LOOK, _SET = 0.120, 0.012, 0.002, 1e-7, 0.005

    def __init__(self, waits: bool = True) -> None:
        self._waits = waits
        self.now = 3e6  # a month after the start: float32 has steps of a quarter of a second here
        self._working = 0.0
        self._spun = 0.0
        self._set_by = 0.0
        self._ended: dict[str, float] = {}
        self.calls: list[str] = []
        self.events: list[str] = []  # the calls, and "quiesce" where it was waited for
        self.looks = 0  # at its clocks
        self._changes = 0

    def call(
        self, name: str, milliseconds: float, *, pool: bool = False, busy: float = 1.0
    ) -> None:
        """Let `name` run for so long, a part of which, `busy`, it computes and does not wait."""
        self._changes = self.changes_with(name)
        self.calls.append(name)
        self.events.append(name)
        spinning = {each for each, end in self._ended.items() if self.now < end + self._SPIN}
        seconds = milliseconds / 1e3
        if pool:
            seconds += self._STOLEN if spinning - {name} else 0
            seconds += self._WAKE if name not in spinning else 0
            self._spun += min(self.now - self._ended.get(name, self.now), self._SPIN)
            self._ended[name] = self.now + seconds
        self.now += seconds
        self._working += seconds * busy

    def changes_with(self, name: str) -> int:
        """How often another thing was called than just before, if `name` is called next."""
        return self._changes + (self.calls[-1:] not in ([], [name]))

    def clock(self) -> float:
        self.looks += 1
        self.now += self._LOOK
        return self.now

    def coarse_clock(self) -> float:
        """As `time.monotonic` is on some systems: 64 steps a second."""
        return math.floor(self.clock() * 64) / 64

    def _quiesce(self, limit: float = 0.5) -> None:
        self.events.append("quiesce")
        if self._waits:
            _quiesce(limit)

    def wall_clock(self) -> float:
        self._set_by += self._SET
        return self.clock() + self._set_by

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def processor_time(self) -> float:
        spins = sum(min(self.now - end, self._SPIN) for end in self._ended.values())
        return self._working + self._spun + spins

    @contextlib.contextmanager
    def in_charge_of_time(self, function: Callable[..., Any]) -> Iterator[None]:
        """The clocks of `time` are this machine's, also where the answer's module keeps them.

        By a name, in a dictionary or a class of its own, or as a default of a function.
        """
        clocks = {
            time.perf_counter: self.clock,
            time.perf_counter_ns: lambda: int(self.clock() * 1e9),
            time.monotonic: self.coarse_clock,
            time.monotonic_ns: lambda: int(self.coarse_clock() * 1e9),
            time.time: self.wall_clock,
            time.time_ns: lambda: int(self.wall_clock() * 1e9),
            time.process_time: self.processor_time,
            time.sleep: self.sleep,
        }
        by_identity = {id(clock): replacement for clock, replacement in clocks.items()}
        by_identity[id(_quiesce)] = self._quiesce

        def replaced(names: Mapping[Any, Any]) -> dict[Any, Any]:
            return {
                name: by_identity[id(each)]
                for name, each in names.items()
                if id(each) in by_identity
            }

        with contextlib.ExitStack() as patches:
            for timer in (timeit.timeit, timeit.repeat, timeit.Timer.__init__):
                defaults = tuple(
                    by_identity.get(id(each), each) for each in timer.__defaults__ or ()
                )
                patches.enter_context(mock.patch.object(timer, "__defaults__", defaults))
            for clock, replacement in clocks.items():
                patches.enter_context(mock.patch.object(time, clock.__name__, replacement))
            patches.enter_context(mock.patch.object(timeit, "default_timer", self.clock))
            for home in (measure, threads):
                patches.enter_context(mock.patch.object(home, "quiesce", self._quiesce))
            usual = {id(replacement): clock for clock, replacement in clocks.items()}
            usual[id(by_identity[id(_quiesce)])] = _quiesce
            patches.enter_context(_standing_in(function.__globals__, by_identity, usual))
            for each in list(function.__globals__.values()):
                if isinstance(each, FunctionType):
                    defaults = tuple(
                        by_identity.get(id(value), value) for value in each.__defaults__ or ()
                    )
                    patches.enter_context(mock.patch.object(each, "__defaults__", defaults))
                named = each.__kwdefaults__ if isinstance(each, FunctionType) else each
                if isinstance(named, dict) and (clocks_of := replaced(named)):
                    patches.enter_context(mock.patch.dict(named, clocks_of))
                if isinstance(each, type) and each.__module__ == function.__module__:
                    for name, clock in replaced(vars(each)).items():
                        patches.enter_context(mock.patch.object(each, name, staticmethod(clock)))
            yield


@contextlib.contextmanager
def _standing_in(
    names: dict[str, Any], instead: Mapping[int, Any], usual: Mapping[int, Any]
) -> Iterator[None]:
    """Values among `names` replaced, by their id; what else an answer keeps there stays."""

    def replace(by_identity: Mapping[int, Any]) -> None:
        names.update(
            {name: by_identity[id(each)] for name, each in names.items() if id(each) in by_identity}
        )

    replace(instead)
    try:
        yield
    finally:
        replace(usual)


def scripted(machine: Machine, durations: Sequence[float]) -> Callable[[], object]:
    """A callable whose i-th call takes durations[i] milliseconds, the last of them ever after.

    It waits for a part of them, and returns now this, now that.
    """
    remaining = itertools.chain(durations, itertools.repeat(durations[-1]))
    results = itertools.cycle((False, None, 1))

    def run() -> object:
        machine.call("run", next(remaining), busy=0.6)
        return next(results)

    return run


def pair(
    machine: Machine, first_ms: Callable[[int], float], second_ms: Callable[[int], float]
) -> tuple[Callable[[], None], Callable[[], None]]:
    """Two callables with a thread pool each; what they take is a function of the round."""

    def turn(name: str, milliseconds: Callable[[int], float]) -> Callable[[], None]:
        def run() -> None:
            busy = 1.0 if name == "first" else 0.5
            at = machine.changes_with(name) // 2
            machine.call(name, milliseconds(at), pool=True, busy=busy)

        return run

    return turn("first", first_ms), turn("second", second_ms)
