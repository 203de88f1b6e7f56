"""Phase 5's exercises and how they are graded: the log of a short search, the record applied."""

import contextlib
import inspect
import itertools
import json
import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_type,
    fail,
    path_to,
    show,
    varied,
)
from tvm_practice.course.lowering import build_module, build_schedule
from tvm_practice.course.nests import accumulation, expect_loops
from tvm_practice.course.products import expect_product, matmul_function
from tvm_practice.course.tuning_logs import (
    Records,
    ansor_log,
    ansor_task,
    autotvm_log,
    autotvm_task,
    classic_nest,
    committed,
    draw_seconds,
    expect_best,
    instantiated,
)
from tvm_practice.engines import CLASSIC, CURRENT, host_target
from tvm_practice.tvm_export.errors import NothingMeasured
from tvm_practice.viz.loop_nest import Loop, Node, format_nest, loop_nest, paths

PHASE = Phase(
    number=5,
    module="auto_tune",
    title="auto-tuning",
    lanes=(CURRENT, CLASSIC),
    builds_on=(
        "te_basics.matmul",
        "manual_schedule.tile",
        "manual_schedule.vectorize",
        "manual_schedule.parallelize",
        "manual_schedule.packed_matmul",
        "manual_schedule.tile_classic",
    ),
    question="Why does Ansor often beat hand-written schedules? What is the trade-off?",
)


def _expect_schedule(returned: Any, name: str) -> tuple[Any, list[Any]]:
    """`returned` is (te.Schedule, tensors)."""
    from tvm import te

    # A pair may be TVM's array as well, which is what apply_steps_from_state returns.
    pair = list(returned) if hasattr(returned, "__len__") and len(returned) == 2 else []
    expect(
        bool(pair) and isinstance(pair[0], te.schedule.Schedule),
        expected=f"{name} returns (schedule, tensors)",
        seen=f"{type(returned).__name__}"
        + (f" of length {len(returned)}" if hasattr(returned, "__len__") else ""),
        look="the return statement",
    )
    return pair[0], list(pair[1])


@contextmanager
def _new_log() -> Iterator[Path]:
    """A file that is not there yet, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "log.json"


def _expect_records(log: Path, look: str) -> None:
    expect(
        log.exists() and bool(log.read_text().strip()),
        expected=f"records in {log.name}",
        seen="no such file" if not log.exists() else "an empty file",
        look=look,
    )


def _expect_trials(trials: Sequence[Any], asked: int, look: str) -> None:
    """The log has as many trials as were asked for, and none failed."""
    from tvm_practice.tvm_export.tuners import count_errors

    errors = count_errors(trials)
    expect(
        not errors,
        expected="trials that could be built and run",
        seen=f"{errors.total()} of {len(trials)} failed: {', '.join(errors)}",
        look="the builder and the runner: those of `measuring` work, TVM's defaults may not",
    )
    expect(
        len(trials) == asked,
        expected=f"{asked} trials in the log, as many as asked for",
        seen=f"{len(trials)}",
        look=look,
    )


# AutoTVM.


def _mine(matmul_template: Callable[..., Any], sizes: Sequence[int]) -> Any:
    """The task of the learner's template."""
    from tvm_practice.tvm_export.tuners.autotvm import make_task

    return make_task(matmul_template, sizes, host_target(), name="graded.mine")


