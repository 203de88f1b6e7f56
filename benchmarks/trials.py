"""How much a search's trials are worth: a model's speed after more and more of them, per tuner.

    nohup nice python benchmarks/trials.py &             # all of it: a day or more
    python benchmarks/trials.py --model bert_base --tuner ansor --trials 100,1000 --seeds 1
    python benchmarks/trials.py --table                  # only write docs/trials.md, its picture

A search of a seed goes on in one log: the export of 300 trials begins with the records of 100. Each
export is timed in turns with PyTorch. Points are kept in --out as they are measured, and a run goes
on where one before it ended, or was killed. A point that the machine was too busy for is not kept,
and its search waits for the next run, because longer ones would leave their records in its log. All
of seed 0 comes first, then all of seed 1, and so on.
"""

import json
import math
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "trials.md"
PICTURE = ROOT / "docs" / "pictures" / "trials.svg"
MODELS = ("resnet18", "bert_base")
TUNERS = ("autotvm", "ansor", "metaschedule")
TRIALS = (100, 300, 1000, 3000)
_ENGINES = {"autotvm": "classic", "ansor": "classic", "metaschedule": "current"}
# Two-sided 95% quantiles of Student's t by degrees of freedom.
_T95 = (12.71, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
_HEAD = """# Trials and speed

Made by `python benchmarks/trials.py`. A cell is the exported model's time over eager PyTorch's, the
two called in turns on the same threads; under 1, the export is faster. Of several seeds it is the
geometric mean with its 95% interval by Student's t; of one, the comparison's own. *share* is the
speed that this many trials reach of the speed after the most trials, the same seeds in both.

AutoTVM and Ansor tune the classic engine's export and MetaSchedule the current engine's, so their
untuned speeds differ.

Each cell is measured in a process of its own, and its interval holds what differs within that
process; ratios of two processes can be further apart. So *over untuned* is measured in the export's
process: the time of the model with the tuner's records over the untuned model's, in turns. Where it
is 1 or more, the exporter writes the untuned model, and the row above it shows that one.
"""


@dataclass(frozen=True)
class Point:
    """An export after a number of trials.

    Attributes:
        model: its name in `tvm_practice.models`, without `load_`.
        tuner: whose trials; with none of them, whose engine's default schedules.
        trials: asked for.
        seed: of the search.
        measured: the trials that its log had.
        seconds: that the command took.
        ratio: to PyTorch's time.
        ci95: the ratio's interval.
        over_untuned: the time of the model with its records over the untuned one's, as the exporter
            compared them, and the interval; None where no record beat a default schedule.
    """

    model: str
    tuner: str
    trials: int
    seed: int
    measured: int
    seconds: float
    ratio: float
    ci95: tuple[float, float]
    over_untuned: tuple[float, tuple[float, float]] | None = None

    @property
    def place(self) -> tuple[str, str, int, int]:
        return self.model, self.tuner, self.trials, self.seed


def wanted(
    models: Sequence[str], tuners: Sequence[str], trials: Sequence[int], seeds: int
) -> Iterator[tuple[str, str, int, int]]:
    """The places of the points in the order in which they are measured; 0 trials first."""
    for seed in range(seeds):
        for model in models:
            for tuner in tuners:
                for number in (0, *sorted(set(trials) - {0})):
                    yield model, tuner, number, seed


def measure(model: str, tuner: str, trials: int, seed: int, folder: Path) -> Point | str:
    """A point, or the reason why there is none, in a line.

    Args:
        model: as in `Point`.
        tuner: likewise.
        trials: likewise.
        seed: likewise.
        folder: keeps the log of each search and the last artifacts.
    """
    from tvm_practice.measure import Stopwatch

    search = folder / f"{model}-{tuner}-{seed}"
    artifacts = search / "artifacts"
    command = [sys.executable, "-m", "tvm_practice.run_autotvm"]
    command += [f"tvm_practice.models:load_{model}", "--artifacts", str(artifacts)]
    command += ["--tuning-trials", str(trials), "--measure-repeats", "50"]
    if trials:
        command += ["--tuner", tuner, "--seed", str(seed), "--tuning-log", str(search / "records")]
    else:
        command += ["--engine", _ENGINES[tuner]]
    shutil.rmtree(artifacts, ignore_errors=True)
    watch = Stopwatch()
    with watch("command"):
        ended = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if ended.returncode:
        said = ended.stderr.strip().splitlines()
        return said[-1] if said else f"exit code {ended.returncode}"
    summary = json.loads((artifacts / "summary.json").read_text())
    ratio = summary["ratio_to_pytorch"]
    if ratio["value"] is None:
        return str(ratio["verdict"])
    over = summary["tuning"].get("ratio_to_untuned") or {"value": None}
    return Point(
        *(model, tuner, trials, seed),
        measured=summary["tuning"].get("trials", 0),
        seconds=round(watch.seconds["command"], 1),
        ratio=ratio["value"],
        ci95=tuple(ratio["ci95"]),
        over_untuned=None if over["value"] is None else (over["value"], tuple(over["ci95"])),
    )


Measured = tuple[float, tuple[float, float]]  # a ratio and its interval


def mean_with_interval(ratios: Sequence[Measured]) -> Measured:
    """The geometric mean of ratios, one per seed, and its 95% interval."""
    if len(ratios) == 1:
        return ratios[0]
    logarithms = [math.log(value) for value, _ in ratios]
    center = statistics.fmean(logarithms)
    quantile = _T95[min(len(ratios) - 1, len(_T95)) - 1]
    half = quantile * statistics.stdev(logarithms) / math.sqrt(len(ratios))
    return math.exp(center), (math.exp(center - half), math.exp(center + half))


def table(points: Sequence[Point]) -> list[str]:
    """The page's lines: a table for each model."""
    lines: list[str] = []
    numbers = sorted({each.trials for each in points})
    for model in dict.fromkeys(each.model for each in points):
        lines += ["", f"## {model}", "", f"| tuner | {' | '.join(map(_column, numbers))} |"]
        lines.append("|---" * (len(numbers) + 1) + "|")
        for tuner in dict.fromkeys(each.tuner for each in points if each.model == model):
            of_tuner = [each for each in points if (each.model, each.tuner) == (model, tuner)]
            most = max(each.trials for each in of_tuner)
            final = {each.seed: each for each in of_tuner if each.trials == most}
            times, shares, overs = [], [], []
            for number in numbers:
                found = [each for each in of_tuner if each.trials == number]
                times.append(_cell([(each.ratio, each.ci95) for each in found]))
                overs.append(_cell([each.over_untuned for each in found if each.over_untuned]))
                both = [each for each in found if each.seed in final]
                shares.append(f"{_share(both, final):.0%}" if both else "—")
            last = max(each.seed for each in of_tuner)
            seeds = f"seeds 0 to {last}" if last else "seed 0"
            lines.append(f"| {tuner}, {seeds} | {' | '.join(times)} |")
            lines.append(f"| *share* | {' | '.join(shares)} |")
            lines.append(f"| *over untuned* | {' | '.join(overs)} |")
    return lines


def _cell(ratios: Sequence[Measured]) -> str:
    from tvm_practice.viz.tables import with_interval

    return with_interval(*mean_with_interval(ratios)) if ratios else "—"


def _column(trials: int) -> str:
    return f"{trials} trials" if trials else "untuned"


def _share(points: Sequence[Point], final: dict[int, Point]) -> float:
    """The speed of points over that of the same seeds after the most trials."""
    ratios = [math.log(final[each.seed].ratio / each.ratio) for each in points]
    return math.exp(statistics.fmean(ratios))


def page(report: dict[str, Any]) -> str:
    """The page of what was measured."""
    machine = report["environment"]
    where = f"Machine: {machine['processor']}, {report['threads']} threads; {machine['date'][:10]}."
    drawn = f"![Time over PyTorch's by trials, a line per tuner](pictures/{PICTURE.name})"
    return "\n".join([_HEAD, where, "", drawn, *table(_points(report))]) + "\n"


def picture(points: Sequence[Point]) -> str:
    """Each tuner's ratio by trials, with its interval, a panel per model, as SVG."""
    from tvm_practice.viz.drawing import new_figure, standalone, style, to_svg

    models = list(dict.fromkeys(each.model for each in points))
    numbers = sorted({each.trials for each in points})
    with style():
        figure = new_figure(4.2 * len(models), 3.6)
        panels = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
        for model, panel in zip(models, panels, strict=True):
            of_model = [each for each in points if each.model == model]
            for tuner in dict.fromkeys(each.tuner for each in of_model):
                of_tuner = [each for each in of_model if each.tuner == tuner]
                there = [each for each in numbers if any(one.trials == each for one in of_tuner)]
                found = [
                    mean_with_interval([(p.ratio, p.ci95) for p in of_tuner if p.trials == each])
                    for each in there
                ]
                ends = zip(*((mean - low, high - mean) for mean, (low, high) in found), strict=True)
                panel.errorbar(
                    [numbers.index(each) for each in there],
                    [mean for mean, _ in found],
                    yerr=list(ends),
                    label=tuner,
                    marker="o",
                    markersize=4,
                    capsize=3,
                )
            panel.axhline(1, linewidth=0.8, linestyle="--", color="C4")
            panel.set_xticks(range(len(numbers)), [str(each or "untuned") for each in numbers])
            panel.set(title=model, xlabel="trials", yscale="log")
            panel.yaxis.set_major_formatter("{x:g}")
            panel.yaxis.set_minor_formatter("{x:g}")
        figure.axes[0].set_ylabel("time / PyTorch's")
        figure.axes[0].legend()
        return standalone(to_svg(figure, title="Time over PyTorch's by trials"))


def _points(report: dict[str, Any]) -> list[Point]:
    points = []
    for each in report["points"]:
        over = each.get("over_untuned")
        found = {"ci95": tuple(each["ci95"]), "over_untuned": over and (over[0], tuple(over[1]))}
        points.append(Point(**{**each, **found}))
    return points


def _numbers(_: Any, __: Any, given: str) -> tuple[int, ...]:
    try:
        found = tuple(int(each) for each in given.split(","))
    except ValueError:
        found = ()
    if not found or min(found) < 1:
        raise click.BadParameter(f"{given!r} is not a list of positive whole numbers")
    return found


@click.command(
    epilog="\b\nExamples:\n  nohup nice python benchmarks/trials.py &\n"
    "  python benchmarks/trials.py --model bert_base --tuner ansor --trials 100,1000 --seeds 1"
)
@click.option("--model", "models", multiple=True, metavar="NAME", help="Of tvm_practice.models.")
@click.option("--tuner", "tuners", multiple=True, type=click.Choice(TUNERS), help="Default: all.")
@click.option("--trials", default=",".join(map(str, TRIALS)), show_default=True, callback=_numbers)
@click.option("--seeds", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), default=Path("runs/trials.json"),
    show_default=True, help="Points; logs are kept beside it.",
)  # fmt: skip
@click.option("--table", "only_table", is_flag=True, help="Write the page from what is there.")
def main(
    models: tuple[str, ...],
    tuners: tuple[str, ...],
    trials: tuple[int, ...],
    seeds: int,
    out: Path,
    only_table: bool,
) -> None:
    """Measure models after more and more trials, or go on; --table writes docs/trials.md."""
    from tvm_practice import engines
    from tvm_practice.measure import environment
    from tvm_practice.tvm_export.writing import write_json

    if only_table:
        if not out.exists():
            raise click.UsageError(f"there is no {out}; run it without --table")
        report = json.loads(out.read_text())
        PAGE.write_text(page(report))
        PICTURE.write_text(picture(_points(report)))
        click.echo(f"written: {PAGE} and {PICTURE}")
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    points = json.loads(out.read_text())["points"] if out.exists() else []
    known = {(each["model"], each["tuner"], each["trials"], each["seed"]) for each in points}
    left = 0
    waiting = set()
    for place in wanted(models or MODELS, tuners or TUNERS, trials, seeds):
        model, tuner, number, seed = place
        if place in known:
            continue
        if (model, tuner, seed) in waiting:
            left += 1
            continue
        click.echo(f"{model}, {tuner}, {number} trials, seed {seed}")
        found = measure(*place, out.with_suffix(""))
        if isinstance(found, str):
            left += 1
            waiting.add((model, tuner, seed))
            click.echo(f"  not kept: {found}", err=True)
            continue
        low, high = found.ci95
        click.echo(f"  {found.ratio:.3f} ({low:.3f} to {high:.3f}) of PyTorch's time")
        points.append(asdict(found))
        where = {"environment": environment(), "threads": engines.thread_count()}
        write_json(out, {**where, "points": points})
    if left:
        raise click.ClickException(f"{left} points are missing; the same command measures them")


if __name__ == "__main__":
    main()
