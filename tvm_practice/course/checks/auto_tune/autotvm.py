"""AutoTVM's search of a template, and the best record applied."""

import contextlib
import inspect
import json
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from tvm_practice.course.checks.auto_tune.common import (
    PHASE,
    Called,
    calls_of,
    check_apply,
    expect_measuring,
    expect_progress,
    expect_trials,
    measuring_calls,
    new_log,
)
from tvm_practice.course.expect import draw_distinct, expect
from tvm_practice.course.tuning_logs import autotvm_log, autotvm_task, classic_nest, draw_seconds
from tvm_practice.engines import CLASSIC
from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.viz.loop_nest import format_nest
from tvm_practice.wording import number_of


def _demonstrate_tune_autotvm(tune_autotvm: Callable[..., None]) -> str:
    task = autotvm_task((32, 32, 32))
    with new_log() as log:
        tune_autotvm(task, trials=2, log=str(log))
        first = json.loads(log.read_text().splitlines()[0])
        return f"{len(log.read_text().splitlines())} lines, each with {', '.join(first)}"


@PHASE.exercise(
    "tune_autotvm",
    engine=CLASSIC,
    title="search a template's knobs with AutoTVM",
    hints=(
        "Three parts: the measure option, the tuner, and the call that tunes. For how many "
        "trials does the tuner's model wait by default?",
        "measuring(task, trials, log) gives .option and .callback; learn_from(tuner, log) tells "
        "the tuner of trials that are in the log already. "
        "XGBTuner's plan_size is 64 unless told otherwise: its model would first be fitted after "
        "64 trials. Pass plan_size=plan_size(trials), loss_type='reg' and feature_type='knob'.",
        "with measuring(task, trials, log) as measure: tuner.tune(n_trial=trials, "
        "measure_option=measure.option, callbacks=[autotvm.callback.log_to_file(log), "
        "measure.callback]).",
    ),
    looks_like="2 lines, each with input, config, result, version, tvm_version",
    demonstrate=_demonstrate_tune_autotvm,
)
def check_tune_autotvm(tune_autotvm: Callable[..., None]) -> None:
    from tvm import autotvm

    from tvm_practice.tvm_export.tuners.autotvm import history

    m, n, k = draw_distinct(3, range(33, 64))
    (trials,) = draw_distinct(1, range(3, 6))
    task, other = autotvm_task((m, n, k)), autotvm_task((m + 1, n, k))
    for many in (1, 2, 33, 1000, 30_000):
        _expect_search_of(tune_autotvm, task, many)
    _expect_draws_of_its_own(tune_autotvm, task)
    with new_log() as log:
        kept = autotvm.record.encode(
            autotvm.MeasureInput(other.target, other, other.config_space.get(0)),
            autotvm.MeasureResult((0.001,), 0, 0.1, 1.0),
        )
        log.write_text(kept + "\n")
        tuner = autotvm.tuner.XGBTuner
        with (
            calls_of(tuner, "__init__") as made,
            calls_of(tuner, "tune", like=autotvm.tuner.Tuner.tune) as searches,
            measuring_calls() as measuring,
        ):
            tune_autotvm(task, trials=trials, log=str(log))
        lines = log.read_text().splitlines()
        expect(
            lines[:1] == [kept],
            expected="records appended to the log",
            seen="the record that was in it is gone",
            look="autotvm.callback.log_to_file(log) appends; do not delete the file before",
        )
        expect(
            len(lines) > 1,
            expected=f"{trials} records in the log",
            seen="none was added",
            look="callbacks=[autotvm.callback.log_to_file(log), ...] of tune()",
        )
        expect_trials(history(log)[1:], trials, "n_trial= of tune()")
        records = [json.loads(line) for line in lines[1:]]
    _expect_xgb_tuner(made, searches, trials, measuring)
    expect_measuring(measuring, trials, log)
    for record in records:
        expect(
            record["input"][1] == task.name and tuple(record["input"][2]) == task.args,
            expected=f"records of {task.name}{task.args}",
            seen=f"one of {record['input'][1]}{tuple(record['input'][2])}",
            look="the task that XGBTuner is made with",
        )
        expect(
            record["input"][0] == str(task.target),
            expected=f"measured for the task's target, {task.target}",
            seen=record["input"][0],
            look="the target: the task carries it",
        )
    tried = len({record["config"]["index"] for record in records})
    expect(
        tried == len(records),
        expected=f"{len(records)} different configurations",
        seen=f"{tried}",
        look="one tuner and one call of tune(): it remembers what it has measured",
    )