def _demonstrate_template(matmul_template: Callable[..., Any]) -> str:
    task = _mine(matmul_template, (64, 64, 64))
    config = task.config_space.get(len(task.config_space) * 2 // 3)
    with task.target:
        schedule, _ = task.instantiate(config)
    knobs = ", ".join(f"{name} = {value}" for name, _, value in config.to_json_dict()["entity"])
    return f"# {knobs}\n{format_nest(classic_nest(schedule))}"


@PHASE.exercise(
    "matmul_template",
    engine=CLASSIC,
    title="a schedule with knobs for AutoTVM",
    hints=(
        "It is phase 2's tile_classic, but the numbers come from the configuration of the "
        "trial. Which numbers would you otherwise guess?",
        "cfg = autotvm.get_config(); cfg.define_knob('rows', [4, 8, 16]), or cfg.define_split. "
        "A knob's value is cfg['rows'].val, and that is the factor of the split: "
        "schedule[C].split(i, factor=cfg['rows'].val). With define_split it is "
        "cfg['tile_i'].apply(schedule, C, i), which returns the loops.",
        "split i and j by knobs, reorder to (i_outer, j_outer, k, i_inner, j_inner), vectorize "
        "j_inner, parallel(fuse(i_outer, j_outer)). Faster: tile = schedule.cache_write(C, "
        "'local'), compute_at the fused loop, its k split by a knob and unrolled.",
    ),
    looks_like="""
        # rows = 8, columns = 16, unroll_k = 2, columns_first = 1
        for j.outer.i.outer.fused in parallel(32):
            for i.c.init in unrolled(8):
                for j.c.init in vectorized(16):
                    C.local: C.local <- constant
            for k.outer in serial(32):
                for k.inner in unrolled(2):
                    for i.c in unrolled(8):
                        for j.c in vectorized(16):
                            C.local: C.local <- A, B, C.local
            for i.inner in serial(8):
                for j.inner in vectorized(16):
                    C: C <- C.local
    """,
    demonstrate=_demonstrate_template,
)
def check_matmul_template(matmul_template: Callable[..., Any]) -> None:
    from tvm import autotvm

    m, n, k = draw_distinct(3, range(65, 120))
    with host_target(), autotvm.task.ApplyConfig(autotvm.task.ConfigSpace()):
        _, tensors = _expect_schedule(matmul_template(m, n, k), "matmul_template")
    _expect_matmul_tensors(tensors, m, n, k)
    task = _mine(matmul_template, (m, n, k))
    space = len(task.config_space)
    expect(
        space > 1,
        expected="knobs, each with several values: a space of many configurations",
        seen=f"a space of {space}",
        look="cfg.define_knob or cfg.define_split on cfg = autotvm.get_config()",
    )
    whole = _mine(matmul_template, (1024, 1024, 1024))
    _expect_knobs(whole)
    _expect_schedules_apart(whole)
    for sizes in varied(m, n, k):
        _expect_template_of(matmul_template, sizes)
    nests = [instantiated(task, index) for index in draw_distinct(min(10, space), range(space))]
    _expect_different(
        nests,
        "loops that differ from configuration to configuration",
        "whether the splits use cfg[...].val (or .apply), not numbers of their own",
    )
    _expect_vectorized_and_parallel(nests)
    _expect_always(task)
    m, n, k = draw_distinct(3, [13, 17, 19, 23, 29, 31, 37, 41])
    odd = _mine(matmul_template, (m, n, k))
    _expect_always_vectors(odd, _mine(matmul_template, (256, 256, 256)))
    space = len(odd.config_space)
    for index in {0, space - 1, *draw_distinct(1, range(space))}:
        config = odd.config_space.get(index)
        with odd.target:
            function = build_schedule(*odd.instantiate(config))
        expect_product(
            function,
            (m, k),
            (k, n),
            what=f"C with {config}",
            look="the formula, and that no loop over k is parallel",
        )


def _expect_matmul_tensors(tensors: Sequence[Any], m: int, n: int, k: int) -> None:
    """They are A, B and C, of their shapes and in float32."""
    for tensor, shape, name in zip(tensors, ((m, k), (k, n), (m, n)), "ABC", strict=False):
        seen = tuple(int(extent) for extent in tensor.shape)
        expect(
            seen == shape,
            expected=f"tensors [A, B, C], {name} of shape {shape}",
            seen=f"shape {seen}",
            look=f"where {name} is declared, and the list that is returned",
        )
        expect(
            str(tensor.dtype) == "float32",
            expected=f"{name} of type float32",
            seen=str(tensor.dtype),
            look=f"dtype= where {name} is declared",
        )
    expect(
        len(tensors) == 3,
        expected="the tensors [A, B, C]",
        seen=f"{len(tensors)} tensors",
        look="the return statement",
    )


def _expect_knobs(task: Any) -> None:
    """There are knobs for rows and columns at least, and each value of each has its own loops."""
    knobs = [(name, len(each)) for name, each in task.config_space.space_map.items()]
    expect(
        len([size for _, size in knobs if size > 1]) > 1,
        expected="a knob for each number that you would otherwise guess: at least rows and columns",
        seen=f"knobs {', '.join(name for name, _ in knobs)}",
        look="cfg.define_knob, once for each factor",
    )
    step = 1
    for name, size in knobs:
        # The other knobs at their first values, at their last, and somewhere else.
        rest = len(task.config_space) // 2 // (step * size) * step * size
        last = len(task.config_space) - 1 - step * (size - 1)
        values = sorted(draw_distinct(min(size, 12), range(size)))
        found = [
            [format_nest(instantiated(task, base + step * value)) for value in values]
            for base in ((rest, 0, last) if size > 1 else ())
        ]
        # Two values may be alike with some values of the other knobs, and not with all.
        alike = {
            (one, other)
            for one, other in itertools.combinations(range(len(values)), 2)
            if all(nests[one] == nests[other] for nests in found)
        }
        expect(
            not alike,
            expected=f"loops that differ with each value of the knob {name}",
            seen=f"the same loops for numbers {' and '.join(map(str, min(alike, default=())))} of "
            f"its {size} values",
            look=f"whether a split uses cfg[{name!r}].val unchanged",
        )
        step *= size


def _expect_schedules_apart(task: Any) -> None:
    """No two configurations that differ in two knobs at most are the same schedule.

    Schedules are compared before lowering, which drops a loop of one iteration.
    """
    import tvm

    knobs = list(task.config_space.space_map.items())
    sizes = [len(each) for _, each in knobs]
    steps = [math.prod(sizes[:at]) for at in range(len(sizes))]
    last = len(task.config_space) - 1
    for one, other in itertools.combinations(range(len(knobs)), 2):
        values = [draw_distinct(min(sizes[at], 6), range(sizes[at])) for at in (one, other)]
        # The other knobs are at their last values.
        base = last - sum((sizes[at] - 1) * steps[at] for at in (one, other))
        found: dict[str, Any] = {}
        for chosen in itertools.product(*values):
            index = base + steps[one] * chosen[0] + steps[other] * chosen[1]
            config = task.config_space.get(index)
            with task.target:
                schedule, _ = task.instantiate(config)
            same = found.setdefault(tvm.ir.save_json(schedule), config)
            expect(
                same is config,
                expected="a schedule of its own for each configuration",
                seen=f"the same schedule for {same} and {config}",
                look=f"an `if`, or a value computed from {knobs[one][0]} and {knobs[other][0]}: "
                "where one knob has some value, the other one changes nothing",
            )


def _expect_template_of(matmul_template: Callable[..., Any], sizes: Sequence[int]) -> None:
    """Whatever the sizes are, the sum is over all of k, and tiles are shared among the threads."""
    m, n, k = sizes
    task = _mine(matmul_template, sizes)
    last = len(task.config_space) - 1
    _, tensors = task.instantiate(task.config_space.get(last))
    shapes = [tuple(map(int, each.shape)) for each in tensors]
    expect(
        shapes == [(m, k), (k, n), (m, n)],
        expected=f"[A, B, C] of shapes {(m, k)}, {(k, n)} and {(m, n)}",
        seen=", ".join(map(str, shapes)),
        look="where they are declared",
    )
    steps, pending = 1, [tensors[-1].op]
    while pending:
        op = pending.pop()
        steps *= math.prod(int(each.dom.extent) for each in getattr(op, "reduce_axis", ()))
        pending += [each.op for each in op.input_tensors]
    expect(
        steps == k,
        expected=f"a sum over all {k} steps of {m}x{n}x{k}",
        seen=f"over {steps}",
        look="te.reduce_axis((0, k)), for any k",
    )
    whole = _mine(matmul_template, (1024, 1024, 1024))
    if len(whole.config_space) != last + 1:  # factors of the sizes: other ones
        return
    for index in (0, last):
        missing = _run_as(whole, index) - _run_as(task, index)
        expect(
            not missing,
            expected=f"a {' and a '.join(sorted(missing))} loop for {m}x{n}x{k} as well, with "
            f"{task.config_space.get(index)}",
            seen="none; of 1024 x 1024 x 1024 there is one",
            look="a condition around parallel or vectorize",
        )


def _run_as(task: Any, index: int) -> set[str]:
    """In which of these ways loops are to run, also if they have one iteration."""
    from tvm import tir

    names = {
        int(tir.IterVar.Parallelized): "parallel",
        int(tir.IterVar.Vectorized): "vectorized",
    }
    with task.target:
        schedule, _ = task.instantiate(task.config_space.get(index))
    kinds = {int(each.iter_type) for stage in schedule.stages for each in _attributes(stage)}
    return {names[kind] for kind in kinds & names.keys()}


def _attributes(stage: Any) -> list[Any]:
    return [each for _, each in stage.iter_var_attrs.items()]


def _runs(nest: list[Node]) -> set[str]:
    """Which of these ways the loops of a nest run."""
    return {loop.kind for loop in _all_loops(nest)} & {"parallel", "vectorized"}


def _expect_always(task: Any) -> None:
    """No knob switches threads or vectors off, or shares the steps of a sum among threads."""
    _, tensors = task.instantiate(task.config_space.get(0))
    steps = {str(axis.var.name) for axis in tensors[-1].op.reduce_axis}
    steps -= {str(axis.var.name) for axis in tensors[-1].op.axis}
    found: dict[tuple[Any, ...], set[str]] = {}
    space, step = len(task.config_space), 1
    sizes = [len(each) for each in task.config_space.space_map.values()]
    indices = {0, space - 1}
    for size in sizes:
        indices |= {value * step for value in range(size)}
        indices |= {space - 1 - value * step for value in range(size)}
        step *= size
    for index in sorted(indices):
        nest = instantiated(task, index)
        shared = [loop for loop in accumulation(nest)[0] if loop.kind == "parallel"]
        expect_loops(
            not any(steps & set(loop.name.split(".")) for loop in shared),
            shared,
            f"no steps of the sum among the threads, with {task.config_space.get(index)} as well",
            "a knob that chooses the parallel loop: the steps of k add to the same elements of C",
        )
        loops = tuple((loop.name, loop.extent) for loop in accumulation(nest)[0])
        runs = found.setdefault(loops, _runs(nest))
        missing = sorted(runs ^ _runs(nest))
        expect(
            not missing,
            expected=f"a {' and '.join(missing)} loop in every configuration",
            seen=f"the same loops with and without it: {task.config_space.get(index)}",
            look="a knob, or a condition, that leaves parallel or vectorize out",
        )


def _expect_always_vectors(task: Any, whole: Any) -> None:
    """Vectors do not depend on whether a tile divides the sizes, as all do those of `whole`."""
    space = len(task.config_space)
    if len(whole.config_space) != space:  # factors of the sizes: other ones
        return
    for index in draw_distinct(min(10, space), range(space)):
        nest = instantiated(task, index)
        expect(
            "vectorized" in _runs(nest) or "vectorized" not in _runs(instantiated(whole, index)),
            expected=f"a vectorized loop in every configuration, with {task.args} as well",
            seen=f"none with {task.config_space.get(index)}; of 256 x 256 x 256 there is one",
            look="a condition around vectorize: TVM guards the lanes where a tile does not divide",
        )


def _expect_different(nests: Sequence[list[Node]], expected: str, look: str) -> None:
    """The nests are not all the same."""
    expect(
        len({format_nest(nest) for nest in nests}) > 1,
        expected=expected,
        seen=f"the same loops in all of {len(nests)}",
        look=look,
    )


def _all_loops(nest: list[Node]) -> list[Loop]:
    return [loop for loops, _ in paths(nest) for loop in loops]


def _expect_vectorized_and_parallel(nests: Sequence[list[Node]]) -> None:
    """Where the sum adds up, the innermost loop is vectorized and the outermost parallel."""
    sums = [accumulation(nest)[0] for nest in nests]
    for loops, nest in zip(sums, nests, strict=True):
        kinds = {loop.kind for loop in _all_loops(nest)}  # a loop of one iteration may be dropped
        expect_loops(
            "vectorized" not in kinds or loops[-1].kind == "vectorized",
            loops,
            "the innermost loop is vectorized, that of the sum and not of a copy alone",
            "vectorize of the loop over the columns of a tile, last in reorder",
        )
        expect_loops(
            "parallel" not in kinds or loops[0].kind == "parallel",
            loops,
            "the tiles are shared among the threads: the outermost loop is parallel",
            "parallel of the fused outer tile loops",
        )
    for at, kind, expected, look in (
        (-1, "vectorized", "the innermost loop is vectorized, of two lanes or more",
         "vectorize of the loop over the columns of a tile, last in reorder"),
        (0, "parallel", "the tiles are shared among the threads",
         "parallel of the fused outer tile loops"),
    ):  # fmt: skip
        found = [loops[at] for loops in sums if loops and loops[at].kind == kind]
        expect_loops(any(int(each.extent) > 1 for each in found), sums[-1], expected, look)


def _demonstrate_tune_autotvm(tune_autotvm: Callable[..., None]) -> str:
    task = autotvm_task((32, 32, 32))
    with _new_log() as log:
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
    with _new_log() as log:
        kept = autotvm.record.encode(
            autotvm.MeasureInput(other.target, other, other.config_space.get(0)),
            autotvm.MeasureResult((0.001,), 0, 0.1, 1.0),
        )
        log.write_text(kept + "\n")
        tuner = autotvm.tuner.XGBTuner
        with _calls(tuner, "__init__") as made, _calls(tuner, "tune") as searches:
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
        _expect_trials(history(log)[1:], trials, "n_trial= of tune()")
        records = [json.loads(line) for line in lines[1:]]
    _expect_xgb_tuner(made, searches, trials)
    for trials in (1, 2, 33, 1000):
        _expect_search_of(tune_autotvm, task, trials)
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


Called = list[dict[str, Any]]


def _expect_search_of(tune_autotvm: Callable[..., None], task: Any, trials: int) -> None:
    """A search for so many trials would be made as for a few; nothing is measured."""
    from tvm import autotvm

    tuner = autotvm.tuner.XGBTuner
    with (
        _new_log() as log,
        _calls(tuner, "__init__") as made,
        _calls(tuner, "tune", instead=lambda *_, **__: None) as searches,
        contextlib.suppress(NothingMeasured),
    ):
        tune_autotvm(task, trials=trials, log=str(log))
    _expect_xgb_tuner(made, searches, trials)
    seen = searches[-1].get("n_trial")
    expect(
        seen == trials and len(searches) == 1,
        expected=f"one tune() with n_trial={trials}",
        seen=f"{len(searches)} with n_trial={seen}",
        look="n_trial=trials of tune(), however many there are",
    )


@contextmanager
def _calls(owner: Any, name: str, *, instead: Any = None) -> Iterator[Called]:
    """The arguments of each call of `owner`'s function `name`, by their names.

    With `instead`, that is what a call does.
    """
    function, seen = getattr(owner, name), []
    signature = inspect.signature(function)

    def call(*arguments: Any, **options: Any) -> Any:
        bound = signature.bind(*arguments, **options)
        bound.apply_defaults()
        seen.append({**bound.arguments, **bound.arguments.get("kwargs", {})})
        return (instead or function)(*arguments, **options)

    with mock.patch.object(owner, name, call):
        yield seen


def _expect_xgb_tuner(made: Called, searches: Called, trials: int) -> None:
    """A tuner with a cost model that learns in time, and tells of its progress."""
    from tvm_practice.tvm_export.tuners.budget import plan_size

    expect(
        bool(made) and bool(searches),
        expected="a search guided by a cost model",
        seen="no autotvm.tuner.XGBTuner was made, or its tune() was not called",
        look="the class of the tuner: RandomTuner, GATuner and GridSearchTuner have no model",
    )
    size = made[-1].get("plan_size")
    expect(
        size is not None and size <= plan_size(trials),
        expected=f"a tuner that plans after {plan_size(trials)} trials, budget.plan_size(trials)",
        seen=f"plan_size={size}",
        look="plan_size= of XGBTuner: by default it learns nothing before 64 trials",
    )
    early = searches[-1].get("early_stopping")
    expect(
        early is None or early >= trials,
        expected=f"{trials} trials, whatever their times",
        seen=f"a search that ends after {early} trials without a faster one",
        look="early_stopping= of tune()",
    )
    _expect_progress(searches[-1].get("callbacks"), "callbacks= of tune()")


def _expect_progress(callbacks: Any, look: str) -> None:
    """There is a callback beside the one that writes the records."""
    count = len(list(callbacks or ()))
    expect(
        count > 1,
        expected="a callback that writes the records, and one that shows progress",
        seen=f"{count} callback{'s' * (count != 1)}",
        look=f"{look}: measure.callback is the one that shows progress",
    )


def _demonstrate_apply_autotvm(apply_autotvm: Callable[..., Any]) -> str:
    task = autotvm_task((64, 64, 64))
    with _new_log() as log:
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
    _check_apply(
        apply_autotvm,
        autotvm_task,
        autotvm_log,
        best="autotvm.apply_history_best(log) picks the record; query it with the task's workload",
        refused="raise ValueError if config.is_fallback",
        error=ValueError,
    )


def _check_apply(
    apply: Callable[..., Any],
    make_task: Callable[..., Any],
    write_log: Callable[..., Records],
    *,
    best: str,
    refused: str,
    error: type[Exception],
) -> None:
    """`apply` takes the best record of a log, and none of another task's."""
    m, n, k = draw_distinct(3, range(33, 64))
    task = make_task((m, n, k))
    with _new_log() as log:
        records = write_log(task, log, draw_seconds(5))
        schedule, tensors = _expect_schedule(apply(task, str(log)), apply.__name__)
        expect_best(classic_nest(schedule), records, best)
        expect_product(
            build_schedule(schedule, tensors),
            (m, k),
            (k, n),
            look="the tensors that are returned",
        )
        _expect_refused(apply, make_task((m + 7, n, k)), log, refused, error)
        # That of a trial that failed is none.
        failed = [line for line in log.read_text().splitlines() if _failed(json.loads(line))]
        log.write_text("\n".join([*failed, ""]))
        _expect_refused(apply, task, log, refused, error)


def _failed(record: dict[str, Any]) -> bool:
    """Whether a line of a log is of a trial that failed, in AutoTVM's form or in Ansor's."""
    return bool((record["result"] if "result" in record else record["r"])[1])


def _expect_refused(
    apply: Callable[..., Any], task: Any, log: Path, look: str, error: type[Exception]
) -> None:
    """`apply` raises for a task that the log has no valid record of."""
    before = log.read_text()
    try:
        apply(task, str(log))
    except error:
        expect(
            log.read_text() == before,
            expected="a log that is only read",
            seen="it was changed",
            look="the statement that writes to the log",
        )
        return
    except (ValueError, RuntimeError, AttributeError, TypeError, KeyError) as other:
        raise fail(
            f"{error.__name__} when the log has no valid record of the task",
            f"{type(other).__name__}: {other}"[:200],
            f"the docstring's Raises; {look}",
        ) from other
    raise fail(
        "an error when the log has no valid record of the task",
        "a schedule, which was never measured",
        look,
    )


# Ansor.


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
        "Below `@auto_scheduler.register_workload(name, override=True)` stands a function of m, n "
        "and k: phase 1's matmul, of its own arguments, which returns [A, B, C].",
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
    number, large = draw_distinct(2, range(1_000, 3_000))
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
            _expect_task(search_task(name, *sizes, target), name, sizes, target)


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
        atol=2e-3,  # of thousands of float32
    )


