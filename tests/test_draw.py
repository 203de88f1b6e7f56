"""A fifth of the cases of tests that are marked `drawn`."""

from types import SimpleNamespace
from typing import Any

from tests.conftest import not_drawn


def _cases(draw: str) -> set[str]:
    items: list[Any] = [
        SimpleNamespace(nodeid=f"test_answers.py::test_{name}[{number}]")
        for name, count in (("right", 5), ("wrong", 30))
        for number in range(count)
    ]
    left = {id(each) for each in not_drawn(items, draw)}
    return {each.nodeid for each in items if id(each) not in left}


def test_a_fifth_of_each_test() -> None:
    first, again, other = _cases("a"), _cases("a"), _cases("b")
    assert first == again != other
    for drawn in (first, other):
        assert [sum(name in each for each in drawn) for name in ("right", "wrong")] == [1, 6]


def test_commits_come_to_all_cases() -> None:
    assert len(set().union(*(_cases(str(commit)) for commit in range(60)))) == 35
