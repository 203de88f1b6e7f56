"""The chapters' form, and answers that were written in chapters of an older form."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.course.conftest import ROOT, Tree
from tests.mutants import right_answers, steps_of
from tvm_practice.course.catalog import MODULES, Exercise, find, phase
from tvm_practice.course.editing import function_source, is_stub, parse, replace_function, stubbed
from tvm_practice.course.grading import Grader
from tvm_practice.course.telling import reference

# What stood below the exercises, in short.
OLD_IMPORTS = """import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

"""
OLD_TYPES = """
if TYPE_CHECKING:
    from tvm_practice.course import Steps

_SCANNED_SIZE = 1024
"""
OLD_TAIL = '''
def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """Show each step on the active engine."""
    raise AssertionError("the lane of the chapter ran")


def _in_turns(runs: Mapping[str, Callable[[], Any]]) -> Any:
    """Time runs in turns."""
    return {name: functools.partial(run) for name, run in runs.items()}


def report(results: Mapping[str, Any], folder: Path) -> None:
    """Plot all steps."""
    raise AssertionError("the report of the chapter ran")


'''
# Answers in one piece to exercises that were split into steps.
SPLIT = {
    "manual_schedule.packed_matmul": "as_one_function",
    "labs.custom_operator.convert_relay": "in_one_piece",
    "labs.gpu_schedule.tensor_cores": "in_one_piece",
}
ANSWERED = (
    "te_basics.softmax",
    "schedule_analysis.parallel_pays_from",
    "labs.compilers_compared.pays_after",
)


def _shipped(module: str) -> str:
    """The chapter with every exercise to do, whatever the learner has written."""
    text = (ROOT / "tvm_practice" / f"{module.replace('.', '/')}.py").read_text()
    for exercise in phase(module).exercises:
        text = stubbed(text, exercise.name)
    return text


def _old_style(chapter: str) -> str:
    """A chapter as it was when what it shows stood below its exercises."""
    command = "from tvm_practice.course.phase import phase_command\n"
    before, main, after = chapter.partition("\nmain = ")
    assert main and command in before
    before = before.replace(command, f"{OLD_IMPORTS}{command}{OLD_TYPES}", 1)
    return f"{before}{OLD_TAIL}{main.lstrip()}{after}"


def _answered(exercise: Exercise, chapter: str) -> str:
    return replace_function(chapter, exercise.name, reference(exercise))


@pytest.mark.parametrize("module", MODULES)
def test_a_chapter_is_short_and_has_nothing_but_words_and_functions(module: str) -> None:
    text = _shipped(module)
    path = ROOT / "tvm_practice" / f"{module.replace('.', '/')}.py"
    own = path.read_text()
    untouched = all(is_stub(own, each.name) for each in phase(module).exercises)
    assert len((own if untouched else text).splitlines()) <= 350
    functions = {each.name for each in parse(text).body if hasattr(each, "name")}
    assert not functions & {"lane", "report"}
    tour = ROOT / "tvm_practice" / "course" / "tours" / f"{module.replace('.', '/')}.py"
    assert "lane" in {each.name for each in parse(tour.read_text()).body if hasattr(each, "name")}


@pytest.mark.parametrize("answered", ANSWERED)
def test_an_answer_in_an_old_chapter_passes(answered: str, grader: Grader, tree: Tree) -> None:
    """Its own lane below it is no hindrance, nor are the stubs beside it."""
    exercise = find(answered)
    old = _old_style(tree.file(exercise.phase).read_text())
    tree.file(exercise.phase).write_text(_answered(exercise, old))
    verdicts = {each.name: grader.grade(each) for each in phase(exercise.phase).exercises}
    mine = verdicts.pop(exercise.name)
    assert mine.status == "passed", mine.message
    assert {each.status for each in verdicts.values()} <= {"todo", "unavailable"}


@pytest.mark.parametrize("answered", ANSWERED)
def test_an_answer_is_merged_into_a_new_chapter(answered: str, tmp_path: Path) -> None:
    """What `git pull` does with an answer, an old chapter and a new one, has no conflict."""
    exercise = find(answered)
    new = _shipped(exercise.phase)
    old = _old_style(new)
    merged = _merged(tmp_path, _answered(exercise, old), old, new)
    assert function_source(merged, exercise.name) == reference(exercise)
    assert not is_stub(merged, exercise.name)
    assert stubbed(merged, exercise.name) == new


@pytest.mark.parametrize("whole", SPLIT)
def test_an_answer_in_one_piece_survives_the_split_into_steps(
    whole: str, grader: Grader, tmp_path: Path
) -> None:
    """Written when the chapter had no steps, merged into the one that has them, it passes."""
    exercise = find(whole)
    new = _shipped(exercise.phase)
    steps = steps_of(exercise, reference(exercise))
    assert len(steps) >= 3
    old = re.sub(r"    Call .* in one piece\.\n\n", "", new)
    for step in steps:
        old = replace_function(old, step.name, "")
    named = (exercise.phase, exercise.name, SPLIT[whole])
    [answer] = [each for each in right_answers() if (each.phase, each.exercise, each.name) == named]
    # As a learner writes it: the docstring stays.
    mine = stubbed(old, exercise.name).replace(
        f'    raise NotImplementedError("{exercise.name} is to do")', _body(answer.source)
    )
    assert mine != old
    merged = _merged(tmp_path, mine, old, new)
    file = tmp_path / "merged.py"
    file.write_text(merged)
    verdict = grader.grade(exercise, str(file))
    assert verdict.status == "passed", verdict.message
    assert all(is_stub(merged, step.name) for step in steps)


def _body(source: str) -> str:
    """The lines of a function without a docstring below its `def`."""
    (function,) = parse(source).body
    assert isinstance(function, ast.FunctionDef)
    return "\n".join(source.split("\n")[function.body[0].lineno - 1 :])


def _merged(folder: Path, mine: str, old: str, new: str) -> str:
    """What `git pull` makes of the three, without a conflict."""
    files = {"mine": mine, "old": old, "new": new}
    for name, text in files.items():
        (folder / name).write_text(text)
    merged = subprocess.run(
        ["git", "merge-file", "-p", *files], cwd=folder, capture_output=True, text=True
    )
    assert merged.returncode == 0, merged.stdout + merged.stderr
    return merged.stdout


@pytest.mark.pages
@pytest.mark.slow
def test_an_old_chapter_runs_with_the_new_tour(tmp_path: Path) -> None:
    for package in ("tvm_practice", "solutions"):
        shutil.copytree(ROOT / package, tmp_path / package)
    exercise = find("te_basics.softmax")
    chapter = _answered(exercise, _old_style(_shipped("te_basics")))
    (tmp_path / "tvm_practice" / "te_basics.py").write_text(chapter)
    done = subprocess.run(
        [sys.executable, "-m", "tvm_practice.te_basics", "--engine", "current"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "softmax ran: output (64, 1000)" in done.stdout
    assert "To do in tvm_practice/te_basics.py: dense_bias_relu, matmul." in done.stdout
