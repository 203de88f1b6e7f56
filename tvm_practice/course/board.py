"""The board: every exercise with how it stands."""

from collections import Counter
from collections.abc import Callable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tvm_practice.course.catalog import MINE, exercises, phases
from tvm_practice.course.grading import Grader, Status, Verdict

_MARK: dict[Status, tuple[str, str]] = {
    "passed": ("done", "green"),
    "failed": ("wrong", "red"),
    "todo": ("to do", "yellow"),
    "unavailable": ("no engine", "dim"),
}


def grade_all(
    source: str = MINE, *, each: Callable[[Verdict], None] = lambda _: None
) -> list[Verdict]:
    """Grade every exercise of the course; `each` hears of every verdict as it is there."""
    verdicts = []
    with Grader() as grader:
        for exercise in exercises():
            verdict = grader.grade(exercise, source)
            each(verdict)
            verdicts.append(verdict)
    return verdicts


def grade_with_progress(source: str, console: Console) -> list[Verdict]:
    """`grade_all` behind a progress bar that disappears when it is done."""
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task("grading", total=len(exercises()))
        return grade_all(source, each=lambda _: progress.advance(bar))


def board(verdicts: list[Verdict]) -> Table:
    """A table of the phases, each exercise with its state."""
    by_id = {verdict.exercise.id: verdict for verdict in verdicts}
    table = Table("phase", "exercise", "state", title="The course")
    for phase in phases():
        for position, exercise in enumerate(phase.exercises):
            word, colour = _MARK[by_id[exercise.id].status]
            name = f"{phase.number} {phase.module}" if position == 0 else ""
            table.add_row(name, exercise.name, Text(word, colour))
        table.add_section()
    return table


def totals(verdicts: list[Verdict]) -> str:
    """One line: `12 done, 15 to do`."""
    counts = Counter(verdict.status for verdict in verdicts)
    return ", ".join(
        f"{counts[status]} {word}" for status, (word, _) in _MARK.items() if counts[status]
    )
