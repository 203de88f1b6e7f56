"""One primitive or two per exercise: `tile`, `vectorize`, `parallelize`."""

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

from tvm_practice.course.checks.manual_schedule.common import (
    PHASE,
    SPLIT,
    TWO_OUTSIDE,
    Function,
    ceil_div,
    expect_returned,
    expect_statements,
    loops_outside,
    nest_of,
    shown,
)
from tvm_practice.course.expect import draw_distinct, fresh_rng, path_to, varied
from tvm_practice.course.lowering import build_module
from tvm_practice.course.nests import (
    expect_axes,
    expect_loops,
    expect_nest,
    expect_step,
    rearranged,
)
from tvm_practice.course.products import expect_product, matmul_schedule
from tvm_practice.engines import CURRENT


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


@PHASE.exercise(
    "tile",
    engine=CURRENT,
    title="split the rows and the columns into tiles, reorder the loops",
    hints=(
        "Get the loops, split two and reorder all, as the worked example in_tiles does. New: "
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
    demonstrate=lambda tile: shown(matmul_schedule(64, 48, 32), tile, 8, 16),
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
        ((4 * rows, 3 * columns, k), (rows, columns), TWO_OUTSIDE),
    ):
        _check_tiled(tile, sizes, tiles, batch)
    # One side of the tile is twice the other; as many tiles as a tile has rows, and one more.
    twice = [(m, n, k, 2 * rows, rows), (m, n, k, columns, 2 * columns)]
    squares = (rows * rows + 1, columns * columns + 1, k, rows, columns)
    wide = int(fresh_rng().choice([64, 96, 128]))  # sides that are larger than a vector, or two
    wide_ones = [
        (3 * wide, 3 * wide, k, 2 * wide, wide),
        (3 * wide - 1, 3 * wide, k, wide, 2 * wide),
        (300, 500, k, wide + 32, wide),
    ]
    for each in (
        *twice,
        squares,
        *wide_ones,
        *varied(m, n, k, rows, columns, large=True, far=True, small=True),
    ):
        _check_tiled(tile, each[:3], each[3:], None, run=False)


def _drawn_sizes_and_tiles() -> tuple[tuple[int, int, int], tuple[int, int]]:
    """Extents of a product and a tile that no mistake gives other loops of the same extents.

    Neither rows and columns exchanged, nor a number of tiles rounded down: 41 rows in 41 // 6
    tiles would be loops of 6 and 7, where loops of 7 and 6 are wanted.
    """
    while True:
        m, n, k = draw_distinct(3, range(23, 60))
        rows, columns = draw_distinct(2, [5, 6, 7, 9, 10, 11])
        tiles = {ceil_div(m, rows), ceil_div(n, columns)}
        pairs = list(product((m, n), (rows, columns)))
        if (
            tiles != {ceil_div(m, columns), ceil_div(n, rows)}
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
    outside = loops_outside(schedule, block, batch)
    returned = rearranged(tile, schedule, block, rows, columns)
    wanted = f"i_outer serial({ceil_div(m, rows)}) > j_outer serial({ceil_div(n, columns)}) > "
    wanted += f"k serial({k}) > i_inner serial({rows}) > j_inner serial({columns})"
    expect_nest(
        path_to(nest_of(schedule), names[-1], look="the primitives"),
        f"{outside}{wanted}",
        SPLIT,
        order="the order of the loops given to schedule.reorder: all of k within a tile",
        kinds="tile only splits and reorders; all loops stay serial: vectorize and parallelize "
        "are separate exercises",
    )
    expect_returned(returned, schedule, block, "[i_outer, j_outer, k, i_inner, j_inner]")
    expect_statements(schedule, 1)
    expect_axes(schedule, block, f"i*{rows} j*{columns} k i j", look=SPLIT)
    if run and m % rows:  # guarded; the others differ in numbers only
        a, b = (*outer, m, k), (*outer, k, n)
        expect_product(build_module(schedule.mod), a, b, look="the primitives")


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
    demonstrate=lambda vectorize: shown(_tiled((64, 48, 32), (8, 16)), vectorize),
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
    for each in (*few, *varied(m, n, k, *even, large=True, far=True, small=True)):
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
    rearranged(vectorize, schedule, block)
    loops = path_to(nest_of(schedule), names[-1], look="the primitive")
    lanes = min(_LANES, columns)
    expect_statements(schedule, 1)
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
    wanted = [*outer, ceil_div(sizes[0], rows), ceil_div(sizes[1], columns), sizes[2], rows]
    # The last one may be split again.
    inner = math.prod(int(loop.extent) for loop in loops[len(wanted) :])
    expect_loops(
        [loop.extent for loop in loops[: len(wanted)]] == wanted
        and columns <= inner < max(2 * columns, 16),
        loops,
        "the five loops of the tiling, in their order",
        "vectorize changes how a loop runs, not which loops there are",
    )
    expect_step(
        schedule,
        names[-1],
        names[-1],
        loop=-1,
        axis=-1,
        look="the order of the loops, which vectorize leaves as it is: j_inner is the last",
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
        "i_outer and j_outer are the first two loops of get_loops(block). schedule.fuse makes them "
        "one loop over all tiles; TVM cuts it into equal shares, one per thread.",
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
    demonstrate=lambda parallelize: shown(_tiled((64, 48, 32), (8, 16)), parallelize),
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
    many = tuple(int(each) for each in fresh_rng().integers(60, 400, 2))
    some = [(many[0] * tiles[0], many[1] * tiles[1] - 1, 3, *tiles), (many[0], 1, 3, 1, 1)]
    for each in (*some, *varied(m, n, k, *tiles, large=True, far=True, small=True)):
        _expect_tiles_in_parallel(parallelize, each[:3], each[3:], "serial", "ABC")


def _expect_tiles_in_parallel(
    parallelize: Function, sizes: Sequence[int], tiles: Sequence[int], last: str, names: str
) -> Any:
    """The tiles of a product are one parallel loop; the schedule."""
    schedule, block = _tiled(sizes, tiles, names=names)
    if last == "vectorized":
        schedule.vectorize(schedule.get_loops(block)[-1])
    rearranged(parallelize, schedule, block)
    loops = path_to(nest_of(schedule), names[-1], look="the primitives")
    expect_statements(schedule, 1)
    parallel = [loop for loop in loops if loop.kind == "parallel"]
    rows, columns = ceil_div(sizes[0], tiles[0]), ceil_div(sizes[1], tiles[1])
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
        "schedule.fuse(i_outer, j_outer), also where one has a single iteration",
        kinds="another change to the schedule: the loops inside the parallel one stay as they were",
    )
    look = "another change to the schedule: the order of the loops stays as it was"
    first = f"j*{tiles[1]}" if columns > 1 else f"i*{tiles[0]}"
    expect_axes(schedule, block, f"{first} k i j", look=look)
    return schedule