def _expect_declared(tensors: Sequence[Any], sizes: Sequence[int]) -> None:
    m, n, k = sizes
    seen = [f"{each.dtype} {tuple(map(int, each.shape))}" for each in tensors]
    wanted = [f"float32 {shape}" for shape in ((m, k), (k, n), (m, n))]
    expect(
        seen == wanted,
        expected=f"the workload of {m}, {n}, {k} returns [A, B, C]: {', '.join(wanted)}",
        seen=", ".join(seen),
        look="the registered function: its own m, n and k, the order of the tensors, their dtype",
    )


def _demonstrate_tune_ansor(tune_ansor: Callable[..., None]) -> str:
    task = ansor_task((32, 32, 32))
    with _new_log() as log:
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
    trials = 4
    with _new_log() as log:
        with _ansor_calls() as calls:
            tune_ansor(tasks, [1.0, 3.0], trials=trials, log=str(log))
        _expect_records(log, "measure_callbacks=[auto_scheduler.RecordToFile(log), ...]")
        _expect_trials(
            history(log),
            trials,
            "num_measure_trials= and num_measures_per_round= of TuningOptions",
        )
        text = log.read_text()
        records = [json.loads(line)["i"][0] for line in text.splitlines()]
        _expect_ansor(calls, trials)
        # What there is to go on from, is gone on from; the search itself need not be.
        with _ansor_calls(searching=False) as again, contextlib.suppress(NothingMeasured):
            tune_ansor(tasks, [1.0, 3.0], trials=trials, log=str(log))
        loaded = again["made"][-1].get("load_log_file") if again["made"] else None
        expect(
            loaded is not None and log.read_text().startswith(text),
            expected="a search that goes on from the log, if it exists",
            seen="its records were removed" if loaded else f"load_log_file={loaded}",
            look="load_log_file=log of TaskScheduler",
        )
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
    third = ansor_task((m, n, k + 1))
    for given, weights, trials in (
        (tasks[:1], [7.0], 1),
        ([*tasks, third], [0.5, 2.0, 5.0], 100),
        (tasks, [2, 9], 1000),
    ):
        with _new_log() as log:
            with _ansor_calls(searching=False) as calls, contextlib.suppress(NothingMeasured):
                tune_ansor(given, weights, trials=trials, log=str(log))
            _expect_ansor(calls, trials, weights)


