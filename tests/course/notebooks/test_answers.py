"""A chapter made of a notebook's cells."""

import itertools
import linecache
from typing import Any

import pytest

from tvm_practice.course.notebooks.answers import chapter_of, source_of

_CHAPTER = '''"""A chapter."""

from typing import Any


def shown(n: int) -> Any:
    return n


def first(n: int) -> Any:
    """The first."""
    raise NotImplementedError("to do")


def second(n: int) -> Any:
    """The second."""
    raise NotImplementedError("to do")


if __name__ == "__main__":
    print("as a program")
'''
_numbers = itertools.count()


class Notebook(dict[str, Any]):
    """The names of a notebook, whose cells are run as Jupyter runs them."""

    def __init__(self) -> None:
        super().__init__(__name__="__main__")

    def cell(self, text: str) -> None:
        file = f"<cell {next(_numbers)}>"
        linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
        exec(compile(text, file, "exec"), self)


@pytest.fixture
def notebook() -> Notebook:
    return Notebook()


def _runs(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "chapter"}
    exec(text, names)
    return names


def test_the_chapter_has_what_the_cells_define(notebook: Notebook) -> None:
    notebook.cell("import math as m\nfrom functools import partial\nTILES = [8, 16]\n")
    notebook.cell("def helped(n):\n    return m.sqrt(n) + len(TILES)\n")
    notebook.cell("# a remark\ndef first(n):\n    return partial(helped)(n) + second(n)\n")
    notebook.cell("def second(n, by=TILES):\n    return by[0]\n")
    text, cells = chapter_of(_CHAPTER, notebook)
    assert _runs(text)["first"](4) == 2 + 2 + 8
    lines = text.split("\n")
    # A line of the chapter is found again in its cell.
    (first,) = (each for each in cells if lines[each.start - 1] == "def first(n):")
    assert (first.in_cell, first.count) == (2, 2)


def test_what_is_not_defined_stays_the_chapters(notebook: Notebook) -> None:
    text, cells = chapter_of(_CHAPTER, notebook)
    assert _runs(text)["shown"](3) == 3 and "to do" in text and not cells


def test_the_last_definition_counts(notebook: Notebook) -> None:
    notebook.cell("def first(n):\n    return 1\n")
    notebook.cell("def first(n):\n    return 2\n")
    assert _runs(chapter_of(_CHAPTER, notebook)[0])["first"](0) == 2


def test_what_has_no_text_has_none(notebook: Notebook) -> None:
    notebook.cell("first = lambda n: n\nsecond = 3\n")
    assert source_of(notebook["first"]) == source_of(notebook["second"]) == source_of(len) == ""
    assert not chapter_of(_CHAPTER, notebook)[1]
