"""Wrong solutions of phase 2."""

from tests.mutants import mutant


@mutant("tile", message="(?s)all of k within a tile")
def k_stays_innermost(schedule, block, tile_m, tile_n):
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, tile_m])
    j_outer, j_inner = schedule.split(j, [None, tile_n])
    schedule.reorder(i_outer, j_outer, i_inner, j_inner, k)
    return [i_outer, j_outer, i_inner, j_inner, k]


@mutant("tile", message=r"(?s)rounds the outer\s+one up")
def outer_loop_rounded_down(schedule, block, tile_m, tile_n):
    i, j, k = schedule.get_loops(block)[-3:]
    rows, columns = (int(schedule.get(loop).extent) for loop in (i, j))
    i_outer, i_inner = schedule.split(i, [rows // tile_m, None])
    j_outer, j_inner = schedule.split(j, [columns // tile_n, None])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    return [i_outer, j_outer, k, i_inner, j_inner]


@mutant("tile", message="rows are i, columns are j")
def rows_and_columns_swapped(schedule, block, tile_m, tile_n):
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, tile_n])
    j_outer, j_inner = schedule.split(j, [None, tile_m])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    return [i_outer, j_outer, k, i_inner, j_inner]


@mutant("tile", message="get_loops")
def takes_the_first_loops(schedule, block, tile_m, tile_n):
    i, j, k = schedule.get_loops(block)[:3]
    i_outer, i_inner = schedule.split(i, [None, tile_m])
    j_outer, j_inner = schedule.split(j, [None, tile_n])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    return [i_outer, j_outer, k, i_inner, j_inner]


@mutant("tile", message="the return statement")
def returns_nothing(schedule, block, tile_m, tile_n):
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, tile_m])
    j_outer, j_inner = schedule.split(j, [None, tile_n])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)


@mutant("tile", message="every loop stays serial")
def vectorizes_as_well(schedule, block, tile_m, tile_n):
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, tile_m])
    j_outer, j_inner = schedule.split(j, [None, tile_n])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.vectorize(j_inner)
    return [i_outer, j_outer, k, i_inner, j_inner]


@mutant("vectorize", message="(?s)the innermost loop, j_1, is vectorized.*i_1 vectorized")
def vectorizes_the_rows(schedule, block):
    schedule.vectorize(schedule.get_loops(block)[-2])


@mutant("vectorize", message="the loop over k, a reduction")
def vectorizes_the_reduction(schedule, block):
    schedule.vectorize(schedule.get_loops(block)[2])


@mutant("vectorize", message="the last of get_loops")
def unrolls_instead(schedule, block):
    schedule.unroll(schedule.get_loops(block)[-1])


@mutant("vectorize", message="what makes i_1 other than serial")
def unrolls_the_rows_as_well(schedule, block):
    schedule.vectorize(schedule.get_loops(block)[-1])
    schedule.unroll(schedule.get_loops(block)[-2])


@mutant("vectorize", message="decompose_reduction is the last primitive")
def takes_the_reduction_apart_first(schedule, block):
    loops = schedule.get_loops(block)
    schedule.decompose_reduction(block, loops[2])
    schedule.vectorize(loops[-1])


@mutant("parallelize", message="runs over all")
def does_not_fuse(schedule, block):
    schedule.parallel(schedule.get_loops(block)[0])


@mutant("parallelize", message="the loop over k, a reduction")
def parallel_reduction(schedule, block):
    schedule.parallel(schedule.get_loops(block)[2])


@mutant("parallelize", message="(?s)one parallel loop, the outermost.*at every step")
def parallel_inside_the_reduction(schedule, block):
    schedule.parallel(schedule.get_loops(block)[3])


@mutant("parallelize", message="the loop over k, a reduction")
def fuses_the_reduction_too(schedule, block):
    schedule.parallel(schedule.fuse(*schedule.get_loops(block)[:3]))


