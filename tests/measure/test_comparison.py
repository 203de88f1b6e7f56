"""Interleaved comparisons: their order, ratios and intervals, and waiting for idle threads."""

import itertools
import json

import numpy as np
import pytest
from scipy import stats

from tests.measure.clock import Clock
from tvm_practice.measure import (
    MIN_ROUNDS,
    Comparison,
    Latency,
    Ratio,
    compare_interleaved,
    compare_samples,
    paired_ratio,
)


def blocks(order: list[str]) -> list[str]:
    """The order of calls with repeated ones taken together."""
    return [name for name, _ in itertools.groupby(order)]


def test_order_is_interleaved(clock: Clock) -> None:
    runs = {name: clock.callable([2], name) for name in "abc"}
    compare_interleaved(runs, baseline="b", rounds=5, warmup=2)
    assert blocks(clock.order) == list("abcbcacababcbcacababc")


def test_each_sample_follows_an_untimed_call_of_the_same(clock: Clock) -> None:
    slow_after_another = {name: itertools.cycle([30.0, 12.0]) for name in "ab"}
    runs = {
        name: clock.callable(itertools.islice(slow_after_another[name], 40), name) for name in "ab"
    }
    comparison = compare_interleaved(runs, baseline="a", rounds=6, warmup=1)
    for latency in comparison.latency.values():
        assert latency.samples_ms == pytest.approx([12] * 6, rel=1e-3)


def test_small_things_are_called_for_a_while_before_a_sample(clock: Clock) -> None:
    compare_interleaved({"a": clock.callable([0.01], "a")}, baseline="a", rounds=1, warmup=0)
    assert 2900 < clock.called < 3100  # two thirds of them are not timed


def test_a_sample_of_small_things_is_a_median(clock: Clock) -> None:
    """A slow call among the quick ones of a sample does not count."""
    hiccups = itertools.islice(itertools.cycle([0.5, 0.5, 0.5, 0.5, 4.0]), 10_000)
    runs = {"a": clock.callable(hiccups, "a")}
    latency = compare_interleaved(runs, baseline="a", rounds=6).latency["a"]
    assert latency.samples_ms == pytest.approx([0.5] * 6, rel=1e-3)
    assert latency.to_dict()["sample"] == "the median of the calls of 10 ms, of one at least"


def test_samples_wait_for_the_threads_of_the_others(clock: Clock) -> None:
    """Whenever one is called, what the other left spinning has come to its end."""
    began: list[bool] = []
    first = clock.callable([3], "first", spins_for=0.1)
    second = clock.callable([3], "second", spins_for=0.1)

    def noting(name: str) -> None:
        if not clock.order or clock.order[-1] != name:
            began.append(clock.now >= clock.spinning_until)
        (first if name == "first" else second)()

    runs = {name: lambda name=name: noting(name) for name in ("first", "second")}
    compare_interleaved(runs, baseline="first", rounds=4, warmup=0)
    assert began == [True] * 8


def test_ratio_is_to_the_baseline(clock: Clock) -> None:
    runs = {"a": clock.callable([6], "a"), "b": clock.callable([2], "b")}
    comparison = compare_interleaved(runs, baseline="b", rounds=8)
    assert comparison.baseline == "b"
    assert comparison.ratio["a"].value == pytest.approx(3, rel=1e-3)
    assert comparison.ratio["b"] == Ratio(1, 1, 1)
    assert comparison.ratio["a"].verdict == "slower"
    assert comparison.latency["a"].median == pytest.approx(6, rel=1e-3)


def test_counts(clock: Clock) -> None:
    runs = {"a": clock.callable([6], "a"), "b": clock.callable([2], "b")}
    comparison = compare_interleaved(runs, baseline="b", rounds=9, warmup=4)
    assert {len(each.samples_ms) for each in comparison.latency.values()} == {9}
    assert {each.warmup for each in comparison.latency.values()} == {4}


def test_time_limit_keeps_six_rounds_and_equal_counts(clock: Clock) -> None:
    runs = {"a": clock.callable([1000], "a"), "b": clock.callable([2], "b")}
    comparison = compare_interleaved(runs, baseline="b", rounds=50, warmup=1, time_limit=0.5)
    assert {len(each.samples_ms) for each in comparison.latency.values()} == {MIN_ROUNDS}


