"""Phase 2's exercises and how they are graded: the loop nest first, then its values.

In the order of the course, each `check_NAME` beside the schedules that it starts from and what only
it expects:

- one primitive or two each: `check_tile`, `check_vectorize`, `check_parallelize`;
- the steps of `register_block`: `check_tile_with_k`, `check_accumulate_locally`,
  `check_fill_registers`, and `check_register_block` itself;
- the steps of `packed_matmul`: `check_pack_operand`, `check_packed_product`, `check_order_packed`,
  `check_place_copies`, and `check_packed_matmul` itself;
- the same in classic TVM: `check_tile_classic`.

A step starts from the reference answers of the steps before it. What several of them expect of
loops is in `tvm_practice/course/nests.py`, products and their values in
`tvm_practice/course/products.py`.
"""

import math
import re
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    draw_distinct,
    draw_normal,
    expect,
    expect_close,
    expect_type,
    fail,
    path_to,
    show,
    statements,
    varied,
)
from tvm_practice.course.lowering import (
    build_expression,
    build_expressions,
    build_module,
    build_schedule,
    lower_expression,
    stages_of,
)
from tvm_practice.course.nests import (
    accepted,
    accumulation,
    allocated,
    expect_axes,
    expect_block,
    expect_local,
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
        "Three primitives of the file's table, in the order of the worked example in_tiles. New: "
        "the loop k, which stays whole, and the loops that may be outside i.",
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
        ((4 * rows, 3 * columns, k), (rows, columns), _TWO_OUTSIDE),
    ):
        _check_tiled(tile, sizes, tiles, batch)
    for each in varied(m, n, k, rows, columns):
        _check_tiled(tile, each[:3], each[3:], None, run=False)


# So many batches are two serial loops outside i, where others are one parallel loop.
_TWO_OUTSIDE = 6


def _loops_outside(schedule: Any, block: Any, batch: int | None) -> str:
    """Make the loops outside i, and tell them as `expect_nest` takes them."""
    if batch is None:
        return ""
    outermost = schedule.get_loops(block)[0]
    if batch == _TWO_OUTSIDE:
        schedule.split(outermost, [2, None])
        return f"b_outer serial(2) > b_inner serial({batch // 2}) > "
    schedule.parallel(outermost)
    return f"b parallel({batch}) > "


