"""Wrong solutions of phase 2."""

from tests.mutants import edited, mutant

edited(
    "tile",
    "k_stays_innermost",
    {
        "j_outer, k, i_inner, j_inner)": "j_outer, i_inner, j_inner, k)",
        "return [i_outer, j_outer, k, i_inner, j_inner]": "return "
        "[i_outer, j_outer, i_inner, j_inner, k]",
    },
    message="(?s)all of k within a tile",
)


@mutant("tile", message=r"(?s)rounds the outer\s+one up")
def outer_loop_rounded_down(schedule, block, tile_m, tile_n):
    i, j, k = schedule.get_loops(block)[-3:]
    rows, columns = (int(schedule.get(loop).extent) for loop in (i, j))
    i_outer, i_inner = schedule.split(i, [rows // tile_m, None])
    j_outer, j_inner = schedule.split(j, [columns // tile_n, None])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    return [i_outer, j_outer, k, i_inner, j_inner]


edited(
    "tile",
    "rows_and_columns_swapped",
    {
        "split(i, [None, tile_m])": "split(i, [None, tile_n])",
        "split(j, [None, tile_n])": "split(j, [None, tile_m])",
    },
    message="rows are i, columns are j",
)


edited(
    "tile",
    "takes_the_first_loops",
    {"get_loops(block)[-3:]": "get_loops(block)[:3]"},
    message="get_loops",
)


edited(
    "tile",
    "returns_nothing",
    {"    return [i_outer, j_outer, k, i_inner, j_inner]": ""},
    message="the return statement",
)


edited(
    "tile",
    "vectorizes_as_well",
    {"    return [": "    schedule.vectorize(j_inner)\n    return ["},
    message="every loop stays serial",
)


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


edited(
    "register_block",
    "adds_up_in_c",
    {
        '    write_back = schedule.cache_write(block, 0, "local")\n': "",
        "    schedule.reverse_compute_at(write_back, j_outer)\n": "",
        "    schedule.vectorize(schedule.get_loops(write_back)[-1])\n": "",
    },
    message="add up in a buffer of scope",
)


edited(
    "register_block",
    "writes_back_at_the_end",
    {"    schedule.reverse_compute_at(write_back, j_outer)\n": ""},
    message="the whole of C waits in the buffer",
)


edited(
    "register_block",
    "writes_back_at_every_k",
    {"reverse_compute_at(write_back, j_outer)": "reverse_compute_at(write_back, k_outer)"},
    message="written again at every step of k",
)


edited(
    "register_block",
    "leaves_the_zeroing_inside",
    {"    schedule.decompose_reduction(block, k_outer)": ""},
    message="tests at every step whether k is 0",
)


edited(
    "register_block",
    "decomposes_before_vectorizing",
    {
        "    schedule.decompose_reduction(block, k_outer)": "",
        "schedule.vectorize(j_inner)": "schedule.decompose_reduction(block, k_outer)\n"
        "    schedule.vectorize(j_inner)",
    },
    message="decompose_reduction is the last primitive",
)


edited(
    "register_block",
    "does_not_unroll_the_rows",
    {"    schedule.unroll(i_inner)\n": ""},
    message="unroll of both inner loops",
)


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


edited(
    "packed_matmul",
    "repeats_the_last_k_at_the_edge",
    {
        "te.all(b * rows + i < m, r < k)": "True",
        "A[b * rows + i, r]": "A[te.min(b * rows + i, m - 1), te.min(r, k - 1)]",
        "te.all(b * columns + j < n, r < k)": "True",
        "B[r, b * columns + j]": "B[te.min(r, k - 1), te.min(b * columns + j, n - 1)]",
    },
    message="(?s)C of 23x17 by 17x45.*past the matrix's edge",
)


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


edited(
    "packed_matmul",
    "packs_all_of_b_first",
    {"schedule.compute_at(near, outer)": "schedule.parallel(schedule.get_loops(near)[0])"},
    message="B is packed inside the loop over column blocks",
)


edited(
    "packed_matmul",
    "runs_on_one_thread",
    {
        "    schedule.parallel(outer)\n": "",
        "    schedule.parallel(schedule.get_loops(before)[0])\n": "",
    },
    message=r"the outermost loop is parallel\(2\), the column blocks",
)


@mutant("packed_matmul", message=r"the row blocks, with rows_first=True")
def knows_one_order(m, n, k, *, rows, columns, unroll_k=4, rows_first=False):
    from solutions.manual_schedule import packed_matmul

    return packed_matmul(m, n, k, rows=rows, columns=columns, unroll_k=unroll_k)


edited(
    "tile_classic",
    "classic_k_inside_the_rows",
    {"j_outer, k, i_inner, j_inner": "j_outer, i_inner, k, j_inner"},
    message="all of k within a tile",
)


edited(
    "tile_classic",
    "classic_tiles_swapped",
    {
        "split(i, factor=tile_m)": "split(i, factor=tile_n)",
        "split(j, factor=tile_n)": "split(j, factor=tile_m)",
    },
    message=r"(?s)parallel\(24\).*tile_m is of rows",
)


edited(
    "tile_classic",
    "classic_splits_k_too",
    {
        "    schedule[C].reorder": "    k_outer, k_inner = schedule[C].split(k, factor=4)\n"
        "    schedule[C].reorder",
        "j_outer, k, i_inner": "j_outer, k_outer, k_inner, i_inner",
    },
    message="`factor` is the extent of the inner loop",
)


edited(
    "tile_classic",
    "classic_rows_of_tiles_only",
    {"schedule[C].fuse(i_outer, j_outer)": "i_outer"},
    message="parallel over all 4·5 = 20 tiles",
)


edited(
    "tile_classic",
    "classic_unrolled_not_vectorized",
    {"vectorize(j_inner)": "unroll(j_inner)"},
    message=r"look at: +schedule\[C\].vectorize\(j_inner\)",
)


edited(
    "tile_classic",
    "classic_returns_the_stage",
    {"return schedule": "return schedule[C]"},
    message="returns the schedule of te.create_schedule",
)
