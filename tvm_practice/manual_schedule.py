"""Phase 2: manual schedules.

A schedule rearranges the loops that phase 1 declared and never touches the formula. It consists
of primitives, small steps that TVM checks before it takes them. The checks are not a proof: some
schedules that TVM accepts compute wrong values, and the run shows two. So compare every schedule's
values with NumPy's, several times if it is parallel. The primitives of current TVM are methods of
`schedule = tvm.s_tir.Schedule(module)`, which `fresh_schedule` below makes:

    get_sblock("C")                 the block of a stage, by name: the statement in its loops
    get_loops(block)                its loops, outermost first
    int(schedule.get(loop).extent)  the extent of a loop: the number of its iterations
    split(loop, [None, 8])          one loop becomes two: i_0, and i_1 of 8 iterations, with
                                    i = 8 * i_0 + i_1; returns both. TVM works out None, rounded
                                    up; if 8 does not divide, a guard (condition) skips the excess
    reorder(a, b, c)                puts these loops in this order, other loops stay in place
    fuse(a, b)                      makes one loop of two, b right inside a, and returns it
    vectorize(loop)                 its iterations become lanes: the elements of one vector
    parallel(loop)                  its iterations are shared among the threads
    unroll(loop)                    its body is written out, iteration after iteration
    cache_write(block, 0, "local")  output 0 of the block goes to a new buffer of scope "local", one
                                    thread's memory; returns a block that copies it to the output
    set_scope(block, 0, "local")    the block's own output becomes such a buffer
    compute_at(block, loop)         moves a producer into a loop of its consumer, the block that
                                    reads it; preserve_unit_loops=True keeps loops of one iteration
    reverse_compute_at(block, loop) moves a consumer into a loop of its producer; same option
    decompose_reduction(block, loop)
                                    moves a sum's zeroing to a block of its own just before `loop`;
                                    call it last: afterwards no `vectorize` or `parallel` of the sum

In classic TVM, a schedule has one stage per tensor, and the primitives are the stage's methods:

    schedule = te.create_schedule(C.op)
    i, j = C.op.axis                                      (k,) = C.op.reduce_axis
    outer, inner = schedule[C].split(j, factor=8)         schedule[C].reorder(i, outer, k, inner)
    schedule[C].parallel(schedule[C].fuse(i, outer))      schedule[C].vectorize(inner)

The worked example is a transposition, scheduled and tiled in both TVMs. Write the functions below
it, then run `python -m tvm_practice.manual_schedule` and `pytest -m phase2`.
"""

from typing import Any

from tvm_practice.course.phase import phase_command

# register_tile() -> (rows, columns), powers of two: a tile of C that the registers hold.
# packed_blocking(n) -> {"rows", "columns", "rows_first"} for packed_matmul with n columns.
from tvm_practice.engines.blocking import packed_blocking as packed_blocking
from tvm_practice.engines.blocking import register_tile as register_tile


def transpose(n: int) -> list[Any]:
    """The worked example's expression: [X, Y], n rows and n columns each, Y[i, j] = X[j, i]."""
    from tvm import te

    X = te.placeholder((n, n), name="X")
    Y = te.compute((n, n), lambda i, j: X[j, i], name="Y")
    return [X, Y]


def fresh_schedule(tensors: list[Any]) -> tuple[Any, Any]:
    """Worked example: a schedule of [inputs…, output] in current TVM, and the output's block.

    An expression becomes a PrimFunc, a function of loops over buffers. An IRModule holds functions
    by name; a Schedule changes the functions of a module.
    """
    import tvm
    from tvm import te

    function = te.create_prim_func(tensors).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    return schedule, schedule.get_sblock(tensors[-1].op.name)


def in_tiles(schedule: Any, block: Any, size: int) -> None:
    """Worked example: run the two loops of `transpose` tile by tile.

    Writing Y row by row reads X column by column: every read is in another cache line, and the
    line is evicted before its next element is needed. In tiles of size x size it stays until
    all its elements are used.
    """
    i, j = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, size])
    j_outer, j_inner = schedule.split(j, [None, size])
    schedule.reorder(i_outer, j_outer, i_inner, j_inner)


