"""Files that are written whole or not at all."""

import fcntl
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_BEING_WRITTEN = ".new"


def write_json(file: Path, content: Any) -> None:
    """Write JSON whole or not at all. Raises OSError, and ValueError for a NaN."""
    write_whole(file, json.dumps(content, indent=2, allow_nan=False) + "\n")


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Have an OSError inside the block name this file: those of `write` and `flush` name none."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            error.filename = str(file)
        raise


def write_whole(file: Path, text: str) -> None:
    """Write text whole or not at all: to a temporary name beside the file, then renamed.

    Raises OSError; a file that was there stays as it was. Removes what processes that were killed
    while they wrote this file have left.
    """
    _remove_left(file)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=_BEING_WRITTEN)
    writing = Path(name)
    try:
        with naming(file), os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            fcntl.flock(handle, fcntl.LOCK_EX)  # until it is closed: the writer lives
            stream.write(text)
            stream.flush()
            os.fsync(handle)
            umask = os.umask(0)
            os.umask(umask)
            writing.chmod(0o666 & ~umask)  # mkstemp's own are for this user alone
            writing.replace(file)
    except BaseException:
        writing.unlink(missing_ok=True)
        raise


def _remove_left(file: Path) -> None:
    """Remove the temporary files for `file` that nobody writes."""
    start = f".{file.name}."
    for left in file.parent.iterdir():
        if not (left.name.startswith(start) and left.suffix == _BEING_WRITTEN):
            continue
        try:
            with left.open("r+") as stream:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                left.unlink()
        except OSError:  # it is being written, or just was
            continue
