"""Hints go from a nudge to the shape of the answer, and name what the answer is made of."""

import re

import pytest

from tvm_practice.course.catalog import Exercise, exercises, find
from tvm_practice.course.difficulty import answer, unnamed

each_exercise = pytest.mark.parametrize("exercise", exercises(), ids=lambda each: each.id)
_CALL = r"[\w\]]\([^)]"  # with arguments
# Or the numbers of a repair.
_SHAPE = rf"{_CALL}|\w\(\)| = |=\w|\w\[|[*/{{]|\bby \d|\d and \d"


@each_exercise
def test_the_first_is_a_nudge_and_the_last_has_the_shape(exercise: Exercise) -> None:
    nudge, *_, shape = exercise.hints
    assert len(exercise.hints) >= 3
    assert not re.search(rf"{_CALL}| = ", nudge), nudge
    assert re.search(_SHAPE, shape), shape


@each_exercise
def test_few_lines_of_an_answer_are_in_no_hint(exercise: Exercise) -> None:
    lines = unnamed(answer(exercise), exercise.hints)
    assert len(lines) <= 15, "\n".join(lines)


def test_a_line_is_named_by_what_it_calls() -> None:
    hints = find("manual_schedule.tile").hints
    assert unnamed(["    schedule.fuse(i_outer, j_outer)"], hints)
    assert not unnamed(["    schedule.reorder(i_outer, j_outer)", "    # fuse", "    )"], hints)
