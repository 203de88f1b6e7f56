"""Reference answers of phase 5."""

from typing import Any


def matmul_template(m: int, n: int, k: int) -> tuple[Any, list[Any]]:  # (te.Schedule, tensors)
    """AutoTVM: a matmul whose schedule leaves numbers open, as knobs of `autotvm.get_config()`.

    Declare C[i, j] = sum over k of A[i, k] * B[k, j], define a knob for each number that you
    would otherwise guess (rows and columns of a tile, say, or how many steps of k are unrolled),
    and schedule with the values that the configuration holds. The innermost loop is vectorized
    and the tiles are shared among the threads. Every configuration must give the right product,
    also where it does not divide the sizes.

    While a task is made the configuration is the whole space and each knob has its first value;
    while it is tuned the function is called once a trial, with that trial's values.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.

    Returns:
        The te.Schedule and the tensors [A, B, C] of shapes (m, k), (k, n) and (m, n), float32.
    """
    from tvm import autotvm, te

    A = te.placeholder((m, k), dtype="float32", name="A")
    B = te.placeholder((k, n), dtype="float32", name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")

    cfg = autotvm.get_config()
    cfg.define_knob("rows", [1, 2, 4, 6, 8, 12, 16])
    cfg.define_knob("columns", [8, 16, 32, 64, 128])
    cfg.define_knob("unroll_k", [1, 2, 4, 8])
    cfg.define_knob("columns_first", [0, 1])

    schedule = te.create_schedule(C.op)
    tile = schedule.cache_write(C, "local")
    i, j = C.op.axis
    i_outer, i_inner = schedule[C].split(i, factor=cfg["rows"].val)
    j_outer, j_inner = schedule[C].split(j, factor=cfg["columns"].val)
    outer = [j_outer, i_outer] if cfg["columns_first"].val else [i_outer, j_outer]
    schedule[C].reorder(*outer, i_inner, j_inner)
    schedule[C].vectorize(j_inner)
    tiles = schedule[C].fuse(*outer)
    schedule[C].parallel(tiles)

    schedule[tile].compute_at(schedule[C], tiles)
    row, column = tile.op.axis
    k_outer, k_inner = schedule[tile].split(tile.op.reduce_axis[0], factor=cfg["unroll_k"].val)
    schedule[tile].reorder(k_outer, k_inner, row, column)
    schedule[tile].unroll(k_inner)
    schedule[tile].unroll(row)
    schedule[tile].vectorize(column)
    return schedule, [A, B, C]


def tune_autotvm(task: Any, *, trials: int, log: str) -> None:
    """AutoTVM: measure configurations of a template, guided by a cost model.

    Make an autotvm.tuner.XGBTuner that learns during so few trials (budget.plan_size) and call
    its `tune` with a measure option that works and with the callbacks that append each record to
    the log and show progress (`autotvm.measuring` has what is needed but the record's callback).

    Args:
        task: an autotvm.task.Task; it carries its target.
        trials: configurations to measure.
        log: file to append the records to, one line of JSON a trial.
    """
    from tvm import autotvm

    from tvm_practice.tvm_export.tuners.autotvm import learn_from, measuring
    from tvm_practice.tvm_export.tuners.budget import plan_size

    with measuring(task, trials, log) as measure:
        tuner = autotvm.tuner.XGBTuner(
            task, plan_size=plan_size(trials), feature_type="knob", loss_type="reg", num_threads=1
        )
        learn_from(tuner, log)
        tuner.tune(
            n_trial=trials,
            measure_option=measure.option,
            callbacks=[autotvm.callback.log_to_file(log), measure.callback],
        )


def apply_autotvm(task: Any, log: str) -> tuple[Any, list[Any]]:  # (te.Schedule, tensors)
    """AutoTVM: the schedule of the fastest valid record of a task.

    Args:
        task: an autotvm.task.Task.
        log: file with records, of this task and maybe of others.

    Returns:
        The te.Schedule and the tensors, as the task's template returns them for the
        configuration of the record.

    Raises:
        ValueError: the log has no valid record of the task.
    """
    from tvm import autotvm

    with task.target:
        config = autotvm.apply_history_best(log).query(task.target, task.workload)
        if config.is_fallback:
            raise ValueError(f"{log} has no valid record of {task.name}{task.args}")
        schedule, tensors = task.instantiate(config)
    return schedule, tensors


def tune_ansor(tasks: list[Any], weights: list[float], *, trials: int, log: str) -> None:
    """Ansor: make schedules without a template, and measure those its cost model likes.

    An auto_scheduler.TaskScheduler divides the trials among the tasks, more to those where the
    weighted sum of latencies gains most. Give its `tune` the TuningOptions with a builder, a
    runner and callbacks that append each record to the log and show progress
    (`ansor.measuring`), a round small enough that the cost model learns before the trials are
    spent (budget.trials_per_round), and a small search population (`ansor.fast_search_params`).
    If the log exists, the search goes on from it.

    Args:
        tasks: auto_scheduler.SearchTask objects; each carries its target.
        weights: how often each task runs.
        trials: schedules to measure in total, rounded up to whole rounds.
        log: file to append the records to, one line of JSON a trial.
    """
    from pathlib import Path

    from tvm import auto_scheduler

    from tvm_practice.tvm_export.tuners.ansor import fast_search_params, measuring
    from tvm_practice.tvm_export.tuners.budget import trials_per_round

    with measuring(tasks, trials, log) as measure:
        scheduler = auto_scheduler.TaskScheduler(
            tasks, weights, load_log_file=log if Path(log).exists() else None, callbacks=[]
        )
        scheduler.tune(
            auto_scheduler.TuningOptions(
                num_measure_trials=trials,
                num_measures_per_round=trials_per_round(trials, len(tasks)),
                builder=measure.builder,
                runner=measure.runner,
                measure_callbacks=[auto_scheduler.RecordToFile(log), measure.callback],
                verbose=0,
            ),
            search_policy_params=fast_search_params(),
        )


def apply_ansor(task: Any, log: str) -> tuple[Any, list[Any]]:  # (te.Schedule, tensors)
    """Ansor: the schedule of the fastest valid record of a task.

    Args:
        task: an auto_scheduler.SearchTask.
        log: file with records, of this task and maybe of others.

    Returns:
        The te.Schedule and the tensors of the record's state.

    Raises:
        RuntimeError: the log has no valid record of the task.
    """
    schedule, tensors = task.apply_best(log)
    return schedule, tensors


def metaschedule_space(schedule: Any) -> None:
    """MetaSchedule: a design space, as a schedule that asks for samples where it could decide.

    The workload is phase 1's matmul, its block named "C" with loops i, j and k. Schedule it as in
    phase 2, but take the factors of the splits from `schedule.sample_perfect_tile`: the search
    replays your calls with other samples. The innermost loop is vectorized, the outer tile loops
    are fused and parallel, k is neither.

    Args:
        schedule: a tvm.s_tir.Schedule of the matmul, changed in place.
    """
    block = schedule.get_sblock("C")
    write_back = schedule.cache_write(block, 0, "local")
    i, j, k = schedule.get_loops(block)
    rows = schedule.sample_perfect_tile(i, n=3, max_innermost_factor=16)
    columns = schedule.sample_perfect_tile(j, n=3, max_innermost_factor=64)
    steps = schedule.sample_perfect_tile(k, n=2, max_innermost_factor=8)
    i_outer, i_middle, i_inner = schedule.split(i, rows)
    j_outer, j_middle, j_inner = schedule.split(j, columns)
    k_outer, k_inner = schedule.split(k, steps)
    schedule.reorder(i_outer, j_outer, i_middle, j_middle, k_outer, k_inner, i_inner, j_inner)
    schedule.reverse_compute_at(write_back, j_middle, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(write_back)[-1])
    schedule.vectorize(j_inner)
    schedule.unroll(i_inner)
    schedule.unroll(k_inner)
    schedule.parallel(schedule.fuse(i_outer, j_outer))


def tune_metaschedule(
    contexts: list[Any], weights: list[float], *, trials: int, work_dir: str
) -> Any:  # a meta_schedule.Database
    """MetaSchedule: measure schedules of one or many tasks, guided by a cost model.

    Call meta_schedule.tune.tune_tasks with a builder and a runner that start quickly and a
    callback that shows progress (`metaschedule.measuring`; tune_tasks needs MetaSchedule's
    default measure callbacks before it), a cost model set for few trials
    (`metaschedule.cost_model`), and a round small enough that it learns before the trials are
    spent (budget.trials_per_round).

    Args:
        contexts: meta_schedule.TuneContext objects; each carries its design space and target.
        weights: how often each task runs.
        trials: schedules to measure in total, rounded up to whole rounds.
        work_dir: folder of the database, which a later call goes on from.

    Returns:
        The meta_schedule.Database with the records.
    """
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.tvm_export.tuners.budget import trials_per_round
    from tvm_practice.tvm_export.tuners.metaschedule import cost_model, measuring

    with measuring(contexts, trials, work_dir) as measure:
        return ms.tune.tune_tasks(
            tasks=contexts,
            task_weights=weights,
            work_dir=work_dir,
            max_trials_global=trials,
            num_trials_per_iter=trials_per_round(trials, len(contexts)),
            builder=measure.builder,
            runner=measure.runner,
            cost_model=cost_model(),
            measure_callbacks=[
                *ms.measure_callback.MeasureCallback.create("default"),
                measure.callback,
            ],
        )


def apply_metaschedule(mod: Any, database: Any, target: Any) -> Any:  # an IRModule
    """MetaSchedule: a module with the fastest valid record of each of its functions applied.

    Args:
        mod: an IRModule of PrimFuncs: one matmul, or all operators of a Relax model.
        database: a meta_schedule.Database.
        target: the tvm.target.Target that was tuned for.

    Returns:
        The IRModule; functions without a record are as they were.
    """
    from tvm import relax

    with target, database:
        return relax.transform.MetaScheduleApplyDatabase()(mod)
