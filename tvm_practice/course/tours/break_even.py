"""From which size on a parallel loop pays: a part of phase 3's run."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tvm_practice.course.tours.analysis import (
    Analysis,
    Run,
    calls_per_sample,
    median,
    ratio_cells,
)
from tvm_practice.course.tours.printing import cell, number_table, say, show

if TYPE_CHECKING:
    from tvm_practice.course.tours.products import Product

_TILE = 16  # several tasks even for the smallest matrices


def break_even(analysis: Analysis, sizes: Sequence[int], threads: int) -> dict[str, Any]:
    """Print tiled+parallel against tiled by size, and from where on the threads pay.

    Returns:
        {"rows": [{"size", "tasks", "serial_ms", "parallel_ms", "ratio"}]}, with all steps written
        also "pays_from" and "certain_from" (sizes or None) and "after_a_pause": {"size", "ms"};
        {} while compile_variants is to do.
    """
    rows: list[dict[str, Any]] = []
    runs: dict[int, Run] = {}
    for size in sizes:
        modules = analysis.variants(size, tile=_TILE)
        if not {"tiled", "tiled+parallel"} <= set(modules):
            analysis.step("parallel_pays_from", (), (), ())  # said if it is to do
            return {}
        row, runs[size] = _measured(analysis, size, modules["tiled"], modules["tiled+parallel"])
        rows.append(row)
    _print_rows(rows, threads)
    if any(None in row.values() for row in rows):
        return {"rows": rows}
    pays, certain = _paying_sizes(analysis, sizes, rows)
    _explain(rows, threads)
    at = certain if certain in runs else sizes[-1]
    asleep = _after_a_pause(analysis, runs[at])
    _explain_pause(at, rows[list(sizes).index(at)]["parallel_ms"], asleep, threads)
    return {
        "rows": rows,
        "pays_from": pays,
        "certain_from": certain,
        "after_a_pause": {"size": at, "ms": asleep},
    }


def _measured(
    analysis: Analysis, size: int, serial: Any, parallel: Any
) -> tuple[dict[str, Any], Run]:
    """The row of a size, and a call of the parallel product."""
    from tvm_practice.course.tours.products import random_product

    product = random_product(size)
    seconds = analysis.duration(partial(serial["main"], *product.arguments))
    number = calls_per_sample(seconds)
    row = {
        "size": size,
        "tasks": (size // _TILE) ** 2,
        "serial_ms": analysis.median(serial, product, seconds),
        "parallel_ms": analysis.median(parallel, product, seconds),
        "ratio": analysis.ratio(
            _in_c(parallel, product, number),
            _in_c(serial, product, number),
            *[(number + 1) * seconds] * 2,
        ),
    }
    return row, partial(parallel["main"], *product.arguments)


def _in_c(module: Any, product: "Product", number: int) -> Run:
    """Calls of "main" in a loop in C++: from Python, each would be a microsecond longer."""
    import tvm

    return partial(module.time_evaluator("main", tvm.cpu(), number=number), *product.arguments)


def _print_rows(rows: Sequence[Mapping[str, Any]], threads: int) -> None:
    say(
        f"\nThe tiled product on 1 thread and on {threads}; each tile of {_TILE} x {_TILE} is a "
        "task. The times are medians, measured one variant after the other. The ratio, parallel "
        "over serial, is measured in turns; below 1, the threads pay."
    )
    table = number_table("size", "tasks", "serial µs", "parallel µs", "ratio", "95% interval")
    table.columns[0].justify = "right"
    table.add_column("parallel")
    for row in rows:
        times = (None if row[of] is None else row[of] * 1e3 for of in ("serial_ms", "parallel_ms"))
        cells = (cell(each) for each in times)
        table.add_row(str(row["size"]), str(row["tasks"]), *cells, *ratio_cells(row["ratio"]))
    show(table)


def _paying_sizes(
    analysis: Analysis, sizes: Sequence[int], rows: Sequence[Mapping[str, Any]]
) -> tuple[int | None, int | None]:
    """Say from which size on parallel pays: by the medians, and by the intervals' upper ends."""
    serial_ms = [row["serial_ms"] for row in rows]
    medians = [row["parallel_ms"] for row in rows]
    ends = [row["serial_ms"] * row["ratio"][2] for row in rows]
    pays = analysis.step("parallel_pays_from", sizes, serial_ms, medians)
    certain = analysis.step("parallel_pays_from", sizes, serial_ms, ends)
    if analysis.steps.ran("parallel_pays_from"):
        say(
            f"By the medians parallel pays {_from(pays)}; by the upper ends of the intervals "
            f"{_from(certain)}."
        )
    return pays, certain


def _from(size: int | None) -> str:
    return "at no size up to the largest" if size is None else f"from {size} on"


def _explain(rows: Sequence[Mapping[str, Any]], threads: int) -> None:
    """Say why small products do not gain, from the figures."""
    row = next((row for row in rows if row["tasks"] >= threads), rows[-1])
    shared, seen = row["serial_ms"] * 1e3 / threads, row["parallel_ms"] * 1e3
    if threads == 1:
        print("There is only one thread here, so no work can be shared.")
    elif seen > shared:
        say(
            f"Why: at {row['size']}, the work divided by the threads would take {cell(shared)} µs, "
            f"but parallel takes {cell(seen)} µs. The difference of {cell(seen - shared, 2)} µs "
            "goes into handing out tasks and waiting for the last one. It hardly grows with the "
            "size, while the work grows with its cube. A product of one tile is a single task: "
            "there is nothing to share."
        )


def _after_a_pause(analysis: Analysis, run: Run) -> float:
    """Median milliseconds of a call that finds its threads asleep."""
    from tvm_practice.measure import quiesce

    taken: list[float] = []
    for _ in range(5):
        quiesce()
        taken += analysis.first_calls(run, 1)
    return median(taken)


def _explain_pause(size: int, awake: float, asleep: float, threads: int) -> None:
    if threads > 1 and asleep > 1.1 * awake:
        say(
            "In these measurements the threads were awake. After a pause they sleep, and a call at "
            f"{size} takes {cell(asleep * 1e3)} µs instead of {cell(awake * 1e3)}: if calls are "
            "rare, parallel pays from a larger size on."
        )
