"""Right answers graded while other processes use the processors: none may be refused.

    python -m tests.mutants.load                    # 1,000 gradings
    python -m tests.mutants.load --resume           # those of them that are not kept yet
    python -m tests.mutants.load --gradings 100 -k puzzles
    python -m tests.mutants.load --report           # write the table of docs/grading.md

A refusal is a false alarm: its message and its seed are printed, and the exit code is 1. Each
grading is a line of runs/load.jsonl.
"""

import itertools
import json
import os
import random
import sys
import tempfile
import textwrap
import time
from collections import Counter
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tests.mutants import pasted, right_answers
from tvm_practice.course.catalog import MINE, exercises, find, phase
from tvm_practice.course.editing import stubbed
from tvm_practice.course.grading import Grader, Verdict, source_file
from tvm_practice.course.telling import reference
from tvm_practice.engines.stopping import ended_by_signals

ROOT = Path(__file__).parent.parent.parent
KEPT = ROOT / "runs" / "load.jsonl"
PAGE = ROOT / "docs" / "grading.md"
BEGIN, END = "<!-- made by python -m tests.mutants.load --report -->", "<!-- end of load -->"

# Busy processes, each with the share of a processor that it uses; the next of them after some
# gradings.
_LOADS: tuple[tuple[float, ...], ...] = ((0.5,), (1.0, 1.0), (1.0,) * 4, (0.1, 0.5, 1.0))
_GRADINGS_PER_LOAD = 25
# Their checks take a second or less; each answer of the other exercises is graded so often.
_CHEAP = ("te_basics", "puzzles", "manual_schedule", "bug_hunts", "schedule_analysis")
_TIMES_EACH_OTHER = 1
# Searches, a minute or more each: only if asked for by -k.
_SEARCHES = "auto_tune"


@dataclass(frozen=True)
class Answer:
    """A right answer: `text` is the phase's file with it, every other exercise a stub."""

    exercise: str
    name: str
    text: str


def answers(only: str = "") -> list[Answer]:
    """The reference of each exercise whose id holds `only`, and the right answers beside it."""
    left_out = "" if only else _SEARCHES
    chosen = [
        each
        for each in exercises()
        if only in each.id and not each.phase.startswith(left_out or " ")
    ]
    stubs = {each.phase: _stubs(each.phase) for each in chosen}
    found = [
        Answer(each.id, "reference", pasted(stubs[each.phase], each, reference(each)))
        for each in chosen
    ]
    for each in right_answers():
        name = f"{each.phase}.{each.exercise}"
        if name in {each.id for each in chosen}:
            found.append(Answer(name, each.name, each.paste(stubs[each.phase])))
    return found


def _stubs(module: str) -> str:
    text = source_file(module, MINE).read_text()
    for exercise in phase(module).exercises:
        text = stubbed(text, exercise.name)
    return text


