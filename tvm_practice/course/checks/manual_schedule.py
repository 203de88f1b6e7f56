"""Phase 2's exercises and how they are graded: the loop nest first, then its values."""

import math
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_type,
    fail,
    path_to,
    show,
    statements,
)
from tvm_practice.course.lowering import build_module, build_schedule
from tvm_practice.course.nests import (
    accepted,
    accumulation,
    allocated,
    expect_loops,
    expect_nest,
    expect_register_block,
    shared_loops,
)
from tvm_practice.course.products import expect_product, matmul_schedule, matmul_tensors
from tvm_practice.engines import CLASSIC, CURRENT
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
    builds_on=("te_basics.matmul",),
    question=(
        "Why does tiling (split + reorder) improve cache performance? Draw the memory access "
        "pattern."
    ),
)

Function = Callable[..., Any]


def _tiled(
    sizes: Sequence[int], tile: Sequence[int], batch: int | None = None, names: str = "ABC"
) -> tuple[Any, Any]:
    """A schedule of a matmul and its block, the loops already as `tile` should leave them."""
    m, n, k = sizes
    schedule, block = matmul_schedule(m, n, k, batch, names=names)
    i, j, k_loop = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, tile[0]])
    j_outer, j_inner = schedule.split(j, [None, tile[1]])
    schedule.reorder(i_outer, j_outer, k_loop, i_inner, j_inner)
    return schedule, block


def _nest(schedule: Any) -> list[Node]:
    return loop_nest(schedule.mod["main"])


