"""Trials that are faster than the processor can be are not believed."""

from collections.abc import Callable

from tvm_practice import engines

_SLACK = 1.1
_ATTEMPTS = 4  # to measure the peak, of which other programs may take a part
_UNITS = 2  # that multiply and add, on every processor with vectors of 8 floats and more


class SpeedLimit:
    """The measured peak of this machine.

    Args:
        measure: returns the peak in GFLOP/s. Called when a speed exceeds what it said before,
            which a busy moment may have lowered.
    """

    def __init__(self, measure: Callable[[], float]):
        self._measure = measure
        self._peak = 0.0
        # What any processor does at 1 GHz is not questioned.
        self._believed = engines.thread_count() * engines.host().vector_lanes * _UNITS * 2

    def why_not(self, gflops: float) -> str | None:
        """Why a trial's speed cannot be; None if it can."""
        if gflops <= max(self._believed, _SLACK * self._peak):
            return None
        for _ in range(_ATTEMPTS):
            self._peak = max(self._peak, self._measure())
            if gflops <= _SLACK * self._peak:
                return None
        return (
            f"{gflops:.0f} GFLOP/s is more than this processor's {self._peak:.0f}: "
            "the measurement was disturbed"
        )