@mutant("parallelize", message="what else the function changes")
def unrolls_the_tile(schedule, block):
    i_outer, j_outer = schedule.get_loops(block)[:2]
    schedule.parallel(schedule.fuse(i_outer, j_outer))
    schedule.unroll(schedule.get_loops(block)[-2])


@mutant("register_block", message="add up in a buffer of scope")
def adds_up_in_c(schedule, block, rows, columns, unroll_k):
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    schedule.vectorize(j_inner)
    schedule.unroll(i_inner)
    schedule.unroll(k_inner)
    schedule.decompose_reduction(block, k_outer)


@mutant("register_block", message="the whole of C waits in the buffer")
def writes_back_at_the_end(schedule, block, rows, columns, unroll_k):
    i, j, k = schedule.get_loops(block)[-3:]
    schedule.cache_write(block, 0, "local")
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    schedule.vectorize(j_inner)
    schedule.unroll(i_inner)
    schedule.unroll(k_inner)
    schedule.decompose_reduction(block, k_outer)


@mutant("register_block", message="written again at every step of k")
def writes_back_at_every_k(schedule, block, rows, columns, unroll_k):
    i, j, k = schedule.get_loops(block)[-3:]
    write_back = schedule.cache_write(block, 0, "local")
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    schedule.vectorize(j_inner)
    schedule.unroll(i_inner)
    schedule.unroll(k_inner)
    schedule.reverse_compute_at(write_back, k_outer)
    schedule.decompose_reduction(block, k_outer)


@mutant("register_block", message="tests at every step whether k is 0")
def leaves_the_zeroing_inside(schedule, block, rows, columns, unroll_k):
    i, j, k = schedule.get_loops(block)[-3:]
    write_back = schedule.cache_write(block, 0, "local")
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    schedule.reverse_compute_at(write_back, j_outer)
    schedule.vectorize(j_inner)
    schedule.unroll(i_inner)
    schedule.unroll(k_inner)


@mutant("register_block", message="decompose_reduction is the last primitive")
def decomposes_before_vectorizing(schedule, block, rows, columns, unroll_k):
    i, j, k = schedule.get_loops(block)[-3:]
    write_back = schedule.cache_write(block, 0, "local")
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    schedule.reverse_compute_at(write_back, j_outer)
    schedule.decompose_reduction(block, k_outer)
    schedule.vectorize(j_inner)
    schedule.unroll(i_inner)
    schedule.unroll(k_inner)


@mutant("register_block", message="unroll of both inner loops")
def does_not_unroll_the_rows(schedule, block, rows, columns, unroll_k):
    i, j, k = schedule.get_loops(block)[-3:]
    write_back = schedule.cache_write(block, 0, "local")
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    schedule.reverse_compute_at(write_back, j_outer)
    schedule.vectorize(j_inner)
    schedule.unroll(k_inner)
    schedule.decompose_reduction(block, k_outer)


@mutant("packed_matmul", message="returns the tvm.s_tir.Schedule")
def returns_the_module(m, n, k, *, rows, columns, unroll_k=4, rows_first=False):
    import tvm
    from tvm import te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    return tvm.IRModule({"main": te.create_prim_func([A, B, C])})


@mutant("packed_matmul", message="A is packed: a statement that reads A")
def packs_nothing(m, n, k, *, rows, columns, unroll_k=4, rows_first=False):
    import tvm
    from tvm import te

    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")
    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    return tvm.s_tir.Schedule(tvm.IRModule({"main": function}))


