"""The operator as a tensor expression, and its schedule."""

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm_practice.course.checks.labs.custom_operator.common import (
    LANES,
    MISTAKES,
    PHASE,
    declared_by,
    declared_by_reference,
    draw_inputs,
    right_values,
)
from tvm_practice.course.expect import (
    CheckFailed,
    draw_distinct,
    expect,
    expect_close,
    fail,
    fresh_rng,
    show,
    statements,
)
from tvm_practice.course.lowering import build_expressions, lower_expression, stages_of
from tvm_practice.course.nests import expect_no_pragma, visited
from tvm_practice.engines import CURRENT
from tvm_practice.viz.loop_nest import Loop, Statement, format_nest, loop_nest, paths


@PHASE.exercise(
    "rms_norm_gate",
    engine=CURRENT,
    title="declare the operator in TOPI's form, for tensors of any rank",
    hints=(
        "Three calls of te.compute: H like the worked example's, S with a te.reduce_axis over the "
        "last dimension, Y of X's shape. A lambda of *i gets all the indices as a tuple.",
        "X[i] reads at a tuple of indices, and H[(*i, c)] at one index more, the reduced c; "
        "i[:-1] are the indices of the row, i[-1] is that of the column.",
        "S = te.compute(X.shape[:-1], lambda *i: te.sum(H[(*i, c)] * H[(*i, c)], axis=c), "
        'name="S"); Y is W[i[-1]] * H[i] * te.rsqrt(S[i[:-1]] / int(X.shape[-1]) + eps).',
    ),
    looks_like="""
        for i0 in serial(2):
            for i1 in serial(3):
                for i2 in serial(8):
                    H: H <- X, Z
        for i0 in serial(2):
            for i1 in serial(3):
                for c in serial(8):
                    S: S <- H, S
        for i0 in serial(2):
            for i1 in serial(3):
                for i2 in serial(8):
                    Y: Y <- H, S, W
    """,
    demonstrate=lambda rms_norm_gate: format_nest(
        loop_nest(lower_expression(declared_by(rms_norm_gate, (2, 3, 8), 1e-5)))
    ),
)
def check_rms_norm_gate(rms_norm_gate: Callable[..., Any]) -> None:
    from tvm import te

    rng = fresh_rng()
    drawn = [
        tuple(int(each) for each in rng.choice([2, 3, 5, 7, 11], rank, replace=False))
        for rank in (2, 4, 3)
    ]
    drawn[2] = (*drawn[2][:2], 1)  # rows of one element
    long = (2, int(rng.integers(5000, 9000)))
    for shape in (*drawn, (4, 4), (1, 64), (2, 2, 2, 2, 2), long):
        rank = len(shape)
        # Halfway between two numbers of 16 bits, so that eps in float16 is another one.
        eps = (0.5 + (2 * int(rng.integers(200)) + 1) / 4096) * (1e-7 if rank == 4 else 1)
        eps *= shape != (4, 4)
        try:
            tensors = declared_by(rms_norm_gate, shape, eps)
        except NotImplementedError:
            raise
        except Exception as error:
            if rank == 2:
                raise
            raise fail(
                f"a function of tensors of any rank, here {rank}",
                f"{type(error).__name__}: {(str(error).strip().splitlines() or ['?'])[-1]}",
                "lambda *i takes any number of indices; shapes come from X.shape",
            ) from error
        Y = tensors[-1]
        expect(
            isinstance(Y, te.Tensor),
            expected="the te.Tensor Y",
            seen=type(Y).__name__,
            look="the return statement: TOPI's functions return the tensor, not a list",
        )
        seen = tuple(int(extent) for extent in Y.shape)
        expect(
            seen == shape,
            expected=f"Y of X's shape {shape}",
            seen=f"shape {seen}",
            look="the shape given to te.compute: X.shape",
        )
        stages = {each.name: each for each in statements(loop_nest(lower_expression(tensors)))}
        expect(
            set(stages) == {"H", "S", "Y"},
            expected="three stages, named H, S and Y",
            seen=f"stages named {', '.join(stages)}",
            look="the name= of each te.compute, and H as a stage of its own: otherwise the gate "
            "is computed twice, for the sum and for Y",
        )
        expect(
            all("H" in stages[name].reads for name in "SY"),
            expected="S and Y read H",
            seen="; ".join(f"{name} reads {', '.join(stages[name].reads)}" for name in "SY"),
            look="the gate: without reading H, a stage computes it again",
        )
        _expect_stage_values(tensors, shape, eps)
    many = 1_000_003  # columns that are declared, not run
    (axis,) = stages_of(declared_by(rms_norm_gate, (2, many), 0.1)[-1])["S"].op.reduce_axis
    expect(
        int(axis.dom.extent) == many,
        expected=f"a sum over all {many} columns",
        seen=f"over {int(axis.dom.extent)}",
        look="te.reduce_axis((0, the last extent of X))",
    )


