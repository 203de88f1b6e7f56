"""The exact result of a workload, and whether another result is near enough."""

import math
from collections.abc import Sequence

import numpy as np

from tvm_practice.labs.workloads import in_numpy

# The largest difference over the root mean square of the exact result: some hundred times what
# rounding to float32 costs a sum of a thousand.
TOLERANCE = 1e-4


class WrongResult(Exception):
    """A result that is not the workload's; the message says by how much."""


def exact(workload: str, inputs: Sequence[np.ndarray]) -> np.ndarray:
    """The result in float64, by numpy."""
    result: np.ndarray = getattr(in_numpy, workload)(*(each.astype("float64") for each in inputs))
    return result


def verify(workload: str, inputs: Sequence[np.ndarray], result: np.ndarray) -> float:
    """The largest difference from the exact result, over that result's root mean square.

    Raises WrongResult above TOLERANCE, or for another shape or type.
    """
    wanted = exact(workload, inputs)
    if result.shape != wanted.shape or result.dtype != np.float32:
        raise WrongResult(
            f"{workload}: {result.dtype} of shape {result.shape}, not float32 {wanted.shape}"
        )
    scale = math.sqrt(float(np.mean(wanted**2)))
    error = float(np.abs(result - wanted).max()) / scale
    if not error <= TOLERANCE:  # NaN is wrong too
        raise WrongResult(f"{workload}: off by {error:.2g} of its scale; {TOLERANCE:g} is allowed")
    return error
