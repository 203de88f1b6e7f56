"""Phase 2: manual schedules.

A schedule rearranges the loops that phase 1 declared and never touches the formula. It consists
of primitives, small steps that TVM checks before it takes them. The checks are not a proof: some
schedules that TVM accepts compute wrong values, and the run shows two of them. So compare the
values of every schedule, several times if it is parallel. The primitives of current TVM, where
`schedule` is a tvm.s_tir.Schedule:

    get_sblock("C")                 the block of a stage, by name
    get_loops(block)                its loops, outermost first
    split(loop, [None, 8])          one loop becomes two: i_0, and i_1 of 8 iterations, with
                                    i = 8 * i_0 + i_1; TVM works out None, rounds it up, and
                                    guards the block where 8 does not divide
    reorder(a, b, c)                puts these loops in this order, other loops stay in place
    fuse(a, b)                      two loops, one right inside the other, become one
    vectorize(loop)                 its iterations become the lanes of vector instructions
    parallel(loop)                  its iterations are shared among the threads
    unroll(loop)                    its body is written out, iteration after iteration
    cache_write(block, 0, "local")  the block writes to a new buffer instead of its output;
                                    returns a new block that copies the buffer to the output
    set_scope(block, 0, "local")    the block's own output becomes such a buffer
    compute_at(block, loop)         moves a producer into a loop of its consumer; with
                                    preserve_unit_loops=True it keeps loops of one iteration
    reverse_compute_at(block, loop) moves a consumer into a loop of its producer; likewise
    decompose_reduction(block, loop)
                                    moves a sum's zeroing to a block of its own, just before
                                    `loop`; call it last: the sum can no longer be vectorized
                                    or run in parallel afterwards

Classic TVM has the same ideas under other names. A schedule has one stage per tensor, and
the primitives are methods of the stage:

    schedule = te.create_schedule(C.op)
    i, j = C.op.axis                                      (k,) = C.op.reduce_axis
    outer, inner = schedule[C].split(i, factor=8)         schedule[C].reorder(outer, k, inner)
    fused = schedule[C].fuse(outer, j)                    schedule[C].parallel(fused)

The worked example is a transposition: its expression, a schedule, and tiles, in both TVMs. Write
the functions below it, then run

    python -m tvm_practice.manual_schedule
    pytest -m phase2
"""

from typing import Any

from tvm_practice.course.phase import phase_command

# register_tile() -> (rows, columns): the largest tile of C that this processor's registers hold.
# packed_blocking(n) -> {"rows", "columns", "rows_first"} of packed_matmul with n columns, on it.
from tvm_practice.engines.blocking import packed_blocking as packed_blocking
from tvm_practice.engines.blocking import register_tile as register_tile


def transpose(n: int) -> list[Any]:
    """The worked example's expression: Y[i, j] = X[j, i].

    Args:
        n: rows and columns of X and Y.

    Returns:
        The tensors [X, Y], float32.
    """
    from tvm import te

    X = te.placeholder((n, n), name="X")
    Y = te.compute((n, n), lambda i, j: X[j, i], name="Y")
    return [X, Y]


def fresh_schedule(tensors: list[Any]) -> tuple[Any, Any]:
    """Worked example: a schedule in current TVM, its loops as the expression declares them.

    te.create_prim_func turns an expression into a PrimFunc, a function of loops over buffers. An
    IRModule holds functions by name; a Schedule changes the functions of a module.

    Args:
        tensors: the inputs and then the output, as `transpose` returns them.

    Returns:
        The tvm.s_tir.Schedule and the block of the output.
    """
    import tvm
    from tvm import te

    function = te.create_prim_func(tensors).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    return schedule, schedule.get_sblock(tensors[-1].op.name)


def in_blocks(schedule: Any, block: Any, size: int) -> None:
    """Worked example: run the two loops of `transpose` tile by tile.

    Writing Y row by row reads X column by column: every read is in another cache line, and the
    line is evicted before its next element is needed. In tiles of size x size, the lines of a
    tile of X stay in the cache until all their elements are used.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the block of Y.
        size: rows and columns of a tile.
    """
    i, j = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, size])
    j_outer, j_inner = schedule.split(j, [None, size])
    schedule.reorder(i_outer, j_outer, i_inner, j_inner)


def in_blocks_classic(tensors: list[Any], size: int) -> Any:
    """Worked example: `in_blocks` in classic TVM, as a tvm.te.Schedule."""
    from tvm import te

    Y = tensors[-1]
    schedule = te.create_schedule(Y.op)
    i, j = Y.op.axis
    i_outer, i_inner = schedule[Y].split(i, factor=size)
    j_outer, j_inner = schedule[Y].split(j, factor=size)
    schedule[Y].reorder(i_outer, j_outer, i_inner, j_inner)
    return schedule


