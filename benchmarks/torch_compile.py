"""torch.compile(backend="tvm_practice") against the exporter's own artifact, and torch_compile.md.

    python benchmarks/torch_compile.py                       # ten models, about half an hour
    python benchmarks/torch_compile.py --model mlp --model resnet18
    python benchmarks/torch_compile.py --table               # only write the page again

Each model is compiled twice in one process, by torch.compile and by compile_pytorch_module, and
both are timed in turns, under torch.no_grad(). A call through torch.compile checks TorchDynamo's
guards and that no weight has changed.
"""

import functools
from pathlib import Path
from typing import Any

import click
from beside_torch import geometric_mean, measure_all, options, ratio_cell, write_page
from model_names import MODELS

_HEAD = """# torch.compile against the exporter

Made by `python benchmarks/torch_compile.py`. Milliseconds are medians. Both sides are untuned and
timed in turns in one process; the ratio has its 95% interval. The error is the largest absolute
difference from PyTorch eager. [The guide](guides/torch_compile.md) describes the backend.
"""


def measure(name: str, seconds: float) -> dict[str, Any]:
    """Compile a model both ways and time both in turns.

    Args:
        name: of MODELS.
        seconds: for measuring.

    Returns:
        {"model", "parts": what the backend counted, "max_error", "comparison"}.
    """
    import torch
    from torch._dynamo.utils import counters

    from tvm_practice.measure import compare_interleaved
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.loading import find_factory
    from tvm_practice.tvm_export.torch_compile import backend

    torch._dynamo.reset()
    torch._dynamo.config.allow_rnn = True  # else the LSTM's layers stay with PyTorch
    counters.clear()
    model, example = find_factory(f"tvm_practice.models:load_{name}")()
    through_compile: Any = torch.compile(model, backend=backend)
    with torch.no_grad():
        expected, got = model(*example), through_compile(*example)
    exported = compile_pytorch_module(model, ExportConfig(example_input=example))

    def run() -> None:
        with torch.no_grad():
            through_compile(*example)

    pairs = zip(_tensors(got), _tensors(expected), strict=True)
    compared = compare_interleaved(
        {"exporter": exported.run, "compile": run},
        baseline="exporter",
        rounds=60,
        time_limit=seconds,
    )
    return {
        "model": name,
        "parts": dict(counters["tvm_practice"]),
        "max_error": max(float((one - other).abs().max()) for one, other in pairs),
        "comparison": compared.to_dict(),
    }


def _tensors(result: Any) -> list[Any]:
    from tvm_practice.tvm_export.nested import flattened

    return flattened(result)


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The page's table, and the mean below it."""
    lines = [
        "| model | parts | exporter, ms | torch.compile, ms | torch.compile / exporter | error |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        latency = row["comparison"]["latency"]
        parts = row["parts"].get("built", 0) + row["parts"].get("loaded", 0)
        lines.append(
            f"| {MODELS[row['model']]} | {parts} | {latency['exporter']['p50']:.3g} "
            f"| {latency['compile']['p50']:.3g} "
            f"| {ratio_cell(row['comparison']['ratio']['compile'])} | {row['max_error']:.1e} |"
        )
    mean = geometric_mean(row["comparison"]["ratio"]["compile"]["value"] for row in rows)
    return [*lines, "", f"Geometric mean of torch.compile / exporter: {mean:.2f}."]


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/torch_compile.py\n"
    "  python benchmarks/torch_compile.py --model mlp --seconds 3\n"
    "  python benchmarks/torch_compile.py --table"
)
@click.option("--model", "models", type=click.Choice(list(MODELS)), multiple=True, help="[all]")
@options("torch_compile")
def main(models: tuple[str, ...], seconds: float, out: Path, table: bool) -> None:
    """Compare torch.compile by this backend with the exporter; write docs/torch_compile.md."""
    if not table:
        cases = {each: functools.partial(measure, each, seconds) for each in models or MODELS}
        measure_all(cases, out, side="compile")
        if models:
            return  # a part of the models is no page
    write_page("torch_compile", out, _HEAD, table_lines)


if __name__ == "__main__":
    main()
