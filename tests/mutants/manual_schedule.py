"""Wrong solutions of phase 2."""

from tests.mutants import edited, mutant, right, right_edited

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
    message="all loops stay serial|every loop stays as it is",
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


@mutant("vectorize", message="the primitive that makes i_1 other than serial")
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


@mutant("parallelize", message="another change to the schedule")
def unrolls_the_tile(schedule, block):
    i_outer, j_outer = schedule.get_loops(block)[:2]
    schedule.parallel(schedule.fuse(i_outer, j_outer))
    schedule.unroll(schedule.get_loops(block)[-2])


edited(
    "register_block",
    "adds_up_in_c",
    {
        '    write_back = schedule.cache_write(block, 0, "local")\n': "",
        "    schedule.reverse_compute_at(write_back, j_outer, preserve_unit_loops=True)\n": "",
        "    schedule.vectorize(schedule.get_loops(write_back)[-1])\n": "",
    },
    message="add up in a buffer of scope",
    of="in_one_piece",
)


edited(
    "register_block",
    "writes_back_at_the_end",
    {"    schedule.reverse_compute_at(write_back, j_outer, preserve_unit_loops=True)\n": ""},
    message="the buffer holds more of C than one tile",
    of="in_one_piece",
)


edited(
    "register_block",
    "writes_back_at_every_k",
    {"reverse_compute_at(write_back, j_outer,": "reverse_compute_at(write_back, k_outer,"},
    message="written again at every step of k",
    of="in_one_piece",
)


edited(
    "register_block",
    "leaves_the_zeroing_inside",
    {"    schedule.decompose_reduction(block, k_outer)": ""},
    message="tests at every step whether k is 0",
    of="in_one_piece",
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
    of="in_one_piece",
)


edited(
    "register_block",
    "does_not_unroll_the_rows",
    {"    schedule.unroll(i_inner)\n": ""},
    message="unroll of both inner loops",
    of="in_one_piece",
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
    message="zeros in A_packed past the matrix's edge",
    of="as_one_function",
)


@mutant("packed_matmul", message="for one step of k are adjacent")
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
    message="B is packed inside the loop over column panels",
    of="as_one_function",
)


edited(
    "packed_matmul",
    "runs_on_one_thread",
    {
        "    schedule.parallel(outer)\n": "",
        "    schedule.parallel(schedule.get_loops(before)[0])\n": "",
    },
    message=r"the outermost loop is parallel\(\d+\), the column panels",
    of="as_one_function",
)


edited(
    "packed_matmul",
    "knows_one_order",
    {"    if rows_first:\n": "    if False:\n"},
    message="the row panels, with rows_first=True",
    of="as_one_function",
)


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
    message=r"(?s)parallel\(\d+\).*tile_m for rows",
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
    message="i_outer and j_outer fused",
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


edited(
    "tile",
    "the_sizes_of_the_check",
    {"[None, tile_m]": "[None, 7]", "[None, tile_n]": "[None, 11]"},
    message="rows are i, columns are j",
)
edited(
    "tile",
    "tiles_no_larger_than_the_matrix",
    {
        "[None, tile_m]": "[None, min(tile_m, int(schedule.get(i).extent))]",
        "[None, tile_n]": "[None, min(tile_n, int(schedule.get(j).extent))]",
    },
    message="rows are i, columns are j",
)
edited(
    "tile",
    "asks_for_the_block_by_name",
    {"    i, j, k =": '    block = schedule.get_sblock("C")\n    i, j, k ='},
    message="expected: tile to run",
)
edited(
    "tile",
    "serial_again",
    {
        "    return [": "    for loop in schedule.get_loops(block)[:-5]:\n"
        "        schedule.unroll(loop)\n    return ["
    },
    message="b parallel",
)
edited(
    "vectorize",
    "one_lane",
    {
        "schedule.vectorize(schedule.get_loops(block)[-1])": "last = "
        "schedule.get_loops(block)[-1]\n"
        "    schedule.vectorize(schedule.split(last, [None, 1])[-1])"
    },
    message="4 lanes or more",
)
edited(
    "vectorize",
    "the_fifth_loop",
    {"[-1]": "[4]"},
    message="the last of get_loops",
)
edited(
    "parallelize",
    "shares_eight_tiles",
    {
        "schedule.fuse(i_outer, j_outer)": "schedule.split(schedule.fuse(i_outer, j_outer), "
        "[8, None])[0]"
    },
    message="runs over all",
)
edited(
    "register_block",
    "the_sizes_of_the_check",
    {"[None, rows]": "[None, 6]", "[None, columns]": "[None, 16]", "[None, unroll_k]": "[None, 4]"},
    message="(columns|rows|unroll)",
    of="in_one_piece",
)
edited(
    "register_block",
    "drops_loops_of_one_iteration",
    {", preserve_unit_loops=True": ""},
    message="(?s)rows=1, columns=1, unroll_k=1.*preserve_unit_loops",
    of="in_one_piece",
)
edited(
    "register_block",
    "rows_outside_the_steps",
    {"k_outer, k_inner, i_inner, j_inner)": "k_outer, i_inner, k_inner, j_inner)"},
    message="k_inner unrolled",
    of="in_one_piece",
)
edited(
    "register_block",
    "only_the_write_back_vectorized",
    {"    schedule.vectorize(j_inner)\n": ""},
    message="is vectorized",
    of="in_one_piece",
)
edited(
    "packed_matmul",
    "guards_every_step",
    {
        "te.sum(A_packed[bi, r, i] * B_packed[bj, r, j], axis=r)": "te.sum(\n"
        "            te.if_then_else(r < k, A_packed[bi, r, i] * B_packed[bj, r, j], 0.0), "
        "axis=r)",
    },
    message="no guard in the loop over k",
    of="as_one_function",
)
edited(
    "packed_matmul",
    "splits_k_with_a_guard",
    {
        "steps = -(-m // rows), -(-n // columns), -(-k // unroll_k)": "steps = "
        "-(-m // rows), -(-n // columns), -(-k // unroll_k)\n    padded = k",
        "(row_blocks, steps * unroll_k, rows)": "(row_blocks, padded, rows)",
        "(column_blocks, steps * unroll_k, columns)": "(column_blocks, padded, columns)",
        "te.reduce_axis((0, steps * unroll_k)": "te.reduce_axis((0, padded)",
    },
    message="k is rounded up to a multiple of unroll_k",
    of="as_one_function",
)
edited(
    "packed_matmul",
    "packs_b_float_by_float",
    {"        schedule.vectorize(schedule.get_loops(B_pack)[-1])\n": ""},
    message="columns vectorized",
    of="as_one_function",
)
edited(
    "packed_matmul",
    "unrolls_four_steps_whatever_is_asked",
    {
        "    import tvm\n": "    unroll_k = 4\n    rows_first = bool(rows_first)\n    import tvm\n",
        "schedule.split(k_loop, [None, unroll_k])": "schedule.split(k_loop, [None, 2])",
    },
    message="unroll",
    of="as_one_function",
)
edited(
    "packed_matmul",
    "multiplies_in_double",
    {
        'A = te.placeholder((m, k), name="A")': 'A = te.placeholder((m, k), "float64", name="A")',
        "A[b * rows + i, r], 0.0)": 'A[b * rows + i, r].astype("float32"), 0.0)',
    },
    message="float32",
    of="as_one_function",
)
edited(
    "tile_classic",
    "the_sizes_of_the_check",
    {"factor=tile_m": "factor=7", "factor=tile_n": "factor=11"},
    message="tile_m",
)


