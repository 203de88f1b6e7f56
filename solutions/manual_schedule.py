"""Reference answers of phase 2."""

from typing import Any


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
    # From the end: there may be loops outside i, such as a batch or a parallel loop.
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, tile_m])
    j_outer, j_inner = schedule.split(j, [None, tile_n])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    return [i_outer, j_outer, k, i_inner, j_inner]


def vectorize(schedule: Any, block: Any) -> None:
    """Run the innermost loop of a tiled block with vector instructions.

    Of i_outer, j_outer, k, i_inner, j_inner only the last goes from float to float in a row of B
    and of C: adjacent iterations touch adjacent floats. The other loops stay serial.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block whose loops are as `tile` leaves them.
    """
    schedule.vectorize(schedule.get_loops(block)[-1])


def parallelize(schedule: Any, block: Any) -> None:
    """Share the tiles among the threads.

    Fuse i_outer and j_outer, in this order, so that every tile is a task of its own, and run the
    fused loop in parallel. Never k: its iterations add to the same elements of C.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block whose loops are the five that `tile` makes: i_outer, j_outer, k, i_inner,
            j_inner (the last may be vectorized).
    """
    i_outer, j_outer = schedule.get_loops(block)[:2]
    schedule.parallel(schedule.fuse(i_outer, j_outer))


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
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    loops = [i_outer, j_outer, k_outer, k_inner, i_inner, j_inner]
    schedule.reorder(*loops)
    return loops


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
    write_back = schedule.cache_write(block, 0, "local")
    # Otherwise TVM drops loops of one iteration, and the copy's last loop may be another one.
    schedule.reverse_compute_at(write_back, loop, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(write_back)[-1])
    return write_back


def fill_registers(schedule: Any, block: Any) -> None:
    """Write a tile out for registers: columns vectorized, rows and k_inner unrolled, zeroed before.

    The block's last four loops are k_outer, k_inner, i_inner, j_inner. A separate statement
    before k_outer sets the block's buffer to zero. Its loops run as the tile's do: vectorize and
    unroll first, and call decompose_reduction last.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block that accumulates in a local buffer.
    """
    k_outer, k_inner, i_inner, j_inner = schedule.get_loops(block)[-4:]
    schedule.vectorize(j_inner)
    schedule.unroll(i_inner)
    schedule.unroll(k_inner)
    schedule.decompose_reduction(block, k_outer)


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
    loops = tile_with_k(schedule, block, rows, columns, unroll_k)
    accumulate_locally(schedule, block, loops[1])  # once per iteration of j_outer
    fill_registers(schedule, block)


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
    from tvm import te

    size, k = int(X.shape[axis]), int(X.shape[1 - axis])

    def element(b: Any, r: Any, w: Any) -> Any:
        at = b * width + w
        value = X[at, r] if axis == 0 else X[r, at]
        return te.if_then_else(te.all(at < size, r < k), value, 0.0)

    return te.compute((-(-size // width), depth, width), element, name=f"{X.op.name}_packed")


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
    from tvm import te

    row_blocks, depth, rows = (int(extent) for extent in A_packed.shape)
    column_blocks, _, columns = (int(extent) for extent in B_packed.shape)
    r = te.reduce_axis((0, depth), name="k")
    T = te.compute(
        (row_blocks, column_blocks, rows, columns),
        lambda bi, bj, i, j: te.sum(A_packed[bi, r, i] * B_packed[bj, r, j], axis=r),
        name="T",
    )
    return te.compute(
        (m, n), lambda i, j: T[i // rows, j // columns, i % rows, j % columns], name="C"
    )


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
    block, write_back = schedule.get_sblock("T"), schedule.get_sblock("C")
    row_block, column_block, i, j, k = schedule.get_loops(block)
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    outer, inner = (row_block, column_block) if rows_first else (column_block, row_block)
    schedule.reorder(outer, inner, k_outer, k_inner, i, j)
    # T is declared tile by tile, so its own buffer can be the accumulator, without cache_write.
    schedule.set_scope(block, 0, "local")
    schedule.reverse_compute_at(write_back, inner)
    if int(schedule.get(j).extent) > 1:  # otherwise TVM has dropped it, and another is last
        schedule.vectorize(schedule.get_loops(write_back)[-1])
    schedule.parallel(outer)
    return outer


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
    A_pack, B_pack = schedule.get_sblock("A_packed"), schedule.get_sblock("B_packed")
    near, before = (A_pack, B_pack) if rows_first else (B_pack, A_pack)
    schedule.compute_at(near, outer, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(B_pack)[-1])
    # All threads pack this operand before any of them multiplies: each tile reads it.
    schedule.parallel(schedule.get_loops(before)[0])


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
    import tvm
    from tvm import te

    depth = -(-k // unroll_k) * unroll_k
    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    A_packed, B_packed = pack_operand(A, 0, rows, depth), pack_operand(B, 1, columns, depth)
    C = packed_product(A_packed, B_packed, m, n)
    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    outer = order_packed(schedule, unroll_k, rows_first)
    place_copies(schedule, outer, rows_first)
    fill_registers(schedule, schedule.get_sblock("T"))
    return schedule


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
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    i_outer, i_inner = schedule[C].split(i, factor=tile_m)
    j_outer, j_inner = schedule[C].split(j, factor=tile_n)
    schedule[C].reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    schedule[C].vectorize(j_inner)
    return schedule
