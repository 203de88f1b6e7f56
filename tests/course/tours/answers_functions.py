"""Run on an engine: a chapter's tour of answers that do nothing."""

import importlib
from typing import Any

from tvm_practice.course.catalog import phase
from tvm_practice.course.phase import run_lane


def _nothing(*_: Any, **__: Any) -> None:
    return None


def lane_of_nothing(module: str, folder: str) -> list[str]:
    """The functions that a lane calls wrong where each of the chapter's answers does nothing.

    But for phase 5's template, in whose place the tour takes the reference.
    """
    answers = importlib.import_module(f"solutions.{module}")
    for exercise in phase(module).exercises:
        if exercise.name != "matmul_template":
            setattr(answers, exercise.name, _nothing)
    told = run_lane(phase=module, source="solutions", quick=True, folder=folder, passing=[])
    return sorted(told["failed"])


def lane_of_a_string(folder: str) -> dict[str, Any]:
    """Phase 4's lane where the learner's import returns a string."""
    import tvm_practice.relay_import

    tvm_practice.relay_import.import_relax = lambda *_, **__: "a module"
    return run_lane(phase="relay_import", source="tvm_practice", quick=True, folder=folder)
