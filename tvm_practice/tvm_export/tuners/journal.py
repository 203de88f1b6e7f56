"""The trials that are measured and not yet in the tuner's log.

Tuners measure a round of up to 16 candidates and write their log when the last one is done; a
search over several tasks measures a round of each before it writes the first. A process that is
killed in between would lose them. So each measurement is written here at once and stays until the
log holds it. What the log lacks is put there when tuning starts again.
"""

import errno
import json
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.tuners.history import json_lines
from tvm_practice.tvm_export.writing import naming, write_whole


class Journal:
    """A file of JSON lines, one per measured trial that the log may lack."""

    def __init__(
        self,
        path: Path,
        log: Path,
        *,
        line_of: Callable[[Any], Any] = lambda entry: entry,
        key: Callable[[Any], Any] = lambda line: line,
    ):
        """A journal at `path` for the JSON lines of `log`.

        Args:
            path: of the journal; it need not exist.
            log: of the tuner; it need not exist.
            line_of: the log's line for an entry.
            key: two lines of the log with the same key are the same trial.
        """
        self.path = path
        self._log = log
        self._line_of = line_of
        self._key = key
        self._numbers: dict[Hashable, int] = {}  # of the log's lines read so far, by their keys
        self._lines = 0
        self._offset = 0

    def append(self, entry: Any) -> None:
        """Write one entry. It outlives the process, not the machine: nothing waits for the disk."""
        with naming(self.path), self.path.open("a") as file:
            file.write(json.dumps(entry) + "\n")

    def entries(self) -> list[Any]:
        """The entries whose line is whole."""
        return list(json_lines(self.path)) if self.path.exists() else []

    def settle(self) -> None:
        """Drop the entries that the log holds.

        Raises:
            OSError: the log's last line is cut short. TVM does not notice a full disk.
        """
        left = [entry for entry in self.entries() if self.number(entry) is None]
        if left:
            write_whole(self.path, "".join(json.dumps(entry) + "\n" for entry in left))
        else:
            self.path.unlink(missing_ok=True)

    def recover(self) -> None:
        """Append to the log what it lacks; its last line must be whole. The entries stay."""
        missing = [entry for entry in self.entries() if self.number(entry) is None]
        if missing:
            with naming(self._log), self._log.open("a") as file:
                file.write("".join(json.dumps(self._line_of(each)) + "\n" for each in missing))

    def number(self, entry: Any) -> int | None:
        """The position in the log of an entry's line; None if the log lacks it. Raises OSError."""
        self._read_on()
        return self._numbers.get(_hashable(self._key(self._line_of(entry))))

    def _read_on(self) -> None:
        if not self._log.exists():
            return
        with self._log.open("rb") as file:
            file.seek(self._offset)
            added = file.read()
        if added and not added.endswith(b"\n"):
            raise OSError(errno.EIO, f"{self._log}: a line could not be written whole")
        for line in added.splitlines():
            self._numbers[_hashable(self._key(json.loads(line)))] = self._lines
            self._lines += 1
        self._offset += len(added)


def _hashable(value: Any) -> Hashable:
    """A JSON value as a key; 1 and true are equal, which logs and journals write differently."""
    if isinstance(value, list | tuple):
        return tuple(_hashable(each) for each in value)
    if isinstance(value, dict):
        return tuple((name, _hashable(each)) for name, each in sorted(value.items()))
    hashed: Hashable = value
    return hashed
