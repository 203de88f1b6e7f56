"""Phase 4's exercises and how they are graded."""

from tvm_practice.course.catalog import Phase
from tvm_practice.engines import CLASSIC, CURRENT

PHASE = Phase(
    number=4,
    module="relay_import",
    title="importing models",
    minutes=15,
    lanes=(CURRENT, CLASSIC),
    question="What graph-level optimizations do Relay and Relax apply that individual operator schedules cannot?",
)
