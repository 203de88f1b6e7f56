"""Tables of the studies, for a terminal."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from tvm_practice.viz.access_picture import Window


def cache_table(study: Mapping[str, Any], *, rates: bool = True, title: str | None = None) -> Table:
    """Accesses, and misses at each level, of each program of a `studies.cache_study`.

    Args:
        rates: per 1000 multiply-adds, not in all.
        title: above the table.
    """
    levels = [each.partition(":")[0] for each in study["levels"]]
    table = Table("schedule", "accesses", *levels, title=title)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, counts in study["counts"].items():
        row = [counts["accesses"], *(counts["misses"][level] for level in levels)]
        totals = (sum(each.values()) for each in row)
        table.add_row(
            name,
            *(f"{1000 * each / study['work']:.4g}" if rates else f"{each:,}" for each in totals),
        )
    return table


def access_table(windows: "Mapping[str, Window]") -> Table:
    """Lines, strides and reuse of each buffer in each window."""
    table = Table("schedule", "buffer", box=box.SIMPLE, pad_edge=False)
    table.add_column("lines", justify="right")
    table.add_column("strides")
    table.add_column("reuse within", justify="right")
    for name, part in windows.items():
        distances = part.trace.reuse_distances()
        for trace in part.buffers:
            strides = ", ".join(f"{step:+d} ({share:.0%})" for step, share in trace.strides()[:3])
            again = distances[trace.buffer.name]
            again = again[again >= 0]
            table.add_row(
                name,
                trace.buffer.name,
                str(len(set(trace.lines().tolist()))),
                strides,
                f"{number_of(again.max(), 'line')}" if again.size else "",
            )
        table.add_section()
    return table
