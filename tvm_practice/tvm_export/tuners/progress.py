"""Showing a tuner at work: trials done, best so far, time left."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable
from math import inf
from types import TracebackType
from typing import Any, NamedTuple

from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.tvm_export.tuners.history import nothing_measured
from tvm_practice.tvm_export.tuners.search import going
from tvm_practice.wording import number_of

# Without a terminal a line is printed this many times in a run.
_LINES = 4
_LONGEST_REASON = 300


class Outcome(NamedTuple):
    """What came of a trial of `task`: `seconds` a run of `flop` operations, or the `error`."""

    seconds: float | None
    flop: float
    error: str | None = None
    task: str = ""


class Stopped(Exception):
    """Ends a tuner before its trials are spent; Progress knows why and does what is due."""


class Progress:
    """Counts a tuner's trials and shows them, as a bar on a terminal and else as a few lines.

    with Progress("Ansor", trials=64) as progress:
        progress.add([Outcome(seconds=0.0021, flop=2 * 512**3)])

    Leaving the block raises NothingMeasured if there were trials and all of them failed.

    Ctrl-C in the block lets the trials in flight end and be recorded; then `add` stops the tuner,
    and the block ends with KeyboardInterrupt. A second one interrupts at once. The tuners call
    Python from C++, where KeyboardInterrupt itself is lost or becomes some other error.

    The limits of `search.going()` end the block likewise, but without an exception.
    """

    def __init__(self, tuner: str, trials: int):
        self.tuner = tuner
        self.trials = trials
        self.done = 0
        self.errors: Counter[str] = Counter()
        self.best_gflops = 0.0
        self._display: Any = None
        self._interrupted = False
        self._handler: Any = None
        self._going = going()
        self._best: dict[str, float] = {}
        self._since_better = 0
        self._reached: str | None = None

    def __enter__(self) -> "Progress":
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Display

        self._started = time.monotonic()
        if Console().is_terminal:
            self._display = Display(
                TextColumn("{task.description:<12}"),
                BarColumn(bar_width=24),
                MofNCompleteColumn(),
                TextColumn("best {task.fields[best]:.1f} GFLOP/s"),
                TimeRemainingColumn(),
            )
            self._task = self._display.add_task(self.tuner, total=self.trials, best=0.0)
            self._display.start()
        if threading.current_thread() is threading.main_thread():
            self._handler = signal.signal(signal.SIGINT, self._on_interrupt)
        return self

    def _on_interrupt(self, *_: Any) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True
        print(f"\n{self.tuner} stops when the trials in flight have ended", flush=True)

    def add(self, outcomes: Iterable[Outcome]) -> None:
        """Count what came of some trials and show where the tuner is."""
        quarter = self.done * _LINES // self.trials
        for outcome in outcomes:
            self.done += 1
            if outcome.seconds is None:
                self.errors[last_line(outcome.error or "no reason given")] += 1
            else:
                self.best_gflops = max(self.best_gflops, outcome.flop / outcome.seconds / 1e9)
            self._since_better += 1
            if (outcome.seconds or inf) < self._best.get(outcome.task, inf):
                self._best[outcome.task] = outcome.seconds or inf
                self._since_better = 0
        if self._display is not None:
            self._display.update(self._task, completed=self.done, best=self.best_gflops)
        elif self.done * _LINES // self.trials > quarter:
            self._print_line()
        self._reached = self._limit()
        if self._interrupted or self._reached is not None:
            raise Stopped

    def measure_more(self, measured: int) -> None:
        """Called before a trial: ends the search if `measured` are as many as were asked for.

        Tuners end with whole rounds, MetaSchedule with a round of each task that has begun one.
        """
        if self._going.most is not None and measured >= self._going.most:
            self._reached = ""
            raise Stopped

    def _limit(self) -> str | None:
        """What to say of the limit that is reached; None if none is."""
        patience = self._going.search.early_stopping
        if self._going.is_late:
            return f"{self._going.search.seconds:g} s are over"
        if patience is not None and self._since_better >= patience:
            return f"the last {self._since_better} trials were no better"
        if self._going.most is not None and self.done >= self._going.most:
            return ""  # it is what was asked for
        return None

    def _print_line(self) -> None:
        spent = time.monotonic() - self._started
        left = max(self.trials - self.done, 0) * spent / self.done
        failed = f", {self.errors.total()} failed" if self.errors else ""
        print(
            f"{self.tuner}: {self.done} of {number_of(self.trials, 'trial')}{failed}, "
            f"best {self.best_gflops:.1f} GFLOP/s, {left:.0f} s left",  # within 80 columns
            flush=True,
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        if self._display is not None:
            self._display.stop()
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if self._interrupted:
            raise KeyboardInterrupt from error
        if self._reached:
            print(f"{self.tuner} stops: {self._reached}", flush=True)
        ended = error is None or self._reached is not None
        if ended and self.done and self.errors.total() == self.done:
            raise NothingMeasured(nothing_measured(self.tuner, self.done, self.errors))
        return ended


def last_line(message: str) -> str:
    """The line of a traceback that says what went wrong."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return (lines or ["no reason given"])[-1][:_LONGEST_REASON]
