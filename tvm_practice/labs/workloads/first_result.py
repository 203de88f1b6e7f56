"""A program whose first line of output comes when it has its first verified result.

    python -m tvm_practice.labs.workloads.first_result jax softmax

Whoever started it reads the clock: from the start of the process to that line. Caches that
torch.compile and Triton keep on disk are put into an empty folder, so that it compiles.
"""

import os
import sys
import tempfile

import click

from tvm_practice.engines.command_line import Command
from tvm_practice.labs.workloads.frameworks import FRAMEWORKS, missing


@click.command(
    cls=Command,
    epilog="\b\nExamples:\n  python -m tvm_practice.labs.workloads.first_result torch matmul\n"
    "  python -m tvm_practice.labs.workloads.first_result jax softmax --quick",
)
@click.argument("framework", type=click.Choice(list(FRAMEWORKS)))
@click.argument(
    "workload", type=click.Choice(["matmul", "softmax", "layer_norm", "mlp", "attention"])
)
@click.option("--quick", is_flag=True, help="Use the smaller size.")
@click.option("--trials", type=click.IntRange(min=1), default=32, show_default=True)
def main(framework: str, workload: str, quick: bool, trials: int) -> None:
    """Run a workload once in a framework, verify it, and say so."""
    if reason := missing(FRAMEWORKS[framework]):
        raise click.UsageError(f"{framework}: {reason}")
    from tvm_practice.labs.workloads.process import prepare, with_empty_caches

    with tempfile.TemporaryDirectory() as folder:
        with_empty_caches(folder)
        # Progress bars, those of worker processes too, are no result.
        output = os.dup(1)
        os.dup2(2, 1)
        done = prepare(framework, workload, "quick" if quick else "full", trials)
        sys.stdout.flush()
        os.dup2(output, 1)
        seconds = ", ".join(f"{name} {each:.2f} s" for name, each in done["seconds"].items())
        click.echo(f"verified, off by {done['error']:.1e} of its scale; {seconds}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
