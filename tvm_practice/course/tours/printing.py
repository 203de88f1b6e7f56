"""What the tours print with: paragraphs, source text, and tables of numbers."""

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from tvm_practice.measure import Comparison


def say(text: str) -> None:
    """Print a paragraph, wrapped to the terminal."""
    Console().print(Text(text))


def show(drawing: RenderableType) -> None:
    """Print a table or a panel."""
    Console().print(drawing)


def show_comparison(table: Table, comparison: "Comparison") -> None:
    """Print the table of a comparison, what its ratios are, and why not where it has none."""
    show(table)
    if comparison.disturbance:
        say(comparison.verdict)
    if comparison.explanation:
        say(comparison.explanation)


def say_disturbance(verdicts: Iterable[str]) -> None:
    """Say why comparisons of a table, which have these verdicts, have no ratio: of the first."""
    for each in verdicts:
        if each not in ("measured", "unstable"):
            say(each)
            break


def show_code(title: str, lines: Sequence[str], language: str) -> None:
    """Print source text in a panel, in colour where the terminal has it."""
    code = Syntax("\n".join(lines), language, background_color="default", word_wrap=True)
    show(Panel(code, title=title, title_align="left"))


def cut(text: str, width: int) -> str:
    """At most `width` characters of a line."""
    return text if len(text) <= width else text[: width - 1] + "…"


def number_table(first: str, *numbers: str, title: str | None = None, **options: Any) -> Table:
    """A table: a column of names, and columns of numbers, which end at the same place.

    Args:
        first: heading of the names.
        numbers: headings of the numbers.
        title: above the table, from its left edge.
        options: further ones of rich.table.Table.
    """
    table = Table(first, title=title, title_justify="left", **{"box": box.SIMPLE, **options})
    for heading in numbers:
        table.add_column(heading, justify="right")
    return table


def cell(value: float | None, digits: int = 3) -> str:
    """A number with that many digits that count; a dash for None."""
    if value is None:
        return "-"
    decimals = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{min(max(decimals, 0), 6)}f}"
