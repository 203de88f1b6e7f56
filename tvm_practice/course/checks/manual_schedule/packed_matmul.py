"""The schedule of `packed_matmul`, step by step: loops, threads, copies, values."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from tvm_practice.course.checks.manual_schedule.common import (
    PHASE,
    Function,
    ceil_div,
    expect_own,
    expect_zeroed_alike,
    nest_of,
)
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_type,
    fail,
    fresh_rng,
    show,
    statements,
    varied,
)
from tvm_practice.course.lowering import build_module
from tvm_practice.course.nests import (
    accepted,
    accumulation,
    allocated,
    expect_axes,
    expect_local,
    expect_loops,
    expect_nest,
    expect_register_block,
    expect_step,
    rearranged,
    shared_loops,
)
from tvm_practice.course.products import expect_product
from tvm_practice.engines import CURRENT
from tvm_practice.viz.loop_nest import Loop, Node, Statement, format_nest, paths


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


def _packed_stages(
    sizes: Sequence[int], tile: tuple[int, int], unroll_k: int, renamed: bool = False
) -> Any:
    """A schedule of the four stages of a packed matmul, nothing scheduled yet.

    The loops are called as those of the reference, or otherwise: no docstring names them.
    """
    import tvm
    from tvm import te

    from solutions.manual_schedule import pack_operand, packed_product

    m, n, k = sizes
    depth = ceil_div(k, unroll_k) * unroll_k
    A, B = te.placeholder((m, k), name="A"), te.placeholder((k, n), name="B")
    packed = pack_operand(A, 0, tile[0], depth), pack_operand(B, 1, tile[1], depth)
    product = _product_of_other_names if renamed else packed_product
    tensors = [A, B, product(*packed, m, n)]
    function = te.create_prim_func(tensors).with_attr("global_symbol", "main")
    return tvm.s_tir.Schedule(tvm.IRModule({"main": function}))


def _product_of_other_names(A_packed: Any, B_packed: Any, m: int, n: int) -> Any:
    """`packed_product`, its loops called otherwise."""
    from tvm import te

    (down, depth, rows), (across, _, columns) = (
        tuple(map(int, each.shape)) for each in (A_packed, B_packed)
    )
    s = te.reduce_axis((0, depth), name="i")
    T = te.compute(
        (down, across, rows, columns),
        lambda k, j, bj, bi: te.sum(A_packed[k, s, bj] * B_packed[j, s, bi], axis=s),
        name="T",
    )
    return te.compute(
        (m, n), lambda x, y: T[x // rows, y // columns, x % rows, y % columns], name="C"
    )


def _ordered_loops(
    sizes: Sequence[int], tile: tuple[int, int], unroll_k: int, rows_first: bool
) -> str:
    """The loops of T as `order_packed` leaves them, as `expect_nest` takes them."""
    m, n, k = sizes
    blocks = [("row panels", ceil_div(m, tile[0])), ("column panels", ceil_div(n, tile[1]))]
    outer, inner = blocks if rows_first else blocks[::-1]
    return (
        f"{outer[0]} parallel({outer[1]}) > {inner[0]} serial({inner[1]}) > "
        f"k_outer serial({ceil_div(k, unroll_k)}) > k_inner serial({unroll_k}) > "
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
        returned = rearranged(order_packed, schedule, unroll_k, rows_first)
        nest = nest_of(schedule)
        loops, update = accumulation(nest)
        expect_nest(
            loops,
            _ordered_loops(sizes, tile, unroll_k, rows_first),
            f"with rows_first={rows_first}: split of k by [None, unroll_k], schedule.reorder",
            order=f"schedule.reorder, with rows_first={rows_first}; and the factors of k's split: "
            "in [None, unroll_k] the last is the inner loop",
            kinds="schedule.parallel of the outermost loop; all others of the nest stay serial",
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
    for m, n, k, down, across, unroll_k in varied(
        23, 31, 17, rows, columns, steps, large=True, far=True, small=True
    ):
        if min(ceil_div(m, down), ceil_div(n, across), down) > 1:  # else TVM drops one of the loops
            for rows_first in (False, True):
                _expect_ordered(order_packed, (m, n, k), (down, across), unroll_k, rows_first)
    sizes = 4 * rows - 1, 6 * columns + 1, 3 * steps
    _expect_ordered(order_packed, sizes, (rows, columns), steps, rows_first=False, renamed=True)
    large = int(fresh_rng().integers(65, 500))
    for tile, unroll_k in (((2, large), 1), ((large, 2), 3), ((3, 2), large)):
        sizes = 2 * tile[0] - 1, 2 * tile[1] + 1, 7
        for rows_first in (False, True):
            _expect_ordered(order_packed, sizes, tile, unroll_k, rows_first)
    one = (rows, columns, 5)  # a single tile
    for sizes, rows_first in (((7, columns, 5), False), ((rows, 9, 5), True), (one, False)):
        schedule = _packed_stages(sizes, (rows, columns), steps)  # one panel is outermost
        returned = rearranged(order_packed, schedule, steps, rows_first)
        _expect_loop(schedule, returned, 0)
        wanted = _ordered_loops(sizes, (rows, columns), steps, rows_first)
        look = "schedule.parallel of the outermost loop, even if it has one iteration"
        loops, update = accumulation(nest_of(schedule))
        expect_nest(loops, wanted, look)
        expect_local(schedule, update)
    for sizes, rows_first in (((rows, 9, 5), False), ((7, columns, 5), True)):
        schedule = _packed_stages(sizes, (rows, columns), steps)  # one panel is inside
        returned = rearranged(order_packed, schedule, steps, rows_first)
        _expect_loop(schedule, returned, 0)
        nest = nest_of(schedule)
        copied = next(path for path, each in paths(nest) if each.writes == "C")
        _expect_tile_written(accumulation(nest)[0], copied, (rows, columns))


def _expect_ordered(
    order_packed: Function,
    sizes: Sequence[int],
    tile: tuple[int, int],
    unroll_k: int,
    rows_first: bool,
    renamed: bool = False,
) -> None:
    """Whatever the sizes are, the loops of `order_packed`."""
    schedule = _packed_stages(sizes, tile, unroll_k, renamed)
    returned = rearranged(order_packed, schedule, unroll_k, rows_first)
    nest = nest_of(schedule)
    loops, update = accumulation(nest)
    look = f"rows_first={rows_first}, and the same order of loops for all sizes"
    expect_nest(loops, _ordered_loops(sizes, tile, unroll_k, rows_first), look)
    _expect_packed_axes(schedule, unroll_k, rows_first, look)
    expect_local(schedule, update)
    _expect_loop(schedule, returned, 0)
    copied = next(path for path, each in paths(nest) if each.writes == "C")
    _expect_tile_written(loops, copied, tile)
    if tile[1] > 1:
        look = (
            "the order of the copy's loops: rows before columns, even for as many rows as columns"
        )
        expect_step(schedule, "C", "C", loop=-1, axis=-1, look=look)


def _expect_packed_axes(schedule: Any, unroll_k: int, rows_first: bool, look: str) -> None:
    """What the loops of T step along, which equal numbers of panels do not tell."""
    panels = "bi bj" if rows_first else "bj bi"
    block = schedule.get_sblock("T")
    wanted = f"{panels} k*{unroll_k} k i j"
    expect_axes(schedule, block, wanted, look=look, axes="bi bj i j k")


def _shown_ordered(order_packed: Function) -> str:
    schedule = _packed_stages((64, 48, 32), (8, 16), 4)
    order_packed(schedule, 4, False)
    return format_nest(nest_of(schedule))


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
    cases += [((6, 2, 4), (2, 3), False), ((2, 9, 4), (2, 3), True)]  # one task for all threads
    depth = 2 * steps  # as many steps as columns, or as panels
    for first in (False, True):
        cases.append(((4 * rows, 3 * depth, depth), (rows, depth), first))
        cases.append(((depth * rows, depth * columns, depth), (rows, columns), first))
    # More columns, or rows, than one vector has lanes.
    cases += [((7, 2 * each + 1, 9), (rows, each), each % 3 == 0) for each in (16, 32, 48, 64, 96)]
    cases += [((2 * each + 1, 7, 9), (each, columns), each == 32) for each in (16, 32, 48)]
    for m, n, k, down, across in varied(
        23, 31, 17, rows, columns, large=True, far=True, small=True
    ):
        if min(ceil_div(m, down), ceil_div(n, across), down) > 1:
            cases.append(((m, n, k), (down, across), len(cases) % 2 == 1))
    for at, (sizes, tile, rows_first) in enumerate(cases):
        schedule = _packed_stages(sizes, tile, steps)
        outer = order_packed(schedule, steps, rows_first)
        rearranged(place_copies, schedule, outer, rows_first)
        padded = ceil_div(sizes[2], steps) * steps
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
        for name in ("A_packed", "B_packed"):
            _expect_scope_kept(schedule, name)
        look = "the order of the loops of both copies, which stays: panels, steps of k, and columns"
        expect_step(schedule, "B_packed", "B_packed", loop=-1, axis=-1, look=look)
        expect_step(schedule, before.packed, before.packed, loop=0, axis=0, look=look)
        if at >= run:
            continue
        a, b = (sizes[0], sizes[2]), (sizes[2], sizes[1])
        expect_product(build_module(schedule.mod), a, b, look="the primitives")


def _shown_placed(place_copies: Function) -> str:
    from solutions.manual_schedule import order_packed

    schedule = _packed_stages((64, 48, 32), (8, 16), 4)
    place_copies(schedule, order_packed(schedule, 4, False), False)
    return format_nest(nest_of(schedule))


def _expect_scope_kept(schedule: Any, name: str) -> None:
    """The packed buffer is where te.compute put it, in memory that all threads have."""
    (region,) = schedule.get(schedule.get_sblock(name)).writes
    scope = str(region.source.scope())
    expect(
        scope == "global",
        expected=f"the buffer {name} with its own scope, global",
        seen=f"the scope {scope}",
        look="set_scope: compute_at, vectorize and parallel are all that the copies need",
    )


def _expect_copy_loops(loops: Sequence[Loop], last: tuple[str, int], name: str) -> None:
    """The last loop of a copy is this one, those between it and the outermost are serial."""
    expect_loops(
        (loops[-1].kind, loops[-1].extent) == last
        and all(loop.kind == "serial" for loop in loops[1:-1]),
        loops,
        f"the last loop of {name} is {last[0]}({last[1]}), and the loops before it are serial",
        "the copies' loops stay serial but for the last of B_packed, which vectorize takes "
        "after compute_at with preserve_unit_loops=True",
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
        nest_of(packed_matmul(64, 48, 32, rows=8, columns=16))
    ),
)
def check_packed_matmul(packed_matmul: Function) -> None:
    rows, columns = draw_distinct(2, [3, 5, 6, 8, 16])
    (steps,) = draw_distinct(1, [2, 3, 4])
    # Wide, wide and tall: which loop is outermost depends on rows_first alone. There are four row
    # panels, and five column panels or more: which of them a loop counts is seen.
    m, k = 3 * rows + 2, 4 * steps + 1
    n = (max(3, ceil_div(m, columns)) + 1) * columns + 1
    tiles = {"rows": rows, "columns": columns, "unroll_k": steps}
    _check_packed(packed_matmul, (m, n, k), tiles)
    _check_packed(packed_matmul, (m, n, k), {**tiles, "rows_first": True})
    # An answer may have kept something of an earlier call, or choose by the number of panels.
    for others in (
        (m + 1, n, k), (m, n + 1, k), (m, n, k + 1), (3 * rows, columns, k), (m, n, 700 * steps),
        (2003, n, k), (m, 3001, k),
    ):  # fmt: skip
        _check_packed(packed_matmul, others, tiles, run=False)
    for at in range(3):  # and by which matrix is far larger than the others
        far = [m, n, k]
        far[at] = int(fresh_rng().integers(66_000, 199_000))
        options = {**tiles, "rows_first": True}
        _check_packed(packed_matmul, (far[0], far[1], far[2]), options, run=False)
    for *drawn, down, across, unroll_k in varied(
        m, n, k, rows, columns, steps, alone=True, large=True, far=True, small=True
    ):
        options = {"rows": down, "columns": across, "unroll_k": unroll_k}
        sizes = (drawn[0], drawn[1], drawn[2])
        panels = [ceil_div(*each) for each in zip(sizes, options.values(), strict=True)]
        whole = min(down, across, unroll_k, *panels) > 1
        options["rows_first"] = down == across
        _check_packed(packed_matmul, sizes, options, loops=whole, run=False)
    many = {**tiles, "unroll_k": 8 + steps}
    _check_packed(packed_matmul, (m, n, 3 * many["unroll_k"]), many, run=False)
    tall = (ceil_div(3 * columns, rows) + 1) * rows, 3 * columns, 12
    _check_packed(packed_matmul, tall, {"rows": rows, "columns": columns})
    for first in (False, True):
        for few in ((rows, n, k), (m, columns, k), (m, 1, k), (1, n, k), (rows - 1, columns, k)):
            options = {**tiles, "rows_first": first}
            _check_packed(packed_matmul, few, options, loops=False, run=False)
    for sizes, (rows, columns, steps) in (((1, 9, 3), (4, 8, 2)), ((5, 7, 3), (1, 1, 1))):
        tiles = {"rows": rows, "columns": columns, "unroll_k": steps}
        _check_packed(packed_matmul, sizes, tiles, loops=False)
    one, other = (packed_matmul(m, n, k, rows=rows, columns=columns) for _ in range(2))
    expect_own(one, other, "packed_matmul")


def _check_packed(
    packed_matmul: Function,
    sizes: tuple[int, int, int],
    options: dict[str, Any],
    loops: bool = True,
    run: bool = True,
) -> None:
    """The stages, the loops of the sum and of the copy to C, and which operand is packed where.

    With `loops`, several of which iterate more than once, how often each one does as well.
    """
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
    symbol = (schedule.mod["main"].attrs or {}).get("global_symbol")
    expect(
        symbol == "main",
        expected=f"the PrimFunc's global_symbol main, for {m}x{n}x{k} as well",
        seen=str(symbol),
        look='with_attr("global_symbol", "main"), whatever the sizes are',
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
    types = {name: str(buffer.dtype) for name, buffer in allocated(schedule).items()}
    expect(
        set(types.values()) <= {"float32"},
        expected="the packed operands and the tile in float32",
        seen=", ".join(f"{name} in {dtype}" for name, dtype in types.items()),
        look="astype: a vector holds half as many float64",
    )
    rows, columns = options["rows"], options["columns"]
    padded = ceil_div(k, options.get("unroll_k", 4)) * options.get("unroll_k", 4)
    around, sides = _expect_sides(schedule, sizes, (rows, columns), padded)
    first = options.get("rows_first", False)
    before, near = sides[::-1] if first else sides
    steps = options.get("unroll_k", 4)
    # Otherwise loops of one iteration were left out. Without the copy's, of a single column, its
    # last loop is that over panels, and an answer may vectorize it.
    whole = len(around) == _LOOPS and not n == 1 < columns
    if whole:
        expect_register_block(schedule, rows, columns, steps)
        expect_zeroed_alike(schedule)
    _expect_columns_written(schedule, min(columns, n))
    if not loops:
        _expect_packed_before(around, before, near, f"rows_first={first}")
    else:
        _expect_parallel(around, near, before, f"rows_first={first}")
        expect_loops(
            [loop.extent for loop in around[1:3]] == [before.panels, ceil_div(k, steps)],
            around,
            f"inside it the {before.panels} {before.cut} panels, then k_outer of "
            f"{ceil_div(k, steps)} iterations",
            "schedule.reorder, and split(k_loop, [None, unroll_k])",
        )
        packing = sides[1].packing
        expect_loops(
            packing[-1].kind == "vectorized" and (first or packing[-1].extent == columns),
            packing,
            f"B is packed with its {columns} columns vectorized",
            "schedule.vectorize of the last loop of B_packed's block",
        )
    if whole:
        _expect_along(schedule, sides, near)
    _expect_unguarded(schedule)
    if not run:
        return
    expect_product(
        build_module(schedule.mod),
        (m, k),
        (k, n),
        look="the values of the packed buffers past the matrix's edge, and the indices",
    )


# Of the statement that adds up: two over panels, two over k, two in a tile.
_LOOPS = 6


def _expect_along(schedule: Any, sides: "Sequence[_Side]", near: "_Side") -> None:
    """The outermost loop around the sum takes `near`'s panels, the innermost columns of B."""
    name = accumulation(nest_of(schedule))[1].name
    look = "the loops, which are the same ones where there are as many rows as columns"
    expect_step(schedule, name, sides[1].packed, loop=-1, axis=-1, look=look)
    expect_step(schedule, name, near.packed, loop=0, axis=0, look=look)


