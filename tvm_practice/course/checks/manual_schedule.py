"""Phase 2's exercises and how they are graded: the loop nest first, then its values."""

import math
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    expect,
    expect_close,
    fail,
    fresh_rng,
    path_to,
    show,
    statements,
)
from tvm_practice.engines import CLASSIC, CURRENT, host_target
from tvm_practice.viz.loop_nest import (
    Loop,
    Node,
    Statement,
    classic_statement,
    format_nest,
    loop_nest,
    paths,
)

PHASE = Phase(
    number=2,
    module="manual_schedule",
    title="manual schedules",
    minutes=25,
    lanes=(CURRENT, CLASSIC),
    question=(
        "Why does tiling (split + reorder) improve cache performance? Draw the memory access "
        "pattern."
    ),
)

Function = Callable[..., Any]

# What TVM says when it refuses a primitive, what that means here, and what to do about it.
_REFUSALS = (
    (
        "does not have compact dataflow",
        "the reduction was taken apart by decompose_reduction before; its update block is no "
        "longer one that TVM can prove safe to vectorize or to run in parallel",
        "the order: decompose_reduction is the last primitive",
    ),
    (
        "is not a data parallel block iter",
        "a primitive was given the loop over k, a reduction: its iterations add to the same "
        "elements of C, so they cannot run at once",
        "which loop it is given; vectorize and parallel take loops over rows or columns",
    ),
)


def _accepted(function: Function, *arguments: Any, **options: Any) -> Any:
    """Call the learner's function; a primitive that TVM refuses becomes a reason and a line."""
    try:
        return function(*arguments, **options)
    except Exception as error:
        for said, reason, look in _REFUSALS:
            if type(error).__name__ == "ScheduleError" and said in str(error):
                frames = traceback.extract_tb(error.__traceback__)
                line = [each for each in frames if each.filename == function.__code__.co_filename]
                where = f"line {line[-1].lineno}: {line[-1].line}; " if line else ""
                raise fail(
                    "TVM accepts each primitive", f"it refuses: {reason}", where + look
                ) from error
        raise


def _matmul_tensors(m: int, n: int, k: int, batch: int | None = None) -> list[Any]:
    """[A, B, C] of a matmul, or of `batch` independent ones."""
    from tvm import te

    outer = () if batch is None else (batch,)
    A = te.placeholder((*outer, m, k), name="A")
    B = te.placeholder((*outer, k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    if batch is None:
        C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    else:
        C = te.compute(
            (batch, m, n), lambda b, i, j: te.sum(A[b, i, r] * B[b, r, j], axis=r), name="C"
        )
    return [A, B, C]


def _scheduled(m: int, n: int, k: int, batch: int | None = None) -> tuple[Any, Any]:
    """A fresh schedule of a matmul on the current engine, and its block."""
    import tvm
    from tvm import te

    function = te.create_prim_func(_matmul_tensors(m, n, k, batch))
    schedule = tvm.s_tir.Schedule(
        tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
    )
    return schedule, schedule.get_sblock("C")


def _tiled(m: int, n: int, k: int, tile_m: int, tile_n: int) -> tuple[Any, Any]:
    """The same, its loops already as `tile` should leave them."""
    schedule, block = _scheduled(m, n, k)
    i, j, k_loop = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, tile_m])
    j_outer, j_inner = schedule.split(j, [None, tile_n])
    schedule.reorder(i_outer, j_outer, k_loop, i_inner, j_inner)
    return schedule, block


def _nest(schedule: Any) -> list[Node]:
    return loop_nest(schedule.mod["main"])


def _expect_values(schedule: Any, shapes: Sequence[tuple[int, ...]], look: str) -> None:
    """Compile main(A, B, C) as scheduled, run it on new inputs, compare with numpy."""
    import tvm

    rng = fresh_rng()
    a, b = (rng.standard_normal(shape, dtype="float32") for shape in shapes)
    want = a @ b
    output = tvm.runtime.tensor(np.full(want.shape, np.nan, "float32"))
    function = tvm.compile(schedule.mod, target=host_target())["main"]
    function(tvm.runtime.tensor(a), tvm.runtime.tensor(b), output)
    sizes = " by ".join("x".join(map(str, shape)) for shape in shapes)
    expect_close(output.numpy(), want, what=f"C of {sizes}", look=look)


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