def test_drift_of_the_machine_cancels(clock: Clock) -> None:
    """A machine that gets twice as slow while it is measured does not widen the interval."""
    slowing = np.repeat(np.linspace(1, 2, 24), 2)  # an untimed and a timed call a round
    runs = {"a": clock.callable(60 * slowing, "a"), "b": clock.callable(40 * slowing, "b")}
    ratio = compare_interleaved(runs, baseline="b", rounds=20, warmup=4).ratio["a"]
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((1.5,) * 3, rel=1e-3)


def test_unknown_baseline() -> None:
    with pytest.raises(ValueError, match="'torch' is not among tvm, numpy"):
        compare_interleaved({"tvm": lambda: None, "numpy": lambda: None}, baseline="torch")


def test_no_rounds() -> None:
    with pytest.raises(ValueError, match="rounds=0"):
        compare_interleaved({"a": lambda: None}, baseline="a", rounds=0)


def test_comparison_as_json(clock: Clock) -> None:
    runs = {"a": clock.callable([6, 7, 8, 9, 5], "a"), "b": clock.callable([2], "b")}
    summary = json.loads(json.dumps(compare_interleaved(runs, baseline="b", rounds=5).to_dict()))
    assert summary["baseline"] == "b"
    assert set(summary["ratio"]["a"]) == {"value", "ci95", "verdict", "disturbance"}
    assert summary["latency"]["a"]["count"] == 5


@pytest.mark.parametrize("count", [2, 7, 30, 200])
def test_paired_ratio_is_scipys_bootstrap_of_the_median(count: int) -> None:
    rng = np.random.default_rng(count)
    times, baseline = rng.lognormal(0.2, 0.3, (2, count))
    ratio = paired_ratio(times, baseline)
    assert ratio.value == pytest.approx(np.median(times / baseline))
    assert ratio.low <= ratio.value <= ratio.high
    interval = stats.bootstrap(
        (times / baseline,), np.median, n_resamples=20_000, method="percentile", rng=rng
    ).confidence_interval
    spread = np.ptp(times / baseline)
    assert (ratio.low, ratio.high) == pytest.approx(tuple(interval), abs=0.1 * spread)


def test_interval_holds_the_true_median_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(200):
        ratio = paired_ratio(rng.lognormal(0, 0.2, 25), np.ones(25))
        held += ratio.low <= 1 <= ratio.high
    assert 180 <= held <= 199


def test_constant_ratio_has_no_width() -> None:
    baseline = np.array([1.0, 2.0, 4.0])
    assert paired_ratio(2 * baseline, baseline) == Ratio(2, 2, 2)
    assert paired_ratio(np.array([3.0]), np.array([2.0])) == Ratio(1.5, 1.5, 1.5)


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [
        (Ratio(0.8, 0.7, 0.9), "faster"),
        (Ratio(1.3, 1.2, 1.4), "slower"),
        (Ratio(0.9, 0.7, 1.1), "no significant difference"),
        (Ratio(1.0, 1.0, 1.0), "no significant difference"),
    ],
)
def test_verdict(ratio: Ratio, verdict: str) -> None:
    assert ratio.verdict == verdict
    assert ratio.to_dict()["verdict"] == verdict


def test_samples_that_are_taken_elsewhere(clock: Clock) -> None:
    """They are taken in turns, as given, those of the warm-up not kept."""
    order: list[str] = []

    def take(name: str, milliseconds: float) -> float:
        order.append(name)
        return milliseconds if len(order) > 4 else 1000

    compared = compare_samples(
        {"a": lambda: take("a", 6), "b": lambda: take("b", 2)}, baseline="b", rounds=3, warmup=2
    )
    assert order == ["a", "b"] * 5
    assert compared.latency["a"].samples_ms == (6, 6, 6)
    assert compared.ratio["a"] == Ratio(3, 3, 3)


@pytest.mark.parametrize(
    ("a", "is_apart"), [([1.0, 1.0, 1.0, 8.0, 8.0], True), ([0.5, 2.0, 2.0, 2.0, 4.0], False)]
)
def test_a_ratio_that_is_no_quotient_of_the_medians_is_explained(
    a: list[float], is_apart: bool
) -> None:
    b = [1.0, 4.0, 4.0, 4.0, 8.0]
    comparison = Comparison(
        "b",
        {"a": Latency(tuple(a)), "b": Latency(tuple(b))},
        {name: paired_ratio(np.array(each), np.array(b)) for name, each in (("a", a), ("b", b))},
    )
    assert comparison.explanation.startswith("A ratio is the median") == is_apart
    assert bool(comparison.explanation) == is_apart
