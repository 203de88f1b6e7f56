"""Measuring: latency samples and their statistics, interleaved comparison, the environment."""

from tvm_practice.measure.comparison import (
    Comparison,
    Ratio,
    compare_interleaved,
    compare_samples,
    one_call,
    paired_ratio,
)
from tvm_practice.measure.environment import environment
from tvm_practice.measure.latency import Latency, LatencyMeasurer, sample_latency
from tvm_practice.measure.threads import quiesce

__all__ = [
    "Comparison",
    "Latency",
    "LatencyMeasurer",
    "Ratio",
    "compare_interleaved",
    "compare_samples",
    "environment",
    "one_call",
    "paired_ratio",
    "quiesce",
    "sample_latency",
]