def _expect_search_of(tune_autotvm: Callable[..., None], task: Any, trials: int) -> None:
    """A search for so many trials would be made as for a few; nothing is measured."""
    from tvm import autotvm

    tuner, usual = autotvm.tuner.XGBTuner, autotvm.tuner.Tuner.tune
    # A trial that failed is a record like the others: a search does not try it again.
    measured = [
        autotvm.MeasureInput(task.target, task, task.config_space.get(at)) for at in range(3)
    ]
    results = [autotvm.MeasureResult((0.001,), error, 0.1, 1.0) for error in (0, 4, 0)]

    def instead(*arguments: Any, **options: Any) -> None:
        given = inspect.signature(usual).bind(*arguments, **options).arguments
        for callback in given.get("callbacks", ()):
            callback(given["self"], measured, results)

    with (
        new_log() as log,
        calls_of(tuner, "__init__") as made,
        calls_of(tuner, "tune", instead=instead, like=usual) as searches,
        measuring_calls() as measuring,
        contextlib.suppress(NothingMeasured),
    ):
        tune_autotvm(task, trials=trials, log=str(log))
        _expect_xgb_tuner(made, searches, trials, measuring)
        lines = log.read_text().splitlines() if log.exists() else []
        wanted = [autotvm.record.encode(*each) for each in zip(measured, results, strict=True)]
        expect(
            lines == wanted,
            expected=f"{len(wanted)} records in the log after {len(wanted)} trials, of which the "
            "second failed",
            seen=f"{number_of(len(lines), 'record')}",
            look="callbacks=[autotvm.callback.log_to_file(log), ...] of tune(): each record",
        )
    _expect_xgb_tuner(made, searches, trials, measuring)  # of a search that measured nothing, too
    expect_measuring(measuring, trials, log)
    seen = searches[-1].get("n_trial")
    expect(
        seen == trials and len(searches) == 1,
        expected=f"one tune() with n_trial={trials}",
        seen=f"{len(searches)} with n_trial={seen}",
        look="n_trial=trials of tune(), however many there are",
    )


def _expect_draws_of_its_own(tune_autotvm: Callable[..., None], task: Any) -> None:
    """Two searches begin with other configurations: NumPy's generator is as it was found."""
    from tvm import autotvm

    states: list[bytes] = []

    def instead(*_: Any, **__: Any) -> None:
        states.append(pickle.dumps(np.random.get_state()))

    tuner = autotvm.tuner.XGBTuner
    with new_log() as log, calls_of(tuner, "tune", instead=instead, like=autotvm.tuner.Tuner.tune):
        for _ in range(2):
            np.random.bytes(4096)
            with contextlib.suppress(NothingMeasured):
                tune_autotvm(task, trials=3, log=str(log))
    expect(
        len(set(states)) == len(states),
        expected="two searches that begin with different configurations",
        seen="NumPy's shared generator in the same state at both calls of tune()",
        look="np.random.seed or set_state before tune(), also if the state is put back after it",
    )


