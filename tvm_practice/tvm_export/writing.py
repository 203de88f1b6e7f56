"""Files that are written whole or not at all."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any


def write_json(file: Path, content: Any) -> None:
    """Write JSON whole or not at all. Raises OSError, and ValueError for a NaN."""
    write_whole(file, json.dumps(content, indent=2, allow_nan=False) + "\n")


def write_whole(file: Path, text: str) -> None:
    """Write text whole or not at all: to a temporary name beside the file, then renamed.

    Raises OSError; a file that was there stays as it was.
    """
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    writing = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        writing.chmod(0o666 & ~umask)  # mkstemp's own are for this user alone
        writing.replace(file)
    except BaseException:
        writing.unlink(missing_ok=True)
        raise
