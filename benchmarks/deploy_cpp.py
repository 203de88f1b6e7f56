"""A call from C++ beside the same call from Python, and the table of docs/labs/2-deploy_cpp.md.

    python benchmarks/deploy_cpp.py                    # three models: some minutes
    python benchmarks/deploy_cpp.py --model mlp --rounds 10
    python benchmarks/deploy_cpp.py --table            # only write the table again

Two processes load one library and call it in turns, with the same number of unbound threads.
"""

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import click

PAGE = Path(__file__).resolve().parent.parent / "docs" / "labs" / "2-deploy_cpp.md"
# A model that takes next to no time shows what a call costs by itself.
MODELS = {"tiny": "MLP 4-8-2", "mlp": "MLP 784-512-256-10, batch 1", "resnet18": "ResNet-18"}
_BLOCK = re.compile(r"(?<=<!-- latency: begin -->\n).*?(?=<!-- latency: end -->)", re.DOTALL)


def load(name: str) -> Any:
    """A model in eval mode and its example inputs."""
    import torch

    from tvm_practice import models

    if name == "tiny":
        return models.MLP((4, 8, 2)).eval(), (torch.zeros(1, 4),)
    return models.load_mlp(batch=1) if name == "mlp" else models.load_resnet18()


def measure(name: str, rounds: int) -> dict[str, Any]:
    """One model: {"model", "comparison": see measure.Comparison.to_dict}."""
    from solutions.labs.deploy_cpp import export_model
    from tvm_practice.labs.native.latency import compare_calls
    from tvm_practice.tvm_export.cpp import build_project, describe_main, write_project

    model, example = load(name)
    with tempfile.TemporaryDirectory(prefix="tvm-practice-") as parent:
        folder = Path(parent)
        described = describe_main(export_model(model, example, folder))
        (folder / "model.json").write_text(json.dumps(described))
        write_project(folder)
        program = build_project(folder) / "main"
        calls = 3 if name == "resnet18" else 50
        return {
            "model": name,
            "comparison": compare_calls(program, folder, rounds=rounds, calls=calls).to_dict(),
        }


def table(report: dict[str, Any]) -> str:
    """The block of the page."""
    from beside_torch import ratio_cell

    machine = report["environment"]
    lines = [
        f"Machine: {machine['processor']}, {report['threads']} threads; apache-tvm "
        f"{machine['packages']['apache-tvm']}; {machine['date'][:10]}; "
        "`python benchmarks/deploy_cpp.py`.",
        "",
        "| model | Python, ms | C++, ms | C++ / Python |",
        "|---|---|---|---|",
    ]
    for row in report["rows"]:
        found = row["comparison"]
        times = (f"{found['latency'][side]['p50']:.3g}" for side in ("Python", "C++"))
        name = MODELS[row["model"]]
        lines.append(f"| {name} | {' | '.join(times)} | {ratio_cell(found['ratio']['C++'])} |")
    return "\n".join(lines) + "\n"


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/deploy_cpp.py\n"
    "  python benchmarks/deploy_cpp.py --model mlp --rounds 10\n"
    "  python benchmarks/deploy_cpp.py --table"
)
@click.option("--model", "models", type=click.Choice(list(MODELS)), multiple=True, help="[all]")
@click.option("--rounds", type=click.IntRange(min=2), default=50, show_default=True)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("runs/deploy_cpp.json"),
    show_default=True,
)
@click.option("--table", "only_table", is_flag=True, help="Write the table from what is there.")
def main(models: tuple[str, ...], rounds: int, out: Path, only_table: bool) -> None:
    """Time calls from C++ and from Python in turns; write the table of the lab's page."""
    if only_table:
        if not out.exists():
            raise click.UsageError(f"there is no {out}; run it without --table")
        report = json.loads(out.read_text())
        text = PAGE.read_text()
        PAGE.write_text(_BLOCK.sub(lambda _: table(report), text, count=1))
        click.echo(f"written: {PAGE}")
        return

    from tvm_practice import engines
    from tvm_practice.measure import environment
    from tvm_practice.tvm_export.writing import write_json

    os.environ["TVM_BIND_THREADS"] = "0"
    engines.activate("current")
    report = {"environment": environment(), "threads": engines.thread_count(), "rows": []}
    out.parent.mkdir(parents=True, exist_ok=True)
    for name in models or MODELS:
        row = measure(name, rounds)
        report["rows"].append(row)
        write_json(out, report)
        ratio = row["comparison"]["ratio"]["C++"]
        value = "" if ratio["value"] is None else f"{ratio['value']:.3f}, "
        click.echo(f"{name:>9}  C++ / Python {value}{ratio['verdict']}")


if __name__ == "__main__":
    main()
