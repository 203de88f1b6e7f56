"""A page's Markdown as slides: a heading each, and as many as its text needs."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from markdown_it import MarkdownIt
from markdown_it.token import Token

# A slide's room, in lines of text, and what fits into a line. The style sheet's sizes give these.
_LINES = 14.0
_CHARACTERS = 88
_TABLE_CHARACTERS = 100
_CODE_LINE = 0.72  # of a line of text
_PICTURE = 11.0
_GAP = 0.6  # between two blocks
_FOLD = re.compile(r"<details[^>]*>\s*<summary>(?P<title>.*?)</summary>", re.DOTALL)


@dataclass
class Slide:
    """One slide.

    Attributes:
        title: its heading, Markdown.
        level: of the heading: 1 for a page's own.
        parts: Markdown, in order.
    """

    title: str
    level: int
    parts: list[str] = field(default_factory=list)


def parser() -> MarkdownIt:
    """The dialect of the pages."""
    return MarkdownIt("commonmark", {"html": True}).enable("table")


def split(text: str) -> list[Slide]:
    """The slides of a page, in its order."""
    lines = text.split("\n")
    slides: list[Slide] = []
    room = 0.0
    for token, source in _blocks(parser().parse(text), lines):
        if token.type == "heading_open":
            slides.append(Slide(source.lstrip("# ").strip(), int(token.tag[1])))
            room = _LINES
        elif token.type == "html_block":
            if fold := _FOLD.search(source):
                slides.append(Slide(f"{slides[-1].title}: {fold['title'].lower()}", 2))
                room = _LINES
        else:
            for part, height in _pieces(token, source):
                if height > room and slides[-1].parts:
                    slides.append(Slide(slides[-1].title, max(2, slides[-1].level)))
                    room = _LINES
                slides[-1].parts.append(part)
                room -= height + _GAP
    return [each for each in slides if each.parts or each.level == 1]


def _blocks(tokens: Sequence[Token], lines: Sequence[str]) -> Iterator[tuple[Token, str]]:
    """The blocks of the top level, each with its text."""
    for token in tokens:
        if token.level == 0 and token.map is not None and token.nesting >= 0:
            start, end = token.map
            yield token, "\n".join(lines[start:end]).strip("\n")


def _pieces(token: Token, source: str) -> Iterator[tuple[str, float]]:
    """A block, in parts that can be on different slides; and the height of each, in lines."""
    if token.type == "fence":
        yield from _of_code(source)
    elif token.type == "table_open":
        yield from _of_table(source)
    elif token.type in ("bullet_list_open", "ordered_list_open"):
        for item in re.split(r"\n(?=\S)", source):
            yield item, sum(_height(line, _CHARACTERS - 4) for line in _joined(item))
    elif source.startswith("!["):
        yield source, _PICTURE
    else:
        yield source, _height(" ".join(source.split("\n")), _CHARACTERS)


def _of_code(source: str) -> Iterator[tuple[str, float]]:
    """A block of code; a long one, cut where a line is not indented."""
    first, *body, last = source.split("\n")
    most = int(_LINES / _CODE_LINE) - 2
    while body:
        end = len(body)
        if end > most:
            outermost = [n for n in range(1, most + 1) if not body[n].startswith(" ")]
            end = outermost[-1] if outermost else most
        yield "\n".join([first, *body[:end], last]), (end + 1) * _CODE_LINE
        body = body[end:]


def _of_table(source: str) -> Iterator[tuple[str, float]]:
    """A table, in parts that a slide has room for, each with the heading."""
    heading, rule, *rows = source.split("\n")
    columns = _widths([heading, *rows])
    part, height = [heading, rule], _row_height(heading, columns)
    for row in rows:
        needed = _row_height(row, columns)
        if height + needed > _LINES and len(part) > 2:
            yield "\n".join(part), height
            part, height = [heading, rule], _row_height(heading, columns)
        part.append(row)
        height += needed
    yield "\n".join(part), height


def _cells(row: str) -> list[str]:
    return [_shown(each) for each in re.split(r"(?<!\\)\|", row.strip().strip("|"))]


def _widths(rows: Sequence[str]) -> list[float]:
    """The characters that each column gets, as a browser shares them out."""
    longest = [
        max(len(cell) for cell in column) for column in zip(*map(_cells, rows), strict=False)
    ]
    total = sum(longest)
    return [max(8.0, each * min(1.0, _TABLE_CHARACTERS / total)) for each in longest]


def _row_height(row: str, columns: Sequence[float]) -> float:
    lines = [
        math.ceil(len(cell) / width) for cell, width in zip(_cells(row), columns, strict=False)
    ]
    return 0.85 * max([1, *lines]) + 0.25


def _joined(item: str) -> list[str]:
    """A list's item and those in it, each as one line."""
    parts = re.split(r"\n\s*(?=- |\d+\. )", item)
    return [" ".join(part.split()) for part in parts]


def _height(text: str, width: int) -> float:
    return max(1, math.ceil(len(_shown(text)) / width))


def _shown(text: str) -> str:
    """Markdown without what is not seen: addresses, marks."""
    return re.sub(r"[`*]", "", re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)).strip()
