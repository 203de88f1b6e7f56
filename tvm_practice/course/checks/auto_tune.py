"""Phase 5's exercises and how they are graded."""

from tvm_practice.course.catalog import Phase
from tvm_practice.engines import CLASSIC, CURRENT

PHASE = Phase(
    number=5,
    module="auto_tune",
    title="auto-tuning",
    minutes=15,
    lanes=(CURRENT, CLASSIC),
    question="Why does Ansor often beat hand-written schedules? What is the trade-off?",
)
