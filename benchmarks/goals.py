"""The project's aims for speed beside what the other benchmarks measured; docs/speed.md.

What each machine reached is kept in benchmarks/reached.json: the page has a column for each.

python benchmarks/matmul.py && python benchmarks/tuning.py
python benchmarks/models.py && python benchmarks/startup.py
python benchmarks/goals.py
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import click
from beside_torch import geometric_mean, rates
from models import disturbance

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "speed.md"
REACHED = ROOT / "benchmarks" / "reached.json"
_SHOWN = 12  # operators of a profile
_PROFILED = ("calls", "milliseconds", "alone")
_WORTH_A_WORD = 0.05  # milliseconds
_HEAD = """# Speed: aims and figures

Made by `python benchmarks/goals.py` from the figures of the commands in the last column. A figure
without a unit is a ratio of times, the two sides called in turns in one process with the same
threads; under 1, the first side is faster. A tuned model is the better of the two engines' builds
with 32 to 64 trials. A column is one machine on one day; **bold** misses the aim. The rates show
the rival's strength: MKL, which `torch.matmul` calls, is made for Intel's processors.
"""


class Missing(Exception):
    """What was not measured."""


def value_of(ratio: dict[str, Any]) -> float:
    """A ratio's value; raises Missing where the machine was too busy to measure it."""
    if ratio["value"] is None:
        raise Missing
    return float(ratio["value"])


