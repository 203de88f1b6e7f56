"""What the bug hunts show: each wrong schedule with its symptom, and the learner's repair of it."""

from typing import Any

from tvm_practice.course.steps import Steps


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Show the active engine's wrong schedules, and what the functions that are written repair.

    Returns:
        {name: {"before", "after"}} of the functions that are written: the
        bug's symptom, counted in the wrong schedule, and in the learner's.
    """
    from tvm_practice import engines
    from tvm_practice.course.suspects import HUNTS, report

    counts = {}
    for name, hunt in HUNTS.items():
        if hunt.engine != engines.active():
            continue
        print(f"\n{report(name)}\n")
        tensors, schedule = hunt.start(hunt.example)
        answer = steps.attempt(name, *hunt.arguments(tensors, schedule))
        if not steps.ran(name):
            continue
        before = hunt.symptom(*reversed(hunt.suspected(hunt.example)))
        after = hunt.symptom(schedule, tensors)
        counts[name] = {"before": before, "after": after}
        print(
            f"{name}: your cause is {answer}; symptom count {before} before, {after} after repair"
        )
    return counts
