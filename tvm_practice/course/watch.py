"""Checking an exercise whenever its file is saved.

Three threads feed one queue, which `Watch.run` empties: watchfiles reports saved files, the
terminal the keys, and a worker the verdicts. Only `run` prints. The worker lives as long as the
engines' processes that it starts, as engines.Session asks, and keeps them warm.
"""

import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue
from typing import Any, TypeAlias

import psutil
import watchfiles

from tvm_practice.course.board import board, totals, word
from tvm_practice.course.catalog import MINE, Exercise, exercises
from tvm_practice.course.grading import GradingCancelled, Verdict, file_problem, source_file
from tvm_practice.course.progress import Standing
from tvm_practice.course.screen import Screen, near
from tvm_practice.course.telling import standings, tell_hint, tell_next, tell_verdict

_KEYS = "Keys: n next, h hint, l list, r check again, q quit"
# How long a check may go on after the file was saved again before it is stopped.
_PATIENCE_SECONDS = 0.7
_SETTLED_MS = 50  # an editor writes a file in several steps
_LOOK_SECONDS = 0.3
# File systems that a virtual machine's host or another machine changes unseen.
_SILENT = ("9p", "drvfs", "fakeowner", "virtiofs", "vboxsf", "nfs", "nfs4", "cifs", "smb3", "fuse")

_Event: TypeAlias = tuple[str, Any]  # ("saved", file name), ("key", letter), ("graded", a Future)


class Watch:
    """The command `watch`, from `exercise` on; `poll` looks at the file instead of being told."""

    def __init__(
        self, screen: Screen, standing: Standing, exercise: Exercise, *, poll: bool = False
    ):
        self._screen = screen
        self._standing = standing
        self._exercise = exercise
        self._poll = poll or _asked_to_poll() or is_silent(self._file.parent)
        self._events: Queue[_Event] = Queue()
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._running: Future[Verdict] | None = None
        self._starting: Future[None] | None = None
        self._again_since: float | None = None  # when a check of what is running became stale

    @property
    def _file(self) -> Path:
        return source_file(self._exercise.phase, MINE)

    def run(self) -> None:
        """Until the key q, Ctrl-C (KeyboardInterrupt), or nothing is left to do."""
        with (
            _ended_by_sigterm(),
            self._cancelled_at_the_end(),
            _saved(self._file.parent, self._poll, self._events),
            _keys(self._events) as with_keys,
        ):
            self._begin(_KEYS if with_keys else "Ctrl-C ends it")
            while self._handle(*self._next_event()):
                pass

    def _begin(self, keys: str) -> None:
        how = f", by looking every {_LOOK_SECONDS} s" if self._poll else ""
        self._screen.say(f"Watching {near(self._file)}{how}. {keys}")
        self._check()

    def _next_event(self) -> _Event:
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
            verdicts = standings(self._standing)
            if screen.plain:
                by_id = {verdict.exercise.id: verdict for verdict in verdicts}
                for exercise in exercises():
                    screen.say(f"{exercise.id}: {word(by_id.get(exercise.id))}")
            else:
                screen.draw(board(verdicts))
            screen.say(totals(verdicts))
        elif key == "r":
            self._check()
        return key != "q"

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
        if verdict.status == "passed":
            following = tell_next(self._screen, self._standing, verdict.exercise)
            if following is None:
                return False
            self._exercise = following
            if self._standing.known(following) is None:
                self._check()
        self._make_ready()
        return True

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
            while any(each and not each.done() for each in (self._running, self._starting)):
                self._standing.grader.cancel()
                time.sleep(0.05)
            self._worker.shutdown()


def _asked_to_poll() -> bool:
    """What watchfiles' variable says, in watchfiles' words."""
    asked = os.environ.get("WATCHFILES_FORCE_POLLING", "").lower()
    return asked not in ("", "false", "disable", "disabled")


def is_silent(folder: Path) -> bool:
    """Whether files in `folder` may change without an event: it is shared with another system."""
    inside = [
        partition
        for partition in psutil.disk_partitions(all=True)
        if folder.resolve().is_relative_to(partition.mountpoint)
    ]
    if not inside:
        return False
    nearest = max(inside, key=lambda partition: len(partition.mountpoint))
    return nearest.fstype.partition(".")[0] in _SILENT


@contextmanager
def _saved(folder: Path, poll: bool, events: "Queue[_Event]") -> Iterator[None]:
    """Report the names of the Python files in `folder` as they are saved in the block.

    The folder is watched and not a file, because many editors save by renaming a new file.
    """
    stop, watching = threading.Event(), threading.Event()

    def report() -> None:
        if not poll:
            try:
                for changes in watchfiles.watch(
                    folder,
                    watch_filter=lambda change, _: change != watchfiles.Change.deleted,
                    recursive=False,
                    step=_SETTLED_MS,
                    rust_timeout=_SETTLED_MS,
                    yield_on_timeout=True,  # the first says that the folder is watched
                    stop_event=stop,
                    force_polling=False,
                    raise_interrupt=False,
                ):
                    watching.set()
                    for name in {Path(path).name for _, path in changes}:
                        events.put(("saved", name))
            except (OSError, RuntimeError):
                pass  # the system has no events left to give: look
        _look(folder, events, stop, watching)

    with _thread(report, stop):
        watching.wait(timeout=10)  # the first check reads the file: what is saved later is told
        yield


def _look(
    folder: Path, events: "Queue[_Event]", stop: threading.Event, watching: threading.Event
) -> None:
    """Report saved files by looking at them again and again, until `stop` is set.

    `watching` is set after the first look.

    Not by watchfiles' own polling, which compares times in whole seconds and so does not see the
    second of two saves within one.
    """
    seen: dict[str, tuple[int, int, int]] = {}
    first = True
    while first or not stop.wait(_LOOK_SECONDS):
        for file in folder.glob("*.py"):
            try:
                found = file.stat()
            except FileNotFoundError:
                continue
            state = (found.st_mtime_ns, found.st_size, found.st_ino)
            if seen.get(file.name) != state and not first:
                events.put(("saved", file.name))
            seen[file.name] = state
        first = False
        watching.set()


@contextmanager
def _keys(events: "Queue[_Event]") -> Iterator[bool]:
    """Report keys as they are pressed; gives False where there is no terminal to press them on."""
    try:
        import termios
        import tty

        terminal = sys.stdin.fileno()
        before = termios.tcgetattr(terminal)
        in_front = os.tcgetpgrp(terminal) == os.getpgrp()
    except (ImportError, OSError, ValueError, termios.error):
        in_front = False
    if not in_front:  # in the background, changing the terminal would stop this process
        yield False
        return
    stop = threading.Event()

    def report() -> None:
        while not stop.is_set():
            if select.select([terminal], [], [], 0.1)[0]:
                typed = os.read(terminal, 1)
                if not typed:
                    return
                events.put(("key", typed.decode(errors="replace").lower()))

    tty.setcbreak(terminal)  # not raw: lines that are printed meanwhile still end as they should
    try:
        with _thread(report, stop):
            yield True
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


@contextmanager
def _thread(report: Callable[[], None], stop: threading.Event) -> Iterator[None]:
    """Run `report` in a thread, which ends soon after `stop` is set."""
    thread = threading.Thread(target=report, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def _ended_by_sigterm() -> Iterator[None]:
    """Have SIGTERM end this as Ctrl-C does, so that the terminal is as it was."""

    def end(*_: object) -> None:
        sys.exit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