@contextmanager
def _ansor_calls(*, searching: bool = True) -> Iterator[dict[str, Called]]:
    """How the scheduler is made, the options and the search; none goes on unless `searching`."""
    from tvm import auto_scheduler

    instead = None if searching else lambda *_, **__: None
    scheduler = auto_scheduler.TaskScheduler
    with (
        _few_candidates(),
        _calls(scheduler, "__init__") as made,
        _calls(scheduler, "tune", instead=instead) as searches,
        _calls(auto_scheduler.TuningOptions, "__init__") as options,
    ):
        yield {"made": made, "searches": searches, "options": options}


def _expect_ansor(
    calls: dict[str, Called], trials: int, given: Sequence[float] = (1.0, 3.0)
) -> None:
    expect(
        all(calls.values()),
        expected="an auto_scheduler.TaskScheduler, its tune(), and TuningOptions",
        seen=f"no {' and no '.join(name for name, each in calls.items() if not each)}",
        look="the objects that the docstring names",
    )
    made, search, options = (calls[each][-1] for each in ("made", "searches", "options"))
    weights = [float(each) for each in made.get("task_weights") or ()]
    expect(
        weights == list(given),
        expected=f"the tasks weighted as given, {list(given)}",
        seen=f"{weights or 'no weights'}",
        look="auto_scheduler.TaskScheduler(tasks, weights)",
    )
    strategy = made.get("strategy", "gradient")
    expect(
        strategy == "gradient",
        expected="trials divided by the tasks' gains: the strategy of TaskScheduler",
        seen=str(strategy),
        look="strategy= of TaskScheduler",
    )
    policy = search.get("search_policy", "default")
    expect(
        "random" not in str(policy),
        expected="a search that a cost model guides",
        seen=str(policy),
        look="search_policy= of tune()",
    )
    population = (search.get("search_policy_params") or {}).get("evolutionary_search_population")
    expect(
        population is not None and population <= 512,
        expected="a small search population",
        seen=f"{population or 'the default, 2048'}",
        look="search_policy_params=fast_search_params() of tune()",
    )
    _expect_options(options, trials, len(given))


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
        early is None or early >= trials,
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
    _expect_progress(options["measure_callbacks"], "measure_callbacks= of TuningOptions")


