"""Estimated against measured time, a dot per schedule."""

from tvm_practice.viz.drawing import new_figure, style, to_svg
from tvm_practice.viz.ranking.study import Study


def rank_svg(study: Study) -> str:
    """The picture for a page."""
    with style():
        figure = new_figure(5.2, 4.4)
        axes = figure.subplots()
        measured = [1e3 * each.measured for each in study.schedules]
        estimated = [1e3 * each.estimated for each in study.schedules]
        axes.loglog(estimated, measured, "o", markersize=4.5, color="#0072b2", alpha=0.8)
        ends = [min(*measured, *estimated), max(*measured, *estimated)]
        axes.loglog(ends, ends, "--", color="#8a8f98", linewidth=1)
        axes.set_xlabel("ms by the model")
        axes.set_ylabel("ms measured")
        axes.set_title(f"{len(measured)} schedules of {study.times.size}³: tau {study.tau}")
        return to_svg(figure, title=f"Time by the model and measured, tau {study.tau}")