def in_tiles_classic(tensors: list[Any], size: int) -> Any:
    """Worked example: `in_tiles` in classic TVM, as a tvm.te.Schedule."""
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

    Of i_outer, j_outer, k, i_inner, j_inner only the last goes from float to float in a row of B
    and of C: adjacent iterations touch adjacent floats. The other loops stay serial.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block whose loops are as `tile` leaves them.
    """
    raise NotImplementedError("schedule.vectorize of the innermost loop")


def parallelize(schedule: Any, block: Any) -> None:
    """Share the tiles among the threads.

    Fuse i_outer and j_outer, in this order, so that every tile is a task of its own, and run the
    fused loop in parallel. Never k: its iterations add to the same elements of C.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block whose loops are the five that `tile` makes: i_outer, j_outer, k, i_inner,
            j_inner (the last may be vectorized).
    """
    raise NotImplementedError("schedule.fuse of the two tile loops, then schedule.parallel")


def tile_with_k(schedule: Any, block: Any, rows: int, columns: int, unroll_k: int) -> list[Any]:
    """`tile` with k split too: i_outer, j_outer, k_outer, k_inner, i_inner, j_inner, all serial.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block. Its last three loops are i, j and k; others stay as they are.
        rows: the extent of i_inner.
        columns: the extent of j_inner.
        unroll_k: the extent of k_inner. None of the three need divide its loop.

    Returns:
        Those six loops in a list.
    """
    raise NotImplementedError("split i, j and k, then schedule.reorder")


def accumulate_locally(schedule: Any, block: Any, loop: Any) -> Any:
    """Let a tiled sum accumulate in a local buffer, and copy it to C once per iteration of a loop.

    The block writes to a buffer of scope "local" instead of C. A new block copies the buffer to
    C inside `loop`, after the loops of the sum. Its own two loops, rows and columns, are there
    even if they have one iteration; the columns are vectorized. The sum's loops stay as they are.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block whose loops are as `tile_with_k` leaves them; C is its output, of any name.
        loop: the loop for the copy; j_outer for one copy per tile.

    Returns:
        The block that copies.
    """
    raise NotImplementedError("cache_write, reverse_compute_at, vectorize the copy's last loop")


def fill_registers(schedule: Any, block: Any) -> None:
    """Write a tile out for registers: columns vectorized, rows and k_inner unrolled, zeroed before.

    The block's last four loops are k_outer, k_inner, i_inner, j_inner. A separate statement
    before k_outer sets the block's buffer to zero. Its loops run as the tile's do: vectorize and
    unroll first, and call decompose_reduction last.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block that accumulates in a local buffer.
    """
    raise NotImplementedError("vectorize, unroll twice, then decompose_reduction")


def register_block(schedule: Any, block: Any, rows: int, columns: int, unroll_k: int) -> None:
    """Keep a tile of C in registers while all of k is added to it: the three steps above.

    The block's last three loops are i, j and k; loops outside i stay as they are. Tile them to
    i_outer, j_outer, k_outer, k_inner, i_inner, j_inner, with j_inner vectorized and i_inner and
    k_inner unrolled. The block accumulates in a buffer of scope "local", which is written to C once
    per tile, inside j_outer, its columns vectorized. A separate statement before k_outer sets the
    buffer to zero, in loops that run as the tile's do: call decompose_reduction last.

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


def pack_operand(X: Any, axis: int, width: int, depth: int) -> Any:  # a te.Tensor
    """Declare a copy of A or B in which a tile's elements are adjacent, with zeros past the edge.

    It has panels of `width` rows of X (axis 0) or columns of X (axis 1). Its element [b, r, w] is
    element r of row or column b * width + w. Where X has no such element, the copy has 0.0:
    te.if_then_else(te.all(first, second), value, 0.0) reads X only where both conditions hold.

    Args:
        X: a te.Tensor of two dimensions: A (m, k) with axis 0, B (k, n) with axis 1.
        axis: which of X's axes is cut into panels; the sum runs along the other one.
        width: rows or columns per panel; it need not divide them.
        depth: steps of the sum, k or more.

    Returns:
        The te.Tensor [panels][depth][width], named as X with "_packed" after it.
    """
    raise NotImplementedError("one te.compute of three indices, with te.if_then_else")