def _demonstrate_apply_ansor(apply_ansor: Callable[..., Any]) -> str:
    task = ansor_task((64, 64, 64))
    with _new_log() as log:
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
    _check_apply(
        apply_ansor,
        ansor_task,
        ansor_log,
        best="task.apply_best(log)",
        refused="task.apply_best(log) raises",
        error=RuntimeError,
    )


def _demonstrate_tune_task(tune_task: Callable[..., None]) -> str:
    task = ansor_task((32, 32, 32))
    with _new_log() as log, _few_candidates():
        tune_task(task, trials=2, log=str(log))
        first = json.loads(log.read_text().splitlines()[0])
        return f"{len(log.read_text().splitlines())} lines, each with {', '.join(first)}"


@PHASE.exercise(
    "tune_task",
    engine=CLASSIC,
    title="search one task by its own tune",
    hints=(
        "Three objects for one call: how it is measured, what chooses the next schedules, and the "
        "model that the latter asks. From how many trials on should the model be asked?",
        "auto_scheduler.XGBModel(num_warmup_sample=trials_per_round(trials, 1)); "
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
    with _new_log() as log:
        log = log.with_name("trials")  # of no suffix
        ansor_log(task, log, [0.001])
        before = log.read_text()
        with _task_calls() as calls:
            tune_task(task, trials=trials, log=str(log))
        expect(
            log.read_text().startswith(before),
            expected="records appended to the log",
            seen="the records that were in it are gone",
            look="auto_scheduler.RecordToFile(log) appends; do not delete the file before",
        )
        known = len(before.splitlines())
        records = [json.loads(line)["i"][0] for line in log.read_text().splitlines()[known:]]
        _expect_trials(
            history(log)[known:],
            trials,
            "num_measure_trials= of TuningOptions, and auto_scheduler.RecordToFile(log)",
        )
    _expect_task_search(calls, trials)
    for key, target in (each[:2] for each in records):
        expect(
            (key, target) == (task.workload_key, str(task.target)),
            expected=f"records of {task.workload_key} on {task.target}",
            seen=f"one of {key} on {target}",
            look="the task that the policy is made with, and whose tune() is called",
        )
    # 37 are no whole rounds; and a log may be that of the call before.
    with _new_log() as log:
        for trials in (1, 2, 33, 37, 1000):
            with (
                _task_calls(searching=False) as calls,
                contextlib.suppress(NothingMeasured),
            ):
                tune_task(task, trials=trials, log=str(log))
            _expect_task_search(calls, trials)


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
        _calls(auto_scheduler.XGBModel, "__init__") as models,
        _calls(auto_scheduler.SketchPolicy, "__init__") as policies,
        _calls(auto_scheduler.TuningOptions, "__init__") as options,
        _calls(auto_scheduler.SearchTask, "tune", instead=instead) as searches,
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
    warm, size = calls["models"][-1]["num_warmup_sample"], trials_per_round(trials, 1)
    expect(
        warm <= size,
        expected=f"a model that is asked after {size} trials, a round",
        seen=f"num_warmup_sample={warm}",
        look="num_warmup_sample= of XGBModel, without which it learns nothing before 100 trials",
    )
    population = (policy["params"] or {}).get("evolutionary_search_population")
    expect(
        population is not None and population <= 512,
        expected="a small search population",
        seen=f"{population or 'the default, 2048'}",
        look="params=fast_search_params() of SketchPolicy",
    )
    _expect_options(calls["options"][-1], trials, 1)


# MetaSchedule.


def _demonstrate_space(metaschedule_space: Callable[..., None]) -> str:
    import tvm

    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": matmul_function(64, 64, 64)}), seed=7)
    metaschedule_space(schedule)
    return format_nest(loop_nest(schedule.mod["main"]))


@PHASE.exercise(
    "metaschedule_space",
    engine=CURRENT,
    title="a design space for MetaSchedule",
    hints=(
        "It is phase 2's schedule with other numbers: each factor of a split is drawn, not "
        "written. Which loops should the search be free to split, and into how many?",
        "schedule.sample_perfect_tile(loop, n=2, max_innermost_factor=64) gives `n` factors for "
        "schedule.split(loop, factors). Split i and j by sampled factors, reorder, "
        "parallel(fuse(the outer loops)), and vectorize the innermost. More loops make a larger "
        "space: three factors for i and j, two for k.",
        "The search replays your calls with other samples, so the number of calls must not "
        "depend on them: pass preserve_unit_loops=True to compute_at and reverse_compute_at, or "
        "TVM drops loops of one iteration and get_loops returns fewer of them.",
    ),
    looks_like="""
        for i_0_j_0_fused in parallel(2):
            for i_1 in serial(16):
                for j_1 in serial(1):
                    for k_0 in serial(32):
                        for k_1 in unrolled(2):
                            for i_2 in unrolled(4):
                                for j_2 in vectorized(32):
                                    C: C_local <- A, B, C_local
                    for ax0 in serial(4):
                        for ax1 in vectorized(32):
                            C_local: C <- C_local
    """,
    demonstrate=_demonstrate_space,
)
def check_metaschedule_space(metaschedule_space: Callable[..., None]) -> None:
    import tvm

    m, n, k = draw_distinct(3, [24, 36, 40, 48, 56, 60, 64, 72])
    module = tvm.IRModule({"main": matmul_function(m, n, k)})
    schedule = tvm.s_tir.Schedule(module)
    metaschedule_space(schedule)
    kinds = [str(instruction.kind.name) for instruction in schedule.trace.insts]
    expect(
        any(kind.startswith("Sample") for kind in kinds),
        expected="numbers that the search chooses: sample_perfect_tile, sample_categorical",
        seen=f"only {', '.join(dict.fromkeys(kinds)) or 'no calls at all'}",
        look="the factors of the splits",
    )
    _expect_sampled_factors(schedule)
    _expect_choices(metaschedule_space, module)
    _expect_fused_tiles(schedule)
    nests = [loop_nest(each["main"]) for each in _sampled_modules(metaschedule_space, module)]
    _expect_different(
        nests,
        "loops that differ from sample to sample",
        "whether the splits use the sampled factors",
    )
    _expect_vectorized_and_parallel(nests)
    loops = [loop for nest in nests for loop in _all_loops(nest)]
    wrong = [loop for loop in loops if loop.name[0] == "k" and loop.kind in _AT_ONCE]
    expect_loops(
        not wrong,
        wrong,
        "no loop over k is parallel or vectorized: its iterations add to the same elements",
        "the loops that are fused and run in parallel",
    )
    for rows, columns, steps in ((m, n, k), (37, 41, 29)):
        odd = tvm.IRModule({"main": matmul_function(rows, columns, steps)})
        sampled = _sampled_modules(metaschedule_space, odd)[0]
        expect_product(
            build_module(sampled),
            (rows, steps),
            (steps, columns),
            look="the calls on the schedule",
        )


_AT_ONCE = ("parallel", "vectorized")


def _expect_sampled_factors(schedule: Any) -> None:
    """The splits of i, j and k take factors that were sampled."""
    fixed = [
        int(factor)
        for instruction in schedule.trace.insts
        if str(instruction.kind.name) == "Split"
        for factor in instruction.inputs[1:]
        if isinstance(getattr(factor, "value", factor), int)
    ]
    expect(
        not fixed,
        expected="factors of the splits that the search chooses",
        seen=f"{', '.join(map(str, fixed))}, whatever is sampled",
        look="schedule.sample_perfect_tile for each loop that is split",
    )
    sampled = [each for each in schedule.trace.insts if "SamplePerfectTile" in str(each.kind.name)]
    factors = {each.inputs[0]: list(each.outputs) for each in sampled}
    foreign = [
        str(split.inputs[0])
        for split in schedule.trace.insts
        if str(split.kind.name) == "Split"
        and not all(
            any(each.same_as(own) for own in factors.get(split.inputs[0], ()))
            for each in split.inputs[1:]
            if each is not None
        )
    ]
    expect(
        not foreign,
        expected="each loop split by the factors that sample_perfect_tile gives for it",
        seen=f"{len(foreign)} loop{'s' * (len(foreign) > 1)} split by others",
        look="schedule.split(loop, schedule.sample_perfect_tile(loop, …)): those of another loop, "
        "or of sample_categorical, need not divide it",
    )
    expect(
        len(sampled) > 1,
        expected="sampled factors for rows and for columns",
        seen=f"{len(sampled)} sample_perfect_tile",
        look="schedule.sample_perfect_tile of i and of j",
    )


def _expect_choices(metaschedule_space: Callable[..., None], module: Any) -> None:
    """No loop is cut in the same way each time."""
    import tvm

    decided: dict[int, set[str]] = {}
    for seed in range(1, 13):
        schedule = tvm.s_tir.Schedule(module, seed=seed)
        metaschedule_space(schedule)
        trace = schedule.trace
        sampled = [each for each in trace.insts if "SamplePerfectTile" in str(each.kind.name)]
        for at, each in enumerate(sampled):
            decided.setdefault(at, set()).add(str(trace.decisions[each]))
    same = [", ".join(each) for each in decided.values() if len(each) == 1]
    expect(
        not same,
        expected="factors that differ from sample to sample",
        seen=f"{' and '.join(same)} in each of 12 samples",
        look="decision= and max_innermost_factor= of sample_perfect_tile",
    )


def _expect_fused_tiles(schedule: Any) -> None:
    """A loop that runs in parallel is one that was fused."""
    calls = schedule.trace.insts
    fused = [loop for each in calls if str(each.kind.name) == "Fuse" for loop in each.outputs]
    parallel = [each.inputs[0] for each in calls if str(each.kind.name) == "Parallel"]
    expect(
        not parallel or any(loop.same_as(each) for loop in parallel for each in fused),
        expected="the outer tile loops fused, and the fused loop parallel",
        seen=f"{len(fused)} calls of schedule.fuse, {len(parallel)} of schedule.parallel",
        look="schedule.parallel(schedule.fuse(i_outer, j_outer))",
    )


def _sampled_modules(space: Callable[..., None], module: Any) -> list[Any]:
    """Modules that the search would measure first, its own rewriting of them included."""
    from tvm_practice.tvm_export.tuners.metaschedule import make_context

    context = make_context(module, host_target(), space=space)
    try:
        context.pre_tuning(max_trials=8, num_trials_per_iter=8)
        candidates = context.generate_measure_candidates()
    except RuntimeError as error:
        raise fail(
            "calls that the search can replay with other samples",
            str(error).strip().splitlines()[-1],
            "get_loops after compute_at: without preserve_unit_loops=True their number depends "
            "on the samples",
        ) from error
    expect(
        bool(candidates),
        expected="a space with schedules that build",
        seen="none of the samples was valid",
        look="vectorize of long loops, and other steps that TVM's verifiers refuse",
    )
    return [candidate.sch.mod for candidate in candidates]


def _demonstrate_tune_metaschedule(tune_metaschedule: Callable[..., Any]) -> str:
    from tvm_practice.tvm_export.tuners.metaschedule import make_context
    from tvm_practice.tvm_export.tuners.search import Search, searching

    with searching(Search(), most=2):
        context = make_context(matmul_function(32, 32, 32), host_target())
    with tempfile.TemporaryDirectory() as folder:
        database = tune_metaschedule([context], [1.0], trials=2, work_dir=folder)
        files = sorted(path.name for path in Path(folder).glob("database_*.json"))
    return f"a database of {len(database)} records in {' and '.join(files)}"


@PHASE.exercise(
    "tune_metaschedule",
    engine=CURRENT,
    title="search with MetaSchedule",
    hints=(
        "One call, ms.tune.tune_tasks, takes tasks, weights, a folder, numbers of trials, a "
        "builder and a runner; it returns the database. The file's table has its options.",
        "tune_tasks(tasks=contexts, task_weights=weights, work_dir=work_dir, "
        "max_trials_global=trials, …). "
        "with measuring(contexts, trials, work_dir) as measure: gives builder=measure.builder and "
        "runner=measure.runner. num_trials_per_iter=trials_per_round(trials, len(contexts)).",
        "measure_callbacks=[*ms.measure_callback.MeasureCallback.create('default'), "
        "measure.callback]: the default ones write the database and train the model; "
        "cost_model=cost_model().",
    ),
    looks_like="a database of 2 records in database_tuning_record.json and database_workload.json",
    demonstrate=_demonstrate_tune_metaschedule,
)
def check_tune_metaschedule(tune_metaschedule: Callable[..., Any]) -> None:
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.tvm_export.tuners.metaschedule import history, make_context
    from tvm_practice.tvm_export.tuners.search import Search, searching

    target, trials = host_target(), 4
    m, n, k = draw_distinct(3, [16, 24, 32, 40, 48])
    shapes = [(m, n, k), (m + 8, k, n)]
    with searching(Search(), most=trials):  # a search for as few takes a fraction of the time
        contexts = [
            make_context(matmul_function(*shape), target, name=f"matmul_{index}")
            for index, shape in enumerate(shapes)
        ]
    with tempfile.TemporaryDirectory() as folder:
        with _calls(ms.tune, "tune_tasks") as calls:
            database = tune_metaschedule(contexts, [1.0, 3.0], trials=trials, work_dir=folder)
        expect_type(
            database,
            ms.database.Database,
            "tune_metaschedule returns the database",
            look="return the result of ms.tune.tune_tasks",
        )
        _expect_records(
            Path(folder) / "database_tuning_record.json",
            "work_dir=, and the default measure callbacks, which write the database",
        )
        _expect_trials(
            history(folder), trials, "max_trials_global= and num_trials_per_iter= of tune_tasks"
        )
        _expect_tune_tasks(calls, trials)
        _expect_search_goes_on(tune_metaschedule, contexts, database, folder)
    _expect_other_searches(tune_metaschedule, contexts, database)
    for context, shape in zip(contexts, shapes, strict=True):
        record = database.query_tuning_record(context.mod, target, "main")
        expect(
            record is not None,
            expected="records of both tasks, for their target",
            seen=f"none of the matmul {'x'.join(str(size) for size in shape)}",
            look="tasks=contexts: all of them, as they came",
        )


@contextmanager
def _not_searching(database: Any) -> Iterator[Called]:
    """Calls of MetaSchedule's search, none of which is carried out: they return `database`."""
    from tvm.s_tir import meta_schedule as ms

    with (
        _calls(ms.tune, "tune_tasks", instead=lambda *_, **__: database) as calls,
        contextlib.suppress(NothingMeasured),
    ):
        yield calls


def _expect_search_goes_on(
    tune_metaschedule: Callable[..., Any], contexts: Sequence[Any], database: Any, folder: str
) -> None:
    """A further call keeps the records of `folder` and searches on from them."""

    def records() -> dict[str, str]:
        return {path.name: path.read_text() for path in Path(folder).glob("database_*.json")}

    before = records()
    with _not_searching(database) as calls:
        tune_metaschedule(contexts, [1.0, 3.0], trials=4, work_dir=folder)
    kept = records() == before
    expect(
        kept and bool(calls) and str(calls[-1]["work_dir"]) == folder,
        expected="a later call that goes on from the database of work_dir",
        seen="another folder" if kept else "its files were changed before",
        look="work_dir= of tune_tasks, and statements that remove files",
    )


def _expect_other_searches(
    tune_metaschedule: Callable[..., Any], contexts: Sequence[Any], database: Any
) -> None:
    """Other tasks, weights and numbers of trials reach tune_tasks as they are."""
    for given, weights, many in (
        (contexts[:1], [7.0], 1),
        (contexts, [0.5, 2.0], 100),
        (contexts[::-1], [9.0, 2.0], 1000),
    ):
        with tempfile.TemporaryDirectory() as folder, _not_searching(database) as calls:
            tune_metaschedule(given, weights, trials=many, work_dir=folder)
        _expect_tune_tasks(calls, many, weights)
        expect(
            all(a is b or a.same_as(b) for a, b in zip(calls[-1]["tasks"], given, strict=True)),
            expected="the tasks as they came, in their order",
            seen="other ones",
            look="tasks=contexts",
        )


def _expect_tune_tasks(calls: Called, trials: int, given: Sequence[float] = (1.0, 3.0)) -> None:
    from tvm.s_tir import meta_schedule as ms

    from tvm_practice.tvm_export.tuners.budget import trials_per_round

    expect(
        bool(calls),
        expected="ms.tune.tune_tasks called",
        seen="it was not",
        look="from tvm.s_tir import meta_schedule as ms; ms.tune.tune_tasks(...)",
    )
    options = calls[-1]
    weights = [float(each) for each in options["task_weights"]]
    expect(
        weights == list(given) and len(options["tasks"]) == len(given),
        expected=f"the tasks weighted as given, {list(given)}, all {len(given)} of them",
        seen=f"{len(options['tasks'])} weighted {weights}",
        look="task_weights=weights",
    )
    expect(
        options["max_trials_global"] == trials,
        expected=f"max_trials_global={trials}, as many as asked for in total",
        seen=f"{options['max_trials_global']}",
        look="max_trials_global=trials of tune_tasks",
    )
    size = trials_per_round(trials, len(given))
    expect(
        options["num_trials_per_iter"] <= size and (options["num_trials_per_iter"] > 1 or size < 4),
        expected=f"rounds of {size}: trials_per_round(trials, len(contexts))",
        seen=f"{options['num_trials_per_iter']}",
        look="num_trials_per_iter=",
    )
    callbacks = [type(each).__name__ for each in options["measure_callbacks"] or ()]
    expect(
        "AddToDatabase" in callbacks[:-1] and not hasattr(ms.measure_callback, callbacks[-1]),
        expected="MetaSchedule's default measure callbacks, and after them one that shows progress",
        seen=", ".join(callbacks) or "none",
        look='measure_callbacks=[*MeasureCallback.create("default"), measure.callback]',
    )
    model = options["cost_model"]
    expect(
        "random" not in str(type(model) if not isinstance(model, str) else model).lower()
        and not isinstance(model, str),
        expected="a cost model set for few trials",
        seen=f"{model if isinstance(model, str) else type(model).__name__}",
        look="cost_model=cost_model() of tvm_practice.tvm_export.tuners.metaschedule",
    )


def _demonstrate_apply_metaschedule(apply_metaschedule: Callable[..., Any]) -> str:
    import tvm
    from tvm.s_tir import meta_schedule as ms

    function, target = matmul_function(64, 64, 64), host_target()
    database = ms.database.MemoryDatabase()
    committed(database, function, target, [4, 16, 8], [0.003, 0.001, 0.002])
    applied = apply_metaschedule(tvm.IRModule({"main": function}), database, target)
    return format_nest(loop_nest(applied["main"]))


@PHASE.exercise(
    "apply_metaschedule",
    engine=CURRENT,
    title="MetaSchedule's best records in a module",
    hints=(
        "There is a pass for it, which works on one matmul as on a model. It has no argument "
        "for the database: where does it find it?",
        "relax.transform.MetaScheduleApplyDatabase() takes the target and the database from the "
        "context: `with target, database:`.",
        "with target, database: return relax.transform.MetaScheduleApplyDatabase()(mod), after "
        "`from tvm import relax`.",
    ),
    looks_like="""
        for i_0 in serial(4):
            for i_1 in serial(16):
                for j in serial(64):
                    for k in serial(64):
                        C: C <- A, B, C
    """,
    demonstrate=_demonstrate_apply_metaschedule,
)
def check_apply_metaschedule(apply_metaschedule: Callable[..., Any]) -> None:
    import tvm
    from tvm.s_tir import meta_schedule as ms

    target = host_target()
    m, n, k = draw_distinct(3, range(33, 64))
    shapes = {"first": (m, n, k), "second": (n, k, m), "untuned": (k, m, n)}
    functions = {name: matmul_function(*shape, name=name) for name, shape in shapes.items()}
    database = ms.database.MemoryDatabase()
    records = {
        name: committed(
            database, functions[name], target, draw_distinct(4, range(2, 16)), draw_seconds(4)
        )
        for name in ("first", "second")
    }
    given = tvm.IRModule(functions)
    applied = apply_metaschedule(given, database, target)
    expect_type(applied, tvm.IRModule, "apply_metaschedule returns an IRModule")
    for name, function in functions.items():
        expect(
            format_nest(loop_nest(given[name])) == format_nest(loop_nest(function)),
            expected="the module given as it was",
            seen=f"its function {name} was changed",
            look="assigning to mod[...] changes mod itself",
        )
    names = sorted(variable.name_hint for variable in applied.get_global_vars())
    expect(
        names == sorted(functions),
        expected=f"a module with the functions {', '.join(sorted(functions))}",
        seen=", ".join(names) or "none",
        look="the pass changes the functions of `mod` and keeps their names",
    )
    for name, found in records.items():
        expect_best(
            loop_nest(applied[name]),
            found,
            f"MetaScheduleApplyDatabase on the whole module; this is its function {name}",
        )
        m, n, k = shapes[name]
        main = tvm.IRModule({"main": applied[name].with_attr("global_symbol", "main")})
        expect_product(
            build_module(main),
            (m, k),
            (k, n),
            what=f"C of {name}",
            look="the module that is returned",
        )
    expect(
        format_nest(loop_nest(applied["untuned"])) == format_nest(loop_nest(functions["untuned"])),
        expected="the function without a record as it was",
        seen=show(path_to(loop_nest(applied["untuned"]), "C", look="the block C")),
        look="apply only the database's records",
    )
    _expect_asked_for(apply_metaschedule, functions["untuned"])


def _expect_asked_for(apply_metaschedule: Callable[..., Any], function: Any) -> None:
    """A database is asked for records in the context of the target given, or of none."""
    import tvm
    from tvm.s_tir import meta_schedule as ms

    target = tvm.target.Target({"kind": "llvm", "num-cores": 3})
    asked: list[str] = []

    def schedule_fn(_: Any) -> bool:
        asked.append(str(tvm.target.Target.current(allow_none=True) or target))
        return False  # there is no record

    apply_metaschedule(
        tvm.IRModule({"untuned": function}), ms.database.ScheduleFnDatabase(schedule_fn), target
    )
    expect(
        set(asked) <= {str(target)},
        expected=f"records looked up for the target given, {target}",
        seen=f"for {', '.join(sorted(set(asked)))}",
        look="`with target, database:`; the argument, not this machine's target",
    )
