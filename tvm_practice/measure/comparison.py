"""Comparing two or more things fairly: interleaved in one run, as ratios with intervals."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tvm_practice.measure.latency import Latency
from tvm_practice.measure.threads import quiesce

# Before each sample the same thing is called untimed for this long, once at least: that wakes its
# threads and fills its caches. A thread that is not bound to a core may wake on its caller's, and
# the two take turns of several milliseconds until the operating system parts them.
_SETTLE_SECONDS = 0.02
_BOOTSTRAP_RESAMPLES = 2000

# Of a comparison of whole models, unless more or less is asked for.
ROUNDS = 30
COMPARISON_SECONDS = 20.0


@dataclass(frozen=True)
class Ratio:
    """Time of one thing over time of the baseline: median over rounds, with a 95% interval."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """`faster`, `slower`, or `no significant difference` when the interval holds 1."""
        if self.low <= 1 <= self.high:
            return "no significant difference"
        return "faster" if self.value < 1 else "slower"

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "ci95": [self.low, self.high], "verdict": self.verdict}


@dataclass(frozen=True)
class Comparison:
    """Latencies taken side by side, and their ratios to the baseline."""

    baseline: str
    latency: dict[str, Latency]
    ratio: dict[str, Ratio]

    def to_dict(self) -> dict[str, Any]:
        return {
            "baseline": self.baseline,
            "latency": {name: each.to_dict() for name, each in self.latency.items()},
            "ratio": {name: each.to_dict() for name, each in self.ratio.items()},
        }


def _settle(run: Callable[[], Any]) -> None:
    quiesce()
    started = time.perf_counter()
    run()
    while time.perf_counter() - started < _SETTLE_SECONDS:
        run()


def one_call(run: Callable[[], Any]) -> float:
    """Milliseconds of one call, made when other threads are idle and its own are awake."""
    _settle(run)
    before = time.perf_counter()
    run()
    return (time.perf_counter() - before) * 1e3


def compare_interleaved(
    runs: Mapping[str, Callable[[], Any]],
    *,
    baseline: str,
    rounds: int = ROUNDS,
    warmup: int = 3,
    time_limit: float | None = None,
) -> Comparison:
    """Time each of `runs` in turn, round after round, and give ratios to `baseline`.

    One sample is one call, see `one_call`. Each ratio pairs samples of the same round, so that
    what the machine does meanwhile hits both sides; its interval is a bootstrap of the median.

    Args:
        runs: what to time, by name.
        baseline: the name whose time is the denominator.
        rounds: samples of each.
        warmup: rounds that are not kept.
        time_limit: seconds after which no new round begins (at least 3 are kept).
    """
    return compare_samples(
        {name: partial(one_call, run) for name, run in runs.items()},
        baseline=baseline,
        rounds=rounds,
        warmup=warmup,
        time_limit=time_limit,
    )


def compare_samples(
    takers: Mapping[str, Callable[[], float]],
    *,
    baseline: str,
    rounds: int = ROUNDS,
    warmup: int = 3,
    time_limit: float | None = None,
) -> Comparison:
    """`compare_interleaved` of what takes its samples itself, in a process of its own say.

    Args:
        takers: by name, a function that takes one sample and returns it in milliseconds.
        baseline, rounds, warmup, time_limit: as those of `compare_interleaved`.
    """
    if baseline not in takers:
        raise ValueError(f"baseline {baseline!r} is not among {', '.join(takers)}")
    if rounds < 1 or warmup < 0:
        raise ValueError(f"rounds={rounds} must be at least 1 and warmup={warmup} at least 0")
    samples: dict[str, list[float]] = {name: [] for name in takers}
    started = time.perf_counter()
    for turn in range(warmup + rounds):
        spent = time.perf_counter() - started
        if time_limit is not None and spent > time_limit and turn >= warmup + 3:
            break
        for name, take in takers.items():
            elapsed = take()
            if turn >= warmup:
                samples[name].append(elapsed)
    base = np.array(samples[baseline])
    return Comparison(
        baseline,
        {name: Latency(tuple(each), warmup) for name, each in samples.items()},
        {name: paired_ratio(np.array(each), base) for name, each in samples.items()},
    )


def paired_ratio(times: np.ndarray, baseline: np.ndarray) -> Ratio:
    """Median of times/baseline over rounds with its 95% bootstrap interval."""
    ratios = times / baseline
    median = float(np.median(ratios))
    if len(ratios) < 2 or np.ptp(ratios) == 0:
        return Ratio(median, median, median)
    from scipy import stats  # slow to import

    interval = stats.bootstrap(
        (ratios,),
        np.median,
        n_resamples=_BOOTSTRAP_RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Ratio(median, float(interval.low), float(interval.high))


def ratio_interval(
    above: Mapping[str, Any], below: Mapping[str, Any]
) -> tuple[float, float] | None:
    """95% interval of the ratio of two means that were measured independently.

    Each mean has the standard error std / sqrt(count). The logarithm of the ratio has the sum of
    the squared relative errors as its variance (delta method), with Welch's degrees of freedom.

    Args:
        above: latency of the numerator, as `Latency.to_dict` gives it: mean, std, count.
        below: latency of the denominator.

    Returns:
        Lower and upper end; None if a standard error is not known.
    """
    variances, freedoms = [], []
    for latency in (above, below):
        std, count = latency.get("std"), latency.get("count")
        if not isinstance(std, int | float) or not isinstance(count, int) or count < 2:
            return None
        if not math.isfinite(std) or std < 0:
            return None
        variances.append((std / latency["mean"]) ** 2 / count)
        freedoms.append(count - 1)
    ratio = above["mean"] / below["mean"]
    variance = sum(variances)
    if variance == 0:
        return ratio, ratio
    from scipy import stats

    freedom = variance**2 / sum(v**2 / f for v, f in zip(variances, freedoms, strict=True))
    half = float(stats.t.ppf(0.975, freedom)) * math.sqrt(variance)
    return ratio * math.exp(-half), ratio * math.exp(half)