def packed_product(A_packed: Any, B_packed: Any, m: int, n: int) -> Any:  # a te.Tensor
    """Declare the product of two operands of `pack_operand`, one tile after the other.

    Stage "T" [row panels][column panels][rows][columns] of float32 holds the tiles: T[bi, bj, i, j]
    is the sum over all steps r of A_packed[bi, r, i] * B_packed[bj, r, j], without a condition.
    Stage "C" (m, n) reads each of its elements from T, and leaves out what lies past m and n.

    Args:
        A_packed: a te.Tensor [row panels][depth][rows].
        B_packed: a te.Tensor [column panels][depth][columns].
        m: rows of C.
        n: columns of C.

    Returns:
        The te.Tensor C.
    """
    raise NotImplementedError("two calls of te.compute: T with te.sum, and C of T's elements")


def order_packed(schedule: Any, unroll_k: int, rows_first: bool) -> Any:
    """Schedule the tiles of `packed_product`: loops, threads, the buffer and its copy to C.

    The loops of block "T" become, outermost first: column panels, in parallel; row panels;
    k_outer; k_inner of unroll_k iterations (it divides the depth); rows; columns. With
    rows_first, row panels are outermost and in parallel, column panels inside them. T's own
    buffer gets the scope "local". Block "C" copies each tile to C inside the second loop, after
    k_outer; its columns are vectorized (a single one need not be). The other loops are serial.

    Args:
        schedule: a tvm.s_tir.Schedule of the stages, nothing scheduled yet; changed in place.
        unroll_k: the extent of k_inner.
        rows_first: whether the parallel loop is over row panels.

    Returns:
        The parallel loop.
    """
    raise NotImplementedError("split, reorder, set_scope, reverse_compute_at, parallel, vectorize")


def place_copies(schedule: Any, outer: Any, rows_first: bool) -> None:
    """Pack one operand in the parallel loop of `order_packed`, the other before it.

    Block "B_packed" moves into `outer`: each thread packs a column panel just before all row
    panels use it. Block "A_packed" stays before, its outermost loop parallel. With rows_first A
    and B change places. The last loop of B_packed, its columns, is vectorized either way, even if
    it has one iteration. The other loops of both copies, and those of the sum, stay as they are.

    Args:
        schedule: a tvm.s_tir.Schedule as `order_packed` leaves it, changed in place.
        outer: the parallel loop.
        rows_first: whether `outer` is over row panels.
    """
    raise NotImplementedError("compute_at one copy, parallel on the other, vectorize B_packed's")


def packed_matmul(
    m: int, n: int, k: int, *, rows: int, columns: int, unroll_k: int = 4, rows_first: bool = False
) -> Any:  # a tvm.s_tir.Schedule
    """A matmul near the processor's peak: packed inputs, a register block, all threads.

    Call the four steps above and `fill_registers`, or write it in one piece.

    Declare and schedule a PrimFunc main(A, B, C) of float32 buffers (m, k), (k, n), (m, n):

    - A_packed [m/rows][k][rows]: the rows of A that one tile reads, one column after the other
      without a gap. Packed first, its outermost loop parallel.
    - B_packed [n/columns][k][columns]: likewise for the columns of B. Packed inside the parallel
      loop over column panels, just before they are used; its columns vectorized either way.
    - Tiles of rows x columns accumulate in a "local" buffer, as in `register_block`: columns
      vectorized, rows and unroll_k steps of k unrolled, set to zero before k, written to C once.
    - The loop over column panels is parallel, the loop over row panels is inside it: a column panel
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
        rows_first: whether the parallel loop is over row panels, with A packed inside it and B
            before it: for use with fewer than two column panels per thread.

    Returns:
        The tvm.s_tir.Schedule.
    """
    raise NotImplementedError("declare the packed stages and schedule them as register_block does")


def tile_classic(tensors: list[Any], tile_m: int, tile_n: int) -> Any:  # a tvm.te.Schedule
    """`tile`, `vectorize` and `parallelize` in one classic schedule.

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
