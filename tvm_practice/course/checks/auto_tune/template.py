"""The template that AutoTVM tunes: its knobs, its space, loops and values of its schedules."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.course.checks.auto_tune.common import (
    PHASE,
    expect_different,
    expect_schedule,
    expect_vectorized_and_parallel,
)
from tvm_practice.course.expect import draw_distinct, expect, varied
from tvm_practice.course.lowering import build_schedule
from tvm_practice.course.nests import accumulation, expect_loops
from tvm_practice.course.products import expect_product
from tvm_practice.course.tuning_logs import classic_nest, instantiated
from tvm_practice.engines import CLASSIC, host_target
from tvm_practice.viz.loop_nest import format_nest
from tvm_practice.wording import number_of


def _mine(matmul_template: Callable[..., Any], sizes: Sequence[int]) -> Any:
    """The task of the learner's template."""
    from tvm_practice.tvm_export.tuners.autotvm import make_task

    return make_task(matmul_template, sizes, host_target(), name="graded.mine")


# Sizes at which a condition on a size has another outcome than at those of the others.
_LARGE = ((7, 11, 500_009), (300_007, 5, 9), (3, 400_009, 8))


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
        "'local') before the splits, then schedule[tile].compute_at(schedule[C], the fused loop), "
        "and tile's own k split by a knob and unrolled.",
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
        _, tensors = expect_schedule(matmul_template(m, n, k), "matmul_template")
    _expect_matmul_tensors(tensors, m, n, k)
    task = _mine(matmul_template, (m, n, k))
    space = len(task.config_space)
    expect(
        space == task.config_space.range_length,
        expected="a space of all combinations of the knobs' values",
        seen=f"{space} of {task.config_space.range_length} combinations",
        look="multi_filter, which excludes the others",
    )
    expect(
        space > 1,
        expected="knobs, each with several values: a space of many configurations",
        seen=f"a space of {space}",
        look="cfg.define_knob or cfg.define_split on cfg = autotvm.get_config()",
    )
    for large in _LARGE:
        with host_target(), autotvm.task.ApplyConfig(autotvm.task.ConfigSpace()):
            _, tensors = expect_schedule(matmul_template(*large), "matmul_template")
        _expect_matmul_tensors(tensors, *large)
        _expect_whole_sum(tensors[-1], large[-1])
    whole = _mine(matmul_template, (1024, 1024, 1024))
    _expect_knobs(whole)
    _expect_schedules_apart(whole)
    every = varied(m, n, k)
    for sizes in every:
        _expect_template_of(matmul_template, sizes)
    nests = [instantiated(task, index) for index in draw_distinct(min(10, space), range(space))]
    expect_different(
        nests,
        "loops that differ from configuration to configuration",
        "whether the splits use cfg[...].val (or .apply), not numbers of their own",
    )
    # Of 1024 as well: factors of a prime number of columns may make vectors of one lane.
    drawn = draw_distinct(min(10, len(whole.config_space)), range(len(whole.config_space)))
    expect_vectorized_and_parallel([*nests, *(instantiated(whole, index) for index in drawn)])
    _expect_ends(task, most=150)
    _expect_steps_unshared(task)
    for sizes in every:
        _expect_ends(_mine(matmul_template, sizes), most=12)
    m, n, k = draw_distinct(3, [13, 17, 19, 23, 29, 31, 37, 41])
    odd = _mine(matmul_template, (m, n, k))
    expect(
        len(odd.config_space) > 1,
        expected=f"knobs of several values for {m}x{n}x{k} as well, sizes that are prime",
        seen="a space of one configuration",
        look="candidates that depend on the sizes: a tile need not divide them",
    )
    _expect_ends(odd, most=60)
    _expect_schedules_apart(odd)
    # Usual sizes of a tile: one of all sizes is not another value besides.
    _expect_schedules_apart(_mine(matmul_template, draw_distinct(1, (8, 16, 32, 64)) * 3))
    few = draw_distinct(3, range(2, 7))  # fewer than a tile has
    _expect_schedules_apart(_mine(matmul_template, few))
    _expect_schedules_apart(_mine(matmul_template, (1, 1, 1)))
    for large in _LARGE:
        _expect_ends(_mine(matmul_template, large), most=4)
    space = len(odd.config_space)
    for index in {0, space - 1, *draw_distinct(1, range(space))}:
        _expect_product_of(odd, index)
    for alike in ((m, n, n), (m, m, n), (m, n, m), (m, m, m)):
        _expect_product_of(_mine(matmul_template, alike), 0)


def _expect_product_of(task: Any, index: int) -> None:
    """C is the product in that configuration."""
    config = task.config_space.get(index)
    with task.target:
        function = build_schedule(*task.instantiate(config))
    m, n, k = task.args
    expect_product(
        function,
        (m, k),
        (k, n),
        what=f"C with {config}" + f" of A ({m}, {k}) and B ({k}, {n})" * (len({m, n, k}) < 3),
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
        seen=f"{number_of(len(tensors), 'tensor')}",
        look="the return statement",
    )


