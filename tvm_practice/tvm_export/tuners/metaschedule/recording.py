"""What was measured, written down: each trial at once, its time once its round is done."""

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.tuners.history import FAILED_SECONDS, json_lines, mean_seconds
from tvm_practice.tvm_export.tuners.journal import Journal
from tvm_practice.tvm_export.tuners.metaschedule.database import WORKLOADS
from tvm_practice.tvm_export.tuners.progress import Outcome, Progress, last_line
from tvm_practice.tvm_export.writing import naming


class Recorder:
    """Writes a candidate's record to the journal as soon as it is measured; counts `trials`.

    The workloads are put into the database first: a record names its own by number.
    `times` holds when each candidate of the round that is being measured was.
    """

    def __init__(self, journal: Journal, contexts: Sequence[Any], folder: Path):
        from tvm.s_tir import meta_schedule as ms

        self.trials = 0
        self.times: list[float] = []
        self._journal = journal
        database = ms.database.JSONDatabase(work_dir=str(folder))
        self._workloads = [database.commit_workload(context.mod) for context in contexts]
        self._contexts = contexts
        self._flops: dict[int, float] = {}
        hashes = [line[0] for line in json_lines(folder / WORKLOADS)]
        own = [each.as_json()[0] for each in self._workloads]
        if not set(own) <= set(hashes):  # TVM does not say that it could not write
            raise OSError(f"cannot write {folder / WORKLOADS}: is the disk full?")
        self._numbers = [hashes.index(each) for each in own]

    def task_of(self, module: Any) -> int:
        """The position of an unscheduled module's task."""
        return next(i for i, each in enumerate(self._contexts) if each.mod.same_as(module))

    def gflops(self, module: Any, seconds: Sequence[float]) -> float:
        """The speed of a candidate of an unscheduled module's task; 0 if not of float32 alone."""
        from tvm.s_tir.analysis import estimate_tir_flops

        index = self.task_of(module)
        if any(str(each.dtype) != "float32" for each in module["main"].params):
            return 0.0  # matrix units are faster than the peak of float32
        if index not in self._flops:
            self._flops[index] = float(estimate_tir_flops(module))
        return self._flops[index] / mean_seconds(seconds) / 1e9

    def add(self, module: Any, candidate: Any, seconds: Any, error: str | None) -> None:
        """Write one trial.

        Args:
            module: the task's, unscheduled.
            candidate: the `MeasureCandidate`.
            seconds: of each run, if it ran.
            error: why it failed, or None.
        """
        from tvm.s_tir import meta_schedule as ms

        self.trials += 1
        index = self.task_of(module)
        context = self._contexts[index]
        record = ms.database.TuningRecord(
            candidate.sch.trace,
            self._workloads[index],
            [10 * FAILED_SECONDS] if error else [float(each) for each in seconds],
            context.target,
            candidate.args_info,
        )
        self.times.append(time.time())
        trial = {"timestamp": self.times[-1], "task": str(context.task_name), "error": error}
        self._journal.append({"record": [self._numbers[index], _as_json(record)], "trial": trial})


def _as_json(record: Any) -> Any:
    """A tuning record as the database writes it; its own `as_json` knows no layouts of weights."""
    import tvm
    from tvm.s_tir.meta_schedule import _ffi_api

    def plain(value: Any) -> Any:
        if isinstance(value, tvm.tirx.IndexMap):
            return json.dumps(json.loads(tvm.ir.save_json(value)), indent=2)
        if isinstance(value, tvm.ir.Array):
            return [plain(each) for each in value]
        if isinstance(value, tvm.ir.Map):
            return {str(key): plain(each) for key, each in value.items()}
        if isinstance(value, (tvm.tirx.IntImm, tvm.tirx.FloatImm)):
            return value.value
        return value

    return plain(_ffi_api.TuningRecordAsJSON(record))


def watching(
    progress: Progress, names: list[str], times: Path, journal: Journal, measured: list[float]
) -> Any:
    """A measure callback that feeds `progress` and appends each trial's time to `times`.

    The database has no times of day and no error texts; a line here names the record it is of.
    `measured` holds the times of those candidates of the round that were built, and is emptied.
    """
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.measure_callback import PyMeasureCallback

    @derived_object
    class Watch(PyMeasureCallback):  # type: ignore[misc]
        def apply(
            self,
            task_scheduler: Any,
            task_id: int,
            measure_candidates: Any,
            builder_results: Any,
            runner_results: Any,
        ) -> None:
            first = len(task_scheduler.database_) - len(runner_results)
            now, flop = time.time(), float(task_scheduler.tasks_[task_id].flop)
            outcomes, lines = [], []
            for index, (built, ran) in enumerate(zip(builder_results, runner_results, strict=True)):
                error = built.error_msg or ran.error_msg
                error = last_line(str(error)) if error else None
                seconds = None if error else mean_seconds(ran.run_secs)
                outcomes.append(Outcome(seconds, flop, error, names[task_id]))
                line = {
                    "record": first + index,
                    "timestamp": measured.pop(0) if measured and not built.error_msg else now,
                    "task": names[task_id],
                    "error": error,
                }
                lines.append(json.dumps(line) + "\n")
            with naming(times), times.open("a") as file:
                file.write("".join(lines))
            measured.clear()
            journal.settle()
            progress.add(outcomes)

    return Watch()
