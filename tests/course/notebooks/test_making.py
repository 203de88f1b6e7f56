"""`tvm-practice notebooks`: what is in them, and what is done to those that are there."""

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tvm_practice.course.__main__ import main
from tvm_practice.course.catalog import PHASE_MODULES, phase
from tvm_practice.course.editing import function_source, is_stub
from tvm_practice.course.notebooks.making import notebook_name, write_notebook
from tvm_practice.course.telling import reference

pytest.importorskip("jupytext")


def cells_of(file: Path, kind: str = "code") -> list[str]:
    cells: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))["cells"]
    return ["".join(each["source"]) for each in cells if each["cell_type"] == kind]


def _make(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["notebooks", *arguments])
    assert result.exit_code == code, result.output
    return result.output


@pytest.mark.parametrize("module", PHASE_MODULES)
@pytest.mark.parametrize("solutions", [False, True], ids=["stubs", "solutions"])
def test_each_exercise_is_a_cell_with_its_check(
    module: str, solutions: bool, tmp_path: Path
) -> None:
    of = phase(module)
    file = tmp_path / notebook_name(of)
    write_notebook(of, file, solutions=solutions, requirement="tvm-practice")
    cells = cells_of(file)
    for exercise in of.exercises:
        at = cells.index(f'check("{exercise.name}", {exercise.name})')
        assert is_stub(cells[at - 1], exercise.name) is not solutions
        if solutions:
            assert function_source(cells[at - 1], exercise.name) == reference(exercise)
    words = "\n".join(cells_of(file, "markdown"))
    assert "pytest" not in words and f"python -m tvm_practice.{module}" not in words
    assert ("**Answer.**" in words) is solutions and of.question in words.replace("\n", " ")
    before = file.read_bytes()
    write_notebook(of, file, solutions=solutions, requirement="tvm-practice")
    assert file.read_bytes() == before


def test_a_notebook_that_is_there_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert _make("1", "te_basics").count("tensor expressions") == 1
    file = tmp_path / "notebooks" / "1-te_basics.ipynb"
    made = file.read_bytes()
    file.write_text("mine")
    assert "stays as it is" in _make("1") and file.read_text() == "mine"
    _make("1", "--force")
    assert file.read_bytes() == made


@pytest.mark.parametrize(
    ("phase_name", "says"), [("lab1", "has no notebook"), ("te_basic", "did you mean te_basics")]
)
def test_mistakes_are_one_line(
    phase_name: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert says in _make(phase_name, code=2)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    assert "pip install 'tvm-practice[notebooks]'" in _make("1", code=2)
    assert not list(tmp_path.iterdir())


def test_the_first_cell_installs_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in Colab, where nothing of the course is installed."""
    file = tmp_path / "made.ipynb"
    write_notebook(phase("te_basics"), file, solutions=False, requirement="course @ git+https://x")
    installs = cells_of(file)[0].partition("\nfrom tvm_practice")[0]
    ran: list[list[str]] = []
    monkeypatch.setattr(subprocess, "run", lambda command, check: ran.append(command))
    exec(installs, {})
    assert not ran
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    exec(installs, {})
    assert [each[1:] for each in ran] == [
        ["-m", "pip", "install", "--quiet", "course @ git+https://x"]
    ]
