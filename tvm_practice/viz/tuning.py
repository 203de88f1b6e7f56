"""Tuning drawn: the best speed so far, all trials by speed, predicted against measured."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.tvm_export.tuners.history import Trial, best_so_far
from tvm_practice.viz.drawing import new_figure, style, to_svg
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tvm_practice.tvm_export.tuners.prediction import Prediction


def plot_tuning(
    path: Path,
    histories: Mapping[str, Sequence[Trial]],
    *,
    flop: float,
    title: str,
    levels: Mapping[str, float] | None = None,
) -> Path:
    """Save a picture of two panels: best GFLOP/s so far over trials, and over seconds.

    Failed trials are crosses at the bottom of the first panel. A tuner whose log has no times is
    in the first panel only.

    Args:
        path: file to write; its suffix gives the format.
        histories: each tuner's trials, in order.
        flop: operations of one run of the workload.
        title: of the picture.
        levels: speeds to compare with, GFLOP/s by name, drawn as horizontal lines.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.5), layout="constrained")
    _draw_best(figure, histories, flop=flop, levels=levels or {})
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    return path


def best_svg(
    histories: Mapping[str, Sequence[Trial]],
    *,
    flop: float,
    title: str,
    levels: Mapping[str, float] | None = None,
) -> str:
    """The picture of `plot_tuning` for a page."""
    with style():
        figure = new_figure(8.4, 3.6)
        _draw_best(figure, histories, flop=flop, levels=levels or {})
        return to_svg(figure, title=title)


def _draw_best(
    figure: "Figure",
    histories: Mapping[str, Sequence[Trial]],
    *,
    flop: float,
    levels: Mapping[str, float],
) -> None:
    by_trial, by_second = figure.subplots(1, 2, sharey=True)
    for colour, (tuner, trials) in enumerate(histories.items()):
        style: dict[str, Any] = {
            "color": f"C{colour}",
            "where": "post",
            "label": tuner,
            "marker": ".",
        }
        speeds = [None if each is None else flop / each / 1e9 for each in best_so_far(trials)]
        valid = [
            (trial, speed) for trial, speed in zip(trials, speeds, strict=True) if speed is not None
        ]
        by_trial.step([t.number for t, _ in valid], [s for _, s in valid], **style)
        failed = [trial.number for trial in trials if trial.seconds is None]
        if failed:
            by_trial.plot(failed, [0] * len(failed), "x", color=style["color"], clip_on=False)
        timed = [(trial.elapsed, speed) for trial, speed in valid if trial.elapsed is not None]
        by_second.step([at for at, _ in timed], [s for _, s in timed], **style)
    for dashes, (name, level) in enumerate(levels.items()):
        for axes in (by_trial, by_second):
            axes.axhline(
                level, color="#8a8f98", linestyle=("--", ":", "-.")[dashes % 3], label=name
            )
    by_trial.set_xlabel("trials")
    by_second.set_xlabel("seconds since tuning began")
    by_trial.set_ylabel("best GFLOP/s so far")
    by_trial.set_ylim(bottom=0)
    for axes in (by_trial, by_second):
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
    figure.legend(*by_trial.get_legend_handles_labels(), loc="outside lower center", ncols=3)


def distribution_svg(histories: Mapping[str, Sequence[Trial]], *, flop: float, title: str) -> str:
    """How fast the trials of each tuner were: one point a trial, and the median as a bar.

    Trials that failed are counted beside the name. Points to the right are from later trials.
    """
    import numpy as np

    with style():
        figure = new_figure(6.2, 3.2)
        axes = figure.subplots()
        labels = []
        for place, (tuner, trials) in enumerate(histories.items()):
            valid = [trial for trial in trials if trial.seconds is not None]
            failed = len(trials) - len(valid)
            labels.append(
                f"{tuner}\n{number_of(len(valid), 'trial')}"
                + (f", {failed} failed" if failed else "")
            )
            if not valid:
                continue
            rates = [flop / trial.seconds / 1e9 for trial in valid if trial.seconds]
            last = max(trial.number for trial in trials)
            at = [place + 0.7 * (trial.number / last - 0.5) for trial in valid]
            axes.plot(at, rates, "o", color=f"C{place}", alpha=0.6, markersize=4)
            middle = float(np.median(rates))
            axes.hlines(middle, place - 0.4, place + 0.4, color=f"C{place}", linewidth=2)
        axes.set_xticks(range(len(labels)), labels)
        axes.set_xlim(-0.6, len(labels) - 0.4)
        axes.set_ylim(bottom=0)
        axes.set_ylabel("GFLOP/s of a trial")
        axes.grid(axis="y")
        return to_svg(figure, title=title)


def prediction_svg(
    predictions: Mapping[str, Sequence["Prediction"]], *, flop: float, title: str
) -> str:
    """What each tuner's model said before a trial was measured, and what it then measured.

    Both axes are ranks, 1 the slowest: the models' scores have scales of their own. On the
    diagonal the model was right. Kendall's tau is 1 for the same order, 0 for chance.
    """
    from scipy.stats import rankdata

    from tvm_practice.tvm_export.tuners.prediction import rank_correlation

    with style():
        figure = new_figure(2.7 * max(1, len(predictions)), 2.9)
        panels = figure.subplots(1, max(1, len(predictions)), squeeze=False)[0]
        for place, (axes, (tuner, found)) in enumerate(
            zip(panels, predictions.items(), strict=False)
        ):
            foreseen = rankdata([each.score for each in found])
            measured = rankdata([flop / each.seconds for each in found])
            axes.plot([1, len(found)], [1, len(found)], color="#8a8f98", linewidth=1)
            axes.plot(foreseen, measured, "o", color=f"C{place}", alpha=0.7, markersize=4)
            tau = rank_correlation(found)
            axes.set_title(f"{tuner}: " + ("too few" if tau is None else f"tau {tau:.2f}"))
            axes.set_xlabel("rank, predicted")
            axes.set_aspect("equal")
        panels[0].set_ylabel("rank, measured")
        return to_svg(figure, title=title)


def tasks_svg(histories: Mapping[str, Sequence[Trial]], *, title: str) -> str:
    """The trials of a model's tasks: time over the task's best, in the order of measuring.

    Args:
        histories: by tuner, its trials; a trial's `task` says which task it is of.
    """
    with style():
        figure = new_figure(3.1 * len(histories), 2.9)
        panels = figure.subplots(1, len(histories), squeeze=False, sharey=True)[0]
        for axes, (tuner, trials) in zip(panels, histories.items(), strict=True):
            best: dict[str, float] = {}
            for trial in trials:
                if trial.seconds is not None:
                    best[trial.task] = min(trial.seconds, best.get(trial.task, trial.seconds))
            for task, fastest in best.items():
                own = [each for each in trials if each.task == task and each.seconds is not None]
                axes.plot(
                    [each.number for each in own],
                    [each.seconds / fastest for each in own if each.seconds is not None],
                    "o",
                    markersize=3.5,
                    alpha=0.8,
                )
            failed = [each.number for each in trials if each.seconds is None]
            if failed:
                axes.plot(failed, [1] * len(failed), "x", color="#8a8f98", clip_on=False)
            axes.set_yscale("log")
            axes.set_title(f"{tuner}: {number_of(len(best), 'task')}", fontsize=9)
            axes.set_xlabel("trial")
            axes.grid(axis="y")
        panels[0].set_ylabel("time / best of the task")
        return to_svg(figure, title=title)
