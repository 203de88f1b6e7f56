"""Whose records a log holds, and that one run at a time writes to it."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.errors import BadInput

RECORDS = "database_tuning_record.json"
# Of a log's line, the target it was measured on; KeyError and the like for another format.
_TARGET: dict[str, Callable[[Any], Any]] = {
    "autotvm": lambda line: line["input"][0],
    "ansor": lambda line: line["i"][0][1],
    "metaschedule": lambda line: line[1][2],
}
_NAMES = {"autotvm": "AutoTVM", "ansor": "Ansor", "metaschedule": "MetaSchedule"}


@contextmanager
def exclusively(log: Path) -> Iterator[None]:
    """Hold `log` in the block. Raises BadInput if another process does, or it cannot be written.

    The operating system lets go of it when the process ends, however it ends.
    """
    from filelock import FileLock, Timeout

    lock = FileLock(log.with_name(f"{log.name}.lock"))
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        lock.acquire(timeout=0)
    except Timeout:
        raise BadInput(f"another run is tuning with {log}; wait for it, or name another") from None
    except OSError as error:
        raise BadInput(f"tuning records cannot be written to {log}: {error.strerror}") from error
    try:
        yield
    finally:
        lock.release()


def _file(log: Path, tuner: str) -> Path:
    return log / RECORDS if tuner == "metaschedule" else log


def count(log: Path, tuner: str) -> int:
    """How many records `log` holds, whoever's they are; a line cut short is none."""
    file = _file(log, tuner)
    return file.read_bytes().count(b"\n") if file.exists() else 0


def require_own(log: Path, tuner: str, target: Any) -> int:
    """How many records `log` holds, all of `tuner` on `target`.

    A last line that was cut short is not counted; the tuner will drop it. Raises BadInput in one
    line for records of another tuner or target, and for a file that is no log at all.

    Args:
        log: a file, or for MetaSchedule a folder; it need not exist.
        tuner: "autotvm", "ansor" or "metaschedule".
        target: the active engine's Target.
    """
    file = _file(log, tuner)
    if log.exists() and log.is_dir() != (tuner == "metaschedule"):
        kind = "a folder" if log.is_dir() else "a file"
        wanted = "a folder" if tuner == "metaschedule" else "a file"
        raise BadInput(f"{log} is {kind}; {_NAMES[tuner]} keeps its records in {wanted}")
    if not file.exists():
        return 0
    found: set[str] = set()
    try:
        lines = file.read_text().splitlines(keepends=True)
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{file} cannot be read as tuning records: {error}") from error
    whole = [line for line in lines if line.endswith("\n")]
    for number, line in enumerate(whole, start=1):
        try:
            found.add(json.dumps(_TARGET[tuner](json.loads(line))))
        except (ValueError, KeyError, TypeError, IndexError):
            raise BadInput(
                f"{file}, line {number} is no record of {_NAMES[tuner]}; name another log"
            ) from None
    for text in found:
        if not _is_same(json.loads(text), target):
            raise BadInput(
                f"{file} holds records for {_shown(json.loads(text))}, this run is for {target}; "
                "name another log"
            )
    return len(whole)


def _is_same(recorded: Any, target: Any) -> bool:
    import tvm

    return str(tvm.target.Target(recorded)) == str(target)


def _shown(recorded: Any) -> str:
    return recorded if isinstance(recorded, str) else json.dumps(recorded)
