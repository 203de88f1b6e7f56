"""The three tuners: measuring schedules, and applying the best."""

from typing import Any


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
    from tvm import autotvm

    with task.target:
        config = autotvm.apply_history_best(log).query(task.target, task.workload)
        if config.is_fallback:
            raise ValueError(f"{log} has no valid record of {task.name}{task.args}")
        schedule, tensors = task.instantiate(config)
    return schedule, tensors


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
    """Ansor: the schedule of the fastest valid record of a task, by the mean of its runs.

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
        mod: an IRModule: the PrimFunc of one matmul, or a Relax model, whose main calls the
            PrimFuncs of its operators.
        database: a meta_schedule.Database; not every kind can list its records.
        target: the tvm.target.Target used for tuning.

    Returns:
        The IRModule; functions without a record are as they were.
    """
    from tvm import relax

    with target, database:
        return relax.transform.MetaScheduleApplyDatabase()(mod)
