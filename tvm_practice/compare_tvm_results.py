"""The PyTorch latency of an `icd run` against TVM artifacts' latency.

    python -m tvm_practice.compare_tvm_results runs/mlp/metrics.json runs/tvm_mlp/metadata.json

`tvm_export.run_comparison` says what the figures mean.
"""

import json
from pathlib import Path

import click

from tvm_practice.engines.command_line import Command
from tvm_practice.tvm_export.cli import one_line
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.run_comparison import Row, as_csv, as_json, compare, latency_of
from tvm_practice.tvm_export.writing import write_json, write_whole

_PLOTS = (".png", ".svg", ".pdf")


@click.command(
    cls=Command,
    epilog="\b\nExamples:\n"
    "  python -m tvm_practice.compare_tvm_results \\\n"
    "      runs/resnet18/metrics.json runs/tvm_resnet18/metadata.json \\\n"
    "      --output runs/resnet18/tvm_comparison.json\n"
    "  python -m tvm_practice.compare_tvm_results runs/resnet18/metrics.json \\\n"
    "      runs/autotvm/metadata.json runs/ansor/metadata.json \\\n"
    "      --output comparison.csv --plot comparison.png",
)
@click.argument("metrics", type=click.Path(path_type=Path))
@click.argument("metadata", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--output", type=click.Path(path_type=Path), help="File to write: .json or .csv.")
@click.option(
    "--plot", "picture", type=click.Path(path_type=Path), help="Plot to write: .png, .svg or .pdf."
)
@click.option("--json", "to_json", is_flag=True, help="Print JSON instead of a table.")
def main(
    metrics: Path,
    metadata: tuple[Path, ...],
    output: Path | None,
    picture: Path | None,
    to_json: bool,
) -> None:
    """Compare a run's METRICS (metrics.json) with artifacts' METADATA (metadata.json).

    The run is one of the course's command `icd run`, which measures PyTorch; "ICD" stands for it.
    Prints both latencies, their difference TVM - ICD, the ratio TVM / ICD with its 95% interval,
    and which is faster. --output and --json write more: icd_latency_ms, tvm_latency_ms,
    speedup_vs_tvm (tvm / icd), delta_ms (positive: ICD is faster), how each artifact was made and
    whether it verified. Exit code 2 for a file that is missing or holds something else.
    """
    from rich.console import Console

    from tvm_practice.viz.run_comparison import notes, plot, table
    from tvm_practice.viz.tables import print_plain

    with one_line(verbose=False):
        _require_endings(output, picture)
        rows = [compare(metrics, each) for each in metadata]
        try:
            if output is not None:
                _write(rows, output)
            if picture is not None:
                picture.parent.mkdir(parents=True, exist_ok=True)
                plot(rows, [latency_of(each) for each in (metrics, *metadata)], picture)
        except OSError as error:
            raise BadInput(
                f"cannot write {error.filename or output}: {error.strerror or error}"
            ) from None
        if to_json:
            click.echo(json.dumps(as_json(rows), indent=2))
            return
        console = Console(highlight=False)
        console.print(table(rows))
        for line in notes(rows):
            print_plain(console, line)
        for written in (output, picture):
            if written is not None:
                print_plain(console, f"written: {written}")


def _require_endings(output: Path | None, picture: Path | None) -> None:
    if output is not None and output.suffix not in (".json", ".csv"):
        raise BadInput(f"--output {output} ends neither in .json nor in .csv")
    if picture is not None and picture.suffix not in _PLOTS:
        raise BadInput(f"--plot {picture} ends in none of {', '.join(_PLOTS)}")


def _write(rows: list[Row], output: Path) -> None:
    output.parent.mkdir(parents=True, exist_ok=True)
    if output.suffix == ".json":
        write_json(output, as_json(rows))
    else:
        write_whole(output, as_csv(rows))


if __name__ == "__main__":
    main()
