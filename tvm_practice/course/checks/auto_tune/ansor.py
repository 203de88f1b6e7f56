"""Ansor: a workload and its task, the search of many tasks or one, the best record applied."""

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from tvm_practice.course.checks.auto_tune.common import (
    PHASE,
    Called,
    calls_of,
    check_apply,
    expect_measuring,
    expect_progress,
    expect_records,
    expect_trials,
    measuring_calls,
    new_log,
)
from tvm_practice.course.expect import draw_distinct, expect, expect_type, fresh_rng, varied
from tvm_practice.course.lowering import build_schedule
from tvm_practice.course.products import expect_product
from tvm_practice.course.tuning_logs import ansor_log, ansor_task, classic_nest
from tvm_practice.engines import CLASSIC, host_target
from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.viz.loop_nest import format_nest
from tvm_practice.wording import number_of


def _demonstrate_search_task(search_task: Callable[..., Any]) -> str:
    task = search_task("graded.shown", 32, 48, 64, host_target())
    return f"{task.workload_key}\n{task.compute_dag}".rstrip()


@PHASE.exercise(
    "search_task",
    engine=CLASSIC,
    title="register a workload and make its search task",
    hints=(
        "Two calls: the function becomes known by a name, and the task says for which numbers and "
        "which target. What happens if the name is known already?",
        "Write phase 1's matmul below `@auto_scheduler.register_workload(name, override=True)`: a "
        "function of m, n and k that returns [A, B, C]. It uses its own arguments, not the task's.",
        "auto_scheduler.SearchTask(func=name, args=(m, n, k), target=target), after "
        "auto_scheduler.register_workload(name, f=matmul, override=True); return the task.",
    ),
    looks_like="""
        ["graded.shown", 32, 48, 64]
        A = PLACEHOLDER [32, 64]
        B = PLACEHOLDER [64, 48]
        C(i, j) += (A[i, k]*B[k, j])
    """,
    demonstrate=_demonstrate_search_task,
)
def check_search_task(search_task: Callable[..., Any]) -> None:
    import tvm
    from tvm import auto_scheduler
    from tvm.auto_scheduler.workload_registry import WORKLOAD_FUNC_REGISTRY

    m, n, k = draw_distinct(3, range(3, 40))
    number, large = draw_distinct(2, range(5_000, 9_000))
    targets = host_target(), tvm.target.Target("llvm -mcpu=haswell -num-cores=3")
    # One large number among ones keeps the product small.
    every = [*varied(m, n, k), (large, 1, 1), (1, large, 1), (1, 1, large)]
    # Each two have one name; and each two targets, the last two one size.
    cases = [(at // 2, sizes, targets[at % 2]) for at, sizes in enumerate(every)]
    cases.append((cases[-1][0], every[-1], targets[len(every) % 2]))
    with mock.patch.dict(WORKLOAD_FUNC_REGISTRY):  # the names are free again afterwards
        for more, sizes, target in cases:
            name = f"Graded.Workload {number + more}"
            auto_scheduler.register_workload(name, f=_of_another_function, override=True)
            with targets[more % 2]:  # the current one, which is another one at times
                task = search_task(name, *sizes, target)
            _expect_task(task, name, sizes, target)


def _of_another_function(m: int, n: int, k: int) -> list[Any]:
    """A workload that the next of its name replaces."""
    from tvm import te

    A = te.placeholder((m, k), name="A")
    return [A, te.compute((m, k), lambda i, j: A[i, j] + n, name="C")]


def _expect_task(task: Any, name: str, sizes: Sequence[int], target: Any) -> None:
    """`task` is of the workload `name` for these sizes on the target, and computes the product."""
    from tvm import auto_scheduler, te
    from tvm.auto_scheduler.workload_registry import WORKLOAD_FUNC_REGISTRY

    expect_type(task, auto_scheduler.SearchTask, "search_task returns an auto_scheduler.SearchTask")
    key = json.loads(task.workload_key)
    expect(
        key == [name, *sizes],
        expected=f"the key {[name, *sizes]}: the workload's name, and (m, n, k)",
        seen=str(key),
        look="func= and args= of SearchTask, and the name given to register_workload",
    )
    expect(
        str(task.target) == str(target),
        expected=f"a task for the target {target}",
        seen=str(task.target),
        look="target= of SearchTask",
    )
    dag = task.compute_dag
    usual = auto_scheduler.SearchTask(
        compute_dag=dag, workload_key=task.workload_key, target=target
    )
    expect(
        task.layout_rewrite_option == usual.layout_rewrite_option,
        expected=f"the target's own layout_rewrite_option, {usual.layout_rewrite_option}",
        seen=str(task.layout_rewrite_option),
        look="layout_rewrite_option= of SearchTask: the docstring asks for none, and B stays in "
        "the layout in which a caller passes it",
    )
    expect(
        str(task.hardware_params) == str(usual.hardware_params),
        expected=f"the hardware as the target has it: {usual.hardware_params}",
        seen=str(task.hardware_params),
        look="hardware_params= of SearchTask: the docstring asks for none",
    )
    schedule, tensors = dag.apply_steps_from_state(dag.get_init_state())
    _expect_workload(schedule, tensors, sizes)
    again = (sizes[2] + 1, sizes[0] + 2, sizes[1] + 3)
    tensors = list(WORKLOAD_FUNC_REGISTRY[name](*again))
    _expect_workload(te.create_schedule(tensors[-1].op), tensors, again)


def _expect_workload(schedule: Any, tensors: Sequence[Any], sizes: Sequence[int]) -> None:
    """The tensors of a workload are those of a product of these sizes, and compute it."""
    _expect_declared(tensors, sizes)
    m, n, k = sizes
    expect_product(
        build_schedule(schedule, list(tensors)),
        (m, k),
        (k, n),
        look="the formula of the workload",
        atol=5e-3,  # of thousands of float32
    )


def _expect_declared(tensors: Sequence[Any], sizes: Sequence[int]) -> None:
    from tvm import tir

    m, n, k = sizes
    seen = [f"{each.dtype} {tuple(map(int, each.shape))}" for each in tensors]
    wanted = [f"float32 {shape}" for shape in ((m, k), (k, n), (m, n))]
    expect(
        seen == wanted,
        expected=f"the workload of {m}, {n}, {k} returns [A, B, C]: {', '.join(wanted)}",
        seen=", ".join(seen),
        look="the registered function: its own m, n and k, the order of the tensors, their dtype; "
        "and override=True, without which an earlier one of the name stays",
    )
    read = sorted(str(each.op.name) for each in tensors[2].op.input_tensors)
    given = sorted(str(each.op.name) for each in tensors[:2])
    expect(
        read == given,
        expected="C computed from A and B: of those two placeholders, in one stage",
        seen=f"the last tensor, {tensors[2].op.name}, reads {', '.join(read)}",
        look="the registered function: C itself is the sum, and Ansor adds stages where it "
        "wants them",
    )
    kinds = set[str]()
    for body in tensors[2].op.body:
        tir.stmt_functor.post_order_visit(
            body, lambda each: kinds.add(str(getattr(each, "dtype", "")))
        )
    others = sorted(each for each in kinds if "float" in each and each != "float32")
    expect(
        not others,
        expected="products and sums in float32",
        seen=f"some in {', '.join(others)}",
        look="the formula of the workload: A and B are of float32, and nothing is cast",
    )


def _demonstrate_tune_ansor(tune_ansor: Callable[..., None]) -> str:
    task = ansor_task((32, 32, 32))
    with new_log() as log:
        tune_ansor([task], [1.0], trials=2, log=str(log))
        first = json.loads(log.read_text().splitlines()[0])
        return f"{len(log.read_text().splitlines())} lines, each with {', '.join(first)}"


@PHASE.exercise(
    "tune_ansor",
    engine=CLASSIC,
    title="search without a template with Ansor",
    hints=(
        "Two objects: one holds the number of trials, how to measure them and where to write "
        "them; the other searches. The file's table names both.",
        "auto_scheduler.TaskScheduler(tasks, weights, …) searches with "
        "TuningOptions(num_measure_trials=trials, "
        "num_measures_per_round=trials_per_round(trials, len(tasks)), builder=, runner=, "
        "measure_callbacks=[auto_scheduler.RecordToFile(log), ...], verbose=0), with the "
        "builder, runner and callback of measuring(tasks, trials, log).",
        "scheduler.tune(options, search_policy_params=fast_search_params()). Make the scheduler "
        "with callbacks=[], or it writes a table and a file of its own, and with "
        "load_log_file=log if the file exists.",
    ),
    looks_like="2 lines, each with i, r, v",
    demonstrate=_demonstrate_tune_ansor,
)
def check_tune_ansor(tune_ansor: Callable[..., None]) -> None:
    from tvm_practice.tvm_export.tuners.ansor import history

    m, n, k = draw_distinct(3, range(33, 64))
    tasks = [ansor_task((m, n, k)), ansor_task((n, m, k))]
    _expect_other_searches(tune_ansor, *tasks, ansor_task((m, n, k + 1)))
    trials = 2
    with new_log() as log:
        with _ansor_calls() as calls, measuring_calls() as measuring:
            tune_ansor(tasks, [1.0, 3.0], trials=trials, log=str(log))
        expect_records(log, "measure_callbacks=[auto_scheduler.RecordToFile(log), ...]")
        expect_trials(
            history(log),
            trials,
            "num_measure_trials= and num_measures_per_round= of TuningOptions",
        )
        text = log.read_text()
        records = [json.loads(line)["i"][0] for line in text.splitlines()]
        for task in tasks:
            expect(
                any(record[0] == task.workload_key for record in records),
                expected=f"trials of both tasks, {' and '.join(t.workload_key for t in tasks)}",
                seen=f"none of {task.workload_key}",
                look="auto_scheduler.TaskScheduler(tasks, weights) takes all of them",
            )
        for record in records:
            expect(
                record[1] == str(tasks[0].target),
                expected=f"measured for the tasks' target, {tasks[0].target}",
                seen=record[1],
                look="the target: the tasks carry it",
            )
        _expect_ansor(calls, tasks, [1.0, 3.0], trials)
        _expect_measuring(measuring, trials, len(tasks), log)
        expect_progress(calls["options"][-1]["measure_callbacks"], _CALLBACKS, measuring["shown"])
        for known in (text, text.splitlines(keepends=True)[0]):  # of one record as well
            log.write_text(known)
            _expect_gone_on(tune_ansor, tasks, 40, log)  # more than the log has


def _expect_gone_on(
    tune_ansor: Callable[..., None], tasks: Sequence[Any], trials: int, log: Path
) -> None:
    """What there is to go on from, is gone on from; the search itself need not be."""
    text = log.read_text()
    with _ansor_calls(searching=False) as again, contextlib.suppress(NothingMeasured):
        tune_ansor(list(tasks), [1.0, 3.0], trials=trials, log=str(log))
    loaded = again["made"][-1].get("load_log_file") if again["made"] else None
    expect(
        str(loaded) == str(log) and log.read_text().startswith(text),
        expected="a search that goes on from the log, if it exists, whatever it contains",
        seen="its records were removed" if loaded else f"load_log_file={loaded}",
        look="load_log_file=log of TaskScheduler",
    )
    _expect_options(again["options"][-1], trials, len(tasks))  # besides those in the log


def _expect_other_searches(tune_ansor: Callable[..., None], *tasks: Any) -> None:
    """Tasks, weights and numbers of trials reach the search as they are; it is not carried out."""
    for given, weights, trials in (
        (tasks[:1], [7.0], 1),
        (tasks, [0.5, 2.0, 5.0], 100),
        (tasks, [0.5, 2.0, 5.0], 37),  # no whole rounds, whose trials are rounded up
        (tasks[:2], [200, 9000], 1000),
        (tasks[1:], [3.0, 0.25], int(fresh_rng().integers(20_000, 90_000))),
    ):
        with new_log() as log:
            with (
                _ansor_calls(searching=False) as calls,
                measuring_calls() as measuring,
                contextlib.suppress(NothingMeasured),
            ):
                tune_ansor(list(given), weights, trials=trials, log=str(log))
            _expect_ansor(calls, given, weights, trials)
            _expect_measuring(measuring, trials, len(given), log)


def _expect_measuring(measuring: dict[str, Called], trials: int, tasks: int, log: Path) -> None:
    """See `expect_measuring`; the number of trials may be that of whole rounds."""
    from tvm_practice.tvm_export.tuners.budget import trials_per_round

    size = trials_per_round(trials, tasks)
    expect_measuring(measuring, trials, log, rounded_up_to=-(-trials // size) * size)


@contextmanager
def _ansor_calls(*, searching: bool = True) -> Iterator[dict[str, Called]]:
    """How the scheduler is made, the options and the search; none goes on unless `searching`."""
    from tvm import auto_scheduler

    instead = None if searching else lambda *_, **__: None
    scheduler = auto_scheduler.TaskScheduler
    with (
        _few_candidates(),
        calls_of(scheduler, "__init__") as made,
        calls_of(scheduler, "tune", instead=instead) as searches,
        calls_of(auto_scheduler.TuningOptions, "__init__") as options,
        calls_of(auto_scheduler.SketchPolicy, "__init__") as policies,
    ):
        yield {"made": made, "searches": searches, "options": options, "policies": policies}


def _weights_of(made: dict[str, Any], tasks: int) -> list[float]:
    """What each task's latency counts for in the scheduler's objective, a sum."""
    objective = made.get("objective_func")
    if objective is None:
        return [float(each) for each in made.get("task_weights") or ()]
    weights = [float(objective(each)) for each in np.eye(tasks).tolist()]
    latencies = fresh_rng().uniform(1e-4, 1e-2, tasks).tolist()
    expect(
        np.isclose(objective(latencies), np.dot(weights, latencies), rtol=1e-9, atol=0),
        expected="the weighted sum of latencies as the objective",
        seen="an objective_func that is no sum",
        look="auto_scheduler.TaskScheduler(tasks, weights)",
    )
    return weights


def _expect_ansor(
    calls: dict[str, Called], tasks: Sequence[Any], given: Sequence[float], trials: int
) -> None:
    wanted = {each: calls[each] for each in ("made", "searches", "options")}
    expect(
        all(wanted.values()),
        expected="an auto_scheduler.TaskScheduler, its tune(), and TuningOptions",
        seen=f"no {' and no '.join(name for name, each in wanted.items() if not each)}",
        look="the objects that the docstring names",
    )
    made, search, options = (each[-1] for each in wanted.values())
    weights = _weights_of(made, len(given))
    expect(
        len(weights) == len(given) and np.allclose(weights, given, rtol=1e-9, atol=0),
        expected=f"the tasks weighted as given, {list(given)}",
        seen=f"{weights or 'no weights'}",
        look="auto_scheduler.TaskScheduler(tasks, weights)",
    )
    expect(
        len(made["tasks"]) == len(tasks)
        and all(one.same_as(other) for one, other in zip(made["tasks"], tasks, strict=True)),
        expected="the tasks as given, in the order of their weights",
        seen="other ones, or in another order",
        look="auto_scheduler.TaskScheduler(tasks, weights)",
    )
    strategy = made.get("strategy", "gradient")
    expect(
        strategy == "gradient",
        expected="trials that go to the tasks with the most to gain: TaskScheduler's "
        "default strategy",
        seen=str(strategy),
        look="strategy= of TaskScheduler",
    )
    given_up = search.get("per_task_early_stopping")
    expect(
        not given_up or given_up >= trials,
        expected="trials measured until all of them are spent",
        seen=f"a task given up after {given_up} trials without a gain",
        look="per_task_early_stopping= of tune()",
    )
    policy = search.get("search_policy", "default")
    expect(
        "random" not in str(policy),
        expected="a search that a cost model guides",
        seen=str(policy),
        look="search_policy= of tune()",
    )
    if isinstance(policy, str):
        _expect_small_population(
            search.get("search_policy_params"),
            "search_policy_params=fast_search_params() of tune()",
        )
    for each in [] if isinstance(policy, str) else policy:
        _expect_policy(each, calls["policies"], trials, len(given))
    _expect_options(options, trials, len(given))


def _expect_policy(policy: Any, made: Called, trials: int, tasks: int) -> None:
    """A policy that the answer made: a cost model that learns in time, and a small population."""
    from tvm import auto_scheduler

    from tvm_practice.tvm_export.tuners.budget import trials_per_round

    given: dict[str, Any] = next((each for each in made if each["self"] is policy), {})
    model, most = given.get("program_cost_model"), tasks * trials_per_round(trials, tasks)
    expect(
        isinstance(model, auto_scheduler.XGBModel) and model.num_warmup_sample <= most,
        expected=f"policies whose XGBModel is used after {number_of(most, 'trial')}",
        seen=f"a {type(policy).__name__} with a {type(model).__name__}, "
        f"num_warmup_sample={getattr(model, 'num_warmup_sample', None)}",
        look="the cost model of each SketchPolicy",
    )
    _expect_small_population(given["params"], "params=fast_search_params() of SketchPolicy")


def _expect_small_population(params: dict[str, Any] | None, look: str) -> None:
    """The parameters of a policy are those of `fast_search_params`, or others as small."""
    from tvm.auto_scheduler import SketchPolicy

    from tvm_practice.tvm_export.tuners import ansor

    name = "evolutionary_search_population"
    given = dict(params or {})
    population = given.get(name)
    expect(
        population is not None and population <= 512,
        expected="a small search population",
        seen=f"{population or 'the default, 2048'}",
        look=look,
    )
    usual, sizes = SketchPolicy.DEFAULT_PARAMS, ansor.fast_search_params()
    others = {
        key: value
        for key, value in given.items()
        if (value > usual[key] if key in sizes else value != usual.get(key))
    }
    expect(
        not others,
        expected="a search with the parameters of ansor.fast_search_params()",
        seen=", ".join(f"{key}={value}" for key, value in others.items()),
        look=look,
    )


_CALLBACKS = "measure_callbacks= of TuningOptions"


def _expect_options(options: dict[str, Any], trials: int, tasks: int) -> None:
    """The TuningOptions of a search for so many trials, whose model learns in time."""
    from tvm_practice.tvm_export.tuners.budget import trials_per_round

    most = trials_per_round(trials, tasks)
    asked, size = options["num_measure_trials"], options["num_measures_per_round"]
    expect(
        trials <= asked < trials + most,
        expected=f"num_measure_trials={trials}, as many as asked for in total",
        seen=f"{asked}",
        look="num_measure_trials= of TuningOptions",
    )
    expect(
        size <= most and (size > 1 or most < 4),
        expected=f"rounds of {most}: trials_per_round of {trials} trials and {tasks} "
        f"task{'s' * (tasks != 1)}",
        seen=f"{size}",
        look="num_measures_per_round= of TuningOptions",
    )
    early = options["early_stopping"]
    expect(
        early is None or early < 0 or early >= trials,
        expected=f"{trials} trials, whatever they measure",
        seen=f"a search that ends after {early} trials without a faster one",
        look="early_stopping= of TuningOptions",
    )
    default = [each for each in ("builder", "runner") if isinstance(options[each], str)]
    expect(
        not default,
        expected="TuningOptions with a builder and a runner that work here",
        seen=f"TVM's own {' and '.join(default)}",
        look="builder= and runner= of TuningOptions: those of ansor.measuring",
    )
    expect_progress(options["measure_callbacks"], _CALLBACKS)


def _demonstrate_apply_ansor(apply_ansor: Callable[..., Any]) -> str:
    task = ansor_task((64, 64, 64))
    with new_log() as log:
        nests = ansor_log(task, log, [0.003, 0.001, 0.002]).nests
        schedule, _ = apply_ansor(task, str(log))
    return f"record {nests.index(format_nest(classic_nest(schedule))) + 1} of 3: 3 ms, 1 ms, 2 ms"


@PHASE.exercise(
    "apply_ansor",
    engine=CLASSIC,
    title="the schedule of Ansor's best record",
    hints=(
        "A SearchTask can read its own best record from a log.",
        "task.apply_best(log) gives a schedule and its tensors; auto_scheduler.load_best_record "
        "gives the record itself.",
        "schedule, tensors = task.apply_best(log); return schedule, tensors.",
    ),
    looks_like="record 2 of 3: 3 ms, 1 ms, 2 ms",
    demonstrate=_demonstrate_apply_ansor,
)
def check_apply_ansor(apply_ansor: Callable[..., Any]) -> None:
    check_apply(
        apply_ansor,
        ansor_task,
        ansor_log,
        best="task.apply_best(log)",
        refused="task.apply_best(log) raises",
        error=RuntimeError,
    )


def _demonstrate_tune_task(tune_task: Callable[..., None]) -> str:
    task = ansor_task((32, 32, 32))
    with new_log() as log, _few_candidates():
        tune_task(task, trials=2, log=str(log))
        first = json.loads(log.read_text().splitlines()[0])
        return f"{len(log.read_text().splitlines())} lines, each with {', '.join(first)}"


@PHASE.exercise(
    "tune_task",
    engine=CLASSIC,
    title="search one task by its own tune",
    hints=(
        "Three objects for one call: the options of the measurement, the policy that chooses the "
        "next schedules, and the model that it asks. After how many trials should it be asked?",
        "auto_scheduler.XGBModel(num_warmup_sample=trials_per_round(trials, 1) - 1); "
        "auto_scheduler.SketchPolicy(task, model, params=fast_search_params(), verbose=0); the "
        "TuningOptions inside `with measuring([task], trials, log) as measure:`.",
        "task.tune(options, policy), with num_measure_trials=trials, "
        "num_measures_per_round=trials_per_round(trials, 1), measure.builder, measure.runner and "
        "measure_callbacks=[auto_scheduler.RecordToFile(log), measure.callback].",
    ),
    looks_like="2 lines, each with i, r, v",
    demonstrate=_demonstrate_tune_task,
)
def check_tune_task(tune_task: Callable[..., None]) -> None:
    from tvm_practice.tvm_export.tuners.ansor import history

    m, n, k = draw_distinct(3, range(33, 64))
    (trials,) = draw_distinct(1, range(3, 6))
    task = ansor_task((m, n, k))
    _expect_other_numbers(tune_task, task)
    with new_log() as log:
        log = log.with_name("trials")  # of no suffix
        ansor_log(task, log, [0.001])
        before = log.read_text()
        with _task_calls() as calls, measuring_calls() as measuring:
            tune_task(task, trials=trials, log=str(log))
        expect(
            log.read_text().startswith(before),
            expected="records appended to the log",
            seen="the records that were in it are gone",
            look="auto_scheduler.RecordToFile(log) appends; do not delete the file before",
        )
        known = len(before.splitlines())
        records = [json.loads(line)["i"][0] for line in log.read_text().splitlines()[known:]]
        expect_trials(
            history(log)[known:],
            trials,
            "num_measure_trials= of TuningOptions, and auto_scheduler.RecordToFile(log)",
        )
    _expect_task_search(calls, trials)
    _expect_measuring(measuring, trials, 1, log)
    expect_progress(calls["options"][-1]["measure_callbacks"], _CALLBACKS, measuring["shown"])
    for key, target in (each[:2] for each in records):
        expect(
            (key, target) == (task.workload_key, str(task.target)),
            expected=f"records of {task.workload_key} on {task.target}",
            seen=f"one of {key} on {target}",
            look="the task that the policy is made with, and whose tune() is called",
        )


def _expect_other_numbers(tune_task: Callable[..., None], task: Any) -> None:
    """A search for so many trials would be made as for a few; it is not carried out."""
    # 37 are no whole rounds; and a log may be that of the call before.
    with new_log() as log:
        for trials in (1, 2, 33, 37, 1000, int(fresh_rng().integers(20_000, 90_000))):
            with (
                _task_calls(searching=False) as calls,
                measuring_calls() as measuring,
                contextlib.suppress(NothingMeasured),
            ):
                tune_task(task, trials=trials, log=str(log))
            _expect_task_search(calls, trials)
            _expect_measuring(measuring, trials, 1, log)


@contextmanager
def _few_candidates() -> Iterator[None]:
    """Ansor's population is enough for a handful of trials."""
    from tvm_practice.tvm_export.tuners import ansor

    few = {**ansor.fast_search_params(), "evolutionary_search_population": 16}
    with mock.patch.object(ansor, "fast_search_params", lambda: few):
        yield


@contextmanager
def _task_calls(*, searching: bool = True) -> Iterator[dict[str, Called]]:
    """How the policy, its model and the options are made, and the search; see `_ansor_calls`."""
    from tvm import auto_scheduler

    instead = None if searching else lambda *_, **__: None
    with (
        _few_candidates(),
        calls_of(auto_scheduler.XGBModel, "__init__") as models,
        calls_of(auto_scheduler.SketchPolicy, "__init__") as policies,
        calls_of(auto_scheduler.TuningOptions, "__init__") as options,
        calls_of(auto_scheduler.SearchTask, "tune", instead=instead) as searches,
    ):
        yield {"models": models, "policies": policies, "options": options, "searches": searches}


def _expect_task_search(calls: dict[str, Called], trials: int) -> None:
    from tvm import auto_scheduler

    from tvm_practice.tvm_export.tuners.budget import trials_per_round

    expect(
        all(calls.values()),
        expected="TuningOptions, a SketchPolicy with an XGBModel, and the task's own tune()",
        seen=f"no {' and no '.join(name for name, each in calls.items() if not each)}",
        look="the objects that the docstring names",
    )
    policy, search = calls["policies"][-1], calls["searches"][-1]
    expect(
        len(calls["searches"]) == 1,
        expected="one tune() for all trials: a second one would not know what was measured",
        seen=f"{len(calls['searches'])} calls",
        look="task.tune(options, policy)",
    )
    expect(
        isinstance(search["search_policy"], auto_scheduler.SketchPolicy)
        and isinstance(policy["program_cost_model"], auto_scheduler.XGBModel),
        expected="a search by the policy that was made, whose cost model is an XGBModel",
        seen=f"a search by {type(search['search_policy']).__name__}, whose model is a "
        f"{type(policy['program_cost_model']).__name__}",
        look="task.tune(options, policy), and the second argument of SketchPolicy",
    )
    model, size = policy["program_cost_model"], trials_per_round(trials, 1)
    expect(
        model.num_warmup_sample <= size,  # of just a round, it is asked from the third on
        expected=f"a model that is used after the first round, {number_of(size, 'trial')}",
        seen=f"num_warmup_sample={model.num_warmup_sample}",
        look="num_warmup_sample= of XGBModel: by default, the search ignores the model until it "
        "has seen more than 100 trials",
    )
    _expect_small_population(policy["params"], "params=fast_search_params() of SketchPolicy")
    _expect_options(calls["options"][-1], trials, 1)
