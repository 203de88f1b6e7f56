"""The three tuners: AutoTVM and Ansor on the classic engine, MetaSchedule on the current one.

Each of `autotvm`, `ansor` and `metaschedule` has

    measuring(...)      a context with a builder and a runner that work, and a callback that
                        shows progress; leaving it raises NothingMeasured if every trial failed
    history(log)        the log's trials, as `Trial`s

and helpers to make tasks. Nothing here imports a TVM before it is called.
"""

from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.tvm_export.tuners.budget import plan_size, trials_per_round
from tvm_practice.tvm_export.tuners.history import (
    Trial,
    best_so_far,
    best_trial,
    count_errors,
    nothing_to_tune,
    require_valid,
    summary,
)
from tvm_practice.tvm_export.tuners.progress import Progress

__all__ = [
    "NothingMeasured",
    "Progress",
    "Trial",
    "best_so_far",
    "best_trial",
    "count_errors",
    "nothing_to_tune",
    "plan_size",
    "require_valid",
    "summary",
    "trials_per_round",
]
