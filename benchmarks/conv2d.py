"""A convolution by phase 2's packed matmul beside torch's, and docs/conv2d.md made of it.

    python benchmarks/conv2d.py                    # all layers, about a minute
    python benchmarks/conv2d.py --layer 64x56x56 --seconds 3
    python benchmarks/conv2d.py --table            # only write the page again

Both sides use the same threads and are called in turns; a ratio is time over torch's time.
"""

import functools
from pathlib import Path
from typing import Any

import click
from beside_torch import geometric_mean, measure_all, options, rates, ratio_cell, write_page

# ResNet-18's convolutions of 3x3 pixels, padding 1, on one image: (channels, height, width,
# filters, stride).
LAYERS = {
    "64x56x56": (64, 56, 56, 64, 1),
    "128x28x28": (128, 28, 28, 128, 1),
    "256x14x14": (256, 14, 14, 256, 1),
    "512x7x7": (512, 7, 7, 512, 1),
    "64x56x56/2": (64, 56, 56, 128, 2),
    "128x28x28/2": (128, 28, 28, 256, 2),
}
_HEAD = """# A convolution written by hand

Made by `python benchmarks/conv2d.py`. It compares `packed_conv2d` (course/tours/convolution.py),
which replays the schedule of phase 2's `packed_matmul`, with `torch.nn.functional.conv2d` on the
same threads, called in turns in one process. The layers are ResNet-18's 3×3 convolutions, for one
image, in NCHW. Both sides get plain weights and reorder them in every call. A ratio is the time
divided by torch's: the median with its 95% interval; under 1 is faster than PyTorch.
"""


def measure(layer: str, seconds: float) -> dict[str, Any]:
    """One layer on both sides.

    Args:
        layer: a name in LAYERS.
        seconds: for measuring.

    Returns:
        {"layer", "multiply_adds", "tile", "max_error" (to torch), "comparison": see
        measure.Comparison.to_dict}.
    """
    from tvm_practice.course.tours.convolution import beside_torch, output_size, pixel_tile

    channels, height, width, filters, stride = LAYERS[layer]
    comparison, error = beside_torch(channels, height, width, filters, stride, seconds=seconds)
    high, wide = (output_size(each, 3, stride, 1) for each in (height, width))
    return {
        "layer": layer,
        "multiply_adds": filters * high * wide * channels * 9,
        "tile": list(pixel_tile(wide)),
        "max_error": error,
        "comparison": comparison.to_dict(),
    }


def table_lines(rows: list[dict[str, Any]]) -> list[str]:
    """The page's table, and the mean below it."""
    lines = [
        "| channels × height × width | filters, stride | tile | packed, GFLOP/s | torch "
        "| packed / torch |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        channels, height, width, filters, stride = LAYERS[row["layer"]]
        rate = rates(row["comparison"], row["multiply_adds"])
        lines.append(
            f"| {channels} × {height} × {width} | {filters}, {stride} "
            f"| {row['tile'][0]} × {row['tile'][1]} | {rate['packed']:.0f} | {rate['torch']:.0f} "
            f"| {ratio_cell(row['comparison']['ratio']['packed'])} |"
        )
    mean = geometric_mean(row["comparison"]["ratio"]["packed"]["value"] for row in rows)
    return [*lines, "", f"Geometric mean of packed / torch: {mean:.2f}."]


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/conv2d.py\n"
    "  python benchmarks/conv2d.py --layer 64x56x56 --layer 512x7x7 --seconds 3\n"
    "  python benchmarks/conv2d.py --table"
)
@click.option("--layer", "layers", type=click.Choice(list(LAYERS)), multiple=True, help="[all]")
@options("conv2d")
def main(layers: tuple[str, ...], seconds: float, out: Path, table: bool) -> None:
    """Compare a hand-written convolution with torch's; write docs/conv2d.md."""
    if not table:
        cases = {each: functools.partial(measure, each, seconds) for each in layers or LAYERS}
        measure_all(cases, out)
        if layers:
            return  # a part of the layers is no page
    write_page("conv2d", out, _HEAD, table_lines)


if __name__ == "__main__":
    main()
