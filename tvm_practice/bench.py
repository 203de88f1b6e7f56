"""One model, every compiler: PyTorch, torch.compile, ONNX Runtime, OpenVINO, TVM's engines, tuners.

`tvm_export.compilers` measures them; `viz.bench_page` shows the result.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

import click

from tvm_practice.engines.command_line import Folder
from tvm_practice.tvm_export.cli import (
    ShapesAsWords,
    child_output,
    example_of,
    one_line,
    request_of,
    tolerances,
)
from tvm_practice.tvm_export.compilers import (
    ENGINES,
    LABELS,
    TUNERS,
    Compiler,
    Report,
    compare_compilers,
)

_EXPORT = "tvm_practice.viz.exported:export_with_pictures"


@click.command(
    cls=ShapesAsWords,
    epilog="\b\nExamples:\n"
    "  python -m tvm_practice.bench tvm_practice.models:load_mlp\n"
    "  python -m tvm_practice.bench tvm_practice.models:load_resnet18 --trials 300\n"
    "  python -m tvm_practice.bench mymodule:load_model --example-shape 1 3 224 224 \\\n"
    "      --only compile --only onnx --only relax\n"
    "  python -m tvm_practice.bench tvm_practice.models:load_gpt2 --json > gpt2.json",
)
@click.argument("model", metavar="MODULE:FACTORY|FILE")
@click.option(
    "--trials",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Schedules each tuner measures, about a second each; 0 leaves the tuners out. They are "
    "shared by the model's tasks, one for each distinct operator and shape: an MLP has a few, "
    "ResNet-18 about 20. With fewer than ten per task, a tuner rarely beats the untuned build.",
)
@click.option(
    "--only",
    "names",
    type=click.Choice(list(LABELS)),
    multiple=True,
    help="Measure only this one; repeat for others. Eager, the baseline, always runs.",
)
@click.option(
    "--example-shape",
    "shape",
    multiple=True,
    help="Shape of an input; repeat for each. The factory's inputs are resized to it; without "
    "any, random ones are drawn.",
)
@click.option(
    "--example-dtype",
    "dtype",
    multiple=True,
    help="Type of that input [default: the factory's, or float32].",
)
@tolerances
@click.option("--threads", type=click.IntRange(min=1), help="Number of threads, the same for all.")
@click.option(
    "--out",
    type=Folder(),
    help="Folder for report.json, records and artifacts [default: runs/bench/FACTORY].",
)
@click.option("--json", "as_json", is_flag=True, help="Print only report.json, on standard output.")
def main(
    model: str,
    trials: int,
    names: tuple[Compiler, ...],
    shape: tuple[str, ...],
    dtype: tuple[str, ...],
    threads: int | None,
    out: Path | None,
    as_json: bool,
    **verification: Any,
) -> None:
    """Compare compilers on the model that FACTORY of MODULE returns.

    FACTORY takes no arguments and returns the PyTorch module, or the module and its example inputs.
    A compiler that is not installed has a row that says so. Exit code 0 if all installed compilers
    ran and agree with PyTorch, 1 if one did not, 2 for a mistake in the request.
    """
    from tvm_practice import engines
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.viz.bench_page import write_page

    if not trials and (idle := [name for name in TUNERS if name in names]):
        raise click.UsageError(f"--only {idle[0]} needs --trials: it is a tuner")
    folder = out or Path("runs") / "bench" / model.rpartition(":")[2]
    own = {name: each for name, each in verification.items() if each not in (None, ())}
    try:
        example = example_of(shape, dtype)
        # What the engines will be asked, before the rivals are timed.
        request_of({"model": model, "artifacts": folder, "example": example, **own})
        if (data := own.get("verify_data")) and not data.is_file():
            raise BadInput(f"--verify-data {data}: no such file")
    except BadInput as error:
        raise click.UsageError(str(error)) from None
    without: set[Compiler] = set()
    narrow = {"precision": own.get("precision"), "quantize": own.get("quantize")}
    for option, value in narrow.items():
        if value in (None, "float32"):
            continue
        without = set(ENGINES["classic"])
        if refused := without & set(names):
            raise click.UsageError(
                f"--only {min(refused)}: the classic engine has no --{option} {value}"
            )
    asked = [
        name
        for name in LABELS
        if name == "eager" or name in names or (not names and (trials or name not in TUNERS))
        if name not in without
    ]
    stopped = f"\nstopped; what was finished is in {folder}"
    with one_line("bench", stopped=stopped), child_output(as_json=as_json) as output:
        # For the children too, and for the record of the environment.
        os.environ["TVM_NUM_THREADS"] = str(threads or engines.thread_count())
        compared = compare_compilers(
            model,
            asked,
            trials=trials,
            example=example,
            out=folder,
            tolerances=own,
            command=" ".join(["python -m tvm_practice.bench", *sys.argv[1:]]),
            export=_EXPORT,
            output=output,
        )
        page = write_page(compared, folder)
        report = compared.report
        click.echo(json.dumps(report.to_dict(), indent=2)) if as_json else _print(report, page)
    sys.exit(1 if any(row.status == "failed" for row in report.rows) else 0)


def _print(report: Report, page: Path) -> None:
    from rich.console import Console

    from tvm_practice.viz.bench_page import reasons, table
    from tvm_practice.viz.tables import print_plain

    console = Console()
    console.print()
    console.print(table(report))
    for text in (*report.notes, *reasons(report), f"written to {page}"):
        print_plain(console, text)


if __name__ == "__main__":
    main()
