"""A run as a table."""

from typing import TYPE_CHECKING

from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from rich.table import Table

    from tvm_practice.icd.metrics import Metrics
    from tvm_practice.tvm_export.artifacts.schema import LatencyRecord, RatioRecord


def run_table(metrics: "Metrics") -> "Table":
    """A run as a table: eager, what the pipeline chose, TVM, its tuner's own result."""
    from rich.table import Table

    from tvm_practice.viz.tables import OWN

    table = Table(title=metrics.model.loader)
    table.add_column("")
    for heading in ("mean ms", "95% interval", "time / eager", "verified"):
        table.add_column(heading, justify="right")
    pipeline, baseline = metrics.pipeline, metrics.tvm_baseline
    table.add_row("PyTorch, eager", *_cells(metrics.eager), "1")
    if pipeline.choices:
        verified = pipeline.verification
        table.add_row(
            f"PyTorch, {' + '.join(pipeline.choices)}",
            *_cells(metrics.latency),
            _ratio(pipeline.ratio_to_eager),
            "yes" if verified and verified.verified else "NO",
        )
    if baseline is not None:
        made = (
            f"{baseline.tuner}, {number_of(baseline.tuning_trials, 'trial')}"
            if baseline.tuner
            else "untuned"
        )
        name = f"TVM {baseline.engine}, {made}"
        if baseline.latency is None:
            table.add_row(name, baseline.status.replace("_", " "))
        else:
            verified = baseline.verification
            table.add_row(
                name,
                *_cells(baseline.latency),
                _ratio(baseline.ratio_to_eager),
                "yes" if verified and verified.verified else "NO",
            )
        if own := baseline.tuners_own:
            table.add_row(OWN, *_cells(own.latency), _ratio(own.ratio_to_pytorch))
    return table


def _cells(latency: "LatencyRecord") -> list[str]:
    low, high = latency.ci95
    return [f"{latency.mean:.3f}", f"{low:.3f}–{high:.3f}"]


def _ratio(ratio: "RatioRecord | None") -> str:
    from tvm_practice.measure import NO_RATIO
    from tvm_practice.viz.tables import with_interval

    if ratio is None:
        return ""
    return with_interval(ratio.value, ratio.ci95) if ratio.value else NO_RATIO
