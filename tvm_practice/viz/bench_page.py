"""A comparison of compilers: the terminal's table, and report.html."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.tvm_export.artifacts.schema import LatencyRecord, RatioRecord
from tvm_practice.tvm_export.compilers import ENGINES, LABELS, Comparison, Report, Row
from tvm_practice.viz import report as pages
from tvm_practice.viz.report import Block, Section
from tvm_practice.viz.tables import (
    OWN,
    about_ratios,
    above_interval,
    explanation,
    largest_error,
    median,
    results_table,
)
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from rich.table import Table

_HEADINGS = ("built by", "ms", "eager ms", "/ eager", "error", "trials", "s")
_MOST_OPERATORS = 12  # of a profile that the page shows


def table(report: Report) -> "Table":
    """The rows of a report, each beside eager as it was timed in turns with that row."""
    title = f"{report.model}, {_parameters(report)}, {number_of(report.threads, 'thread')}"
    return results_table(title, _HEADINGS, [_cells(report)])


def reasons(report: Report) -> list[str]:
    """What the ratios are, where that is unclear, and a sentence on each row that needs one.

    It is missing, failed, or has something to say of its tuning.
    """
    said = [f"{row.label}: {said}" for row in report.rows if (said := explanation(row))]
    return [*about_ratios(_timed(report)), *said]


def _timed(report: Report) -> Iterator[tuple[LatencyRecord, LatencyRecord, RatioRecord]]:
    """The latency of each row, that of eager in turns with it, and their ratio."""
    for row in report.rows:
        if row.latency and row.eager and row.ratio:
            yield row.latency, row.eager, row.ratio
        if row.eager and (own := row.tuners_own):
            yield own.latency, row.eager, own.ratio_to_pytorch


def write_page(compared: Comparison, out: Path) -> Path:
    """Write `out`/report.html; returns the file.

    Args:
        compared: the rows and pictures.
        out: the folder that was given to `compare_compilers`, whose records are drawn.
    """
    report = compared.report
    sections = [
        _summary(report),
        _tuning(report, out),
        _operators(report),
        _loops(compared.kernels),
        pages.graph_section(compared.graphs),
        pages.environment_section(report.environment),
        pages.commands_section([report.command]),
    ]
    facts = [
        _parameters(report),
        f"{number_of(report.threads, 'thread')}",
        str(report.environment["date"]),
        str(report.environment["processor"]),
    ]
    page = pages.Page(report.model, facts, [each for each in sections if each is not None])
    return pages.write(page, out / "report.html")


def _parameters(report: Report) -> str:
    return f"{report.parameters / 1e6:.3g} M parameters"


def _cells(report: Report) -> list[list[str]]:
    cells = []
    for row in report.rows:
        cells.append([row.label, *_figures(row)])
        if (own := row.tuners_own) and row.eager:
            ratio = above_interval(own.ratio_to_pytorch)
            cells.append([OWN, median(own.latency), median(row.eager), ratio])
    return cells


def _figures(row: Row) -> list[str]:
    if row.latency is None:
        return [row.status]
    if row.ratio is None or row.eager is None:  # eager itself
        return [median(row.latency)]
    return [
        median(row.latency),
        median(row.eager),
        above_interval(row.ratio),
        largest_error(row.max_error) if row.verified else "WRONG",
        "" if row.trials is None else str(row.trials),
        f"{sum((row.seconds or {}).values()):.0f}",
    ]


def _summary(report: Report) -> Section:
    blocks = [pages.table_block(_HEADINGS, _cells(report))]
    ratios = {}
    for row in report.rows:
        if not row.verified:  # what does not compute the same is no faster or slower
            continue
        if row.ratio:
            ratios[row.label] = row.ratio
        if row.tuners_own:
            ratios[f"{row.label},{OWN[1:]}"] = row.tuners_own.ratio_to_pytorch
    if ratios:
        blocks.append(pages.latency_block(ratios, baseline="PyTorch eager"))
    blocks += [Block("text", text=note) for note in (*report.notes, *reasons(report))]
    return Section("summary", "Summary", blocks)


def _tuning(report: Report, out: Path) -> Section | None:
    """The trials of each tuner that measured; None if none did."""
    from tvm_practice.viz.tuning import tasks_svg

    histories: dict[str, Any] = {}
    trials = {row.name: row.trials for row in report.rows}
    for engine, lane in ENGINES.items():
        for name, tuner in lane.items():
            if tuner and trials.get(name):
                module = importlib.import_module(f"tvm_practice.tvm_export.tuners.{tuner}")
                histories[LABELS[name]] = module.history(out / engine / f"{tuner}-records")
    if not histories:
        return None
    picture = Block(
        "picture",
        svg=tasks_svg(histories, title="Trials of each task"),
        caption="Each trial's time over the best of its task, in the order they were measured; "
        "a colour is a task. 1 is a task's best.",
    )
    return Section("tuning", "Tuning", [picture])


def _operators(report: Report) -> Section | None:
    profiles = [_profile(row) for row in report.rows if row.operators]
    return Section("operators", "Where the time goes", profiles) if profiles else None


def _profile(row: Row) -> Block:
    """The operators with most time, as a table of the page."""
    operators = row.operators or []
    rows = [
        [
            each.name.removesuffix("_prepacked"),
            str(each.calls),
            f"{each.milliseconds:.3g}",
            f"{each.share:.1%}",
            each.schedule,
        ]
        for each in operators[:_MOST_OPERATORS]
    ]
    if rest := sum(each.share for each in operators[_MOST_OPERATORS:]):
        rows.append(["the others", "", "", f"{rest:.1%}"])
    headings = ["function", "calls", "ms", "share", "schedule"]
    return pages.table_block(headings, rows, title=row.label)


def _loops(kernels: list[dict[str, Any]]) -> Section | None:
    """The loops of the kernels with most work, see `studies.kernel_pictures`."""
    if not kernels:
        return None
    text = (
        "The kernels with most work as Relax built them untuned: TVM's loops after the "
        "adapter's default rules. Point at a loop for how often its body runs."
    )
    shown = {each["name"]: [{"primitive": "", "svg": each["svg"]}] for each in kernels}
    return Section("loops", "Loops", [Block("text", text=text), Block("nests", schedules=shown)])
