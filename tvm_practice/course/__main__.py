"""`python -m tvm_practice.course`: the board, a hint, a check."""

import sys
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tvm_practice.course.catalog import Exercise

_EXERCISE = click.argument("exercise", metavar="EXERCISE")


@click.group(
    epilog="\b\nExamples:\n  python -m tvm_practice.course list\n"
    "  python -m tvm_practice.course hint tile --level 2\n"
    "  python -m tvm_practice.course check te_basics.matmul"
)
def main() -> None:
    """See how you stand, get a hint, check one exercise."""


@main.command("list")
@click.option("--solutions", is_flag=True, help="Grade the reference solutions instead.")
def list_exercises(solutions: bool) -> None:
    """Grade every exercise and show the board."""
    from rich.console import Console

    from tvm_practice.course.board import board, grade_with_progress, totals
    from tvm_practice.course.catalog import MINE, SOLUTIONS

    console = Console()
    verdicts = grade_with_progress(SOLUTIONS if solutions else MINE, console)
    console.print(board(verdicts))
    console.print(totals(verdicts), highlight=False)


@main.command()
@_EXERCISE
@click.option("--level", type=click.IntRange(1, 3), default=1, show_default=True)
def hint(exercise: str, level: int) -> None:
    """Show a hint: 1 says which way, 3 nearly says it all."""
    found = _find(exercise)
    click.echo(f"{found.id}: {found.title}")
    click.echo(f"Hint {level} of 3: {found.hints[level - 1]}")
    if level == 3:
        click.echo(f"A correct answer gives:\n\n{found.looks_like}")


@main.command()
@_EXERCISE
@click.option("--solutions", is_flag=True, help="Check the reference solution instead.")
def check(exercise: str, solutions: bool) -> None:
    """Grade one exercise. Exit code 0 if it passes, 1 if it is wrong or to do."""
    from tvm_practice.course.catalog import MINE, SOLUTIONS
    from tvm_practice.course.grading import Grader

    found = _find(exercise)
    with Grader() as grader:
        verdict = grader.grade(found, SOLUTIONS if solutions else MINE)
    if verdict.status == "passed":
        click.echo(f"{found.id} passes")
        return
    word = {"failed": "is wrong", "todo": "is to do", "unavailable": "cannot be graded here"}
    click.echo(f"{found.id} {word[verdict.status]}\n{verdict.message}")
    sys.exit(1)


def _find(name: str) -> "Exercise":
    from tvm_practice.course.catalog import find

    try:
        return find(name)
    except KeyError as error:
        raise click.UsageError(str(error.args[0])) from None


if __name__ == "__main__":
    main()
