"""Ansor (auto_scheduler) on the classic engine: tasks, quick measuring, reading its log."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_practice.engines import thread_count
from tvm_practice.tvm_export.targets import device_of
from tvm_practice.tvm_export.tuners.budget import trials_per_round
from tvm_practice.tvm_export.tuners.classic import ERRORS, RPC_SECONDS, TIMING, builders, row
from tvm_practice.tvm_export.tuners.classic import recover as recover
from tvm_practice.tvm_export.tuners.history import (
    Trial,
    json_lines,
    mean_seconds,
    number_trials,
)
from tvm_practice.tvm_export.tuners.journal import Journal
from tvm_practice.tvm_export.tuners.progress import Outcome, Progress
from tvm_practice.tvm_export.tuners.search import going
from tvm_practice.tvm_export.tuners.workers import patient, unbound_threads

_BUILD_SECONDS = 30
_RUN_SECONDS = 10
_LOCAL_RUN, _FARM_RUN = "auto_scheduler.local_runner.run", "auto_scheduler.rpc_runner.run"


def make_task(
    declare: Callable[..., list[Any]],
    arguments: Sequence[int],
    target: Any,
    *,
    name: str = "tvm_practice.matmul",
) -> Any:
    """A search task for a tensor expression.

    Args:
        declare: a function of whole numbers that returns the tensors, inputs first, phase 1's
            matmul say. It replaces what was registered under `name` before.
        arguments: what it is called with.
        target: a `tvm.target.Target`.
        name: of the workload in the log.

    Returns:
        An `auto_scheduler.SearchTask`.
    """
    from tvm import auto_scheduler

    auto_scheduler.register_workload(name, f=declare, override=True)
    return auto_scheduler.SearchTask(func=name, args=tuple(arguments), target=target)


def fast_search_params() -> dict[str, Any]:
    """Parameters of the sketch policy for tens of trials.

    The defaults (2048, 4 and 50) search for twenty seconds before every round. What
    `search.going()` says comes first.
    """
    sizes = going().search.sizes
    return {
        "evolutionary_search_population": sizes.get("population", 128),
        "evolutionary_search_num_iters": sizes.get("iterations", 2),
        "sample_init_min_population": sizes.get("samples", 20),
    }


@dataclass(frozen=True)
class Measuring:
    """What `TuningOptions` needs to measure: `builder`, `runner`, and `callback` (progress)."""

    builder: Any
    runner: Any
    callback: Any


@contextmanager
def measuring(tasks: Sequence[Any], trials: int, log: str | Path) -> Iterator[Measuring]:
    """A builder, a runner and a progress callback for tuning `tasks`.

    Leaving the block stops the worker processes, and raises NothingMeasured if every trial
    failed.

    Args:
        tasks: what will be tuned.
        trials: how many will be measured in total, for the progress display.
        log: where records will be appended; its folder is created if missing.
    """
    from tvm import auto_scheduler
    from tvm.auto_scheduler.measure import PythonBasedMeasureCallback

    journal = recover(log)
    display = Progress("Ansor", trials)
    kept = _kept_workers(journal, display, tasks[0].target)
    with unbound_threads(), kept, display as progress:

        class Watch(PythonBasedMeasureCallback):  # type: ignore[misc]
            def callback(self, _: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
                journal.settle()
                progress.add(
                    _outcome(measured, result)
                    for measured, result in zip(inputs, results, strict=True)
                )

        limit = round(patient(_BUILD_SECONDS))
        builder = auto_scheduler.LocalBuilder(timeout=limit, n_parallel=thread_count())
        yield Measuring(builder, _runner(), Watch())


def _runner() -> Any:
    from tvm import auto_scheduler

    search = going().search
    if search.tracker is None:
        return auto_scheduler.LocalRunner(timeout=round(patient(_RUN_SECONDS)), **TIMING)
    host, port = search.tracker
    return auto_scheduler.RPCRunner(
        search.rpc_key, host, port, n_parallel=8, timeout=RPC_SECONDS, **TIMING
    )


def tune(tasks: Sequence[Any], weights: Sequence[float], *, trials: int, log: str) -> None:
    """Phase 5's step `tune_ansor` with the policy and the cost model of `search.going()`."""
    from tvm import auto_scheduler

    search = going().search
    policy = search.policy or "sketch.xgb"
    if search.cost_model == "random":
        policy = "sketch.random"
    with measuring(tasks, trials, log) as measure:
        scheduler = auto_scheduler.TaskScheduler(
            tasks, weights, load_log_file=log if Path(log).exists() else None, callbacks=[]
        )
        options = auto_scheduler.TuningOptions(
            num_measure_trials=trials,
            num_measures_per_round=trials_per_round(trials, len(tasks)),
            builder=measure.builder,
            runner=measure.runner,
            measure_callbacks=[auto_scheduler.RecordToFile(log), measure.callback],
            verbose=0,
        )
        scheduler.tune(options, search_policy=policy, search_policy_params=fast_search_params())


