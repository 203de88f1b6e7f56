"""Measuring: latency samples and their statistics, interleaved comparison, the environment."""

from tvm_practice.measure.comparison import (
    COMPARISON_SECONDS,
    MIN_ROUNDS,
    NO_RATIO,
    ROUNDS,
    Comparison,
    Ratio,
    compare_interleaved,
    compare_samples,
    one_sample,
    paired_ratio,
)
from tvm_practice.measure.disturbance import ACCEPT_LOAD, Meter, wait_for_quiet
from tvm_practice.measure.environment import environment
from tvm_practice.measure.latency import Latency, LatencyMeasurer, sample_latency
from tvm_practice.measure.stopwatch import Stopwatch
from tvm_practice.measure.threads import quiesce

__all__ = [
    "ACCEPT_LOAD",
    "COMPARISON_SECONDS",
    "MIN_ROUNDS",
    "NO_RATIO",
    "ROUNDS",
    "Comparison",
    "Latency",
    "LatencyMeasurer",
    "Meter",
    "Ratio",
    "Stopwatch",
    "compare_interleaved",
    "compare_samples",
    "environment",
    "one_sample",
    "paired_ratio",
    "quiesce",
    "sample_latency",
    "wait_for_quiet",
]