def _kinds(loops: Sequence[Loop], kind: str) -> list[Loop]:
    return [loop for loop in loops if loop.kind == kind]


def _expect_tiles(
    loops: Sequence[Loop], wanted: dict[str, int], *, split_look: str, reorder_look: str
) -> None:
    """`loops` have the extents of `wanted`, a name for each loop, in that order."""
    order = " > ".join(f"{name}({extent})" for name, extent in wanted.items())
    extents = [loop.extent for loop in loops]
    same_loops = sorted(map(str, extents)) == sorted(map(str, wanted.values()))
    expect(
        extents == list(wanted.values()),
        expected=f"the loops {order}",
        seen=show(loops),
        look=reorder_look if same_loops else split_look,
    )


_SPLIT = (
    "the factors of split: [None, tile] gives an inner loop of `tile` iterations and rounds the "
    "outer one up; rows are i, columns are j, and get_loops(block)[-3:] are i, j and k"
)


@PHASE.exercise(
    "tile",
    engine=CURRENT,
    title="split the rows and the columns into tiles, reorder the loops",
    hints=(
        "Three primitives: schedule.get_loops(block) gives the loops outermost first (take the "
        "last three), split makes two loops of one, reorder puts loops in a new order.",
        "i_outer, i_inner = schedule.split(i, [None, tile_m]); None is worked out by TVM, and "
        "rounded up when the tile does not divide. Do the same for j.",
        "schedule.reorder(i_outer, j_outer, k, i_inner, j_inner), then return those five in a "
        "list.",
    ),
    looks_like="""
        for i_0 in serial(8):
            for j_0 in serial(3):
                for k in serial(32):
                    for i_1 in serial(8):
                        for j_1 in serial(16):
                            C: C <- A, B, C
    """,
    demonstrate=lambda tile: _shown(_scheduled(64, 48, 32), tile, 8, 16),
)
def check_tile(tile: Function) -> None:
    for batch in (None, 2):
        # Distinct extents, so that each tells which loop it is; 7 and 11 divide neither size.
        m, n, k = 26, 50, 13
        wanted = {"i_outer": 4, "j_outer": 5, "k": 13, "i_inner": 7, "j_inner": 11}
        schedule, block = _scheduled(m, n, k, batch)
        returned = _accepted(tile, schedule, block, 7, 11)
        loops = path_to(_nest(schedule), "C", look="the primitives")
        if batch is not None:
            wanted = {"batch": batch, **wanted}
        _expect_tiles(
            loops,
            wanted,
            split_look=_SPLIT,
            reorder_look="the order of the loops given to schedule.reorder: all of k within a tile",
        )
        expect(
            _kinds(loops, "serial") == list(loops),
            expected="tile only splits and reorders; every loop stays serial",
            seen=show(loops),
            look="vectorize and parallelize are exercises of their own",
        )
        now = [schedule.get(loop).loop_var for loop in schedule.get_loops(block)[-5:]]
        is_list = isinstance(returned, list | tuple) and len(returned) == 5
        expect(
            is_list
            and all(
                schedule.get(loop).loop_var.same_as(var)
                for loop, var in zip(returned, now, strict=True)
            ),
            expected="the list [i_outer, j_outer, k, i_inner, j_inner] returned",
            seen="other loops, or another order"
            if is_list
            else f"{type(returned).__name__} returned",
            look="the return statement: what split and get_loops gave, in the new order",
        )
        outer = () if batch is None else (batch,)
        _expect_values(schedule, [(*outer, m, k), (*outer, k, n)], "the primitives")


