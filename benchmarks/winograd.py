"""3x3 convolutions by Winograd's algorithm beside direct ones; docs/winograd.md made of it.

    python benchmarks/winograd.py                    # all layers, about a minute
    python benchmarks/winograd.py --layer 64x56x56 --seconds 3
    python benchmarks/winograd.py --table            # only write the page again

Both are default schedules of the exporter. The sides use the same threads and are called in turns.
"""

import functools
from pathlib import Path
from typing import Any

import click
from beside_torch import geometric_mean, measure_all, options, rates, ratio_cell, write_page

# Channels as many as filters, height as width, one padded image: of ResNet and VGG.
LAYERS = {
    "64x112x112": (64, 112),
    "64x56x56": (64, 56),
    "128x28x28": (128, 28),
    "256x14x14": (256, 14),
}
_HEAD = """# Winograd's convolutions

Made by `python benchmarks/winograd.py`. The layers are 3×3 convolutions of stride 1 with bias and
ReLU, with as many filters as channels, for one padded image whose channels are last in memory, as
the exporter keeps them. Three versions run on the same threads, called in turns in one process: the
exporter's default rule `winograd` (tvm_practice/tvm_export/rules/cpu/winograd/), the rule that it
replaces, `contraction`, and PyTorch eager.

All rates count the operations of the direct algorithm.
A ratio compares times: the median with its 95% interval; under 1, the first is faster. An error is
the largest difference from PyTorch's float64 output.

The algorithm adds inputs and subtracts them again. So an output whose 3×3 window has an infinity
may be NaN, where a direct convolution gives an infinity.
"""


def measure(layer: str, seconds: float) -> dict[str, Any]:
    """One layer by both rules and PyTorch.

    Args:
        layer: a name in LAYERS.
        seconds: for measuring.

    Returns:
        {"layer", "multiply_adds", "errors" (by side), "max_error", "comparison": see
        measure.Comparison.to_dict}; sides are "winograd", "direct" and "torch".
    """
    import torch

    from solutions.relay_import import build_relax, import_relax
    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved
    from tvm_practice.tvm_export.compiling import compiling
    from tvm_practice.tvm_export.quiet import quiet_frontends
    from tvm_practice.tvm_export.relax_passes.order import optimized
    from tvm_practice.tvm_export.rules.cpu import schedule_defaults
    from tvm_practice.tvm_export.rules.first_match import Decision
    from tvm_practice.tvm_export.running import RelaxRunner
    from tvm_practice.tvm_export.steps import Steps

    class ChannelsLast(torch.nn.Module):
        """The layer on a tensor of height, width, channels."""

        def __init__(self, channels: int):
            super().__init__()
            self.layer = torch.nn.Conv2d(channels, channels, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(self.layer(x.permute(0, 3, 1, 2))).permute(0, 2, 3, 1)

    channels, size = LAYERS[layer]
    torch.manual_seed(0)
    module = ChannelsLast(channels).eval()
    x = torch.nn.functional.pad(torch.randn(1, size, size, channels), (0, 0, 1, 1, 1, 1))
    target = engines.host_target()
    with quiet_frontends():
        imported = optimized(import_relax(module, (x,)), Steps(), names=["x"], target=target)
    runs: dict[str, Any] = {}
    outputs = {}
    for side, without in (("winograd", ()), ("direct", ("winograd",))):
        rules: list[Decision] = []
        scheduled = schedule_defaults(imported, target, report=rules, without=without)
        if ("winograd" in {each.rule for each in rules}) != (side == "winograd"):
            raise click.ClickException(f"{layer} is not scheduled by winograd on this machine")
        with compiling(target):
            runner = RelaxRunner(build_relax(scheduled, target))
        runner.set_inputs([x.numpy()])
        runner.run()
        outputs[side] = torch.from_numpy(runner.outputs()[0])
        runs[side] = runner.run
    with torch.inference_mode():
        outputs["torch"] = module(x)
        runs["torch"] = functools.partial(module, x)
        compared = compare_interleaved(runs, baseline="direct", rounds=200, time_limit=seconds)
        exact = module.double()(x.double())
    errors = {side: float((each - exact).abs().max()) for side, each in outputs.items()}
    return {
        "layer": layer,
        "multiply_adds": channels * channels * 9 * size * size,
        "errors": errors,
        "max_error": errors["winograd"],
        "comparison": compared.to_dict(),
    }


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The page's table, and the mean below it."""
    lines = [
        "| channels × height × width | winograd, GFLOP/s | direct | torch | winograd / direct "
        "| error: winograd | direct | torch |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        rate = rates(row["comparison"], row["multiply_adds"])
        errors = row["errors"]
        lines.append(
            f"| {row['layer'].replace('x', ' × ')} | {rate['winograd']:.0f} | {rate['direct']:.0f} "
            f"| {rate['torch']:.0f} | {ratio_cell(row['comparison']['ratio']['winograd'])} "
            f"| {errors['winograd']:.1e} | {errors['direct']:.1e} | {errors['torch']:.1e} |"
        )
    mean = geometric_mean(row["comparison"]["ratio"]["winograd"]["value"] for row in rows)
    return [*lines, "", f"Geometric mean of winograd / direct: {mean:.2f}."]


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/winograd.py\n"
    "  python benchmarks/winograd.py --layer 64x56x56 --layer 256x14x14 --seconds 3\n"
    "  python benchmarks/winograd.py --table"
)
@click.option("--layer", "layers", type=click.Choice(list(LAYERS)), multiple=True, help="[all]")
@options("winograd")
def main(layers: tuple[str, ...], seconds: float, out: Path, table: bool) -> None:
    """Compare the two rules for 3x3 convolutions; write docs/winograd.md."""
    if not table:
        cases = {each: functools.partial(measure, each, seconds) for each in layers or LAYERS}
        measure_all(cases, out, side="winograd")
        if layers:
            return  # a part of the layers is no page
    write_page("winograd", out, _HEAD, table_lines)


if __name__ == "__main__":
    main()