def _expect_stage_values(tensors: list[Any], shape: tuple[int, ...], eps: float) -> None:
    """H, S and Y for common values, large ones, and a row of zeros; exp(z) may be infinite."""
    stages = stages_of(tensors[-1])
    seen = {name: tuple(int(extent) for extent in each.shape) for name, each in stages.items()}
    expect(
        seen == {"H": shape, "S": shape[:-1], "Y": shape},
        expected=f"H of shape {shape} and S of shape {shape[:-1]}, without the last dimension",
        seen=str(seen),
        look="the shapes given to te.compute",
    )
    run = build_expressions(tensors[:3], [stages["H"], stages["S"], stages["Y"]])
    for scale in (1.0, 30.0, 1e-3, 1e-9, 1e8):
        arrays = draw_inputs(shape)
        x, z, weight = arrays
        x *= np.float32(scale)
        if scale < 1:  # H is small, and eps decides: of large results its last digits are seen
            weight *= np.float32(1e4)
        if eps:
            x[(0,) * (x.ndim - 1)] = 0
        z.flat[-2:] = -100, 100 if scale < 30 else 1e5
        gated, summed, got = run(*arrays)
        _expect_formula(got, arrays, eps)
        want = x * z / (1 + np.exp(-z.astype("float64")))
        for name, found, expected in (("H", gated, want), ("S", summed, (want**2).sum(-1))):
            expect_close(
                found,
                expected,
                what=f"{name} of {found.shape}",
                look="H = X · silu(Z); S is the sum of H² over a row",
                atol=1e-4 * scale**2,
            )


def _expect_formula(got: np.ndarray, arrays: Sequence[np.ndarray], eps: float) -> None:
    """`got` is the operator's result; a usual mistake is called by its name."""
    x, z, weight = arrays
    infinite = "the gate: exp(z) is infinite in float32 for z above 88; te.sigmoid(z) is 1"
    look = (
        infinite
        if np.isnan(got).any()
        else next(
            (
                text
                for mistake, text in MISTAKES.items()
                if np.allclose(got, right_values(x, z, weight, eps, **{mistake: True}), 2e-5, 1e-5)
            ),
            f"the formula, the index of the sum, and eps, which is {eps:.2g} here",
        )
    )
    expect_close(got, right_values(x, z, weight, eps), what=f"Y of {got.shape}", look=look)


