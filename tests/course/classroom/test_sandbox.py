"""What runs in a sandbox touches nothing outside of it, and ends."""

import os
import re
import socket
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tvm_practice.course.classroom import sandbox
from tvm_practice.course.classroom.sandbox import Limits, NoSandbox

_PROGRAM = "tests.course.classroom.misbehaving"
_LIMITS = Limits(seconds=30, memory=2**29, processes=40, file_bytes=2**24)


@pytest.fixture(autouse=True)
def walls() -> None:
    try:
        sandbox.check_walls()
    except NoSandbox as missing:
        pytest.skip(str(missing))


def _run(
    folder: Path, do: str, limits: Limits = _LIMITS, hidden: tuple[Path, ...] = (), **given: Any
) -> tuple[str, Any]:
    """Why it was ended, and what the program says came of it."""
    heard: list[dict[str, Any]] = []
    job = {"do": do, "with": given}
    stopped = threading.Event()
    reason = sandbox.run(
        _PROGRAM, job, folder, limits, heard.append, stopped=stopped, hidden=hidden
    )
    return reason, heard[0]["result"] if heard else None


def test_files_of_others_are_neither_seen_nor_changed(tmp_path: Path) -> None:
    mine, others, home = (tmp_path / name for name in ("mine", "others", "home"))
    for each in (mine, others, home):
        each.mkdir()
        (each / "file").write_text("kept")
    places = [str(others), str(home), "/tmp/submission"]
    assert _run(mine, "see", hidden=(others,), paths=places) == ("", [[], [], ["file"]])
    course = sandbox.__file__
    files = [f"{each}/file" for each in places] + [course, "/etc/hostname"]
    before = Path(course).read_bytes(), Path("/etc/hostname").read_bytes()
    _run(mine, "overwrite", hidden=(others,), paths=files)
    _run(mine, "delete", hidden=(others,), paths=[*places, str(Path(course).parent)])
    assert [(each / "file").read_text() for each in (mine, others, home)] == ["kept"] * 3
    assert (Path(course).read_bytes(), Path("/etc/hostname").read_bytes()) == before


def test_there_is_no_network(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        assert _run(tmp_path, "connect", port=port) == ("", False)


def test_it_sees_its_own_processes_and_none_of_the_teachers_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "of the teacher")
    assert "SECRET_TOKEN" not in _run(tmp_path, "environment")[1]
    assert len(_run(tmp_path, "processes")[1]) <= 4


def test_no_process_is_left(tmp_path: Path) -> None:
    word = f"left-by-{tmp_path.name}-{os.getpid()}"
    assert _run(tmp_path, "leave_behind", word=word) == ("", None)
    time.sleep(0.2)
    assert not [each for each in psutil.process_iter(["cmdline"]) if word in _command(each)]


def _command(process: psutil.Process) -> list[str]:
    return process.info["cmdline"] or []


@pytest.mark.parametrize(
    ("do", "given", "says"),
    [
        ("start_many", {}, "more than 40 processes"),
        ("fork_for_ever", {}, "more than 40 processes"),
        ("allocate", {"gigabytes": 3}, "MemoryError|more than 0.5 GiB"),
        ("write_much", {"megabytes": 64}, "No space left|File too large"),
        ("fail", {}, "exit code 1: ValueError: it went wrong"),
    ],
)
def test_what_takes_too_much_is_ended(
    do: str, given: dict[str, Any], says: str, tmp_path: Path
) -> None:
    reason, result = _run(tmp_path, do, **given)
    assert re.search(says, reason) and result is None


def test_what_takes_too_long_is_ended(tmp_path: Path) -> None:
    limits = Limits(1.5, _LIMITS.memory, _LIMITS.processes, _LIMITS.file_bytes)
    started = time.monotonic()
    assert _run(tmp_path, "sleep", limits, seconds=60) == ("more than 2 seconds", None)
    assert time.monotonic() - started < 30


def test_what_it_prints_is_not_taken_for_a_verdict(tmp_path: Path) -> None:
    assert _run(tmp_path, "pretend") == ("", None)
    assert _run(tmp_path, "print_much", megabytes=64) == ("", None)


def test_it_is_ended_when_the_teacher_stops(tmp_path: Path) -> None:
    stopped = threading.Event()
    threading.Timer(1, stopped.set).start()
    job = {"do": "sleep", "with": {"seconds": 60}}
    reason = sandbox.run(_PROGRAM, job, tmp_path, _LIMITS, print, stopped=stopped)
    assert reason == "stopped"
