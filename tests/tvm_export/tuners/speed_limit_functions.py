"""What test_speed_limit.py runs in the current engine's process."""

import tempfile
from unittest.mock import patch

from tests.tvm_export.tuners import tuner_functions
from tvm_practice import engines
from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.tvm_export.tuners import speed_limit


def error_without_a_peak() -> str:
    """What a search says that takes every trial for too fast.

    The peak is really measured, in the worker, and then divided.
    """
    measured = speed_limit.SpeedLimit.why_not

    def why_not(limit: speed_limit.SpeedLimit, gflops: float) -> str | None:
        limit._believed = 0
        assert engines.active() == engines.CURRENT
        return measured(limit, gflops * 1e6)

    with patch.object(speed_limit.SpeedLimit, "why_not", why_not):
        try:
            with tempfile.TemporaryDirectory() as folder:
                tuner_functions.tune("metaschedule", folder, 2)
        except NothingMeasured as error:
            return str(error)
    return ""
