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
    # From the end: a batch, or a loop that is parallel already, may be outside i.
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, tile_m])
    j_outer, j_inner = schedule.split(j, [None, tile_n])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    return [i_outer, j_outer, k, i_inner, j_inner]


def vectorize(schedule: Any, block: Any) -> None:
    """Run the innermost loop of a tiled block with vector instructions.

    Of i_outer, j_outer, k, i_inner, j_inner only the last walks along a row of B and of C, so
    adjacent iterations touch adjacent floats. The other loops stay serial.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block whose loops are as `tile` leaves them.
    """
    schedule.vectorize(schedule.get_loops(block)[-1])


def parallelize(schedule: Any, block: Any) -> None:
    """Share the tiles among the threads.

    Fuse i_outer and j_outer, so that every tile is a task of its own, and run the fused loop in
    parallel. Never k: its iterations add to the same elements of C.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block whose loops are as `tile` leaves them: i_outer, j_outer, k, i_inner,
            j_inner (the last may be vectorized).
    """
    i_outer, j_outer = schedule.get_loops(block)[:2]
    schedule.parallel(schedule.fuse(i_outer, j_outer))


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
    i, j, k = schedule.get_loops(block)[-3:]
    write_back = schedule.cache_write(block, 0, "local")
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    # TVM would drop a loop of one iteration, and another loop of the copy would be the last.
    schedule.reverse_compute_at(write_back, j_outer, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(write_back)[-1])
    schedule.vectorize(j_inner)
    schedule.unroll(i_inner)
    schedule.unroll(k_inner)
    schedule.decompose_reduction(block, k_outer)


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
    import tvm
    from tvm import te

    row_blocks, column_blocks, steps = -(-m // rows), -(-n // columns), -(-k // unroll_k)
    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    A_packed = te.compute(
        (row_blocks, steps * unroll_k, rows),
        lambda b, r, i: te.if_then_else(te.all(b * rows + i < m, r < k), A[b * rows + i, r], 0.0),
        name="A_packed",
    )
    B_packed = te.compute(
        (column_blocks, steps * unroll_k, columns),
        lambda b, r, j: te.if_then_else(
            te.all(b * columns + j < n, r < k), B[r, b * columns + j], 0.0
        ),
        name="B_packed",
    )
    r = te.reduce_axis((0, steps * unroll_k), name="k")
    T = te.compute(  # the tiles of C
        (row_blocks, column_blocks, rows, columns),
        lambda bi, bj, i, j: te.sum(A_packed[bi, r, i] * B_packed[bj, r, j], axis=r),
        name="T",
    )
    C = te.compute(
        (m, n),
        lambda i, j: T[i // rows, j // columns, i % rows, j % columns],
        name="C",
    )

    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    block, write_back = schedule.get_sblock("T"), schedule.get_sblock("C")
    row_block, column_block, i, j, k_loop = schedule.get_loops(block)
    k_outer, k_inner = schedule.split(k_loop, [None, unroll_k])
    A_pack, B_pack = schedule.get_sblock("A_packed"), schedule.get_sblock("B_packed")
    outer, near, inner, before = column_block, B_pack, row_block, A_pack
    if rows_first:
        outer, near, inner, before = row_block, A_pack, column_block, B_pack
    schedule.reorder(outer, inner, k_outer, k_inner, i, j)
    # T is declared tile by tile, so that its own buffer can be the accumulator; no cache_write.
    schedule.set_scope(block, 0, "local")
    schedule.reverse_compute_at(write_back, inner)
    schedule.compute_at(near, outer)
    if columns > 1:  # TVM drops a loop of one iteration, and another would be the last
        schedule.vectorize(schedule.get_loops(write_back)[-1])
        schedule.vectorize(schedule.get_loops(B_pack)[-1])
    schedule.vectorize(j)
    schedule.unroll(i)
    schedule.unroll(k_inner)
    schedule.parallel(outer)
    # All threads pack this operand before any of them multiplies: each tile reads it.
    schedule.parallel(schedule.get_loops(before)[0])
    schedule.decompose_reduction(block, k_outer)
    return schedule


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
