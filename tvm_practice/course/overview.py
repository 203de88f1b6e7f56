"""How the learner stands with the whole course: the welcome and the list."""

import json
from collections.abc import Collection, Sequence

from tvm_practice.course.board import bar, board, done, totals, word
from tvm_practice.course.catalog import SOLUTIONS, Exercise, exercises, labs, modules
from tvm_practice.course.grading import Verdict
from tvm_practice.course.progress import Standing
from tvm_practice.course.screen import Screen
from tvm_practice.course.telling import standings, tell_following

_COMMANDS = (
    ("watch", "checks it whenever you save its file"),
    ("check", "checks it once"),
    ("hint", "gives the next of three hints"),
    ("list", "shows all exercises"),
    ("--help", "shows all commands"),
)


def welcome(screen: Screen, standing: Standing) -> None:
    """What stands where, and the command to go on with; grades nothing."""
    verdicts = standings(standing)
    screen.say("tvm-practice: from a loop nest to a tuned, verified, exported model", "bold")
    screen.say()
    for key, title, part, whole in _rows(verdicts):
        state = f"{part} of {whole} done" if screen.plain else bar(part, whole)
        screen.say(f"  {key:<9} {title:<20} {state}")
    screen.say(f"{_passed(verdicts)} of {len(exercises())} exercises are done.")
    if ungraded := len(exercises()) - len(verdicts):
        screen.say(f"{ungraded} changed or new: tvm-practice list grades them.")
    screen.say()
    following = standing.next()
    tell_following(screen, following, with_page=True)
    if following is None:
        return
    screen.say()
    for command, what in _COMMANDS:
        screen.say(f"  tvm-practice {command:<8} {what}")


def _rows(verdicts: Collection[Verdict]) -> list[tuple[str, str, int, int]]:
    """Key, title, exercises done and exercises of each phase, and of the labs together."""
    course = [each for each in modules() if not each.is_lab]
    rows = [(each.key, each.title, *done(each, verdicts)) for each in course]
    parts, wholes = zip(*(done(each, verdicts) for each in labs()), strict=True)
    return [*rows, ("labs", "beyond the five", sum(parts), sum(wholes))]


def _passed(verdicts: Collection[Verdict]) -> int:
    return sum(verdict.status == "passed" for verdict in verdicts)


def grade_each(
    screen: Screen,
    standing: Standing,
    *,
    anew: bool = False,
    solutions: bool = False,
    quiet: bool = False,
) -> tuple[list[Verdict], set[str]]:
    """Every exercise's verdict, and the ids of those that were graded now, all if `anew`.

    In plain mode each is said as soon as it is there, unless `quiet`.
    """
    known = {} if anew or solutions else {each.id: standing.known(each) for each in exercises()}
    grading = {each.id for each in exercises() if known.get(each.id) is None}
    verdicts = []
    with screen.counting(len(grading)) as advance:
        for exercise in exercises():
            verdict = known.get(exercise.id)
            if verdict is None:
                advance(exercise.id)
                verdict = (
                    standing.grader.grade(exercise, SOLUTIONS)
                    if solutions
                    else standing.grade(exercise)
                )
            if screen.plain and not quiet:
                screen.say(f"{exercise.id}: {word(verdict)}")
            verdicts.append(verdict)
    return verdicts, grading


def show(screen: Screen, verdicts: Sequence[Verdict]) -> None:
    """The board and its totals, and once what keeps a file or an engine from being used."""
    passed = _passed(verdicts)
    if screen.plain:
        screen.say(f"{passed} of {len(verdicts)} done")
    else:
        screen.draw(board(verdicts))
        screen.say()
        screen.say(f"{bar(passed, len(verdicts), width=30)}: {totals(verdicts)}")
    for problem in sorted({each.message for each in verdicts if _is_one_line(each)}):
        screen.say(problem)


def _is_one_line(verdict: Verdict) -> bool:
    """Whether the verdict is about a file or an engine, and so one for many exercises."""
    return verdict.status == "unavailable" or (
        verdict.status == "failed" and "\n" not in verdict.message
    )


def to_json(
    verdicts: Sequence[Verdict], graded: Collection[str], following: Exercise | None
) -> str:
    """The list for programs; `graded` are the ids of those that were graded now."""
    rows = [
        {
            "exercise": verdict.exercise.id,
            "title": verdict.exercise.title,
            "engine": verdict.exercise.engine,
            "status": verdict.status,
            "message": verdict.message,
            "graded_now": verdict.exercise.id in graded,
        }
        for verdict in verdicts
    ]
    shown = {
        "exercises": rows,
        "done": _passed(verdicts),
        "total": len(verdicts),
        "next": following.id if following else None,
    }
    return json.dumps(shown, indent=2)
