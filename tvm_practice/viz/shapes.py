"""Pictures of the cost of symbolic shapes: memory over a call, and time by shape."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def plot_held(path: Path, held: Mapping[str, Sequence[int]], *, title: str) -> Path:
    """Save a picture of the bytes held while each kernel runs, one line a plan.

    Args:
        path: file to write; its suffix gives the format.
        held: by plan, bytes at each kernel in the order they run.
        title: above the picture.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    for index, (name, bytes_held) in enumerate(held.items()):
        mebibytes = [each / 2**20 for each in bytes_held]
        axes.step(
            range(1, len(mebibytes) + 1),
            mebibytes,
            where="mid",
            label=f"{name}: at most {max(mebibytes, default=0):.3g} MiB",
            linestyle="--" if index % 2 else "-",  # lines may lie on each other
            linewidth=max(5 - 1.2 * index, 1),
        )
    axes.set_xlabel("kernel, in the order they run")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("MiB held")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.set_title(title)
    figure.legend(fontsize="small", loc="outside lower center", ncols=2)
    figure.savefig(path, dpi=120)
    return path


def plot_costs(path: Path, rows: Sequence[Mapping[str, Any]], *, baseline: str, title: str) -> Path:
    """Save a picture of times relative to a baseline, by shape, with 95% intervals.

    Args:
        path: file to write; its suffix gives the format.
        rows: each with "shape", a text, and "ratio": by name a (median, low, high).
        baseline: what the times are divided by.
        title: above the picture.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    names = list(dict.fromkeys(name for row in rows for name in row["ratio"]))
    for index, name in enumerate(names):
        shown = [(at, row["ratio"][name]) for at, row in enumerate(rows) if name in row["ratio"]]
        shift = 0.12 * (index - (len(names) - 1) / 2)
        axes.errorbar(
            [at + shift for at, _ in shown],
            [middle for _, (middle, _, _) in shown],
            yerr=[
                [middle - low for _, (middle, low, _) in shown],
                [high - middle for _, (middle, _, high) in shown],
            ],
            fmt="osD^v"[index % 5],
            capsize=4,
            label=name,
        )
    axes.axhline(1, color="0.4", linestyle="--", label=baseline)
    axes.set_xticks(range(len(rows)), [str(row["shape"]) for row in rows])
    axes.set_yscale("log")
    axes.set_xlabel("batch x length")
    axes.set_ylabel(f"time / time of {baseline}")
    axes.grid(alpha=0.3, which="both")
    axes.set_title(title)
    figure.legend(fontsize="small", loc="outside lower center", ncols=3)
    figure.savefig(path, dpi=120)
    return path
