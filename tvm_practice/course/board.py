"""The board: every exercise with how it stands."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tvm_practice.course.catalog import MINE, Exercise, Phase, exercises, modules
from tvm_practice.course.difficulty import stars
from tvm_practice.course.grading import Grader, Status, Verdict

_MARK: dict[Status, tuple[str, str]] = {
    "passed": ("done", "green"),
    "failed": ("wrong", "red"),
    "todo": ("to do", "yellow"),
    "unavailable": ("no engine", "dim"),
}
_UNGRADED = ("not graded", "dim")
_BAR_WIDTH = 6


def grade_all(
    source: str = MINE,
    among: Collection[Exercise] | None = None,
    *,
    each: Callable[[Verdict], None] = lambda _: None,
) -> list[Verdict]:
    """Grade these exercises, or all; `each` hears of every verdict as it is there."""
    verdicts = []
    with Grader() as grader:
        for exercise in exercises() if among is None else among:
            verdict = grader.grade(exercise, source)
            each(verdict)
            verdicts.append(verdict)
    return verdicts


def grade_with_progress(
    source: str, console: Console, among: Collection[Exercise]
) -> list[Verdict]:
    """`grade_all` behind a progress bar that disappears when it is done."""
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("grading", total=len(among))
        return grade_all(source, among, each=lambda _: progress.advance(bar))


def word(verdict: Verdict | None) -> str:
    """`done`, `wrong`, `to do`, `no engine`, or `not graded` if there is no verdict."""
    return _mark(verdict)[0]


def board(verdicts: Collection[Verdict], among: Collection[Phase] | None = None) -> Table:
    """A table of the phases and labs, or these; an exercise without a verdict is not graded.

    Labs and practice without anything done share a row, so that the table fits a
    small terminal.
    """
    by_id = {verdict.exercise.id: verdict for verdict in verdicts}
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in ("phase", "how far", "state"):
        table.add_column(no_wrap=True)
    table.add_column()  # the exercises
    untouched = []
    for phase in modules() if among is None else among:
        states = {word(by_id.get(each.id)) for each in phase.exercises}
        if (phase.is_lab or phase.is_practice) and states == {_MARK["todo"][0]}:
            untouched.append(phase)
            continue
        label = (phase.label, bar(*done(phase, verdicts)))
        marks = {each: _mark(by_id.get(each.id)) for each in phase.exercises}
        for mark in [*_MARK.values(), _UNGRADED]:
            if its := [each for each, found in marks.items() if found == mark]:
                table.add_row(*label, Text(*mark), _names(its))
                label = ("", "")
    if untouched:
        whole = sum(len(phase.exercises) for phase in untouched)
        table.add_row("more", bar(0, whole), Text(*_MARK["todo"]), _keys(untouched))
    return table


def _keys(among: Sequence[Phase]) -> str:
    """What practice and labs are called, the numbers of adjacent labs at once: `lab1-4 lab6`."""
    keys = [each.key for each in among if not each.is_lab]
    runs: list[list[int]] = []
    for number in [each.number for each in among if each.is_lab]:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    keys += [f"lab{first}" + f"-{last}" * (last > first) for first, last in runs]
    return " ".join(keys)


def _names(among: Collection[Exercise]) -> str:
    """The exercises' names, by their stars; steps are counted with the whole if it is `among` them.

    Returns:
        `★tile, vectorize ★★packed_matmul (+4 steps)`: no line breaks behind a star.
    """
    names = {each.name for each in among}
    steps = Counter(each.step_of for each in among)
    by_stars: dict[str, list[str]] = {}
    for each in among:
        if each.step_of not in names:
            counted = f" (+{steps[each.name]} steps)" if steps[each.name] else ""
            by_stars.setdefault(stars(each), []).append(f"{each.name}{counted}")
    return " ".join(f"{each}{', '.join(by_stars[each])}" for each in sorted(by_stars))


def _mark(verdict: Verdict | None) -> tuple[str, str]:
    return _MARK[verdict.status] if verdict else _UNGRADED


def done(phase: Phase, verdicts: Iterable[Verdict]) -> tuple[int, int]:
    """How many of the phase's exercises pass, and how many it has."""
    passed = sum(
        verdict.status == "passed" for verdict in verdicts if verdict.exercise.phase == phase.module
    )
    return passed, len(phase.exercises)


def bar(part: int, whole: int, *, width: int = _BAR_WIDTH) -> str:
    """`█████░░░░░ 3/6`."""
    full = width * part // whole
    return f"{'█' * full}{'░' * (width - full)} {part}/{whole}"


def totals(verdicts: Iterable[Verdict]) -> str:
    """One line: `12 done, 15 to do`."""
    counts = Counter(verdict.status for verdict in verdicts)
    return ", ".join(
        f"{counts[status]} {word}" for status, (word, _) in _MARK.items() if counts[status]
    )
