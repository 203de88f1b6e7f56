"""Phase 2's exercises and how they are graded."""

from tvm_practice.course.catalog import Phase
from tvm_practice.engines import CLASSIC, CURRENT

PHASE = Phase(
    number=2,
    module="manual_schedule",
    title="manual schedules",
    minutes=25,
    lanes=(CURRENT, CLASSIC),
    question="Why does tiling (split + reorder) improve cache performance? Draw the memory access pattern.",
)
