"""Checking an exercise whenever its file is saved.

Three threads feed one queue, which `Watch.run` empties: watchfiles reports saved files, the
terminal the keys, and a worker the verdicts. Only `run` prints. The worker lives as long as the
engines' processes that it starts, as engines.Session asks, and keeps them warm.
"""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from tvm_practice.course.board import board, totals, word
from tvm_practice.course.catalog import MINE, Exercise, exercises
from tvm_practice.course.events import (
    LOOK_SECONDS,
    Event,
    asked_to_poll,
    ended_by_sigterm,
    is_silent,
    keys,
    saved,
)
from tvm_practice.course.grading import GradingCancelled, Verdict, file_problem, source_file
from tvm_practice.course.progress import Standing
from tvm_practice.course.screen import Screen, near
from tvm_practice.course.sketch import Sketch, described
from tvm_practice.course.telling import standings, tell_hint, tell_next, tell_verdict
from tvm_practice.course.watch_page import WatchPage

_KEYS = "Keys: n next, h hint, l list, r check again, q quit"
# How long a check may go on after the file was saved again before it is stopped.
_PATIENCE_SECONDS = 0.7


class Watch:
    """The command `watch`, from `exercise` on.

    `poll` looks at the file instead of being told; `page` shows each outcome as well.
    """

    def __init__(
        self,
        screen: Screen,
        standing: Standing,
        exercise: Exercise,
        *,
        poll: bool = False,
        page: WatchPage | None = None,
    ):
        self._screen = screen
        self._standing = standing
        self._exercise = exercise
        self._poll = poll or asked_to_poll() or is_silent(self._file.parent)
        self._events: Queue[Event] = Queue()
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._running: Future[Verdict] | None = None
        self._starting: Future[None] | None = None
        self._page = page
        self._sketching: Future[Sketch] | None = None
        self._again_since: float | None = None  # when a check of what is running became stale

    @property
    def _file(self) -> Path:
        return source_file(self._exercise.phase, MINE)

    def run(self) -> None:
        """Until the key q, Ctrl-C (KeyboardInterrupt), or nothing is left to do."""
        with (
            ended_by_sigterm(),
            self._cancelled_at_the_end(),
            saved(self._file.parent, self._poll, self._events),
            keys(self._events) as with_keys,
        ):
            self._begin(_KEYS if with_keys else "Ctrl-C ends it")
            while self._handle(*self._next_event()):
                pass

    def _begin(self, keys: str) -> None:
        how = f", by looking every {LOOK_SECONDS} s" if self._poll else ""
        self._screen.say(f"Watching {near(self._file)}{how}. {keys}")
        if self._page is not None:
            self._screen.say(f"Page: {self._page.address}")
        self._check()

    def _next_event(self) -> Event:
        """The next event; a check that is stale is stopped while waiting for it."""
        while True:
            patience = None
            if self._again_since is not None:
                patience = max(0.1, self._again_since + _PATIENCE_SECONDS - time.monotonic())
            try:
                return self._events.get(timeout=patience)
            except Empty:
                # An engine that is still loading is waited for: the check has not begun.
                if self._starting is None or self._starting.done():
                    self._standing.grader.cancel()

    def _handle(self, kind: str, what: Any) -> bool:
        """Act on an event; whether to go on."""
        if kind == "saved":
            # Between the two renames of an editor's save it is not there.
            if what == self._file.name and self._file.exists():
                self._check()
        elif kind == "key":
            return self._press(what)
        elif kind == "graded":
            return self._graded(what)
        elif kind == "sketched":
            self._sketched(*what)
        return True

    def _press(self, key: str) -> bool:
        screen = self._screen
        if key == "n":
            following = self._standing.next(after=self._exercise)
            if following is None or following == self._exercise:
                screen.say("There is no other exercise to do")
            else:
                self._exercise = following
                self._check()
        elif key == "h":
            tell_hint(screen, self._standing, self._exercise)
        elif key == "l":
            self._list()
        elif key == "r":
            self._check()
        return key != "q"

    def _list(self) -> None:
        verdicts = standings(self._standing)
        if self._screen.plain:
            by_id = {verdict.exercise.id: verdict for verdict in verdicts}
            for exercise in exercises():
                self._screen.say(f"{exercise.id}: {word(by_id.get(exercise.id))}")
        else:
            self._screen.draw(board(verdicts))
        self._screen.say(totals(verdicts))

    def _check(self) -> None:
        """Check the exercise now, or as soon as the check that is running has ended."""
        if self._running is not None:
            if self._again_since is None:
                self._again_since = time.monotonic()
            return
        name = self._exercise.id
        if not self._screen.plain:
            self._screen.say()
        self._screen.say(f"{time.strftime('%H:%M:%S')} checking {name} …", "bold")
        if problem := file_problem(self._file):
            self._screen.say(problem, "red")
            if self._page is not None:
                self._page.show(Verdict(self._exercise, "failed", problem))
            self._make_ready()
            return
        self._running = self._worker.submit(self._standing.grade, self._exercise)
        self._running.add_done_callback(lambda done: self._events.put(("graded", done)))

    def _graded(self, done: "Future[Verdict]") -> bool:
        self._running = None
        if self._again_since is not None:
            self._again_since = None
            self._check()
            return True
        try:
            verdict = done.result()
        except GradingCancelled:
            return True
        tell_verdict(self._screen, verdict)
        self._sketch(verdict)
        if verdict.status == "passed":
            following = tell_next(self._screen, self._standing, verdict.exercise)
            if following is None:
                return False
            self._exercise = following
            if self._standing.known(following) is None:
                self._check()
        self._make_ready()
        return True

    def _sketch(self, verdict: Verdict) -> None:
        """Follow the answer's accesses, on the worker, if there is one to follow."""
        if self._page is not None:
            self._page.show(verdict)
        if verdict.status in ("passed", "failed"):
            grader, drawn = self._standing.grader, self._page is not None
            self._sketching = self._worker.submit(grader.sketch, verdict.exercise, drawn=drawn)
            self._sketching.add_done_callback(
                lambda done: self._events.put(("sketched", (verdict, done)))
            )

    def _sketched(self, verdict: Verdict, done: "Future[Sketch]") -> None:
        """Show the accesses, unless the exercise was saved again meanwhile."""
        if self._running is not None and self._exercise == verdict.exercise:
            return
        sketch = done.result()
        if lines := described(sketch, plain=self._screen.plain):
            self._screen.say(f"{verdict.exercise.id}, its accesses:", "bold")
            for line in lines:
                self._screen.say(line)
            if self._page is not None:
                self._page.show(verdict, sketch)

    def _make_ready(self) -> None:
        """Start the exercise's engine while the person is writing."""
        self._starting = self._worker.submit(self._standing.grader.make_ready, self._exercise)

    @contextmanager
    def _cancelled_at_the_end(self) -> Iterator[None]:
        try:
            yield
        finally:
            self._worker.shutdown(wait=False, cancel_futures=True)
            # Again and again: a process that is just being started is not seen at first.
            jobs = (self._running, self._starting, self._sketching)
            while any(each and not each.done() for each in jobs):
                self._standing.grader.cancel()
                time.sleep(0.05)
            self._worker.shutdown()
