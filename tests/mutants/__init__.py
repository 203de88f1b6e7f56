"""Wrong solutions. The grader must reject each, with the message that its decorator names.

    @mutant("matmul", message="indices of A and B")
    def b_transposed(m, n, k):
        ...

Each is pasted into the phase's file in place of the exercise's stub, as a learner would, so it
must carry its own imports.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_practice.course.catalog import MODULES
from tvm_practice.course.editing import function_source


@dataclass(frozen=True)
class Mutant:
    """A wrong solution of `exercise`; `message` is a regular expression its rejection matches."""

    phase: str
    exercise: str
    name: str
    message: str

    @property
    def source(self) -> str:
        text = (Path(__file__).parent / f"{self.phase.replace('.', '/')}.py").read_text()
        return function_source(text, self.name, rename=self.exercise)


_collected: list[Mutant] = []


def mutant(exercise: str, *, message: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as a wrong solution of `exercise`."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        phase = function.__module__.removeprefix(f"{__name__}.")
        _collected.append(Mutant(phase, exercise, function.__name__, message))
        return function

    return register


def mutants() -> list[Mutant]:
    """Every wrong solution of every phase and lab."""
    for phase in MODULES:
        importlib.import_module(f"tests.mutants.{phase}")
    return list(_collected)