def _expect_columns_written(schedule: Any, columns: int) -> None:
    """The statement that writes C has `columns` as its last loop, vectorized; one need not be."""
    copied, copy = next(
        (path, each) for path, each in paths(nest_of(schedule)) if each.writes == "C"
    )
    if columns == 1:
        return
    look = "schedule.vectorize of the last of get_loops(C's block), after it was moved"
    expect_loops(
        (copied[-1].kind, copied[-1].extent) == ("vectorized", columns),
        copied,
        f"C written with its {columns} columns vectorized, as in register_block",
        look,
    )
    expect_step(schedule, copy.name, "C", loop=-1, axis=-1, look=look)


def _expect_unguarded(schedule: Any) -> None:
    """The statement that adds up has no condition, neither around it nor in its formula."""
    update = accumulation(nest_of(schedule))[1]
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
    nest = nest_of(schedule)
    sides, packed = [], []
    for cut, source, size, width in (("row", "A", m, tile[0]), ("column", "B", n, tile[1])):
        around, statement = _packing(nest, source)
        panels = ceil_div(size, width)
        _expect_packed(schedule, statement, (panels, padded, width), (size, k))
        sides.append(_Side(cut, source, statement.writes, panels, around))
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
        packed: the name of the buffer that it is packed to.
        panels: how many there are.
        packing: the loops around the statement that packs it.
    """

    cut: str
    source: str
    packed: str
    panels: int
    packing: Sequence[Loop]


def _expect_packed_before(loops: Sequence[Loop], before: _Side, near: _Side, when: str) -> None:
    """`before` is packed outside the loops around the sum that have several iterations."""
    shared = shared_loops(before.packing, loops)
    inside = [loop for loop in loops[:shared] if loop.extent != 1]
    outermost = next((loop for loop in before.packing[shared:] if loop.extent != 1), None)
    alone = before.panels == 1 or (
        outermost is not None and (outermost.kind, outermost.extent) == ("parallel", before.panels)
    )
    expect(
        not inside and alone,
        expected=f"{before.source} packed beforehand, its {before.panels} {before.cut} panels in "
        f"parallel, with {when} and {near.panels} {near.cut} panel{'s' * (near.panels != 1)}",
        seen=f"packed in {show(before.packing)}, used in {show(loops)}",
        look="rows_first alone decides which operand is packed beforehand, for all sizes",
    )
    if near.panels == 1:
        return
    at = next(at for at, loop in enumerate(loops) if loop.extent != 1)
    expect(
        (loops[at].kind, loops[at].extent) == ("parallel", near.panels)
        and shared_loops(near.packing, loops) > at,
        expected=f"{near.source} packed in the parallel loop over its {near.panels} {near.cut} "
        f"panels, with {when} and {before.panels} {before.cut} "
        f"panel{'s' * (before.panels != 1)}",
        seen=f"packed in {show(near.packing)}, used in {show(loops)}",
        look="rows_first alone decides which loop is parallel, whatever the sizes are",
    )


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
        expected=f"{before.source} is packed beforehand, once for all {near.cut} panels, its "
        f"outermost loop of {before.panels} panels parallel",
        seen=f"packed in {show(before.packing)}, used in {show(loops)}",
        look=f"schedule.parallel on the outermost loop of {before.source}_packed's block",
    )