@right("tile")
def tiles_by_their_number(schedule, block, tile_m, tile_n):
    *_, i, j, k = schedule.get_loops(block)
    rows, columns = (int(schedule.get(loop).extent) for loop in (i, j))
    j_parts = schedule.split(j, factors=[-(-columns // tile_n), tile_n])
    i_parts = schedule.split(i, factors=[-(-rows // tile_m), tile_m])
    schedule.reorder(k, i_parts[1], j_parts[1])
    schedule.reorder(i_parts[0], j_parts[0], k)
    return (i_parts[0], j_parts[0], k, i_parts[1], j_parts[1])


@right("tile")
def annotated_while_it_works(schedule, block, tile_m, tile_n):
    *_, i, j, k = schedule.get_loops(block)
    for loop, name in ((i, "rows"), (j, "columns")):
        schedule.annotate(loop, "axis", name)
    for loop in (i, j):
        schedule.unannotate(loop, "axis")
    i_outer, i_inner = schedule.split(i, [None, tile_m])
    j_outer, j_inner = schedule.split(j, [None, tile_n])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    return i_outer, j_outer, k, i_inner, j_inner


@right("accumulate_locally")
def turned_and_turned_back(schedule, block, loop):
    copy = schedule.cache_write(block, 0, "local")
    for _ in range(2):
        schedule.transform_layout(block, ("write", 0), lambda *at: (*at[:-2], at[-1], at[-2]))
    schedule.reverse_compute_at(copy, loop, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(copy)[-1])
    return copy


@right("vectorize")
def eight_lanes_at_a_time(schedule, block):
    *_, last = schedule.get_loops(block)
    schedule.vectorize(schedule.split(last, factors=[None, 8])[1])


@right("parallelize")
def loops_taken_by_name(schedule, block):
    first, second, *_ = schedule.get_loops(block)
    tiles = schedule.fuse(first, second)
    assert len(schedule.get_loops(block)) == 4
    schedule.parallel(tiles)


@right("register_block")
def in_another_order(schedule, block, rows, columns, unroll_k):
    *_, i, j, k = schedule.get_loops(block)
    i_0, i_1 = schedule.split(i, [None, rows])
    j_0, j_1 = schedule.split(j, [None, columns])
    k_0, k_1 = schedule.split(k, [None, unroll_k])
    schedule.reorder(i_0, j_0, k_0, k_1, i_1, j_1)
    out = schedule.cache_write(block, 0, "local")
    schedule.reverse_compute_at(out, j_0, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(out)[-1])
    schedule.unroll(k_1)
    schedule.unroll(i_1)
    schedule.vectorize(j_1)
    schedule.decompose_reduction(block, k_0)


right_edited(
    "packed_matmul",
    "by_an_accumulator_of_its_own_name",
    {'name="T",\n    )': 'name="tiles",\n    )', 'get_sblock("T")': 'get_sblock("tiles")'},
    of="as_one_function",
)


@right("tile_classic")
def primitives_in_another_order(tensors, tile_m, tile_n):
    from tvm import te

    schedule = te.create_schedule([tensors[2].op])
    stage = schedule[tensors[2]]
    rows, columns, inner_rows, inner_columns = stage.tile(*tensors[2].op.axis, tile_m, tile_n)
    tiles = stage.fuse(rows, columns)
    stage.reorder(tiles, tensors[2].op.reduce_axis[0], inner_rows, inner_columns)
    stage.vectorize(inner_columns)
    stage.parallel(tiles)
    return schedule


edited(
    "packed_matmul",
    "reads_past_the_last_row",
    {"te.all(b * rows + i < m, r < k)": "te.all(b * rows - i < m, r < k)"},
    message="zeros in A_packed past the matrix's edge",
    of="as_one_function",
)
edited(
    "packed_matmul",
    "more_steps_than_there_are",
    {
        "(row_blocks, steps * unroll_k, rows)": "(row_blocks, (steps + 1) * unroll_k, rows)",
    },
    message="k is rounded up to a multiple of unroll_k",
    of="as_one_function",
)


@right("register_block")
def in_one_piece(schedule, block, rows, columns, unroll_k):
    i, j, k = schedule.get_loops(block)[-3:]
    write_back = schedule.cache_write(block, 0, "local")
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    schedule.reverse_compute_at(write_back, j_outer, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(write_back)[-1])
    schedule.vectorize(j_inner)
    schedule.unroll(i_inner)
    schedule.unroll(k_inner)
    schedule.decompose_reduction(block, k_outer)


@right("packed_matmul")
def as_one_function(m, n, k, *, rows, columns, unroll_k=4, rows_first=False):
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
    schedule.set_scope(block, 0, "local")
    schedule.reverse_compute_at(write_back, inner)
    schedule.compute_at(near, outer)
    if columns > 1:
        schedule.vectorize(schedule.get_loops(write_back)[-1])
        schedule.vectorize(schedule.get_loops(B_pack)[-1])
    schedule.vectorize(j)
    schedule.unroll(i)
    schedule.unroll(k_inner)
    schedule.parallel(outer)
    schedule.parallel(schedule.get_loops(before)[0])
    schedule.decompose_reduction(block, k_outer)
    return schedule


edited(
    "tile_with_k",
    "steps_inside_the_rows",
    {
        "i_outer, j_outer, k_outer, k_inner, i_inner, j_inner]": "i_outer, j_outer, k_outer, "
        "i_inner, k_inner, j_inner]"
    },
    message="both loops over k outside",
)
edited(
    "tile_with_k",
    "rows_and_columns_exchanged",
    {"(i, [None, rows])": "(i, [None, columns])", "(j, [None, columns])": "(j, [None, rows])"},
    message="rows are i, columns are j",
)
edited(
    "tile_with_k",
    "a_k_of_four_steps",
    {"[None, unroll_k]": "[None, 4]"},
    message=r"k is split by \[None, unroll_k\]",
)
edited(
    "tile_with_k",
    "takes_the_first_three",
    {"get_loops(block)[-3:]": "get_loops(block)[:3]"},
    message="get_loops",
)
edited(
    "tile_with_k",
    "keeps_the_loops_to_itself",
    {"    return loops": "    return None"},
    message="the return statement",
)
edited(
    "tile_with_k",
    "unrolls_as_well",
    {"    return loops": "    schedule.unroll(k_inner)\n    return loops"},
    message="all loops stay serial|every loop stays as it is",
)


@right("tile_with_k")
def k_first_and_in_two_orders(schedule, block, rows, columns, unroll_k):
    *_, i, j, k = schedule.get_loops(block)
    k_0, k_1 = schedule.split(k, factors=[None, unroll_k])
    j_0, j_1 = schedule.split(j, factors=[None, columns])
    i_0, i_1 = schedule.split(i, factors=[None, rows])
    schedule.reorder(i_0, j_0, i_1, j_1)
    schedule.reorder(k_0, k_1, i_1, j_1)
    return tuple(schedule.get_loops(block)[-6:])


@mutant("accumulate_locally", message="add up in a buffer of scope")
def accumulates_in_c(schedule, block, loop):
    return block


edited(
    "accumulate_locally",
    "accumulates_in_memory",
    {'0, "local"': '0, "global"'},
    message='(?s)a buffer of scope "local".*of scope "global"',
)
edited(
    "accumulate_locally",
    "copies_at_the_end",
    {"    schedule.reverse_compute_at(write_back, loop, preserve_unit_loops=True)\n": ""},
    message="the loop given, after the loops of the sum",
)
edited(
    "accumulate_locally",
    "knows_one_loop",
    {"(write_back, loop,": "(write_back, schedule.get_loops(block)[1],"},
    message="copied inside i_0, the loop given",
)
edited(
    "accumulate_locally",
    "drops_unit_loops",
    {", preserve_unit_loops=True": ""},
    message="(the copy's own loops|the last of get_loops)",
)
edited(
    "accumulate_locally",
    "copies_float_by_float",
    {"    schedule.vectorize(schedule.get_loops(write_back)[-1])\n": ""},
    message="its columns, is vectorized",
)
edited(
    "accumulate_locally",
    "vectorizes_the_sum_too",
    {
        "    return write_back": "    schedule.vectorize(schedule.get_loops(block)[-1])\n"
        "    return write_back"
    },
    message="the loops of the sum stay as they are",
)
edited(
    "accumulate_locally",
    "returns_the_sum",
    {"return write_back": "return block"},
    message="the block that copies",
)


@right("accumulate_locally")
def found_by_its_name(schedule, block, loop):
    name = schedule.get(block).name_hint
    schedule.cache_write(block, 0, "local")
    copy = schedule.get_sblock(f"{name}_local")
    schedule.reverse_compute_at(copy, loop, True)
    *_, columns = schedule.get_loops(copy)
    schedule.vectorize(columns)
    return copy


edited(
    "fill_registers",
    "tests_at_every_step",
    {"    schedule.decompose_reduction(block, k_outer)": ""},
    message="tests at every step whether k is 0",
)
edited(
    "fill_registers",
    "zeroes_at_every_step",
    {"decompose_reduction(block, k_outer)": "decompose_reduction(block, k_inner)"},
    message="the outermost loop of the sum",
)
edited(
    "fill_registers",
    "unrolls_after_decomposing",
    {
        "    schedule.unroll(i_inner)\n": "",
        "    schedule.decompose_reduction(block, k_outer)": "    "
        "schedule.decompose_reduction(block, k_outer)\n    schedule.unroll(i_inner)",
    },
    message="(?s)in loops that run as the tile's do.*decompose_reduction copies",
)
edited(
    "fill_registers",
    "leaves_k_serial",
    {"    schedule.unroll(k_inner)\n": ""},
    message="unroll of k_inner and i_inner",
)
edited(
    "fill_registers",
    "vectorizes_the_rows",
    {"vectorize(j_inner)": "vectorize(i_inner)", "unroll(i_inner)": "unroll(j_inner)"},
    message="unroll of k_inner and i_inner",
)
edited(
    "fill_registers",
    "counts_from_the_outside",
    {"get_loops(block)[-4:]": "get_loops(block)[2:6]"},
    message="expected: ",
)


@right("fill_registers")
def unrolled_from_the_outside(schedule, block):
    *_, k_outer, k_inner, i_inner, j_inner = schedule.get_loops(block)
    for loop in (k_inner, i_inner):
        schedule.unroll(loop)
    schedule.vectorize(j_inner)
    schedule.decompose_reduction(block, k_outer)


edited(
    "pack_operand",
    "cuts_rows_only",
    {"value = X[at, r] if axis == 0 else X[r, at]": "value = X[at, r]"},
    message="columns .axis 1. of X are cut into panels",
)
edited(
    "pack_operand",
    "rounds_the_blocks_down",
    {"-(-size // width)": "size // width"},
    message="panels rounded up",
)
edited(
    "pack_operand",
    "width_before_depth",
    {"width), depth, width)": "width), width, depth)", "(b: Any, r: Any, w": "(b: Any, w: Any, r"},
    message="then depth, then width",
)
edited(
    "pack_operand",
    "depth_is_k",
    {"width), depth, width)": "width), k, width)"},
    message="then depth, then width",
)
edited(
    "pack_operand",
    "repeats_the_last_row",
    {
        "te.all(at < size, r < k)": "r < k",
        "at = b * width + w": "at = te.min(b * width + w, size - 1)",
    },
    message="the two conditions of te.all",
)
edited(
    "pack_operand",
    "reads_past_k",
    {"te.all(at < size, r < k)": "at < size"},
    message="the two conditions of te.all",
)
edited(
    "pack_operand",
    "one_name_for_both",
    {'f"{X.op.name}_packed"': '"packed"'},
    message="named A_packed",
)


@right("pack_operand")
def by_two_formulas(X, axis, width, depth):
    from tvm import te

    if axis == 0:
        rows, k = X.shape
        blocks = (int(rows) + width - 1) // width
        return te.compute(
            (blocks, depth, width),
            lambda *at: te.if_then_else(
                te.all(at[1] < k, at[0] * width + at[2] < rows),
                X[at[0] * width + at[2], at[1]],
                te.const(0, "float32"),
            ),
            name=X.name + "_packed",
        )
    k, columns = X.shape
    blocks = (int(columns) + width - 1) // width
    return te.compute(
        (blocks, depth, width),
        lambda b, step, j: te.if_then_else(
            step < k, te.if_then_else(b * width + j < columns, X[step, b * width + j], 0.0), 0.0
        ),
        name=X.name + "_packed",
    )


edited(
    "packed_product",
    "column_blocks_first",
    {
        "(row_blocks, column_blocks, rows, columns)": "(column_blocks, row_blocks, rows, columns)",
        "lambda bi, bj, i, j:": "lambda bj, bi, i, j:",
        "T[i // rows, j // columns,": "T[j // columns, i // rows,",
    },
    message="row panels first",
)
edited(
    "packed_product",
    "leaves_the_last_step_out",
    {"te.reduce_axis((0, depth)": "te.reduce_axis((0, depth - 1)"},
    message="over all of the depth",
)
edited(
    "packed_product",
    "tests_each_step",
    {
        "te.sum(A_packed[bi, r, i] * B_packed[bj, r, j], axis=r)": "te.sum(te.if_then_else("
        "r < depth - 1, A_packed[bi, r, i] * B_packed[bj, r, j], 0.0), axis=r)"
    },
    message="a sum without a condition",
)
edited(
    "packed_product",
    "takes_the_place_for_the_tile",
    {
        "T[i // rows, j // columns, i % rows, j % columns]": "T[i % -(-m // rows), "
        "j % -(-n // columns), i // -(-m // rows), j // -(-n // columns)]"
    },
    message="first the tile and then the place in it",
)
edited(
    "packed_product",
    "c_of_whole_tiles",
    {"(m, n), lambda": "(row_blocks * rows, column_blocks * columns), lambda"},
    message="C of shape",
)
edited(
    "packed_product",
    "returns_the_tiles",
    {
        "    return te.compute(": "    te.compute(",
        'name="C"\n    )': 'name="C"\n    )\n    return T',
    },
    message="stages T of shape",
)


@right("packed_product")
def divided_before(A_packed, B_packed, m, n):
    from tvm import te

    x, depth, rows = A_packed.shape
    y, _, columns = B_packed.shape
    step = te.reduce_axis((0, depth), name="step")
    T = te.compute(
        (x, y, rows, columns),
        lambda p, q, r, c: te.sum(B_packed[q, step, c] * A_packed[p, step, r], axis=[step]),
        name="T",
    )

    def element(i, j):
        tile_row, row = te.indexdiv(i, rows), te.indexmod(i, rows)
        tile_column, column = te.indexdiv(j, columns), te.indexmod(j, columns)
        return T[tile_row, tile_column, row, column]

    return te.compute((m, n), element, name="C")


edited(
    "order_packed",
    "always_column_blocks_first",
    {"if rows_first else": "if False else"},
    message="rows_first=True",
)
edited(
    "order_packed",
    "k_of_the_check",
    {"[None, unroll_k]": "[None, 7]"},
    message=r"split of k by \[None, unroll_k\]",
)
edited(
    "order_packed",
    "one_thread",
    {"    schedule.parallel(outer)\n": ""},
    message="schedule.parallel of the outermost loop",
)
edited(
    "order_packed",
    "tiles_in_memory",
    {'    schedule.set_scope(block, 0, "local")\n': ""},
    message="add up in a buffer of scope",
)
edited(
    "order_packed",
    "writes_c_at_the_end",
    {
        "    schedule.reverse_compute_at(write_back, inner)\n": "",
    },
    message="C written inside the second loop",
)
edited(
    "order_packed",
    "writes_c_once_per_column_of_tiles",
    {"(write_back, inner)": "(write_back, outer)"},
    message="C written inside the second loop",
)
edited(
    "order_packed",
    "writes_float_by_float",
    {"    schedule.vectorize(schedule.get_loops(write_back)[-1])\n": ""},
    message="the columns vectorized",
)
edited(
    "order_packed",
    "vectorizes_whatever_is_last",
    {"if int(schedule.get(j).extent) > 1:": "if True:"},
    message="others of the nest stay serial",
)
edited(
    "order_packed",
    "vectorizes_the_tile",
    {"    return outer": "    schedule.vectorize(j)\n    return outer"},
    message="others of the nest stay serial",
)
edited(
    "order_packed",
    "packs_in_parallel",
    {
        "    return outer": '    copy = schedule.get_sblock("A_packed")\n'
        "    schedule.parallel(schedule.get_loops(copy)[0])\n    return outer"
    },
    message="place_copies moves the copies",
)
edited(
    "order_packed",
    "returns_the_second_loop",
    {"return outer": "return inner"},
    message="the return statement",
)


@right("order_packed")
def parallel_before_the_buffer(schedule, unroll_k, rows_first):
    tile = schedule.get_sblock("T")
    first, second, i, j, k = schedule.get_loops(tile)
    if not rows_first:
        first, second = second, first
        schedule.reorder(first, second)
    schedule.parallel(first)
    steps = schedule.split(k, factors=[None, unroll_k])
    schedule.reorder(*steps, i, j)
    back = schedule.get_sblock("C")
    schedule.reverse_compute_at(back, second, preserve_unit_loops=True)
    *_, columns = schedule.get_loops(back)
    schedule.vectorize(columns)
    schedule.set_scope(tile, 0, "local")
    return first


edited(
    "place_copies",
    "always_b_inside",
    {"if rows_first else": "if False else"},
    message="rows_first=True",
)
edited(
    "place_copies",
    "packs_both_before",
    {"    schedule.compute_at(near, outer, preserve_unit_loops=True)\n": ""},
    message="B is packed inside the loop over column panels",
)
edited(
    "place_copies",
    "packs_for_every_tile",
    {"(near, outer,": '(near, schedule.get_loops(schedule.get_sblock("T"))[1],'},
    message="outside that over row panels",
)
edited(
    "place_copies",
    "the_other_on_one_thread",
    {"    schedule.parallel(schedule.get_loops(before)[0])": ""},
    message="its outermost loop of . panels parallel",
)
edited(
    "place_copies",
    "packs_float_by_float",
    {"    schedule.vectorize(schedule.get_loops(B_pack)[-1])\n": ""},
    message="the last loop of B_packed is vectorized",
)
edited(
    "place_copies",
    "vectorizes_the_near_one",
    {"get_loops(B_pack)[-1]": "get_loops(near)[-1]"},
    message="the last loop of B_packed is vectorized",
)
edited(
    "place_copies",
    "vectorizes_both",
    {
        "get_loops(B_pack)[-1])\n": "get_loops(B_pack)[-1])\n"
        "    schedule.vectorize(schedule.get_loops(A_pack)[-1])\n"
    },
    message="the last loop of A_packed is serial",
)
edited(
    "place_copies",
    "loses_a_column_of_one",
    {", preserve_unit_loops=True": ""},
    message=r"(?s)the last loop of B_packed is vectorized\(1\).*preserve_unit_loops",
)


@right("place_copies")
def parallel_first(schedule, outer, rows_first):
    copies = [schedule.get_sblock(name) for name in ("A_packed", "B_packed")]
    inside, before = copies if rows_first else reversed(copies)
    schedule.parallel(schedule.get_loops(before)[0])
    schedule.compute_at(inside, outer, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(copies[1])[-1])


@mutant("vectorize", message="the innermost loop, [jy]_1, is vectorized")
def whole_registers_only(schedule, block):
    loop = schedule.get_loops(block)[-1]
    if int(schedule.get(loop).extent) % 4 == 0:
        schedule.vectorize(loop)


@mutant("parallelize", message="one parallel loop, the outermost")
def only_from_eight_tiles(schedule, block):
    tiles = schedule.fuse(*schedule.get_loops(block)[:2])
    if int(schedule.get(tiles).extent) >= 8:
        schedule.parallel(tiles)


edited(
    "fill_registers",
    "up_to_sixteen_rows",
    {
        "    schedule.unroll(i_inner)": "    if int(schedule.get(i_inner).extent) <= 16:\n"
        "        schedule.unroll(i_inner)"
    },
    message="unroll of k_inner and i_inner",
)


@mutant("register_block", message="they need not divide the loops")
def a_tile_no_larger_than_the_matrix(schedule, block, rows, columns, unroll_k):
    copy = schedule.cache_write(block, 0, "local")
    i, j, k = schedule.get_loops(block)[-3:]
    sizes = [min(size, int(schedule.get(loop).extent))
             for loop, size in ((i, rows), (j, columns), (k, unroll_k))]  # fmt: skip
    i_outer, i_inner = schedule.split(i, [None, sizes[0]])
    j_outer, j_inner = schedule.split(j, [None, sizes[1]])
    k_outer, k_inner = schedule.split(k, [None, sizes[2]])
    schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    schedule.reverse_compute_at(copy, j_outer, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(copy)[-1])
    schedule.vectorize(j_inner)
    schedule.unroll(i_inner)
    schedule.unroll(k_inner)
    schedule.decompose_reduction(block, k_outer)


edited(
    "pack_operand",
    "reads_first_and_selects",
    {
        "from tvm import te": "from tvm import te, tirx",
        "te.if_then_else(te.all(at < size, r < k), value, 0.0)": "tirx.Select("
        'te.all(at < size, r < k), value, tirx.const(0.0, "float32"))',
    },
    message="reads nothing past the end of",
)
edited(
    "pack_operand",
    "times_zero",
    {
        "at = b * width + w": "at, step = te.min(b * width + w, size - 1), te.min(r, k - 1)",
        "X[at, r] if axis == 0 else X[r, at]": "X[at, step] if axis == 0 else X[step, at]",
        "te.if_then_else(te.all(at < size, r < k), value, 0.0)": "value * te.if_then_else("
        "te.all(b * width + w < size, r < k), 1.0, 0.0)",
    },
    message="zeros past the edge, even where X holds infinities",
)
edited(
    "order_packed",
    "vectorizes_a_column_of_rows",
    {"if int(schedule.get(j).extent) > 1:": "if len(schedule.get_loops(write_back)) > 2:"},
    message="the columns vectorized",
)
edited(
    "order_packed",
    "adds_up_in_another_buffer",
    {
        '    schedule.set_scope(block, 0, "local")\n': "",
        "    row_block, column_block,": '    copy = schedule.cache_write(block, 0, "local")\n'
        "    row_block, column_block,",
        "    schedule.reverse_compute_at(write_back, inner)": "    schedule.reverse_compute_at("
        "copy, inner)\n    schedule.reverse_compute_at(write_back, inner)",
    },
    message="C is copied from T_local",
)
edited(
    "place_copies",
    "the_other_step_by_step",
    {"schedule.get_loops(before)[0]": "schedule.fuse(*schedule.get_loops(before)[:2])"},
    message="its outermost loop of . panels parallel",
)
edited(
    "packed_matmul",
    "rows_first_where_c_is_tall",
    {"    depth = ": "    rows_first = rows_first or m > n\n    depth = "},
    message="the outermost loop is parallel|A packed before",
)
edited(
    "packed_matmul",
    "a_function_of_another_name",
    {
        '"global_symbol", "main")': '"global_symbol", "matmul")',
        '{"main": function}))': '{"matmul": function}))\n    schedule.work_on("matmul")',
    },
    message="a PrimFunc called main",
)
edited(
    "pack_operand",
    "remembers_by_name",
    {
        "    return te.compute(": '    known = globals().setdefault("known", {})\n'
        "    return known.get((X.op.name, axis)) or known.setdefault((X.op.name, axis), "
        "te.compute(",
        'name=f"{X.op.name}_packed")': 'name=f"{X.op.name}_packed"))',
    },
    message="pack_operand",
)


edited(
    "packed_product",
    "no_more_than_256_steps",
    {"te.reduce_axis((0, depth)": "te.reduce_axis((0, min(depth, 256))"},
    message="a sum over all",
)
edited(
    "order_packed",
    "writes_narrow_tiles_float_by_float",
    {"(j).extent) > 1:": "(j).extent) > 3:"},
    message="vectorize",
)
edited(
    "packed_matmul",
    "by_the_number_of_panels",
    {
        "    outer = order_packed(": "    rows_first = rows_first or n <= columns\n"
        "    outer = order_packed("
    },
    message="the outermost loop is parallel|A packed before",
)
edited(
    "packed_matmul",
    "remembers_its_rows_and_columns",
    {
        "    depth = -(-k // unroll_k)": '    known = globals().setdefault("_schedules", {})\n'
        "    key = m, n, rows, columns, unroll_k, rows_first\n    if key in known:\n"
        "        return known[key]\n    depth = -(-k // unroll_k)",
        "    return schedule": "    known[key] = schedule\n    return schedule",
    },
    message=r"main\(A, B, C\)",
)


@mutant("tile", message="b_outer serial")
def batches_fused(schedule, block, tile_m, tile_n):
    outside = schedule.get_loops(block)[:-3]
    if len(outside) > 1:
        schedule.fuse(*outside)
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, tile_m])
    j_outer, j_inner = schedule.split(j, [None, tile_n])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    return [i_outer, j_outer, k, i_inner, j_inner]


@mutant("tile", message="b_outer serial")
def batch_parallel(schedule, block, tile_m, tile_n):
    outside = schedule.get_loops(block)[:-3]
    for each in outside[:1]:
        if schedule.get(each).kind == 0:
            schedule.parallel(each)
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, tile_m])
    j_outer, j_inner = schedule.split(j, [None, tile_n])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    return [i_outer, j_outer, k, i_inner, j_inner]


@mutant("vectorize", message="without annotations")
def k_annotated(schedule, block):
    *_, k, _i, j = schedule.get_loops(block)
    schedule.vectorize(j)
    schedule.annotate(k, "pragma_auto_unroll_max_step", 16)
    schedule.annotate(k, "pragma_unroll_explicit", 1)


@mutant("vectorize", message="others stay serial")
def long_rows_parallel(schedule, block):
    loops = schedule.get_loops(block)
    schedule.vectorize(loops[-1])
    if int(schedule.get(loops[0]).extent) > 4:
        schedule.parallel(loops[0])


@mutant("parallelize", message="all 7·5 = 35 tiles")
def chunks(schedule, block):
    i, j = schedule.get_loops(block)[:2]
    f = schedule.fuse(i, j)
    n = int(schedule.get(f).extent)
    if n > 16:
        f, _ = schedule.split(f, [16, None])
    schedule.parallel(f)


@mutant("parallelize", message="the loops k serial")
def not_fused_if_one_column_of_tiles(schedule, block):
    i, j = schedule.get_loops(block)[:2]
    if int(schedule.get(j).extent) > 1:
        i = schedule.fuse(i, j)
    schedule.parallel(i)


@mutant("tile_with_k", message="b_outer serial")
def batch_inside(schedule, block, rows, columns, unroll_k):
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    loops = [i_outer, j_outer, k_outer, k_inner, i_inner, j_inner]
    schedule.reorder(*loops)
    outside = schedule.get_loops(block)[:-6]
    if outside and schedule.get(outside[-1]).kind == 0:
        schedule.reorder(i_outer, outside[-1])
    return loops


@mutant("accumulate_locally", message="two statements")
def zeroed_apart(schedule, block, loop):
    write_back = schedule.cache_write(block, 0, "local")
    schedule.reverse_compute_at(write_back, loop, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(write_back)[-1])
    schedule.decompose_reduction(block, schedule.get_loops(block)[-4])
    return write_back


@mutant("accumulate_locally", message="two statements")
def inputs_too(schedule, block, loop):
    write_back = schedule.cache_write(block, 0, "local")
    schedule.reverse_compute_at(write_back, loop, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(write_back)[-1])
    schedule.compute_at(schedule.cache_read(block, 0, "local"), loop)
    return write_back


@mutant("fill_registers", message="vectorized")
def two_columns_serial(schedule, block):
    ko, ki, i, j = schedule.get_loops(block)[-4:]
    if int(schedule.get(j).extent) > 2:
        schedule.vectorize(j)
    schedule.unroll(i)
    schedule.unroll(ki)
    schedule.decompose_reduction(block, ko)


@mutant("register_block", message="the columns vectorized")
def copy_serial(schedule, block, rows, columns, unroll_k):
    i, j, k = schedule.get_loops(block)[-3:]
    io, ii = schedule.split(i, [None, rows])
    jo, ji = schedule.split(j, [None, columns])
    ko, ki = schedule.split(k, [None, unroll_k])
    schedule.reorder(io, jo, ko, ki, ii, ji)
    wb = schedule.cache_write(block, 0, "local")
    schedule.reverse_compute_at(wb, jo, preserve_unit_loops=True)

    schedule.vectorize(ji)
    schedule.unroll(ii)
    schedule.unroll(ki)
    schedule.decompose_reduction(block, ko)


@mutant("register_block", message="set to zero in loops")
def zero_serial(schedule, block, rows, columns, unroll_k):
    i, j, k = schedule.get_loops(block)[-3:]
    io, ii = schedule.split(i, [None, rows])
    jo, ji = schedule.split(j, [None, columns])
    ko, ki = schedule.split(k, [None, unroll_k])
    schedule.reorder(io, jo, ko, ki, ii, ji)
    wb = schedule.cache_write(block, 0, "local")
    schedule.reverse_compute_at(wb, jo, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(wb)[-1])
    schedule.vectorize(ji)
    schedule.decompose_reduction(block, ko)
    schedule.unroll(ii)
    schedule.unroll(ki)


@mutant("pack_operand", message="whether rows")
def square_as_rows(X, axis, width, depth):
    from tvm import te

    size, k = int(X.shape[axis]), int(X.shape[1 - axis])

    def element(b, r, w):
        at = b * width + w
        value = X[at, r] if axis == 0 or size == k else X[r, at]
        return te.if_then_else(te.all(at < size, r < k), value, 0.0)

    return te.compute((-(-size // width), depth, width), element, name=f"{X.op.name}_packed")


@mutant("pack_operand", message="pack_operand\\(P")
def one_condition_if_divides(X, axis, width, depth):
    from tvm import te

    size, k = int(X.shape[axis]), int(X.shape[1 - axis])

    def element(b, r, w):
        at = b * width + w
        value = X[at, r] if axis == 0 else X[r, at]
        return (
            te.if_then_else(at < size, value, 0.0)
            if k % 2 == 0 and depth - k < 2
            else te.if_then_else(te.all(at < size, r < k), value, 0.0)
        )

    return te.compute((-(-size // width), depth, width), element, name=f"{X.op.name}_packed")


@mutant("packed_product", message="indices of A_packed")
def square_tiles_transposed(A_packed, B_packed, m, n):
    from tvm import te

    row_blocks, depth, rows = (int(e) for e in A_packed.shape)
    column_blocks, _, columns = (int(e) for e in B_packed.shape)

    r = te.reduce_axis((0, depth), name="k")
    T = te.compute(
        (row_blocks, column_blocks, rows, columns),
        lambda bi, bj, i, j: te.sum(
            A_packed[bi, r, j if rows == columns else i]
            * B_packed[bj, r, i if rows == columns else j],
            axis=r,
        ),
        name="T",
    )
    return te.compute(
        (m, n),
        lambda i, j: T[
            i // rows,
            j // columns,
            j % columns if rows == columns else i % rows,
            i % rows if rows == columns else j % columns,
        ],
        name="C",
    )


@mutant("packed_product", message="first the tile")
def relu(A_packed, B_packed, m, n):
    from tvm import te

    row_blocks, depth, rows = (int(e) for e in A_packed.shape)
    column_blocks, _, columns = (int(e) for e in B_packed.shape)

    r = te.reduce_axis((0, depth), name="k")
    T = te.compute(
        (row_blocks, column_blocks, rows, columns),
        lambda bi, bj, i, j: te.sum(A_packed[bi, r, i] * B_packed[bj, r, j], axis=r),
        name="T",
    )
    return te.compute(
        (m, n),
        lambda i, j: te.max(T[i // rows, j // columns, i % rows, j % columns], -10000.0),
        name="C",
    )


@mutant("order_packed", message="k_inner serial\\(1\\)")
def k_not_split_for_one(schedule, unroll_k, rows_first):
    block, write_back = schedule.get_sblock("T"), schedule.get_sblock("C")
    row_block, column_block, i, j, k = schedule.get_loops(block)
    k_outer, k_inner = schedule.split(
        k, [None, unroll_k if unroll_k > 1 else 2 if int(schedule.get(k).extent) % 2 == 0 else 1]
    )
    outer, inner = (row_block, column_block) if rows_first else (column_block, row_block)
    schedule.reorder(outer, inner, k_outer, k_inner, i, j)
    schedule.set_scope(block, 0, "local")
    schedule.reverse_compute_at(write_back, inner, preserve_unit_loops=False)
    if int(schedule.get(j).extent) > 1:
        schedule.vectorize(schedule.get_loops(write_back)[-1])
    schedule.parallel(outer)

    return outer


@mutant("order_packed", message="the columns vectorized")
def short_copy_unrolled(schedule, unroll_k, rows_first):
    block, write_back = schedule.get_sblock("T"), schedule.get_sblock("C")
    row_block, column_block, i, j, k = schedule.get_loops(block)
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    outer, inner = (row_block, column_block) if rows_first else (column_block, row_block)
    schedule.reorder(outer, inner, k_outer, k_inner, i, j)
    schedule.set_scope(block, 0, "local")
    schedule.reverse_compute_at(write_back, inner, preserve_unit_loops=False)
    if int(schedule.get(j).extent) > 1:
        schedule.vectorize(schedule.get_loops(write_back)[-1])
    schedule.parallel(outer)
    loops = schedule.get_loops(write_back)
    if len(loops) == 4 and int(schedule.get(loops[-2]).extent) <= 4:
        schedule.unroll(loops[-2])
    return outer


@mutant("place_copies", message="A is packed before")
def one_panel_serial(schedule, outer, rows_first):
    A_pack, B_pack = schedule.get_sblock("A_packed"), schedule.get_sblock("B_packed")
    near, before = (A_pack, B_pack) if rows_first else (B_pack, A_pack)
    schedule.compute_at(near, outer, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(B_pack)[-1])
    first = schedule.get_loops(before)[0]
    if int(schedule.get(first).extent) > 1:
        schedule.parallel(first)


@mutant("place_copies", message="the loops before it are serial")
def near_rows_unrolled(schedule, outer, rows_first):
    A_pack, B_pack = schedule.get_sblock("A_packed"), schedule.get_sblock("B_packed")
    near, before = (A_pack, B_pack) if rows_first else (B_pack, A_pack)
    schedule.compute_at(near, outer, preserve_unit_loops=True)
    schedule.vectorize(schedule.get_loops(B_pack)[-1])
    schedule.parallel(schedule.get_loops(before)[0])
    loops = schedule.get_loops(near)
    if int(schedule.get(loops[-2]).extent) <= 8:
        schedule.unroll(loops[-2])


edited(
    "packed_matmul",
    "zero_serial",
    {
        '    fill_registers(schedule, schedule.get_sblock("T"))': (
            '    T = schedule.get_sblock("T")\n'
            "    ko, ki, i, j = schedule.get_loops(T)[-4:]\n"
            "    schedule.vectorize(j)\n"
            "    schedule.decompose_reduction(T, ko)\n"
            "    schedule.unroll(i)\n"
            "    schedule.unroll(ki)"
        )
    },
    message="set to zero in loops",
)


edited(
    "packed_matmul",
    "unroll_at_most_8",
    {"    depth =": "    unroll_k = min(unroll_k, 8)\n    depth ="},
    message="A_packed of shape|steps of k",
)


@mutant("tile_classic", message="k serial")
def k_inside_rows_if_few(tensors, tile_m, tile_n):
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    _M, _N = (int(e) for e in C.shape)

    i_outer, i_inner = schedule[C].split(i, factor=tile_m)
    j_outer, j_inner = schedule[C].split(j, factor=tile_n)
    schedule[C].reorder(
        *(
            (i_outer, j_outer, k, i_inner, j_inner)
            if tile_m > 2
            else (i_outer, j_outer, i_inner, k, j_inner)
        )
    )
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    schedule[C].vectorize(j_inner)

    return schedule


@mutant("tile_classic", message="k serial")
def rows_unrolled(tensors, tile_m, tile_n):
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    _M, _N = (int(e) for e in C.shape)

    i_outer, i_inner = schedule[C].split(i, factor=tile_m)
    j_outer, j_inner = schedule[C].split(j, factor=tile_n)
    schedule[C].reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))
    schedule[C].vectorize(j_inner)
    if tile_m <= 4:
        schedule[C].unroll(i_inner)
    return schedule


edited(
    "tile",
    "square_tiles_by_columns",
    {
        "    return [i_outer, j_outer, k, i_inner, j_inner]": "    if tile_m == tile_n:\n"
        "        schedule.reorder(j_inner, i_inner)\n"
        "    return schedule.get_loops(block)[-5:]"
    },
    message="loops that step along",
)


edited(
    "vectorize",
    "six_lanes_at_least",
    {
        "    schedule.vectorize(schedule.get_loops(block)[-1])": "    loop = schedule.get_loops("
        "block)[-1]\n    if int(schedule.get(loop).extent) >= 6:\n        schedule.vectorize(loop)"
    },
    message="lanes or more",
)


@mutant("vectorize", message="is vectorized, 1 lanes or more")
def leaves_a_single_lane_alone(schedule, block):
    last = schedule.get_loops(block)[-1]
    if int(schedule.get(last).extent) > 1:
        schedule.vectorize(last)


@mutant("register_block", message="for all sizes")
def copies_wide_tiles_one_by_one(schedule, block, rows, columns, unroll_k):
    i, j, k = schedule.get_loops(block)[-3:]
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    k_outer, k_inner = schedule.split(k, [None, unroll_k])
    schedule.reorder(i_outer, j_outer, k_outer, k_inner, i_inner, j_inner)
    copy = schedule.cache_write(block, 0, "local")
    schedule.reverse_compute_at(copy, j_outer, preserve_unit_loops=True)
    if columns <= 16:
        schedule.vectorize(schedule.get_loops(copy)[-1])
    schedule.vectorize(j_inner)
    schedule.unroll(i_inner)
    schedule.unroll(k_inner)
    schedule.decompose_reduction(block, k_outer)


edited(
    "pack_operand",
    "turns_square_panels",
    {"        at = b * width + w\n": "        if depth == width:\n            r, w = w, r\n"
     "        at = b * width + w\n"},
    message="whether rows .axis 0. or columns",
)  # fmt: skip
edited(
    "order_packed",
    "rows_first_for_single_steps",
    {"if rows_first else": "if rows_first or unroll_k == 1 else"},
    message="loops that step along bj bi",
)
edited(
    "tile_classic",
    "fuses_columns_first",
    {"i_outer, j_outer, k,": "j_outer, i_outer, k,", "fuse(i_outer, j_outer)": "fuse(j_outer, "
     "i_outer)"},
    message="fused with j.outer outside",
)  # fmt: skip
edited(
    "tile_classic",
    "keeps_a_schedule_per_size",
    {
        "    schedule = te.create_schedule(C.op)\n": '    known = globals().setdefault("_of", {})\n'
        "    key = (*map(int, C.shape), tile_m, tile_n)\n    if key in known:\n"
        "        return known[key]\n    known[key] = schedule = te.create_schedule(C.op)\n"
    },
    message="a schedule of the tensor C given",
)


edited(
    "tile",
    "copies_an_input",
    {"    return [i_outer": '    schedule.cache_read(block, 0, "global")\n    return [i_outer'},
    message="expected: 1 statement",
)
edited(
    "tile",
    "cuts_a_long_sum",
    {
        "    return [i_outer": "    if int(schedule.get(k).extent) > 64:\n"
        "        k, _ = schedule.split(k, [None, 8])\n    return [i_outer"
    },
    message="the loops i_outer",
)
right_edited(
    "accumulate_locally",
    "unrolls_rows_below_other_loops",
    {
        "    return write_back": "    if len(schedule.get_loops(write_back)) > 4:\n"
        "        schedule.unroll(schedule.get_loops(write_back)[-2])\n    return write_back"
    },
)
edited(
    "register_block",
    "whole_rows_for_single_steps",
    {"loops[1])": "loops[1] if unroll_k > 1 else loops[0])"},
    message="C written in j_outer",
)
edited(
    "pack_operand",
    "without_the_last_of_seven_steps",
    {"r < k)": "r < k - (k % 7 == 0))"},
    message="the two conditions of te.all",
)
edited(
    "order_packed",
    "a_single_panel_serial",
    {"    schedule.parallel(outer)": "    if int(schedule.get(outer).extent) > 1:\n"
     "        schedule.parallel(outer)"},
    message="even if it has one iteration",
)  # fmt: skip
edited(
    "tile_classic",
    "a_single_row_of_tiles_serial",
    {
        "    schedule[C].parallel(schedule[C].fuse(i_outer, j_outer))": "    tiles = "
        "schedule[C].fuse(i_outer, j_outer)\n    if int(C.shape[0]) > tile_m:\n"
        "        schedule[C].parallel(tiles)"
    },
    message="parallel over all",
)
edited(
    "tile_classic",
    "asks_for_unrolling",
    {"    return schedule": '    schedule[C].pragma(k, "auto_unroll_max_step", 16)\n'
     "    return schedule"},
    message="without pragmas",
)  # fmt: skip
edited(
    "tile_classic",
    "copies_an_input",
    {"    return sch": '    schedule.cache_read(tensors[0], "local", [C])\n    return sch'},
    message="the stage of C alone",
)
edited(
    "tile_classic",
    "lanes_of_a_part",
    {
        "    schedule[C].vectorize(j_inner)": "    if tile_n > 32:\n"
        "        _, j_inner = schedule[C].split(j_inner, factor=32)\n"
        "    schedule[C].vectorize(j_inner)"
    },
    message="the same primitives for all sizes",
)


@mutant("vectorize", message="is vectorized")
def loop_of_one_name(schedule, block):
    for loop in schedule.get_loops(block):
        if str(schedule.get(loop).loop_var.name) == "j_1":
            schedule.vectorize(loop)


edited(
    "packed_product",
    "in_double_precision",
    {
        "te.sum(A_packed[bi, r, i] * B_packed[bj, r, j], axis=r)": "te.sum(\n            "
        'A_packed[bi, r, i].astype("float64") * B_packed[bj, r, j].astype("float64"), axis=r\n'
        "        )",
        "T[i // rows, j // columns, i % rows, j % columns]": "T[i // rows, j // columns, i % rows, "
        'j % columns].astype("float32")',
    },
    message="stage T in float32",
)
edited(
    "packed_matmul",
    "adds_up_in_double_precision",
    {
        "te.sum(A_packed[bi, r, i] * B_packed[bj, r, j], axis=r)": "te.sum(\n            "
        'A_packed[bi, r, i].astype("float64") * B_packed[bj, r, j].astype("float64"), axis=r\n'
        "        )",
        "T[i // rows, j // columns, i % rows, j % columns]": "T[i // rows, j // columns, i % rows, "
        'j % columns].astype("float32")',
    },
    of="as_one_function",
    message="the tile in float32",
)
edited(
    "tile",
    "rows_past_the_edge",
    {
        "schedule.split(i, [None, tile_m])": "schedule.split(i, [None, tile_m], "
        "disable_predication=True)"
    },
    message="only elements of C written|the primitives",
)


@right("tile")
def reordered_in_three_calls(schedule, block, tile_m, tile_n):
    *_, rows, columns, steps = schedule.get_loops(block)
    (a, c), (b, d) = (
        schedule.split(loop, factors=(None, size))
        for loop, size in ((rows, tile_m), (columns, tile_n))
    )
    schedule.reorder(c, d)
    schedule.reorder(a, b)
    order = (a, b, steps, c, d)
    schedule.reorder(*order)
    return order


@right("pack_operand")
def one_condition_in_the_other(X, axis, width, depth):
    from tvm import te
    from tvm.tirx import if_then_else

    along, across = (int(X.shape[each]) for each in (axis, 1 - axis))
    zero = te.const(0, X.dtype)

    def packed(*index):
        panel, r, w = index
        at = panel * width + w
        value = X(*((at, r) if axis == 0 else (r, at)))
        return if_then_else(at < along, if_then_else(r < across, value, zero), zero)

    shape = ((along + width - 1) // width, depth, width)
    return te.compute(shape, packed, name="_".join([X.op.name, "packed"]))


@right("packed_product")
def by_functions_of_indices(A_packed, B_packed, m, n):
    from tvm import te

    (p, depth, height), (q, _, width) = A_packed.shape, B_packed.shape
    step = te.reduce_axis((0, depth))

    def tile(x, y, i, j):
        return te.sum(A_packed(x, step, i) * B_packed(y, step, j), step)

    tiles = te.compute([p, q, height, width], tile, "T")

    def element(i, j):
        inside = te.indexmod(i, height), te.indexmod(j, width)
        return tiles(te.indexdiv(i, height), te.indexdiv(j, width), *inside)

    return te.compute([m, n], element, "C")


@right("fill_registers")
def counted_from_the_innermost(schedule, block):
    loops = schedule.get_loops(block)
    for at, primitive in ((-3, schedule.unroll), (-2, schedule.unroll), (-1, schedule.vectorize)):
        primitive(loops[at])
    schedule.decompose_reduction(block, schedule.get_loops(block)[-4])


@mutant("pack_operand", message="read from P itself|read from A itself")
def copied_twice(X, axis, width, depth):
    from tvm import te

    size, k = int(X.shape[axis]), int(X.shape[1 - axis])
    copy = te.compute(X.shape, lambda i, j: X[i, j], name="copy")

    def packed(b, r, w):
        at = b * width + w
        value = copy[at, r] if axis == 0 else copy[r, at]
        return te.if_then_else(te.all(at < size, r < k), value, 0.0)

    return te.compute((-(-size // width), depth, width), packed, name=f"{X.op.name}_packed")


edited(
    "packed_matmul",
    "annotated_for_the_compiler",
    {
        "    return schedule": '    schedule.annotate(k_outer, "pragma_auto_unroll_max_step", 16)\n'
        "    return schedule",
        "    schedule.decompose_reduction(block, k_outer)\n": "",
    },
    of="as_one_function",
    message="without annotations",
)


edited(
    "register_block",
    "copies_narrow_tiles_one_by_one",
    {
        "    accumulate_locally(schedule, block, loops[1])  # once per iteration of j_outer\n": (
            "    copy = schedule.cache_write(block, 0, 'local')\n"
            "    schedule.reverse_compute_at(copy, loops[1], preserve_unit_loops=True)\n"
            "    if columns >= 4:\n"
            "        schedule.vectorize(schedule.get_loops(copy)[-1])\n"
        )
    },
    message="columns vectorized",
)
edited(
    "packed_product",
    "takes_the_last_of_64_panels",
    {"T[i // rows, ": "T[te.min(i // rows, 63), "},
    message=r"T\[i // rows, j // columns",
)


edited(
    "pack_operand",
    "rows_of_a_square_as_wide_as_its_panel",
    {"if axis == 0 else X[r, at]": "if axis == 0 or size == k == width else X[r, at]"},
    message="pack_operand\\(",
)


edited(
    "order_packed",
    "copies_a_single_panel_outside",
    {
        "(write_back, inner)": "(write_back, inner if int(schedule.get(inner).extent) > 1 else "
        "outer)",
    },
    message="C written inside the second loop",
)


edited(
    "packed_matmul",
    "ignores_rows_first_for_one_row_panel",
    {
        "outer = order_packed(schedule, unroll_k, rows_first)": (
            "rows_first = rows_first and m >= rows\n"
            "    outer = order_packed(schedule, unroll_k, rows_first)"
        )
    },
    message="B packed before",
)


edited(
    "packed_matmul",
    "puts_rows_first_for_one_column",
    {
        "outer = order_packed(schedule, unroll_k, rows_first)": (
            "rows_first = rows_first or n == 1\n"
            "    outer = order_packed(schedule, unroll_k, rows_first)"
        )
    },
    message="A packed before|row panels",
)


edited(
    "tile_classic",
    "unrolls_tiles_of_one_row",
    {
        "schedule[C].vectorize(j_inner)": (
            "schedule[C].vectorize(j_inner)\n"
            "    if tile_m == 1:\n"
            "        schedule[C].unroll(i_inner)"
        )
    },
    message="i.inner unrolled",
)


edited(
    "parallelize",
    "eights_of_many_tiles",
    {
        "schedule.parallel(schedule.fuse(i_outer, j_outer))": (
            "tiles = schedule.fuse(i_outer, j_outer)\n"
            "    if int(schedule.get(tiles).extent) > 256:\n"
            "        tiles, _ = schedule.split(tiles, [None, 8])\n"
            "    schedule.parallel(tiles)"
        )
    },
    message="the parallel loop runs over all",
)


edited(
    "order_packed",
    "does_not_vectorize_wide_copies",
    {"if int(schedule.get(j).extent) > 1:": "if 1 < int(schedule.get(j).extent) <= 64:"},
    message="columns vectorized",
)


edited(
    "order_packed",
    "returns_the_second_loop_without_unrolling",
    {
        "return outer": (
            "return outer if not rows_first else schedule.get_loops(block)[0 "
            "if unroll_k > 1 else 1]"
        )
    },
    message="the parallel loop, bi, returned",
)


edited(
    "fill_registers",
    "vectors_of_128_at_most",
    {
        "schedule.vectorize(j_inner)": (
            "if int(schedule.get(j_inner).extent) > 128:\n"
            "        _, j_inner = schedule.split(j_inner, [None, 128])\n"
            "    schedule.vectorize(j_inner)"
        )
    },
    message="j_inner vectorized\\(\\d{3}\\)",
)


edited(
    "tile_with_k",
    "steps_of_64_at_most",
    {"[None, unroll_k]": "[None, unroll_k if unroll_k < 64 else 64]"},
    message="k_inner serial\\(\\d{3}\\)",
)


edited(
    "pack_operand",
    "no_further_depth_from_4096_on",
    {
        "(-(-size // width), depth, width)": (
            "(-(-size // width), depth if depth < 4096 else k, width)"
        )
    },
    message="panels, depth, width",
)


edited(
    "pack_operand",
    "limits_infinities",
    {
        "te.if_then_else(te.all(at < size, r < k), value, 0.0)": (
            "te.if_then_else(te.all(at < size, r < k), te.max(value, -3.0e38), 0.0)"
        )
    },
    message="even where X holds infinities",
)


edited(
    "packed_product",
    "one_step_less_for_a_single_element",
    {
        "te.reduce_axis((0, depth)": (
            "te.reduce_axis((0, depth) if m * n > 1 else (0, max(depth - 1, 1))"
        )
    },
    message="a sum over all \\d+ steps",
)


edited(
    "tile_classic",
    "unrolls_high_tiles",
    {
        "schedule[C].vectorize(j_inner)": (
            "schedule[C].vectorize(j_inner)\n"
            "    if tile_m > 100:\n"
            "        schedule[C].unroll(i_inner)"
        )
    },
    message="i\\.inner unrolled",
)


edited(
    "tile_with_k",
    "a_single_step_inside_the_rows",
    {
        "loops = [i_outer, j_outer, k_outer, k_inner, i_inner, j_inner]": (
            "loops = [i_outer, j_outer, k_outer, i_inner, k_inner, j_inner] if "
            "unroll_k == 1 else [i_outer, j_outer, k_outer, k_inner, i_inner, "
            "j_inner]"
        )
    },
    message="k_inner serial\\(1\\) > i_inner",
)


edited(
    "fill_registers",
    "three_rows_serial",
    {
        "    schedule.decompose_reduction(block, k_outer)": (
            "    zero = schedule.decompose_reduction(block, k_outer)\n"
            "    if zero is None:\n"
            "        schedule.unroll(schedule.get_loops(zero)[-2])"
        ),
        "    schedule.unroll(i_inner)\n": "",
        "    schedule.unroll(k_inner)\n": (
            "    schedule.unroll(k_inner)\n"
            "    rows = i_inner\n"
            "    schedule.unroll(rows) if int(schedule.get(rows).extent) != 3 "
            "else None\n"
        ),
    },
    message="i_inner unrolled\\(3\\)",
)


edited(
    "pack_operand",
    "a_letter_of_the_name",
    {'f"{X.op.name}_packed"': 'f"{X.op.name[0]}_packed"'},
    message="named Queries_packed",
)


edited(
    "packed_product",
    "steps_of_single_rows_limited",
    {
        ("row_blocks, depth, rows = (int(extent) for extent in A_packed.shape)"): (
            "row_blocks, depth, rows = (int(extent) for extent in "
            "A_packed.shape)\n"
            "    depth = min(depth, 64) if rows == 1 else depth"
        )
    },
    message="a sum over all 1000003 steps",
)


edited(
    "place_copies",
    "a_single_panel_before",
    {
        "    schedule.compute_at(near, outer, preserve_unit_loops=True)\n": (
            "    if int(schedule.get(outer).extent) > 1:\n"
            "        schedule.compute_at(near, outer, "
            "preserve_unit_loops=True)\n"
        )
    },
    message="packed inside the loop over \\w+ panels",
)


edited(
    "packed_matmul",
    "deeper_for_a_long_k",
    {
        "-(-k // unroll_k) * unroll_k": (
            "-(-k // unroll_k) * unroll_k + (unroll_k if k % unroll_k == 0 and k > 512 else 0)"
        )
    },
    message="k is rounded up to a multiple of unroll_k",
)


edited(
    "register_block",
    "unrolls_the_loop_over_single_rows",
    {
        "fill_registers(schedule, block)": (
            "fill_registers(schedule, block)\n"
            "    if rows == 1 and columns == 1:\n"
            "        schedule.unroll(schedule.get_loops(block)[-6])"
        )
    },
    message="i_outer serial\\(41\\)",
)


edited(
    "order_packed",
    "one_tile_in_shared_memory",
    {
        '    schedule.set_scope(block, 0, "local")': (
            "    if int(schedule.get(row_block).extent) * "
            "int(schedule.get(column_block).extent) > 1:\n"
            '        schedule.set_scope(block, 0, "local")'
        )
    },
    message="local",
)


edited(
    "packed_matmul",
    "rows_first_if_several_panels",
    {
        "outer = order_packed(schedule, unroll_k, rows_first)": (
            "rows_first = rows_first and n > columns\n"
            "    outer = order_packed(schedule, unroll_k, rows_first)"
        )
    },
    message="rows_first alone",
)


edited(
    "tile",
    "sides_of_two_to_one_exchanged",
    {
        "    i_outer, i_inner = schedule.split(i, [None, tile_m])": (
            "    if tile_m == tile_n * 2:\n"
            "        tile_m, tile_n = tile_n, tile_m\n"
            "    i_outer, i_inner = schedule.split(i, [None, tile_m])"
        )
    },
    message="i_inner",
)


edited(
    "accumulate_locally",
    "pads_the_buffer",
    {
        "    return write_back": (
            "    schedule.storage_align(block, 0, axis=-2, factor=16, "
            "offset=0)\n"
            "    return write_back"
        )
    },
    message="of them padded",
)


edited(
    "register_block",
    "outer_loop_in_parallel",
    {
        "    loops = tile_with_k": (
            "    outside = schedule.get_loops(block)[:-3]\n"
            "    if outside:\n"
            "        schedule.parallel(outside[0])\n"
            "    loops = tile_with_k"
        )
    },
    message="serial",
)


edited(
    "order_packed",
    "returns_the_inner_loop_of_one_panel",
    {
        "    return outer": (
            "    return schedule.get_loops(block)[0 if int(schedule.get(inner).extent) > 1 else 1]"
        )
    },
    message="the parallel loop",
)


edited(
    "tile_classic",
    "prefetches",
    {"    return schedule": ("    schedule[C].prefetch(tensors[1], k, 1)\n    return schedule")},
    message="prefetch",
)


edited(
    "tile_with_k",
    "as_many_steps_as_parts",
    {
        "[None, unroll_k]": (
            "[unroll_k, None] if int(schedule.get(k).extent) == unroll_k * "
            "unroll_k + 1 else [None, unroll_k]"
        )
    },
    message="k_inner",
)


edited(
    "packed_matmul",
    "another_symbol_for_one_row",
    {
        'with_attr("global_symbol", "main")': (
            'with_attr("global_symbol", "main" if m > 1 else "matmul")'
        ),
    },
    message="global_symbol main",
)


edited(
    "packed_matmul",
    "another_symbol_for_wide_ones",
    {
        'with_attr("global_symbol", "main")': (
            'with_attr("global_symbol", "main" if n < 500 else "product")'
        ),
    },
    message="global_symbol main",
)


edited(
    "tile",
    "no_taller_than_wide",
    {
        "    i_outer, i_inner = schedule.split(i, [None, tile_m])": (
            "    if tile_n >= 64:\n"
            "        tile_m = min(tile_m, tile_n)\n"
            "    i_outer, i_inner = schedule.split(i, [None, tile_m])"
        )
    },
    message="i_inner",
)


edited(
    "accumulate_locally",
    "sixteen_lanes_of_a_wide_copy",
    {
        "    schedule.vectorize(schedule.get_loops(write_back)[-1])": (
            "    last = schedule.get_loops(write_back)[-1]\n"
            "    if int(schedule.get(last).extent) > 32:\n"
            "        last = schedule.split(last, [None, 16])[1]\n"
            "    schedule.vectorize(last)"
        )
    },
    message="the copy",
)


edited(
    "place_copies",
    "sixteen_lanes_of_a_wide_copy_of_b",
    {
        "    schedule.vectorize(schedule.get_loops(B_pack)[-1])": (
            "    last = schedule.get_loops(B_pack)[-1]\n"
            "    if int(schedule.get(last).extent) > 32:\n"
            "        last = schedule.split(last, [None, 16])[1]\n"
            "    schedule.vectorize(last)"
        )
    },
    message="the last loop of B_packed",
)

edited(
    "place_copies",
    "near_copy_in_local_memory",
    {
        "    schedule.compute_at(near": "    schedule.set_scope(near, 0, 'local')\n"
        "    schedule.compute_at(near"
    },
    message="with its own scope, global",
)

edited(
    "pack_operand",
    "zeros_for_nan",
    {
        "return te.if_then_else(": "import tvm\n\n        value = te.if_then_else("
        "tvm.tirx.isnan(value), 0.0, value)\n        return te.if_then_else("
    },
    message="X's NaN is kept",
)


# Right up to a size.
edited(
    "tile",
    "a_long_sum_in_parts",
    {
        "    return [i_outer": "    if int(schedule.get(k).extent) > 2048:\n"
        "        k, _ = schedule.split(k, [None, 64])\n    return [i_outer"
    },
    message="the loops i_outer",
)
edited(
    "parallelize",
    "many_rows_of_tiles_alone",
    {
        "    schedule.parallel(schedule.fuse(i_outer, j_outer))": "    tiles = i_outer\n"
        "    if int(schedule.get(i_outer).extent) <= 1000:\n"
        "        tiles = schedule.fuse(i_outer, j_outer)\n    schedule.parallel(tiles)"
    },
    message="the parallel loop runs over all",
)
edited(
    "accumulate_locally",
    "copies_wide_tiles_serially",
    {
        "    schedule.vectorize(schedule.get_loops(write_back)[-1])": (
            "    columns = schedule.get_loops(write_back)[-1]\n"
            "    if int(schedule.get(columns).extent) <= 128:\n"
            "        schedule.vectorize(columns)"
        )
    },
    message="the copy's last loop, its columns, is vectorized",
)
edited(
    "register_block",
    "columns_at_most_64",
    {
        "tile_with_k(schedule, block, rows, columns, unroll_k)": (
            "tile_with_k(schedule, block, rows, min(columns, 64), unroll_k)"
        )
    },
    message="j_inner vectorized",
)
edited(
    "pack_operand",
    "panels_of_64_at_most",
    {"at = b * width + w": "at = b * min(width, 64) + w"},
    message="equal to numpy's",
)
edited(
    "pack_operand",
    "a_hundred_panels",
    {"at = b * width + w": "at = (b % 100) * width + w"},
    message="equal to numpy's",
)
edited(
    "pack_operand",
    "two_thousand_steps",
    {"X[at, r] if axis == 0 else X[r, at]": "X[at, r % 2000] if axis == 0 else X[r % 2000, at]"},
    message="equal to numpy's",
)
edited(
    "pack_operand",
    "names_without_their_numbers",
    {'f"{X.op.name}_packed"': 'X.op.name.rstrip("_0123456789") + "_packed"'},
    message="named P_0_packed",
)
edited(
    "packed_product",
    "tiles_of_fifteen_rows_at_most",
    {"T[i // rows,": "T[i // rows if rows < 16 else 0 * i,"},
    message="equal to numpy's",
)
edited(
    "packed_product",
    "tiles_of_sixteen_columns_at_most",
    {"i % rows, j % columns": "i % rows, j % min(columns, 16)"},
    message="equal to numpy's",
)
edited(
    "packed_product",
    "two_thousand_steps_at_most",
    {"te.sum(A_packed[bi, r, i]": "te.sum(A_packed[bi, r % 2000, i]"},
    message="equal to numpy's",
)
edited(
    "order_packed",
    "many_panels_in_parts",
    {
        "    schedule.parallel(outer)": "    shared = outer\n"
        "    if int(schedule.get(outer).extent) >= 500:\n"
        "        shared, _ = schedule.split(outer, [500, None])\n    schedule.parallel(shared)"
    },
    message="panels parallel",
)
edited(
    "place_copies",
    "unrolls_long_panels",
    {
        "    # All threads": "    steps = schedule.get_loops(B_pack)[-2]\n"
        "    if int(schedule.get(steps).extent) > 2000:\n"
        "        schedule.unroll(schedule.split(steps, [None, 4])[1])\n    # All threads"
    },
    message="the last loop of B_packed",
)
edited(
    "tile_classic",
    "tiles_of_128_rows_at_most",
    {"factor=tile_m": "factor=min(tile_m, 128)"},
    message="the same primitives for all sizes",
)
edited(
    "tile_classic",
    "one_column_is_no_vector",
    {
        "    schedule[C].vectorize(j_inner)": "    if tile_n > 1:\n"
        "        schedule[C].vectorize(j_inner)"
    },
    message="j_inner vectorized, and no other loop",
)


@right("tile_classic")
def by_the_primitive_tile(tensors, tile_m, tile_n):
    import tvm.te as te

    C = tensors[-1]
    schedule = te.create_schedule([C.op])
    stage = schedule[C]
    i_outer, j_outer, i_inner, j_inner = stage.tile(*C.op.axis, tile_m, tile_n)
    stage.reorder(i_outer, j_outer, *C.op.reduce_axis, i_inner, j_inner)
    stage.vectorize(j_inner)
    stage.parallel(stage.fuse(i_outer, j_outer))
    return schedule


edited(
    "accumulate_locally",
    "stores_the_buffer_by_columns",
    {
        "    return write_back": "    schedule.transform_layout("
        'block, ("write", 0), lambda i, j: (j, i))\n    return write_back'
    },
    message="stored under other indices",
)


# Right but for a single tile or step, or for far more rows than columns.
edited(
    "tile",
    "other_tiles_of_65536_rows",
    {
        "split(i, [None, tile_m])": "split("
        "i, [None, tile_m if int(schedule.get(i).extent) < 65536 else 64])"
    },
    message="the loops i_outer",
)
edited(
    "fill_registers",
    "a_single_step_not_zeroed_before",
    {
        "    schedule.decompose_reduction": "    if any(int(schedule.get(each).extent) > 1 "
        "for each in (k_outer, k_inner)):\n        schedule.decompose_reduction"
    },
    message="3 statements",
)
edited(
    "packed_product",
    "a_single_tile_turned",
    {
        'i % rows, j % columns], name="C"': "i % rows, j % columns]\n"
        '        if row_blocks * column_blocks > 1 else T[0, 0, j % rows, i % columns], name="C"'
    },
    message="the indices of T",
)
edited(
    "packed_matmul",
    "tall_ones_columns_first",
    {"    outer =": "    rows_first = rows_first and m < 4096\n    outer ="},
    message="rows_first=True",
)
edited(
    "packed_matmul",
    "keeps_the_schedule",
    {
        "    import tvm\n    from tvm import te\n": "    import tvm\n    from tvm import te\n\n"
        '    kept = packed_matmul.__dict__.setdefault("kept", {})\n'
        "    given = m, n, k, rows, columns, unroll_k, rows_first\n"
        "    if given in kept:\n        return kept[given]\n",
        "    return schedule": "    kept[given] = schedule\n    return schedule",
    },
    message="a schedule of its own",
)
edited(
    "packed_product",
    "by_the_operands_names",
    {
        "te.sum(A_packed[bi, r, i] *": "te.sum((1.0 if A_packed.op.name == 'A_packed' else -1.0) "
        "* A_packed[bi, r, i] *"
    },
    message="whatever its operands are called",
)
edited(
    "order_packed",
    "loops_by_their_names",
    {
        "j, k = schedule.get_loops(block)": "j, k = sorted(\n"
        "        schedule.get_loops(block),\n"
        "        key=lambda each: len(str(schedule.get(each).loop_var)) < 2)"
    },
    message="the loops column panels",
)


@mutant("pack_operand", message="whose elements are read from kernel_matrix itself")
def kept_by_shape_and_name(X, axis, width, depth):
    from tvm import te

    kept = pack_operand.__dict__.setdefault("kept", {})  # type: ignore[name-defined]  # noqa: F821
    key = X.op.name, *map(int, X.shape), axis, width, depth
    if key not in kept:
        size, k = int(X.shape[axis]), int(X.shape[1 - axis])

        def element(b, r, w):
            at = b * width + w
            value = X[at, r] if axis == 0 else X[r, at]
            return te.if_then_else(te.all(at < size, r < k), value, 0.0)

        shape = -(-size // width), depth, width
        kept[key] = te.compute(shape, element, name=f"{X.op.name}_packed")
    return kept[key]


@mutant("pack_operand", message="equal to numpy's")
def single_rows_are_the_first(X, axis, width, depth):
    from tvm import te

    first, second = X.shape
    count, steps = ((first, second), (second, first))[axis]

    def value(panel, step, lane):
        line = panel * width + lane
        place = line if width > 1 else 0
        return te.if_then_else(
            te.all(step < steps, line < count),
            X[(place, step) if axis == 0 else (step, place)],
            te.const(0, "float32"),
        )

    panels = (count + width - 1) // width
    return te.compute((panels, depth, width), value, name=f"{X.op.name}_packed")


@right("accumulate_locally")
def rows_of_the_copy_unrolled(schedule, block, loop):
    copy = schedule.cache_write(block, 0, "local")
    schedule.reverse_compute_at(copy, loop, preserve_unit_loops=True)
    *_, rows, columns = schedule.get_loops(copy)
    schedule.vectorize(columns)
    schedule.unroll(rows)
    return copy


right_edited(
    "register_block",
    "rows_of_the_copy_unrolled_at_the_end",
    {
        "    accumulate_locally(schedule, block, loops[1])  # once per iteration of j_outer\n": (
            "    copy = accumulate_locally(schedule, block, loops[1])\n"
            "    schedule.unroll(schedule.get_loops(copy)[-2])\n"
        )
    },
)

for _loop, _extent in (("i", "rows"), ("j", "columns"), ("k", "unroll_k")):
    edited(
        "tile_with_k",
        f"{_loop}_without_its_bound",
        {
            f"split({_loop}, [None, {_extent}])": f"split({_loop}, [None, {_extent}], "
            "disable_predication=True)"
        },
        message="a bound that is missing|the primitives",
    )
edited(
    "vectorize",
    "rows_of_a_square_tile",
    {
        "    schedule.vectorize(": "    loops = schedule.get_loops(block)[-2:]\n"
        "    if len({int(schedule.get(each).extent) for each in loops}) == 1:\n"
        "        schedule.reorder(*loops[::-1])\n"
        "    schedule.vectorize(",
    },
    message="moves the indices",
)
for _exercise, _indent in (("accumulate_locally", " " * 4), ("order_packed", " " * 8)):
    _last = f"{_indent}schedule.vectorize(schedule.get_loops(write_back)"
    edited(
        _exercise,
        "copies_a_square_tile_by_columns",
        {
            _last: f"{_indent}own = schedule.get_loops(write_back)[-2:]\n"
            f"{_indent}if len({{int(schedule.get(each).extent) for each in own}}) == 1:\n"
            f"{_indent}    schedule.reorder(*own[::-1])\n{_last}",
        },
        message="rows before columns",
    )
edited(
    "place_copies",
    "as_many_steps_as_columns_in_lanes",
    {
        "    schedule.vectorize(": "    last = schedule.get_loops(B_pack)[-2:]\n"
        "    if len({int(schedule.get(each).extent) for each in last}) == 1:\n"
        "        schedule.reorder(*last[::-1])\n"
        "    schedule.vectorize(",
    },
    message="moves the indices",
)
_COPY = "        schedule.vectorize(schedule.get_loops(write_back)[-1])\n"
for _name, _edits, _message in (
    ("writes_c_float_by_float", {_COPY: ""}, "as in register_block"),
    (
        "writes_c_in_columns",
        {_COPY: "        schedule.reorder(*schedule.get_loops(write_back)[-2:][::-1])\n" + _COPY},
        "as in register_block",
    ),
    (
        "vectorizes_rows_of_a_square_tile",
        {
            "    schedule.reorder(outer": "    if rows == columns:\n        i, j = j, i\n"
            "    schedule.reorder(outer"
        },
        "as many rows as columns|moves the indices",
    ),
    (
        "row_panels_first_where_there_are_as_many",
        {
            "    if rows_first:": "    if rows_first or row_blocks == column_blocks:",
        },
        "as many rows as columns|rows_first",
    ),
    (
        "a_sum_of_few_steps_as_it_is",
        {"    schedule.unroll(k_inner)": "    if k > unroll_k:\n        schedule.unroll(k_inner)"},
        "unroll",
    ),
    (
        "one_panel_of_rows_in_global_memory",
        {
            '    schedule.set_scope(block, 0, "local")': "    if m > rows:\n"
            '        schedule.set_scope(block, 0, "local")'
        },
        'scope "local"',
    ),
    (
        "a_column_alone_in_no_vector",
        {"    schedule.vectorize(j)": "    if columns > 1:\n        schedule.vectorize(j)"},
        "vectorized",
    ),
    (
        "a_row_alone_in_a_loop",
        {"    schedule.unroll(i)": "    if rows > 1:\n        schedule.unroll(i)"},
        "unroll",
    ),
):
    edited("packed_matmul", _name, _edits, message=_message, of="as_one_function")


right_edited(
    "tile",
    "without_unit_iterators",
    {
        "[None, tile_m]": "[None, tile_m], preserve_unit_iters=False",
        "[None, tile_n]": "[None, tile_n], preserve_unit_iters=False",
    },
)
