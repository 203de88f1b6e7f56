"""Grading: the learner's functions, the reference ones, and wrong ones.

pytest -m phase2        one phase
pytest -k tile          one exercise
"""

import functools
import os
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.mutants import Mutant, mutants, pasted, right_answers, steps_of
from tests.mutants.promises import PROMISES
from tvm_practice.course.catalog import MINE, Exercise, exercises, phase
from tvm_practice.course.editing import (
    function_source,
    is_stub,
    signature,
    stubbed,
)
from tvm_practice.course.grading import (
    Grader,
    Verdict,
    grade_unrun,
    reference_file,
    source_file,
)

EXERCISES = exercises()
BY_ID = {exercise.id: exercise for exercise in EXERCISES}


# Each other answer to their exercises compiles a model or searches: in `make follow`, as are the
# answers to labs.
_LONG = ("relay_import", "auto_tune")
# Most wrong answers to these are refused before a search begins.
_RECORDED = ("tune_autotvm", "tune_ansor", "tune_task", "tune_metaschedule", "metaschedule_space")
# These are not: their searches are carried out.
_SEARCHED = (
    "a_log_of_json_alone",
    "begins_each_search_alike",
    "does_not_go_on_from_the_log",
    "keeps_no_records",
    "removes_the_log",
    "starts_the_log_anew",
    "without_a_cost_model",
    "writes_no_log",
    "writes_no_records",
)
# Its right answers besides the reference are run at many sizes: there as well.
_LONG_IF_RIGHT = (*_LONG, "manual_schedule")


def _marks(module: str) -> Any:
    return getattr(pytest.mark, phase(module).marker)


def each_exercise(*, labs_follow: bool = False) -> Any:
    """A case per exercise; with `labs_follow`, those of labs are in `make follow`."""
    cases = [
        pytest.param(
            each,
            id=each.id,
            marks=[_marks(each.phase)]
            + [pytest.mark.pages] * (labs_follow and phase(each.phase).is_lab),
        )
        for each in EXERCISES
    ]
    return pytest.mark.parametrize("exercise", cases)


@functools.cache
def _stub_text(module: str) -> str:
    """The phase's file as it comes: every exercise to do, whatever the learner has written."""
    text = source_file(module, MINE).read_text()
    for exercise in phase(module).exercises:
        text = stubbed(text, exercise.name)
    return text


def _solution(exercise: Exercise) -> str:
    return function_source(reference_file(exercise).read_text(), exercise.name)


def _seed(answer: str) -> int:
    """One seed for each answer, so that a run finds what the run before found.

    scripts/try-seeds grades the same answers with as many new seeds as one likes.
    """
    return zlib.crc32(answer.encode()) % 1_000_000


def _skip_without_engine(verdict: Verdict) -> None:
    if verdict.status == "unavailable":
        pytest.skip(verdict.message)


@each_exercise()
def test_mine(grader: Grader, exercise: Exercise) -> None:
    """The learner's own function: passes, fails with what to look at, or is to do (skipped)."""
    verdict = grader.grade(exercise, MINE)
    _skip_without_engine(verdict)
    if verdict.status == "todo":
        pytest.skip(f"to do: {exercise.title}")
    if verdict.status == "failed":
        pytest.fail(f"{exercise.id}\n{verdict.message}\n{verdict.output}", pytrace=False)


@each_exercise(labs_follow=True)
def test_solution(grader: Grader, exercise: Exercise, tmp_path: Path) -> None:
    """The reference solution pasted into the stub turns it green, and no other but its steps.

    Its steps are pasted with it; that each of them is right is its own case.
    """
    source = _solution(exercise)
    file = tmp_path / f"{phase(exercise.phase).name}.py"
    file.write_text(pasted(_stub_text(exercise.phase), exercise, source))
    verdict = grader.grade(exercise, str(file), seed=_seed(exercise.id))
    _skip_without_engine(verdict)
    assert verdict.message == ""
    left = {
        each
        for each in phase(exercise.phase).exercises
        if each != exercise and each not in steps_of(exercise, source)
    }
    unrun = {each.name: grade_unrun(each, str(file)) for each in left}
    assert all(each is not None for each in unrun.values()), unrun
    assert {each.status for each in unrun.values() if each} <= {"todo", "unavailable"}, unrun


