"""Phase 5: auto-tuning.

Phase 2 chose tile sizes by reasoning about registers and caches. A tuner chooses by measuring:

    propose a schedule -> build it -> run it -> record how long it took -> propose the next

Each schedule measured is a trial; a round consists of the trials between two updates of the tuner's
model. A workload is a function to tune, for given sizes; a task is a workload and a target, the
processor to compile for. A log of the records outlives the process, serves every later build, and
lets a search continue. Tuners differ in who writes the schedule, and in how they propose the next:

    AutoTVM       classic   you write a template with knobs, numbers left open; the tuner picks a
                            configuration, a value for each
    Ansor         classic   nobody writes it: Ansor derives "sketches", schedules without numbers,
                            from the expression, and fills in the numbers
    MetaSchedule  current   either: MetaSchedule derives it from the expression, or your own
                            function makes it, with sampled numbers in place of fixed ones

All three train a cost model (boosted decision trees, by XGBoost) on their measurements and measure
only the candidates that it ranks highest. Ansor's and MetaSchedule's models see features of the
loops; AutoTVM's sees the values of the knobs. A trial takes a compilation and a run; a prediction
takes milliseconds at most. The candidates that a tuner can propose are its (design) space.

The pieces of AutoTVM, `from tvm import autotvm`:

    cfg = autotvm.get_config()              the configuration of this trial
    cfg.define_knob("rows", [4, 8, 16])     leaves a number open: one of these
    cfg["rows"].val                         its value in this trial
    autotvm.tuner.XGBTuner(task, plan_size=…, feature_type="knob", loss_type="reg", num_threads=1)
                                            proposes configurations; after every plan_size trials,
                                            fits its model, which predicts speeds from knobs
    tuner.tune(n_trial=…, measure_option=…, callbacks=[…])
                                            searches; measure_option says how to build and run,
                                            callbacks are called after each batch of trials
    autotvm.callback.log_to_file(log)       a callback that appends each record
    autotvm.apply_history_best(log)         the fastest valid record of each workload in a log
        .query(task.target, task.workload)    the configuration of a task's fastest record; its
                                              .is_fallback is True if the log has none
    task.instantiate(config)                the schedule and the tensors of a configuration; call it
                                            inside `with task.target:`, as a search does, because
                                            a template may ask for the target

Of Ansor, `from tvm import auto_scheduler`:

    @auto_scheduler.register_workload(name, override=True)
                                            decorates a function of numbers that returns tensors
    auto_scheduler.SearchTask(func=name, args=numbers, target=target)
                                            the task of that workload for these numbers
    auto_scheduler.TaskScheduler(tasks, weights, load_log_file=…, callbacks=[])
                                            searches; continues from load_log_file, unless None.
                                            By default, callbacks print a table and write a file
    auto_scheduler.TuningOptions(num_measure_trials=…, num_measures_per_round=…, builder=…,
                                 runner=…, measure_callbacks=[…], verbose=0)
                                            a builder compiles candidates, a runner times them
    scheduler.tune(options, search_policy_params=…)
    auto_scheduler.RecordToFile(log)        a callback that appends each record
    task.tune(options, policy)              searches one task; the policy chooses candidates:
                                            auto_scheduler.SketchPolicy(task,
                                            auto_scheduler.XGBModel(…), params=…, verbose=0)
    task.apply_best(log)                    the schedule and the tensors of the fastest record

Of MetaSchedule, `from tvm.s_tir import meta_schedule as ms`:

    schedule.sample_perfect_tile(loop, n=2, max_innermost_factor=16)
                                            n factors of that loop, for schedule.split(loop,
                                            factors), drawn again in each trial
    ms.tune.tune_tasks(tasks=…, task_weights=…, work_dir=…, max_trials_global=…,
                       num_trials_per_iter=…, builder=…, runner=…, cost_model=…,
                       measure_callbacks=[…])   searches; returns the database of records
    ms.measure_callback.MeasureCallback.create("default")
                                            the callbacks that write records and train the model
    relax.transform.MetaScheduleApplyDatabase()
                                            a pass: applies the fastest records of a database. It
                                            is made, and runs, inside `with target, database:`

Of tvm_practice.tvm_export.tuners, with settings for a few dozen trials (`autotvm`, `ansor`,
`metaschedule` and `budget` are its modules; TVM has an `autotvm` as well, so import functions:
`from tvm_practice.tvm_export.tuners.autotvm import measuring`):

    with autotvm.measuring(task, trials, log) as measure:
                                            measure.option and measure.callback, for tune()
    with ansor.measuring(tasks, trials, log) as measure:, or
    with metaschedule.measuring(contexts, trials, work_dir) as measure:
                                            measure.builder, measure.runner, measure.callback
    autotvm.learn_from(tuner, log)          tells a tuner about the trials in a log, which it then
                                            does not repeat
    ansor.fast_search_params()              for tune()'s search_policy_params
    metaschedule.cost_model()               for tune_tasks' cost_model
    budget.plan_size(trials), budget.trials_per_round(trials, number_of_tasks)
                                            trials per round of AutoTVM, and of Ansor or
                                            MetaSchedule: few, so that the model learns in time

The worked example is a tuner without a model. Write the functions below it, then run

    python -m tvm_practice.auto_tune --quick        16 trials per tuner
    python -m tvm_practice.auto_tune                64 trials per tuner, on a larger matmul
    pytest -m phase5

Tuners measure in worker processes, so a candidate that crashes or hangs costs one trial, not the
search.
"""

