"""One picture of a kernel that gets faster: each step's speed, and the memory it touches."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tvm_practice.viz.access_picture import Window, draw_touches
from tvm_practice.viz.drawing import new_figure, style, to_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_BUFFERS = 3
_BAR = "#0084c7"


def steps_figure(
    windows: Mapping[str, Window], gflops: Mapping[str, float], said: Mapping[str, str]
) -> "Figure":
    """A row per step: what it changes, its memory access, and its GFLOP/s as a bar.

    Narrow, so that it can be read on a phone. The bars have a logarithmic axis.

    Args:
        windows: by step, parts of equal work.
        gflops: by step.
        said: by step, what it changes, in a few words.
    """
    with style():
        figure = new_figure(4.9, 0.98 * len(windows) + 0.2)
        grid = figure.subplots(
            len(windows), _BUFFERS + 1, squeeze=False, width_ratios=[1] * _BUFFERS + [2.8]
        )
        slowest, fastest = min(gflops.values()), max(gflops.values())
        for row, (name, part) in zip(grid, windows.items(), strict=True):
            for axes, trace in zip(row, part.buffers, strict=False):
                draw_touches(axes, trace)
                axes.set_title(trace.buffer.name, fontsize=8, pad=2)
            for axes in row[len(part.buffers) : _BUFFERS]:
                axes.set_axis_off()
            _draw_bar(row[-1], gflops[name], (slowest / 2, fastest * 1.1))
            row[-1].set_title(name, loc="left", fontsize=9, fontweight="bold", pad=2)
            row[-1].set_title(label(gflops[name]), loc="right", fontsize=9, pad=2)
            row[-1].set_xlabel(said[name], loc="left", fontsize=8)
    return figure


def _draw_bar(axes: Any, gflops: float, limits: tuple[float, float]) -> None:
    axes.barh([0], [gflops], color=_BAR, height=0.9)
    axes.set_xscale("log")
    axes.set_xlim(*limits)
    axes.set_ylim(-0.5, 0.5)
    axes.set_xticks([], minor=False)
    axes.set_xticks([], minor=True)
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)


def label(gflops: float) -> str:
    """`1.3 GFLOP/s`, `128 GFLOP/s`."""
    return f"{gflops:.1f} GFLOP/s" if gflops < 10 else f"{gflops:.0f} GFLOP/s"


def steps_svg(
    windows: Mapping[str, Window],
    gflops: Mapping[str, float],
    said: Mapping[str, str],
    *,
    title: str,
) -> str:
    """`steps_figure` for a page."""
    return to_svg(steps_figure(windows, gflops, said), title=title)
