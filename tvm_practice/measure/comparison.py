"""Comparing two or more things fairly: interleaved in one run, as ratios with intervals."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from tvm_practice.measure.disturbance import (
    ACCEPT_LOAD,
    LITTLE_SHARE,
    Meter,
    load_is_accepted,
    wait_for_quiet,
)
from tvm_practice.measure.latency import Latency
from tvm_practice.measure.threads import quiesce

# Before each sample the same thing is called untimed for this long, once at least: that wakes its
# threads and fills its caches. A thread that is not bound to a core may wake on its caller's, and
# the two take turns of several milliseconds until the operating system parts them.
_SETTLE_SECONDS = 0.02
# A sample is the median of the calls of this time, of one call at least: single calls of a small
# model differ so much that the ratios of two comparisons of 15 rounds did by 30%.
_SAMPLE_SECONDS = 0.01
_SAMPLE = "the median of the calls of 10 ms, of one at least"
_BOOTSTRAP_RESAMPLES = 2000

# Of a comparison of whole models, unless more or less is asked for.
ROUNDS = 30
COMPARISON_SECONDS = 20.0

MIN_ROUNDS = 6
"""Fewest rounds of an interval: a bootstrap of three covers 75% in place of 95%, of seven 88%."""

NO_RATIO = "no ratio"
"""In tables: the machine was too busy to measure it."""

# A comparison that was disturbed is made again this many times in all, after a wait for quiet.
_ATTEMPTS = 3
_QUIET_SECONDS = 10.0
# Each side is also measured alone, before and after; in turns it may be slower by this factor, and
# by this many milliseconds, which is what a clock and a scheduler cost.
_ALONE_SAMPLES = 3
_ALONE_SHARE = 0.2  # of a time limit, for all samples that are taken alone
_SLOWER_IN_TURNS = 1.1
_NOISE_MS = 0.02
# A ratio is explained if it differs by this share from the quotient that a reader can form.
_APART = 0.03
OF_ROUNDS = "A ratio is the median of the rounds' ratios, not the quotient of two medians."
"""Said below a table that has times and ratios, if one of them `is_apart`."""
# High over low end of an interval, from which on a little load counts as well; and from which on
# the ratio is no finding.
_WIDE = 1.2
_TOO_WIDE = 1.5


@dataclass(frozen=True)
class Ratio:
    """Time of one thing over time of the baseline: median over rounds, with a 95% interval.

    Attributes:
        value: the median; NaN, as are low and high, if the comparison was disturbed.
        low: lower end of the interval.
        high: upper end.
        rounds: how many rounds it is the median of; None if that is not known.
        disturbance: what disturbed the measurement, in words; None for nothing.
    """

    value: float
    low: float
    high: float
    rounds: int | None = field(default=None, compare=False)
    disturbance: str | None = None

    @property
    def measured(self) -> bool:
        """Whether there is a value."""
        return not math.isnan(self.value)

    @property
    def verdict(self) -> str:
        """What may be said of the first of the two.

        `faster`, `slower`, `no significant difference` when the interval holds 1, `too few rounds`
        for an interval, or `not measured: …` with the cause of the disturbance.
        """
        if not self.measured:
            return f"not measured: {self.disturbance}"
        if self.rounds is not None and self.rounds < MIN_ROUNDS:
            return "too few rounds"
        if self.low <= 1 <= self.high:
            return "no significant difference"
        return "faster" if self.value < 1 else "slower"

    def cells(self, form: str = ".3g", *, inverse: bool = False) -> tuple[str, str]:
        """The value and its interval as text for a table.

        Args:
            form: of the numbers, as `format` takes it.
            inverse: how many times as fast, in place of the share of the time.
        """
        if not self.measured:
            return NO_RATIO, ""
        value, low, high = self.value, self.low, self.high
        if inverse:
            value, low, high = 1 / value, 1 / high, 1 / low
        return f"{value:{form}}", f"{low:{form}} to {high:{form}}"

    def __str__(self) -> str:
        if not self.measured:
            return self.verdict
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}], {self.verdict}"

    def to_dict(self) -> dict[str, Any]:
        """As JSON: the value and its interval are null where there is none."""
        return {
            "value": self.value if self.measured else None,
            "ci95": [self.low, self.high] if self.measured else None,
            "verdict": self.verdict,
            "disturbance": self.disturbance,
        }


@dataclass(frozen=True)
class Comparison:
    """Latencies taken side by side, and their ratios to the baseline.

    Attributes:
        baseline: the name of the denominator.
        latency: samples by name.
        ratio: time over the baseline's, by name.
        disturbance: what disturbed the measurement, in words; None for nothing. The ratios then
            have no value, unless load is accepted.
    """

    baseline: str
    latency: dict[str, Latency]
    ratio: dict[str, Ratio]
    disturbance: str | None = None

    @property
    def verdict(self) -> str:
        """`measured`, `unstable` or `not measured: …`."""
        if any(not ratio.measured for ratio in self.ratio.values()):
            return f"not measured: {self.disturbance}"
        measured = all(each.verdict == "measured" for each in self.latency.values())
        return "measured" if measured else "unstable"

    @property
    def spread(self) -> float:
        """The high over the low end of the widest interval; 1 with too few rounds for one."""
        known = [each for each in self.ratio.values() if (each.rounds or 0) >= MIN_ROUNDS]
        return max((each.high / each.low for each in known), default=1.0)

    @property
    def explanation(self) -> str:
        """What the ratios are, if dividing the medians beside them gives others; else ""."""
        base = self.latency[self.baseline].median
        apart = any(
            ratio.measured and is_apart(ratio.value, self.latency[name].median, base)
            for name, ratio in self.ratio.items()
        )
        return OF_ROUNDS if apart else ""

    def published(self) -> "Comparison":
        """This comparison, without ratios if it was disturbed and load is not accepted."""
        if self.disturbance is None or load_is_accepted():
            return self
        reason = f"{self.disturbance}; {ACCEPT_LOAD}=1 shows ratios anyway"
        without = {
            name: Ratio(math.nan, math.nan, math.nan, ratio.rounds, reason)
            for name, ratio in self.ratio.items()
        }
        return replace(self, ratio=without, disturbance=reason)

    def to_dict(self) -> dict[str, Any]:
        return {
            "baseline": self.baseline,
            "verdict": self.verdict,
            "latency": {name: each.to_dict() for name, each in self.latency.items()},
            "ratio": {name: each.to_dict() for name, each in self.ratio.items()},
        }


def _settle(run: Callable[[], Any]) -> None:
    quiesce()
    started = time.perf_counter()
    run()
    while time.perf_counter() - started < _SETTLE_SECONDS:
        run()


def one_sample(run: Callable[[], Any], *, before: Callable[[], Any] = lambda: None) -> float:
    """Milliseconds per call: the median of the calls of 10 ms, of one at least.

    They are made when other threads are idle and its own are awake. `before` is called before each
    call, and its time does not count.
    """
    _settle(run)
    calls: list[float] = []
    spent = 0.0
    while spent < _SAMPLE_SECONDS:
        before()
        started = time.perf_counter()
        run()
        calls.append(time.perf_counter() - started)
        spent += calls[-1]
    return float(np.median(calls)) * 1e3


def compare_interleaved(
    runs: Mapping[str, Callable[[], Any]],
    *,
    baseline: str,
    rounds: int = ROUNDS,
    warmup: int = 3,
    time_limit: float | None = None,
) -> Comparison:
    """Time each of `runs` in turn, round after round, and give ratios to `baseline`.

    One sample is that of `one_sample`. Each ratio pairs samples of the same round, so that
    what the machine does meanwhile hits both sides; its interval is a bootstrap of the median.

    Each side is also measured alone, before and after, and the load of other programs is read
    meanwhile. Where a side is slower in turns than alone, others took processors (3% of them, or
    0.5% where an interval is wide), or samples lie too far apart for a finding (an interval whose
    ends differ by half and more), the comparison is made again when the machine is quiet, three
    times in all; after that its ratios have no value and say why. With TVM_PRACTICE_ACCEPT_LOAD=1
    the first comparison is taken as it is.

    Args:
        runs: what to time, by name.
        baseline: the name whose time is the denominator.
        rounds: samples of each.
        warmup: rounds that are not kept.
        time_limit: seconds per attempt after which no new round begins (at least 6 are kept).
    """
    return compare_samples(
        {name: partial(one_sample, run) for name, run in runs.items()},
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
    """`compare_interleaved` of sides that take their own samples, in a process say.

    Args:
        takers: by name, a function that takes one sample and returns it in milliseconds.
        baseline, rounds, warmup, time_limit: as those of `compare_interleaved`.
    """
    if baseline not in takers:
        raise ValueError(f"baseline {baseline!r} is not among {', '.join(takers)}")
    if rounds < 1 or warmup < 0:
        raise ValueError(f"rounds={rounds} must be at least 1 and warmup={warmup} at least 0")
    in_turns = partial(_in_turns, takers, rounds=rounds, warmup=warmup, time_limit=time_limit)
    if load_is_accepted():
        meter = Meter()
        return _compared(in_turns(), baseline, warmup, meter.disturbance())
    for attempt in range(_ATTEMPTS):
        if attempt:
            wait_for_quiet(_QUIET_SECONDS)
        samples, disturbance, load = _watched(takers, in_turns, time_limit)
        compared = _compared(samples, baseline, warmup, disturbance)
        if disturbance is None and compared.spread > _WIDE:
            apart = "the samples lie too far apart" if compared.spread > _TOO_WIDE else None
            compared = _compared(samples, baseline, warmup, load or apart)
        if compared.disturbance is None:
            return compared
    return compared.published()


def _watched(
    takers: Mapping[str, Callable[[], float]],
    in_turns: Callable[[], dict[str, list[float]]],
    time_limit: float | None,
) -> tuple[dict[str, list[float]], str | None, str | None]:
    """Samples taken in turns, what disturbed them, and what little load there was."""
    limit = math.inf if time_limit is None else _ALONE_SHARE * time_limit / (2 * len(takers))
    meter = Meter()
    before = {name: _alone(take, limit) for name, take in takers.items()}
    samples = in_turns()
    after = {name: _alone(take, limit) for name, take in takers.items()}
    disturbance = meter.disturbance()
    load = disturbance or meter.disturbance(LITTLE_SHARE)
    if disturbance is None and len(takers) > 1:
        for name, taken in samples.items():
            alone = float(np.median(before[name] + after[name]))
            # The quicker quarter: a single hiccup is for the interval to tell.
            slower = float(np.percentile(taken, 25))
            if slower > _SLOWER_IN_TURNS * alone + _NOISE_MS:
                return samples, f"{name} took {slower / alone:.2f} of its time alone", load
    return samples, disturbance, load


def _alone(take: Callable[[], float], limit: float) -> list[float]:
    """A few samples of one side, one at least, while the others rest."""
    started = time.perf_counter()
    samples = [take()]
    while len(samples) < _ALONE_SAMPLES and time.perf_counter() - started < limit:
        samples.append(take())
    return samples


def _in_turns(
    takers: Mapping[str, Callable[[], float]],
    *,
    rounds: int,
    warmup: int,
    time_limit: float | None,
) -> dict[str, list[float]]:
    """Samples of each, round after round; of three and more, each comes first in its turn."""
    samples: dict[str, list[float]] = {name: [] for name in takers}
    order = list(takers)
    started = time.perf_counter()
    for turn in range(warmup + rounds):
        spent = time.perf_counter() - started
        if time_limit is not None and spent > time_limit and turn >= warmup + MIN_ROUNDS:
            break
        for name in order:
            elapsed = takers[name]()
            if turn >= warmup:
                samples[name].append(elapsed)
        if len(order) > 2:  # two take turns in either order
            order.append(order.pop(0))
    return samples


def _compared(
    samples: Mapping[str, list[float]], baseline: str, warmup: int, disturbance: str | None
) -> Comparison:
    base = np.array(samples[baseline])
    return Comparison(
        baseline,
        {
            name: Latency(tuple(each), warmup, _SAMPLE, disturbance)
            for name, each in samples.items()
        },
        {
            name: replace(paired_ratio(np.array(each), base), disturbance=disturbance)
            for name, each in samples.items()
        },
        disturbance,
    )


def is_apart(ratio: float, above: float, below: float) -> bool:
    """Whether a ratio is more than 3% away from the quotient of the two medians beside it."""
    return abs(above / below / ratio - 1) > _APART


def paired_ratio(times: np.ndarray, baseline: np.ndarray) -> Ratio:
    """Median of times/baseline over rounds with its 95% bootstrap interval."""
    ratios = times / baseline
    median = float(np.median(ratios))
    if len(ratios) < 2 or np.ptp(ratios) == 0:
        return Ratio(median, median, median, len(ratios))
    from scipy import stats  # slow to import

    interval = stats.bootstrap(
        (ratios,),
        np.median,
        n_resamples=_BOOTSTRAP_RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Ratio(median, float(interval.low), float(interval.high), len(ratios))


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