@mutant("packed_matmul", message="(?s)C of 23x17 by 17x45.*past the matrix's edge")
def repeats_the_last_k_at_the_edge(m, n, k, *, rows, columns, unroll_k=4, rows_first=False):
    import tvm
    from tvm import te

    row_blocks, column_blocks, steps = -(-m // rows), -(-n // columns), -(-k // unroll_k)
    A = te.placeholder((m, k), name="A")
    B = te.placeholder((k, n), name="B")
    A_packed = te.compute(
        (row_blocks, steps * unroll_k, rows),
        lambda b, r, i: A[te.min(b * rows + i, m - 1), te.min(r, k - 1)],
        name="A_packed",
    )
    B_packed = te.compute(
        (column_blocks, steps * unroll_k, columns),
        lambda b, r, j: B[te.min(r, k - 1), te.min(b * columns + j, n - 1)],
        name="B_packed",
    )
    r = te.reduce_axis((0, steps * unroll_k), name="k")
    T = te.compute(
        (row_blocks, column_blocks, rows, columns),
        lambda bi, bj, i, j: te.sum(A_packed[bi, r, i] * B_packed[bj, r, j], axis=r),
        name="T",
    )
    C = te.compute((m, n), lambda i, j: T[i // rows, j // columns, i % rows, j % columns], name="C")
    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    block, write_back = schedule.get_sblock("T"), schedule.get_sblock("C")
    row_block, column_block, i, j, k_loop = schedule.get_loops(block)
    k_outer, k_inner = schedule.split(k_loop, [None, unroll_k])
    schedule.reorder(column_block, row_block, k_outer, k_inner, i, j)
    schedule.set_scope(block, 0, "local")
    schedule.reverse_compute_at(write_back, row_block)
    schedule.vectorize(j)
    schedule.unroll(i)
    schedule.unroll(k_inner)
    schedule.parallel(column_block)
    schedule.compute_at(schedule.get_sblock("B_packed"), column_block)
    schedule.parallel(schedule.get_loops(schedule.get_sblock("A_packed"))[0])
    schedule.decompose_reduction(block, k_outer)
    return schedule


@mutant("packed_matmul", message="what one tile reads at a step of k lies side by side")
def packs_b_by_rows_of_the_tile(m, n, k, *, rows, columns, unroll_k=4, rows_first=False):
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
        (column_blocks, columns, steps * unroll_k),
        lambda b, j, r: te.if_then_else(
            te.all(b * columns + j < n, r < k), B[r, b * columns + j], 0.0
        ),
        name="B_packed",
    )
    r = te.reduce_axis((0, steps * unroll_k), name="k")
    T = te.compute(
        (row_blocks, column_blocks, rows, columns),
        lambda bi, bj, i, j: te.sum(A_packed[bi, r, i] * B_packed[bj, j, r], axis=r),
        name="T",
    )
    C = te.compute((m, n), lambda i, j: T[i // rows, j // columns, i % rows, j % columns], name="C")
    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    return tvm.s_tir.Schedule(tvm.IRModule({"main": function}))


@mutant("packed_matmul", message="B is packed inside the loop over column blocks")
def packs_all_of_b_first(m, n, k, *, rows, columns, unroll_k=4, rows_first=False):
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
    T = te.compute(
        (row_blocks, column_blocks, rows, columns),
        lambda bi, bj, i, j: te.sum(A_packed[bi, r, i] * B_packed[bj, r, j], axis=r),
        name="T",
    )
    C = te.compute((m, n), lambda i, j: T[i // rows, j // columns, i % rows, j % columns], name="C")
    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    block, write_back = schedule.get_sblock("T"), schedule.get_sblock("C")
    row_block, column_block, i, j, k_loop = schedule.get_loops(block)
    k_outer, k_inner = schedule.split(k_loop, [None, unroll_k])
    schedule.reorder(column_block, row_block, k_outer, k_inner, i, j)
    schedule.set_scope(block, 0, "local")
    schedule.reverse_compute_at(write_back, row_block)
    schedule.vectorize(j)
    schedule.unroll(i)
    schedule.unroll(k_inner)
    schedule.parallel(column_block)
    schedule.parallel(schedule.get_loops(schedule.get_sblock("A_packed"))[0])
    schedule.parallel(schedule.get_loops(schedule.get_sblock("B_packed"))[0])
    schedule.decompose_reduction(block, k_outer)
    return schedule


@mutant("packed_matmul", message=r"the outermost loop is parallel\(2\), the column blocks")
def runs_on_one_thread(m, n, k, *, rows, columns, unroll_k=4, rows_first=False):
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
    T = te.compute(
        (row_blocks, column_blocks, rows, columns),
        lambda bi, bj, i, j: te.sum(A_packed[bi, r, i] * B_packed[bj, r, j], axis=r),
        name="T",
    )
    C = te.compute((m, n), lambda i, j: T[i // rows, j // columns, i % rows, j % columns], name="C")
    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    block, write_back = schedule.get_sblock("T"), schedule.get_sblock("C")
    row_block, column_block, i, j, k_loop = schedule.get_loops(block)
    k_outer, k_inner = schedule.split(k_loop, [None, unroll_k])
    schedule.reorder(column_block, row_block, k_outer, k_inner, i, j)
    schedule.set_scope(block, 0, "local")
    schedule.reverse_compute_at(write_back, row_block)
    schedule.vectorize(j)
    schedule.unroll(i)
    schedule.unroll(k_inner)
    schedule.compute_at(schedule.get_sblock("B_packed"), column_block)
    schedule.decompose_reduction(block, k_outer)
    return schedule


@mutant("packed_matmul", message=r"the row blocks, with rows_first=True")
def knows_one_order(m, n, k, *, rows, columns, unroll_k=4, rows_first=False):
    from solutions.manual_schedule import packed_matmul

    return packed_matmul(m, n, k, rows=rows, columns=columns, unroll_k=unroll_k)


@mutant("tile_classic", message="all of k within a tile")
def classic_k_inside_the_rows(tensors, tile_m, tile_n):
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    i_outer, i_inner = schedule[C].split(i, factor=tile_m)
    j_outer, j_inner = schedule[C].split(j, factor=tile_n)
    schedule[C].reorder(i_outer, j_outer, i_inner, k, j_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    schedule[C].vectorize(j_inner)
    return schedule


@mutant("tile_classic", message=r"(?s)parallel\(24\).*tile_m is of rows")
def classic_tiles_swapped(tensors, tile_m, tile_n):
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    i_outer, i_inner = schedule[C].split(i, factor=tile_n)
    j_outer, j_inner = schedule[C].split(j, factor=tile_m)
    schedule[C].reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    schedule[C].vectorize(j_inner)
    return schedule


@mutant("tile_classic", message="`factor` is the extent of the inner loop")
def classic_splits_k_too(tensors, tile_m, tile_n):
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    i_outer, i_inner = schedule[C].split(i, factor=tile_m)
    j_outer, j_inner = schedule[C].split(j, factor=tile_n)
    k_outer, k_inner = schedule[C].split(k, factor=4)
    schedule[C].reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    schedule[C].vectorize(j_inner)
    return schedule


@mutant("tile_classic", message="parallel over all 4·5 = 20 tiles")
def classic_rows_of_tiles_only(tensors, tile_m, tile_n):
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    i_outer, i_inner = schedule[C].split(i, factor=tile_m)
    j_outer, j_inner = schedule[C].split(j, factor=tile_n)
    schedule[C].reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule[C].parallel(i_outer)
    schedule[C].vectorize(j_inner)
    return schedule


@mutant("tile_classic", message=r"look at: +schedule\[C\].vectorize\(j_inner\)")
def classic_unrolled_not_vectorized(tensors, tile_m, tile_n):
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    i_outer, i_inner = schedule[C].split(i, factor=tile_m)
    j_outer, j_inner = schedule[C].split(j, factor=tile_n)
    schedule[C].reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    schedule[C].unroll(j_inner)
    return schedule


@mutant("tile_classic", message="returns the schedule of te.create_schedule")
def classic_returns_the_stage(tensors, tile_m, tile_n):
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
    return schedule[C]