@PHASE.exercise(
    "vectorize",
    engine=CURRENT,
    title="vectorize the innermost loop of a tiled block",
    hints=(
        "Which of the five loops of a tile moves along a row of B and of C? That one fits a "
        "vector load; get_loops lists the loops outermost first.",
        "schedule.get_loops(block)[-1] is the innermost loop.",
        "schedule.vectorize(schedule.get_loops(block)[-1]). Nothing is returned: the schedule "
        "is changed in place.",
    ),
    looks_like="""
        for i_0 in serial(8):
            for j_0 in serial(3):
                for k in serial(32):
                    for i_1 in serial(8):
                        for j_1 in vectorized(16):
                            C: C <- A, B, C
    """,
    demonstrate=lambda vectorize: _shown(_tiled(64, 48, 32, 8, 16), vectorize),
)
def check_vectorize(vectorize: Function) -> None:
    for m, n, k in ((40, 96, 13), (41, 91, 13)):  # tiles that divide, tiles that do not
        schedule, block = _tiled(m, n, k, 8, 32)
        _accepted(vectorize, schedule, block)
        loops = path_to(_nest(schedule), "C", look="the primitive")
        expect(
            loops[-1].kind == "vectorized",
            expected=f"the innermost loop, {loops[-1].name}, is vectorized",
            seen=show(loops),
            look="the loop given to schedule.vectorize: the last of get_loops(block)",
        )
        others = [loop for loop in loops[:-1] if loop.kind != "serial"]
        expect(
            not others,
            expected="only the innermost loop changes, the others stay serial",
            seen=show(loops),
            look=f"what makes {', '.join(loop.name for loop in others)} other than serial",
        )
        expect(
            _columns_along(loops, m, n, k),
            expected="the five loops of the tiling, in their order",
            seen=show(loops),
            look="vectorize changes how a loop runs, not which loops there are",
        )
        _expect_values(schedule, [(m, k), (k, n)], "the primitive")


def _columns_along(loops: Sequence[Loop], m: int, n: int, k: int) -> bool:
    """Whether the loops are those of `_tiled(m, n, k, 8, 32)`, the last one maybe split again."""
    outer = [_ceil(m, 8), _ceil(n, 32), k, 8]
    inner = [int(loop.extent) for loop in loops[4:]]
    return [loop.extent for loop in loops[:4]] == outer and math.prod(inner) == 32


@PHASE.exercise(
    "parallelize",
    engine=CURRENT,
    title="share the tiles among the threads",
    hints=(
        "Every tile of C can be computed by another thread. A tile is one iteration of i_outer "
        "and j_outer together, the first two loops of get_loops(block).",
        "fused = schedule.fuse(i_outer, j_outer) makes one loop over all tiles; TVM cuts it into "
        "equal shares, one a thread.",
        "i_outer, j_outer = schedule.get_loops(block)[:2]; "
        "schedule.parallel(schedule.fuse(i_outer, j_outer)).",
    ),
    looks_like="""
        for i_0_j_0_fused in parallel(24):
            for k in serial(32):
                for i_1 in serial(8):
                    for j_1 in serial(16):
                        C: C <- A, B, C
    """,
    demonstrate=lambda parallelize: _shown(_tiled(64, 48, 32, 8, 16), parallelize),
)
def check_parallelize(parallelize: Function) -> None:
    for m, n, k, vectorized in ((40, 96, 13, True), (41, 91, 17, False)):
        schedule, block = _tiled(m, n, k, 8, 32)
        if vectorized:
            schedule.vectorize(schedule.get_loops(block)[-1])
        _accepted(parallelize, schedule, block)
        loops = path_to(_nest(schedule), "C", look="the primitives")
        parallel = _kinds(loops, "parallel")
        rows, columns = _ceil(m, 8), _ceil(n, 32)
        expect(
            len(parallel) == 1 and loops[0] is parallel[0],
            expected="one parallel loop, the outermost",
            seen=show(loops),
            look="schedule.parallel: give it the loop over tiles. Inside k the threads would "
            "be started and awaited again at every step",
        )
        expect(
            parallel[0].extent == rows * columns,
            expected=f"the parallel loop runs over all {rows}·{columns} = {rows * columns} tiles",
            seen=show(loops),
            look="schedule.fuse(i_outer, j_outer): i_outer alone has too few iterations to "
            "share evenly when C has few rows",
        )
        last = "vectorized" if vectorized else "serial"
        expect(
            [(loop.extent, loop.kind) for loop in loops[1:]]
            == [(k, "serial"), (8, "serial"), (32, last)],
            expected=f"inside it k serial({k}) > i_inner serial(8) > j_inner {last}(32), as before",
            seen=show(loops),
            look="what else the function changes",
        )
        _expect_values(schedule, [(m, k), (k, n)], "the primitives")


def _allocated(schedule: Any) -> dict[str, Any]:
    """The buffers that the function allocates, by name."""
    root = schedule.get(schedule.get_sblock("root"))
    return {str(buffer.name): buffer for buffer in root.alloc_buffers}


def _common(first: Sequence[Loop], second: Sequence[Loop]) -> int:
    """How many outer loops two statements share."""
    count = 0
    for one, other in zip(first, second, strict=False):
        if one is not other:
            break
        count += 1
    return count


