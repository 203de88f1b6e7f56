"""The gate: cheats are refused, each with its message; right answers are not."""

import re
from pathlib import Path

import pytest

from tests.conftest import Processes
from tests.mutants.capstones import FOLDER, REFUSED
from tests.mutants.capstones.kernels import KERNELS, SIZE, kernel_file
from tests.mutants.capstones.weak import WEAK, weak_file
from tvm_practice import engines
from tvm_practice.course.capstone import TRACKS
from tvm_practice.course.capstone.answers import source_problem
from tvm_practice.course.capstone.running import Result, run_track
from tvm_practice.course.catalog import MINE, SOLUTIONS
from tvm_practice.course.grading import source_file

REFERENCE = source_file("capstone", SOLUTIONS)


def gate(track: str, file: Path, *sizes: list[int]) -> Result:
    return run_track(track, file, seed=1, roofs=None, sizes=list(sizes) or None)


@pytest.mark.parametrize("name", ["reads_torch", "calls_reference"])
def test_an_answer_stands_on_tvm(name: str) -> None:
    problem = source_problem((FOLDER / f"{name}.py").read_text())
    assert problem and re.search(REFUSED[name][2], problem)


@pytest.mark.parametrize("text", ["from . import x", "eval('1')", "import tvm_practice.course"])
def test_nothing_else_is_read(text: str) -> None:
    assert "line 1 uses" in str(source_problem(text))


def test_what_is_allowed_is_no_problem() -> None:
    assert source_problem("import tvm.te\nfrom tvm_practice.engines import host") is None
    assert source_problem(REFERENCE.read_text()) is None
    assert "SyntaxError" in str(source_problem("def"))


@pytest.mark.pages
@pytest.mark.parametrize("name", REFUSED)
def test_a_cheat_is_refused(name: str) -> None:
    track, size, message = REFUSED[name]
    result = gate(track, FOLDER / f"{name}.py", list(size))
    assert result.status == "refused"
    assert re.search(message, result.message), result.message


@pytest.mark.parametrize("name", KERNELS)
def test_a_loop_nest_that_cheats_is_refused(
    name: str, tmp_path: Path, process_of: Processes
) -> None:
    """Beyond 100 rows, that is: the size of a score, and right at those of the gate."""
    file = tmp_path / "capstone.py"
    file.write_text(kernel_file(name))
    asked = {"path": str(file), "size": list(SIZE), "small": [7, 3, 5]}
    large, small = process_of(engines.CURRENT).call("tests.course.capstone.functions:gated", asked)
    assert re.search(KERNELS[name], large), large
    assert small == "right at 1 sizes"


def test_a_kept_result_is_refused() -> None:
    track, size, message = REFUSED["keeps_result"]
    result = gate(track, FOLDER / "keeps_result.py", list(size))
    assert result.status == "refused" and re.search(message, result.message)


@pytest.mark.pages
@pytest.mark.parametrize("track", TRACKS)
def test_the_reference_is_right(track: str) -> None:
    result = gate(track, REFERENCE)
    assert result.status == "right", result.message


@pytest.mark.pages
@pytest.mark.drawn
@pytest.mark.parametrize("kind", WEAK)
@pytest.mark.parametrize("track", TRACKS)
def test_a_weak_answer_is_right(track: str, kind: str, tmp_path: Path) -> None:
    file = tmp_path / "capstone.py"
    file.write_text(weak_file(kind))
    result = gate(track, file, *([[5, 7, 3]] if track == "product" else []))
    assert result.status == "right", result.message


def test_a_stub_is_to_do() -> None:
    result = gate("product", source_file("capstone", MINE), [1, 1, 1])
    assert result.status == "todo" and "declare_product" in result.message
