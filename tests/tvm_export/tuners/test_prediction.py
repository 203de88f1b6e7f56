"""Going through a log again: each trial predicted by those before it, and by nothing else."""

from collections.abc import Sequence

import pytest

from tvm_practice.tvm_export.tuners.prediction import (
    Prediction,
    _in_rounds,
    rank_correlation,
)


class Oracle:
    """A model that says how many trials it was told of, and remembers which."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def predict(self, candidates: Sequence[str]) -> list[float]:
        assert not set(candidates) & set(self.told)
        return [float(len(self.told))] * len(candidates)

    def update(self, batch: Sequence[tuple[str, float | None]]) -> None:
        self.told += [candidate for candidate, _ in batch]


def test_a_round_is_predicted_by_the_rounds_before_it() -> None:
    oracle = Oracle()
    trials = [("a", 1.0), ("b", 2.0), ("c", None), ("d", 4.0), ("e", 5.0)]
    found = _in_rounds(trials, 2, oracle.predict, oracle.update)
    # The first round has nothing before it; a failed trial has no time to compare with.
    assert found == [Prediction(4, 2.0, 4.0), Prediction(5, 4.0, 5.0)]
    assert oracle.told == ["a", "b", "c", "d", "e"]


def _scored(*scores: float) -> list[Prediction]:
    return [Prediction(at, score, at) for at, score in enumerate(scores, start=1)]


def test_rank_correlation_is_of_speed() -> None:
    """A higher score foretells a shorter time."""
    assert rank_correlation(_scored(4, 3, 2, 1)) == pytest.approx(1)
    assert rank_correlation(_scored(1, 2, 3, 4)) == pytest.approx(-1)
    assert rank_correlation(_scored(1, 1, 1, 1)) is None
    assert rank_correlation(_scored(1, 2, 3)) is None