def _product(nest: list[Node]) -> tuple[tuple[Loop, ...], Statement]:
    """The statement that adds to what it writes, and the loops around it."""
    for loops, statement in paths(nest):
        if statement.writes in statement.reads:
            return loops, statement
    names = ", ".join(each.name for each in statements(nest)) or "nothing"
    raise fail(
        "a statement that adds the products up",
        f"statements {names}",
        "the te.sum of the matmul",
    )


def _expect_register_block(
    schedule: Any, rows: int, columns: int, unroll_k: int
) -> tuple[Loop, ...]:
    """A tile of C adds up in a local buffer, unrolled and vectorized, and is written back once.

    Returns the loops around the statement that adds.
    """
    nest = _nest(schedule)
    loops, update = _product(nest)
    accumulator = update.writes
    buffer = _allocated(schedule).get(accumulator)
    scope = str(buffer.scope()) if buffer is not None else None
    expect(
        scope == "local",
        expected='the products add up in a buffer of scope "local"',
        seen=f"{update.name} adds up in {accumulator}"
        + (f' of scope "{scope}"' if scope else ", the function's output"),
        look='cache_write(block, 0, "local"), or set_scope for a buffer that is there already',
    )
    expect(
        loops[-1].kind == "vectorized" and loops[-1].extent == columns,
        expected=f"the innermost loop of {update.name} is vectorized({columns}), the columns",
        seen=show(loops),
        look="split j by columns, reorder it to the inside, vectorize it",
    )
    unrolled = _kinds(loops, "unrolled")
    expect(
        sorted(str(loop.extent) for loop in unrolled) == sorted([str(rows), str(unroll_k)]),
        expected=f"two unrolled loops around it: {rows} rows and {unroll_k} steps of k",
        seen=show(loops),
        look="split i by rows and k by unroll_k, and schedule.unroll of both inner loops",
    )
    outer = [loop for loop in loops if loop.kind in ("serial", "parallel")]
    expect(
        [*outer, *unrolled, loops[-1]] == list(loops),
        expected="i_outer > j_outer > k_outer > the two unrolled loops > the vectorized one",
        seen=show(loops),
        look="schedule.reorder: the unrolled loops next to the vectorized one, or their values "
        "cannot stay in registers",
    )
    tile_loops = len(outer) - 1  # all but k_outer
    starts = [
        path
        for path, each in paths(nest)
        if each.writes == accumulator and accumulator not in each.reads
    ]
    expect(
        len(starts) == 1 and _common(starts[0], loops) == tile_loops,
        expected=f"{accumulator} is set to zero by a statement of its own, before k_outer",
        seen="no such statement: the update tests at every step whether k is 0"
        if not starts
        else f"zeroed in {show(starts[0])}, added to in {show(loops)}",
        look="schedule.decompose_reduction(block, k_outer), as the last primitive",
    )
    ends = [path for path, each in paths(nest) if accumulator in each.reads and each != update]
    expect(
        len(ends) == 1,
        expected=f"one statement writes {accumulator} to C",
        seen=f"{len(ends)} of them",
        look="the block that cache_write returns",
    )
    shared = _common(ends[0], loops)
    expect(
        shared == tile_loops,
        expected="C is written once a tile: inside j_outer, after k_outer has ended",
        seen=f"written in {show(ends[0])}, added up in {show(loops)}: "
        + (
            "written again at every step of k"
            if shared > tile_loops
            else "the whole of C waits in the buffer, which registers cannot hold"
        ),
        look="reverse_compute_at(the write-back block, j_outer)",
    )
    return loops


