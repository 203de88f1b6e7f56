"""How speed depends on the size of the problem."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def plot_rates(path: Path, rates: Mapping[str, Mapping[int, Mapping[str, float]]]) -> Path:
    """Save a picture of GFLOP/s by matrix size, one line a product.

    Args:
        path: file to write; its suffix gives the format.
        rates: by engine, then size, then name of the product. The first engine's lines are
            solid, the others' dashed and without numpy and torch, which are the same there.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    colours: dict[str, str] = {}
    ticks: set[int] = set()
    for order, (engine, sizes) in enumerate(rates.items()):
        ticks |= set(sizes)
        names = dict.fromkeys(name for row in sizes.values() for name in row)
        for name in names:
            if order and name in ("numpy", "torch"):
                continue
            colours.setdefault(name, f"C{len(colours)}")
            points = [(size, row[name]) for size, row in sorted(sizes.items()) if name in row]
            axes.plot(
                [size for size, _ in points],
                [rate for _, rate in points],
                color=colours[name],
                linestyle="--" if order else "-",
                marker="s" if name in ("numpy", "torch") else "o",
                fillstyle="none" if order else "full",
                label=f"{name}, {engine} TVM" if name not in ("numpy", "torch") else name,
            )
    _size_axis(axes, sorted(ticks))
    axes.set_yscale("log")
    axes.set_ylabel("GFLOP/s")
    axes.set_title("Matrix product: speed by size")
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(path, dpi=120)
    return path


def plot_break_even(
    path: Path, rows: Sequence[Mapping[str, Any]], *, pays_from: int | None
) -> Path:
    """Save a picture of parallel over serial time by size, with 95% intervals.

    Args:
        path: file to write; its suffix gives the format.
        rows: each with "size" and "ratio", a (median, low, high).
        pays_from: the size to mark as the break-even, None if there is none.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    sizes = [row["size"] for row in rows]
    medians = [row["ratio"][0] for row in rows]
    below = [row["ratio"][0] - row["ratio"][1] for row in rows]
    above = [row["ratio"][2] - row["ratio"][0] for row in rows]
    axes.errorbar(sizes, medians, yerr=[below, above], marker="o", capsize=4, label="median, 95%")
    axes.axhline(1, color="0.4", linestyle="--", label="as fast as serial")
    if pays_from is not None:
        axes.axvline(pays_from, color="C2", linestyle=":", label=f"pays from {pays_from} on")
    _size_axis(axes, sizes)
    axes.set_ylim(bottom=0)
    axes.set_ylabel("time of tiled+parallel / time of tiled")
    axes.set_title("At which size do threads pay? Below the dashed line")
    axes.legend(loc="upper right")
    figure.savefig(path, dpi=120)
    return path


def _size_axis(axes: Any, sizes: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel("rows and columns of the matrices")
    axes.grid(alpha=0.3)
