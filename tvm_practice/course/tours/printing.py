"""What the tours print with: paragraphs, and tables of numbers."""

from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def say(text: str) -> None:
    """Print a paragraph, wrapped to the terminal."""
    Console().print(Text(text))


def show(table: Table) -> None:
    """Print a table."""
    Console().print(table)


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
    import math

    if value is None:
        return "-"
    decimals = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{min(max(decimals, 0), 6)}f}"
