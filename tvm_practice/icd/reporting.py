"""What the command lines share: one line for an error, tables of a run."""

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.table import Table

    from tvm_practice.icd.metrics import Metrics
from tvm_practice.tvm_export.artifacts.schema import LatencyRecord, RatioRecord


@contextmanager
def one_line(*, verbose: bool) -> Iterator[None]:
    """Inside the block, an exception ends the program with one line on stderr.

    Exit code 2 for the person's mistake, 130 for Ctrl-C, 1 for anything else. With `verbose` the
    traceback comes first.
    """
    from tvm_practice.tvm_export.errors import BadInput

    try:
        yield
    except KeyboardInterrupt:
        click.echo("stopped", err=True)
        sys.exit(130)
    except BrokenPipeError:  # click ends quietly
        raise
    except Exception as error:
        if verbose:
            traceback.print_exc()
        text = " ".join(str(error).split())
        if not isinstance(error, BadInput | OSError):
            text = f"{type(error).__name__}: {text}" if text else type(error).__name__
        click.echo(f"error: {text}", err=True)
        sys.exit(2 if isinstance(error, BadInput) else 1)


@contextmanager
def child_output(*, as_json: bool, quiet: bool) -> Iterator[IO[Any] | None]:
    """Where a child process prints, for `engines.Session`: JSON on stdout is kept clean."""
    if quiet:
        with Path(os.devnull).open("w") as nowhere:
            yield nowhere
    elif as_json:
        with os.fdopen(os.dup(2), "w") as errors:
            yield errors
    else:
        yield None


def run_table(metrics: "Metrics") -> "Table":
    """A run as a table: eager, what the pipeline chose, TVM."""
    from rich.table import Table

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
        made = f"{baseline.tuner}, {baseline.tuning_trials} trials" if baseline.tuner else "untuned"
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
    return table


def _cells(latency: "LatencyRecord") -> list[str]:
    low, high = latency.ci95
    return [f"{latency.mean:.3f}", f"{low:.3f}–{high:.3f}"]


def _ratio(ratio: "RatioRecord | None") -> str:
    if ratio is None:
        return ""
    low, high = ratio.ci95
    return f"{ratio.value:.2f} ({low:.2f}–{high:.2f})"
