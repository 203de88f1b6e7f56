"""What was measured since a tuner last wrote its log.

Tuners measure a round of up to 16 candidates and write their log when the last one is done. A
process that is killed in between would lose the round. So each measurement is written here at
once, and what the log lacks is put there when tuning starts again.
"""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.tuners.history import json_lines


class Journal:
    """A file of JSON lines, one a measured trial, emptied whenever the log has them."""

    def __init__(self, path: Path):
        self.path = path

    def append(self, entry: Any) -> None:
        """Write one entry. It outlives the process, not the machine: nothing waits for the disk."""
        with self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def clear(self) -> None:
        self.path.unlink(missing_ok=True)

    def entries(self) -> list[Any]:
        """The entries whose line is whole."""
        return list(json_lines(self.path)) if self.path.exists() else []


def append_missing(
    log: Path, lines: Iterable[Any], *, key: Callable[[Any], Any] = lambda line: line
) -> list[Any]:
    """Append to a log of JSON lines those that it lacks; returns them.

    Two lines are the same if `key` of them is.
    """
    known = [key(line) for line in json_lines(log)] if log.exists() else []
    missing = [line for line in lines if key(line) not in known]
    if missing:
        with log.open("a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in missing))
    return missing
