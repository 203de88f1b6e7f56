"""`python -m tests.mutants.load`: which right answers it grades, and what it writes."""

from collections import Counter

import pytest

from tests.mutants.load import Answer, answers, grade, order, remaining, table
from tvm_practice.course.grading import Grader


def test_searches_are_graded_only_if_asked_for() -> None:
    names = {each.exercise for each in answers()}
    assert "manual_schedule.packed_matmul" in names and "labs.tuning_farm.throughput" in names
    assert not any(name.startswith("auto_tune") for name in names)
    assert {each.exercise for each in answers("auto_tune.apply")} > {"auto_tune.apply_ansor"}


def test_cheap_ones_are_graded_again_and_again() -> None:
    found = answers()
    chosen = order(found, 2 * len(found), seed=0)
    assert len(chosen) == 2 * len(found)
    counts = Counter((each.exercise, each.name) for each in chosen)
    assert counts.keys() == {(each.exercise, each.name) for each in found}
    assert counts["te_basics.matmul", "reference"] > counts["labs.tuning_farm.predict", "reference"]


@pytest.mark.parametrize("name", ["rows_to_threads"])
def test_a_verdict_is_kept_with_its_load(name: str) -> None:
    (answer, *_) = answers(f"puzzles.{name}")
    with Grader() as grader:
        [(graded, load, verdict)] = grade(grader, [answer], loads=[(0.1,)])
    assert (graded, load, verdict.status) == (answer, (0.1,), "passed")


def test_false_alarms_are_counted() -> None:
    records = [
        {"exercise": "a.b", "name": "reference", "load": [0.5], "status": status, "seconds": 1.25}
        for status in ("passed", "failed", "passed")
    ]
    shown = table(records)
    assert "| 0.5 | 3 | 1 | 1.2 |" in shown and "| all | 3 | 1 | 1.2 |" in shown
    assert "1 right answers to 1 exercises" in shown


def test_a_run_goes_on_where_it_ended() -> None:
    chosen = order(answers("puzzles"), 40, seed=0)
    records = [{"exercise": each.exercise, "name": each.name} for each in chosen[:25]]
    left = remaining(chosen, records)
    assert len(left) == 15 and remaining(chosen, []) == chosen
    assert Counter(map(_key, left)) == Counter(map(_key, chosen[25:]))


def _key(answer: Answer) -> tuple[str, str]:
    return answer.exercise, answer.name