from typing import Any

from tvm_practice.course.phase import phase_command


def random_search(size: int, trials: int) -> list[tuple[int, int, float]]:
    """Worked example: a tuner without a model, on the tiles of phase 2.

    It proposes tile sizes at random, builds the schedule, runs it for at least 10 ms per sample
    (min_repeat_ms) and keeps the time. It runs candidates in this process, so a candidate that
    crashes ends the search.

    Args:
        size: rows and columns of A, B and C.
        trials: schedules to measure.

    Returns:
        (tile_m, tile_n, milliseconds) of each trial, in the order they were tried.
    """
    import numpy as np
    import tvm
    from tvm import te

    from tvm_practice.course.stack import earlier
    from tvm_practice.engines import host_target

    # Yours where they pass, else the reference ones.
    matmul = earlier("te_basics.matmul")
    names = ("tile", "vectorize", "parallelize")
    tile, vectorize, parallelize = (earlier(f"manual_schedule.{name}") for name in names)

    rng = np.random.default_rng()
    inputs = [tvm.runtime.tensor(rng.random((size, size), "float32")) for _ in range(2)]
    output = tvm.runtime.tensor(np.zeros((size, size), "float32"))
    records = []
    for _ in range(trials):
        tile_m, tile_n = (int(2**power) for power in rng.integers([0, 3], [6, 8]))  # propose
        function = te.create_prim_func(matmul(size, size, size))
        schedule = tvm.s_tir.Schedule(function.with_attr("global_symbol", "main"))
        block = schedule.get_sblock("C")
        tile(schedule, block, tile_m, tile_n)
        vectorize(schedule, block)
        parallelize(schedule, block)
        library = tvm.compile(schedule.mod, target=host_target())  # build
        timer = library.mod.time_evaluator("main", tvm.cpu(), number=1, repeat=3, min_repeat_ms=10)
        records.append((tile_m, tile_n, timer(*inputs, output).mean * 1e3))  # run, record
    return records


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
    raise NotImplementedError("declare the matmul, define knobs, and schedule with their values")


def tune_autotvm(task: Any, *, trials: int, log: str) -> None:
    """AutoTVM: measure configurations of a template, guided by a cost model.

    Make an autotvm.tuner.XGBTuner that learns within few trials (plan_size=budget.plan_size(trials)
    or less) and call its `tune` once, with a measure option that works here and with callbacks that
    append each record to the log and show progress (`autotvm.measuring` has the measure option and
    the callback for progress). You may let it learn from the log first (`autotvm.learn_from`). Do
    not seed NumPy's shared generator, from which the tuner draws: each search would begin with the
    same configurations.

    Args:
        task: an autotvm.task.Task; it carries its target.
        trials: configurations to measure.
        log: file to append the records to, one line of JSON per trial.
    """
    raise NotImplementedError(
        "an XGBTuner, its plan size, and tune() with the measure option and callbacks"
    )


