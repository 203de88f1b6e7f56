"""An AutoTVM template of a packed, register-blocked matrix product.

The blocking is that of phase 2's `packed_matmul`, for the classic engine, with the numbers that
it is given left open.
"""

from typing import Any


def packed_matmul_template(m: int, n: int, k: int) -> tuple[Any, list[Any]]:
    """`packed_matmul` with its numbers as knobs, of tiles that fit the vector registers.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.

    Returns:
        As `packed_matmul`.
    """
    from tvm import autotvm

    from tvm_practice.engines import host

    here = host()

    def fits(knobs: dict[str, Any]) -> bool:
        """A row of B and the accumulators in registers, and one to spare for a value of A."""
        vectors = knobs["columns"].val // here.vector_lanes
        return bool(vectors * (knobs["rows"].val + 1) < here.vector_registers)

    cfg = autotvm.get_config()
    cfg.define_knob("rows", [1, 2, 3, 4, 6, 8, 10, 12, 14])
    cfg.define_knob("columns", [here.vector_lanes * vectors for vectors in (1, 2, 3, 4, 6)])
    cfg.define_knob("unroll_k", [1, 2, 4, 8])
    cfg.define_knob("rows_first", [0, 1])
    cfg.multi_filter(fits)
    cfg.add_flop(2 * m * n * k)
    return packed_matmul(
        m,
        n,
        k,
        rows=cfg["rows"].val,
        columns=cfg["columns"].val,
        unroll_k=cfg["unroll_k"].val,
        rows_first=bool(cfg["rows_first"].val),
    )


def packed_matmul(
    m: int, n: int, k: int, *, rows: int, columns: int, unroll_k: int, rows_first: bool = False
) -> tuple[Any, list[Any]]:
    """C[i, j] = sum over k of A[i, k] * B[k, j], inputs packed, tiles of C in registers.

    A_packed is [m/rows][k][rows], B_packed [n/columns][k][columns]: what one tile reads lies
    without a gap. Both round their sizes up and hold zeros there, so that only the write-back has
    guards. One of them is packed inside the parallel loop over its blocks, just before it is
    used, and stays in a near cache while the blocks of the other, packed before, pass by.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        rows: rows of a tile, unrolled.
        columns: columns of a tile, vectorized; a multiple of the vector's lanes for speed.
        unroll_k: steps of k that are unrolled.
        rows_first: whether the parallel loop is over blocks of rows, and not of columns.

    Returns:
        The classic te.Schedule and the tensors [A, B, C] of shapes (m, k), (k, n) and (m, n),
        float32.
    """
    from tvm import te

    steps = -(-k // unroll_k) * unroll_k
    A = te.placeholder((m, k), dtype="float32", name="A")
    B = te.placeholder((k, n), dtype="float32", name="B")
    A_packed = te.compute(
        (-(-m // rows), steps, rows),
        lambda b, r, i: te.if_then_else(te.all(b * rows + i < m, r < k), A[b * rows + i, r], 0.0),
        name="A_packed",
    )
    B_packed = te.compute(
        (-(-n // columns), steps, columns),
        lambda b, r, j: te.if_then_else(
            te.all(b * columns + j < n, r < k), B[r, b * columns + j], 0.0
        ),
        name="B_packed",
    )
    r = te.reduce_axis((0, steps), name="k")
    T = te.compute(  # the tiles of C
        (-(-m // rows), -(-n // columns), rows, columns),
        lambda bi, bj, i, j: te.sum(A_packed[bi, r, i] * B_packed[bj, r, j], axis=r),
        name="T",
    )
    C = te.compute((m, n), lambda i, j: T[i // rows, j // columns, i % rows, j % columns], name="C")

    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    row_block, i_inner = schedule[C].split(i, factor=rows)
    column_block, j_inner = schedule[C].split(j, factor=columns)
    blocks = [(row_block, A_packed), (column_block, B_packed)]
    (outer, near), (inner, before) = blocks if rows_first else reversed(blocks)
    schedule[C].reorder(outer, inner, i_inner, j_inner)
    schedule[C].parallel(outer)
    schedule[C].vectorize(j_inner)

    schedule[T].set_scope("local")
    schedule[T].compute_at(schedule[C], inner)
    _, _, row, column = T.op.axis
    k_outer, k_inner = schedule[T].split(T.op.reduce_axis[0], factor=unroll_k)
    schedule[T].reorder(k_outer, k_inner, row, column)
    schedule[T].unroll(k_inner)
    schedule[T].unroll(row)
    schedule[T].vectorize(column)

    schedule[near].compute_at(schedule[C], outer)
    schedule[before].parallel(before.op.axis[0])
    schedule[B_packed].vectorize(B_packed.op.axis[2])
    return schedule, [A, B, C]
