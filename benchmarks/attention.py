"""Attention alone beside PyTorch's fused one; docs/attention.md made of it.

    python benchmarks/attention.py                    # all lengths, about a minute
    python benchmarks/attention.py --length 1024 --seconds 3
    python benchmarks/attention.py --table            # only write the page again

The exporter's side is its default schedule. The sides use the same threads and are called in turns.
"""

import functools
from pathlib import Path
from typing import Any

import click
from beside_torch import geometric_mean, measure_all, options, rates, ratio_cell, write_page

LENGTHS = (128, 512, 1024, 4096)
_HEADS, _SIZE = 12, 64
_HEAD = """# Attention

Made by `python benchmarks/attention.py`: attention of 12 heads of 64 without a mask, over sequences
of some lengths, in float32. Two versions run on the same threads, called in turns in one process:
an untuned export, which the rule `attention` (tvm_practice/tvm_export/rules/cpu/attention.py)
schedules, and PyTorch's `scaled_dot_product_attention`, which is a fused kernel too.

A rate counts
the two products only, not the exponentials. A ratio compares times: the median with its 95%
interval; under 1, TVM is faster. An error is the largest difference from float64's output.
"""


def measure(length: int, seconds: float) -> dict[str, Any]:
    """One length by the export and PyTorch.

    Args:
        length: of the sequence.
        seconds: for measuring.

    Returns:
        {"length", "multiply_adds", "errors" (by side), "max_error", "comparison": see
        measure.Comparison.to_dict}; sides are "tvm" and "torch".
    """
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    from tvm_practice.measure import compare_interleaved
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    class Attention(torch.nn.Module):
        """Of queries, keys and values [1, heads, length, size]."""

        def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
            return scaled_dot_product_attention(q, k, v)

    torch.manual_seed(0)
    q, k, v = (torch.randn(1, _HEADS, length, _SIZE) for _ in range(3))
    example = (q, k, v)
    built = compile_pytorch_module(Attention(), ExportConfig(example_input=example), verify=False)
    if "attention" not in built.rules.values():
        raise click.ClickException(f"length {length} is scheduled by {built.rules}")
    [output] = built(*(each.numpy() for each in example))
    outputs = {"tvm": torch.from_numpy(output)}
    with torch.inference_mode():
        outputs["torch"] = scaled_dot_product_attention(q, k, v)
        runs: dict[str, Any] = {
            "tvm": built.run,
            "torch": functools.partial(scaled_dot_product_attention, q, k, v),
        }
        compared = compare_interleaved(runs, baseline="torch", rounds=200, time_limit=seconds)
        exact = scaled_dot_product_attention(q.double(), k.double(), v.double())
    errors = {side: float((each - exact).abs().max()) for side, each in outputs.items()}
    return {
        "length": length,
        "multiply_adds": 2 * _HEADS * length * length * _SIZE,
        "errors": errors,
        "max_error": errors["tvm"],
        "comparison": compared.to_dict(),
    }


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The page's table, and the mean below it."""
    lines = [
        "| length | TVM, GFLOP/s | torch | TVM / torch | error: TVM | torch |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        rate, errors = rates(row["comparison"], row["multiply_adds"]), row["errors"]
        lines.append(
            f"| {row['length']} | {rate['tvm']:.0f} | {rate['torch']:.0f} "
            f"| {ratio_cell(row['comparison']['ratio']['tvm'])} "
            f"| {errors['tvm']:.1e} | {errors['torch']:.1e} |"
        )
    mean = geometric_mean(row["comparison"]["ratio"]["tvm"]["value"] for row in rows)
    return [*lines, "", f"Geometric mean of TVM / torch: {mean:.2f}."]


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/attention.py\n"
    "  python benchmarks/attention.py --length 1024 --seconds 3\n"
    "  python benchmarks/attention.py --table"
)
@click.option("--length", "lengths", type=click.IntRange(min=32), multiple=True, help="[all]")
@options("attention")
def main(lengths: tuple[int, ...], seconds: float, out: Path, table: bool) -> None:
    """Compare attention of some lengths with PyTorch's; write docs/attention.md."""
    if not table:
        cases = {
            str(each): functools.partial(measure, each, seconds) for each in lengths or LENGTHS
        }
        measure_all(cases, out, side="tvm")
        if lengths:
            return  # a part of the lengths is no page
    write_page("attention", out, _HEAD, table_lines)


if __name__ == "__main__":
    main()