def apply_autotvm(task: Any, log: str) -> tuple[Any, list[Any]]:  # (te.Schedule, tensors)
    """AutoTVM: the schedule of the fastest valid record of a task, by the mean of its runs.

    Args:
        task: an autotvm.task.Task.
        log: file with records for the task's target, of this task and maybe of others.

    Returns:
        The te.Schedule and the tensors, as the task's template returns them for the
        configuration of the record; it is called in the context of the task's target.

    Raises:
        ValueError: the log has no valid record of the task.
    """
    raise NotImplementedError(
        "autotvm.apply_history_best, then the task's instantiate, inside `with task.target`"
    )


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
    raise NotImplementedError("auto_scheduler.register_workload, then a SearchTask")


def tune_ansor(tasks: list[Any], weights: list[float], *, trials: int, log: str) -> None:
    """Ansor: make schedules without a template, and measure those its cost model ranks highest.

    An auto_scheduler.TaskScheduler divides the trials among the tasks, more to those where the
    weighted sum of latencies gains most. Give its `tune` the TuningOptions with a builder, a
    runner and callbacks that append each record to the log and show progress
    (`ansor.measuring` has all but the callback for records), a round small enough that the cost
    model learns before the trials are spent (budget.trials_per_round), and the search parameters
    of `ansor.fast_search_params()`: a small population. If the log exists, the search goes on from
    it.

    Args:
        tasks: auto_scheduler.SearchTask objects; each carries its target.
        weights: how often each task runs.
        trials: schedules to measure in total, besides those in the log; rounded up to whole
            rounds.
        log: file to append the records to, one line of JSON per trial.
    """
    raise NotImplementedError("an auto_scheduler.TaskScheduler and its tune() with TuningOptions")


def apply_ansor(task: Any, log: str) -> tuple[Any, list[Any]]:  # (te.Schedule, tensors)
    """Ansor: the schedule of the fastest valid record of a task, by the mean of its runs.

    Args:
        task: an auto_scheduler.SearchTask.
        log: file with records, of this task and maybe of others.

    Returns:
        The te.Schedule and the tensors of the record's state.

    Raises:
        RuntimeError: the log has no valid record of the task.
    """
    raise NotImplementedError("the task's apply_best")


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
    raise NotImplementedError("TuningOptions, a SketchPolicy with an XGBModel, and task.tune")


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
    raise NotImplementedError("the schedule of phase 2, its factors from sample_perfect_tile")


def tune_metaschedule(
    contexts: list[Any], weights: list[float], *, trials: int, work_dir: str
) -> Any:  # a meta_schedule.Database
    """MetaSchedule: measure schedules of one or many tasks, guided by a cost model.

    Call meta_schedule.tune.tune_tasks with a builder and a runner that start quickly and a
    callback that shows progress (`metaschedule.measuring`; list MetaSchedule's default measure
    callbacks before it), a cost model set for few trials (`metaschedule.cost_model`), and a round
    small enough that the model learns before the trials are spent (budget.trials_per_round).

    Args:
        contexts: meta_schedule.TuneContext objects; each carries its design space and target.
        weights: how often each task runs.
        trials: schedules to measure in total, besides those in the database; rounded up to whole
            rounds.
        work_dir: folder of the database, from which a later call continues.

    Returns:
        The meta_schedule.Database with the records.
    """
    raise NotImplementedError("meta_schedule.tune.tune_tasks, inside `with measuring(…)`")


def apply_metaschedule(mod: Any, database: Any, target: Any) -> Any:  # an IRModule
    """MetaSchedule: a module with the fastest valid record of each of its functions applied.

    Args:
        mod: an IRModule: the PrimFunc of one matmul, or a Relax model, whose main calls the
            PrimFuncs of its operators.
        database: a meta_schedule.Database; not every kind can list its records.
        target: the tvm.target.Target used for tuning.

    Returns:
        The IRModule; functions without a record are as they were.
    """
    raise NotImplementedError("MetaScheduleApplyDatabase, inside `with target, database`")


main = phase_command("auto_tune", "Phase 5: auto-tuning, schedules found by measuring.")

if __name__ == "__main__":
    main()
