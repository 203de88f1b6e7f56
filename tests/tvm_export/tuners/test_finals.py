"""Which of a search's records a model gets."""

from typing import Any

import pytest

from tvm_practice import engines

_NAMES = ("first", "second")


@pytest.fixture(scope="module")
def verdicts() -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = engines.call(
        "current", "tests.tvm_export.tuners.finals_functions:chosen"
    )
    return found


def test_a_record_slower_than_the_default_is_taken_back(verdicts: dict[str, list[Any]]) -> None:
    """Whatever time the database has for it."""
    assert verdicts["loops beside the default"] == [
        0,
        1,
        None,
        0,
        dict.fromkeys(_NAMES, "fallback"),
    ]


def test_of_records_alike_in_the_database_the_one_that_is_faster_now_is_chosen(
    verdicts: dict[str, list[Any]],
) -> None:
    """For both of two equal functions; it is timed for one."""
    assert verdicts["loops and tiles beside loops"] == [
        1,
        0,
        1.2e-6,
        2,
        dict.fromkeys(_NAMES, "record"),
    ]


def test_a_record_far_behind_is_not_timed_again(verdicts: dict[str, list[Any]]) -> None:
    kept, slower, seconds, _, made_by = verdicts["tiles far behind"]
    assert kept + slower == 1 and seconds in (None, 1e-6)
    assert made_by == dict.fromkeys(_NAMES, "record" if kept else "fallback")


def test_without_records_the_default_stays(verdicts: dict[str, list[Any]]) -> None:
    assert verdicts["none"] == [0, 0, None, 0, {}]


def test_a_record_that_the_rules_refuse_leaves_the_default(verdicts: dict[str, list[Any]]) -> None:
    assert verdicts["a tile that is refused"] == verdicts["none"]