class Measured:
    """The benchmarks' JSON files under one folder."""

    def __init__(self, folder: Path):
        self._folder = folder

    def read(self, name: str) -> dict[str, Any]:
        file = self._folder / name
        if not file.exists():
            raise Missing
        found: dict[str, Any] = json.loads(file.read_text())
        return found

    def model(self, name: str, row: str) -> dict[str, Any]:
        """A model's row, by the name of its compiler."""
        for each in self.read(f"models/{name}/report.json")["rows"]:
            if each["verified"] is False:
                continue  # how long wrong outputs take is no figure
            # A row without operators is of a revision that tuned otherwise.
            if each["name"] == row and each["ratio"] is not None and "operators" in each:
                found: dict[str, Any] = each
                return found
        raise Missing

    def was_disturbed(self, name: str, command: str) -> bool:
        """Whether something else ran while `benchmarks/models.py` timed a model."""
        try:
            report = self.read(f"models/{name}/report.json")
        except Missing:
            return False
        return "models.py" in command and disturbance(report) is not None

    def ratio(self, name: str, row: str) -> float:
        """A compiler's time on a model over PyTorch eager's."""
        return value_of(self.model(name, row)["ratio"])

    def best(self, name: str) -> float:
        """The better of Relay's and Relax's tuned builds, over PyTorch eager."""
        ratios = []
        for row in ("metaschedule", "autotvm"):
            try:
                ratios.append(self.ratio(name, row))
            except Missing:
                pass
        if not ratios:
            raise Missing
        return min(ratios)

    def against(self, name: str, rival: str) -> float:
        """The same over a rival that it was timed in turns with."""
        found = self.read("rivals.json")["models"].get(name)
        if not found:
            raise Missing
        return min(1 / value_of(each["ratio"][rival]) for each in found.values())

    def rivals(self, name: str) -> dict[str, Any]:
        """What benchmarks/rivals.py measured of the current engine's build of a model."""
        found: dict[str, Any] = self.read("rivals.json")["models"].get(name, {}).get("current")
        if not found:
            raise Missing
        return found

    def matmul(self, *shape: int) -> dict[str, Any]:
        for row in self.read("matmul.json")["rows"]:
            if tuple(row["shape"]) == shape:
                found: dict[str, Any] = row
                return found
        raise Missing

    def machine(self) -> tuple[dict[str, Any], int]:
        """The environment that one of the files tells of, and the threads."""
        for name in ("matmul.json", "tuning.json", "rivals.json", "startup.json"):
            try:
                found = self.read(name)
            except Missing:
                continue
            return found["environment"], int(found["threads"])
        raise Missing

    def rate(self, side: str) -> float:
        """GFLOP/s of a side at 1024³."""
        return rates(self.matmul(1024, 1024, 1024)["comparison"], 1024**3)[side]

    def matmuls(self) -> float:
        """The geometric mean over the squares from 512 to 2048 and BERT's shapes."""
        rows = self.read("matmul.json")["rows"]
        return geometric_mean(
            value_of(row["comparison"]["ratio"]["packed"])
            for row in rows
            if 512 <= row["shape"][0] <= 2048 or row["shape"][0] == 128
        )

    def tuned_matmul(self) -> float:
        """What the project's own space had found after 32 trials, over torch.matmul."""
        judged = self.read("tuning.json")["judged"].get("current")
        name = judged and judged["names"].get("register-tiles", {}).get("32 trials")
        if not name:
            raise Missing
        return value_of(judged["ratio"][name])

    def search_and_after(self) -> list[str]:
        """What the trials of the project's own space took, and what was chosen takes in turns."""
        report = self.read("tuning.json")
        judged, count = report["judged"]["current"], min(report["trials"])
        trials = report["searches"]["register-tiles"]["trials"]["trials"][:count]
        times = sorted(1e3 * each["seconds"] for each in trials if each["error"] is None)
        chosen = judged["names"]["register-tiles"][f"{count} trials"]
        longest = judged["names"]["register-tiles"][f"{report['seconds']:.0f} s"]
        near = sum(each < 1.1 * times[0] for each in times)
        latency, ratio = judged["latency"], judged["ratio"]
        return [
            f"The fastest of the {count} trials of this one search took {times[0]:.2f} ms, {near} "
            "were within a tenth of it; of the best eight the one with the least product of its "
            "trial's time and its time in turns with the others was chosen. In turns with torch "
            f"that takes {latency[chosen]['p50']:.2f} ms, torch {latency['torch']['p50']:.2f}. A "
            f"search of {report['seconds']:.0f} s found one that takes "
            f"{ratio[longest]['value']:.2f} of torch's time; the same blocking by hand, with A "
            f"packed too, {ratio['by hand']['value']:.2f}.",
        ]

    def tuning_seconds(self) -> float:
        searches = self.read("tuning.json")["searches"]
        if "register-tiles" not in searches:
            raise Missing
        return float(searches["register-tiles"]["trials"]["seconds"])

    def second_export(self) -> float:
        """Seconds of the second run of ResNet-18's export, the slower engine's."""
        return max(
            float(median(each["command"]["again"]["seconds"] for each in rounds))
            for rounds in self._exports().values()
        )

    def second_export_in_parts(self) -> list[str]:
        """Which seconds of it are spent before there is anything to compare."""
        lines = ["| engine | the command again, s | of which PyTorch's import | the model |"]
        lines.append("|---|---|---|---|")
        for engine, rounds in self._exports().items():
            again = median(each["command"]["again"]["seconds"] for each in rounds)
            pytorch, model = (
                median(each["compile"][part]["seconds"] for each in rounds)
                for part in ("pytorch", "model")
            )
            lines.append(f"| {engine} | {again:.1f} | {pytorch:.1f} | {model:.1f} |")
        return lines

    def _exports(self) -> dict[str, list[dict[str, Any]]]:
        """The rounds of ResNet-18's export by engine."""
        found = {
            row["engine"]: row["rounds"]
            for row in self.read("startup.json")["rows"]
            if row["model"] == "resnet18" and row["rounds"]
        }
        if not found:
            raise Missing
        return found


@dataclass(frozen=True)
class Goal:
    """A row of the table.

    Attributes:
        text: what is measured over what.
        limit: the aim, in words.
        met: whether a figure meets it.
        figure: reads it.
        command: what measures it.
        profile: (model, compiler) whose operators explain a miss.
        why: else what explains it, in lines of text.
    """

    text: str
    limit: str
    met: Callable[[float], bool]
    figure: Callable[[Measured], float]
    command: str
    profile: tuple[str, str] | None = None
    why: Callable[[Measured], list[str]] | None = None
    form: str = "{:.2f}"


def _most(limit: float) -> Callable[[float], bool]:
    return lambda value: value <= limit


def _model(
    text: str,
    limit: float,
    name: str,
    figure: Callable[[Measured], float],
    tuner: str,
    command: str = "models",
) -> Goal:
    command = f"python benchmarks/{command}.py --model {name}"
    return Goal(text, f"≤ {limit:.2f}", _most(limit), figure, command, (name, tuner))


