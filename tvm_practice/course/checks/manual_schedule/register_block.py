"""`register_block` and its steps: a tile of C that adds up in registers."""

from collections.abc import Sequence
from typing import Any

from tvm_practice.course.checks.manual_schedule.common import (
    PHASE,
    SPLIT,
    TWO_OUTSIDE,
    Function,
    ceil_div,
    expect_returned,
    expect_statements,
    expect_zeroed_alike,
    loops_outside,
    nest_of,
    shown,
)
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    fresh_rng,
    path_to,
    show,
    statements,
    varied,
)
from tvm_practice.course.lowering import build_module
from tvm_practice.course.nests import (
    accumulation,
    expect_axes,
    expect_block,
    expect_local,
    expect_loops,
    expect_nest,
    expect_register_block,
    expect_step,
    rearranged,
    shared_loops,
)
from tvm_practice.course.products import expect_inside, expect_product, matmul_schedule
from tvm_practice.engines import CURRENT
from tvm_practice.viz.loop_nest import Statement, format_nest, paths

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
    demonstrate=lambda tile_with_k: shown(matmul_schedule(64, 48, 32), tile_with_k, 8, 16, 4),
)
def check_tile_with_k(tile_with_k: Function) -> None:
    rows, columns, steps = draw_distinct(3, [3, 5, 6, 7, 9, 11])
    # None of the tiles divides one of these: a split without its guard is seen in the product.
    undivided = [each for each in range(23, 60) if each % rows and each % columns and each % steps]
    m, n, k = draw_distinct(3, undivided)
    for sizes, tiles, batch in (
        ((m, n, k), (rows, columns, steps), None),
        ((m, n, k), (columns, steps, rows), 2),
        ((4 * rows, 3 * columns, 2 * steps), (rows, columns, steps), None),
        ((rows, columns, 3), (rows + 3, columns + 1, 5), None),
        ((m, n, 1), (1, 1, 1), 3),
        ((4 * rows, 3 * columns, 2 * steps), (rows, columns, steps), TWO_OUTSIDE),
    ):
        names = "ABC" if batch is None else "PQR"
        schedule, block = matmul_schedule(*sizes, batch, names=names)
        outside = loops_outside(schedule, block, batch)
        returned = rearranged(tile_with_k, schedule, block, *tiles)
        wanted = _six_loops(sizes, tiles)
        expect_nest(
            path_to(nest_of(schedule), names[-1], look="the primitives"),
            f"{outside}{wanted}",
            f"{SPLIT}; k is split by [None, unroll_k]",
            order="the order of the loops given to schedule.reorder: both loops over k outside "
            "those over the tile's rows and columns",
            kinds="tile_with_k only splits and reorders; every loop stays as it is",
        )
        expect_returned(returned, schedule, block, _SIX)
        if sizes == (m, n, k):
            outer = () if batch is None else (batch,)
            a, b = (*outer, sizes[0], sizes[2]), (*outer, sizes[2], sizes[1])
            expect_product(build_module(schedule.mod), a, b, look="the primitives")
    tiles = rows, columns, steps
    squares = (*(each * each + 1 for each in tiles), *tiles)
    for each in (squares, *varied(m, n, k, *tiles, large=True, far=True, small=True)):
        schedule, block = matmul_schedule(*each[:3])
        returned = rearranged(tile_with_k, schedule, block, *each[3:])
        nest = path_to(nest_of(schedule), "C", look="the primitives")
        look = f"{SPLIT}; k is split by [None, unroll_k], whatever the sizes are"
        expect_nest(nest, _six_loops(each[:3], each[3:]), look)
        expect_statements(schedule, 1)
        expect_returned(returned, schedule, block, _SIX)
        expect_axes(schedule, block, _six_axes(each[3:]), look=look)


def _six_axes(tile: Sequence[int]) -> str:
    """Along which axes the loops of `tile_with_k` step, as `expect_axes` takes them."""
    return "i*{} j*{} k*{} k i j".format(*tile)