@PHASE.exercise(
    "register_block",
    engine=CURRENT,
    title="add a tile of C up in registers, write it back once",
    hints=(
        "tile, with k split too and another inner order. What is new: cache_write puts a buffer "
        "between the block and C and returns the block that copies it to C; do it first.",
        "reverse_compute_at(write_back, j_outer) moves that copy into the tile's loops. "
        "vectorize(j_inner), unroll(i_inner), unroll(k_inner); the copy's own last loop can be "
        "vectorized too.",
        "Last, schedule.decompose_reduction(block, k_outer) moves the zeroing before k_outer. "
        "The order is reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner).",
    ),
    looks_like="""
        for i_0 in serial(8):
            for j_0 in serial(3):
                for i_1_init in unrolled(8):
                    for j_1_init in vectorized(16):
                        C_init: C_local <- constant
                for k_0 in serial(8):
                    for k_1 in unrolled(4):
                        for i_1 in unrolled(8):
                            for j_1 in vectorized(16):
                                C_update: C_local <- A, B, C_local
                for ax0 in serial(8):
                    for ax1 in vectorized(16):
                        C_local: C <- C_local
    """,
    demonstrate=lambda register_block: _shown(_scheduled(64, 48, 32), register_block, 8, 16, 4),
)
def check_register_block(register_block: Function) -> None:
    schedule, block = _scheduled(30, 48, 28)
    _accepted(register_block, schedule, block, 6, 16, 4)
    loops = _expect_register_block(schedule, 6, 16, 4)
    extents = [loop.extent for loop in loops[:3]]
    expect(
        extents == [5, 3, 7],
        expected="outside, i_outer(5) > j_outer(3) > k_outer(7) for 30x48x28 by 6, 16 and 4",
        seen=show(loops),
        look="schedule.reorder, and " + _SPLIT,
    )
    _expect_values(schedule, [(30, 28), (28, 48)], "the primitives")

    # Under a loop that is parallel already, and with tiles that do not divide. The parallel loop's
    # 21 rows are a multiple of the tile's 3: of two nested splits that both round up,
    # reverse_compute_at keeps the outer bound alone, and the copy to C would then write one row
    # of the next thread's part, with whatever its own buffer holds there.
    schedule, block = _scheduled(44, 37, 23)
    outer, _ = schedule.split(schedule.get_loops(block)[0], [None, 21])
    schedule.parallel(outer)
    _accepted(register_block, schedule, block, 3, 8, 2)
    loops = _expect_register_block(schedule, 3, 8, 2)
    expect(
        loops[0].kind == "parallel" and loops[0].extent == 3,
        expected="a parallel loop that was outside i stays the outermost",
        seen=show(loops),
        look="get_loops(block)[-3:], so that outer loops are left alone",
    )
    _expect_values(schedule, [(44, 23), (23, 37)], "the primitives")


def _packing(nest: list[Node], source: str) -> tuple[tuple[Loop, ...], Statement]:
    """The statement that copies `source` to another buffer than C."""
    for loops, statement in paths(nest):
        if statement.reads == (source,) and statement.writes != "C":
            return loops, statement
    seen = "; ".join(f"{each.writes} <- {', '.join(each.reads)}" for each in statements(nest))
    raise fail(
        f"{source} is packed: a statement that reads {source} and writes {source}_packed",
        seen,
        f"a te.compute named {source}_packed, which the sum then reads instead of {source}",
    )


def _expect_packed(schedule: Any, statement: Statement, *, blocks: int, k: int, width: int) -> None:
    """The buffer that `statement` packs to has the shape [blocks][k][width]."""
    shape = [int(extent) for extent in _allocated(schedule)[statement.writes].shape]
    expect(
        len(shape) == 3 and shape[0] == blocks and shape[2] == width and shape[1] >= k,
        expected=f"{statement.writes} of shape [{blocks}][{k} or a little more][{width}]: "
        "what one tile reads at a step of k lies side by side",
        seen=str(shape),
        look=f"the shape of {statement.writes}: blocks, then k, then the rows or columns of one "
        "tile",
    )


