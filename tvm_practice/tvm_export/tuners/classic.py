"""What AutoTVM and Ansor share: how they time, their error numbers, their logs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.tuners.history import Row, mean_seconds, prepare_log
from tvm_practice.tvm_export.tuners.journal import Journal

# Short: a slow candidate needs no exact time, and a fast one gets many calls in 20 ms.
TIMING = {"number": 1, "repeat": 3, "min_repeat_ms": 20}
# Of a trial on a farm, waiting for a free server included.
RPC_SECONDS = 60

# Numbers of MeasureErrorNo, which both write to their logs.
ERRORS = {
    1: "the schedule could not be made",
    2: "it does not compile",
    3: "it does not load",
    4: "it crashes or its process died",
    5: "it computes a wrong answer",
    6: "compiling took too long",
    7: "running took too long",
    8: "unknown error",
}


def recover(log: str | Path) -> Journal:
    """The log's journal, empty: what a killed run had measured is in the log, every line whole."""
    prepare_log(Path(log))
    journal = Journal(Path(f"{log}.journal"), Path(log))
    journal.recover()
    journal.settle()
    return journal


def row(result: Sequence[Any], task: str) -> Row:
    """The row of a log's `[seconds of each run, error number, cost, timestamp]`."""
    costs, error_number, _, timestamp = result
    if error_number:
        return Row(None, ERRORS[int(error_number)], float(timestamp), task)
    return Row(mean_seconds(costs), None, float(timestamp), task)