def _six_loops(sizes: Sequence[int], tiles: Sequence[int]) -> str:
    """The loops of `tile_with_k`, as `expect_nest` takes them."""
    outer = [f"serial({ceil_div(*each)})" for each in zip(sizes, tiles, strict=True)]
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
    title="add up a tile of C in a local buffer, copy it to C once",
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
        copy = rearranged(accumulate_locally, schedule, block, loops[at])
        own = (tiles[0], tiles[1] if at else sizes[1])
        _expect_copied(schedule, copy, names[-1], at + 1, own)
        expect_nest(
            accumulation(nest_of(schedule))[0],
            _six_loops(sizes, tiles),
            "another change to the schedule: the loops of the sum stay as they are",
        )
        found = statements(nest_of(schedule))
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
    copy = rearranged(accumulate_locally, schedule, block, loops[1])  # with a loop outside i
    _expect_copied(schedule, copy, "C", 3, (rows, columns))
    some, far = (int(fresh_rng().integers(*span)) for span in ((129, 700), (20_000, 99_000)))
    lanes = (16, 32, 48, 64, 128, some, far)
    wide = [(2 * rows, 2 * each, steps, rows, each, steps) for each in lanes]
    tall = [(2 * each, 2 * columns, steps, each, columns, steps) for each in (some, far)]
    for m, n, k, *drawn in (
        *wide,
        *tall,
        *varied(*whole, rows, columns, steps, large=True, far=True, small=True),
    ):
        schedule, block, loops = _tiled_with_k((m, n, k), drawn)
        copy = rearranged(accumulate_locally, schedule, block, loops[1])
        _expect_copied(schedule, copy, "C", 2, (min(m, drawn[0]), min(n, drawn[1])))
        look = "another change to the schedule: the loops of the sum stay as they are"
        expect_nest(accumulation(nest_of(schedule))[0], _six_loops((m, n, k), drawn), look)
        expect_axes(schedule, block, _six_axes(drawn), look=look)


def _accumulated(accumulate_locally: Function) -> str:
    schedule, block, loops = _tiled_with_k((64, 48, 32), (8, 16, 4))
    accumulate_locally(schedule, block, loops[1])
    return format_nest(nest_of(schedule))


def _expect_copied(
    schedule: Any, returned: Any, output: str, depth: int, own: tuple[int, int]
) -> None:
    """The sum is in a local buffer, which the block `returned` copies to C in `depth` loops.

    `own` are the extents of the copy's own loops, the last one vectorized.
    """
    nest = nest_of(schedule)
    around, update = accumulation(nest)
    expect_local(schedule, update)
    copies = [
        each for each in paths(nest) if each[1].reads == (update.writes,) and each[1] != update
    ]
    expect(
        len(copies) == 1 and copies[0][1].writes == output,
        expected=f"one statement copies {update.writes} to {output}",
        seen=", ".join(f"{each.writes} <- {each.reads[0]}" for _, each in copies) or "none",
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
        f"the copy's own loops inside {where}: rows({own[0]}) > columns({own[1]})",
        "the copy's two loops as reverse_compute_at leaves them, without fuse or split; "
        "preserve_unit_loops=True keeps those of one iteration",
    )
    expect_loops(
        loops[depth].kind in ("serial", "unrolled") and loops[-1].kind == "vectorized",
        loops,
        "the copy's last loop, its columns, is vectorized",
        "schedule.vectorize of the last of get_loops(copy), after the copy was moved",
    )
    _expect_columns_last(schedule, statement)
    expect_block(schedule, returned, statement.name, "the block that copies")


def _expect_columns_last(schedule: Any, copy: Statement) -> None:
    """The last loop of the copy to C steps along its columns."""
    look = "the order of the copy's loops: rows before columns, even for as many rows as columns"
    expect_step(schedule, copy.name, copy.writes, loop=-1, axis=-1, look=look)


