"""A clock that goes on only by what is called, so that measurements are known exactly."""

import itertools
import time
from collections.abc import Callable, Iterable

import pytest

from tvm_practice.measure import Meter, threads


class Clock:
    """Stands in for time.perf_counter, time.process_time and time.sleep.

    Attributes:
        called: calls of all callables made by `callable`.
        order: their names, in the order they were called.
        spinning_until: up to this moment a thread of the process burns a core.
    """

    def __init__(self) -> None:
        self.now = 50.0
        self.called = 0
        self.order: list[str] = []
        self.spinning_until = 0.0
        self._spun = 0.0

    def patch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(time, "perf_counter", self._look)
        monkeypatch.setattr(time, "process_time", lambda: self._spun)
        monkeypatch.setattr(time, "sleep", self.go_on)
        # Real threads of the test process, left spinning by an earlier test, are none of its.
        monkeypatch.setattr(threads, "_others_runnable", lambda: False)
        # Nor are the programs that run beside it.
        monkeypatch.setattr(Meter, "disturbance", lambda meter, *_: None)

    def _look(self) -> float:
        self.now += 1e-7
        return self.now

    def go_on(self, seconds: float) -> None:
        self._spun += max(0.0, min(self.spinning_until, self.now + seconds) - self.now)
        self.now += seconds

    def callable(
        self, milliseconds: Iterable[float], name: str = "", *, spins_for: float = 0
    ) -> Callable[[], None]:
        """A callable whose calls take these times, and the last of them ever after.

        `spins_for` is how many seconds its threads go on spinning after each call.
        """
        durations = list(milliseconds)
        remaining = itertools.chain(durations, itertools.repeat(durations[-1]))

        def run() -> None:
            self.called += 1
            self.order.append(name)
            self.go_on(next(remaining) / 1e3)
            if spins_for:
                self.spinning_until = self.now + spins_for

        return run
