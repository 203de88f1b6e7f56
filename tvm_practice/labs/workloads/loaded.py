"""What a framework's `load` returns."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Loaded:
    """A workload that is compiled and has its inputs.

    Attributes:
        call: one call, done when it returns; it is what is timed.
        result: calls once and gives the result as an array.
    """

    call: Callable[[], Any]
    result: Callable[[], np.ndarray]