GOALS = (
    Goal(
        "hand-written matmul 1024³ / torch.matmul",
        "≤ 1.05",
        _most(1.05),
        lambda all: value_of(all.matmul(1024, 1024, 1024)["comparison"]["ratio"]["packed"]),
        "python benchmarks/matmul.py",
    ),
    Goal(
        "the same over 512 to 2048 and BERT's shapes, geometric mean",
        "≤ 1.10",
        _most(1.10),
        Measured.matmuls,
        "python benchmarks/matmul.py",
    ),
    Goal(
        "naive / best schedule at 1024³",
        "≥ 150",
        lambda value: value >= 150,
        lambda all: value_of(all.matmul(1024, 1024, 1024)["naive"]["ratio"]["naive"]),
        "python benchmarks/matmul.py",
        form="{:.0f}",
    ),
    Goal(
        "own space, 32 trials at 1024³ / torch.matmul",
        "≤ 1.05",
        _most(1.05),
        Measured.tuned_matmul,
        "python benchmarks/tuning.py",
        why=lambda all: all.search_and_after(),
    ),
    Goal(
        "64 MetaSchedule trials at 1024³, two threads",
        "≤ 30 s",
        _most(30),
        Measured.tuning_seconds,
        "python benchmarks/tuning.py",
        form="{:.0f} s",
    ),
    _model(
        "BERT-base, tuned / PyTorch eager", 0.90, "bert_base",
        lambda all: all.best("bert_base"), "metaschedule",
    ),
    _model(
        "BERT-base, tuned / torch.compile", 1.00, "bert_base",
        lambda all: all.against("bert_base", "compile"), "metaschedule", "rivals",
    ),
    _model(
        "ResNet-18, tuned / PyTorch eager", 0.60, "resnet18",
        lambda all: all.best("resnet18"), "metaschedule",
    ),
    _model(
        "ResNet-18, tuned / ONNX Runtime", 1.00, "resnet18",
        lambda all: all.against("resnet18", "onnx"), "metaschedule", "rivals",
    ),
    _model(
        "BERT-base, untuned / PyTorch eager", 1.5, "bert_base",
        lambda all: all.ratio("bert_base", "relax"), "relax",
    ),
    _model(
        "ResNet-18, untuned / PyTorch eager", 1.5, "resnet18",
        lambda all: all.ratio("resnet18", "relax"), "relax",
    ),
    _model(
        "Mamba-130M, tuned / PyTorch eager", 0.70, "mamba",
        lambda all: all.best("mamba"), "metaschedule",
    ),
    _model(
        "GPT-2 124M prefill, tuned / PyTorch eager", 0.90, "gpt2",
        lambda all: all.best("gpt2"), "metaschedule",
    ),
    Goal(
        "second run of ResNet-18's export",
        "≤ 3 s",
        _most(3),
        Measured.second_export,
        "python benchmarks/startup.py --model resnet18",
        why=lambda all: all.second_export_in_parts(),
        form="{:.1f} s",
    ),
)  # fmt: skip


RATES = (
    Goal(
        "(the rate of torch.matmul at 1024³, GFLOP/s)",
        "",
        bool,
        lambda all: all.rate("torch"),
        "python benchmarks/matmul.py",
        form="{:.0f}",
    ),
    Goal(
        "(the rate of the hand-written matmul)",
        "",
        bool,
        lambda all: all.rate("packed"),
        "python benchmarks/matmul.py",
        form="{:.0f}",
    ),
)


def reached(measured: Measured) -> dict[str, Any]:
    """What a machine reached.

    Returns:
        {"threads", "date", "cells": what the page shows by a goal's text, "missed": the lines below
        the table by a missed goal's}.
    """
    machine, threads = measured.machine()
    cells: dict[str, str] = {}
    missed: dict[str, list[str]] = {}
    for goal in (*GOALS, *RATES):
        try:
            value = goal.figure(measured)
        except Missing:
            continue
        cell = goal.form.format(value)
        if not goal.met(value):
            cell = f"**{cell}**"
            missed[goal.text] = goal.why(measured) if goal.why else _profile(measured, goal)
        if goal.profile and measured.was_disturbed(goal.profile[0], goal.command):
            cell += " (the machine was not quiet)"
        cells[goal.text] = cell
    return {
        "processor": machine["processor"],
        "threads": threads,
        "date": machine["date"][:10],
        "cells": cells,
        "missed": missed,
    }


