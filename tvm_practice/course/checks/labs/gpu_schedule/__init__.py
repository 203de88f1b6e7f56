"""Lab 1's exercises and how they are graded: loops, what they ask of memory, values.

The modules register their exercises when they are imported, in the order of the lab.
"""

from tvm_practice.course.checks.labs.gpu_schedule import (  # isort: skip
    threads,
    tensor_cores,
    classic,
    classic_tensor_cores,
)
from tvm_practice.course.checks.labs.gpu_schedule.common import PHASE

__all__ = ["PHASE", "classic", "classic_tensor_cores", "tensor_cores", "threads"]
