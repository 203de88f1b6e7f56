"""The order, the output and the end of what `.ci/run` starts, with stand-ins for all of it."""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.pages import ROOT

_STAND_IN = """#!/usr/bin/env bash
name=$(basename "$0")_${{1#-}}
echo "begin $name" >> "$NOTES"
trap 'echo "interrupted $name" >> "$NOTES"; exit 130' INT
echo "$name says"
case $1 in follow | -q) sleep "${{SECONDS_OF_LAST:-{seconds}}}" ;; esac
if [[ $name == "$FAILING" && $2 != *--last-failed* ]]; then
    if (( FAILED )); then
        cache=.pytest_cache/$1/v/cache
        mkdir -p "$cache" && python3 -c "import json; print(json.dumps(
            {{f'test_{{each}}': True for each in range($FAILED)}}))" > "$cache/lastfailed"
    fi
    exit 3
fi
echo "end $name" >> "$NOTES"
"""


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `.ci/run`, in which every stand-in notes its beginning and end."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci")
    for name in ("bin/make", "bin/apt-get", "tests/container/run"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_STAND_IN.format(seconds=0.1 if name.endswith("run") else 0.3))
        file.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("FAILING", "")
    monkeypatch.setenv("FAILED", "0")
    return tmp_path


def _begun(clone: Path) -> list[str]:
    found = [line.split() for line in (clone / "notes").read_text().splitlines()]
    return [name for what, name in found if what == "begin" and "apt-get" not in name]


@pytest.mark.parametrize(
    ("failing", "begun"),
    [
        ("", 5),
        ("make_lint", 1),
        ("make_docs", 2),
        ("make_test", 3),
        ("make_follow", 5),
        ("run_q", 5),
    ],
)
def test_a_failure_is_the_exit_code(
    clone: Path, failing: str, begun: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container's output comes after the rest, also where either of the last two fails."""
    monkeypatch.setenv("FAILING", failing)
    done = subprocess.run([clone / ".ci" / "run"], capture_output=True, text=True)
    assert done.returncode == (3 if failing else 0), done.stderr
    order = ["make_lint", "make_docs", "make_test", "make_follow", "run_q"]
    assert _begun(clone)[:3] == order[: min(begun, 3)] and len(_begun(clone)) == begun
    said = [line for line in done.stdout.splitlines() if line.endswith(" says")]
    said = [line for line in said if "apt-get" not in line]
    assert said == [f"{name} says" for name in order[:begun]]
    assert not list(clone.glob("tmp.*"))


@pytest.mark.parametrize("failing", ["make_test", "make_follow"])
@pytest.mark.parametrize(("failed", "status"), [(1, 0), (3, 0), (4, 3)])
def test_a_few_that_failed_are_tried_alone(
    clone: Path, failing: str, failed: int, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAILING", failing)
    monkeypatch.setenv("FAILED", str(failed))
    done = subprocess.run([clone / ".ci" / "run"], capture_output=True, text=True)
    assert done.returncode == status, done.stderr
    assert _begun(clone).count(failing) == (1 if status else 2)
    name = failing.removeprefix("make_")
    told = f"make {name} failed, tried again alone:\n" + "".join(
        f"test_{each}\n" for each in range(failed)
    )
    assert (told in done.stdout) == (not status)


def test_both_end_when_it_is_ended(clone: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECONDS_OF_LAST", "30")
    running = subprocess.Popen([clone / ".ci" / "run"], stdout=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (clone / "notes").exists() and len(_begun(clone)) == 5:
            break
        time.sleep(0.05)
    running.send_signal(signal.SIGTERM)
    running.communicate(timeout=20)
    assert running.returncode == 128 + signal.SIGTERM
    notes = (clone / "notes").read_text()
    assert "interrupted make_follow" in notes and "interrupted run_q" in notes
    assert not list(clone.glob("tmp.*"))
