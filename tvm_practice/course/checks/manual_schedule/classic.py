"""The same tiling in classic TVM: `tile_classic`."""

from typing import Any

from tvm_practice.course.checks.manual_schedule.common import (
    PHASE,
    Function,
    ceil_div,
    expect_own,
)
from tvm_practice.course.expect import draw_distinct, expect, expect_type, fresh_rng, varied
from tvm_practice.course.lowering import build_schedule
from tvm_practice.course.nests import expect_loops, expect_nest
from tvm_practice.course.products import expect_product, matmul_tensors
from tvm_practice.engines import CLASSIC
from tvm_practice.viz.loop_nest import classic_statement, format_nest, loop_nest, paths


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
            kinds="schedule[C].vectorize(j_inner); k and i_inner stay serial",
        )
        expect_product(build_schedule(schedule, tensors), (m, k), (k, n), look="the primitives")
    some, far = (int(fresh_rng().integers(*span)) for span in ((129, 700), (66_000, 199_000)))
    for m, n, steps, rows, columns in (
        (2 * some, 9, 3, some, 4), (9, 2 * some, 3, 4, some), (2 * far, 9, 3, far, 4),
        (9, 2 * far, 3, 4, far),
        *varied(44, 37, k, *drawn, large=True, far=True, small=True),
        (44, 37, k, *drawn), (90, 200, k, 5, 96),
    ):  # fmt: skip
        # Loops of one iteration are not in a classic nest, and a tile has no more rows than C.
        if 1 not in (rows, columns, steps) and rows <= m and columns <= n:
            _expect_tiled_classic(tile_classic, (m, n, steps), (rows, columns))
        tensors = matmul_tensors(m, n, steps)
        schedule = tile_classic(tensors, rows, columns)
        _expect_stage_of(schedule, tensors[-1])
        _expect_no_other_kinds(schedule, tensors[-1])
    expect_own(schedule, tile_classic(tensors, rows, columns), "tile_classic")


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
    tiles = ceil_div(m, rows) * ceil_div(n, columns)
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
    pragmas += [
        f"prefetch of {data.name}"
        for _, each in schedule[C].iter_var_attrs.items()
        for data in each.prefetch_data
    ]
    stages = [str(each.op.name) for each in schedule.stages if each.op.input_tensors]
    expect(
        not pragmas and len(stages) == 1,
        expected="the stage of C alone, without pragmas",
        seen=f"stages {', '.join(stages)}; {', '.join(pragmas) or 'no'} pragmas",
        look="cache_read, cache_write, pragma and prefetch: the docstring asks for none of them",
    )
    expect(
        len(fused) == 1 and any(each.same_as(fused[0]) for each in rows),
        expected="i_outer and j_outer fused, in this order",
        seen=f"fused with {fused[0].var.name} outside" if fused else "no loops fused",
        look="schedule[C].fuse(i_outer, j_outer), and the order given to reorder",
    )


def _expect_no_other_kinds(schedule: Any, C: Any) -> None:
    """How the loops run, also those of one iteration, which are not in a nest."""
    from tvm import tir

    kinds = {
        tir.IterVar.Unrolled: "unrolled",
        tir.IterVar.Vectorized: "vectorized",
        tir.IterVar.Parallelized: "parallel",
    }
    seen = {
        str(axis.var.name): kinds[int(each.iter_type)]
        for axis, each in schedule[C].iter_var_attrs.items()
        if int(each.iter_type) in kinds
    }
    inner = [
        str(each.inner.var.name)
        for each in schedule[C].relations
        if type(each).__name__ == "Split" and each.parent.same_as(C.op.axis[1])
    ]
    expect(
        sorted(seen.values()) == ["parallel", "vectorized"]
        and [name for name, kind in seen.items() if kind == "vectorized"] == inner,
        expected="the fused loop parallel and j_inner vectorized, and no other loop",
        seen=", ".join(f"{name} {kind}" for name, kind in seen.items()) or "serial loops",
        look="the same primitives for all tiles, even for a loop of one iteration; the docstring "
        "asks for no unroll",
    )
