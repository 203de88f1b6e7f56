"""Pages of the course are read beside an editor: no paragraph is longer than five lines."""

import re
import textwrap
from pathlib import Path

import pytest

from tvm_practice.course.catalog import modules

ROOT = Path(__file__).parent.parent.parent
COLUMNS, LINES = 100, 5
_OTHER = re.compile(r"\s*(\||#|!\[|<|```)")  # tables, headings, pictures, comments


def long_paragraphs(text: str) -> list[str]:
    """The paragraphs and list items of a page that take more lines than a reader likes."""
    text = re.sub(r"(?ms)^ *```.*?^ *```$", "", text)
    parts = re.split(r"\n\s*\n|\n(?=\s*(?:- |\d+\. ))", text)
    return [
        part
        for part in parts
        if not _OTHER.match(part) and len(textwrap.wrap(" ".join(part.split()), COLUMNS)) > LINES
    ]


@pytest.mark.parametrize("page", [each.page for each in modules()])
def test_no_paragraph_is_long(page: str) -> None:
    assert long_paragraphs((ROOT / page).read_text()) == []


def test_lines_are_counted_after_wrapping() -> None:
    words = "word " * 120  # 599 characters: six lines
    assert long_paragraphs(f"# A page\n\n{words}\n\n| {words} |\n\n```text\n{words}\n```\n") == [
        words.rstrip() + " "
    ]
    assert long_paragraphs("\n".join(f"- {'word ' * 40}" for _ in range(5))) == []