def page(machines: list[dict[str, Any]]) -> str:
    """docs/speed.md."""
    titles = [f"{each['processor']}, {each['threads']} threads" for each in machines]
    columns = [f"{title}, {each['date']}" for title, each in zip(titles, machines, strict=True)]
    lines = [
        _HEAD,
        f"| | aim | {' | '.join(columns)} | command |",
        "|---|---" + "|---" * len(machines) + "|---|",
    ]
    for goal in (*GOALS, *RATES):
        cells = [each["cells"].get(goal.text, "not measured") for each in machines]
        lines.append(f"| {goal.text} | {goal.limit} | {' | '.join(cells)} | `{goal.command}` |")
    for title, each in zip(titles, machines, strict=True):
        if "note" in each:
            lines += ["", f"{title}: {each['note']}"]
    for title, each in zip(titles, machines, strict=True):
        for text, profile in each["missed"].items():
            lines += ["", f"## Missed on {title}: {text}", "", *profile]
    return "\n".join(lines) + "\n"


def _profile(measured: Measured, goal: Goal) -> list[str]:
    """Where the time of a missed goal's model goes."""
    try:
        found = measured.rivals(goal.profile[0]) if goal.profile else {}
    except Missing:
        found = {}
    operators = found.get("operators")
    if not operators:
        return [f"`{goal.command}` measures where the time goes."]
    shown, others = operators[:_SHOWN], operators[_SHOWN:]
    rows = [(f"`{each['name']}`", [each]) for each in shown]
    rows += [(f"{len(others)} others", others), ("all", operators)]
    lines = ["| function | calls | ms in the model | ms alone |", "|---|---|---|---|"]
    for name, each in rows:
        calls, within, alone = (sum(one[key] for one in each) for key in _PROFILED)
        lines.append(f"| {name} | {calls} | {within:.2f} | {alone:.2f} |")
    kinds = sorted(found["onnx_operators"].items(), key=lambda item: -item[1])
    theirs = ", ".join(f"{name} {spent:.2f}" for name, spent in kinds if spent >= _WORTH_A_WORD)
    if found["ratio"]["onnx"]["ci95"] is None:
        return [found["ratio"]["onnx"]["verdict"]]
    high, low = (1 / float(bound) for bound in found["ratio"]["onnx"]["ci95"])
    between = "there is no significant difference" if low <= 1 <= high else "the other is faster"
    return [
        *lines,
        "",
        f"Over ONNX Runtime, 95% interval: {low:.2f} to {high:.2f}; {between}.",
        "",
        "Alone: called again and again on the same operands, so that they are in the cache and "
        "nothing has to be fetched from memory or from the other core. A function's extra time "
        "in the model goes to fetching.",
        "",
        f"ONNX Runtime's own account of its operators, in ms: {theirs}.",
    ]


@click.command(
    epilog="\b\nExamples:\n  python benchmarks/goals.py\n"
    "  python benchmarks/goals.py --runs elsewhere"
)
@click.option(
    "--runs",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder the benchmarks wrote to.",
)
def main(runs: Path) -> None:
    """Write docs/speed.md from the JSON files of the benchmarks, this machine's column anew."""
    names = ("matmul.json", "tuning.json", "rivals.json", "startup.json")
    if not any((runs / name).exists() for name in names):
        raise click.UsageError(f"{runs} has none of {', '.join(names)}: run the others first")
    here = reached(Measured(runs))
    kept = json.loads(REACHED.read_text()) if REACHED.exists() else []
    machines = [each for each in kept if each["processor"] != here["processor"]]
    machines = [here, *machines]
    REACHED.write_text(json.dumps(machines, indent=1, ensure_ascii=False) + "\n")
    text = page(machines)
    PAGE.write_text(text)
    click.echo(text[text.index("| |") :])
    click.echo(f"written: {PAGE}")


if __name__ == "__main__":
    main()
