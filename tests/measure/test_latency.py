"""Latency samples and what is said of them, against numpy and scipy."""

import json
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from tests.measure.clock import Clock
from tvm_practice.measure import Latency, LatencyMeasurer, sample_latency


def drawn(count: int, seed: int = 3) -> np.ndarray:
    samples: np.ndarray = np.random.default_rng(seed).lognormal(1, 0.4, count)
    return samples


@pytest.mark.parametrize("count", [2, 5, 40, 1001])
def test_statistics_are_numpy_s_and_scipy_s(count: int) -> None:
    samples = drawn(count)
    latency = Latency(tuple(samples))
    assert latency.mean == pytest.approx(np.mean(samples))
    assert latency.std == pytest.approx(np.std(samples, ddof=1))
    assert latency.median == pytest.approx(np.median(samples))
    for q in (50, 90, 95, 99):
        assert latency.percentile(q) == pytest.approx(np.percentile(samples, q))
    error = stats.sem(samples) / np.mean(samples)
    interval = stats.t.interval(0.95, count - 1, loc=np.log(np.mean(samples)), scale=error)
    assert latency.ci95 == pytest.approx(np.exp(interval))


def test_an_interval_is_above_zero() -> None:
    assert Latency((0.01, 0.02, 0.6)).ci95[0] > 0


def test_interval_holds_the_true_mean_in_95_of_100_cases() -> None:
    rng = np.random.default_rng(5)
    held = 0
    for _ in range(1000):
        low, high = Latency(tuple(rng.normal(10, 2, 12))).ci95
        held += low <= 10 <= high
    assert 930 <= held <= 970


def test_one_sample_has_no_spread() -> None:
    latency = Latency((4.0,))
    assert (latency.std, latency.ci95, latency.median) == (0.0, (4.0, 4.0), 4.0)
    assert latency.stable


def test_equal_samples() -> None:
    latency = Latency((2.5,) * 10)
    assert latency.std == 0
    assert latency.ci95 == (2.5, 2.5)


@pytest.mark.parametrize(
    ("samples", "stable"),
    [
        ((10.0, 10.1, 10.2, 10.0, 90.0), True),  # one outlier is not in the middle half
        ((10.0, 10.0, 20.0, 20.0), False),
    ],
)
def test_stable(samples: tuple[float, ...], stable: bool) -> None:
    assert Latency(samples).stable is stable


def test_dictionary_is_json_and_keeps_raw_samples_when_asked() -> None:
    samples = drawn(30)
    latency = Latency(tuple(samples), warmup=4, sample="one batch")
    summary = json.loads(json.dumps(latency.to_dict()))
    assert "samples" not in summary
    assert (summary["count"], summary["warmup"]) == (30, 4)
    assert (summary["unit"], summary["sample"]) == ("ms", "one batch")
    assert summary["p90"] == pytest.approx(np.percentile(samples, 90))
    assert summary["ci95"] == pytest.approx(list(latency.ci95))
    assert latency.to_dict(samples=True)["samples"] == list(samples)


def test_warm_up_is_made_and_not_kept(clock: Clock) -> None:
    run = clock.callable([50, 40, 3, 1, 2])
    latency = sample_latency(run, warmup=2, repeats=3)
    assert latency.samples_ms == pytest.approx((3, 1, 2), rel=1e-3)
    assert latency.warmup == 2
    assert clock.called == 5


def test_no_warm_up(clock: Clock) -> None:
    latency = sample_latency(clock.callable([7]), warmup=0, repeats=1)
    assert latency.samples_ms == pytest.approx((7,), rel=1e-3)


@pytest.mark.parametrize(("warmup", "repeats"), [(-1, 5), (0, 0), (3, -2)])
def test_bad_counts(warmup: int, repeats: int) -> None:
    with pytest.raises(ValueError, match=f"warmup={warmup} .*repeats={repeats}"):
        sample_latency(lambda: None, warmup=warmup, repeats=repeats)
    with pytest.raises(ValueError, match=f"warmup_iter={warmup} .*repeats={repeats}"):
        LatencyMeasurer(warmup_iter=warmup, repeats=repeats)


def test_what_the_callable_raises_is_not_swallowed() -> None:
    def broken() -> None:
        raise RuntimeError("no memory")

    with pytest.raises(RuntimeError, match="no memory"):
        sample_latency(broken, warmup=0, repeats=1)


@pytest.mark.parametrize(
    ("example", "want"),
    [
        ((1, 2), ((1, 2), {})),
        ([3], ((3,), {})),
        ({"a": 4}, ((), {"a": 4})),
        (5, ((5,), {})),
    ],
)
def test_measurer_gives_the_model_its_example(example: object, want: object) -> None:
    given = []
    model: Callable[..., None] = lambda *args, **named: given.append((args, named))
    summary = LatencyMeasurer(warmup_iter=1, repeats=4).measure(model, example)
    assert given == [want] * 5
    assert (summary["count"], summary["warmup"]) == (4, 1)


def test_measurer_of_a_callable(clock: Clock) -> None:
    run = clock.callable([9, 9, 1, 2, 3, 4])
    summary = LatencyMeasurer(warmup_iter=2, repeats=4).measure_callable(run)
    assert summary["mean"] == pytest.approx(2.5, rel=1e-3)
    assert summary["p50"] == pytest.approx(2.5, rel=1e-3)
