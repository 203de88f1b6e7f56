"""A product of matrices tuned on a farm, by either engine's tuner, and what it recorded."""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvm_practice.tvm_export.tuners import Trial

_TRIAL_SECONDS = 30  # a trial of one busy or dead server, waiting for a free one included
_ANSOR_LOG = "ansor.json"


def matmul(m: int, n: int, k: int) -> list[Any]:
    """Declare C = A B for either engine.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.

    Returns:
        The tensors [A, B, C], float32.
    """
    from tvm import te, topi

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    return [A, B, topi.matmul(A, B)]


def tune_classic(
    tracker: str, port: int, key: str, servers: int, trials: int, size: int, folder: str
) -> None:
    """Tune a matmul by Ansor on the farm; its log is `folder`/ansor.json."""
    from tvm import auto_scheduler

    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners import ansor, trials_per_round
    from tvm_practice.tvm_export.tuners.classic import TIMING

    log = Path(folder) / _ANSOR_LOG
    task = ansor.make_task(matmul, (size, size, size), host_target())
    with ansor.measuring([task], trials, log) as measure:
        runner = auto_scheduler.RPCRunner(
            key, tracker, port, n_parallel=servers, timeout=_TRIAL_SECONDS, **TIMING
        )
        learned = [auto_scheduler.PreloadMeasuredStates(str(log))] if log.exists() else None
        policy = auto_scheduler.SketchPolicy(
            task,
            auto_scheduler.XGBModel(),
            params=ansor.fast_search_params(),
            verbose=0,
            init_search_callbacks=learned,
        )
        options = auto_scheduler.TuningOptions(
            num_measure_trials=trials,
            num_measures_per_round=trials_per_round(trials),
            builder=measure.builder,
            runner=runner,
            measure_callbacks=[auto_scheduler.RecordToFile(str(log)), measure.callback],
            verbose=0,
        )
        task.tune(options, policy)


def tune_current(
    tracker: str, port: int, key: str, servers: int, trials: int, size: int, folder: str
) -> None:
    """Tune a matmul by MetaSchedule on the farm; its database is in `folder`."""
    tune_matmul(_rpc_runner(tracker, port, key, servers), trials, size, folder)


@contextmanager
def _rpc_runner(tracker: str, port: int, key: str, servers: int) -> Iterator[Any]:
    """MetaSchedule's runner on the farm, its worker processes ended after the block."""
    from tvm_practice.tvm_export.tuners.rpc import rpc_runner

    runner = rpc_runner(
        tracker,
        port,
        key,
        workers=servers,
        session_seconds=_TRIAL_SECONDS,
        trial_seconds=2 * _TRIAL_SECONDS,
    )
    try:
        yield runner
    finally:
        runner.pool.shutdown(wait=False)


def tune_matmul(
    runner: AbstractContextManager[Any],
    trials: int,
    size: int,
    folder: str | Path,
    *,
    target: Any = None,
) -> float:
    """Tune a matmul by MetaSchedule on the active engine, which is the current one.

    Args:
        runner: gives a `meta_schedule` runner; opened when the worker processes that build are.
        trials: to measure.
        size: rows and columns of A, B and C.
        folder: of the database.
        target: a `tvm.target.Target`; None is this machine with all its threads.

    Returns:
        Seconds that the search took, without the start of builder and runner.
    """
    from tvm import te
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners import metaschedule, trials_per_round

    function = te.create_prim_func(matmul(size, size, size))
    context = metaschedule.make_context(function, target or host_target())
    with metaschedule.measuring([context], trials, folder) as measure, runner as opened:
        started = time.perf_counter()
        ms.tune.tune_tasks(
            tasks=[context],
            task_weights=[1.0],
            work_dir=str(folder),
            max_trials_global=trials,
            num_trials_per_iter=trials_per_round(trials),
            builder=measure.builder,
            runner=opened,
            cost_model=metaschedule.cost_model(),
            measure_callbacks=[
                *ms.measure_callback.MeasureCallback.create("default"),
                measure.callback,
            ],
        )
        return time.perf_counter() - started


def recorded(engine: str, folder: Path) -> "list[Trial]":
    """The trials that `tune_<engine>` recorded in `folder`, those of earlier runs too."""
    from tvm_practice.tvm_export.tuners import ansor, metaschedule

    if engine == "classic":
        log = folder / _ANSOR_LOG
        return ansor.history(log) if log.exists() else []
    return metaschedule.history(folder) if metaschedule.has_records(folder) else []
