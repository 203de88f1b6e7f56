"""Cache misses as bars."""

from collections.abc import Mapping, Sequence

from tvm_practice.viz.cache import CacheCounts
from tvm_practice.viz.drawing import new_figure, style, to_svg


def cache_svg(
    counts: Mapping[str, CacheCounts],
    levels: Sequence[str],
    *,
    work: int,
    title: str,
    unit: str = "misses / 1000 multiply-adds",
) -> str:
    """Misses for a thousand multiply-adds, by level and schedule, on a log scale.

    Args:
        counts: by schedule.
        levels: names, in the order they are drawn.
        work: multiply-adds of each schedule; 1000, where `unit` is misses alone.
        unit: the axis's label.
    """
    with style():
        figure = new_figure(6.2, 3.2)
        axes = figure.subplots()
        width = 0.8 / len(counts)
        for number, (name, count) in enumerate(counts.items()):
            rates = [1000 * count.total_misses(level) / work for level in levels]
            at = [place + (number - (len(counts) - 1) / 2) * width for place in range(len(levels))]
            bars = axes.bar(at, rates, width=width * 0.92, color=f"C{number}", label=name)
            axes.bar_label(
                bars,
                [f"{rate:.0f}" if rate >= 100 else f"{rate:.2g}" for rate in rates],
                fontsize=8,
                padding=2,
            )
        axes.set_yscale("log")
        axes.set_xticks(range(len(levels)), levels)
        axes.set_ylabel(unit)
        axes.margins(y=0.15)
        axes.legend(ncols=len(counts), loc="lower right", bbox_to_anchor=(1, 1))  # above the bars
        axes.grid(axis="y")
        return to_svg(figure, title=title)