@PHASE.exercise(
    "packed_matmul",
    engine=CURRENT,
    title="a matmul near the processor's peak",
    hints=(
        "Five stages: A, B, A_packed, B_packed, then the sum over k, then C. The packed ones use "
        "te.if_then_else to put zeros where a block reaches past the matrix. If the sum is a "
        "te.compute T of shape (row blocks, column blocks, rows, columns), its loops are tiled "
        "from the start.",
        "C reads T[i // rows, j // columns, i % rows, j % columns]. set_scope(block, 0, "
        '"local") makes the sum\'s own buffer the accumulator, and C, moved to the loop over '
        "row blocks by reverse_compute_at, is the write-back.",
        "compute_at(B_packed's block, the column-block loop) packs B where it is used. Parallel on "
        "the column-block loop and on A_packed's outermost; vectorize and unroll as in "
        "register_block; decompose_reduction last. rows_first swaps the two loops, and which of "
        "the copies is packed inside.",
    ),
    looks_like="""
        for b in parallel(8):
            for r in serial(32):
                for i in serial(8):
                    A_packed: A_packed <- A
        for bj in parallel(3):
            for ax0 in serial(32):
                for ax1 in vectorized(16):
                    B_packed: B_packed <- B
            for bi in serial(8):
                for i_init in unrolled(8):
                    for j_init in vectorized(16):
                        T_init: T_local <- constant
                for k_0 in serial(8):
                    for k_1 in unrolled(4):
                        for i in unrolled(8):
                            for j in vectorized(16):
                                T_update: T_local <- A_packed, B_packed, T_local
                for ax0 in serial(8):
                    for ax1 in vectorized(16):
                        C: C <- T_local
    """,
    demonstrate=lambda packed_matmul: format_nest(
        _nest(packed_matmul(64, 48, 32, rows=8, columns=16))
    ),
)
def check_packed_matmul(packed_matmul: Function) -> None:
    import tvm

    cases = (
        (20, 32, 15, 5, 16, 3, False),
        (23, 45, 17, 6, 16, 4, False),
        (23, 45, 17, 6, 16, 4, True),
        (1, 9, 3, 4, 8, 2, False),
    )
    for m, n, k, rows, columns, unroll_k, rows_first in cases:
        schedule = _accepted(
            packed_matmul,
            m,
            n,
            k,
            rows=rows,
            columns=columns,
            unroll_k=unroll_k,
            rows_first=rows_first,
        )
        expect(
            isinstance(schedule, tvm.s_tir.Schedule),
            expected="packed_matmul returns the tvm.s_tir.Schedule",
            seen=type(schedule).__name__,
            look="the return statement",
        )
        shapes = [
            tuple(int(extent) for extent in parameter.shape)
            for parameter in schedule.mod["main"].params
        ]
        expect(
            shapes == [(m, k), (k, n), (m, n)],
            expected=f"main(A, B, C) of shapes {(m, k)}, {(k, n)} and {(m, n)}",
            seen=str(shapes),
            look="the placeholders, and the list given to te.create_prim_func",
        )
        nest = _nest(schedule)
        a_loops, a_packing = _packing(nest, "A")
        b_loops, b_packing = _packing(nest, "B")
        _expect_packed(schedule, a_packing, blocks=_ceil(m, rows), k=k, width=rows)
        _expect_packed(schedule, b_packing, blocks=_ceil(n, columns), k=k, width=columns)
        loops, update = _product(nest)
        expect(
            set(update.reads) == {update.writes, a_packing.writes, b_packing.writes},
            expected=f"{update.name} reads {a_packing.writes} and {b_packing.writes}",
            seen=f"it reads {', '.join(update.reads)}",
            look="the formula inside te.sum",
        )
        if k > unroll_k and m > rows:  # loops of one iteration may be simplified away
            _expect_register_block(schedule, rows, columns, unroll_k)
            by_rows = _Side("row", "A", _ceil(m, rows), a_loops)
            by_columns = _Side("column", "B", _ceil(n, columns), b_loops)
            sides = (by_rows, by_columns) if rows_first else (by_columns, by_rows)
            _expect_parallel(loops, *sides, f"rows_first={rows_first}")
        _expect_values(
            schedule,
            [(m, k), (k, n)],
            "what the packed buffers hold past the matrix's edge, and the indices",
        )


class _Side(NamedTuple):
    """One operand of packed_matmul.

    Attributes:
        block: what its blocks are of.
        source: its name.
        blocks: how many there are.
        packing: the loops around the statement that packs it.
    """

    block: str
    source: str
    blocks: int
    packing: Sequence[Loop]


def _expect_parallel(loops: Sequence[Loop], near: _Side, before: _Side, when: str) -> None:
    """The loop over `near`'s blocks is parallel, and packs them; `before` is packed before it."""
    expect(
        loops[0].kind == "parallel" and loops[0].extent == near.blocks,
        expected=f"the outermost loop is parallel({near.blocks}), the {near.block} blocks, with "
        + when,
        seen=show(loops),
        look="schedule.parallel and the order of the loops",
    )
    expect(
        _common(near.packing, loops) == 1,
        expected=f"{near.source} is packed inside the loop over {near.block} blocks and outside "
        f"that over {before.block} blocks, with {when}",
        seen=f"packed in {show(near.packing)}, used in {show(loops)}",
        look=f"compute_at({near.source}_packed's block, the {near.block}-block loop): packed by "
        f"the thread that uses it, once for all {before.block} blocks",
    )
    expect(
        before.packing[0].kind == "parallel" and before.packing[0] is not loops[0],
        expected=f"{before.source} is packed before, once for all {near.block} blocks, by all "
        "threads",
        seen=f"packed in {show(before.packing)}, used in {show(loops)}",
        look=f"schedule.parallel on the outermost loop of {before.source}_packed's block",
    )


