"""What a learner is told of an exercise: how it stands, what is next, a hint."""

import difflib
from pathlib import Path

from tvm_practice.course.catalog import MINE, Exercise, Phase, exercises, phase
from tvm_practice.course.editing import function_source, line_of
from tvm_practice.course.grading import Verdict, learners_folder, reference_file, source_file
from tvm_practice.course.progress import Standing
from tvm_practice.course.screen import Screen, near

_PRINTED_LINES = 20
_HINTS = 3


def where(exercise: Exercise) -> str:
    """The learner's file and line of the exercise: `tvm_practice/te_basics.py, line 46`."""
    file = source_file(exercise.phase, MINE)
    try:
        return f"{near(file)}, line {line_of(file.read_text(encoding='utf-8'), exercise.name)}"
    except (OSError, SyntaxError, ValueError, KeyError):
        return near(file)


def page_of(phase: Phase) -> Path:
    """The phase's page of the documentation, which lies beside the learner's package."""
    return learners_folder().parent / phase.page


def tell_verdict(screen: Screen, verdict: Verdict, *, place: str | None = None) -> None:
    """Say how an exercise stands; `place` is where it is written, if not in the learner's file."""
    exercise = verdict.exercise
    if verdict.status == "passed":
        screen.say(f"{exercise.id} passes", "green")
    elif verdict.status == "todo":
        screen.say(f"{exercise.id} is to do: {exercise.title}", "yellow")
        screen.say(f"Write it in {place or where(exercise)}")
    elif verdict.status == "unavailable":
        screen.say(f"{exercise.id} cannot be graded here: {verdict.message}")
    elif "\n" in verdict.message:
        screen.say(f"{exercise.id} is wrong", "red")
        screen.say(verdict.message)
    else:
        screen.say(f"{exercise.id} is wrong: {verdict.message}", "red")
    if verdict.gives:
        screen.say("Your answer's result (-) and a correct answer's (+):")
        screen.draw_difference(verdict.gives)
    if verdict.output.strip():
        printed = verdict.output.strip("\n").split("\n")
        screen.say("The end of its output:" if len(printed) > _PRINTED_LINES else "Its output:")
        screen.say("\n".join(f"  {line}" for line in printed[-_PRINTED_LINES:]))


def tell_next(screen: Screen, standing: Standing, passed: Exercise) -> Exercise | None:
    """After a pass: whether its phase is done, and what is next, which is returned."""
    done = phase(passed.phase)
    if all(standing.is_done(each) for each in done.exercises):
        screen.say(f"{done.heading}, {done.title}, is done. To run it and read on:")
        screen.say(f"  tvm-practice run {done.key}")
        screen.say(f"  tvm-practice explain {done.key}")
    following = standing.next(after=passed)
    entered = following is not None and following.phase != passed.phase
    tell_following(screen, following, with_page=entered)
    return following


def tell_following(screen: Screen, exercise: Exercise | None, *, with_page: bool = False) -> None:
    """Which exercise is next and where, and its phase's page; None: that there is none."""
    if exercise is None:
        screen.say("There is nothing left to do. tvm-practice verify grades everything again.")
        return
    screen.say(f"Next: {exercise.id}, {exercise.title}")
    screen.say(f"  {where(exercise)}")
    if with_page:
        screen.say(f"  to read first: {near(page_of(phase(exercise.phase)))}")


def tell_hint(
    screen: Screen, standing: Standing, exercise: Exercise, level: int | None = None
) -> None:
    """Show the hint of that level, or without one the next that was not shown yet."""
    if level is None:
        level = min(standing.progress.record(exercise).hint + 1, _HINTS)
        standing.progress.update(exercise, hint=level)
    show_hint(screen, exercise, level)


def show_hint(screen: Screen, exercise: Exercise, level: int) -> None:
    """Show the hint of that level; with the last one, what a correct answer gives."""
    screen.say(f"{exercise.id}: {exercise.title}")
    screen.say(f"Hint {level} of {_HINTS}: {exercise.hints[level - 1]}")
    if level == _HINTS:
        screen.say("A correct answer gives:\n")
        screen.say("\n".join(f"  {line}" for line in exercise.looks_like.split("\n")))


def reference(exercise: Exercise) -> str:
    """The text of the reference solution."""
    return function_source(reference_file(exercise).read_text(encoding="utf-8"), exercise.name)


def difference(exercise: Exercise) -> str:
    """A unified diff from the learner's function to the reference; empty if they are the same.

    Raises ValueError, with the file's name, where that has no such function.
    """
    file = source_file(exercise.phase, MINE)
    try:
        mine = function_source(file.read_text(encoding="utf-8"), exercise.name)
    except (OSError, SyntaxError, ValueError, KeyError) as error:
        raise ValueError(f"{file}: {error}") from error
    lines = difflib.unified_diff(
        mine.split("\n"),
        reference(exercise).split("\n"),
        f"{exercise.id} (yours)",
        f"{exercise.id} (reference)",
        lineterm="",
    )
    return "\n".join(lines)


def standings(standing: Standing) -> list[Verdict]:
    """The verdicts that are known without grading."""
    known = (standing.known(each) for each in exercises())
    return [verdict for verdict in known if verdict is not None]