def tile(schedule: Any, block: Any, tile_m: int, tile_n: int) -> list[Any]:
    """Compute C tile by tile: split the rows and the columns, then reorder.

    The block's last three loops are i (rows), j (columns) and k (the sum). Afterwards they are,
    outermost first, i_outer, j_outer, k, i_inner, j_inner: all of k for one tile before the next
    tile. Loops outside i stay as they are. Tiles need not divide the matrix: `split` rounds the
    outer loop up and guards the block.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block, as schedule.get_sblock gives it.
        tile_m: rows of a tile, the extent of i_inner.
        tile_n: columns of a tile, the extent of j_inner.

    Returns:
        The loops [i_outer, j_outer, k, i_inner, j_inner].
    """
    raise NotImplementedError("split i and j with schedule.split, then schedule.reorder")


def vectorize(schedule: Any, block: Any) -> None:
    """Run the innermost loop of a tiled block with vector instructions.

    Of i_outer, j_outer, k, i_inner, j_inner only the last walks along a row of B and of C, so
    adjacent iterations touch adjacent floats. The other loops stay serial.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block whose loops are as `tile` leaves them.
    """
    raise NotImplementedError("schedule.vectorize of the innermost loop")


def parallelize(schedule: Any, block: Any) -> None:
    """Share the tiles among the threads.

    Fuse i_outer and j_outer, so that every tile is a task of its own, and run the fused loop in
    parallel. Never k: its iterations add to the same elements of C.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block whose loops are as `tile` leaves them: i_outer, j_outer, k, i_inner,
            j_inner (the last may be vectorized).
    """
    raise NotImplementedError("schedule.fuse of the two tile loops, then schedule.parallel")


def register_block(schedule: Any, block: Any, rows: int, columns: int, unroll_k: int) -> None:
    """Keep a tile of C in registers while all of k is added to it.

    The block's last three loops are i, j and k; loops outside i stay as they are. Tile them to
    i_outer, j_outer, k_outer, k_inner, i_inner, j_inner, with j_inner vectorized and i_inner and
    k_inner unrolled. The block accumulates in a buffer of scope "local", which is written to C
    once per tile, inside j_outer and after k_outer. A separate statement before k_outer sets the
    buffer to zero: call decompose_reduction last, because TVM refuses vectorize after it.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block.
        rows: rows of a tile, the extent of i_inner.
        columns: columns of a tile, the extent of j_inner.
        unroll_k: the extent of k_inner. None of the three need divide its loop.
    """
    raise NotImplementedError(
        "cache_write, split, reorder, vectorize, unroll, then decompose_reduction"
    )


def packed_matmul(
    m: int, n: int, k: int, *, rows: int, columns: int, unroll_k: int = 4, rows_first: bool = False
) -> Any:  # a tvm.s_tir.Schedule
    """A matmul near the processor's peak: packed inputs, a register block, all threads.

    Declare and schedule a PrimFunc main(A, B, C) of float32 buffers (m, k), (k, n), (m, n):

    - A_packed [m/rows][k][rows]: the rows of A that one tile reads, one column after the other
      without a gap. Packed first, its outermost loop parallel.
    - B_packed [n/columns][k][columns]: likewise for the columns of B. Packed inside the parallel
      loop over column blocks, just before they are used, its columns vectorized.
    - Tiles of rows x columns accumulate in a "local" buffer, as in `register_block`: columns
      vectorized, rows and unroll_k steps of k unrolled, set to zero before k, written to C once.
    - The loop over column blocks is parallel, the loop over row blocks is inside it: a column block
      of B stays in a near cache while all of A passes by. With rows_first A and B change places.

    The packed buffers round m, n and k up and hold zeros there, so the loop over k needs no guard
    at any size; only the write-back has one.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        rows: rows of a tile.
        columns: columns of a tile, a multiple of the vector's lanes for speed.
        unroll_k: steps of k that are unrolled.
        rows_first: whether the parallel loop is over row blocks, with A packed inside it and B
            before it: for use with fewer column blocks than threads.

    Returns:
        The tvm.s_tir.Schedule.
    """
    raise NotImplementedError("declare the packed stages and schedule them as register_block does")


def tile_classic(tensors: list[Any], tile_m: int, tile_n: int) -> Any:  # a tvm.te.Schedule
    """`tile`, `vectorize` and `parallelize` in classic TVM's words.

    A classic schedule holds one stage per tensor, schedule[C], and its loops are the axes of that
    stage: C.op.axis (rows, columns) and C.op.reduce_axis (k). The loops become i_outer and
    j_outer fused and parallel, k, i_inner, and j_inner vectorized.

    Args:
        tensors: [A, B, C] as `matmul` of phase 1 returns them.
        tile_m: rows of a tile.
        tile_n: columns of a tile.

    Returns:
        The tvm.te.Schedule of te.create_schedule.
    """
    raise NotImplementedError("te.create_schedule, then the same steps on the stage of C")


main = phase_command(
    "manual_schedule", "Phase 2: manual schedules, the same matmul made faster step by step."
)

if __name__ == "__main__":
    main()