def _pasted(answers: list[Mutant], long: tuple[str, ...] = _LONG) -> Any:
    cases = []
    for each in answers:
        exercise, marks = f"{each.phase}.{each.exercise}", [_marks(each.phase)]
        recorded = each.message and each.exercise in _RECORDED and each.name not in _SEARCHED
        is_long = (each.phase in long and not recorded) or phase(each.phase).is_lab
        is_wrong = bool(each.message)
        # One wrong answer for each promise is enough between two edits; `make follow` has the rest.
        if is_long or (is_wrong and each.name not in PROMISES.get(exercise, {}).values()):
            marks += [pytest.mark.pages, pytest.mark.drawn]
        cases.append(pytest.param(each, id=f"{exercise}-{each.name}", marks=marks))
    return cases


def _grade_answer(grader: Grader, answer: Mutant, folder: Path) -> Verdict:
    """The verdict of `answer`, pasted into the stub."""
    file = folder / f"{phase(answer.phase).name}.py"
    file.write_text(answer.paste(_stub_text(answer.phase)))
    exercise = BY_ID[f"{answer.phase}.{answer.exercise}"]
    verdict = grader.grade(exercise, str(file), seed=_seed(f"{exercise.id}-{answer.name}"))
    _skip_without_engine(verdict)
    return verdict


@pytest.mark.parametrize("wrong", _pasted(mutants()))
def test_mutant(grader: Grader, wrong: Mutant, tmp_path: Path) -> None:
    """A wrong solution pasted into the stub is rejected with its own message."""
    verdict = _grade_answer(grader, wrong, tmp_path)
    assert verdict.status == "failed", f"{wrong.name} was not rejected"
    assert re.search(wrong.message, verdict.message), verdict.message
    assert "expected:" in verdict.message and "look at:" in verdict.message


@pytest.mark.parametrize("exercise", PROMISES)
def test_promises(exercise: str) -> None:
    """What the table promises stands in the docstring, and a wrong answer breaks it."""
    found = BY_ID[exercise]
    said = " ".join(signature(reference_file(found).read_text(), found.name).split())
    known = {each.name for each in mutants() if f"{each.phase}.{each.exercise}" == exercise}
    for promise, breach in PROMISES[exercise].items():
        assert promise in said
        assert breach in known


@pytest.mark.parametrize("answer", _pasted(right_answers(), _LONG_IF_RIGHT))
def test_right(grader: Grader, answer: Mutant, tmp_path: Path) -> None:
    """A right solution that is not the reference passes."""
    assert _grade_answer(grader, answer, tmp_path).message == ""


@each_exercise()
def test_looks_like(grader: Grader, exercise: Exercise) -> None:
    """What the catalogue says a correct answer looks like is what the reference gives."""
    if (reason := _missing(exercise)) is not None:
        pytest.skip(reason)
    assert grader.demonstrate(exercise) == exercise.looks_like


def _missing(exercise: Exercise) -> str | None:
    from tvm_practice.engines import unavailable_reason

    return unavailable_reason(exercise.engine)


@each_exercise()
def test_stub_raises(grader: Grader, exercise: Exercise) -> None:
    """The stub is nothing but its docstring and a NotImplementedError, and is graded to do."""
    text = source_file(exercise.phase, MINE).read_text()
    if not is_stub(text, exercise.name) and not os.environ.get("CI"):
        pytest.skip("you have written it")
    assert is_stub(text, exercise.name)
    verdict = grader.grade(exercise, MINE)
    _skip_without_engine(verdict)
    assert verdict.status == "todo" and verdict.message


@each_exercise()
def test_stub_and_solution_agree(exercise: Exercise) -> None:
    """Same arguments, defaults, annotations and docstring."""
    stub, solution = source_file(exercise.phase, MINE), reference_file(exercise)
    found = [signature(file.read_text(), exercise.name) for file in (stub, solution)]
    assert found[0] == found[1]


@each_exercise()
def test_hints(exercise: Exercise) -> None:
    """Three different hints, and at least two wrong solutions that the grader is tried on."""
    assert len(set(exercise.hints)) == 3 and all(len(hint) > 40 for hint in exercise.hints)
    against = [
        each for each in mutants() if (each.phase, each.exercise) == (exercise.phase, exercise.name)
    ]
    assert len(against) >= 2


def test_at_least_18_exercises() -> None:
    assert len(EXERCISES) >= 18
    assert len(BY_ID) == len(EXERCISES)


def test_each_phase_page_answers_its_question() -> None:
    root = Path(__file__).parent.parent
    for exercise in EXERCISES:
        page = phase(exercise.phase)
        text = (root / page.page).read_text()
        assert page.question in " ".join(text.split()), f"{page.page} does not ask its key question"
        assert exercise.name in text, f"{page.page} does not mention {exercise.name}"
        assert "<summary>Answer</summary>" in text, f"{page.page} gives its answer away"