@PHASE.exercise(
    "schedule_rms_norm_gate",
    engine=CURRENT,
    title="schedule it: rows in parallel, the sum of a row in vector lanes",
    hints=(
        "Fuse the loops of Y but the last to `row`, run it in parallel, and bring the other "
        "blocks into it with compute_at, beginning with the block nearest to Y.",
        "lane = schedule.split(S's last loop, [None, lanes])[1]; partial = schedule.rfactor(lane, "
        "factor_axis=the number of row dimensions) makes the block of partial sums. Split and "
        "vectorize the last loop of H and of Y.",
        "for block in (S, partial, H): schedule.compute_at(block, row, preserve_unit_loops=True): "
        "a loop over one lane, or over the one vector of a short row, would be dropped. Then _, "
        "lane, *_, rounds = schedule.get_loops(partial); schedule.reorder(rounds, lane); vectorize "
        "lane; decompose_reduction(partial, rounds), and that of S with get_loops(S)[1].",
    ),
    looks_like="""
        for i0_i1_fused in parallel(6):
            for ax0_0 in serial(3):
                for ax0_1 in vectorized(16):
                    H: H <- X, Z
            for ax0_init in vectorized(16):
                S_rf_init: S.rf <- constant
            for ax1 in serial(3):
                for ax0 in vectorized(16):
                    S_rf_update: S.rf <- H, S.rf
            S_init: S <- constant
            for ax0 in serial(16):
                S_update: S <- S, S.rf
            for i2_0 in serial(3):
                for i2_1 in vectorized(16):
                    Y: Y <- H, S, W
    """,
    demonstrate=lambda schedule_rms_norm_gate: format_nest(
        _scheduled_nest(schedule_rms_norm_gate, (2, 3, 48))
    ),
)
def check_schedule_rms_norm_gate(schedule_rms_norm_gate: Callable[..., Any]) -> None:
    import tvm

    from tvm_practice.engines import host_target

    few, more = *draw_distinct(1, [4, 8, 16]), *draw_distinct(1, [24, 32])
    rounds, rows = draw_distinct(2, [2, 3, 5])
    for shape, lanes in (
        ((rows, more * rounds), more),
        ((2, rows, 2, few * 5), few),
        ((rows, few), few),  # all of a row in one vector
        ((3, 6), 1),
    ):
        schedule = _schedule(schedule_rms_norm_gate, shape, lanes)
        expect(
            isinstance(schedule, tvm.s_tir.Schedule),
            expected="the tvm.s_tir.Schedule",
            seen=type(schedule).__name__,
            look="the return statement",
        )
        function = schedule.mod["main"]
        _expect_row_by_row(function, shape, lanes)
        built = tvm.compile(function.with_attr("global_symbol", "main"), host_target())["main"]
        x, z, weight = draw_inputs(shape)
        output = tvm.runtime.tensor(np.full(shape, np.nan, "float32"))
        built(*map(tvm.runtime.tensor, (x, z, weight)), output)
        want = right_values(x, z, weight, 1e-5)
        expect_close(
            output.numpy(), want, what=f"Y of {shape}, {lanes} lanes", look="the primitives"
        )
    long = *draw_distinct(1, range(70, 100)), *draw_distinct(1, range(300, 400))
    for many, lanes, steps in (
        *(((2,), each, 2 + at % 2) for at, each in enumerate((2, 4, 8, 16, 48, 64, 128))),
        ((1,), 4, 3),
        ((2, 1, 3, 2), 4, 2),
        ((2, 3, 1, 2, 2), 4, 3),
        *(((2,), 4, each) for each in long),
    ):
        whole = (*many, steps * lanes)
        schedule = _schedule(schedule_rms_norm_gate, whole, lanes)
        _expect_row_by_row(schedule.mod["main"], whole, lanes)
        _expect_every_so_many(schedule, lanes)


def _expect_every_so_many(schedule: Any, lanes: int) -> None:
    """The sum of a lane takes an element of each vector, so that a vector is one load."""
    block, buffer = next(
        (str(each.name_hint), str(read.source.name))
        for each in map(schedule.get, schedule.get_child_blocks(schedule.get_sblock("root")))
        for read in each.reads
        if str(read.source.name).startswith("H") and str(each.writes[0].source.name) != "Y"
    )
    taken = defaultdict(list)
    for partial, reads in visited(schedule, block):
        taken[partial].append(reads[buffer][-1])
    for elements in taken.values():
        first = min(elements)
        expect(
            sorted(elements) == list(range(first, first + lanes * len(elements), lanes)),
            expected=f"a partial sum per lane, which takes every {lanes}th element of a row",
            seen=f"elements {', '.join(map(str, elements[:3]))}, …",
            look="split the sum's loop by [None, lanes] and give rfactor the inner loop: its "
            "iterations are neighbours, and a vector of them is one load",
        )


def _expect_row_by_row(function: Any, shape: tuple[int, ...], lanes: int) -> None:
    """Rows in parallel; H, Y and the partial sums of a row in vectors of `lanes`."""
    around = list(paths(loop_nest(function)))
    _expect_by_rows(around, math.prod(shape[:-1]))
    inside = {id(each): loops[1:] for loops, each in around}
    for name in ("H", "Y") if 1 < lanes < shape[-1] else ():  # else loops may be dropped
        stage = next(each for _, each in around if each.name == name)
        _expect_vectors(name, inside[id(stage)], shape[-1], lanes)
    if 1 < lanes == shape[-1]:
        for name in ("H", "Y"):
            loops = next(loops for loops, each in around if each.name == name)
            expect(
                loops[-1].kind == "vectorized" and loops[-1].extent == lanes,
                expected=f"a row of {name} that is one vector: the innermost loop "
                f"vectorized({lanes})",
                seen=show(loops),
                look=f"schedule.vectorize of the inner part of the last loop of {name}",
            )
    if 1 < lanes < shape[-1]:
        _expect_lanes(around, inside, shape[-1], lanes)
    elif lanes == 1:
        _expect_zeroed(around, inside, [each for _, each in around if each.writes in each.reads])


