"""What students hand in: a folder, an archive, or a file, with chapters of the course."""

import hashlib
import tarfile
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

from tvm_practice.course.catalog import Phase

_MOST_BYTES = 2**20  # of a chapter; those of the course have 20,000
# An archive may unpack to more than a disk holds.
_MOST_MEMBERS, _MOST_UNPACKED = 20_000, 2**30
_ZIPPED, _TARRED = (".zip",), (".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2")


class _Unreadable(Exception):
    """A submission that cannot be read; the message says why."""


@dataclass(frozen=True)
class Submission:
    """What one student handed in.

    Attributes:
        name: of the folder, or of the archive or file without its ending.
        chapters: the text of each chapter that is there, by its module.
        problem: why it cannot be graded; "" if it can.
    """

    name: str
    chapters: dict[str, bytes] = field(default_factory=dict)
    problem: str = ""

    @property
    def digest(self) -> str:
        """The same for the same chapters."""
        found = hashlib.sha256()
        for module, text in sorted(self.chapters.items()):
            found.update(f"{module} {len(text)} ".encode() + text)
        return found.hexdigest()


def find_submissions(folder: Path, chapters: Sequence[Phase]) -> list[Submission]:
    """Those in `folder`, sorted by name: its folders, .zip and .tar archives, and Python files.

    A chapter is found by the name of its file, wherever it lies in a folder or archive. A file that
    lies directly in `folder` is an answer to the one chapter of `chapters`; where there are
    several, it is none. What begins with a dot is skipped.

    Raises OSError where `folder` cannot be read.
    """
    entries = [each for each in sorted(folder.iterdir()) if not each.name.startswith(".")]
    found = []
    taken: set[str] = set()
    for entry in entries:
        if not _is_submission(entry, chapters):
            continue
        name = _stem(entry)
        if name in taken:  # a folder beside an archive of the same name
            name = entry.name
        taken.add(name)
        found.append(_read(entry, name, chapters))
    return found


def _is_submission(entry: Path, chapters: Sequence[Phase]) -> bool:
    if entry.is_dir():
        return True
    return entry.name.endswith(_ZIPPED + _TARRED) or (len(chapters) == 1 and entry.suffix == ".py")


def _stem(entry: Path) -> str:
    for ending in (*_ZIPPED, *_TARRED, ".py"):
        if entry.is_file() and entry.name.endswith(ending):
            return entry.name.removesuffix(ending)
    return entry.name


def _read(entry: Path, name: str, chapters: Sequence[Phase]) -> Submission:
    wanted = {f"{each.name}.py": each.module for each in chapters}
    found: dict[str, bytes] = {}
    try:
        for file, text in _texts(entry, wanted):
            if file not in wanted:
                file = f"{chapters[0].name}.py"
            if found.setdefault(wanted[file], text) != text:
                raise _Unreadable(f"{entry.name} has several different files {file}")
    except _Unreadable as problem:
        return Submission(name, problem=str(problem))
    except Exception as error:  # a broken archive raises what its decompressor likes
        return Submission(name, problem=f"{entry.name} cannot be read: {error}")
    if not found:
        return Submission(name, problem=f"{entry.name} has no {' and no '.join(wanted)}")
    return Submission(name, found)


def _texts(entry: Path, wanted: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file of a wanted name."""
    if entry.is_dir():
        return _from_folder(entry, wanted)
    if entry.name.endswith(_ZIPPED):
        return _from_zip(entry, wanted)
    if entry.name.endswith(_TARRED):
        return _from_tar(entry, wanted)
    with entry.open("rb") as file:
        return iter([(entry.name, _limited(file, entry.name))])


def _from_folder(folder: Path, wanted: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*.py")):
        # A link may lead out of the folder.
        inside = path.resolve().is_relative_to(folder.resolve())
        if _is_wanted(str(path.relative_to(folder)), wanted) and inside and path.is_file():
            with path.open("rb") as file:
                yield path.name, _limited(file, path.name)


def _from_zip(path: Path, wanted: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist()[:_MOST_MEMBERS]:
            if _is_wanted(member.filename, wanted):
                with archive.open(member) as file:
                    yield PurePosixPath(member.filename).name, _limited(file, member.filename)


def _from_tar(path: Path, wanted: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    unpacked = 0
    with tarfile.open(path) as archive:
        for number, member in enumerate(archive):
            unpacked += member.size
            if number >= _MOST_MEMBERS or unpacked > _MOST_UNPACKED:
                raise _Unreadable(f"{path.name} has too much in it")
            file = archive.extractfile(member) if member.isreg() else None
            if file is not None and _is_wanted(member.name, wanted):
                yield PurePosixPath(member.name).name, _limited(file, member.name)


def _is_wanted(path: str, wanted: dict[str, str]) -> bool:
    parts = PurePosixPath(path).parts
    # macOS adds a folder of attributes, files of the same names in it.
    hidden = any(each.startswith(".") or each == "__MACOSX" for each in parts)
    return bool(parts) and parts[-1] in wanted and not hidden


def _limited(file: IO[bytes], name: str) -> bytes:
    text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise _Unreadable(f"{name} is longer than {_MOST_BYTES // 1024} KiB")
    return text
