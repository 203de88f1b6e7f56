"""Trials per second of a tuning farm over its workers, with their bounds."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tvm_practice.viz.drawing import new_figure, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def throughput_figure(
    predicted: Sequence[tuple[int, float, float]],
    *,
    workers_alone: Sequence[float],
    bounds: Mapping[str, float],
    seen: Mapping[int, Sequence[float]],
) -> "Figure":
    """Trials per second by number of workers, both axes logarithmic.

    Args:
        predicted: (workers, trials per second round by round, those overlapped) each.
        workers_alone: trials per second that the workers would allow, for each of `predicted`.
        bounds: trials per second that a resource allows whatever the workers, by its name. Those
            far above everything else are named with their value and not drawn.
        seen: trials per second measured, by number of workers.
    """
    counts = [row[0] for row in predicted]
    with style():
        figure = new_figure(8, 3.6)
        axes = figure.subplots()
        axes.plot(counts, [row[1] for row in predicted], "o-", label="model, round by round")
        axes.plot(counts, [row[2] for row in predicted], "o--", label="model, overlapped")
        axes.plot(counts, workers_alone, "0.6", linestyle="-.", label="workers alone")
        points = [(count, rate) for count, rates in sorted(seen.items()) for rate in rates]
        if points:
            axes.plot(*zip(*points, strict=True), "x", color="C4", markersize=9, label="seen")
        highest = max(*(row[2] for row in predicted), *workers_alone)
        for number, (name, rate) in enumerate(sorted(bounds.items(), key=lambda each: each[1])):
            label = f"{name}: {rate:.3g} per second"
            if rate > 5 * highest:
                axes.plot([], [], " ", label=f"({label})")
            else:
                axes.axhline(rate, color=f"C{number + 2}", linestyle=":", label=label)
        _label(axes, counts)
    return figure


def _label(axes: Any, counts: Sequence[int]) -> None:
    from matplotlib.ticker import LogLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(counts, [str(count) for count in counts])
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_xlabel("workers")
    axes.set_ylabel("trials per second")
    axes.set_title("A tuning farm: trials per second, and their bounds")
    axes.grid()
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
