"""Latency: raw samples in milliseconds, and what can honestly be said of them."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_practice.measure.disturbance import Meter

# Above this ratio of the interquartile range to the median, a figure is called unstable.
_UNSTABLE_SPREAD = 0.15
UNSTABLE = f"the middle half of the samples spans over {_UNSTABLE_SPREAD:.0%} of the median"


@dataclass(frozen=True)
class Latency:
    """Samples of one thing's latency.

    Attributes:
        samples_ms: milliseconds, in the order they were taken, warm-up excluded.
        warmup: how many calls were made before the first sample.
        sample: what one sample is, in words.
        disturbance: what else used the machine meanwhile, in words; None for nothing.
    """

    samples_ms: tuple[float, ...]
    warmup: int = 0
    sample: str = "one call"
    disturbance: str | None = None

    def percentile(self, q: float) -> float:
        return float(np.percentile(self.samples_ms, q))

    @property
    def median(self) -> float:
        return self.percentile(50)

    @property
    def mean(self) -> float:
        return float(np.mean(self.samples_ms))

    @property
    def std(self) -> float:
        """Sample standard deviation; 0 for a single sample."""
        return float(np.std(self.samples_ms, ddof=1)) if len(self.samples_ms) > 1 else 0.0

    @property
    def ci95(self) -> tuple[float, float]:
        """Student-t interval of the mean by the delta method on its logarithm: always above 0."""
        if len(self.samples_ms) < 2 or self.std == 0:
            return self.mean, self.mean
        from scipy import stats  # takes as long to import as the rest of the project

        error = self.std / len(self.samples_ms) ** 0.5 / self.mean
        half = float(stats.t.ppf(0.975, len(self.samples_ms) - 1)) * error
        return self.mean * math.exp(-half), self.mean * math.exp(half)

    @property
    def stable(self) -> bool:
        """Whether the middle half of the samples is narrow; where it is not, `UNSTABLE` holds."""
        return self.percentile(75) - self.percentile(25) <= _UNSTABLE_SPREAD * self.median

    @property
    def verdict(self) -> str:
        """`measured`, or `unstable: …` with the reason."""
        if self.disturbance is not None:
            return f"unstable: {self.disturbance}"
        return "measured" if self.stable else f"unstable: {UNSTABLE}"

    def to_dict(self, *, samples: bool = False) -> dict[str, Any]:
        """As JSON; the raw samples only when asked for."""
        low, high = self.ci95
        summary: dict[str, Any] = {
            "unit": "ms",
            "sample": self.sample,
            "count": len(self.samples_ms),
            "warmup": self.warmup,
            "mean": self.mean,
            "std": self.std,
            **{f"p{q}": self.percentile(q) for q in (50, 90, 95, 99)},
            "ci95": [low, high],
            "stable": self.stable,
            "verdict": self.verdict,
        }
        if samples:
            summary["samples"] = list(self.samples_ms)
        return summary


def sample_latency(run: Callable[[], Any], *, warmup: int, repeats: int) -> Latency:
    """Time `repeats` calls of `run`, each one sample, after `warmup` calls that are not kept."""
    if warmup < 0 or repeats < 1:
        raise ValueError(f"warmup={warmup} must be at least 0 and repeats={repeats} at least 1")
    for _ in range(warmup):
        run()
    meter = Meter()
    samples = []
    for _ in range(repeats):
        started = time.perf_counter()
        run()
        samples.append((time.perf_counter() - started) * 1e3)
    return Latency(tuple(samples), warmup, disturbance=meter.disturbance())


class LatencyMeasurer:
    """Latency of a model or of any callable.

    Args:
        warmup_iter: calls made first and not kept.
        repeats: calls timed, one sample each.
    """

    def __init__(self, warmup_iter: int = 50, repeats: int = 1000):
        if warmup_iter < 0 or repeats < 1:
            raise ValueError(f"warmup_iter={warmup_iter} must be >= 0 and repeats={repeats} >= 1")
        self.warmup_iter = warmup_iter
        self.repeats = repeats

    def measure(self, model: Callable[..., Any], example: Any) -> dict[str, Any]:
        """Latency of `model(example)`; a tuple or list is spread, a mapping given by keyword."""
        if isinstance(example, Mapping):
            return self.measure_callable(lambda: model(**example))
        if isinstance(example, Sequence):
            return self.measure_callable(lambda: model(*example))
        return self.measure_callable(lambda: model(example))

    def measure_callable(self, run: Callable[[], Any]) -> dict[str, Any]:
        """Latency of `run()` as a dictionary: mean, std, p50 … p99, ci95, stable, in ms."""
        return sample_latency(run, warmup=self.warmup_iter, repeats=self.repeats).to_dict()
