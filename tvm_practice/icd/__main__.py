"""`icd`: measure a PyTorch model as a configuration says, beside TVM's build of it."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tvm_practice.engines.command_line import Folder, Group
from tvm_practice.icd.reporting import run_table
from tvm_practice.tvm_export.cli import child_output, one_line

if TYPE_CHECKING:
    from rich.console import Console

_RUN_EXAMPLES = """\b
Examples:
  python -m tvm_practice.icd run -c configs/mlp.json --out runs/mlp
  python -m tvm_practice.icd run -c configs/resnet18.json \\
      --override pipeline.mode=iterative --out runs/resnet18
  python -m tvm_practice.icd run -c configs/resnet18.json \\
      --override measure.tvm_enable=true \\
      --override measure.tvm_target="llvm -mcpu=core-avx2" \\
      --override measure.tvm_trials=1000 --out runs/resnet18_vs_tvm
  python -m tvm_practice.icd run -c configs/mlp.json \\
      --override model.loader=your_module:load_my_model \\
      --override model.example="[{shape: [1, 3, 224, 224]}]"
"""


@click.group(
    cls=Group,
    epilog="\b\nExamples:\n  python -m tvm_practice.icd run -c configs/mlp.json --out runs/mlp\n"
    "  python -m tvm_practice.icd run --help\n"
    "  python -m tvm_practice.icd schemas docs/schemas",
)
def main() -> None:
    """Measure PyTorch models from a configuration, and TVM beside them."""


@main.command("run", short_help="Measure the configured model.", epilog=_RUN_EXAMPLES)
@click.option(
    "-c",
    "--config",
    "file",
    required=True,
    type=click.Path(path_type=Path),
    help="Configuration, JSON or YAML; docs/icd.md has its keys.",
)
@click.option(
    "--override",
    "overrides",
    multiple=True,
    metavar="KEY=VALUE",
    help="Set a key, such as measure.repeats=50; repeatable, the last one counts.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Folder for metrics.json and TVM's artifacts.  [default: runs/NAME of the configuration]",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print metrics.json on stdout, everything else on stderr.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print only errors.")
@click.option("-v", "--verbose", is_flag=True, help="Show the configuration and tracebacks.")
def run_command(
    file: Path,
    overrides: tuple[str, ...],
    out: Path | None,
    as_json: bool,
    quiet: bool,
    verbose: bool,
) -> None:
    """Measure the configured model in PyTorch and, if the configuration asks for it, in TVM.

    Writes OUT/metrics.json. A TVM that is missing or fails is recorded there and does not fail
    the run, nor does a reader of the output that goes away (`| head -1`). Exit code 0 when PyTorch
    was measured, 2 for a mistake in the request, 1 for anything else.
    """
    if quiet and verbose:
        raise click.UsageError("--quiet contradicts --verbose")
    from tvm_practice.icd.config import load_config

    with one_line(verbose=verbose), child_output(as_json=as_json, quiet=quiet) as output:
        console = _console(as_json=as_json, quiet=quiet)
        config = load_config(file, overrides)
        if verbose:
            console.print_json(config.model_dump_json())
        from tvm_practice.icd.runner import METRICS, run

        out = out or Path("runs") / file.stem

        def say(line: str) -> None:
            console.print(line, markup=False)

        metrics = run(config, out, say=say, output=output)
        console.print(run_table(metrics))
        for note in metrics.notes:
            say(f"note: {note}")
        console.print(f"metrics: {out / METRICS}", markup=False, soft_wrap=True)
        if as_json:
            click.echo((out / METRICS).read_text(), nl=False)


def _console(*, as_json: bool, quiet: bool) -> "Console":
    """Where the run is told of; it goes on where nobody reads that."""
    from rich.console import Console

    class Told(Console):
        def on_broken_pipe(self) -> None:
            self.quiet = True
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())

    return Told(stderr=as_json, quiet=quiet, highlight=False)


@main.command(
    "schemas",
    short_help="Write the JSON Schemas.",
    epilog="\b\nExamples:\n  python -m tvm_practice.icd schemas docs/schemas",
)
@click.argument("folder", type=Folder())
def schemas_command(folder: Path) -> None:
    """Write the JSON Schemas of the files that the tools read and write to FOLDER."""
    with one_line(verbose=False):
        from tvm_practice.icd.schemas import write_schemas
        from tvm_practice.tvm_export.artifacts import require_writable

        require_writable(folder, "")
        for written in write_schemas(folder):
            click.echo(written)


if __name__ == "__main__":
    main()