def _expect_whole_sum(C: Any, k: int) -> None:
    """The sum that C is, or that one of its inputs is, has all steps of k."""
    steps = [
        math.prod(int(each.dom.extent) for each in op.reduce_axis)
        for op in (C.op, *(each.op for each in C.op.input_tensors))
        if getattr(op, "reduce_axis", None)
    ]
    expect(
        math.prod(steps) == k,
        expected=f"a sum over all {k} steps of k",
        seen=f"over {math.prod(steps)}",
        look="te.reduce_axis((0, k)), whatever k is",
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
        # Two values may be alike with some values of the other knobs, and not with all.
        alike = set(itertools.combinations(range(len(values)), 2)) if size > 1 else set()
        for base in (rest, 0, last):
            nests = {
                at: format_nest(instantiated(task, base + step * values[at]))
                for at in sorted({at for pair in alike for at in pair})
            }
            alike = {
                (one, other)
                for one, other in alike
                if nests[one] == nests[other]
                and _lowered(task, base + step * values[one])
                == _lowered(task, base + step * values[other])  # which shows pragmas
            }
        expect(
            not alike,
            expected=f"loops that differ with each value of the knob {name}",
            seen=f"the same loops for numbers {' and '.join(map(str, min(alike, default=())))} of "
            f"its {size} values",
            look=f"whether a split uses cfg[{name!r}].val unchanged",
        )
        step *= size


def _lowered(task: Any, index: int) -> str:
    """The program of a task's configuration."""
    import tvm

    with task.target:
        schedule, tensors = task.instantiate(task.config_space.get(index))
        return str(tvm.lower(schedule, tensors))


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
    """Whatever the sizes are, A, B and C have their shapes, and the sum is over all of k."""
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


def _expect_ends(task: Any, most: int) -> None:
    """In every configuration the first loop is parallel, and the last loop of the sum vectorized.

    A loop of one iteration need be neither. Of a larger space, `most` configurations are drawn.
    """
    space = len(task.config_space)
    for index in sorted({0, space - 1, *draw_distinct(min(most, space), range(space))}):
        config = task.config_space.get(index)
        with task.target:
            schedule, _ = task.instantiate(config)
        missing = _missing_ends(schedule)
        expect(
            not missing,
            expected=f"a {' and a '.join(missing)} loop in every configuration, for "
            f"{'x'.join(map(str, task.args))} as well",
            seen=f"none with {config}",
            look="a condition around parallel or vectorize: where a tile does not divide, TVM "
            "guards the lanes",
        )


def _missing_ends(schedule: Any) -> list[str]:
    """Which of "parallel" and "vectorized" an end of the loops should be and is not."""
    from tvm import te, tir

    whole = schedule.normalize()
    extents = [(loop, int(each.extent)) for loop, each in te.schedule.InferBound(whole).items()]

    def lacks(stage: Any, at: int, kind: int) -> bool:
        loop = list(stage.leaf_iter_vars)[at]
        as_told = any(
            each.same_as(loop) and int(attribute.iter_type) == kind
            for each, attribute in stage.iter_var_attrs.items()
        )
        return not as_told and any(each.same_as(loop) and extent > 1 for each, extent in extents)

    sums = [stage for stage in whole.stages if len(getattr(stage.op, "reduce_axis", ()))]
    missing = []
    if lacks(whole[whole.outputs[0]], 0, tir.IterVar.Parallelized):
        missing.append("parallel")
    if all(lacks(stage, -1, tir.IterVar.Vectorized) for stage in sums):
        missing.append("vectorized")
    return missing


def _expect_steps_unshared(task: Any) -> None:
    """No value of a knob shares the steps of a sum among threads."""
    _, tensors = task.instantiate(task.config_space.get(0))
    steps = {str(axis.var.name) for axis in tensors[-1].op.reduce_axis}
    steps -= {str(axis.var.name) for axis in tensors[-1].op.axis}
    space, step = len(task.config_space), 1
    sizes = [len(each) for each in task.config_space.space_map.values()]
    indices = {0, space - 1}
    for size in sizes:
        indices |= {value * step for value in range(size)}
        indices |= {space - 1 - value * step for value in range(size)}
        step *= size
    for index in sorted(indices):
        around = accumulation(instantiated(task, index))[0]
        shared = [loop for loop in around if loop.kind == "parallel"]
        expect_loops(
            not any(steps & set(loop.name.split(".")) for loop in shared),
            shared,
            f"no steps of the sum among the threads, with {task.config_space.get(index)} as well",
            "a knob that chooses the parallel loop: the steps of k add to the same elements of C",
        )