@PHASE.exercise(
    "fill_registers",
    engine=CURRENT,
    step_of="register_block",
    title="vectorize, unroll, and set to zero before the sum",
    hints=(
        "Four calls, one for each of the last four loops. Which of them must come last, and "
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
    demonstrate=lambda fill_registers: shown(
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
        before = accumulation(nest_of(schedule))[0]
        rearranged(fill_registers, schedule, block)
        outer = " > ".join(f"{each.name} {each.kind}({each.extent})" for each in before[:-3])
        expect_nest(
            accumulation(nest_of(schedule))[0],
            f"{outer} > k_inner unrolled({steps}) > i_inner unrolled({rows}) > "
            f"j_inner vectorized({columns})",
            "unroll of k_inner and i_inner, vectorize of j_inner: the last three of the loops",
        )
        expect_register_block(schedule, rows, columns, steps)
        expect_zeroed_alike(schedule)
        a, b = (sizes[0], sizes[2]), (sizes[2], sizes[1])
        expect_product(build_module(schedule.mod), a, b, look="the primitives")
    extents = 4 * rows, 3 * columns, 2 * steps, *small
    for m, n, k, *drawn in varied(*extents, large=True, far=True, small=True):
        schedule, block = _to_fill((m, n, k), drawn, names="ABC", apart=None)
        rearranged(fill_registers, schedule, block)
        _expect_in_registers(schedule, (m, n, k), drawn)


def _expect_in_registers(schedule: Any, sizes: Sequence[int], tile: Sequence[int]) -> None:
    """Whatever the sizes are, the loops of a register block, zeroed before and copied once."""
    m, n, k = sizes
    rows, columns, steps = tile
    expect_statements(schedule, 3)
    around, update = accumulation(nest_of(schedule))
    expect_nest(
        around,
        f"i_outer serial({ceil_div(m, rows)}) > j_outer serial({ceil_div(n, columns)}) > "
        f"k_outer serial({ceil_div(k, steps)}) > k_inner unrolled({steps}) > "
        f"i_inner unrolled({rows}) > j_inner vectorized({columns})",
        f"for {m}x{n}x{k} by {rows}, {columns} and {steps}: the same primitives for all sizes",
    )
    expect_zeroed_alike(schedule)
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


@PHASE.exercise(
    "register_block",
    engine=CURRENT,
    title="add up a tile of C in registers, write it back once",
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
    demonstrate=lambda register_block: shown(matmul_schedule(64, 48, 32), register_block, 8, 16, 4),
)
def check_register_block(register_block: Function) -> None:
    rows, columns, steps = draw_distinct(3, [3, 5, 6, 7, 8, 16])
    m, n, k = 5 * rows, 3 * columns, 7 * steps
    schedule, block = matmul_schedule(m, n, k)
    rearranged(register_block, schedule, block, rows, columns, steps)
    loops = expect_register_block(schedule, rows, columns, steps)
    expect_nest(
        loops,
        "i_outer serial(5) > j_outer serial(3) > k_outer serial(7) > "
        f"k_inner unrolled({steps}) > i_inner unrolled({rows}) > j_inner vectorized({columns})",
        f"for {m}x{n}x{k} by {rows}, {columns} and {steps}: schedule.reorder, and {SPLIT}",
    )
    expect_zeroed_alike(schedule)
    written = next(path for path, each in paths(nest_of(schedule)) if each.writes == "C")
    expect_loops(
        [loop.extent for loop in written[-2:]] == [rows, columns]
        and written[-2].kind in ("serial", "unrolled")
        and written[-1].kind == "vectorized",
        written,
        f"a tile copied to C by rows({rows}) > columns({columns}), the columns vectorized",
        "the second of the three steps: schedule.vectorize of the last of get_loops(copy)",
    )
    expect_product(build_module(schedule.mod), (m, k), (k, n), look="the primitives")

    # Under a loop that is parallel already, or serial, and with tiles that do not divide. The
    # outer loop's rows are a multiple of the tile's: of two nested splits that both round up,
    # reverse_compute_at keeps the outer bound alone, and the copy to C would then write one row
    # of the next thread's part, with whatever its own buffer holds there.
    rows, columns, steps = draw_distinct(3, [2, 3, 4, 8])
    for kind in ("parallel", "serial"):
        schedule, block = matmul_schedule(44, 37, 23, names="PQR")
        outer, _ = schedule.split(schedule.get_loops(block)[0], [None, 7 * rows])
        if kind == "parallel":
            schedule.parallel(outer)
        rearranged(register_block, schedule, block, rows, columns, steps)
        loops = expect_register_block(schedule, rows, columns, steps)
        expect_nest(
            loops[:3],
            f"the one outside i {kind}({ceil_div(44, 7 * rows)}) > i_outer serial(7) > "
            f"j_outer serial({ceil_div(37, columns)})",
            "get_loops(block)[-3:], so that outer loops are left alone",
        )
        expect_product(build_module(schedule.mod), (44, 23), (23, 37), look="the primitives")

    _expect_register_tiles_of_any_size(register_block)


def _expect_register_tiles_of_any_size(register_block: Function) -> None:
    """Also tiles of one row, column or step, and larger than the matrices."""
    for tile in ((1, 1, 1), (4, 1, 2), (1, 8, 3), (12, 10, 11)):
        schedule, block = matmul_schedule(9, 9, 9)
        rearranged(register_block, schedule, block, *tile)
        seen = accumulation(nest_of(schedule))[0]
        rows, columns, steps = tile
        outer = [ceil_div(9, each) for each in tile]
        expect_loops(
            [loop.extent for loop in seen] == [*outer, steps, rows, columns],
            seen,
            f"for 9x9x9 by {rows}, {columns} and {steps}: loops of "
            f"{', '.join(map(str, outer))}, {steps}, {rows} and {columns} iterations",
            "the factors of split, used as given: they need not divide the loops",
        )
        expect_inside(schedule, (), "ABC")
        expect_product(
            build_module(schedule.mod),
            (9, 9),
            (9, 9),
            what="C with rows={}, columns={}, unroll_k={}".format(*tile),
            look="preserve_unit_loops=True of reverse_compute_at: without it a loop of one "
            "iteration is dropped, and the last of get_loops is another",
        )
    drawn = draw_distinct(3, [3, 5, 6, 7])
    narrow = [(41, 37, 29, 5, columns, 3) for columns in (2, 3)]
    single = (41, 37, 29, 1, 1, 1)
    further = varied(41, 37, 29, *drawn, large=True, far=True, small=True)
    for m, n, k, *tiles in (*narrow, single, *further):
        schedule, block = matmul_schedule(m, n, k)
        rearranged(register_block, schedule, block, *tiles)
        _expect_in_registers(schedule, (m, n, k), tiles)
        nest = nest_of(schedule)
        written, copy = next((path, each) for path, each in paths(nest) if each.writes == "C")
        expect_loops(
            shared_loops(written, accumulation(nest)[0]) == 2,
            written,
            f"for {m}x{n}x{k} by {tiles[0]}, {tiles[1]} and {tiles[2]}: C written in "
            "j_outer, after k_outer",
            "reverse_compute_at(the write-back block, j_outer), for all sizes",
        )
        columns = min(n, tiles[1])
        expect_loops(
            columns == 1 or (written[-1].kind, written[-1].extent) == ("vectorized", columns),
            written,
            f"for {m}x{n}x{k} by {tiles[0]}, {tiles[1]} and {tiles[2]}: a tile copied to C with "
            f"its {columns} columns vectorized",
            "schedule.vectorize of the last of get_loops(copy), for all sizes",
        )
        if columns > 1:
            _expect_columns_last(schedule, copy)
