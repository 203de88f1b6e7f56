"""What happens while an exercise is watched: files are saved, keys are pressed."""

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue
from typing import Any, TypeAlias

import psutil
import watchfiles

_SETTLED_MS = 50  # an editor writes a file in several steps
LOOK_SECONDS = 0.3
# File systems that a virtual machine's host or another machine changes unseen.
_SILENT = ("9p", "drvfs", "fakeowner", "virtiofs", "vboxsf", "nfs", "nfs4", "cifs", "smb3", "fuse")

Event: TypeAlias = tuple[str, Any]  # ("saved", file name), ("key", letter), ("graded", a Future)


def asked_to_poll() -> bool:
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
def saved(folder: Path, poll: bool, events: "Queue[Event]") -> Iterator[None]:
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
    folder: Path, events: "Queue[Event]", stop: threading.Event, watching: threading.Event
) -> None:
    """Report saved files by looking at them again and again, until `stop` is set.

    `watching` is set after the first look.

    Not by watchfiles' own polling, which compares times in whole seconds and so does not see the
    second of two saves within one.
    """
    seen: dict[str, tuple[int, int, int]] = {}
    first = True
    while first or not stop.wait(LOOK_SECONDS):
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
def keys(events: "Queue[Event]") -> Iterator[bool]:
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
def ended_by_sigterm() -> Iterator[None]:
    """Have SIGTERM end this as Ctrl-C does, so that the terminal is as it was."""

    def end(*_: object) -> None:
        sys.exit(128 + signal.SIGTERM)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
