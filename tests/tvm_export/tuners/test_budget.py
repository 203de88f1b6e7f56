"""Rounds and plans for small budgets."""

import pytest

from tvm_practice.tvm_export.tuners import plan_size, trials_per_round
from tvm_practice.tvm_export.tuners.budget import worth_tuning


@pytest.mark.parametrize("tasks", [1, 2, 5, 20])
@pytest.mark.parametrize("trials", [20, 24, 37, 64, 100, 300, 1000])
def test_rounds_overshoot_by_less_than_one(trials: int, tasks: int) -> None:
    size = trials_per_round(trials, tasks)
    assert 1 <= size <= 16
    assert size * tasks <= trials  # every task is measured
    assert -trials % size < size


def test_the_model_has_something_to_choose() -> None:
    assert trials_per_round(16) == 8
    assert trials_per_round(64) == 16
    assert trials_per_round(100) == 10  # exactly, rather than 7 rounds of 15
    assert trials_per_round(4) == 4  # too few to learn from


def test_too_few_trials_for_the_tasks() -> None:
    with pytest.raises(ValueError, match="3 trials cannot cover 4 tasks"):
        trials_per_round(3, 4)


@pytest.mark.parametrize("trials", [2, 8, 16, 24, 64, 100, 256, 1000])
def test_no_plan_is_made_after_the_last_trial(trials: int) -> None:
    assert plan_size(trials) >= 9
    assert trials % plan_size(trials) != 0
    if trials >= 16:
        assert plan_size(trials) < trials  # the model is fitted at least once


def test_a_models_trials_go_where_the_time_is() -> None:
    shares = [0.1, 0.6, 0.02, 0.28]
    assert worth_tuning(shares, 8) == [1]
    assert worth_tuning(shares, 16) == [1, 3]
    assert worth_tuning(shares, 1000) == [1, 3, 0]  # the last 2% are not worth it
    assert worth_tuning(shares, 1) == [1]
