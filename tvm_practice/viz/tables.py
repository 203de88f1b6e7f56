"""Latencies and ratios in words, the same in every command's table."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tvm_practice.measure import ACCEPT_LOAD, NO_RATIO
from tvm_practice.measure.comparison import OF_ROUNDS, is_apart
from tvm_practice.measure.latency import UNSTABLE
from tvm_practice.tvm_export.artifacts.schema import LatencyRecord, RatioRecord
from tvm_practice.tvm_export.variants import BuildRecord

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_MARK = " ~"
# The row beneath a tuner's: its own result, where the artifact has default schedules in its place.
OWN = "  its records alone"


def three_digits(value: float) -> str:
    """A latency or a ratio with about three digits."""
    return f"{value:.{3 if value < 1 else 2 if value < 100 else 0}f}"


def median(latency: LatencyRecord) -> str:
    """Median milliseconds, with a mark where the samples spread too widely to be trusted."""
    measured = latency.stable if latency.verdict is None else latency.verdict == "measured"
    return three_digits(latency.p50) + ("" if measured else _MARK)


def largest_error(error: float | None) -> str:
    """A largest absolute error; a dash where none is known."""
    return "-" if error is None else f"{error:.0e}" if error else "0"


def with_interval(value: float | None, interval: Sequence[float] | None) -> str:
    """`0.52 (0.50–0.55)`; a dash for no value."""
    if value is None:
        return "-"
    return f"{value:.2f}" + (f" ({interval[0]:.2f}–{interval[1]:.2f})" if interval else "")


def above_interval(ratio: RatioRecord) -> str:
    """A ratio, and its 95% interval in the line beneath it: the narrowest cell with both."""
    if ratio.value is None or ratio.ci95 is None:
        return NO_RATIO
    low, high = map(three_digits, ratio.ci95)
    return f"{three_digits(ratio.value)}\n{low}–{high}"


def in_one_line(cell: str) -> str:
    """A cell of `above_interval` in one line: `0.52 (0.50–0.55)`."""
    above, lines, beneath = cell.partition("\n")
    return f"{above} ({beneath})" if lines else above


def explanation(build: BuildRecord) -> str | None:
    """Why a build is not ok, or how its tuning went; None for nothing to say."""
    return build.reason or (build.tuning.note if build.tuning else None)


def about_ratios(rows: Iterable[tuple[LatencyRecord, LatencyRecord, RatioRecord]]) -> list[str]:
    """How ratios are made, in a sentence, if one is not the quotient of its two medians."""
    apart = any(
        ratio.value is not None and is_apart(ratio.value, above.p50, below.p50)
        for above, below, ratio in rows
    )
    return [OF_ROUNDS] if apart else []


def results_table(
    title: str, headings: Sequence[str], sections: Sequence[Sequence[Sequence[str]]]
) -> "Table":
    """A table that fits a narrow terminal, and beneath it the meaning of the mark, if it is there.

    Where the terminal is too narrow, names are cut off, not figures.

    Args:
        title: above the table.
        headings: of the columns. The first has names, at the left; the others figures, at the
            right.
        sections: rows that belong together; a row may have fewer cells than there are headings.
    """
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE, pad_edge=False, padding=(0, 1, 0, 0), title=title)
    table.add_column(headings[0], overflow="ellipsis")
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    for rows in sections:
        for row in rows:
            table.add_row(*row)
        table.add_section()
    cells = [cell for rows in sections for row in rows for cell in row]
    captions = []
    if any(cell.endswith(_MARK) for cell in cells):
        captions.append(f"{_MARK.strip()}  unstable: {UNSTABLE}, or other programs ran")
    if NO_RATIO in cells:
        captions.append(f"{NO_RATIO}: other programs ran, {ACCEPT_LOAD}=1 shows it anyway")
    if captions:
        table.caption = "\n".join([*captions, "measure again when the machine is idle"])
    return table


def print_plain(console: "Console", text: str) -> None:
    """Print a sentence as it is: without markup, colours and line breaks of rich's."""
    console.print(text, markup=False, highlight=False, soft_wrap=True)
