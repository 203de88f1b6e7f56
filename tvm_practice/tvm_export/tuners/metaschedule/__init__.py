"""MetaSchedule on the current engine: tasks, quick measuring, and reading its database."""

from tvm_practice.tvm_export.tuners.metaschedule.building import build_candidate
from tvm_practice.tvm_export.tuners.metaschedule.code import best_code
from tvm_practice.tvm_export.tuners.metaschedule.database import (
    has_records,
    history,
    open_database,
    recover,
)
from tvm_practice.tvm_export.tuners.metaschedule.measurement import Measuring, measuring
from tvm_practice.tvm_export.tuners.metaschedule.running import runner_of
from tvm_practice.tvm_export.tuners.metaschedule.tasks import (
    cost_model,
    extract_contexts,
    make_context,
)

__all__ = [
    "Measuring",
    "best_code",
    "build_candidate",
    "cost_model",
    "extract_contexts",
    "has_records",
    "history",
    "make_context",
    "measuring",
    "open_database",
    "recover",
    "runner_of",
]
