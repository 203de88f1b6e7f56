"""The fault harness: what it reads from strace, what it tells, and a sample of its faults."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.page import text
from tests.faults.scenarios import ROOT, SCENARIOS, Case
from tests.faults.tracing import Fault, Point, appended, is_injected, paths_of, points

FOLDER = Path("/place")
TRACE = """\
7  openat(AT_FDCWD</place>, "/proc/stat", O_RDONLY|O_CLOEXEC) = 3</proc/stat>
7  openat(AT_FDCWD</place>, "made/a", O_WRONLY|O_CREAT, 0666) = 3</place/made/a>
7  write(3</place/made/a>, ""..., 9)        = 9
8  write(3</place/made/a>, ""..., 9)        = 9
7  write(1<pipe:[12]>, ""..., 4)            = 4
7  write(3</place/made/a>, ""..., 9 <unfinished ...>
8  unlink("/place/made/b")                  = 0
7  <... write resumed>)                     = 9
7  rename("made/a", "/place/made/b")        = 0
7  unlinkat(5</place/made>, "b", 0)         = 0
7  write(4</place/log/journal.jsonl>, ""..., 9) = 9
7  fsync(4</elsewhere>)                     = 0
""".splitlines()


def test_the_calls_that_change_files_are_found() -> None:
    journal = FOLDER / "log" / "journal.jsonl"
    found = points(TRACE, FOLDER, [journal])
    assert [(each.name, each.number, each.path) for each in found] == [
        ("openat", 1, "/place/made/a"),
        ("write", 1, "/place/made/a"),
        ("write", 2, "/place/made/a"),
        ("rename", 1, "/place/made/a"),
        ("unlinkat", 1, "/place/made"),
        ("write", 1, "/place/log/journal.jsonl"),
    ]
    assert found[0].watched == tuple(sorted(["/place/made/a", "made/a", str(journal)]))
    assert appended(TRACE, "journal.jsonl") == 1 and appended(TRACE, "b") == 0


def test_paths_are_those_of_the_call() -> None:
    assert paths_of("rename", '"made/a", "/place/made/b") = 0') == ["made/a", "/place/made/b"]
    assert paths_of("unlinkat", '5</place/made>, "b", 0) = 0') == ["/place/made"]
    assert paths_of("write", '1<pipe:[12]>, ""..., 4) = 4') == []


def _fault(how: str, number: int = 2) -> Fault:
    return Fault(Point("write", number, "/place/made/a", ("/place/made/a", "made/a")), how)


def test_a_fault_is_told_to_strace_and_seen_in_what_it_says() -> None:
    watched = ["-P", "/place/made/a", "-P", "made/a"]
    assert _fault("EIO").options == ["-e", "inject=write:error=EIO:when=2", *watched]
    assert _fault("SIGKILL").options[1] == "inject=write:signal=SIGKILL:when=2"
    failed = ['7  write(3</place/made/a>, ""..., 9) = -1 EIO (Input/output error) (INJECTED)']
    assert is_injected(failed, _fault("EIO")) and not is_injected(TRACE, _fault("EIO"))
    assert is_injected(TRACE, _fault("SIGKILL"))
    assert not is_injected(TRACE, _fault("SIGKILL", number=9))


def test_the_page_counts_what_happened() -> None:
    scenario = SCENARIOS["export"]
    cases = [
        Case(scenario, _fault("EIO"), injected=True),
        Case(scenario, _fault("EIO"), injected=True, violations=["a traceback"]),
        Case(scenario, _fault("EIO"), injected=False, violations=["it never happened"]),
    ]
    shown = text(cases, 90)
    assert "2 faults, 1 violations" in shown and "| export | `write` | EIO | 2 | 1 |" in shown
    assert "- EIO at `write` 2 of a: a traceback" in shown and "never happened" not in shown


@pytest.mark.slow
@pytest.mark.pages
@pytest.mark.real_processes
def test_a_sample_of_faults() -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    command = [sys.executable, "-m", "tests.faults", "export", "icd", "--faults", "16"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "\n0 violations" in done.stdout, done.stdout + done.stderr
