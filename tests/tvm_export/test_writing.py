"""Files that are written whole: what a killed writer left goes with the next."""

import fcntl
import os
from pathlib import Path

import pytest

from tvm_practice.tvm_export.writing import write_whole


def test_what_a_killed_writer_left_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(os, "fsync", lambda _: os._exit(0))
        write_whole(tmp_path / "a.json", "1")
    os.waitpid(pid, 0)
    (left,) = tmp_path.iterdir()
    assert left.name != "a.json"
    others = [tmp_path / ".a.json.backup", tmp_path / ".b.json.x.new"]
    for other in others:
        other.touch()
    write_whole(tmp_path / "a.json", "2")
    assert sorted(tmp_path.iterdir()) == sorted([*others, tmp_path / "a.json"])
    assert (tmp_path / "a.json").read_text() == "2"


def test_what_another_writes_stays(tmp_path: Path) -> None:
    written = tmp_path / ".a.json.x.new"
    with written.open("w") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        write_whole(tmp_path / "a.json", "1")
        assert written.exists()


def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError("full")

    file = tmp_path / "a.json"
    file.write_text("1")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="full"):
        write_whole(file, "2")
    assert list(tmp_path.iterdir()) == [file] and file.read_text() == "1"
