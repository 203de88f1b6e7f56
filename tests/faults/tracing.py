"""What strace tells of a run: which system calls change files, and which one a fault was put in."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

# The calls that change files, and in which way each fails.
ERRORS = {
    "openat": ("ENOSPC", "EIO"),
    "write": ("ENOSPC", "EIO"),
    "rename": ("EIO",),
    "renameat": ("EIO",),
    "renameat2": ("EIO",),
    "unlink": ("EIO",),
    "unlinkat": ("EIO",),
    "link": ("EIO",),
    "linkat": ("EIO",),
    "mkdir": ("ENOSPC",),
    "mkdirat": ("ENOSPC",),
    "rmdir": ("EIO",),
    "ftruncate": ("EIO",),
    "fsync": ("EIO",),
    "fdatasync": ("EIO",),
    "flock": ("EIO",),
    "chmod": ("EIO",),
    "fchmod": ("EIO",),
    "fchmodat": ("EIO",),
}
_LINE = re.compile(r"(?P<pid>\d+) +(?P<name>\w+)\((?P<rest>.*)")
_DESCRIPTOR = re.compile(r"\d+<([^>]*)>")
_NAME = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"([^"]*)"')
_OF_DESCRIPTOR = ("write", "ftruncate", "fsync", "fdatasync", "flock", "fchmod")
_FOR_WRITING = ("O_WRONLY", "O_RDWR", "O_CREAT")


@dataclass(frozen=True)
class Point:
    """A system call that changes a file.

    Attributes:
        name: of the call.
        number: how many calls of that name the first thread had made on the watched files.
        path: of the file.
        watched: the file's names, and those of files that are watched in every run.
    """

    name: str
    number: int
    path: str
    watched: tuple[str, ...]


@dataclass(frozen=True)
class Fault:
    """What happens at a call.

    Attributes:
        point: the call.
        how: an error's name, or a signal's.
        restarted: whether the run and the next one are each in a container of their own, where
            processes have the same numbers again.
    """

    point: Point
    how: str
    restarted: bool = False

    @property
    def kind(self) -> tuple[str, str]:
        """The call and how it went, for a table."""
        return f"`{self.point.name}`", f"{self.how}, restarted" if self.restarted else self.how

    def __str__(self) -> str:
        call, how = self.kind
        return f"{how} at {call} {self.point.number} of {Path(self.point.path).name}"

    @property
    def options(self) -> list[str]:
        """strace's options that have it happen."""
        kind = "signal" if self.how.startswith("SIG") else "error"
        when = f"inject={self.point.name}:{kind}={self.how}:when={self.point.number}"
        return ["-e", when, *(word for path in self.point.watched for word in ("-P", path))]


def options(output: Path, fault: Fault | None = None) -> list[str]:
    """The options of strace that record a run, and put a fault in it."""
    given = ["-f", "-qq", "-y", "-s", "0", "-e", "signal=none", "-o", str(output)]
    given += ["-e", "trace=" + ",".join(ERRORS)]
    return given if fault is None else [*given, *fault.options]


def points(lines: Iterable[str], folder: Path, always: Sequence[Path] = ()) -> list[Point]:
    """The calls of a process's first thread that change something in its working directory.

    Args:
        lines: that strace wrote.
        folder: the working directory.
        always: files that are watched in every run.
    """
    first: str | None = None
    seen: list[tuple[str, list[str]]] = []
    found: list[Point] = []
    for line in lines:
        call = _LINE.match(line)
        if call is None:  # the end of a call that another thread's interrupted
            continue
        first = first or call["pid"]
        if call["pid"] != first:
            continue
        name, paths = call["name"], paths_of(call["name"], call["rest"])
        seen.append((name, paths))
        if name == "openat" and not any(flag in call["rest"] for flag in _FOR_WRITING):
            continue
        if paths and (folder / paths[0]).is_relative_to(folder):
            full = str(folder / paths[0])
            watched = tuple(sorted({full, paths[0], *map(str, always)}))
            number = sum(each == name and not set(watched).isdisjoint(at) for each, at in seen)
            found.append(Point(name, number, full, watched))
    return found


def paths_of(name: str, arguments: str) -> list[str]:
    """The files that a call is about, as strace's filter knows them; none of a pipe."""
    if name in _OF_DESCRIPTOR:
        file = _DESCRIPTOR.match(arguments)
        return [file[1]] if file and file[1].startswith("/") else []
    # Of a name in an open directory, strace's filter knows the directory.
    return [
        folder if folder and not arguments.startswith("AT_FDCWD") else path
        for folder, path in _NAME.findall(arguments)
    ]


def appended(lines: Iterable[str], name: str) -> int:
    """How many writes to files of that name succeeded."""
    good = re.compile(rf"write\(\d+<[^>]*/{re.escape(name)}>.* = [1-9]\d*$")
    return sum(good.search(line) is not None for line in lines)


def is_injected(lines: Iterable[str], fault: Fault) -> bool:
    """Whether the fault happened; that of a signal is told by the number of calls."""
    if not fault.how.startswith("SIG"):
        return any("(INJECTED)" in line for line in lines)
    calls = Counter((call["pid"], call["name"]) for line in lines if (call := _LINE.match(line)))
    return any(
        name == fault.point.name and count >= fault.point.number
        for (_, name), count in calls.items()
    )