def _outcome(measured: Any, result: Any) -> Outcome:
    flop, task = float(measured.task.compute_dag.flop_ct), str(measured.task.workload_key)
    if result.error_no == 0:
        return Outcome(mean_seconds(result.costs), flop, task=task)
    text = str(result.error_msg or "").strip() or ERRORS[int(result.error_no)]
    return Outcome(None, flop, text, task)


def _not_run(built: Any, reason: str) -> Any:
    """The result of a candidate that cannot run here; its own error if it did not build."""
    from tvm.auto_scheduler.measure import MAX_FLOAT, MeasureErrorNo, MeasureResult

    number = int(built.error_no) or MeasureErrorNo.RUNTIME_DEVICE
    said = str(built.error_msg or "") or f"RuntimeError: {reason}"
    return MeasureResult([MAX_FLOAT], number, said, built.time_cost, time.time())


@contextmanager
def _kept_workers(journal: Journal, progress: Progress, target: Any) -> Iterator[None]:
    """Have Ansor keep its worker processes, and write down each measurement at once.

    It starts new ones for every few trials, and each takes about a second to import TVM. It has
    no setting for this, so the names by which it makes them are replaced in the block.
    """
    import tvm
    from tvm.auto_scheduler import measure
    from tvm.auto_scheduler.measure_record import dump_record_to_string
    from tvm.contrib.popen_pool import PopenPoolExecutor, PopenWorker

    pool = builders(
        target,
        max_workers=thread_count(),
        timeout=patient(_BUILD_SECONDS),
        maximum_process_uses=200,  # processes that build leak a little memory
    )
    runner = PopenWorker()
    kind = str(target.kind.name)
    missing = None if device_of(target).exist else f"no {kind} device here"
    measure.PopenPoolExecutor = lambda *_: pool
    measure.PopenWorker = lambda: runner
    trials = 0

    def run_one_by_one(inputs: Sequence[Any], built: Sequence[Any], *settings: Any) -> list[Any]:
        nonlocal trials
        results = []
        for measured, candidate in zip(inputs, built, strict=True):
            progress.measure_more(trials)
            trials += 1
            if missing is None:
                results += measure.local_run([measured], [candidate], *settings)
            else:
                results.append(_not_run(candidate, missing))
            journal.append(json.loads(dump_record_to_string(measured, results[-1])))
        return results

    def run_on_farm(inputs: Sequence[Any], built: Sequence[Any], *settings: Any) -> list[Any]:
        nonlocal trials
        results: list[Any] = []
        for first in range(0, len(inputs), thread_count()):
            part = slice(first, first + thread_count())
            progress.measure_more(trials)
            results += measure.rpc_runner_run(inputs[part], built[part], *settings)
            trials += len(results[part])
            for each in zip(inputs[part], results[part], strict=True):
                journal.append(json.loads(dump_record_to_string(*each)))
        return results

    tvm.register_func(_LOCAL_RUN, run_one_by_one, override=True)
    tvm.register_func(_FARM_RUN, run_on_farm, override=True)
    try:
        yield
    finally:
        tvm.register_func(_LOCAL_RUN, measure.local_run, override=True)
        tvm.register_func(_FARM_RUN, measure.rpc_runner_run, override=True)
        measure.PopenPoolExecutor, measure.PopenWorker = PopenPoolExecutor, PopenWorker
        runner.kill()
        for worker in pool._worker_map.values():  # this TVM's pool has no shutdown()
            worker.kill()


def history(log: str | Path, *, started: float | None = None) -> list[Trial]:
    """The trials in `log`, oldest first; no TVM is needed to read them.

    Args:
        log: the file given to the tuner.
        started: when tuning began, `time.time()`; None counts from the first result.
    """
    rows = []
    for record in json_lines(Path(log)):
        name, *arguments = json.loads(record["i"][0][0])
        task = f"{name}({', '.join(str(each) for each in arguments)})" if arguments else str(name)
        rows.append(row(record["r"], task))
    return number_trials(rows, started)


def best_code(task: Any, log: str | Path) -> str | None:
    """The best schedule of `task` in `log` as Python calls on `s`; None if there is none."""
    from tvm import auto_scheduler

    measured, _ = auto_scheduler.load_best_record(str(log), task.workload_key, task.target)
    return None if measured is None else str(task.print_best(str(log))).strip()
