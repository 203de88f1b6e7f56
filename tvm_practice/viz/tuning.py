"""Curves of tuning: the best speed so far, by trial and by second."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.tuners.history import Trial, best_so_far


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
    for dashes, (name, level) in enumerate((levels or {}).items()):
        for axes in (by_trial, by_second):
            axes.axhline(level, color="0.4", linestyle=("--", ":", "-.")[dashes % 3], label=name)
    by_trial.set_xlabel("trials")
    by_second.set_xlabel("seconds since tuning began")
    by_trial.set_ylabel("best GFLOP/s so far")
    by_trial.set_ylim(bottom=0)
    for axes in (by_trial, by_second):
        axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
    figure.legend(*by_trial.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    return path
