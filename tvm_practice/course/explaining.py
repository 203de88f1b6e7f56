"""The key questions' answers, as the phases' pages give them."""

import re

from tvm_practice.course.catalog import Exercise, Phase, modules, phases
from tvm_practice.course.progress import Standing
from tvm_practice.course.telling import page_of

_HEADING = "Key question"
_FOLD = '<details markdown="1">\n<summary>Answer</summary>\n\n', "\n\n</details>"


def key_question(phase: Phase) -> str:
    """The section of the phase's page with the key question and its answer, which is folded there.

    Raises OSError.
    """
    text = page_of(phase).read_text(encoding="utf-8")
    section = re.search(rf"^## {_HEADING}\n.*?(?=^## |\Z)", text, re.DOTALL | re.MULTILINE)
    if section is None:
        raise OSError(f"{phase.page} has no section {_HEADING!r}")
    opened, closed = _FOLD
    return section[0].replace(opened, "**Answer.** ").replace(closed, "").strip()


def missing(standing: Standing, phase: Phase) -> list[Exercise]:
    """The phase's exercises that must still pass; one without its engine here need not."""
    return [
        exercise
        for exercise in phase.exercises
        if standing.verdict(exercise).status in ("failed", "todo")
    ]


def finished(standing: Standing) -> Phase:
    """The last phase or lab whose exercises are all done; without one, the first phase."""
    done = [phase for phase in modules() if all(map(standing.is_done, phase.exercises))]
    return done[-1] if done else phases()[0]