def _ceil(a: int, b: int) -> int:
    return -(-a // b)


_SPLIT = (
    "the factors of split: [None, tile] gives an inner loop of `tile` iterations and rounds the "
    "outer one up; rows are i, columns are j, and get_loops(block)[-3:] are i, j and k"
)


@PHASE.exercise(
    "tile",
    engine=CURRENT,
    title="split the rows and the columns into tiles, reorder the loops",
    hints=(
        "Three primitives of the file's table, in the order of the worked example in_blocks. What "
        "is new is the loop k, which stays whole, and what may be outside i.",
        "schedule.get_loops(block) gives the loops outermost first: take the last three. i_outer, "
        "i_inner = schedule.split(i, [None, tile_m]); None is worked out by TVM, and rounded up "
        "when the tile does not divide. Do the same for j.",
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
    demonstrate=lambda tile: _shown(matmul_schedule(64, 48, 32), tile, 8, 16),
)
def check_tile(tile: Function) -> None:
    # Distinct extents, so that each tells which loop it is, and tiles that divide no size; then
    # tiles that divide, and some that are larger than the matrix, under other names.
    (m, n, k), (rows, columns) = _drawn_sizes_and_tiles()
    for sizes, tiles, batch in (
        ((m, n, k), (rows, columns), None),
        ((m, n, k), (columns, rows), 2),
        ((4 * rows, 3 * columns, k), (rows, columns), None),
        ((rows, columns, 3), (rows + 3, columns + 1), None),
        ((m, n, 1), (1, 1), 3),
    ):
        _check_tiled(tile, sizes, tiles, batch)


def _drawn_sizes_and_tiles() -> tuple[tuple[int, int, int], tuple[int, int]]:
    """Extents of a product and a tile whose rows and columns, exchanged, make other loops."""
    while True:
        m, n, k = draw_distinct(3, range(23, 60))
        rows, columns = draw_distinct(2, [5, 6, 7, 9, 10, 11])
        tiles = {_ceil(m, rows), _ceil(n, columns)}
        if tiles != {_ceil(m, columns), _ceil(n, rows)}:
            return (m, n, k), (rows, columns)


def _check_tiled(
    tile: Function, sizes: Sequence[int], tiles: Sequence[int], batch: int | None
) -> None:
    (m, n, k), (rows, columns) = sizes, tiles
    names = "ABC" if batch is None else "PQR"
    schedule, block = matmul_schedule(m, n, k, batch, names=names)
    outer: tuple[int, ...] = () if batch is None else (batch,)
    if batch is not None:
        schedule.parallel(schedule.get_loops(block)[0])
    returned = accepted(tile, schedule, block, rows, columns)
    wanted = f"i_outer serial({_ceil(m, rows)}) > j_outer serial({_ceil(n, columns)}) > "
    wanted += f"k serial({k}) > i_inner serial({rows}) > j_inner serial({columns})"
    expect_nest(
        path_to(_nest(schedule), names[-1], look="the primitives"),
        wanted if batch is None else f"batch parallel({batch}) > {wanted}",
        _SPLIT,
        order="the order of the loops given to schedule.reorder: all of k within a tile",
        kinds="tile only splits and reorders; every loop stays as it is: vectorize and "
        "parallelize are exercises of their own",
    )
    _expect_returned(returned, schedule, block)
    if m % rows:  # guarded; the others differ in numbers only
        a, b = (*outer, m, k), (*outer, k, n)
        expect_product(build_module(schedule.mod), a, b, look="the primitives")


def _expect_returned(returned: Any, schedule: Any, block: Any) -> None:
    """`returned` is a list of the block's last five loops."""
    now = schedule.get_loops(block)[-5:]
    is_list = isinstance(returned, list | tuple) and len(returned) == 5
    expect(
        is_list
        and all(
            schedule.get(loop).loop_var.same_as(schedule.get(other).loop_var)
            for loop, other in zip(returned, now, strict=True)
        ),
        expected="the list [i_outer, j_outer, k, i_inner, j_inner] returned",
        seen="other loops, or another order" if is_list else f"{type(returned).__name__} returned",
        look="the return statement: what split and get_loops gave, in the new order",
    )


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
    demonstrate=lambda vectorize: _shown(_tiled((64, 48, 32), (8, 16)), vectorize),
)
def check_vectorize(vectorize: Function) -> None:
    rows, columns = draw_distinct(2, [8, 16, 24, 32, 40])
    m, n, k = draw_distinct(3, range(41, 70))
    for sizes, batch, names in (  # tiles that divide, tiles that do not
        ((3 * rows, 2 * columns, k), None, "ABC"),
        ((m, n, k), 2, "PQR"),
    ):
        schedule, block = _tiled(sizes, (rows, columns), batch, names)
        accepted(vectorize, schedule, block)
        loops = path_to(_nest(schedule), names[-1], look="the primitive")
        expect_loops(
            loops[-1].kind == "vectorized" and int(loops[-1].extent) >= _LANES,
            loops,
            f"the innermost loop, {loops[-1].name}, is vectorized, {_LANES} lanes or more",
            "the loop given to schedule.vectorize: the last of get_loops(block)",
        )
        others = [loop.name for loop in loops[:-1] if loop.kind != "serial"]
        expect_loops(
            not others,
            loops,
            "only the innermost loop changes, the others stay serial",
            f"what makes {', '.join(others)} other than serial",
        )
        outer = [] if batch is None else [batch]
        wanted = [*outer, _ceil(sizes[0], rows), _ceil(sizes[1], columns), sizes[2], rows]
        # The last one may be split again.
        inner = math.prod(int(loop.extent) for loop in loops[len(wanted) :])
        expect_loops(
            [loop.extent for loop in loops[: len(wanted)]] == wanted
            and columns <= inner < 2 * columns,
            loops,
            "the five loops of the tiling, in their order",
            "vectorize changes how a loop runs, not which loops there are",
        )
        shape = (*outer, sizes[0], sizes[2]), (*outer, sizes[2], sizes[1])
        expect_product(build_module(schedule.mod), *shape, look="the primitive")


# Floats in the shortest vector register, of 128 bits.
_LANES = 4


@PHASE.exercise(
    "parallelize",
    engine=CURRENT,
    title="share the tiles among the threads",
    hints=(
        "Every tile of C can be computed by another thread. Which two loops together count the "
        "tiles, and which primitive makes one loop of two?",
        "i_outer and j_outer are the first two loops of get_loops(block). schedule.fuse makes one "
        "loop over all tiles of them; TVM cuts it into equal shares, one per thread.",
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
    demonstrate=lambda parallelize: _shown(_tiled((64, 48, 32), (8, 16)), parallelize),
)
def check_parallelize(parallelize: Function) -> None:
    tiles = draw_distinct(2, [6, 8, 16, 24, 32])
    m, n, k = draw_distinct(3, range(41, 90))
    for sizes, last, names in (
        ((5 * tiles[0], 3 * tiles[1], 13), "vectorized", "ABC"),
        ((m, n, k), "serial", "PQR"),
    ):
        schedule, block = _tiled(sizes, tiles, names=names)
        if last == "vectorized":
            schedule.vectorize(schedule.get_loops(block)[-1])
        accepted(parallelize, schedule, block)
        loops = path_to(_nest(schedule), names[-1], look="the primitives")
        parallel = [loop for loop in loops if loop.kind == "parallel"]
        rows, columns = _ceil(sizes[0], tiles[0]), _ceil(sizes[1], tiles[1])
        expect_loops(
            len(parallel) == 1 and loops[0] is parallel[0],
            loops,
            "one parallel loop, the outermost",
            "schedule.parallel: give it the loop over tiles. Inside k the threads would "
            "be started and awaited again at every step",
        )
        expect_loops(
            parallel[0].extent == rows * columns,
            loops,
            f"the parallel loop runs over all {rows}·{columns} = {rows * columns} tiles",
            "schedule.fuse(i_outer, j_outer): i_outer alone has too few iterations to "
            "share evenly when C has few rows",
        )
        expect_nest(
            loops[1:],
            f"k serial({sizes[2]}) > i_inner serial({tiles[0]}) > j_inner {last}({tiles[1]})",
            "what else the function changes: inside the parallel loop all is as before",
        )
        shape = (sizes[0], sizes[2]), (sizes[2], sizes[1])
        expect_product(build_module(schedule.mod), *shape, look="the primitives")


@PHASE.exercise(
    "register_block",
    engine=CURRENT,
    title="add a tile of C up in registers, write it back once",
    hints=(
        "Like tile, but split k too and change the inner order. New: cache_write puts a buffer "
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
    demonstrate=lambda register_block: _shown(
        matmul_schedule(64, 48, 32), register_block, 8, 16, 4
    ),
)
def check_register_block(register_block: Function) -> None:
    rows, columns, steps = draw_distinct(3, [3, 5, 6, 7, 8, 16])
    m, n, k = 5 * rows, 3 * columns, 7 * steps
    schedule, block = matmul_schedule(m, n, k)
    accepted(register_block, schedule, block, rows, columns, steps)
    loops = expect_register_block(schedule, rows, columns, steps)
    expect_nest(
        loops,
        "i_outer serial(5) > j_outer serial(3) > k_outer serial(7) > "
        f"k_inner unrolled({steps}) > i_inner unrolled({rows}) > j_inner vectorized({columns})",
        f"for {m}x{n}x{k} by {rows}, {columns} and {steps}: schedule.reorder, and {_SPLIT}",
    )
    expect_product(build_module(schedule.mod), (m, k), (k, n), look="the primitives")

    # Under a loop that is parallel already, and with tiles that do not divide. The parallel loop's
    # rows are a multiple of the tile's: of two nested splits that both round up,
    # reverse_compute_at keeps the outer bound alone, and the copy to C would then write one row
    # of the next thread's part, with whatever its own buffer holds there.
    rows, columns, steps = draw_distinct(3, [2, 3, 4, 8])
    schedule, block = matmul_schedule(44, 37, 23, names="PQR")
    outer, _ = schedule.split(schedule.get_loops(block)[0], [None, 7 * rows])
    schedule.parallel(outer)
    accepted(register_block, schedule, block, rows, columns, steps)
    loops = expect_register_block(schedule, rows, columns, steps)
    expect_nest(
        loops[:3],
        f"the one outside i parallel({_ceil(44, 7 * rows)}) > i_outer serial(7) > "
        f"j_outer serial({_ceil(37, columns)})",
        "get_loops(block)[-3:], so that outer loops are left alone",
    )
    expect_product(build_module(schedule.mod), (44, 23), (23, 37), look="the primitives")

    for tile in ((1, 1, 1), (4, 1, 2), (1, 8, 3)):
        schedule, block = matmul_schedule(9, 9, 9)
        accepted(register_block, schedule, block, *tile)
        expect_product(
            build_module(schedule.mod),
            (9, 9),
            (9, 9),
            what="C with rows={}, columns={}, unroll_k={}".format(*tile),
            look="preserve_unit_loops=True of reverse_compute_at: without it a loop of one "
            "iteration is dropped, and the last of get_loops is another",
        )


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


def _expect_packed(
    schedule: Any, statement: Statement, shape: tuple[int, int, int], real: tuple[int, int]
) -> None:
    """The buffer that `statement` packs to has this shape: blocks, k, rows or columns of a block.

    Past the `real` rows or columns, and steps of k, it holds zeros.
    """
    seen = tuple(int(extent) for extent in allocated(schedule)[statement.writes].shape)
    expect(
        seen == shape,
        expected=f"{statement.writes} of shape {list(shape)}: what one tile reads at a step of k "
        "lies side by side, and k is rounded up to a multiple of unroll_k",
        seen=str(list(seen)),
        look=f"the shape of {statement.writes}: blocks, then k, then the rows or columns of one "
        "tile",
    )
    blocks, steps, width = shape
    for at, padded in (
        ((blocks - 1, 0, width - 1), blocks * width > real[0]),
        ((0, steps - 1, 0), steps > real[1]),
    ):
        value = _value_at(schedule, statement, at) if padded else "0"
        expect(
            value == "0",
            expected=f"zeros in {statement.writes} past the matrix's edge, at {list(at)}",
            seen=value,
            look="the condition of te.if_then_else: both the row or column, and k",
        )


def _value_at(schedule: Any, statement: Statement, at: tuple[int, ...]) -> str:
    """What a statement stores there: "0", or an expression as text."""
    import tvm

    store = schedule.get(schedule.get_sblock(statement.name)).body
    analyzer = tvm.sym.Analyzer()
    for variable, index in zip(store.indices, at, strict=True):
        analyzer.bind(variable, tvm.tirx.const(index, str(variable.ty.dtype)))
    value = analyzer.simplify(store.value)
    return "0" if getattr(value, "value", None) == 0 else str(value)


@PHASE.exercise(
    "packed_matmul",
    engine=CURRENT,
    title="a matmul near the processor's peak",
    hints=(
        "The inputs A and B, then four stages: A_packed, B_packed, the sum over k, and C. The "
        "packed ones use te.if_then_else to put zeros where a block reaches past the matrix. If "
        "the sum is a te.compute T of shape (row blocks, column blocks, rows, columns), its loops "
        "are tiled from the start.",
        "A_packed[b, r, i] is te.if_then_else(te.all(b * rows + i < m, r < k), A[b * rows + i, r], "
        "0.0), where r runs over k rounded up to steps of unroll_k. "
        "C reads T[i // rows, j // columns, i % rows, j % columns]. set_scope(block, 0, "
        '"local") makes the sum\'s own buffer the accumulator, and C, moved to the loop over '
        "row blocks by reverse_compute_at, is the write-back.",
        "Begin as fresh_schedule does, with [A, B, C]; get_loops of T's block are row blocks, "
        "column blocks, i, j and k. Split k, then reorder(outer, inner, k_outer, k_inner, i, j), "
        "outer being the column blocks. "
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
    rows, columns = draw_distinct(2, [3, 5, 6, 8, 16])
    (steps,) = draw_distinct(1, [2, 3, 4])
    m, n, k = 3 * rows + 2, 5 * columns + 1, 4 * steps + 1
    tiles = {"rows": rows, "columns": columns, "unroll_k": steps}
    _check_packed(packed_matmul, (m, n, k), tiles)
    _check_packed(packed_matmul, (m, n, k), {**tiles, "rows_first": True})
    _check_packed(packed_matmul, (2 * rows, 3 * columns, 12), {"rows": rows, "columns": columns})
    for sizes, (rows, columns, steps) in (((1, 9, 3), (4, 8, 2)), ((5, 7, 3), (1, 1, 1))):
        tiles = {"rows": rows, "columns": columns, "unroll_k": steps}
        _check_packed(packed_matmul, sizes, tiles, loops=False)


def _check_packed(
    packed_matmul: Function,
    sizes: tuple[int, int, int],
    options: dict[str, Any],
    loops: bool = True,
) -> None:
    """With `loops`, none of which then has one iteration, they are looked at."""
    import tvm

    m, n, k = sizes
    schedule = accepted(packed_matmul, m, n, k, **options)
    expect_type(schedule, tvm.s_tir.Schedule, "packed_matmul returns the tvm.s_tir.Schedule")
    shapes = [
        (tuple(int(extent) for extent in each.shape), str(each.dtype))
        for each in schedule.mod["main"].params
    ]
    wanted = [(shape, "float32") for shape in ((m, k), (k, n), (m, n))]
    expect(
        shapes == wanted,
        expected=f"main(A, B, C) of {wanted[0]}, {wanted[1]} and {wanted[2]}",
        seen=str(shapes),
        look="the placeholders, and the list given to te.create_prim_func",
    )
    rows, columns = options["rows"], options["columns"]
    padded = _ceil(k, options.get("unroll_k", 4)) * options.get("unroll_k", 4)
    around, sides = _expect_sides(schedule, sizes, (rows, columns), padded)
    if loops:
        steps = options.get("unroll_k", 4)
        first = options.get("rows_first", False)
        expect_register_block(schedule, rows, columns, steps)
        before, near = sides[::-1] if first else sides
        _expect_parallel(around, near, before, f"rows_first={first}")
        expect_loops(
            [loop.extent for loop in around[1:3]] == [before.blocks, _ceil(k, steps)],
            around,
            f"inside it the {before.blocks} {before.block} blocks, then k_outer of "
            f"{_ceil(k, steps)} iterations",
            "schedule.reorder, and split(k_loop, [None, unroll_k])",
        )
        packing = sides[1].packing
        expect_loops(
            first or (packing[-1].kind, packing[-1].extent) == ("vectorized", columns),
            packing,
            f"B is packed with its {columns} columns vectorized",
            "schedule.vectorize of the last loop of B_packed's block",
        )
    _expect_unguarded(schedule)
    expect_product(
        build_module(schedule.mod),
        (m, k),
        (k, n),
        look="what the packed buffers hold past the matrix's edge, and the indices",
    )


def _expect_unguarded(schedule: Any) -> None:
    """The statement that adds up has no condition, neither around it nor in its formula."""
    update = accumulation(_nest(schedule))[1]
    block = schedule.get(schedule.get_sblock(update.name))
    chooses = re.search(r"if_then_else|Select", str(block.body)) is not None
    expect(
        not update.guards and not chooses,
        expected="no guard in the loop over k: the packed buffers hold zeros past the edges",
        seen=f"{update.name} tests {' and '.join(update.guards) or 'a condition'} at every step",
        look="the packed buffers' extents: rows, columns and k rounded up to whole blocks, k to a "
        "multiple of unroll_k",
    )


def _expect_sides(
    schedule: Any, sizes: tuple[int, int, int], tile: tuple[int, int], padded: int
) -> "tuple[tuple[Loop, ...], list[_Side]]":
    """A and B are packed with `padded` steps of k, and the sum reads what they were packed to.

    Returns the loops around the sum, and the two operands.
    """
    m, n, k = sizes
    nest = _nest(schedule)
    sides, packed = [], []
    for block, source, size, width in (("row", "A", m, tile[0]), ("column", "B", n, tile[1])):
        around, statement = _packing(nest, source)
        blocks = _ceil(size, width)
        _expect_packed(schedule, statement, (blocks, padded, width), (size, k))
        sides.append(_Side(block, source, blocks, around))
        packed.append(statement.writes)
    loops, update = accumulation(nest)
    expect(
        set(update.reads) == {update.writes, *packed},
        expected=f"{update.name} reads {' and '.join(packed)}",
        seen=f"it reads {', '.join(update.reads)}",
        look="the formula inside te.sum",
    )
    return loops, sides


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
    expect_loops(
        loops[0].kind == "parallel" and loops[0].extent == near.blocks,
        loops,
        f"the outermost loop is parallel({near.blocks}), the {near.block} blocks, with {when}",
        "schedule.parallel and the order of the loops",
    )
    expect(
        shared_loops(near.packing, loops) == 1,
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
        "The worked example in_blocks_classic has the form. New are the axis of the sum, the "
        "fused loop, and that a stage's primitives are called one after the other.",
        "schedule = te.create_schedule(C.op); i, j = C.op.axis and (k,) = C.op.reduce_axis. "
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
        loop_nest(classic_statement(tile_classic(matmul_tensors(64, 48, 32), 8, 16)))
    ),
)
def check_tile_classic(tile_classic: Function) -> None:
    from tvm import te

    drawn = draw_distinct(2, [5, 6, 7, 9, 11])
    (k,) = draw_distinct(1, range(13, 30))
    for (rows, columns), short, names in (  # tiles that divide, tiles that do not
        (drawn, (0, 0), "ABC"),
        (drawn[::-1], (2, 3), "PQR"),
    ):
        m, n = 4 * rows - short[0], 5 * columns - short[1]
        tensors = matmul_tensors(m, n, k, names=names)
        schedule = tile_classic(tensors, rows, columns)
        expect_type(
            schedule,
            te.schedule.Schedule,
            "tile_classic returns the schedule of te.create_schedule",
        )
        nest = loop_nest(classic_statement(schedule))
        loops = next((path for path, each in paths(nest) if len(each.reads) > 1), ())
        parallel = [loop for loop in loops if loop.kind == "parallel"]
        expect_loops(
            [loop.extent for loop in parallel] == [4 * 5] and loops[0] is parallel[0],
            loops,
            "the outermost loop is parallel over all 4·5 = 20 tiles",
            "schedule[C].parallel(schedule[C].fuse(i_outer, j_outer)), and whose factor is "
            "whose: tile_m is of rows (i), tile_n of columns (j)",
        )
        expect_nest(
            loops,
            f"tiles parallel(20) > k serial({k}) > i_inner serial({rows}) > "
            f"j_inner vectorized({columns})",
            "schedule[C].split(i, factor=tile_m) and (j, factor=tile_n); `factor` is the extent "
            "of the inner loop",
            order="the order given to schedule[C].reorder: all of k within a tile",
            kinds="schedule[C].vectorize(j_inner)",
        )
        expect_product(build_schedule(schedule, tensors), (m, k), (k, n), look="the primitives")


def _shown(scheduled: tuple[Any, Any], function: Function, *arguments: int) -> str:
    """The nest after `function` has changed a schedule's block."""
    schedule, block = scheduled
    function(schedule, block, *arguments)
    return format_nest(_nest(schedule))
