"""Wrong solutions. The grader must reject each, with the message that its decorator names.

    @mutant("matmul", message="indices of A and B")
    def b_transposed(m, n, k):
        ...

Each is pasted into the phase's file in place of the exercise's stub, as a learner would, so it
must carry its own imports. One that is the reference but for a few words is told by them:

    edited("matmul", "b_transposed", {"B[r, j]": "B[j, r]"}, message="indices of A and B")

Beside them, in the same form, answers that are right and not the reference, which must pass:

    @right("matmul")
    def other_loop_order(m, n, k):
        ...
"""

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvm_practice.course.catalog import MODULES, find
from tvm_practice.course.editing import function_source, replace_function
from tvm_practice.course.telling import reference


@dataclass(frozen=True)
class Mutant:
    """A wrong solution of `exercise`; `message` is a regular expression its rejection matches.

    With `edits`, texts of the reference and what is there instead, it is the reference so edited.
    Without a message it is right.
    """

    phase: str
    exercise: str
    name: str
    message: str
    edits: Mapping[str, str] = field(default_factory=dict)

    @property
    def source(self) -> str:
        if self.edits:
            return self._edited_reference()
        text = (Path(__file__).parent / f"{self.phase.replace('.', '/')}.py").read_text()
        return function_source(text, self.name, rename=self.exercise)

    def paste(self, text: str) -> str:
        """`text`, a phase's file, with this answer in place of its exercise.

        The reference answer that a wrong one spoils is pasted beside it: it cannot be imported.
        """
        imported = f"from solutions.{self.phase} import {self.exercise} as "
        text = replace_function(text, self.exercise, self.source.replace(imported, "right = _"))
        if imported not in self.source:
            return text
        key = reference(find(f"{self.phase}.{self.exercise}"))
        return f"{text}\n\n{key.replace(f'def {self.exercise}(', 'def _right(', 1)}\n"

    def _edited_reference(self) -> str:
        text = reference(find(f"{self.phase}.{self.exercise}"))
        for old, new in self.edits.items():
            assert text.count(old) == 1, f"{self.name}: the reference lacks {old!r}, or repeats it"
            text = text.replace(old, new)
        return text


_collected: list[Mutant] = []


def right(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as a right solution of `exercise`."""
    return mutant(exercise, message="")


def right_edited(exercise: str, name: str, edits: Mapping[str, str]) -> None:
    """Register the reference of `exercise` as a right solution, after these edits in this order."""
    edited(exercise, name, edits, message="")


def mutant(exercise: str, *, message: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as a wrong solution of `exercise`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        phase = function.__module__.removeprefix(f"{__name__}.")
        _collected.append(Mutant(phase, exercise, function.__name__, message))
        return function

    return register


def edited(exercise: str, name: str, edits: Mapping[str, str], *, message: str) -> None:
    """Register the reference of `exercise` as a wrong solution, after these edits in this order.

    Each text stands in the reference exactly once.
    """
    _collected.append(Mutant(find(exercise).phase, exercise, name, message, edits))


def mutants() -> list[Mutant]:
    """Every wrong solution of every phase and lab."""
    return [each for each in _answers() if each.message]


def right_answers() -> list[Mutant]:
    """Every right solution that is not the reference."""
    return [each for each in _answers() if not each.message]


def _answers() -> list[Mutant]:
    for phase in MODULES:
        importlib.import_module(f"tests.mutants.{phase}")
    return list(_collected)