def _expect_xgb_tuner(
    made: Called, searches: Called, trials: int, measuring: dict[str, Called]
) -> None:
    """A tuner with a cost model that learns in time, and tells of its progress."""
    from tvm_practice.tvm_export.tuners.budget import plan_size

    expect(
        bool(made) and bool(searches),
        expected="a search guided by a cost model",
        seen="no autotvm.tuner.XGBTuner was made, or its tune() was not called",
        look="the class of the tuner: RandomTuner, GATuner and GridSearchTuner have no model",
    )
    size = made[-1]["self"].plan_size
    expect(
        size <= plan_size(trials),
        expected=f"a tuner that plans after {plan_size(trials)} trials, budget.plan_size(trials)",
        seen=f"plan_size={size}",
        look="plan_size= of XGBTuner: by default it learns nothing before 64 trials",
    )
    loss = made[-1].get("loss_type")
    expect(
        loss != "rank",
        expected="a model that can be fitted: loss_type='reg' or 'rank-binary'",
        seen=f"loss_type={loss!r}",
        look="loss_type= of XGBTuner: AutoTVM refuses 'rank' beside XGBoost 2 and later, and the "
        "search ends when the model is first fitted",
    )
    early = searches[-1].get("early_stopping")
    expect(
        early is None or early >= trials,
        expected=f"{trials} trials, whatever their times",
        seen=f"a search that ends after {early} trials without a faster one",
        look="early_stopping= of tune()",
    )
    callbacks = searches[-1].get("callbacks")
    expect_progress(callbacks, "callbacks= of tune()", measuring["shown"])


def _demonstrate_apply_autotvm(apply_autotvm: Callable[..., Any]) -> str:
    task = autotvm_task((64, 64, 64))
    with new_log() as log:
        autotvm_log(task, log, [0.003, 0.001, 0.002], seed=1)
        schedule, _ = apply_autotvm(task, str(log))
    return format_nest(classic_nest(schedule))


@PHASE.exercise(
    "apply_autotvm",
    engine=CLASSIC,
    title="the schedule of AutoTVM's best record",
    hints=(
        "AutoTVM reads a log and keeps the fastest valid record of each workload. Ask it for "
        "this task's record, on the task's target. What does it return where the log has none?",
        "with task.target: config = autotvm.apply_history_best(log).query(task.target, "
        "task.workload). Where the log has none, it is a fallback: config.is_fallback.",
        "schedule, tensors = task.instantiate(config), inside `with task.target`. Raise "
        "ValueError if config.is_fallback.",
    ),
    looks_like="""
        for i.outer in serial(16):
            for j.outer in serial(4):
                for i.inner.init in serial(4):
                    for j.inner.init in vectorized(16):
                        C: C <- constant
                for k in serial(64):
                    for i.inner in serial(4):
                        for j.inner in vectorized(16):
                            C: C <- A, B, C
    """,
    demonstrate=_demonstrate_apply_autotvm,
)
def check_apply_autotvm(apply_autotvm: Callable[..., Any]) -> None:
    check_apply(
        apply_autotvm,
        autotvm_task,
        autotvm_log,
        best="autotvm.apply_history_best(log) picks the record; query it with the task's workload",
        refused="raise ValueError if config.is_fallback; and the log, read at each call",
        error=ValueError,
    )
    _expect_target_around(apply_autotvm)


def _expect_target_around(apply_autotvm: Callable[..., Any]) -> None:
    """The template is called in the context of the task's target, as it is in a search."""
    import tvm

    task = autotvm_task(draw_distinct(3, range(33, 64)))
    template, around = task.func, list[str]()

    def noting(*arguments: Any) -> Any:
        around.append(str(tvm.target.Target.current(allow_none=True)))
        return template(*arguments)

    with new_log() as log:
        autotvm_log(task, log, draw_seconds(3))
        task.func = noting
        apply_autotvm(task, str(log))
    expect(
        set(around) == {str(task.target)},
        expected=f"the template called in the context of the task's target, {task.target}",
        seen=", ".join(sorted(set(around))) or "it was not called",
        look="`with task.target:` around task.instantiate: a template may ask for the target",
    )