def order(found: Sequence[Answer], gradings: int, seed: int) -> list[Answer]:
    """That many of them, in a drawn order: the cheap ones again and again, the others rarely."""
    rng = random.Random(seed)
    cheap = [each for each in found if each.exercise.startswith(_CHEAP)]
    others = [each for each in found if not each.exercise.startswith(_CHEAP)]
    rng.shuffle(others)
    chosen = others * (_TIMES_EACH_OTHER if cheap else -(-gradings // max(1, len(others))))
    chosen = chosen[:gradings]
    if cheap:
        chosen += itertools.islice(itertools.cycle(cheap), gradings - len(chosen))
    rng.shuffle(chosen)
    return chosen


def remaining(chosen: Sequence[Answer], records: Sequence[dict[str, Any]]) -> list[Answer]:
    """The answers of `chosen`, in its order, that are left when `records` are graded."""
    done = Counter((each["exercise"], each["name"]) for each in records)
    left = []
    for answer in chosen:
        key = (answer.exercise, answer.name)
        if done[key]:
            done[key] -= 1
        else:
            left.append(answer)
    return left


def grade(
    grader: Grader, chosen: Sequence[Answer], loads: Iterable[Sequence[float]] = _LOADS
) -> Generator[tuple[Answer, Sequence[float], Verdict]]:
    """Grade each beside load; yields the load and the verdict, unless its TVM is missing.

    The next of `loads`, which begin again at their end, follows after some gradings.
    """
    with tempfile.TemporaryDirectory() as folder:
        parts = [
            chosen[at : at + _GRADINGS_PER_LOAD] for at in range(0, len(chosen), _GRADINGS_PER_LOAD)
        ]
        for part, shares in zip(parts, itertools.cycle(loads), strict=False):
            with _load_of(shares):
                for answer in part:
                    exercise = find(answer.exercise)
                    file = Path(folder) / f"{phase(exercise.phase).name}.py"
                    file.write_text(answer.text)
                    verdict = grader.grade(exercise, str(file))
                    if verdict.status != "unavailable":
                        yield answer, shares, verdict


def _load_of(shares: Sequence[float]) -> AbstractContextManager[list[int]]:
    folder = str(ROOT / "benchmarks")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    from busy_machine import load_of

    return load_of(shares)


def table(records: Sequence[dict[str, Any]]) -> str:
    """The gradings by load, as Markdown."""
    lines = [
        "| busy processes, by their shares of a processor | gradings | false alarms | longest, s |",
        "|---|---:|---:|---:|",
    ]
    loads = sorted({tuple(each["load"]) for each in records}, key=lambda each: (sum(each), each))
    for shares in [*loads, None]:
        some = [each for each in records if shares is None or tuple(each["load"]) == shares]
        label = "all" if shares is None else " + ".join(f"{share:g}" for share in shares)
        alarms = sum(each["status"] != "passed" for each in some)
        longest = max((each["seconds"] for each in some), default=0.0)
        lines.append(f"| {label} | {len(some)} | {alarms} | {longest:.1f} |")
    answers_tried = len({(each["exercise"], each["name"]) for each in records})
    exercises_tried = len({each["exercise"] for each in records})
    told = f"These are {answers_tried} right answers to {exercises_tried} exercises."
    averages = [each["load_average"] for each in records if "load_average" in each]
    if averages:
        told += (
            f" On {os.cpu_count()} processors, the load average was {min(averages):.1f} to "
            f"{max(averages):.1f}: the busy processes, the grader and all other programs."
        )
    return "\n".join([*lines, "", *textwrap.wrap(told, 100)])


def _kept() -> list[dict[str, Any]]:
    if not KEPT.exists():
        raise click.UsageError(f"nothing was graded: {KEPT} is missing")
    return [json.loads(line) for line in KEPT.read_text().splitlines()]


def _write_page() -> None:
    records = _kept()
    text = PAGE.read_text()
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}\n\n{table(records)}\n\n{END}{after}")


@click.command()
@click.option("--gradings", type=click.IntRange(1), default=1000, show_default=True)
@click.option("-k", "only", default="", help="Exercises whose ids hold this text.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of the order.")
@click.option("--minutes", type=float, default=120.0, show_default=True, help="Then begin no more.")
@click.option("--resume", is_flag=True, help="Count the gradings of runs/load.jsonl, if any.")
@click.option("--report", is_flag=True, help="Only write the table of docs/grading.md.")
def main(gradings: int, only: str, seed: int, minutes: float, resume: bool, report: bool) -> None:
    """Grade right answers beside load; exit code 1 if one was refused, or nothing graded."""
    if report:
        _write_page()
        return
    found = answers(only)
    if not found:
        raise click.UsageError(f"no exercise's id holds {only!r}")
    KEPT.parent.mkdir(exist_ok=True)
    records = _kept() if resume and KEPT.exists() else []
    chosen = remaining(order(found, gradings, seed), records)
    loads = itertools.islice(itertools.cycle(_LOADS), len(records) // _GRADINGS_PER_LOAD, None)
    until = time.monotonic() + 60 * minutes
    with (
        ended_by_signals(),
        Grader() as grader,
        KEPT.open("a" if records else "w") as log,
        closing(grade(grader, chosen, loads)) as graded,
    ):
        for answer, shares, verdict in graded:
            records.append(_record(answer, shares, verdict))
            log.write(json.dumps(records[-1]) + "\n")
            log.flush()
            if verdict.status != "passed":
                click.echo(f"{answer.exercise}, {answer.name}: {verdict.message}")
            if time.monotonic() > until:
                break
    alarms = sum(each["status"] != "passed" for each in records)
    click.echo(f"{len(records)} gradings beside load, {alarms} false alarms")
    raise SystemExit(1 if alarms or not records else 0)


def _record(answer: Answer, shares: Sequence[float], verdict: Verdict) -> dict[str, Any]:
    return {
        "exercise": answer.exercise, "name": answer.name, "load": list(shares),
        "load_average": round(os.getloadavg()[0], 1), "status": verdict.status,
        "seconds": round(verdict.seconds, 2), "message": verdict.message,
    }  # fmt: skip


if __name__ == "__main__":
    main()
