"""The latency of a build."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def sample_latency(run: Callable[[], Any], *, warmup: int, repeats: int) -> "np.ndarray":
    """Time `repeats` single calls after `warmup` untimed ones, see `measure.sample_latency`.

    Returns:
        Milliseconds of each timed call, in the order they were made, of shape (repeats,).
    """
    import numpy as np

    from tvm_practice import measure

    return np.array(measure.sample_latency(run, warmup=warmup, repeats=repeats).samples_ms)
