"""What a chapter stands on: the learner's functions of earlier phases where they pass.

The reference stands in for the others, and a run names both:

    stand_on({"te_basics.matmul"})
    matmul = earlier("te_basics.matmul")   the learner's
    tile = earlier("manual_schedule.tile") the reference
"""

import importlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from tvm_practice.course.board import word
from tvm_practice.course.catalog import MINE, SOLUTIONS, Phase, find
from tvm_practice.course.grading import Grader, Status, Verdict
from tvm_practice.course.progress import Progress, Standing

_passing: frozenset[str] = frozenset()


def stand_on(passing: Collection[str]) -> None:
    """From now on, `earlier` gives the learner's functions for these exercises, in this process."""
    global _passing
    _passing = frozenset(passing)


def earlier(exercise: str) -> Callable[..., Any]:
    """The function of an earlier phase's exercise, `te_basics.matmul`: yours if it passes."""
    module, _, name = exercise.rpartition(".")
    package = MINE if exercise in _passing else SOLUTIONS
    function: Callable[..., Any] = getattr(importlib.import_module(f"{package}.{module}"), name)
    return function


def statuses(phase: Phase, known: Mapping[str, Status]) -> dict[str, Status]:
    """How the learner's functions that a phase builds on stand, by their exercises.

    Args:
        phase: a phase or a lab.
        known: what grading found just now; the others are graded if they changed since they were.
    """
    needed = [find(each) for each in phase.builds_on]
    if all(each.id in known for each in needed):
        return {each.id: known[each.id] for each in needed}
    with Grader() as grader:
        standing = Standing(Progress(lambda line: None), grader)
        return {each.id: known.get(each.id) or standing.verdict(each).status for each in needed}


def told(found: Mapping[str, Status]) -> str:
    """Which functions are the learner's and which the reference's, in words."""
    verdicts = [Verdict(find(each), status) for each, status in found.items()]
    mine = [each.exercise.name for each in verdicts if each.status == "passed"]
    others = [
        f"{each.exercise.name} ({word(each)})" for each in verdicts if each.status != "passed"
    ]
    parts = []
    if mine:
        parts.append(f"your {', '.join(mine)}")
    if others:
        parts.append(f"the reference {', '.join(others)}")
    return "; ".join(parts)
