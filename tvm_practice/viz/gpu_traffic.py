"""Requests to memory of GPU kernels, counted: operations per byte, and bank conflicts."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tvm_practice.viz.drawing import new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def traffic_figure(traffic: Mapping[str, Mapping[str, float]], *, size: int) -> "Figure":
    """Bars for each kernel of a matmul: its intensity, and its wavefronts of shared memory.

    Args:
        traffic: by kernel, "intensity" (operations per byte of global memory), and per 32
            multiply-adds "wavefronts" of shared memory and the "conflicts" among them.
        size: rows and columns of the matrices.
    """
    names, rows = list(traffic), list(traffic.values())
    with style():
        figure = new_figure(8, 1.2 + 0.25 * len(rows))
        left, right = figure.subplots(1, 2, sharey=True)
        bars = left.barh(names, [row["intensity"] for row in rows])
        left.bar_label(bars, fmt="%.3g", padding=3)
        left.set_xscale("log")
        left.margins(x=0.25)
        left.invert_yaxis()
        left.set_xlabel("operations per byte of global memory")
        conflicts = [row["conflicts"] for row in rows]
        needed = [row["wavefronts"] - row["conflicts"] for row in rows]
        right.barh(names, needed, label="needed")
        right.barh(names, conflicts, left=needed, label="bank conflicts")
        right.set_xlabel("wavefronts of shared memory per 32 multiply-adds")
        right.legend(loc="lower right")
        figure.suptitle(f"Counted from the IR, matmul {size}³")
    return figure
