"""What a trial's time is."""

import pytest

from tests.conftest import Processes

_RECORDED = "tests.tvm_export.tuners.trials_functions:recorded"


def test_a_trial_is_timed_beside_the_first_of_its_task(process_of: Processes) -> None:
    """Whatever the machine's speed is by then; another task has a reference of its own."""
    a_call = [0.01]
    first = (0, [*a_call, 1.0, 1.0, 9.0, 1.0, 1.1, 0.9, 1.0])
    disturbed = [90.0, 2.0, 2.0, 2.0]
    at_half_speed = (0, [*a_call, *[4.0, 2.0] * 2, *disturbed, *[4.0, 2.0] * 2, 4.2, 2.1])
    other_task = (1, [*a_call, *[6.0] * 7])
    seconds = process_of("current").call(_RECORDED, {"trials": [first, at_half_speed, other_task]})
    assert seconds == [1.0, 2.0, 6.0]


def test_one_that_is_much_faster_is_what_the_next_are_timed_beside(process_of: Processes) -> None:
    """On the scale of the first, whatever the machine's speed is."""
    first = (0, [0.01, *[8.0] * 7])
    faster = (0, [0.01, *[3.0, 12.0] * 7])
    next_one = (0, [0.01, *[2.0, 1.0] * 7])
    seconds = process_of("current").call(_RECORDED, {"trials": [first, faster, next_one]})
    assert seconds == [8.0, 2.0, 4.0]


def test_a_trial_is_not_far_from_what_was_seen(process_of: Processes) -> None:
    """However wrong the reference's time was: errors do not multiply from one to the next."""
    first = (0, [0.01, *[1.0] * 7])
    disturbed = [(0, [0.01, *[0.9, 90.0] * 7])] * 5
    seconds = process_of("current").call(_RECORDED, {"trials": [first, *disturbed]})
    assert seconds == [1.0, *[0.45] * 5]


def test_a_sample_is_the_time_of_a_call(process_of: Processes) -> None:
    """Of as many calls as fill a sample; the first candidate is gone from the disk by then."""
    trials: list[tuple[int, float]] = [(0, 0.002), (0, 0.0015), (0, 0.25)]
    seconds = process_of("current").call(_RECORDED, {"trials": trials})
    assert seconds == pytest.approx([0.002, 0.0015, 0.25])