def _schedule(function: Callable[..., Any], shape: tuple[int, ...], lanes: int) -> Any:
    from tvm import te

    func = te.create_prim_func(declared_by_reference(shape))
    try:
        schedule = function(func, lanes=lanes)
    except (NotImplementedError, CheckFailed):
        raise
    except Exception as error:
        if 1 < lanes < shape[-1]:
            raise
        raise fail(
            f"a schedule of rows of {shape[-1]} elements by {lanes} lanes as well",
            f"{type(error).__name__}: {(str(error).strip().splitlines() or ['?'])[-1]}",
            "loops of one iteration: compute_at drops them unless preserve_unit_loops=True",
        ) from error
    expect_no_pragma(schedule)
    return schedule


def _scheduled_nest(function: Callable[..., Any], shape: tuple[int, ...]) -> list[Any]:
    return loop_nest(_schedule(function, shape, LANES).mod["main"])


_Paths = Sequence[tuple[tuple[Loop, ...], Statement]]


def _expect_by_rows(around: _Paths, rows: int) -> None:
    """All statements are inside one parallel loop over the rows."""
    first = around[-1][0][0] if around[-1][0] else None
    expect(
        first is not None and first.kind == "parallel" and first.extent == rows,
        expected=f"the outermost loop is parallel({rows}), over all rows",
        seen=show(around[-1][0]),
        look="schedule.fuse of every loop of Y but the last, and schedule.parallel of that",
    )
    outside = [each.name for loops, each in around if not loops or loops[0] is not first]
    expect(
        not outside,
        expected="H and the sums of a row computed inside the loop over rows",
        seen=f"outside it: {', '.join(outside)}",
        look="compute_at(block, row): otherwise a whole tensor goes through memory and is gone "
        "from the cache when it is read again. Move a consumer before its producers",
    )


def _longer(loops: Sequence[Loop]) -> list[Loop]:
    """Those of more than one iteration: compute_at may keep the others."""
    return [loop for loop in loops if loop.extent != 1]


def _expect_vectors(name: str, loops: Sequence[Loop], columns: int, lanes: int) -> None:
    seen = [(loop.kind, loop.extent) for loop in _longer(loops)]
    expect(
        seen == [("serial", columns // lanes), ("vectorized", lanes)]
        and loops[-1].kind == "vectorized",
        expected=f"{name} of a row in serial({columns // lanes}) > vectorized({lanes})",
        seen=show(loops),
        look=f"split the last loop of {name} by [None, lanes], vectorize the inner one",
    )


def _expect_lanes(
    around: _Paths, inside: Mapping[int, Sequence[Loop]], columns: int, lanes: int
) -> None:
    """The sum: partial sums in lanes, joined, each set to zero before its loop."""
    adding = [each for _, each in around if each.writes in each.reads]
    expect(
        len(adding) == 2,
        expected="two sums: the `lanes` partial ones, and the one that adds them up",
        seen=f"{len(adding)}: {', '.join(each.name for each in adding) or 'none'}",
        look="schedule.rfactor of the inner loop, after the sum's loop is split in two",
    )
    partial, joined = adding
    loops = inside[id(partial)]
    expect(
        [(loop.extent, loop.kind) for loop in _longer(loops)]
        == [(columns // lanes, "serial"), (lanes, "vectorized")],
        expected=f"the partial sums in serial({columns // lanes}) > vectorized({lanes})",
        seen=f"{partial.name} in {show(loops)}",
        look="rfactor of the inner loop of `lanes` iterations, and schedule.vectorize of the last "
        "loop of the block that rfactor returns",
    )
    own = inside[id(joined)]
    expect(
        all(loop.kind == "serial" for loop in own),
        expected="the lanes of a row added up in a serial loop",
        seen=f"{joined.name} in {show(own)}",
        look="the primitives that are called on the loops of S",
    )
    _expect_zeroed(around, inside, (partial, joined))


def _expect_zeroed(
    around: _Paths, inside: Mapping[int, Sequence[Loop]], sums: Sequence[Statement]
) -> None:
    """Each of these sums is set to zero by another statement, outside its loops."""
    for each in sums:
        zeroed = [
            inside[id(other)]
            for _, other in around
            if other.writes == each.writes and other is not each
        ]
        own = {id(loop) for loop in _longer(inside[id(each)])}
        expect(
            len(zeroed) == 1 and not own & {id(loop) for loop in zeroed[0]},
            expected=f"{each.writes} set to zero by a statement before the loop that adds to it",
            seen=f"it is in {show(zeroed[0])}"
            if zeroed
            else "no such statement: the loop tests at every step whether it is the first",
            look="decompose_reduction(block, its loop of the sum), the last primitive",
        )
