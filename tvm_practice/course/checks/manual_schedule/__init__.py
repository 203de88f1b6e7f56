"""Phase 2's exercises and how they are graded: the loop nest first, then its values.

The modules register their exercises when they are imported, in the order of the phase. A step of
`register_block` or `packed_matmul` starts from the reference answers of the steps before it. What
several phases expect of loops is in `tvm_practice/course/nests.py`, products and their values in
`tvm_practice/course/products.py`.
"""

from tvm_practice.course.checks.manual_schedule import (  # isort: skip
    primitives,
    register_block,
    packed_operands,
    packed_matmul,
    classic,
)
from tvm_practice.course.checks.manual_schedule.common import PHASE

__all__ = ["PHASE", "classic", "packed_matmul", "packed_operands", "primitives", "register_block"]
