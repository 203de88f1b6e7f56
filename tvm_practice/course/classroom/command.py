"""What `tvm-practice grade` does, and what it prints."""

from collections.abc import Sequence
from pathlib import Path

import click

from tvm_practice.course.catalog import Exercise, phase, phases
from tvm_practice.course.classroom import sandbox
from tvm_practice.course.classroom.capstones import find_capstones, grade_capstones
from tvm_practice.course.classroom.grade import LIKENESS, RESULTS, TABLE, grade_class
from tvm_practice.course.classroom.likeness import NoLikeness, compare
from tvm_practice.course.classroom.marking import Marked, Rules
from tvm_practice.course.classroom.records import write_likeness
from tvm_practice.course.classroom.submissions import Submission, find_submissions
from tvm_practice.course.expect import new_seed
from tvm_practice.course.screen import Screen, near


def grade_folder(
    screen: Screen,
    folder: Path,
    out: Path,
    chosen: Sequence[Exercise],
    *,
    seed: int | None,
    jobs: int,
    seconds: int,
    minutes: int,
    memory: int,
    alike: float,
    anew: bool,
    no_sandbox: bool,
) -> int:
    """Grade the submissions in `folder`; the exit code."""
    exercises = list(dict.fromkeys(chosen)) or [each for one in phases() for each in one.exercises]
    chapters = [phase(module) for module in dict.fromkeys(each.phase for each in exercises)]
    submissions = [each for each in find_submissions(folder, chapters) if _is_not(each, out)]
    capstones = find_capstones(folder)
    if not submissions and not capstones:
        raise click.UsageError(
            f"{folder} has no submission: one folder, .zip, .tar or .json per student"
        )
    if not no_sandbox:
        try:
            sandbox.check_walls()
        except sandbox.NoSandbox as problem:
            raise click.UsageError(str(problem)) from None
    rules = Rules(
        exercises,
        _seed(seed, out),
        seconds,
        sandbox.Limits(minutes * 60, memory * 2**30),
        hidden=(folder, out),
        isolated=not no_sandbox,
    )
    failed = bool(capstones) and not grade_capstones(screen, capstones, rules, out, anew=anew)
    if not submissions:
        return int(failed)
    count = f"{len(exercises)} exercises" if len(exercises) > 1 else exercises[0].id
    screen.say(f"{len(submissions)} submissions, {count}, seed {rules.seed}")
    out.mkdir(parents=True, exist_ok=True)
    with screen.counting(len(submissions)) as advance:

        def tell(marked: Marked) -> None:
            advance(marked.submission.name)
            screen.say(_line(marked))

        graded = grade_class(submissions, rules, out, jobs=jobs, anew=anew, done=tell)
    screen.say()
    written = [TABLE, f"{RESULTS}/"]
    try:
        pairs = compare(submissions, exercises, at_least=alike)
        write_likeness(pairs, out / LIKENESS)
        screen.say(f"pairs with {alike:.0%} or more in common: {len(pairs)}")
        written.append(LIKENESS)
    except NoLikeness as problem:
        screen.note(f"not compared with one another: {problem}")
    screen.say(f"written to {near(out.resolve())}: {', '.join(written)}")
    return int(failed or any(each.submission.problem for each in graded))


def _is_not(submission: Submission, out: Path) -> bool:
    """The marks may be in the folder of the submissions."""
    return submission.name != out.name or bool(submission.chapters)


def _seed(seed: int | None, out: Path) -> int:
    """The seed asked for, else that of the marks which are there, else a new one."""
    file = out / "seed"
    if seed is None:
        try:
            seed = int(file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            seed = new_seed()
    out.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{seed}\n", encoding="utf-8")
    return seed


def _line(marked: Marked) -> str:
    points = f"{marked.points:3} of {marked.worth}"
    return f"{marked.submission.name:<24} {points}  {marked.remark}".rstrip()