def _drawn_sizes_and_tiles() -> tuple[tuple[int, int, int], tuple[int, int]]:
    """Extents of a product and a tile that no mistake gives other loops of the same extents.

    Neither rows and columns exchanged, nor a number of tiles rounded down: 41 rows in 41 // 6
    tiles would be loops of 6 and 7, where loops of 7 and 6 are wanted.
    """
    while True:
        m, n, k = draw_distinct(3, range(23, 60))
        rows, columns = draw_distinct(2, [5, 6, 7, 9, 10, 11])
        tiles = {_ceil(m, rows), _ceil(n, columns)}
        pairs = list(product((m, n), (rows, columns)))
        if (
            tiles != {_ceil(m, columns), _ceil(n, rows)}
            and all(extent % size for extent, size in pairs)
            and not {extent // size for extent, size in pairs} & {rows, columns}
        ):
            return (m, n, k), (rows, columns)


def _check_tiled(
    tile: Function,
    sizes: Sequence[int],
    tiles: Sequence[int],
    batch: int | None,
    run: bool = True,
) -> None:
    (m, n, k), (rows, columns) = sizes, tiles
    names = "ABC" if batch is None else "PQR"
    schedule, block = matmul_schedule(m, n, k, batch, names=names)
    outer: tuple[int, ...] = () if batch is None else (batch,)
    outside = _loops_outside(schedule, block, batch)
    returned = accepted(tile, schedule, block, rows, columns)
    wanted = f"i_outer serial({_ceil(m, rows)}) > j_outer serial({_ceil(n, columns)}) > "
    wanted += f"k serial({k}) > i_inner serial({rows}) > j_inner serial({columns})"
    expect_nest(
        path_to(_nest(schedule), names[-1], look="the primitives"),
        f"{outside}{wanted}",
        _SPLIT,
        order="the order of the loops given to schedule.reorder: all of k within a tile",
        kinds="tile only splits and reorders; all loops stay serial: vectorize and parallelize "
        "are separate exercises",
    )
    _expect_returned(returned, schedule, block, "[i_outer, j_outer, k, i_inner, j_inner]")
    _expect_statements(schedule, 1)
    expect_axes(schedule, block, f"i*{rows} j*{columns} k i j", look=_SPLIT)
    if run and m % rows:  # guarded; the others differ in numbers only
        a, b = (*outer, m, k), (*outer, k, n)
        expect_product(build_module(schedule.mod), a, b, look="the primitives")


def _expect_statements(schedule: Any, count: int) -> None:
    """There are so many statements: nothing is copied besides."""
    found = statements(_nest(schedule))
    expect(
        len(found) == count,
        expected=f"{count} statement{'s' * (count > 1)}",
        seen=", ".join(f"{each.writes} <- {', '.join(each.reads)}" for each in found),
        look="another change to the schedule, such as an extra cache_read or cache_write",
    )


def _expect_returned(returned: Any, schedule: Any, block: Any, names: str) -> None:
    """`returned` is a list of the block's last loops, which are called `names`."""
    count = names.count(",") + 1
    now = schedule.get_loops(block)[-count:]
    is_list = isinstance(returned, list | tuple) and len(returned) == count
    expect(
        is_list
        and all(
            schedule.get(loop).loop_var.same_as(schedule.get(other).loop_var)
            for loop, other in zip(returned, now, strict=True)
        ),
        expected=f"the list {names} returned",
        seen="other loops, or another order" if is_list else f"{type(returned).__name__} returned",
        look="the return statement: the loops from split and get_loops, in the new order",
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
    even, odd = draw_distinct(2, [8, 16, 24, 32, 40]), draw_distinct(2, [7, 9, 13, 15, 21])
    m, n, k = draw_distinct(3, range(41, 70))
    for tiles, sizes, batch, names in (  # tiles that divide, tiles that do not
        (even, (9 * even[0], 2 * even[1], k), None, "ABC"),
        (odd, (m, n, k), 2, "PQR"),
    ):
        schedule = _expect_vectorized(vectorize, sizes, tiles, batch, names)
        outer = [] if batch is None else [batch]
        shape = (*outer, sizes[0], sizes[2]), (*outer, sizes[2], sizes[1])
        expect_product(build_module(schedule.mod), *shape, look="the primitive")
    few = [(9, 13, 5, 2, columns) for columns in (*range(2, 8), 128)]
    for each in (*few, *varied(m, n, k, *even)):
        _expect_vectorized(vectorize, each[:3], each[3:], None, "ABC")


def _expect_vectorized(
    vectorize: Function,
    sizes: Sequence[int],
    tiles: Sequence[int],
    batch: int | None,
    names: str,
) -> Any:
    """The innermost loop of a tiled product is vectorized; the schedule."""
    rows, columns = tiles
    schedule, block = _tiled(sizes, tiles, batch, names)
    accepted(vectorize, schedule, block)
    loops = path_to(_nest(schedule), names[-1], look="the primitive")
    lanes = min(_LANES, columns)
    _expect_statements(schedule, 1)
    expect_loops(
        loops[-1].kind == "vectorized" and int(loops[-1].extent) >= lanes,
        loops,
        f"the innermost loop, {loops[-1].name}, is vectorized, {lanes} lanes or more",
        "the loop given to schedule.vectorize: the last of get_loops(block)",
    )
    others = [loop.name for loop in loops[:-1] if loop.kind != "serial"]
    expect_loops(
        not others,
        loops,
        "only the innermost loop changes, the others stay serial",
        f"the primitive that makes {', '.join(others)} other than serial",
    )
    outer = [] if batch is None else [batch]
    wanted = [*outer, _ceil(sizes[0], rows), _ceil(sizes[1], columns), sizes[2], rows]
    # The last one may be split again.
    inner = math.prod(int(loop.extent) for loop in loops[len(wanted) :])
    expect_loops(
        [loop.extent for loop in loops[: len(wanted)]] == wanted
        and columns <= inner < max(2 * columns, 16),
        loops,
        "the five loops of the tiling, in their order",
        "vectorize changes how a loop runs, not which loops there are",
    )
    return schedule


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
        ((7 * tiles[0], 5 * tiles[1], 13), "vectorized", "ABC"),
        ((m, n, k), "serial", "PQR"),
        ((tiles[0], tiles[1] + 1, 3), "serial", "ABC"),  # two of them
        ((tiles[0] + 1, tiles[1], 3), "serial", "ABC"),
    ):
        schedule = _expect_tiles_in_parallel(parallelize, sizes, tiles, last, names)
        shape = (sizes[0], sizes[2]), (sizes[2], sizes[1])
        expect_product(build_module(schedule.mod), *shape, look="the primitives")
    for each in varied(m, n, k, *tiles):
        _expect_tiles_in_parallel(parallelize, each[:3], each[3:], "serial", "ABC")


def _expect_tiles_in_parallel(
    parallelize: Function, sizes: Sequence[int], tiles: Sequence[int], last: str, names: str
) -> Any:
    """The tiles of a product are one parallel loop; the schedule."""
    schedule, block = _tiled(sizes, tiles, names=names)
    if last == "vectorized":
        schedule.vectorize(schedule.get_loops(block)[-1])
    accepted(parallelize, schedule, block)
    loops = path_to(_nest(schedule), names[-1], look="the primitives")
    _expect_statements(schedule, 1)
    parallel = [loop for loop in loops if loop.kind == "parallel"]
    rows, columns = _ceil(sizes[0], tiles[0]), _ceil(sizes[1], tiles[1])
    expect_loops(
        len(parallel) == 1 and loops[0] is parallel[0],
        loops,
        "one parallel loop, the outermost",
        "schedule.parallel: give it the loop over tiles. Inside k, the threads would start and "
        "stop at every step",
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
        "another change to the schedule: the loops inside the parallel one stay as they were",
    )
    look = "another change to the schedule: the order of the loops stays as it was"
    first = f"j*{tiles[1]}" if columns > 1 else f"i*{tiles[0]}"
    expect_axes(schedule, block, f"{first} k i j", look=look)
    return schedule


_SIX = "[i_outer, j_outer, k_outer, k_inner, i_inner, j_inner]"


@PHASE.exercise(
    "tile_with_k",
    engine=CURRENT,
    step_of="register_block",
    title="split k as well, and put the loops of a tile innermost",
    hints=(
        "Like tile, with a third loop that is split. Of the six loops, which count tiles, which "
        "steps of the sum, and which are inside a tile?",
        "schedule.get_loops(block)[-3:] are i, j and k. Split each by [None, its inner extent]: "
        "rows, columns and unroll_k.",
        "schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner), then return "
        "these six in a list.",
    ),
    looks_like="""
        for i_0 in serial(8):
            for j_0 in serial(3):
                for k_0 in serial(8):
                    for k_1 in serial(4):
                        for i_1 in serial(8):
                            for j_1 in serial(16):
                                C: C <- A, B, C
    """,
    demonstrate=lambda tile_with_k: _shown(matmul_schedule(64, 48, 32), tile_with_k, 8, 16, 4),
)
def check_tile_with_k(tile_with_k: Function) -> None:
    rows, columns, steps = draw_distinct(3, [3, 5, 6, 7, 9, 11])
    m, n, k = draw_distinct(3, range(23, 60))
    for sizes, tiles, batch in (
        ((m, n, k), (rows, columns, steps), None),
        ((m, n, k), (columns, steps, rows), 2),
        ((4 * rows, 3 * columns, 2 * steps), (rows, columns, steps), None),
        ((rows, columns, 3), (rows + 3, columns + 1, 5), None),
        ((m, n, 1), (1, 1, 1), 3),
        ((4 * rows, 3 * columns, 2 * steps), (rows, columns, steps), _TWO_OUTSIDE),
    ):
        names = "ABC" if batch is None else "PQR"
        schedule, block = matmul_schedule(*sizes, batch, names=names)
        outside = _loops_outside(schedule, block, batch)
        returned = accepted(tile_with_k, schedule, block, *tiles)
        wanted = _six_loops(sizes, tiles)
        expect_nest(
            path_to(_nest(schedule), names[-1], look="the primitives"),
            f"{outside}{wanted}",
            f"{_SPLIT}; k is split by [None, unroll_k]",
            order="the order of the loops given to schedule.reorder: both loops over k outside "
            "those over the tile's rows and columns",
            kinds="tile_with_k only splits and reorders; every loop stays as it is",
        )
        _expect_returned(returned, schedule, block, _SIX)
        if m % rows and sizes[0] == m and n % columns and k % steps:
            outer = () if batch is None else (batch,)
            a, b = (*outer, sizes[0], sizes[2]), (*outer, sizes[2], sizes[1])
            expect_product(build_module(schedule.mod), a, b, look="the primitives")
    for each in varied(m, n, k, rows, columns, steps):
        schedule, block = matmul_schedule(*each[:3])
        returned = accepted(tile_with_k, schedule, block, *each[3:])
        nest = path_to(_nest(schedule), "C", look="the primitives")
        look = f"{_SPLIT}; k is split by [None, unroll_k], whatever the sizes are"
        expect_nest(nest, _six_loops(each[:3], each[3:]), look)
        _expect_statements(schedule, 1)
        _expect_returned(returned, schedule, block, _SIX)
        expect_axes(schedule, block, _six_axes(each[3:]), look=look)


def _six_axes(tile: Sequence[int]) -> str:
    """Along which axes the loops of `tile_with_k` step, as `expect_axes` takes them."""
    return "i*{} j*{} k*{} k i j".format(*tile)


def _six_loops(sizes: Sequence[int], tiles: Sequence[int]) -> str:
    """The loops of `tile_with_k`, as `expect_nest` takes them."""
    outer = [f"serial({_ceil(*each)})" for each in zip(sizes, tiles, strict=True)]
    rows, columns, steps = (f"serial({each})" for each in tiles)
    return (
        f"i_outer {outer[0]} > j_outer {outer[1]} > k_outer {outer[2]} > k_inner {steps} > "
        f"i_inner {rows} > j_inner {columns}"
    )


def _tiled_with_k(
    sizes: Sequence[int], tiles: Sequence[int], *, names: str = "ABC", apart: int | None = None
) -> tuple[Any, Any, list[Any]]:
    """A schedule of a matmul, its block, and the six loops of `tile_with_k`.

    With `apart`, tasks of that many rows run in parallel around them.
    """
    from solutions.manual_schedule import tile_with_k

    schedule, block = matmul_schedule(*sizes, names=names)
    if apart is not None:
        outer, _ = schedule.split(schedule.get_loops(block)[0], [None, apart])
        schedule.parallel(outer)
    return schedule, block, tile_with_k(schedule, block, *tiles)


@PHASE.exercise(
    "accumulate_locally",
    engine=CURRENT,
    step_of="register_block",
    title="add a tile of C up in a local buffer, copy it to C once",
    hints=(
        "Two primitives of the file's table: one puts a buffer between a block and its output, "
        "one moves a consumer, here the new copy, into a loop of its producer.",
        'schedule.cache_write(block, 0, "local") returns the copying block; '
        "schedule.reverse_compute_at(copy, loop, preserve_unit_loops=True) moves it.",
        "schedule.vectorize(schedule.get_loops(copy)[-1]) after the move, because moving a "
        "block makes new loops; return the copy.",
    ),
    looks_like="""
        for i_0 in serial(8):
            for j_0 in serial(3):
                for k_0 in serial(8):
                    for k_1 in serial(4):
                        for i_1 in serial(8):
                            for j_1 in serial(16):
                                C: C_local <- A, B, C_local
                for ax0 in serial(8):
                    for ax1 in vectorized(16):
                        C_local: C <- C_local
    """,
    demonstrate=lambda accumulate_locally: _accumulated(accumulate_locally),
)
def check_accumulate_locally(accumulate_locally: Function) -> None:
    rows, columns, steps = draw_distinct(3, [3, 5, 6, 7, 8])
    whole = (4 * rows, 3 * columns, 2 * steps)
    for sizes, tiles, at, names in (
        (whole, (rows, columns, steps), 1, "ABC"),
        (whole, (rows, columns, steps), 0, "ABC"),
        ((4 * rows - 1, 3 * columns - 2, 2 * steps + 1), (rows, columns, steps), 1, "PQR"),
        ((4, 5, 6), (1, 1, 1), 1, "ABC"),
    ):
        schedule, block, loops = _tiled_with_k(sizes, tiles, names=names)
        copy = accepted(accumulate_locally, schedule, block, loops[at])
        own = (tiles[0], tiles[1] if at else sizes[1])
        _expect_copied(schedule, copy, names[-1], at + 1, own)
        expect_nest(
            accumulation(_nest(schedule))[0],
            _six_loops(sizes, tiles),
            "another change to the schedule: the loops of the sum stay as they are",
        )
        found = statements(_nest(schedule))
        expect(
            len(found) == 2,
            expected="two statements: the sum, and the copy to the output",
            seen=", ".join(f"{each.writes} <- {', '.join(each.reads)}" for each in found),
            look="another change to the schedule: fill_registers does the zeroing, and the "
            "inputs are read as before",
        )
        a, b = (sizes[0], sizes[2]), (sizes[2], sizes[1])
        expect_product(build_module(schedule.mod), a, b, look="the primitives")
    schedule, block, loops = _tiled_with_k(whole, (rows, columns, steps), apart=2 * rows)
    copy = accepted(accumulate_locally, schedule, block, loops[1])  # with a loop outside i
    _expect_copied(schedule, copy, "C", 3, (rows, columns))
    for m, n, k, *drawn in varied(*whole, rows, columns, steps):
        schedule, block, loops = _tiled_with_k((m, n, k), drawn)
        copy = accepted(accumulate_locally, schedule, block, loops[1])
        _expect_copied(schedule, copy, "C", 2, (min(m, drawn[0]), min(n, drawn[1])))
        look = "another change to the schedule: the loops of the sum stay as they are"
        expect_nest(accumulation(_nest(schedule))[0], _six_loops((m, n, k), drawn), look)
        expect_axes(schedule, block, _six_axes(drawn), look=look)


def _accumulated(accumulate_locally: Function) -> str:
    schedule, block, loops = _tiled_with_k((64, 48, 32), (8, 16, 4))
    accumulate_locally(schedule, block, loops[1])
    return format_nest(_nest(schedule))


def _expect_copied(
    schedule: Any, returned: Any, output: str, depth: int, own: tuple[int, int]
) -> None:
    """The sum is in a local buffer, which the block `returned` copies to C in `depth` loops.

    `own` are the extents of the copy's own loops, the last one vectorized.
    """
    nest = _nest(schedule)
    around, update = accumulation(nest)
    expect_local(schedule, update)
    copies = [
        each for each in paths(nest) if each[1].reads == (update.writes,) and each[1] != update
    ]
    expect(
        len(copies) == 1 and copies[0][1].writes == output,
        expected=f"one statement copies {update.writes} to {output}",
        seen=f"{len(copies)} of them",
        look='the block that cache_write(block, 0, "local") returns',
    )
    loops, statement = copies[0]
    where = around[depth - 1].name
    expect(
        shared_loops(loops, around) == depth,
        expected=f"{update.writes} is copied inside {where}, the loop given, after the loops of "
        "the sum",
        seen=f"copied in {show(loops)}, added up in {show(around)}",
        look="schedule.reverse_compute_at(copy, loop)",
    )
    expect_loops(
        [loop.extent for loop in loops[depth:]] == list(own),
        loops,
        f"the copy's own loops inside {where}: {own[0]} rows and {own[1]} columns",
        "preserve_unit_loops=True of reverse_compute_at: without it a loop of one iteration is "
        "dropped, and the last of get_loops is another",
    )
    expect_loops(
        [loop.kind for loop in loops[depth:]] == ["serial", "vectorized"],
        loops,
        "the copy's last loop, its columns, is vectorized",
        "schedule.vectorize of the last of get_loops(copy), after the copy was moved",
    )
    expect_block(schedule, returned, statement.name, "the block that copies")


@PHASE.exercise(
    "fill_registers",
    engine=CURRENT,
    step_of="register_block",
    title="vectorize, unroll, and set to zero before the sum",
    hints=(
        "Four primitives, one for each of the last four loops. Which of them must come last, and "
        "what happens to loops that are changed after it?",
        "k_outer, k_inner, i_inner, j_inner are the last four of get_loops(block). A loop that "
        "is unrolled or vectorized before schedule.decompose_reduction stays so in both "
        "statements.",
        "schedule.vectorize(j_inner), schedule.unroll(i_inner), schedule.unroll(k_inner), then "
        "schedule.decompose_reduction(block, k_outer).",
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
    demonstrate=lambda fill_registers: _shown(
        _to_fill((64, 48, 32), (8, 16, 4), names="ABC", apart=None), fill_registers
    ),
)
def check_fill_registers(fill_registers: Function) -> None:
    small = draw_distinct(3, [3, 5, 6, 7, 8])
    large = draw_distinct(3, [17, 18, 19, 20])
    for (rows, columns, steps), names, short in (
        (small, "ABC", 0),
        (small, "PQR", 1),
        (large, "ABC", 0),
        ((2, 2, 2), "ABC", 0),
    ):
        apart = 4 * rows if short else None
        sizes = ((7 if short else 4) * rows, 3 * columns - short, 2 * steps + short)
        schedule, block = _to_fill(sizes, (rows, columns, steps), names=names, apart=apart)
        before = accumulation(_nest(schedule))[0]
        accepted(fill_registers, schedule, block)
        loops = expect_register_block(schedule, rows, columns, steps)
        outer = " > ".join(f"{each.name} {each.kind}({each.extent})" for each in before[:-3])
        expect_nest(
            loops,
            f"{outer} > k_inner unrolled({steps}) > i_inner unrolled({rows}) > "
            f"j_inner vectorized({columns})",
            "which loops: k_inner, i_inner and j_inner are the last three of get_loops(block)",
        )
        _expect_zeroed_alike(schedule)
        a, b = (sizes[0], sizes[2]), (sizes[2], sizes[1])
        expect_product(build_module(schedule.mod), a, b, look="the primitives")
    for m, n, k, *drawn in varied(4 * rows, 3 * columns, 2 * steps, *small):
        schedule, block = _to_fill((m, n, k), drawn, names="ABC", apart=None)
        accepted(fill_registers, schedule, block)
        _expect_in_registers(schedule, (m, n, k), drawn)


def _expect_in_registers(schedule: Any, sizes: Sequence[int], tile: Sequence[int]) -> None:
    """Whatever the sizes are, the loops of a register block, zeroed before and copied once."""
    m, n, k = sizes
    rows, columns, steps = tile
    _expect_statements(schedule, 3)
    around, update = accumulation(_nest(schedule))
    expect_nest(
        around,
        f"i_outer serial({_ceil(m, rows)}) > j_outer serial({_ceil(n, columns)}) > "
        f"k_outer serial({_ceil(k, steps)}) > k_inner unrolled({steps}) > "
        f"i_inner unrolled({rows}) > j_inner vectorized({columns})",
        f"for {m}x{n}x{k} by {rows}, {columns} and {steps}: the same primitives for all sizes",
    )
    _expect_zeroed_alike(schedule)
    block = schedule.get_sblock(update.name)
    expect_axes(schedule, block, _six_axes(tile), look="the same order of loops for all sizes")


def _to_fill(
    sizes: Sequence[int], tiles: Sequence[int], *, names: str, apart: int | None
) -> tuple[Any, Any]:
    """A schedule and its block, as `accumulate_locally` leaves them."""
    from solutions.manual_schedule import accumulate_locally

    schedule, block, loops = _tiled_with_k(sizes, tiles, names=names, apart=apart)
    accumulate_locally(schedule, block, loops[1])
    return schedule, block


def _expect_zeroed_alike(schedule: Any) -> None:
    """The loops of the statement that sets to zero run as those of the tile do."""
    nest = _nest(schedule)
    around, update = accumulation(nest)
    zeroing = next(path for path, each in paths(nest) if each.writes == update.writes)
    own = zeroing[shared_loops(zeroing, around) :]
    expect_loops(
        [(loop.kind, loop.extent) for loop in own]
        == [(loop.kind, loop.extent) for loop in around[-2:]],
        own,
        f"{update.writes} set to zero in loops that run as the tile's do: {show(around[-2:])}",
        "the order: unrolled and vectorized first, because decompose_reduction copies the loops "
        "as they are",
    )


@PHASE.exercise(
    "register_block",
    engine=CURRENT,
    title="add a tile of C up in registers, write it back once",
    hints=(
        "The three steps above, one after the other. Which loop does the first step pass to the "
        "second?",
        "tile_with_k returns six loops; accumulate_locally takes j_outer: one copy per tile. "
        "In one piece the order of primitives is cache_write, split, reorder, reverse_compute_at, "
        "vectorize, unroll, decompose_reduction.",
        "loops = tile_with_k(schedule, block, rows, columns, unroll_k), then accumulate_locally("
        "schedule, block, loops[1]), then fill_registers(schedule, block).",
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
    _expect_zeroed_alike(schedule)
    written = next(path for path, each in paths(_nest(schedule)) if each.writes == "C")
    expect_loops(
        [(loop.kind, loop.extent) for loop in written[-2:]]
        == [("serial", rows), ("vectorized", columns)],
        written,
        f"a tile copied to C in {rows} rows and {columns} columns, the columns vectorized",
        "the second of the three steps: schedule.vectorize of the last of get_loops(copy)",
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

    _expect_register_tiles_of_any_size(register_block)


def _expect_register_tiles_of_any_size(register_block: Function) -> None:
    """Also tiles of one row, column or step, and larger than the matrices."""
    for tile in ((1, 1, 1), (4, 1, 2), (1, 8, 3), (12, 10, 11)):
        schedule, block = matmul_schedule(9, 9, 9)
        accepted(register_block, schedule, block, *tile)
        seen = accumulation(_nest(schedule))[0]
        rows, columns, steps = tile
        outer = [_ceil(9, each) for each in tile]
        expect_loops(
            [loop.extent for loop in seen] == [*outer, steps, rows, columns],
            seen,
            f"for 9x9x9 by {rows}, {columns} and {steps}: loops of "
            f"{', '.join(map(str, outer))}, {steps}, {rows} and {columns} iterations",
            "the factors of split, used as given: they need not divide the loops",
        )
        expect_product(
            build_module(schedule.mod),
            (9, 9),
            (9, 9),
            what="C with rows={}, columns={}, unroll_k={}".format(*tile),
            look="preserve_unit_loops=True of reverse_compute_at: without it a loop of one "
            "iteration is dropped, and the last of get_loops is another",
        )
    for m, n, k, *drawn in varied(41, 37, 29, *draw_distinct(3, [3, 5, 6, 7])):
        schedule, block = matmul_schedule(m, n, k)
        accepted(register_block, schedule, block, *drawn)
        _expect_in_registers(schedule, (m, n, k), drawn)
        nest = _nest(schedule)
        written = next(path for path, each in paths(nest) if each.writes == "C")
        expect_loops(
            shared_loops(written, accumulation(nest)[0]) == 2,
            written,
            f"for {m}x{n}x{k} by {drawn[0]}, {drawn[1]} and {drawn[2]}: C written in "
            "j_outer, after k_outer",
            "reverse_compute_at(the write-back block, j_outer), for all sizes",
        )
        columns = min(n, drawn[1])
        expect_loops(
            columns == 1 or (written[-1].kind, written[-1].extent) == ("vectorized", columns),
            written,
            f"for {m}x{n}x{k} by {drawn[0]}, {drawn[1]} and {drawn[2]}: a tile copied to C with "
            f"its {columns} columns vectorized",
            "schedule.vectorize of the last of get_loops(copy), for all sizes",
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
    """The buffer that `statement` packs to has this shape: panels, k, rows or columns of a panel.

    Past the `real` rows or columns, and steps of k, it holds zeros.
    """
    seen = tuple(int(extent) for extent in allocated(schedule)[statement.writes].shape)
    expect(
        seen == shape,
        expected=f"{statement.writes} of shape {list(shape)}: a tile's elements for one step of "
        "k are adjacent, and k is rounded up to a multiple of unroll_k",
        seen=str(list(seen)),
        look=f"the shape of {statement.writes}: panels, then k, then the rows or columns of one "
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
    "pack_operand",
    engine=CURRENT,
    step_of="packed_matmul",
    title="declare a copy of A or B in the order in which tiles read it",
    hints=(
        "One te.compute of three indices: panel, step of the sum, and row or column of the panel. "
        "First work out which row or column of X such an element comes from.",
        "It is row or column b * width + w: X[b * width + w, r] with axis 0, X[r, b * width + w] "
        "with axis 1. The number of panels is the extent of that axis over width, rounded up.",
        "te.compute((panels, depth, width), lambda b, r, w: te.if_then_else(te.all("
        "b * width + w < size, r < k), X[…], 0.0), name=…); X.op.name is X's name.",
    ),
    looks_like="""
        A_packed of A (5, 3), axis 0, width 2, depth 4
        panel 0: 0.0 1.0 | 0.1 1.1 | 0.2 1.2 | 0.0 0.0
        panel 1: 2.0 3.0 | 2.1 3.1 | 2.2 3.2 | 0.0 0.0
        panel 2: 4.0 0.0 | 4.1 0.0 | 4.2 0.0 | 0.0 0.0
    """,
    demonstrate=lambda pack_operand: _shown_packing(pack_operand),
)
def check_pack_operand(pack_operand: Function) -> None:
    from tvm import te

    rows, columns = draw_distinct(2, [3, 4, 5, 6])
    m, n, k = draw_distinct(3, range(13, 30))
    for name, axis, size, steps, width, depth in (
        ("A", 0, m, k, rows, k + 3),
        ("B", 1, n, k, columns, k + 2),
        ("Q", 0, 3 * rows, k, rows, k),
        ("P", 1, 2, 3, 5, 4),
        ("P", 1, 6, 6, 4, 7),  # square, and one step more than X has
        ("Q", 0, 6, 48, 4, 48),
        ("A", 0, m + 1, k, rows, k + 3),  # not the one above: nothing is kept from call to call
        *(
            ("PQ"[at % 2], at % 2, size, steps, width, max(depth, steps))
            for at, (size, steps, width, depth) in enumerate(varied(m, k, rows, k + 1))
        ),
        ("P", 1, 2 * columns + 1, columns, columns, columns),  # all that may be equal is
        ("Q", 0, 5, 420, 3, 420),  # a multiple of most small numbers
        ("Q", 1, 420, 5, 7, 6),
    ):
        shape = (size, steps) if axis == 0 else (steps, size)
        X = te.placeholder(shape, name=name)
        packed = pack_operand(X, axis, width, depth)
        what = f"pack_operand({name} {shape}, {axis}, {width}, {depth})"
        expect_type(packed, te.Tensor, f"{what} returns the te.Tensor of te.compute")
        expect(
            str(packed.op.name) == f"{name}_packed",
            expected=f"{what} named {name}_packed",
            seen=str(packed.op.name),
            look='the name= of te.compute: X.op.name with "_packed" after it',
        )
        found, wanted = tuple(map(int, packed.shape)), (_ceil(size, width), depth, width)
        expect(
            found == wanted,
            expected=f"{what} of shape {wanted}: panels, depth, width",
            seen=str(found),
            look="the shape given to te.compute: panels rounded up, then depth, then width",
        )
        (x,) = draw_normal(shape)
        run = build_expression([X, packed])
        expect_close(
            run(x),
            _packed_values(x, axis, width, depth),
            what=what,
            look="whether rows (axis 0) or columns (axis 1) of X are cut into panels, and the two "
            "conditions of te.all: b * width + w inside the axis, r less than k",
        )
        x[-1, :] = x[:, -1] = np.inf
        expect(
            np.array_equal(run(x), _packed_values(x, axis, width, depth)),
            expected=f"{what}: zeros past the edge, even where X holds infinities",
            seen="NaN, or an infinity, or a zero that should be one",
            look="te.if_then_else chooses 0.0 there; an element of X times 0 is NaN if it is "
            "infinite",
        )
        _expect_inside(X, packed, what)


def _expect_inside(X: Any, packed: Any, what: str) -> None:
    """All elements of X that are read are there."""
    from tvm_practice.viz.access import access_program, follow

    read = follow(access_program(lower_expression([X, packed]))).of(str(X.op.name)).elements
    there = math.prod(map(int, X.shape))
    expect(
        bool(((read >= 0) & (read < there)).all()),
        expected=f"{what} reads nothing past the end of {X.op.name}, which has {there} elements",
        seen=f"it reads number {int(read.max())}",
        look="te.if_then_else evaluates only the chosen value; Select evaluates both",
    )


def _packed_values(x: np.ndarray, axis: int, width: int, depth: int) -> np.ndarray:
    """What `pack_operand` makes of these values."""
    by_step = x.T if axis == 0 else x  # [step][row or column]
    steps, size = by_step.shape
    blocks = _ceil(size, width)
    padded = np.zeros((depth, blocks * width), "float32")
    padded[:steps, :size] = by_step
    return padded.reshape(depth, blocks, width).transpose(1, 0, 2)


def _shown_packing(pack_operand: Function) -> str:
    from tvm import te

    A = te.placeholder((5, 3), name="A")
    packed = pack_operand(A, 0, 2, 4)
    values = np.add.outer(np.arange(5), np.arange(3) / 10).astype("float32")
    lines = [f"{packed.op.name} of A (5, 3), axis 0, width 2, depth 4"]
    for index, panel in enumerate(build_expression([A, packed])(values)):
        said = " | ".join(" ".join(f"{each:.1f}" for each in step) for step in panel)
        lines.append(f"panel {index}: {said}")
    return "\n".join(lines)


@PHASE.exercise(
    "packed_product",
    engine=CURRENT,
    step_of="packed_matmul",
    title="declare the product of packed operands, tile by tile",
    hints=(
        "Two stages. T has four indices: two select the tile and two the element in it, and its "
        "sum runs over the second axis of both operands. Then C: which tile holds row i and "
        "column j?",
        "r = te.reduce_axis((0, depth)); T is the te.sum of A_packed[bi, r, i] * "
        "B_packed[bj, r, j]. The shapes of both operands give all extents.",
        "C = te.compute((m, n), lambda i, j: T[i // rows, j // columns, i % rows, j % columns], "
        'name="C"), and name="T" for the other.',
    ),
    looks_like="""
        for bi in serial(8):
            for bj in serial(3):
                for i in serial(8):
                    for j in serial(16):
                        for k in serial(32):
                            T: T <- A_packed, B_packed, T
        for i in serial(64):
            for j in serial(48):
                C: C <- T
    """,
    demonstrate=lambda packed_product: format_nest(
        loop_nest(lower_expression(_product_of(packed_product, (64, 48), (8, 16), 32)))
    ),
)
def check_packed_product(packed_product: Function) -> None:
    from tvm import te

    rows, columns = draw_distinct(2, [2, 3, 4, 5])
    (few,) = draw_distinct(1, range(7, 20))
    ragged, whole = (3 * rows - 1, 5 * columns + 1), (2 * rows, 3 * columns)
    # The last ones are declared only: so many steps exceed any bound.
    square = rows, rows
    for (m, n), tile, depth in (
        (ragged, (rows, columns), few),
        (whole, (rows, columns), few),
        ((3 * rows - 1, 2 * rows), square, few),
        ((3 * rows - 1, 1), (rows, columns), few),
        (whole, (rows, columns), 1_000_003),
        ((7, 7), (6, 6), 64),
        ((64, 1), (16, 8), 1),
        ((1, 33), (1, 1), 40),
    ):
        tensors = _product_of(packed_product, (m, n), tile, depth)
        expect_type(tensors[-1], te.Tensor, "packed_product returns the te.Tensor C")
        stages = stages_of(tensors[-1])
        shapes = {name: tuple(map(int, each.shape)) for name, each in stages.items()}
        tiles = (_ceil(m, tile[0]), _ceil(n, tile[1]), *tile)
        expect(
            shapes == {"T": tiles, "C": (m, n)},
            expected=f"stages T of shape {tiles} and C of shape {(m, n)}",
            seen=str(shapes),
            look="the shapes and names of both te.compute: T has the tiles, row panels first",
        )
        steps = math.prod(int(each.dom.extent) for each in stages["T"].op.reduce_axis)
        expect(
            steps == depth,
            expected=f"a sum over all {depth} steps",
            seen=f"over {steps}",
            look="te.reduce_axis((0, depth)), over all of the depth: the second extent of both",
        )
        formula = str(stages["T"].op.body)
        expect(
            "if_then_else" not in formula and "Select" not in formula,
            expected="a sum without a condition: past the edges both operands hold zeros",
            seen=formula,
            look="the expression inside te.sum: only the product",
        )
        if depth != few:
            continue
        a, b = draw_normal(*(tuple(map(int, each.shape)) for each in tensors[:2]))
        if tile == square:
            a *= 2.0**20  # large values, too
        got_t, got_c = build_expressions(tensors[:2], [stages["T"], stages["C"]])(a, b)
        want = np.einsum("xri,yrj->xyij", a, b)
        look = "the indices of A_packed and B_packed, and te.reduce_axis over all of the depth"
        atol = 1e-5 * float(np.abs(a).max())
        expect_close(got_t, want, what=f"T of {tiles}", look=look, atol=atol)
        look = (
            "the indices of T, first the tile and then the place in it: "
            "T[i // rows, j // columns, i % rows, j % columns]"
        )
        flat = want.transpose(0, 2, 1, 3).reshape(tiles[0] * tile[0], tiles[1] * tile[1])
        expect_close(got_c, flat[:m, :n], what=f"C of {(m, n)}", look=look, atol=atol)


def _product_of(
    packed_product: Function, sizes: tuple[int, int], tile: tuple[int, int], depth: int
) -> list[Any]:
    """[A_packed, B_packed, C], both operands placeholders."""
    from tvm import te

    blocks = [_ceil(*each) for each in zip(sizes, tile, strict=True)]
    operands = [
        te.placeholder((count, depth, width), name=name)
        for name, count, width in zip(("A_packed", "B_packed"), blocks, tile, strict=True)
    ]
    return [*operands, packed_product(*operands, *sizes)]


def _packed_stages(sizes: Sequence[int], tile: tuple[int, int], unroll_k: int) -> Any:
    """A schedule of the four stages of a packed matmul, nothing scheduled yet."""
    import tvm
    from tvm import te

    from solutions.manual_schedule import pack_operand, packed_product

    m, n, k = sizes
    depth = _ceil(k, unroll_k) * unroll_k
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    packed = pack_operand(A, 0, tile[0], depth), pack_operand(B, 1, tile[1], depth)
    tensors = [A, B, packed_product(*packed, m, n)]
    function = te.create_prim_func(tensors).with_attr("global_symbol", "main")
    return tvm.s_tir.Schedule(tvm.IRModule({"main": function}))


def _ordered_loops(
    sizes: Sequence[int], tile: tuple[int, int], unroll_k: int, rows_first: bool
) -> str:
    """The loops of T as `order_packed` leaves them, as `expect_nest` takes them."""
    m, n, k = sizes
    blocks = [("row panels", _ceil(m, tile[0])), ("column panels", _ceil(n, tile[1]))]
    outer, inner = blocks if rows_first else blocks[::-1]
    return (
        f"{outer[0]} parallel({outer[1]}) > {inner[0]} serial({inner[1]}) > "
        f"k_outer serial({_ceil(k, unroll_k)}) > k_inner serial({unroll_k}) > "
        f"rows serial({tile[0]}) > columns serial({tile[1]})"
    )


@PHASE.exercise(
    "order_packed",
    engine=CURRENT,
    step_of="packed_matmul",
    title="schedule the tiles of a packed product",
    hints=(
        "T is declared in tiles: only k is left to split. Its own buffer is the accumulator, so "
        "no new block is needed: the file's table has a primitive that changes a buffer's scope.",
        "get_loops of block T are row panels, column panels, rows, columns and k. After split "
        'and reorder: schedule.set_scope(block, 0, "local"), and schedule.reverse_compute_at of '
        "block C into the second loop. TVM drops a loop of one iteration there, so another one "
        "is last.",
        "schedule.reorder(outer, inner, k_outer, k_inner, i, j), where (outer, inner) are column "
        "and row panels, or with rows_first row and column panels. If a tile has several "
        "columns, int(schedule.get(j).extent) > 1, vectorize the last of get_loops(C's block). "
        "schedule.parallel(outer), return outer.",
    ),
    looks_like="""
        for b in serial(8):
            for r in serial(32):
                for w in serial(8):
                    A_packed: A_packed <- A
        for b in serial(3):
            for r in serial(32):
                for w in serial(16):
                    B_packed: B_packed <- B
        for bj in parallel(3):
            for bi in serial(8):
                for k_0 in serial(8):
                    for k_1 in serial(4):
                        for i in serial(8):
                            for j in serial(16):
                                T: T_local <- A_packed, B_packed, T_local
                for ax0 in serial(8):
                    for ax1 in vectorized(16):
                        C: C <- T_local
    """,
    demonstrate=lambda order_packed: _shown_ordered(order_packed),
)
def check_order_packed(order_packed: Function) -> None:
    rows, columns, steps = draw_distinct(3, [2, 3, 4, 5])
    for sizes, tile, unroll_k, rows_first in (
        ((4 * rows - 1, 6 * columns + 1, 3 * steps + 1), (rows, columns), steps, False),
        ((4 * rows - 1, 6 * columns + 1, 3 * steps), (rows, columns), steps, True),
        ((3, 5, 7), (1, 1), steps, False),
        ((3, 5, 7), (1, 2), steps, False),
        ((5, 7, 6), (2, 3), 1, False),
        ((2 * rows + 1, 5, 7), (rows, 1), steps, True),
    ):
        schedule = _packed_stages(sizes, tile, unroll_k)
        returned = accepted(order_packed, schedule, unroll_k, rows_first)
        nest = _nest(schedule)
        loops, update = accumulation(nest)
        expect_nest(
            loops,
            _ordered_loops(sizes, tile, unroll_k, rows_first),
            f"with rows_first={rows_first}: split of k by [None, unroll_k], schedule.reorder",
            order=f"schedule.reorder, with rows_first={rows_first}",
            kinds="schedule.parallel of the outermost loop; the others stay serial",
        )
        _expect_packed_axes(schedule, unroll_k, rows_first, f"rows_first={rows_first}")
        expect_local(schedule, update)
        _expect_loop(schedule, returned, 0)
        copied, statement = next(each for each in paths(nest) if each[1].writes == "C")
        expect(
            statement.reads == (update.writes,),
            expected=f"C is copied from {update.writes}, in which the products add up",
            seen=f"from {', '.join(statement.reads)}",
            look='schedule.set_scope(schedule.get_sblock("T"), 0, "local"): T\'s own buffer, no '
            "other one",
        )
        _expect_tile_written(loops, copied, tile)
        others = [path for path, each in paths(nest) if each.writes.endswith("_packed")]
        expect(
            all(loop.kind == "serial" for path in others for loop in path),
            expected="the loops of A_packed and B_packed as they were, serial",
            seen="; ".join(show(path) for path in others),
            look="another change to the schedule: place_copies moves the copies",
        )
        a, b = (sizes[0], sizes[2]), (sizes[2], sizes[1])
        expect_product(build_module(schedule.mod), a, b, look="the primitives")
    for m, n, k, down, across, unroll_k in varied(23, 31, 17, rows, columns, steps):
        if min(_ceil(m, down), _ceil(n, across), down) > 1:  # else TVM drops one of the loops
            for rows_first in (False, True):
                _expect_ordered(order_packed, (m, n, k), (down, across), unroll_k, rows_first)
    for sizes, rows_first in (((7, columns, 5), False), ((rows, 9, 5), True)):
        schedule = _packed_stages(sizes, (rows, columns), steps)  # one panel is outermost
        accepted(order_packed, schedule, steps, rows_first)
        wanted = _ordered_loops(sizes, (rows, columns), steps, rows_first)
        look = "schedule.parallel of the outermost loop, even if it has one iteration"
        expect_nest(accumulation(_nest(schedule))[0], wanted, look)


def _expect_ordered(
    order_packed: Function,
    sizes: Sequence[int],
    tile: tuple[int, int],
    unroll_k: int,
    rows_first: bool,
) -> None:
    """Whatever the sizes are, the loops of `order_packed`."""
    schedule = _packed_stages(sizes, tile, unroll_k)
    returned = accepted(order_packed, schedule, unroll_k, rows_first)
    nest = _nest(schedule)
    loops, update = accumulation(nest)
    look = f"rows_first={rows_first}, and the same order of loops for all sizes"
    expect_nest(loops, _ordered_loops(sizes, tile, unroll_k, rows_first), look)
    _expect_packed_axes(schedule, unroll_k, rows_first, look)
    expect_local(schedule, update)
    _expect_loop(schedule, returned, 0)
    copied = next(path for path, each in paths(nest) if each.writes == "C")
    _expect_tile_written(loops, copied, tile)


def _expect_packed_axes(schedule: Any, unroll_k: int, rows_first: bool, look: str) -> None:
    """What the loops of T step along, which equal numbers of panels do not tell."""
    panels = "bi bj" if rows_first else "bj bi"
    block = schedule.get_sblock("T")
    wanted = f"{panels} k*{unroll_k} k i j"
    expect_axes(schedule, block, wanted, look=look, axes="bi bj i j k")


def _shown_ordered(order_packed: Function) -> str:
    schedule = _packed_stages((64, 48, 32), (8, 16), 4)
    order_packed(schedule, 4, False)
    return format_nest(_nest(schedule))


def _expect_loop(schedule: Any, returned: Any, at: int) -> None:
    """`returned` is loop number `at` of block T."""
    wanted = schedule.get(schedule.get_loops(schedule.get_sblock("T"))[at]).loop_var
    try:
        seen = schedule.get(returned).loop_var
    except Exception:  # of TVM or of Python, whatever was given
        seen = type(returned).__name__
    expect(
        getattr(seen, "same_as", lambda _: False)(wanted),
        expected=f"the parallel loop, {wanted}, returned",
        seen=str(seen),
        look="the return statement",
    )


def _expect_tile_written(
    loops: Sequence[Loop], copied: Sequence[Loop], tile: tuple[int, int]
) -> None:
    """C is written inside the second loop, after k, its last loop vectorized."""
    expect(
        shared_loops(copied, loops) == 2,
        expected="C written inside the second loop, after k_outer has ended",
        seen=f"written in {show(copied)}, added up in {show(loops)}",
        look='schedule.reverse_compute_at(schedule.get_sblock("C"), the second loop)',
    )
    # Loops of one iteration may be there or not.
    seen = [(loop.kind, loop.extent) for loop in copied[2:] if loop.extent != 1]
    wanted = [each for each in (("serial", tile[0]), ("vectorized", tile[1])) if each[1] != 1]
    expect_loops(
        seen == wanted,
        copied,
        f"C written in {tile[0]} rows and {tile[1]} columns, the columns vectorized",
        "schedule.vectorize of the last of get_loops(C's block) after it was moved",
    )


@PHASE.exercise(
    "place_copies",
    engine=CURRENT,
    step_of="packed_matmul",
    title="pack one operand where it is used, the other before",
    hints=(
        "B_packed belongs inside the loop that needs another column panel at each step; every "
        "step needs all of A_packed. How does rows_first change this?",
        "schedule.compute_at(copy, outer, preserve_unit_loops=True) moves the near copy; "
        "schedule.parallel on the first loop of the other shares its work among the threads.",
        "schedule.vectorize(schedule.get_loops(B_pack)[-1]), with B_pack = "
        'schedule.get_sblock("B_packed"), after it was moved.',
    ),
    looks_like="""
        for b in parallel(8):
            for r in serial(32):
                for w in serial(8):
                    A_packed: A_packed <- A
        for bj in parallel(3):
            for ax0 in serial(1):
                for ax1 in serial(32):
                    for ax2 in vectorized(16):
                        B_packed: B_packed <- B
            for bi in serial(8):
                for k_0 in serial(8):
                    for k_1 in serial(4):
                        for i in serial(8):
                            for j in serial(16):
                                T: T_local <- A_packed, B_packed, T_local
                for ax0 in serial(8):
                    for ax1 in vectorized(16):
                        C: C <- T_local
    """,
    demonstrate=lambda place_copies: _shown_placed(place_copies),
)
def check_place_copies(place_copies: Function) -> None:
    from solutions.manual_schedule import order_packed

    rows, columns, steps = draw_distinct(3, [2, 3, 4, 5])
    cases = [
        ((4 * rows - 1, 6 * columns + 1, 3 * steps + 1), (rows, columns), False),
        ((4 * rows - 1, 6 * columns + 1, 3 * steps), (rows, columns), True),
        ((6, 5, 7), (2, 1), False),
        ((3, 5, 4), (4, 2), False),  # one panel of A, and few steps
        ((6, 2, 4), (2, 3), True),
    ]
    run = len(cases)
    for m, n, k, down, across in varied(23, 31, 17, rows, columns):
        if min(_ceil(m, down), _ceil(n, across), down) > 1:
            cases.append(((m, n, k), (down, across), len(cases) % 2 == 1))
    for at, (sizes, tile, rows_first) in enumerate(cases):
        schedule = _packed_stages(sizes, tile, steps)
        outer = order_packed(schedule, steps, rows_first)
        accepted(place_copies, schedule, outer, rows_first)
        padded = _ceil(sizes[2], steps) * steps
        around, sides = _expect_sides(schedule, (sizes[0], sizes[1], sizes[2]), tile, padded)
        before, near = sides[::-1] if rows_first else sides
        _expect_parallel(around, near, before, f"rows_first={rows_first}")
        expect_nest(
            around,
            _ordered_loops(sizes, tile, steps, rows_first),
            "another change to the schedule: the loops of T stay as they are",
        )
        _expect_copy_loops(sides[1].packing, ("vectorized", tile[1]), "B_packed")
        _expect_copy_loops(sides[0].packing, ("serial", tile[0]), "A_packed")
        if at >= run:
            continue
        a, b = (sizes[0], sizes[2]), (sizes[2], sizes[1])
        expect_product(build_module(schedule.mod), a, b, look="the primitives")


def _shown_placed(place_copies: Function) -> str:
    from solutions.manual_schedule import order_packed

    schedule = _packed_stages((64, 48, 32), (8, 16), 4)
    place_copies(schedule, order_packed(schedule, 4, False), False)
    return format_nest(_nest(schedule))


def _expect_copy_loops(loops: Sequence[Loop], last: tuple[str, int], name: str) -> None:
    """The last loop of a copy is this one, those between it and the outermost are serial."""
    expect_loops(
        (loops[-1].kind, loops[-1].extent) == last
        and all(loop.kind == "serial" for loop in loops[1:-1]),
        loops,
        f"the last loop of {name} is {last[0]}({last[1]}), and the loops before it are serial",
        "schedule.vectorize of the last loop of B_packed alone, after compute_at with "
        "preserve_unit_loops=True",
    )


@PHASE.exercise(
    "packed_matmul",
    engine=CURRENT,
    title="a matmul near the processor's peak",
    hints=(
        "Begin as fresh_schedule does, but with the stages of pack_operand and packed_product. How "
        "deep must both packed operands be, so that the loop over k needs no guard?",
        "The depth is k rounded up to a multiple of unroll_k. te.placeholder of A and of B, "
        "pack_operand of each (rows of A with axis 0, columns of B with axis 1), packed_product of "
        "both, then te.create_prim_func([A, B, C]) and its Schedule.",
        "outer = order_packed(schedule, unroll_k, rows_first); place_copies(schedule, outer, "
        'rows_first); and last fill_registers(schedule, schedule.get_sblock("T")). Return the '
        "schedule.",
    ),
    looks_like="""
        for b in parallel(8):
            for r in serial(32):
                for w in serial(8):
                    A_packed: A_packed <- A
        for bj in parallel(3):
            for ax0 in serial(1):
                for ax1 in serial(32):
                    for ax2 in vectorized(16):
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
    # Wide, wide and tall: which loop is outermost depends on rows_first alone.
    m, k = 3 * rows + 2, 4 * steps + 1
    n = (_ceil(m, columns) + 1) * columns + 1
    tiles = {"rows": rows, "columns": columns, "unroll_k": steps}
    _check_packed(packed_matmul, (m, n, k), tiles)
    _check_packed(packed_matmul, (m, n, k), {**tiles, "rows_first": True})
    # An answer may have kept something of an earlier call, or choose by the number of panels.
    for others in ((m + 1, n, k), (m, n + 1, k), (m, n, k + 1), (3 * rows, columns, k)):
        _check_packed(packed_matmul, others, tiles, run=False)
    for *drawn, down, across, unroll_k in varied(m, n, k, rows, columns, steps, alone=True):
        options = {"rows": down, "columns": across, "unroll_k": unroll_k}
        sizes = (drawn[0], drawn[1], drawn[2])
        panels = [_ceil(*each) for each in zip(sizes, options.values(), strict=True)]
        whole = min(down, across, unroll_k, *panels) > 1
        options["rows_first"] = down == across
        _check_packed(packed_matmul, sizes, options, loops=whole, run=False)
    many = {**tiles, "unroll_k": 8 + steps}
    _check_packed(packed_matmul, (m, n, 3 * many["unroll_k"]), many, run=False)
    tall = (_ceil(3 * columns, rows) + 1) * rows, 3 * columns, 12
    _check_packed(packed_matmul, tall, {"rows": rows, "columns": columns})
    for sizes, (rows, columns, steps) in (((1, 9, 3), (4, 8, 2)), ((5, 7, 3), (1, 1, 1))):
        tiles = {"rows": rows, "columns": columns, "unroll_k": steps}
        _check_packed(packed_matmul, sizes, tiles, loops=False)


def _check_packed(
    packed_matmul: Function,
    sizes: tuple[int, int, int],
    options: dict[str, Any],
    loops: bool = True,
    run: bool = True,
) -> None:
    """With `loops`, none of which of the sum then has one iteration, they are looked at."""
    import tvm

    m, n, k = sizes
    schedule = accepted(packed_matmul, m, n, k, **options)
    expect_type(schedule, tvm.s_tir.Schedule, "packed_matmul returns the tvm.s_tir.Schedule")
    names = [each.name_hint for each in schedule.mod.get_global_vars()]
    expect(
        names == ["main"],
        expected="a PrimFunc called main",
        seen=f"{', '.join(names)}",
        look='with_attr("global_symbol", "main"), and the name in the IRModule',
    )
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
        _expect_zeroed_alike(schedule)
        before, near = sides[::-1] if first else sides
        _expect_parallel(around, near, before, f"rows_first={first}")
        expect_loops(
            [loop.extent for loop in around[1:3]] == [before.panels, _ceil(k, steps)],
            around,
            f"inside it the {before.panels} {before.cut} panels, then k_outer of "
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
    if not run:
        return
    expect_product(
        build_module(schedule.mod),
        (m, k),
        (k, n),
        look="the values of the packed buffers past the matrix's edge, and the indices",
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
        look="the packed buffers' extents: rows, columns and k rounded up to whole panels, k to a "
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
    for cut, source, size, width in (("row", "A", m, tile[0]), ("column", "B", n, tile[1])):
        around, statement = _packing(nest, source)
        panels = _ceil(size, width)
        _expect_packed(schedule, statement, (panels, padded, width), (size, k))
        sides.append(_Side(cut, source, panels, around))
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
        cut: what it is cut along, "row" or "column".
        source: its name.
        panels: how many there are.
        packing: the loops around the statement that packs it.
    """

    cut: str
    source: str
    panels: int
    packing: Sequence[Loop]


def _expect_parallel(loops: Sequence[Loop], near: _Side, before: _Side, when: str) -> None:
    """The loop over `near`'s panels is parallel, and packs them; `before` is packed before it."""
    expect_loops(
        loops[0].kind == "parallel" and loops[0].extent == near.panels,
        loops,
        f"the outermost loop is parallel({near.panels}), the {near.cut} panels, with {when}",
        "schedule.parallel and the order of the loops",
    )
    expect(
        shared_loops(near.packing, loops) == 1,
        expected=f"{near.source} is packed inside the loop over {near.cut} panels and outside "
        f"that over {before.cut} panels, with {when}",
        seen=f"packed in {show(near.packing)}, used in {show(loops)}",
        look=f"compute_at({near.source}_packed's block, the {near.cut}-panel loop): packed by "
        f"the thread that uses it, once for all {before.cut} panels",
    )
    outermost = before.packing[0]
    expect(
        (outermost.kind, outermost.extent) == ("parallel", before.panels)
        and outermost is not loops[0],
        expected=f"{before.source} is packed before, once for all {near.cut} panels, its "
        f"outermost loop of {before.panels} panels parallel",
        seen=f"packed in {show(before.packing)}, used in {show(loops)}",
        look=f"schedule.parallel on the outermost loop of {before.source}_packed's block",
    )


@PHASE.exercise(
    "tile_classic",
    engine=CLASSIC,
    title="tile, vectorize and parallelize with te.create_schedule",
    hints=(
        "The worked example in_tiles_classic has the form. New: the axis of the sum, the fused "
        "loop, and further primitives called on the same stage.",
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
    # Tiles that divide, tiles that do not; small ones, and one column of them.
    for (rows, columns), (down, across), short, names in (
        (drawn, (4, 5), (0, 0), "ABC"),
        (drawn[::-1], (4, 5), (2, 3), "PQR"),
        ((2, 3), (7, 1), (0, 0), "ABC"),
        (drawn, (1, 4), (0, 0), "ABC"),
    ):
        m, n = down * rows - short[0], across * columns - short[1]
        tensors = matmul_tensors(m, n, k, names=names)
        schedule = tile_classic(tensors, rows, columns)
        expect_type(
            schedule,
            te.schedule.Schedule,
            "tile_classic returns the schedule of te.create_schedule",
        )
        _expect_stage_of(schedule, tensors[-1])
        nest = loop_nest(classic_statement(schedule))
        loops = next((path for path, each in paths(nest) if len(each.reads) > 1), ())
        parallel = [loop for loop in loops if loop.kind == "parallel"]
        expect_loops(
            [loop.extent for loop in parallel] == [down * across] and loops[0] is parallel[0],
            loops,
            f"the outermost loop is parallel over all {down}·{across} = {down * across} tiles",
            "schedule[C].parallel(schedule[C].fuse(i_outer, j_outer)), and the factors: tile_m "
            "for rows (i), tile_n for columns (j)",
        )
        expect_nest(
            loops[1:],
            f"k serial({k}) > i_inner serial({rows}) > j_inner vectorized({columns})",
            "schedule[C].split(i, factor=tile_m) and (j, factor=tile_n); `factor` is the extent "
            "of the inner loop",
            order="the order given to schedule[C].reorder: all of k within a tile",
            kinds="schedule[C].vectorize(j_inner)",
        )
        expect_product(build_schedule(schedule, tensors), (m, k), (k, n), look="the primitives")
    for m, n, steps, rows, columns in (
        *varied(44, 37, k, *drawn), (44, 37, k, *drawn), (90, 200, k, 5, 96)
    ):  # fmt: skip
        # Loops of one iteration are not in a classic nest, and a tile has no more rows than C.
        if 1 not in (rows, columns, steps) and rows <= m and columns <= n:
            _expect_tiled_classic(tile_classic, (m, n, steps), (rows, columns))


def _expect_tiled_classic(
    tile_classic: Function, sizes: tuple[int, int, int], tile: tuple[int, int]
) -> None:
    """Whatever the sizes are, the loops of `tile_classic`."""
    m, n, k = sizes
    rows, columns = tile
    tensors = matmul_tensors(m, n, k)
    schedule = tile_classic(tensors, rows, columns)
    _expect_stage_of(schedule, tensors[-1])
    nest = loop_nest(classic_statement(schedule))
    loops = next((path for path, each in paths(nest) if len(each.reads) > 1), ())
    tiles = _ceil(m, rows) * _ceil(n, columns)
    wanted = f"k serial({k}) > i_inner serial({rows}) > j_inner vectorized({columns})"
    if tiles > 1:
        wanted = f"tiles parallel({tiles}) > {wanted}"
    look = f"{m} x {n} by {rows} x {columns}: the same primitives for all sizes"
    expect_nest(loops, wanted, look)
    expect_loops(
        [loop.name[0] for loop in loops[-2:]] == ["i", "j"],
        loops,
        "the rows of a tile outside its columns",
        "the order given to schedule[C].reorder",
    )


def _expect_stage_of(schedule: Any, C: Any) -> None:
    """The schedule is of C, and the tiles are fused row by row."""
    expect(
        any(each.same_as(C.op) for each in schedule.outputs),
        expected="a schedule of the tensor C given",
        seen="one of another tensor",
        look="te.create_schedule(C.op), C the last of `tensors`, at each call",
    )
    made = [(type(each).__name__, each) for each in schedule[C].relations]
    rows = [
        each.outer for kind, each in made if kind == "Split" and each.parent.same_as(C.op.axis[0])
    ]
    fused = [each.outer for kind, each in made if kind == "Fuse"]
    pragmas = [
        str(key) for _, each in schedule[C].iter_var_attrs.items() for key in each.pragma_keys
    ]
    stages = [str(each.op.name) for each in schedule.stages if each.op.input_tensors]
    expect(
        not pragmas and len(stages) == 1,
        expected="the stage of C alone, without pragmas",
        seen=f"stages {', '.join(stages)}; {', '.join(pragmas) or 'no'} pragmas",
        look="cache_read, cache_write and pragma: the docstring asks for none of them",
    )
    expect(
        len(fused) == 1 and any(each.same_as(fused[0]) for each in rows),
        expected="i_outer and j_outer fused, in this order",
        seen=f"fused with {fused[0].var.name} outside" if fused else "no loops fused",
        look="schedule[C].fuse(i_outer, j_outer), and the order given to reorder",
    )


def _shown(scheduled: tuple[Any, Any], function: Function, *arguments: int) -> str:
    """The nest after `function` has changed a schedule's block."""
    schedule, block = scheduled
    function(schedule, block, *arguments)
    return format_nest(_nest(schedule))
