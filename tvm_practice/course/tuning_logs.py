"""Tasks to tune, and logs in which one record is the fastest: what the tuners' users are graded on.

A log has records that a careless reader takes for the best: of failed trials, which are at its ends
as well, and of another task.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tvm_practice.course.expect import expect, fresh_rng
from tvm_practice.course.products import matmul_tensors
from tvm_practice.engines import host_target
from tvm_practice.viz.loop_nest import Node, classic_statement, format_nest, loop_nest


def _template(m: int, n: int, k: int) -> tuple[Any, list[Any]]:
    """A matmul tiled by two knobs."""
    from tvm import autotvm, te

    tensors = matmul_tensors(m, n, k)
    C = tensors[-1]
    cfg = autotvm.get_config()
    cfg.define_knob("tile_i", [2, 4, 8, 16])
    cfg.define_knob("tile_j", [8, 16, 32])
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    i_outer, i_inner = schedule[C].split(i, factor=cfg["tile_i"].val)
    j_outer, j_inner = schedule[C].split(j, factor=cfg["tile_j"].val)
    schedule[C].reorder(i_outer, j_outer, C.op.reduce_axis[0], i_inner, j_inner)
    schedule[C].vectorize(j_inner)
    return schedule, tensors


def autotvm_task(arguments: Sequence[int], name: str = "graded.template") -> Any:
    """The matmul (m, n, k) in a template of two knobs, which is registered under `name`."""
    from tvm_practice.tvm_export.tuners.autotvm import make_task

    return make_task(_template, arguments, host_target(), name=name)


def ansor_task(arguments: Sequence[int], name: str = "graded.matmul") -> Any:
    """The matmul (m, n, k), a workload registered under `name`."""
    from tvm_practice.tvm_export.tuners.ansor import make_task

    return make_task(matmul_tensors, arguments, host_target(), name=name)


def classic_nest(schedule: Any) -> list[Node]:
    """The loops of a te.Schedule."""
    return loop_nest(classic_statement(schedule))


class Records(NamedTuple):
    """The valid records of a log: what each schedule looks like, and the seconds it took."""

    nests: list[str]
    seconds: list[float]

    @property
    def best(self) -> int:
        return self.seconds.index(min(self.seconds))

    def named(self, nest: str) -> str:
        """In words, which of the slower records a schedule with this nest is of."""
        last = len(self.nests) - 1
        names = {0: "the first of the log", last: "the last of the log"}
        for index, (each, seconds) in enumerate(zip(*self, strict=True)):
            if each == nest and index != self.best:
                where = names.get(index, f"number {index + 1} of the log")
                return f"the record of {seconds * 1e3:.5g} ms, {where}"
        return "a schedule that is none of the log's records"


def expect_best(nest: list[Node], records: Records, look: str) -> None:
    """The nest is that of the fastest record."""
    text = format_nest(nest)
    expect(
        text == records.nests[records.best],
        expected=f"the schedule of the fastest valid record, {min(records.seconds) * 1e3:.5g} ms",
        seen=records.named(text),
        look=look,
    )


def draw_seconds(count: int) -> list[float]:
    """Different times, of which the first and the last are not the least.

    Those around the least are larger by less than a microsecond.
    """
    rng = fresh_rng()
    seconds = [float(each) for each in 0.002 + 0.003 * rng.permutation(count) / count]
    least = int(rng.integers(1, count - 1))
    seconds[least - 1 : least + 2] = 0.0010004, 0.001, 0.0010003
    return seconds


def _runs(costs: Sequence[float]) -> list[tuple[float, ...]]:
    """Runs of each mean: another is the best by the least, median or largest run, by their sum or
    geometric mean, without the first run, or by the first three or five.
    """
    best, *rest = sorted(costs)
    runs: dict[float, tuple[float, ...]] = {
        cost: (0.1 * best, 0.1 * best, 3 * cost - 0.2 * best) for cost in rest
    }
    if rest:
        runs[rest[0]] = (rest[0],)
    if rest[1:]:
        runs[rest[1]] = runs[rest[1]][::-1]
    short, long = 0.4 * best, 2.2 * best
    runs[best] = (short, long, long, short, short, long, *[short] * 3)
    return [runs[cost] for cost in costs]


def instantiated(task: Any, index: int) -> list[Node]:
    """The loops of an AutoTVM task's configuration."""
    with task.target:
        schedule, _ = task.instantiate(task.config_space.get(index))
    return classic_nest(schedule)


