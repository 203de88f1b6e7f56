"""A journal gives up a trial when the log holds it, and not before."""

import json
from pathlib import Path

import pytest

from tvm_practice.tvm_export.tuners.journal import Journal
from tvm_practice.tvm_export.tuners.metaschedule.database import TIMES, recover
from tvm_practice.tvm_export.tuners.records import RECORDS


def _write(log: Path, *lines: object) -> None:
    with log.open("a") as file:
        file.write("".join(json.dumps(line) + "\n" for line in lines))


def test_settling_keeps_what_the_log_lacks(tmp_path: Path) -> None:
    log = tmp_path / "log"
    journal = Journal(tmp_path / "journal", log)
    for entry in ("a", "b", "c"):
        journal.append(entry)
    journal.settle()
    assert journal.entries() == ["a", "b", "c"]
    _write(log, "a", "c")
    journal.settle()
    assert journal.entries() == ["b"]
    _write(log, "b")
    journal.settle()
    assert not journal.path.exists()


def test_recovering_appends_what_the_log_lacks(tmp_path: Path) -> None:
    log = tmp_path / "log"
    _write(log, "a")
    journal = Journal(tmp_path / "journal", log)
    for entry in ("a", "b"):
        journal.append(entry)
    journal.recover()
    journal.recover()
    assert log.read_text() == '"a"\n"b"\n'
    assert journal.entries() == ["a", "b"]


def test_a_log_that_was_not_written_whole_is_noticed(tmp_path: Path) -> None:
    """TVM goes on when the disk is full."""
    log = tmp_path / "log"
    journal = Journal(tmp_path / "journal", log)
    journal.append("a")
    log.write_text('"a')
    with pytest.raises(OSError, match="log: a line could not be written whole"):
        journal.settle()
    assert journal.entries() == ["a"]


def test_a_record_in_both_places_gets_its_time_once(tmp_path: Path) -> None:
    """A process was killed when the database had the trial, and before its time was written."""
    record = [0, [[["trace", 1]], [1e-3], {}, []]]
    _write(tmp_path / RECORDS, record)
    trial = {"timestamp": 5.0, "task": "matmul", "error": None}
    journal = Journal(tmp_path / "journal.jsonl", tmp_path / "unused")
    for _ in range(2):
        # Times are not written to the last digit, and true as 1.
        written = [0, [[["trace", True]], [1.0000000001e-3], {}, []]]
        journal.append({"record": written, "trial": trial})
        recover(tmp_path)
        assert not journal.path.exists()
        assert len((tmp_path / RECORDS).read_text().splitlines()) == 1
        times = (tmp_path / TIMES).read_text().splitlines()
        assert [json.loads(line) for line in times] == [{"record": 0, **trial}]
