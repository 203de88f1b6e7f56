"""Phase 3's exercises and how they are graded."""

from tvm_practice.course.catalog import Phase
from tvm_practice.engines import CLASSIC, CURRENT

PHASE = Phase(
    number=3,
    module="schedule_analysis",
    title="schedule analysis",
    minutes=20,
    lanes=(CURRENT, CLASSIC),
    question="At what matrix size does parallelization start helping? Why?",
)
