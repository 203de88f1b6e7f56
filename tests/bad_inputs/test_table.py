"""Each mistake on a command line is told in a line that names it, and nothing is written."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.bad_inputs import files

ROOT = Path(__file__).parents[2]
_LONGEST = 300


class Bad(NamedTuple):
    """A line of the table."""

    code: int
    named: str
    command: str


def _table() -> Iterator[Any]:
    for line in Path(__file__).with_name("table.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            code, named, command = line.split(" | ")
            marks = [pytest.mark.pages] if code.endswith("~") else []
            bad = Bad(int(code.rstrip("~")), named, command)
            yield pytest.param(bad, id=command, marks=marks)


def _run(command: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    words, _, output = command.partition(" > ")
    environment = dict(os.environ, COLUMNS="80", PYTHONPATH=str(ROOT))
    environment["TVM_PRACTICE_HOME"] = str(folder)
    arguments = shlex.split(words)
    while "=" in arguments[0]:
        name, _, environment[name] = arguments.pop(0).partition("=")
    module = arguments.pop(0)
    package = "" if module == "conformance" else "tvm_practice."
    with open(output or os.devnull, "w") as full:  # noqa: PTH123
        return subprocess.run(
            [sys.executable, "-m", package + module, *arguments],
            stdout=full if output else subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=folder,
            env=environment,
            timeout=120,
        )


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files, made once, to be copied."""
    folder = tmp_path_factory.mktemp("bad_inputs")
    files.write(folder)
    return folder


@pytest.mark.parametrize("bad", list(_table()))
def test_it_is_named_in_a_line(bad: Bad, made: Path, tmp_path: Path) -> None:
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    before = _files(tmp_path)
    done = _run(bad.command, tmp_path)
    shown = (done.stdout or "").strip().splitlines()
    said = done.stderr.strip() or "".join(shown[-1:])
    assert done.returncode == bad.code, said
    assert bad.named in said
    assert "Traceback" not in done.stderr + (done.stdout or "")
    message = said.partition("\nError: ")[2] or said  # after click's usage
    assert len(message) <= _LONGEST and len(message.splitlines()) == 1, said
    assert _files(tmp_path) == before


def _files(folder: Path) -> set[Path]:
    """What is in a folder, but for what Python keeps there and locks, which others may hold."""
    found = folder.rglob("*")
    return {each for each in found if "__pycache__" not in each.parts and each.suffix != ".lock"}
