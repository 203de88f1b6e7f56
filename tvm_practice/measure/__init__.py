"""Measuring: latency samples and their statistics, interleaved comparison, the environment."""

from tvm_practice.measure.comparison import Comparison, Ratio, compare_interleaved
from tvm_practice.measure.environment import environment
from tvm_practice.measure.latency import Latency, LatencyMeasurer, sample_latency

__all__ = [
    "Comparison",
    "Latency",
    "LatencyMeasurer",
    "Ratio",
    "compare_interleaved",
    "environment",
    "sample_latency",
]
