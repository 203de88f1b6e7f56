"""Reference answers of phase 5: a template and a design space, and the steps of exports."""

from typing import Any

from tvm_practice.tvm_export.steps.tuning import (
    apply_ansor,
    apply_autotvm,
    apply_metaschedule,
    tune_ansor,
    tune_autotvm,
    tune_metaschedule,
)

__all__ = [
    "apply_ansor",
    "apply_autotvm",
    "apply_metaschedule",
    "matmul_template",
    "metaschedule_space",
    "search_task",
    "tune_ansor",
    "tune_autotvm",
    "tune_metaschedule",
    "tune_task",
]


def matmul_template(m: int, n: int, k: int) -> tuple[Any, list[Any]]:  # (te.Schedule, tensors)
    """AutoTVM: a matmul whose schedule leaves numbers open, as knobs of `autotvm.get_config()`.

    Declare C[i, j] = sum over k of A[i, k] * B[k, j], define a knob for each number that you
    would otherwise guess (at least the rows and columns of a tile; the unrolled steps of k, say),
    and schedule with the values that the configuration holds. The innermost loop is vectorized
    and the tiles are shared among the threads. Every configuration must give the right product,
    even where it does not divide the sizes, and a schedule of its own: AutoTVM would spend a trial
    on each of two equal ones. Any sizes above 8 must have several configurations. All combinations
    of values belong to the space: do not exclude any with `cfg.multi_filter`.

    When a task is created, the configuration is the whole space and each knob has its first value.
    During tuning, AutoTVM calls the function once per trial, with that trial's values.

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


def metaschedule_space(schedule: Any) -> None:
    """MetaSchedule: a design space, as a schedule that asks for samples instead of deciding.

    The workload is phase 1's matmul, its block named "C" with loops i, j and k. Schedule it as in
    phase 2 (the loops of `tile` are enough), but take the factors of all splits from
    `schedule.sample_perfect_tile` of the same loop, and split at least i and j. The search
    replays your calls with other samples, so the list of calls must not depend on a sample. The
    innermost loop is vectorized, and the outer tile loops are fused and parallel. No loop over k is
    vectorized or parallel.

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


def search_task(name: str, m: int, n: int, k: int, target: Any) -> Any:  # a SearchTask
    """Ansor: register a matmul as a workload, and make its search task for one size.

    Here a workload is a function of numbers that returns tensors, the placeholders first. A record
    keeps its name and the numbers, not the loops, so a process that reads a log has to register
    it too, under the same name. Register a function of (m, n, k), in this order, that declares
    C[i, j] = sum over k of A[i, k] * B[k, j] in float32 and returns [A, B, C], whatever numbers it
    is called with. It replaces any workload of that name.

    Args:
        name: of the workload.
        m: rows of A and C in the task.
        n: columns of B and C.
        k: columns of A, rows of B.
        target: a tvm.target.Target.

    Returns:
        The auto_scheduler.SearchTask of the workload for (m, n, k) on the target.
    """
    from tvm import auto_scheduler, te

    def matmul(m: int, n: int, k: int) -> list[Any]:
        A = te.placeholder((m, k), name="A")
        B = te.placeholder((k, n), name="B")
        r = te.reduce_axis((0, k), name="k")
        C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
        return [A, B, C]

    auto_scheduler.register_workload(name, f=matmul, override=True)
    return auto_scheduler.SearchTask(func=name, args=(m, n, k), target=target)


def tune_task(task: Any, *, trials: int, log: str) -> None:
    """Ansor: search the schedules of one task by its own `tune`.

    Unlike a TaskScheduler, task.tune takes a policy: an auto_scheduler.SketchPolicy of the task
    with a cost model and a small population (params=ansor.fast_search_params()). The policy asks
    the model, an auto_scheduler.XGBModel, once it has seen more than num_warmup_sample trials (100
    by default). Set fewer than a round has (budget.trials_per_round for one task), so that the
    policy asks from the second round on. The TuningOptions are those of `tune_ansor`.

    Args:
        task: an auto_scheduler.SearchTask; it carries its target.
        trials: schedules to measure, rounded up to whole rounds.
        log: file to append the records to, one line of JSON per trial.
    """
    from tvm import auto_scheduler

    from tvm_practice.tvm_export.tuners.ansor import fast_search_params, measuring
    from tvm_practice.tvm_export.tuners.budget import trials_per_round

    round_size = trials_per_round(trials, 1)
    model = auto_scheduler.XGBModel(num_warmup_sample=round_size - 1)
    policy = auto_scheduler.SketchPolicy(task, model, params=fast_search_params(), verbose=0)
    with measuring([task], trials, log) as measure:
        options = auto_scheduler.TuningOptions(
            num_measure_trials=trials,
            num_measures_per_round=round_size,
            builder=measure.builder,
            runner=measure.runner,
            measure_callbacks=[auto_scheduler.RecordToFile(log), measure.callback],
            verbose=0,
        )
        task.tune(options, policy)
