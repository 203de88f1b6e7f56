"""The bug hunts: every symptom is there, and the page shows it."""

import pytest

from tests.conftest import Processes
from tests.course.conftest import ROOT, Tree
from tvm_practice.course.catalog import phase
from tvm_practice.course.suspects import HUNTS, LETTERS
from tvm_practice.engines import CLASSIC, CURRENT, Engine, unavailable_reason

SUSPECTS = "tvm_practice.course.suspects"


def _skip_without(engine: Engine) -> None:
    if reason := unavailable_reason(engine):
        pytest.skip(reason)


def _names(engine: Engine) -> list[str]:
    return [name for name, hunt in HUNTS.items() if hunt.engine == engine]


def test_each_hunt_is_an_exercise_with_one_cause() -> None:
    assert [each.name for each in phase("bug_hunts").exercises] == list(HUNTS)
    for name, hunt in HUNTS.items():
        assert sum(not each.why_not for each in hunt.causes) == 1, name
    assert {hunt.cause for hunt in HUNTS.values()} == set(LETTERS)


@pytest.mark.parametrize("engine", [CURRENT, CLASSIC])
def test_each_symptom_shows(process_of: Processes, engine: Engine) -> None:
    """In what TVM is given: nothing is timed, no thread has to be unlucky."""
    _skip_without(engine)
    counts = process_of(engine).call("tests.course.bug_hunts_functions:counts")
    assert list(counts) == _names(engine)
    for name, (wrong, _, limit) in counts.items():
        assert wrong > limit, name


@pytest.mark.parametrize("engine", [CURRENT, CLASSIC])
def test_the_page_has_what_the_command_prints(process_of: Processes, engine: Engine) -> None:
    _skip_without(engine)
    written = (ROOT / "docs" / "practice" / "bug_hunts.md").read_text()
    reports = process_of(engine).call(f"{SUSPECTS}:reports", {"names": _names(engine)})
    for name, report in reports.items():
        assert report in written, f"write {name} anew: tvm-practice hunt --page"
        assert max(map(len, report.splitlines())) <= 80


def test_a_hunt_is_shown_with_its_causes(cheap: Tree) -> None:
    shown = cheap.run("hunt", "lost_bound").stdout
    assert "def lost_bound(schedule: Any)" in shown and "for i_0 in parallel(5):" in shown
    assert "symptom: " in shown and "values: " in shown and "(d) " in shown
    assert "tvm_practice/bug_hunts.py, line" in shown
    assert "one of the bug_hunts: parallel_sum" in cheap.run("hunt", "tile", code=2).stderr