@PHASE.exercise(
    "tile_classic",
    engine=CLASSIC,
    title="tile, vectorize and parallelize with te.create_schedule",
    hints=(
        "schedule = te.create_schedule(C.op). The primitives are methods of schedule[C] and "
        "take the axes of C: i, j = C.op.axis and (k,) = C.op.reduce_axis.",
        "schedule[C].split(i, factor=tile_m) returns the outer and the inner axis; "
        "schedule[C].reorder takes the five axes in their new order.",
        "After reorder: schedule[C].parallel(schedule[C].fuse(i_outer, j_outer)) and "
        "schedule[C].vectorize(j_inner); return the schedule, not the stage.",
    ),
    looks_like="""
        for i.outer.j.outer.fused in parallel(24):
            for i.inner.init in serial(8):
                for j.inner.init in vectorized(16):
                    C: C <- constant
            for k in serial(32):
                for i.inner in serial(8):
                    for j.inner in vectorized(16):
                        C: C <- A, B, C
    """,
    demonstrate=lambda tile_classic: format_nest(
        loop_nest(classic_statement(tile_classic(_matmul_tensors(64, 48, 32), 8, 16)))
    ),
)
def check_tile_classic(tile_classic: Function) -> None:
    from tvm import te

    for m, n, k in ((28, 55, 13), (26, 50, 13)):  # tiles that divide, tiles that do not
        tensors = _matmul_tensors(m, n, k)
        schedule = tile_classic(tensors, 7, 11)
        expect(
            isinstance(schedule, te.schedule.Schedule),
            expected="tile_classic returns the schedule of te.create_schedule",
            seen=type(schedule).__name__,
            look="the return statement",
        )
        nest = loop_nest(classic_statement(schedule))
        loops = next((path for path, each in paths(nest) if len(each.reads) > 1), ())
        tiles = 4 * 5
        parallel = _kinds(loops, "parallel")
        expect(
            [loop.extent for loop in parallel] == [tiles] and loops[0] is parallel[0],
            expected=f"the outermost loop is parallel over all 4·5 = {tiles} tiles",
            seen=show(loops),
            look="schedule[C].parallel(schedule[C].fuse(i_outer, j_outer)), and whose factor is "
            "whose: tile_m is of rows (i), tile_n of columns (j)",
        )
        _expect_tiles(
            loops,
            {"tiles": tiles, "k": k, "i_inner": 7, "j_inner": 11},
            split_look="schedule[C].split(i, factor=tile_m) and (j, factor=tile_n); `factor` is "
            "the extent of the inner loop",
            reorder_look="the order given to schedule[C].reorder: all of k within a tile",
        )
        expect(
            [loop.kind for loop in loops[1:]] == ["serial", "serial", "vectorized"],
            expected="inside, k and i_inner serial and j_inner, the innermost loop, vectorized",
            seen=show(loops),
            look="schedule[C].vectorize(j_inner)",
        )
        _expect_classic_values(schedule, tensors, (m, k), (k, n))


def _expect_classic_values(
    schedule: Any, tensors: list[Any], a_shape: tuple[int, int], b_shape: tuple[int, int]
) -> None:
    import tvm

    rng = fresh_rng()
    a, b = (rng.standard_normal(shape, dtype="float32") for shape in (a_shape, b_shape))
    output = tvm.nd.array(np.full((a_shape[0], b_shape[1]), np.nan, "float32"))
    function = tvm.build(schedule, tensors, target=host_target())
    function(tvm.nd.array(a), tvm.nd.array(b), output)
    expect_close(output.numpy(), a @ b, what="C", look="the primitives")


def _shown(scheduled: tuple[Any, Any], function: Function, *arguments: int) -> str:
    """The nest after `function` has changed a schedule's block."""
    schedule, block = scheduled
    function(schedule, block, *arguments)
    return format_nest(_nest(schedule))
