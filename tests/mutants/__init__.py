"""Wrong solutions. The grader must reject each, with the message that its decorator names.

    @mutant("matmul", message="indices of A and B")
    def b_transposed(m, n, k):
        ...

Each is pasted into the phase's file in place of the exercise's stub, as a learner would, so it
must carry its own imports. One that is the reference but for a few words is told by them:

    edited("matmul", "b_transposed", {"B[r, j]": "B[j, r]"}, message="indices of A and B")

With `of`, it is so edited another right answer of this package, an answer in one piece, say.

Beside them, in the same form, answers that are right and not the reference, which must pass:

    @right("matmul")
    def other_loop_order(m, n, k):
        ...
"""

import ast
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tvm_practice.course.catalog import MODULES, Exercise, find, phase
from tvm_practice.course.editing import function_source, parse, replace_function
from tvm_practice.course.telling import reference


@dataclass(frozen=True)
class Mutant:
    """A wrong solution of `exercise`; `message` is a regular expression its rejection matches.

    With `edits`, texts of the reference and what is there instead, it is the reference so edited,
    or the right answer `of`. Without a message it is right.
    """

    phase: str
    exercise: str
    name: str
    message: str
    edits: Mapping[str, str] = field(default_factory=dict)
    of: str = ""

    @property
    def source(self) -> str:
        if self.edits:
            return self._edited_reference()
        return self._written(self.name)

    def _written(self, name: str) -> str:
        """The function of that name beside this module, called as the exercise is."""
        text = (Path(__file__).parent / f"{self.phase.replace('.', '/')}.py").read_text()
        return function_source(text, name, rename=self.exercise)

    def paste(self, text: str) -> str:
        """`text`, a phase's file, with this answer in place of its exercise.

        The steps that it calls are there as well. The reference answer that a wrong one spoils is
        pasted beside it: it cannot be imported.
        """
        imported = f"from solutions.{self.phase} import {self.exercise} as "
        exercise = find(f"{self.phase}.{self.exercise}")
        text = pasted(text, exercise, self.source.replace(imported, "right = _"))
        if imported not in self.source:
            return text
        key = reference(exercise)
        return f"{text}\n\n{key.replace(f'def {self.exercise}(', 'def _right(', 1)}\n"

    def _edited_reference(self) -> str:
        exercise = find(f"{self.phase}.{self.exercise}")
        text = self._written(self.of) if self.of else reference(exercise)
        for old, new in self.edits.items():
            assert text.count(old) == 1, f"{self.name}: the reference lacks {old!r}, or repeats it"
            text = text.replace(old, new)
        return text


def steps_of(exercise: Exercise, source: str) -> list[Exercise]:
    """The other exercises of its chapter that the text of an answer calls, and those they call."""
    others = {each.name: each for each in phase(exercise.phase).exercises if each != exercise}
    found: dict[str, Exercise] = {}
    pending = [source]
    while pending:
        for node in ast.walk(parse(pending.pop())):
            if isinstance(node, ast.Name) and node.id in others and node.id not in found:
                found[node.id] = others[node.id]
                pending.append(reference(others[node.id]))
    return list(found.values())


def pasted(text: str, exercise: Exercise, source: str) -> str:
    """`text`, a phase's file, with this answer, and the reference's steps that it calls."""
    text = replace_function(text, exercise.name, source)
    for step in steps_of(exercise, source):
        text = replace_function(text, step.name, reference(step))
    return text


_collected: list[Mutant] = []


def right(exercise: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as a right solution of `exercise`."""
    return mutant(exercise, message="")


def right_edited(exercise: str, name: str, edits: Mapping[str, str], *, of: str = "") -> None:
    """Register the reference of `exercise` as a right solution, after these edits in this order."""
    edited(exercise, name, edits, message="", of=of)


def mutant(exercise: str, *, message: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as a wrong solution of `exercise`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        module = function.__module__.removeprefix(f"{__name__}.")
        _collected.append(Mutant(module, exercise, function.__name__, message))
        return function

    return register


def edited(
    exercise: str, name: str, edits: Mapping[str, str], *, message: str, of: str = ""
) -> None:
    """Register the reference of `exercise` as a wrong solution, after these edits in this order.

    Each text stands in the reference, or in the right answer `of`, exactly once.
    """
    _collected.append(Mutant(find(exercise).phase, exercise, name, message, edits, of))


def mutants() -> list[Mutant]:
    """Every wrong solution of every phase and lab."""
    return [each for each in _answers() if each.message]


def right_answers() -> list[Mutant]:
    """Every right solution that is not the reference."""
    return [each for each in _answers() if not each.message]


def _answers() -> list[Mutant]:
    for module in MODULES:
        importlib.import_module(f"tests.mutants.{module}")
    return list(_collected)
