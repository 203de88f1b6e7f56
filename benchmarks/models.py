"""Every model of the project on every compiler, and docs/models.md made of it.

    python benchmarks/models.py --trials 32                   # all, an hour or two on two cores
    python benchmarks/models.py --model mlp --model resnet18-batch-8 --trials 32
    python benchmarks/models.py --table                       # only write the page again

Each model is `python -m tvm_practice.bench`, in a process of its own; its report.json stays under
--out, and a model that has one there is not run again. With its report.json removed it is measured
again without tuning again: the trials on record count.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from tvm_practice.tvm_export.compilers import LABELS

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "models.md"
# Name: (what the page calls it, the example input).
MODELS = {
    "mlp": ("MLP 784-512-256-10", "batch 32"),
    "resnet18": ("ResNet-18", "1×3×224×224"),
    "bert_base": ("BERT-base", "1×128 tokens"),
    "mobilenet_v2": ("MobileNetV2", "1×3×224×224"),
    "gpt2": ("GPT-2 small", "1×64 tokens"),
    "vit": ("ViT-B/16", "1×3×224×224"),
    "lstm": ("LSTM, 2×650", "1×35 tokens"),
    "resnet50": ("ResNet-50", "1×3×224×224"),
    "mamba": ("Mamba-130M", "1×16 tokens"),
    "bert_large": ("BERT-large", "1×128 tokens"),
}
# Those that are measured with eight examples a call as well, by the names of their own reports.
EIGHT = {
    f"{name}-batch-8": (MODELS[name][0], MODELS[name][1].replace("1×", "8×", 1))
    for name in (
        "resnet18",
        "resnet50",
        "mobilenet_v2",
        "bert_base",
        "gpt2",
        "vit",
        "lstm",
        "mamba",
    )
}
ALL = MODELS | EIGHT
# Each engine's process measures PyTorch eager too. Apart by more than this, something else ran.
_QUIET = 1.4
COMPILERS = {name: label for name, label in LABELS.items() if name != "eager"}
_HEAD = """# The models, on every compiler

Made by `python benchmarks/models.py`. The figures come from one run on one machine; on yours, the
command takes a few minutes per model.

`/ eager` is the time divided by PyTorch eager's, timed in turns in the same process, with its 95%
interval: under 1 is faster than PyTorch. It is not the quotient of two numbers of the column `ms`:
each engine has a process of its own, in which it takes turns with PyTorch eager, and the row of
PyTorch eager is from one process alone. `~` marks a row whose samples scatter (the middle half
spans more than 15% of the median).

The error is the largest absolute difference from PyTorch's
float32. With `f64` it is the difference from float64, because PyTorch's own rounding error, in
brackets, is of that size. For `failed` and `missing`, the reason is below the table.

The tuners get few trials; `--trials` gives them more. MetaSchedule and AutoTVM keep a record only
if it beats the function's default schedule; Ansor keeps all. If the whole model is not faster with
the records, the row is the untuned model again. Rows measured before 2026-11-30 have AutoTVM's and
Ansor's records all the same.

PyTorch's speed depends on the processor: its matrix products come from MKL, which is made for
Intel's processors. [The aims and figures](speed.md) have a column per machine.
"""


@click.command(
    epilog="\b\nExamples:\n"
    "  python benchmarks/models.py --trials 32\n"
    "  python benchmarks/models.py --model mlp --model resnet18 --trials 32\n"
    "  python benchmarks/models.py --table"
)
@click.option("--model", "names", type=click.Choice(list(ALL)), multiple=True, help="[all]")
@click.option("--trials", type=click.IntRange(min=0), default=32, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(COMPILERS)), help="[all]")
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/models"))
@click.option("--table", is_flag=True, help="Write the page from what is there.")
def main(
    names: tuple[str, ...], trials: int, only: tuple[str, ...], out: Path, table: bool
) -> None:
    """Compare compilers on the project's models and write docs/models.md."""
    for number, name in enumerate(names or ALL, start=1):
        report = out / name / "report.json"
        if table or report.exists():
            continue
        click.echo(f"== {number} of {len(names or ALL)}: {', '.join(ALL[name])}")
        command = [sys.executable, "-m", "tvm_practice.bench", factory(name)]
        command += ["--trials", str(trials), "--out", str(report.parent)]
        chosen = only or tuple(each for each in COMPILERS if trials or not _is_tuner(each))
        command += [word for each in chosen for word in ("--only", each)]
        if subprocess.run(command, check=False).returncode == 130:
            sys.exit(130)
    found = {
        name: json.loads((out / name / "report.json").read_text())
        for name in ALL
        if (out / name / "report.json").exists()
    }
    if not found:
        raise click.UsageError(f"{out} has no report.json of a model; run it without --table")
    PAGE.write_text(page(found))
    click.echo(f"{PAGE} has {len(found)} models")


