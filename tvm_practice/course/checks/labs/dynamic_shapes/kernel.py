"""A product with a symbolic extent, and its schedule."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm_practice.course.checks.labs.dynamic_shapes.common import (
    PHASE,
    Function,
    as_tuple,
    compiled,
    expect_module,
    extents_of,
    operators_called,
    prim_funcs,
    unoptimized_target,
)
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_close,
    fail,
    fresh_rng,
    show,
    show_nest,
    varied,
)
from tvm_practice.course.nests import expect_no_pragma
from tvm_practice.engines import CURRENT
from tvm_practice.tvm_export.rules.cpu.loops import constant
from tvm_practice.viz.loop_nest import Node, format_nest, loop_nest, paths, without_types
from tvm_practice.wording import number_of


@PHASE.exercise(
    "symbolic_matmul",
    engine=CURRENT,
    title="a matrix product of n rows, in TE and Relax",
    hints=(
        "Phase 1's product, with A.shape[0] as the number of rows, whatever its value. The "
        "worked example added has the Relax function around it, and its symbol.",
        "n = tirx.Var('n', 'int64'); a = relax.Var('A', relax.TensorType((n, k), 'float32')); "
        "builder = relax.BlockBuilder(); with builder.function('main', [a, b]): statements "
        "emitted inside are main's body.",
        "builder.emit_func_output(builder.emit_te(product, a, b)), where product(A, B) returns "
        "te.compute((A.shape[0], m), ...); then return builder.get().",
    ),
    looks_like="""
        A (n, 16), B (16, 8) -> (n, 8)
        for i in serial(n):
            for j in serial(8):
                for k in serial(16):
                    C: C <- A, B, C
    """,
    demonstrate=lambda symbolic_matmul: _signature_and_nest(symbolic_matmul(16, 8)),
)
def check_symbolic_matmul(symbolic_matmul: Function) -> None:
    rng = fresh_rng()
    k, m = (int(each) for each in rng.choice(np.arange(5, 40), 2, replace=False))
    for columns in (m, k):  # B is square as well
        _expect_symbolic(symbolic_matmul(k, columns), k, columns)
    _expect_symbolic(symbolic_matmul(m, k), m, k)  # as many products as above
    _expect_symbolic(symbolic_matmul(5003, 2), 5003, 2)
    for large in ((400_009, 3), (2, 300_007)):
        _expect_symbolic(symbolic_matmul(*large), *large, rows=(1,))
    for rows, columns in ((1, 6), (64, 3), *varied(k, m, alone=True)[1:]):
        _expect_symbolic(
            symbolic_matmul(rows, columns), rows, columns, rows=None if rows == 1 else ()
        )


def _expect_symbolic(mod: Any, k: int, m: int, rows: Sequence[int] | None = None) -> None:
    """The module is of the product (n, k) by (k, m); it is run for so many rows, or for others."""
    rng = fresh_rng()
    main = expect_module(mod, "symbolic_matmul")
    types = [*(each.ty for each in main.params), main.ret_ty]
    shapes = [extents_of(each) for each in types]
    n = shapes[0][0] if shapes[0] else None
    expect(
        len(shapes) == 3
        and all(len(each) == 2 for each in shapes)
        and constant(n) is None
        and shapes[2][0].same_as(n)
        and [constant(each) for each in (shapes[0][1], *shapes[1], shapes[2][1])] == [k, k, m, m],
        expected=f"main(A, B): A (n, {k}), B ({k}, {m}), the result (n, {m}); n is one tirx.Var",
        seen=" and ".join(map(as_tuple, shapes)),
        look="the shapes of the relax.TensorType, and that of te.compute",
    )
    dtypes = [str(each.dtype) for each in types]
    expect(
        dtypes == ["float32"] * 3,
        expected="A, B and the result in float32",
        seen=", ".join(dtypes),
        look="the types of the relax.TensorType, and of the terms of the sum",
    )
    kernels, called = prim_funcs(mod), operators_called(main)
    expect(
        len(kernels) == 1 and called == ["relax.call_tir"],
        expected="main calls one PrimFunc with call_tir",
        seen=f"{number_of(len(kernels), 'PrimFunc')}, and main calls "
        f"{', '.join(called) or 'nothing'}",
        look="builder.emit_te, which makes a PrimFunc of a tensor expression and calls it",
    )
    found = paths(loop_nest(kernels[0]))
    extents = max(
        ([loop.extent for loop in path if isinstance(loop.extent, int)] for path, _ in found),
        default=[],  # a library's function has no loops
    )
    expect(
        math.prod(extents) == k * m,
        expected=f"for each row {m} columns, each a sum over {k} steps",
        seen=f"loops of {', '.join(map(str, extents))} iterations" if extents else "no loops",
        look="the axis of te.sum, te.reduce_axis((0, k)), and the shape given to te.compute",
    )
    script = mod.script()
    expect(
        "if_then_else" not in script and "Select" not in script,
        expected="a sum of products, without a condition",
        seen="a condition in the PrimFunc",
        look="the expression given to te.compute: no row and no step is an exception",
    )
    bounds = (main.attrs or {}).get("tir_var_upper_bound")
    expect(
        bounds is None,
        expected="main for any n: no bound of n in its attributes",
        seen=f"tir_var_upper_bound {bounds}",
        look="the statement that gives main an attribute",
    )
    if rows is None:
        rows = (1, 7, int(rng.integers(20, 60)))
    if not rows:
        return
    call = compiled(mod)
    for number in rows:
        a = rng.standard_normal((number, k), dtype="float32")
        b = rng.standard_normal((k, m), dtype="float32")
        expect_close(
            call(a, b),
            a @ b,
            what=f"C for n = {number}",
            look="the indices, and the axis of te.sum",
            atol=max(1e-4, 3e-7 * k),  # a sum of thousands, term after term
        )


def _signature_and_nest(mod: Any) -> str:
    main = mod["main"]
    inputs = ", ".join(f"{each.name} {as_tuple(extents_of(each.ty))}" for each in main.params)
    (kernel,) = prim_funcs(mod)
    return f"{inputs} -> {as_tuple(extents_of(main.ret_ty))}\n{format_nest(loop_nest(kernel))}"


def _symbolic_schedule(k: int, m: int, names: str = "ABC") -> tuple[Any, Any]:
    """A fresh schedule of the product of n rows, and its block; a letter each for the tensors."""
    import tvm
    from tvm import te, tirx

    n = tirx.Var("n", "int64")
    left, right, out = tuple(names)
    A = te.placeholder((n, k), name=left)
    B = te.placeholder((k, m), name=right)
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((n, m), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name=out)
    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    return schedule, schedule.get_sblock(out)


def _guards(function: Any) -> dict[str, str]:
    """Of each block that has one, the condition under which it runs."""
    import tvm_ffi
    from tvm.s_tir import SBlockRealize

    found: dict[str, str] = {}

    def look(realize: Any) -> None:
        if constant(realize.predicate) != 1:
            found[str(realize.block.name_hint)] = without_types(realize.predicate)

    tvm_ffi.structural_walk(function.body, (SBlockRealize, look))
    return found


@PHASE.exercise(
    "schedule_dynamic",
    engine=CURRENT,
    title="tile a product of n rows without guards in its loops",
    hints=(
        "Padding comes first, as long as the block is under its three loops. Two blocks are new "
        "then, the copy of A before and the copy to C after; the rest is phase 2's tile.",
        "schedule.pad_einsum(block, [rows, 1, 1]) has factors for i, j and k. "
        "get_producers(block) gives the copy of A. After the splits and the reorder, "
        "compute_at(copy, i_outer) moves it there.",
        "parallel(i_outer), unroll(i_inner), vectorize(j_inner), and last "
        "decompose_reduction(block, k).",
    ),
    looks_like="""
        for i_0 in parallel((n + 3) // 4):
            for ax0 in serial(4):
                for ax1 in serial(16):
                    A_pad: A_pad <- A
            for j_0 in serial(2):
                for i_1_init in unrolled(4):
                    for j_1_init in vectorized(16):
                        C_init: C_pad <- constant
                for k in serial(16):
                    for i_1 in unrolled(4):
                        for j_1 in vectorized(16):
                            C_update: C_pad <- A_pad, B, C_pad
        for i0 in serial(n):
            for i1 in serial(32):
                C_pad: C <- C_pad
    """,
    demonstrate=lambda schedule_dynamic: _scheduled_text(schedule_dynamic),
)
def check_schedule_dynamic(schedule_dynamic: Function) -> None:
    import tvm

    rng = fresh_rng()
    tiles = draw_distinct(2, [(4, 16), (6, 8), (3, 24), (5, 12)])
    tiles += draw_distinct(1, [(9, 4), (10, 4), (12, 2)])
    run = len(tiles)
    tiles += [(2, 2), (3, 4), (17, 3), (32, 32), (2, 64)]  # these are not run
    large = [int(each) for each in rng.integers(65, 400, 2)]
    tiles += [(large[0], 2), (2, large[1]), (large[0],) * 2]
    for at, (rows, columns) in enumerate(tiles):
        names = "PQR" if at == 1 else "ABC"
        # Of a single tile of columns as well.
        k, m = int(rng.integers(7, 20)), columns * (int(rng.integers(2, 4)) if at % 3 else 1)
        schedule, block = _symbolic_schedule(k, m, names)
        try:
            schedule_dynamic(schedule, block, rows, columns)
        except tvm.s_tir.ScheduleError as error:
            reason = str(error).strip().splitlines()[-1]
            look = "the order: pad_einsum first, decompose_reduction last"
            if "Cannot find a block" in reason:
                look = (
                    "schedule.get_producers(block): a block is named after its tensor, and these "
                    f"are {', '.join(names)}"
                )
            raise fail("TVM accepts each primitive", f"it refuses: {reason}", look) from error
        expect_no_pragma(schedule)
        function = schedule.mod["main"]
        nest = loop_nest(function)
        loops = _expect_dynamic_tiles(nest, k, m // columns, rows, columns)
        guarded = _guards(function)
        sums = [name for name in guarded if name.startswith(names[2]) and "update" in name]
        expect(
            not sums,
            expected="the sum runs without a condition",
            seen=f"{sums[0] if sums else ''} runs only if {guarded[sums[0]] if sums else ''}",
            look="schedule.pad_einsum(block, [rows, 1, 1]), before the splits",
        )
        _expect_no_further_tile(str(loops[0].extent), rows)
        copies = [path for path, each in paths(nest) if each.reads == (names[0],)]
        expect(
            len(copies) == 1 and copies[0][:1] == loops[:1] and loops[1] not in copies[0],
            expected=f"{names[0]} is copied inside i_outer, one tile's rows at a time",
            seen=f"no copy of {names[0]}" if not copies else f"made in {show(copies[0])}",
            look="schedule.compute_at(the block from get_producers, i_outer), whatever its tensor "
            "is named",
        )
        if at >= run:
            continue
        built = tvm.compile(schedule.mod, target=unoptimized_target())["main"]
        for n in (1, rows, 2 * rows + 1, int(rng.integers(20, 50))):
            a = rng.standard_normal((n, k), dtype="float32")
            b = rng.standard_normal((k, m), dtype="float32")
            whole = tvm.runtime.tensor(np.full((n + rows, m), np.nan, "float32"))
            built(tvm.runtime.tensor(a), tvm.runtime.tensor(b), whole._create_view((n, m)))
            expect_close(whole.numpy()[:n], a @ b, what=f"C for n = {n}", look="the primitives")
            beyond = int(np.isfinite(whole.numpy()[n:]).sum())
            expect(
                beyond == 0,
                expected=f"for n = {n} nothing is written past row {n - 1} of C",
                seen=f"{number_of(beyond, 'element')} behind C were overwritten",
                look="the copy of the padded C to C: inlined into another block and moved with "
                "reverse_compute_at, it loses its bound",
            )


def _expect_dynamic_tiles(
    nest: list[Node], k: int, column_tiles: int, rows: int, columns: int
) -> tuple[Any, ...]:
    """The loops around the sum, which must be those of the exercise."""
    found = [
        (path, each)
        for path, each in paths(nest)
        if len(each.reads) > 1 and each.writes in each.reads
    ]
    if len(found) != 1:
        raise fail("one statement that adds to C", show_nest(nest), "the primitives")
    loops = found[0][0]
    wanted = [
        ("parallel", None),
        ("serial", column_tiles),
        ("serial", k),
        ("unrolled", rows),
        ("vectorized", columns),
    ]
    seen = [(loop.kind, loop.extent if isinstance(loop.extent, int) else None) for loop in loops]
    expect(
        seen == wanted,
        expected=f"i_outer parallel(of n) > j_outer serial({column_tiles}) > k serial({k}) > "
        f"i_inner unrolled({rows}) > j_inner vectorized({columns})",
        seen=show(loops),
        look="split, reorder, parallel, unroll and vectorize; i_outer stays a symbol",
    )
    starts = [path for path, each in paths(nest) if each.writes == found[0][1].writes][:-1]
    expect(
        any(path[:2] == loops[:2] and loops[2] not in path for path in starts)
        and "init" not in found[0][1].name,
        expected="C is set to zero by a statement of its own, inside j_outer and before k",
        seen=show_nest(nest),
        look="schedule.decompose_reduction(block, k), as the last primitive",
    )
    return loops


def _expect_no_further_tile(extent: str, rows: int) -> None:
    """There are as many tiles as hold a row of C; `extent` is an expression of n, as TVM prints it.

    TVM prints its integer expressions in Python's words.
    """
    code = compile(extent, "<extent>", "eval")
    for n in (1, rows, rows + 1, 3 * rows - 1, 997 * rows + 1):
        tiles = eval(code, {"n": n})
        expect(
            tiles == -(-n // rows),
            expected=f"for n = {n} and tiles of {rows} rows {-(-n // rows)} iterations of i_outer",
            seen=f"{tiles}, as {extent}",
            look="schedule.pad_einsum(block, [rows, 1, 1]): n is rounded up to the next multiple "
            "of rows, and no further",
        )


def _scheduled_text(schedule_dynamic: Function) -> str:
    schedule, block = _symbolic_schedule(16, 32)
    schedule_dynamic(schedule, block, 4, 16)
    return format_nest(loop_nest(schedule.mod["main"]))