def autotvm_log(task: Any, log: Path, costs: list[float], *, seed: int | None = None) -> Records:
    """Write records of random configurations; `seed` picks the same ones each time."""
    from tvm import autotvm

    rng = fresh_rng() if seed is None else np.random.default_rng(seed)
    m, n, k = task.args
    space = len(task.config_space)
    *picked, failed = (int(each) for each in rng.choice(space, len(costs) + 1, replace=False))
    others = [
        autotvm_task((m + 1, n, k)),
        autotvm_task((m, n, k + 1)),
        autotvm_task((m, n, k), name="graded.another_template"),
    ]
    if not m == n == k:  # the same numbers in another order
        others.append(autotvm_task((n, k, m)))
    results = [(task, index, runs, 0) for index, runs in zip(picked, _runs(costs), strict=True)]
    middle = len(results) // 2
    wrong = (task, failed, (1e-5,), 4)
    results[middle:middle] = [*((other, failed, (1e-5,), 0) for other in others), wrong]
    results = [wrong, *results, wrong]
    with log.open("a") as file:
        for of, index, seconds, error in results:
            measured = autotvm.MeasureInput(of.target, of, of.config_space.get(index))
            result = autotvm.MeasureResult(seconds, error, 0.1, 1.0)
            file.write(autotvm.record.encode(measured, result) + "\n")
    return Records([format_nest(instantiated(task, index)) for index in picked], costs)


def ansor_log(task: Any, log: Path, costs: list[float]) -> Records:
    """Write records of sampled schedules."""
    from tvm import auto_scheduler

    few = {"evolutionary_search_population": 16, "sample_init_min_population": 8}
    nests: list[str] = []
    states: list[Any] = []
    policy = auto_scheduler.SketchPolicy(task, params=dict(few), verbose=0)
    while len(states) < len(costs) + 1:  # samples can be equal
        for state in policy.sample_initial_population():
            schedule, _ = task.compute_dag.apply_steps_from_state(state, task.layout_rewrite_option)
            nest = format_nest(classic_nest(schedule))
            if nest not in nests:
                nests.append(nest)
                states.append(state)
    failed = states[len(costs)]
    m, n, k = json.loads(task.workload_key)[1:]
    others = [ansor_task((m + 1, n, k)), ansor_task((m, n, k), name="graded.another_matmul")]
    if not m == n == k:  # the same numbers in another order
        others.append(ansor_task((n, k, m)))
    results = [(task, state, runs, 0) for state, runs in zip(states, _runs(costs), strict=False)]
    middle = len(results) // 2
    wrong = (task, failed, (1e-5,), 4)
    results.insert(middle, wrong)
    results = [wrong, *results, wrong]
    for other in others:
        other_policy = auto_scheduler.SketchPolicy(other, params=few, verbose=0)
        results.insert(middle, (other, other_policy.sample_initial_population()[0], (1e-5,), 0))
    auto_scheduler.save_records(
        str(log),
        [auto_scheduler.MeasureInput(of, state) for of, state, _, _ in results],
        [
            auto_scheduler.MeasureResult(list(runs), error, "", 0.1, 1.0)
            for _, _, runs, error in results
        ],
    )
    return Records(nests[: len(costs)], costs)


def committed(
    database: Any, function: Any, target: Any, rows: Sequence[int], costs: list[float]
) -> Records:
    """Commit a record to MetaSchedule's database for each number of rows, with these times."""
    import tvm
    from tvm.s_tir import meta_schedule as ms

    module = tvm.IRModule({"main": function})
    workload = database.commit_workload(module)
    nests = []
    for factor, cost in zip(rows, costs, strict=True):
        schedule = tvm.s_tir.Schedule(module)
        i, _, _ = schedule.get_loops(schedule.get_sblock("C"))
        schedule.split(i, [None, factor])
        database.commit_tuning_record(
            ms.database.TuningRecord(schedule.trace, workload, [cost], target, None)
        )
        nests.append(format_nest(loop_nest(schedule.mod["main"])))
    return Records(nests, costs)
