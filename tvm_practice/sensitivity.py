"""Which layers of a model int8 harms, before anything is compiled.

python -m tvm_practice.sensitivity tvm_practice.models:load_resnet18 --calibration data.npz
"""

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from tvm_practice.engines.command_line import Command
from tvm_practice.tvm_export.cli import one_line


@click.command(
    cls=Command,
    epilog="\b\nExamples:\n"
    "  python -m tvm_practice.sensitivity tvm_practice.models:load_mlp\n"
    "  python -m tvm_practice.sensitivity mymodule:load_model --calibration data.npz \\\n"
    "      --calibration-method entropy --top 20\n"
    "  python -m tvm_practice.sensitivity mymodule:load_model --json > layers.json",
)
@click.argument("model", metavar="MODULE:FACTORY|FILE")
@click.option(
    "--calibration",
    type=click.Path(path_type=Path),
    metavar="X.NPZ",
    help="Convolutions too, their inputs' ranges from the inputs in this file, arrays by the "
    "inputs' names; every fourth of four or more is measured on instead.",
)
@click.option(
    "--calibration-method",
    "method",
    type=click.Choice(["minmax", "percentile", "entropy"]),
    default="minmax",
    show_default=True,
    help="Ranges of all values, of all but 0.01%, or those that keep the values' distribution.",
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--top", type=click.IntRange(min=1), default=10, show_default=True, help="Layers to print."
)
@click.option("--json", "as_json", is_flag=True, help="Print all layers, as JSON only.")
def main(
    model: str, calibration: Path | None, method: Any, seed: int, top: int, as_json: bool
) -> None:
    """Quantize all layers but one, for each layer in turn, and report the cost of each.

    A layer's share is the part of the outputs' distance from float64, 1 - cosine, that goes if
    this layer stays float32: name it with run_autotvm's --keep-float. The arithmetic is that of
    `run_autotvm --quantize int8`, computed in PyTorch; no TVM is needed.
    """
    with one_line("sensitivity"):
        from tvm_practice.tvm_export.calling import as_call, in_eval_mode
        from tvm_practice.tvm_export.loading import load
        from tvm_practice.tvm_export.sensitivity import sensitivity

        loaded = load(model, example=None, seed=seed)
        with in_eval_mode(loaded.module):
            call = as_call(loaded.module, loaded.args, loaded.kwargs, copies=loaded.changes_inputs)
            found = sensitivity(call, calibration=calibration, method=method, track=_with_progress)
    if as_json:
        click.echo(json.dumps(asdict(found), indent=2))
        return
    click.echo(f"all {len(found.layers)} layers in int8: cosine to float64 {found.cosine:.6f}")
    click.echo(f"on {', '.join(found.inputs)}\n")
    click.echo(f"{'share':>6}  {'cosine without':>14}  layer")
    for each in found.layers[:top]:
        click.echo(f"{each.share:>6.1%}  {each.cosine:>14.6f}  {each.layer} ({each.kind})")


def _with_progress(layers: list[str]) -> Iterable[str]:
    """The layers, with a bar on a terminal's standard error."""
    from rich.console import Console
    from rich.progress import track

    errors = Console(stderr=True)
    return track(layers, "layers", console=errors, transient=True, disable=not errors.is_terminal)


if __name__ == "__main__":
    main()
