"""Showing a tuner at work: trials done, best so far, time left."""

import signal
import threading
import time
from collections import Counter
from collections.abc import Iterable
from types import TracebackType
from typing import Any, NamedTuple

from tvm_practice.tvm_export.tuners.history import NothingMeasured, nothing_measured

# Without a terminal a line is printed this many times in a run.
_LINES = 4
_LONGEST_REASON = 300


class Outcome(NamedTuple):
    """What came of a trial: `seconds` a run of `flop` operations, or None and the `error`."""

    seconds: float | None
    flop: float
    error: str | None = None


class Stopped(Exception):
    """Ends a tuner after Ctrl-C; Progress turns it into KeyboardInterrupt."""


class Progress:
    """Counts a tuner's trials and shows them, as a bar on a terminal and else as a few lines.

    with Progress("Ansor", trials=64) as progress:
        progress.add([Outcome(seconds=0.0021, flop=2 * 512**3)])

    Leaving the block raises NothingMeasured if there were trials and all of them failed.

    Ctrl-C in the block lets the trials in flight end and be recorded; then `add` stops the tuner,
    and the block ends with KeyboardInterrupt. A second one interrupts at once. The tuners call
    Python from C++, where KeyboardInterrupt itself is lost or becomes some other error.
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
        if self._display is not None:
            self._display.update(self._task, completed=self.done, best=self.best_gflops)
        elif self.done * _LINES // self.trials > quarter:
            self._print_line()
        if self._interrupted:
            raise Stopped

    def _print_line(self) -> None:
        spent = time.monotonic() - self._started
        left = max(self.trials - self.done, 0) * spent / self.done
        failed = f", {self.errors.total()} failed" if self.errors else ""
        print(
            f"{self.tuner}: {self.done} of {self.trials} trials{failed}, "
            f"best {self.best_gflops:.1f} GFLOP/s, {spent:.0f} s, about {left:.0f} s left",
            flush=True,
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._display is not None:
            self._display.stop()
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if self._interrupted:
            raise KeyboardInterrupt from error
        if error is None and self.done and self.errors.total() == self.done:
            raise NothingMeasured(nothing_measured(self.tuner, self.done, self.errors))


def last_line(message: str) -> str:
    """The line of a traceback that says what went wrong."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return (lines or ["no reason given"])[-1][:_LONGEST_REASON]
