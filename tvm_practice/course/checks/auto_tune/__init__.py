"""Phase 5's exercises and how they are graded: the log of a short search, the record applied.

The modules register their exercises when they are imported, in the order of the phase. A search is
carried out once, for a few trials; others are only called, and their arguments are looked at. The
logs that an apply step is graded with are made in `tvm_practice/course/tuning_logs.py`.
"""

from tvm_practice.course.checks.auto_tune import (  # isort: skip
    template,
    autotvm,
    ansor,
    metaschedule,
)
from tvm_practice.course.checks.auto_tune.common import PHASE

__all__ = ["PHASE", "ansor", "autotvm", "metaschedule", "template"]