def factory(name: str) -> str:
    """The model's factory, "module:factory"."""
    if name in EIGHT:
        return f"benchmarks.batch_of_8:load_{name.removesuffix('-batch-8')}"
    return f"tvm_practice.models:load_{name}"


def disturbance(report: dict[str, Any]) -> tuple[float, float] | None:
    """PyTorch eager's least and largest time, in ms, where they are too far apart; else None."""
    eager = [row["eager"]["p50"] for row in report["rows"] if row["eager"]]
    if not eager or max(eager) <= _QUIET * min(eager):
        return None
    return min(eager), max(eager)


def _is_tuner(compiler: str) -> bool:
    return compiler in ("autotvm", "ansor", "metaschedule")


def page(found: dict[str, dict[str, Any]]) -> str:
    """The page: a machine, and a table a model."""
    machine = next(iter(found.values()))["environment"]
    threads = {report["threads"] for report in found.values()}
    parts = [
        _HEAD,
        f"Machine: {machine['processor']}, {'/'.join(map(str, threads))} threads each; "
        + ", ".join(
            f"{package} {version}"
            for package, version in machine["packages"].items()
            if version and package in ("apache-tvm", "torch", "onnxruntime", "transformers")
        )
        + ".",
    ]
    for name, report in found.items():
        title, example = ALL[name]
        parts.append(f"\n## {title}, {example}\n")
        parts.append(f"Measured {report['environment']['date'][:10]}.\n")
        if "operators" not in report["rows"][0]:
            parts.append(
                "MetaSchedule's row is of a revision that did not search register tiles.\n"
            )
        if disturbed := disturbance(report):
            parts.append(
                "The machine was not quiet: PyTorch eager itself took from "
                f"{disturbed[0]:.3g} to {disturbed[1]:.3g} ms beside one compiler and another. The "
                "errors stand; do not trust the times.\n"
            )
        parts.append("| | ms | / eager | error | trials |")
        parts.append("|---|---|---|---|---|")
        rows = {row["name"]: row for row in report["rows"]}
        parts.append(f"| PyTorch eager | {_milliseconds(rows['eager'])} | 1 | | |")
        reasons = []
        for key, label in COMPILERS.items():
            if key in rows:
                parts.append(_line(label, rows[key]))
                if rows[key]["status"] != "ok":
                    reasons.append(f"{label}: {rows[key]['reason']}")
        parts += [f"\n{sentence}." for sentence in (*reasons, *report["notes"])]
    return "\n".join(parts) + "\n"


def _line(label: str, row: dict[str, Any]) -> str:
    from tvm_practice.viz.tables import with_interval

    if row["status"] != "ok":
        return f"| {label} | {row['status']} | | | |"
    ratio = with_interval(row["ratio"]["value"], row["ratio"]["ci95"])
    verification = row.get("verification") or {}
    error = f"{row['max_error']:.1e}"
    if verification.get("pytorch_error") is not None:
        error += f" f64 ({verification['pytorch_error']:.1e})"
    trials = row["trials"] or ""
    return f"| {label} | {_milliseconds(row)} | {ratio} | {error} | {trials} |"


def _milliseconds(row: dict[str, Any]) -> str:
    middle = row["latency"]["p50"]
    shown = f"{middle:.3f}" if middle < 1 else f"{middle:.1f}"
    return shown if row["latency"]["stable"] else f"{shown} ~"


if __name__ == "__main__":
    main()
