"""The puzzles' pictures: on the page, in the terminal, and compared."""

import pytest

from tests.conftest import Processes
from tests.course.conftest import ROOT, Tree
from tvm_practice.course.catalog import phase
from tvm_practice.course.puzzle_loops import PUZZLES, first_difference, side_by_side
from tvm_practice.engines import CURRENT

LOOPS = "tvm_practice.course.puzzle_loops"
NEST = """for i in serial(4):
    for j in parallel(3):
        Y_update: Y <- X"""


def test_each_puzzle_is_an_exercise() -> None:
    assert [each.name for each in phase("puzzles").exercises] == list(PUZZLES)


def test_the_page_has_the_pictures_that_the_command_prints(process_of: Processes) -> None:
    written = (ROOT / "docs" / "practice" / "puzzles.md").read_text()
    drawn = process_of(CURRENT).call(f"{LOOPS}:to_markdown")
    assert drawn.strip() in written, "write it anew: tvm-practice puzzle --page"
    assert max(map(len, drawn.splitlines())) <= 80


def test_a_puzzle_is_shown_before_and_after(cheap: Tree) -> None:
    shown = cheap.run("puzzle", "split_loop").stdout
    assert "for i in serial(8):" in shown and "for i_0 in serial(2):" in shown
    assert "tvm_practice/puzzles.py, line" in shown
    cheap.solve("split_loop")
    cheap.run("check", "split_loop")
    assert "puzzles.columns_first" in cheap.run("puzzle").stdout
    assert "one of the puzzles: split_loop" in cheap.run("puzzle", "tile", code=2).stderr


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (("for i ", "for rows "), None),
        (("Y_update", "Y"), None),
        (("serial(4)", "serial(5)"), "line 1: `for i in serial(5):`, but should be `for i in"),
        (("parallel", "serial"), "line 2: `for j in serial(3):`, but"),
        (("<- X", "<- B"), "line 3: "),
        (("        Y", "    Y"), "line 3: "),
        (("\n        Y_update: Y <- X", ""), "line 3 is missing: `Y_update"),
        (("<- X", "<- X\n    Z: Z <- X"), "line 4 is one too many: `Z"),
    ],
)
def test_the_first_line_that_differs_is_told(change: tuple[str, str], told: str | None) -> None:
    difference = first_difference(NEST.replace(*change), NEST)
    if told is None:
        assert difference is None
    else:
        assert difference is not None and difference.startswith(told)


def test_what_is_too_wide_is_below() -> None:
    assert side_by_side("a\nb", "c") == "before   after\na        c\nb"
    assert side_by_side("a" * 50, "b" * 50).splitlines()[2:4] == ["", "after"]
