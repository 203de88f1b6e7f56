"""A run beside artifacts, for reading: a table, notes, and a plot."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.tvm_export.run_comparison import Row
from tvm_practice.viz.tables import OWN, with_interval

if TYPE_CHECKING:
    from rich.table import Table


def table(rows: Sequence[Row]) -> "Table":
    """The comparison for reading."""
    from rich.table import Table

    shown = Table(title=f"ICD {rows[0].icd_latency_ms:.3f} ms ({rows[0].metrics})")
    shown.add_column("TVM artifact", overflow="fold")
    for heading in ("TVM ms", "TVM - ICD", "TVM / ICD", "the same, interleaved"):
        shown.add_column(heading, justify="right")
    shown.add_column("faster")
    for row in rows:
        shown.add_row(
            row.name,
            f"{row.tvm_latency_ms:.3f}",
            f"{row.delta_ms:+.3f}",
            with_interval(row.speedup_vs_tvm, row.speedup_ci95),
            with_interval(row.speedup_interleaved, row.speedup_interleaved_ci95),
            row.faster,
        )
        if row.own_latency_ms is not None:
            shown.add_row(
                OWN,
                f"{row.own_latency_ms:.3f}",
                f"{row.own_latency_ms - row.icd_latency_ms:+.3f}",
                with_interval(row.own_speedup_vs_tvm, row.own_speedup_ci95),
                with_interval(row.own_speedup_interleaved, row.own_speedup_interleaved_ci95),
            )
    return shown


def notes(rows: Sequence[Row]) -> list[str]:
    """The notes, a line each; a note on all artifacts is there once."""
    shared = [note for note in rows[0].notes if all(note in row.notes for row in rows)]
    own = [f"{row.name}: {note}" for row in rows for note in row.notes if note not in shared]
    return [f"note: {each}" for each in [*shared, *own]]


def plot(rows: Sequence[Row], latencies: Sequence[Mapping[str, Any]], file: Path) -> None:
    """Mean latencies as bars, with their 95% intervals where they are stored.

    Args:
        rows: the comparisons.
        latencies: the run's latency, then each artifact's.
        file: a .png, .svg or .pdf.
    """
    from matplotlib.figure import Figure

    names = ["ICD (PyTorch)", *(f"TVM: {row.name}" for row in rows)]
    means = [each["mean"] for each in latencies]
    intervals = [each.get("ci95") or (each["mean"], each["mean"]) for each in latencies]
    below = [mean - low for mean, (low, _) in zip(means, intervals, strict=True)]
    above = [high - mean for mean, (_, high) in zip(means, intervals, strict=True)]
    figure = Figure(figsize=(7, 1.4 + 0.5 * len(names)), layout="constrained")
    axes = figure.subplots()
    colors = ["tab:orange", *(["tab:blue"] * len(rows))]
    positions = range(len(names))
    axes.barh(positions, means, xerr=[below, above], color=colors, capsize=4)
    for position, mean, reach in zip(positions, means, above, strict=True):
        axes.annotate(
            f"{mean:.3g}", (mean + reach, position), (4, 0), textcoords="offset points", va="center"
        )
    axes.set_yticks(positions, names)
    axes.invert_yaxis()
    axes.set_xlabel("mean latency, ms (with its 95% interval)")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, dpi=150)
