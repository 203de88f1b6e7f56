"""Functions that test_bug_hunts.py has called on an engine."""

from tvm_practice import engines
from tvm_practice.course.suspects import HUNTS


def counts() -> dict[str, list[int]]:
    """By hunt of the active engine: what shows its bug, before any repair and without a schedule.

    The third number is the most that a repaired schedule may have.
    """
    found = {}
    for name, hunt in HUNTS.items():
        if hunt.engine == engines.active():
            wrong = hunt.symptom(*reversed(hunt.suspected(hunt.example)))
            fresh = hunt.symptom(*reversed(hunt.start(hunt.example)))
            found[name] = [wrong, fresh, hunt.limit(hunt.example)]
    return found
