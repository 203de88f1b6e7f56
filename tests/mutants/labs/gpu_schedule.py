"""Wrong solutions of lab 1."""

from tests.mutants import edited, mutant, right
from tvm_practice.labs.gpu_schedule import tensorize_copies, tensorize_product


@mutant("bind_threads", message="(?s)neighbouring elements of A.*the same element of A")
def rows_on_x(schedule, block, threads_y, threads_x):
    i, j, k = schedule.get_loops(block)
    block_i, thread_i = schedule.split(i, [None, threads_x])
    block_j, thread_j = schedule.split(j, [None, threads_y])
    schedule.reorder(block_i, block_j, thread_i, thread_j, k)
    schedule.bind(block_i, "blockIdx.x")
    schedule.bind(block_j, "blockIdx.y")
    schedule.bind(thread_i, "threadIdx.x")
    schedule.bind(thread_j, "threadIdx.y")


@mutant("bind_threads", message="nothing is bound to threadIdx.y, threadIdx.x")
def binds_blocks_only(schedule, block, threads_y, threads_x):
    i, j, k = schedule.get_loops(block)
    block_i, thread_i = schedule.split(i, [None, threads_y])
    block_j, thread_j = schedule.split(j, [None, threads_x])
    schedule.reorder(block_i, block_j, thread_i, thread_j, k)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")


@mutant("bind_threads", message=r"blockIdx.y\(3\) > blockIdx.x\(3\) > threadIdx.y\(8\)")
def outer_and_inner_swapped(schedule, block, threads_y, threads_x):
    i, j, k = schedule.get_loops(block)
    block_i, thread_i = schedule.split(i, [threads_y, None])
    block_j, thread_j = schedule.split(j, [None, threads_x])
    schedule.reorder(block_i, block_j, thread_i, thread_j, k)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(thread_j, "threadIdx.x")


@mutant("stage_shared", message="every thread fetches the whole tile")
def fetches_alone(schedule, block, index, k_outer, threads_y, threads_x, lanes):
    copy = schedule.cache_read(block, index, "shared")
    schedule.compute_at(copy, k_outer)
    return copy


@mutant("stage_shared", message=r"compute_at\(copy, k_outer\)")
def copies_the_whole_matrix(schedule, block, index, k_outer, threads_y, threads_x, lanes):
    copy = schedule.cache_read(block, index, "shared")
    tile = schedule.fuse(*schedule.get_loops(copy)[-2:])
    _, y, x, vector = schedule.split(tile, [None, threads_y, threads_x, lanes])
    schedule.bind(y, "threadIdx.y")
    schedule.bind(x, "threadIdx.x")
    schedule.vectorize(vector)
    return copy


@mutant("stage_shared", message="(?s)threads of a warp are neighbours at each step")
def a_run_of_the_tile_each(schedule, block, index, k_outer, threads_y, threads_x, lanes):
    copy = schedule.cache_read(block, index, "shared")
    schedule.compute_at(copy, k_outer)
    tile = schedule.fuse(*schedule.get_loops(copy)[-2:])
    y, x, _, vector = schedule.split(tile, [threads_y, threads_x, None, lanes])
    schedule.bind(y, "threadIdx.y")
    schedule.bind(x, "threadIdx.x")
    schedule.vectorize(vector)
    return copy


@mutant("stage_shared", message=r"threadIdx.x\(32\) > vectorized\(4\)")
def does_not_vectorize(schedule, block, index, k_outer, threads_y, threads_x, lanes):
    copy = schedule.cache_read(block, index, "shared")
    schedule.compute_at(copy, k_outer)
    tile = schedule.fuse(*schedule.get_loops(copy)[-2:])
    _, y, x, _ = schedule.split(tile, [None, threads_y, threads_x, lanes])
    schedule.bind(y, "threadIdx.y")
    schedule.bind(x, "threadIdx.x")
    return copy


@mutant("stage_shared", message='a buffer of scope "shared"')
def stages_in_registers(schedule, block, index, k_outer, threads_y, threads_x, lanes):
    copy = schedule.cache_read(block, index, "local")
    schedule.compute_at(copy, k_outer)
    return copy


@mutant("stage_shared", message="the return statement")
def returns_no_block(schedule, block, index, k_outer, threads_y, threads_x, lanes):
    copy = schedule.cache_read(block, index, "shared")
    schedule.compute_at(copy, k_outer)
    tile = schedule.fuse(*schedule.get_loops(copy)[-2:])
    _, y, x, vector = schedule.split(tile, [None, threads_y, threads_x, lanes])
    schedule.bind(y, "threadIdx.y")
    schedule.bind(x, "threadIdx.x")
    schedule.vectorize(vector)


@mutant("register_tile_gpu", message="not local: A, B")
def multiplies_from_memory(schedule, block, threads_y, threads_x, rows, columns, step):
    i, j, k = schedule.get_loops(block)
    write_back = schedule.cache_write(block, 0, "local")
    block_i, thread_i, i_inner = schedule.split(i, [None, threads_y, rows])
    block_j, thread_j, j_inner = schedule.split(j, [None, threads_x, columns])
    k_outer, k_inner = schedule.split(k, [None, step])
    schedule.reorder(block_i, block_j, thread_i, thread_j, k_outer, k_inner, i_inner, j_inner)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(thread_j, "threadIdx.x")
    schedule.reverse_compute_at(write_back, thread_j)
    schedule.vectorize(schedule.get_loops(write_back)[-1])
    schedule.unroll(i_inner)
    schedule.unroll(j_inner)
    return k_outer, block, block


@mutant("register_tile_gpu", message=r"expected: +the loops blockIdx.y\(2\)")
def a_thread_strides(schedule, block, threads_y, threads_x, rows, columns, step):
    i, j, k = schedule.get_loops(block)
    write_back = schedule.cache_write(block, 0, "local")
    block_i, i_inner, thread_i = schedule.split(i, [None, threads_y, rows])
    block_j, j_inner, thread_j = schedule.split(j, [None, threads_x, columns])
    k_outer, k_inner = schedule.split(k, [None, step])
    schedule.reorder(block_i, block_j, thread_i, thread_j, k_outer, k_inner, i_inner, j_inner)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(thread_j, "threadIdx.x")
    schedule.reverse_compute_at(write_back, thread_j)
    a_registers = schedule.cache_read(block, 0, "local")
    b_registers = schedule.cache_read(block, 1, "local")
    schedule.compute_at(a_registers, k_inner)
    schedule.compute_at(b_registers, k_inner)
    schedule.unroll(i_inner)
    schedule.unroll(j_inner)
    return k_outer, a_registers, b_registers


@mutant("register_tile_gpu", message="at each k_inner")
def loads_for_all_of_k_outer(schedule, block, threads_y, threads_x, rows, columns, step):
    i, j, k = schedule.get_loops(block)
    write_back = schedule.cache_write(block, 0, "local")
    block_i, thread_i, i_inner = schedule.split(i, [None, threads_y, rows])
    block_j, thread_j, j_inner = schedule.split(j, [None, threads_x, columns])
    k_outer, k_inner = schedule.split(k, [None, step])
    schedule.reorder(block_i, block_j, thread_i, thread_j, k_outer, k_inner, i_inner, j_inner)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(thread_j, "threadIdx.x")
    schedule.reverse_compute_at(write_back, thread_j)
    schedule.vectorize(schedule.get_loops(write_back)[-1])
    a_registers = schedule.cache_read(block, 0, "local")
    b_registers = schedule.cache_read(block, 1, "local")
    schedule.compute_at(a_registers, k_outer)
    schedule.compute_at(b_registers, k_outer)
    schedule.vectorize(schedule.get_loops(b_registers)[-1])
    schedule.unroll(i_inner)
    schedule.unroll(j_inner)
    return k_outer, a_registers, b_registers


@mutant("register_tile_gpu", message="C is written once per thread")
def writes_back_inside_k(schedule, block, threads_y, threads_x, rows, columns, step):
    i, j, k = schedule.get_loops(block)
    write_back = schedule.cache_write(block, 0, "local")
    block_i, thread_i, i_inner = schedule.split(i, [None, threads_y, rows])
    block_j, thread_j, j_inner = schedule.split(j, [None, threads_x, columns])
    k_outer, k_inner = schedule.split(k, [None, step])
    schedule.reorder(block_i, block_j, thread_i, thread_j, k_outer, k_inner, i_inner, j_inner)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(thread_j, "threadIdx.x")
    schedule.reverse_compute_at(write_back, k_outer)
    schedule.vectorize(schedule.get_loops(write_back)[-1])
    a_registers = schedule.cache_read(block, 0, "local")
    b_registers = schedule.cache_read(block, 1, "local")
    schedule.compute_at(a_registers, k_inner)
    schedule.compute_at(b_registers, k_inner)
    schedule.vectorize(schedule.get_loops(b_registers)[-1])
    schedule.unroll(i_inner)
    schedule.unroll(j_inner)
    return k_outer, a_registers, b_registers


@mutant("register_tile_gpu", message="the return statement")
def returns_k_outer_alone(schedule, block, threads_y, threads_x, rows, columns, step):
    i, j, k = schedule.get_loops(block)
    write_back = schedule.cache_write(block, 0, "local")
    block_i, thread_i, i_inner = schedule.split(i, [None, threads_y, rows])
    block_j, thread_j, j_inner = schedule.split(j, [None, threads_x, columns])
    k_outer, k_inner = schedule.split(k, [None, step])
    schedule.reorder(block_i, block_j, thread_i, thread_j, k_outer, k_inner, i_inner, j_inner)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(thread_j, "threadIdx.x")
    schedule.reverse_compute_at(write_back, thread_j)
    schedule.vectorize(schedule.get_loops(write_back)[-1])
    a_registers = schedule.cache_read(block, 0, "local")
    b_registers = schedule.cache_read(block, 1, "local")
    schedule.compute_at(a_registers, k_inner)
    schedule.compute_at(b_registers, k_inner)
    schedule.vectorize(schedule.get_loops(b_registers)[-1])
    schedule.unroll(i_inner)
    schedule.unroll(j_inner)
    return k_outer


@mutant("pad_shared", message="(?s)in 32 banks: 1 wavefront.*32 wavefronts a request")
def pads_by_nothing(schedule, copy, offset):
    schedule.storage_align(copy, 0, axis=-2, factor=32, offset=0)


@mutant("pad_shared", message="in 32 banks: 1 wavefront")
def always_four(schedule, copy, offset):
    schedule.storage_align(copy, 0, axis=-2, factor=32, offset=4)


@mutant("pad_shared", message="next multiple of 32 plus offset, no further")
def always_one(schedule, copy, offset):
    schedule.storage_align(copy, 0, axis=-2, factor=32, offset=1)


@mutant("pad_shared", message="next multiple of 32 plus offset, no further")
def too_far(schedule, copy, offset):
    schedule.storage_align(copy, 0, axis=-2, factor=64, offset=offset)


@mutant("tensor_cores", message="tensorize of store")
def forgets_the_store(schedule, product, load_a, load_b, store, k_outer, intrinsics):
    zero = schedule.decompose_reduction(product, k_outer)
    for block, name in ((load_a, "load_a"), (load_b, "load_b")):
        rows, columns = schedule.get_loops(block)[-2:]
        row_tiles, rows = schedule.split(rows, [None, 16])
        column_tiles, columns = schedule.split(columns, [None, 16])
        schedule.reorder(row_tiles, column_tiles, rows, columns)
        schedule.tensorize(rows, intrinsics[name])
    [inside] = schedule.get_child_blocks(zero)
    schedule.tensorize(schedule.get_loops(inside)[-2], intrinsics["init"])
    [inside] = schedule.get_child_blocks(product)
    schedule.tensorize(schedule.get_loops(inside)[-3], intrinsics["compute"])


@mutant("tensor_cores", message="set to zero once, before k_outer")
def zeroes_outside_the_warps(schedule, product, load_a, load_b, store, k_outer, intrinsics):
    zero = schedule.decompose_reduction(product, schedule.get_loops(product)[2])
    for block, name in ((load_a, "load_a"), (load_b, "load_b"), (store, "store")):
        rows, columns = schedule.get_loops(block)[-2:]
        row_tiles, rows = schedule.split(rows, [None, 16])
        column_tiles, columns = schedule.split(columns, [None, 16])
        schedule.reorder(row_tiles, column_tiles, rows, columns)
        schedule.tensorize(rows, intrinsics[name])
    [inside] = schedule.get_child_blocks(zero)
    schedule.tensorize(schedule.get_loops(inside)[-2], intrinsics["init"])
    [inside] = schedule.get_child_blocks(product)
    schedule.tensorize(schedule.get_loops(inside)[-3], intrinsics["compute"])


@mutant("tensor_cores", message="(?s)expected: tensor_cores to run.*tensorize")
def tensorizes_whole_copies(schedule, product, load_a, load_b, store, k_outer, intrinsics):
    zero = schedule.decompose_reduction(product, k_outer)
    for block, name in ((load_a, "load_a"), (load_b, "load_b"), (store, "store")):
        schedule.tensorize(schedule.get_loops(block)[-2], intrinsics[name])
    [inside] = schedule.get_child_blocks(zero)
    schedule.tensorize(schedule.get_loops(inside)[-2], intrinsics["init"])
    [inside] = schedule.get_child_blocks(product)
    schedule.tensorize(schedule.get_loops(inside)[-3], intrinsics["compute"])


@mutant("bind_threads_classic", message="(?s)nothing is bound to blockIdx.y, blockIdx.x")
def classic_binds_threads_only(tensors, threads_y, threads_x):
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    block_i, thread_i = schedule[C].split(i, factor=threads_y)
    block_j, thread_j = schedule[C].split(j, factor=threads_x)
    schedule[C].reorder(block_i, block_j, thread_i, thread_j, k)
    schedule[C].bind(thread_i, te.thread_axis("threadIdx.y"))
    schedule[C].bind(thread_j, te.thread_axis("threadIdx.x"))
    return schedule


@mutant("bind_threads_classic", message="columns are x")
def classic_rows_on_x(tensors, threads_y, threads_x):
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    block_i, thread_i = schedule[C].split(i, factor=threads_y)
    block_j, thread_j = schedule[C].split(j, factor=threads_x)
    schedule[C].reorder(block_i, block_j, thread_i, thread_j, k)
    schedule[C].bind(block_i, te.thread_axis("blockIdx.x"))
    schedule[C].bind(block_j, te.thread_axis("blockIdx.y"))
    schedule[C].bind(thread_i, te.thread_axis("threadIdx.x"))
    schedule[C].bind(thread_j, te.thread_axis("threadIdx.y"))
    return schedule


@mutant("bind_threads_classic", message="returns the schedule of te.create_schedule")
def classic_returns_nothing(tensors, threads_y, threads_x):
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    block_i, thread_i = schedule[C].split(i, factor=threads_y)
    block_j, thread_j = schedule[C].split(j, factor=threads_x)
    schedule[C].reorder(block_i, block_j, thread_i, thread_j, k)
    schedule[C].bind(block_i, te.thread_axis("blockIdx.y"))
    schedule[C].bind(block_j, te.thread_axis("blockIdx.x"))
    schedule[C].bind(thread_i, te.thread_axis("threadIdx.y"))
    schedule[C].bind(thread_j, te.thread_axis("threadIdx.x"))


edited(
    "bind_threads",
    "the_threads_of_the_check",
    {"[None, threads_y]": "[None, 8]", "[None, threads_x]": "[None, 32]"},
    message="the factors of split",
)
edited(
    "bind_threads_classic",
    "the_threads_of_the_classic_check",
    {"factor=threads_y": "factor=8", "factor=threads_x": "factor=32"},
    message="threads_y for rows, threads_x for columns",
)
edited(
    "tensor_cores",
    "names_the_intrinsics_itself",
    {'intrinsics["init"]': '"tvm_practice_init"'},
    of="in_one_piece",
    message="the intrinsics tensorized by the names given",
)
edited(
    "pad_shared",
    "past_a_multiple_of_16",
    {"factor=32": "factor=16"},
    message="past a multiple of 32",
)
edited(
    "bind_threads_classic",
    "threads_far_apart",
    {
        "block_i, thread_i =": "thread_i, block_i =",
        "(i, factor": "(i, nparts",
        "block_j, thread_j =": "thread_j, block_j =",
        "(j, factor": "(j, nparts",
    },
    message="neighbours in C",
)


edited(
    "fragment_loops",
    "fragments_inside",
    {"(row_tiles, column_tiles, rows, columns)": "(rows, columns, row_tiles, column_tiles)"},
    message="16 rows, 16 columns",
)
edited(
    "fragment_loops",
    "columns_before_rows",
    {
        "(row_tiles, column_tiles, rows, columns)": "(row_tiles, column_tiles, columns, rows)",
        "return rows": "return columns",
    },
    message="tensorize recognizes",
)
edited(
    "fragment_loops",
    "does_not_reorder",
    {"    schedule.reorder(row_tiles, column_tiles, rows, columns)\n": ""},
    message="the order of the four",
)
edited(
    "fragment_loops",
    "of_32",
    {"(rows, [None, 16])": "(rows, [None, 32])"},
    message=r"split by \[None, 16\]",
)
edited(
    "fragment_loops",
    "returns_the_outer_rows",
    {"return rows": "return row_tiles"},
    message="the return statement",
)


@right("fragment_loops")
def columns_first(schedule, block):
    *_, i, j = schedule.get_loops(block)
    j_0, j_1 = schedule.split(j, factors=[None, 16])
    i_0, i_1 = schedule.split(i, factors=[None, 16])
    schedule.reorder(j_0, i_1)
    assert i_0 is not None and j_1 is not None
    return schedule.get_loops(block)[-2]


edited(
    "tensorize_copies",
    "loads_only",
    {', (store, "store")': ""},
    message="once each for load_a, load_b, store",
)
edited(
    "tensorize_copies",
    "names_of_its_own",
    {"intrinsics[name]": 'f"tvm_practice_{name}"'},
    message="tensorize by the names given",
)
edited(
    "tensorize_copies",
    "a_as_b",
    {'(load_b, "load_b")': '(load_b, "load_a")'},
    message="expected: ",
)


@right("tensorize_copies")
def loops_made_first(schedule, load_a, load_b, store, intrinsics):
    def inner(block):
        *_, i, j = schedule.get_loops(block)
        i_0, i_1 = schedule.split(i, factors=[None, 16])
        j_0, j_1 = schedule.split(j, factors=[None, 16])
        schedule.reorder(i_0, j_0, i_1, j_1)
        return i_1

    loops = {"store": inner(store), "load_b": inner(load_b), "load_a": inner(load_a)}
    for name, loop in loops.items():
        schedule.tensorize(loop, intrinsics[name])


edited(
    "tensorize_product",
    "zeroes_outside_k_and_the_warps",
    {"(product, k_outer)": "(product, schedule.get_loops(product)[2])"},
    message="set to zero once, before k_outer",
)
edited(
    "tensorize_product",
    "leaves_the_zeroing_as_loops",
    {'    schedule.tensorize(schedule.get_loops(inside)[-2], intrinsics["init"])\n': ""},
    message="once each for init, compute",
)
edited(
    "tensorize_product",
    "tensorizes_the_outer_block",
    {"schedule.get_loops(inside)[-3]": "schedule.get_loops(product)[-3]"},
    message="expected: tensorize_product to run",
)
edited(
    "tensorize_product",
    "compute_by_its_own_name",
    {'intrinsics["compute"]': '"tvm_practice_compute"'},
    message="tensorize by the names given",
)


@right("tensorize_product")
def product_first(schedule, product, k_outer, intrinsics):
    zero = schedule.decompose_reduction(product, k_outer)
    for block, count, name in ((product, 3, "compute"), (zero, 2, "init")):
        (inner,) = schedule.get_child_blocks(block)
        schedule.tensorize(schedule.get_loops(inner)[-count], intrinsics[name])


@right("tensor_cores")
def in_one_piece(schedule, product, load_a, load_b, store, k_outer, intrinsics):
    zero = schedule.decompose_reduction(product, k_outer)
    for block, name in ((load_a, "load_a"), (load_b, "load_b"), (store, "store")):
        rows, columns = schedule.get_loops(block)[-2:]
        row_tiles, rows = schedule.split(rows, [None, 16])
        column_tiles, columns = schedule.split(columns, [None, 16])
        schedule.reorder(row_tiles, column_tiles, rows, columns)
        schedule.tensorize(rows, intrinsics[name])
    [inside] = schedule.get_child_blocks(zero)
    schedule.tensorize(schedule.get_loops(inside)[-2], intrinsics["init"])
    [inside] = schedule.get_child_blocks(product)
    schedule.tensorize(schedule.get_loops(inside)[-3], intrinsics["compute"])


edited(
    "stage_shared",
    "lanes_a_row_of_threads_apart",
    {
        "thread_x, vector = schedule": "vector, thread_x = schedule",
        "threads_x, lanes])": "lanes, threads_x])\n    schedule.reorder(thread_x, vector)",
    },
    message="a thread's lanes next to each other",
)


edited(
    "bind_threads", "at_most_a_warp", {"[None, threads_x]": "[None, min(threads_x, 32)]"},
    message=r"expected: the loops blockIdx.y\(26\).*threadIdx.x",
)  # fmt: skip
edited(
    "bind_threads", "finds_the_block_by_name",
    {"schedule.get_loops(block)": 'schedule.get_loops(schedule.get_sblock("C"))'},
    message="Cannot find a block with the name: C",
)  # fmt: skip
edited(
    "bind_threads", "one_thread_unbound",
    {'    schedule.bind(thread_i, "threadIdx.y")':
     '    if threads_y > 1:\n        schedule.bind(thread_i, "threadIdx.y")'},
    message="nothing is bound to threadIdx.y",
)  # fmt: skip
edited(
    "stage_shared", "two_lanes_one_by_one",
    {"    schedule.vectorize(vector)": "    if lanes > 2:\n        schedule.vectorize(vector)"},
    message=r"vectorized\(2\)",
)  # fmt: skip
edited(
    "stage_shared", "finds_k_outer_by_its_place",
    {"compute_at(copy, k_outer)": "compute_at(copy, schedule.get_loops(block)[4])"},
    message="written inside k_outer",
)  # fmt: skip
edited(
    "register_tile_gpu", "at_most_8_steps", {"[None, step]": "[None, min(step, 8)]"},
    message=r"serial\(9\)",
)  # fmt: skip
edited(
    "pad_shared", "no_offset_no_padding",
    {"    schedule.storage_align": "    if offset:\n        schedule.storage_align"},
    message="begins 0 past a multiple of 32",
)  # fmt: skip
edited(
    "tensorize_product", "finds_k_outer_by_its_place",
    {"(product, k_outer)": "(product, schedule.get_loops(product)[3])"},
    message="accumulators are set to zero once, before k_outer",
)  # fmt: skip
edited(
    "bind_threads_classic", "at_most_a_warp", {"factor=threads_x": "factor=min(threads_x, 32)"},
    message=r"threadIdx.x\(",
)  # fmt: skip
edited(
    "bind_threads_classic", "one_thread_unbound",
    {"    schedule[C].bind(thread_i": "    if threads_y > 1:\n        schedule[C].bind(thread_i"},
    message="nothing is bound to threadIdx.y",
)  # fmt: skip
edited(
    "stage_shared", "four_lanes_at_most",
    {"threads_x, lanes]": "threads_x, min(lanes, 4)]"},
    message=r"vectorized\(8\)",
)  # fmt: skip


edited(
    "bind_threads",
    "exchanges_blocks_where_threads_are_equal",
    {
        '"blockIdx.y"': '"blockIdx.x" if threads_y == threads_x else "blockIdx.y"',
        'schedule.bind(block_j, "blockIdx.x")': (
            'schedule.bind(block_j, "blockIdx.y" if threads_y == threads_x else "blockIdx.x")'
        ),
    },
    message="the order of reorder",
)
edited(
    "stage_shared",
    "knows_only_two_inputs",
    {"cache_read(block, index, ": "cache_read(block, min(index, 1), "},
    message="E is copied",
)
edited(
    "register_tile_gpu",
    "writes_back_outside_a_single_thread",
    {
        "schedule.reverse_compute_at(write_back, thread_j)": (
            "schedule.reverse_compute_at(write_back, thread_i if threads_x == 1 else thread_j)"
        )
    },
    message="written once per thread",
)
edited(
    "register_tile_gpu",
    "leaves_few_rows_serial",
    {"schedule.unroll(i_inner)": ("if rows > 2:\n        schedule.unroll(i_inner)")},
    message="unrolled\\(1\\)",
)
edited(
    "pad_shared",
    "takes_offsets_modulo_8",
    {"offset=offset": "offset=offset % 8 or offset"},
    message="no further",
)
edited(
    "fragment_loops",
    "unrolls_row_tiles",
    {"return rows": ("schedule.unroll(row_tiles)\n    return rows")},
    message="stay as they are",
)
edited(
    "bind_threads_classic",
    "exchanges_blocks_where_threads_are_equal_classic",
    {
        'schedule[C].bind(block_i, te.thread_axis("blockIdx.y"))': (
            "if threads_x != threads_y:\n"
            '        schedule[C].bind(block_i, te.thread_axis("blockIdx.y"))'
        ),
        'schedule[C].bind(block_j, te.thread_axis("blockIdx.x"))': (
            "if threads_x != threads_y:\n"
            '        schedule[C].bind(block_j, te.thread_axis("blockIdx.x"))\n'
            "    else:\n"
            '        schedule[C].bind(block_i, te.thread_axis("blockIdx.x"))\n'
            '        schedule[C].bind(block_j, te.thread_axis("blockIdx.y"))'
        ),
    },
    message="threads_y for rows, threads_x for columns",
)
edited(
    "tensorize_product",
    "counts_loops_to_k_outer",
    {"(product, k_outer)": "(product, schedule.get_loops(product)[4])"},
    message="set to zero once",
)
edited(
    "tensorize_copies",
    "takes_names_by_their_order",
    {
        '(load_a, "load_a"), (load_b, "load_b"), (store, "store")': (
            "(load_a, list(intrinsics)[0]), (load_b, list(intrinsics)[1]), (store, "
            "list(intrinsics)[-1])"
        )
    },
    message="tensorize_copies to run|by the names given",
)


@mutant("tensor_cores", message="tensor_cores to run|by the names given")
def takes_intrinsics_by_their_order(schedule, product, load_a, load_b, store, k_outer, intrinsics):
    uses = ("load_a", "load_b", "init", "compute", "store")
    named = dict(zip(uses, intrinsics.values(), strict=True))
    tensorize_product(schedule, product, k_outer, named)
    tensorize_copies(schedule, load_a, load_b, store, named)


edited(
    "bind_threads_classic",
    "keeps_a_schedule_of_these_threads",
    {
        "    return schedule": "    kept = bind_threads_classic.__dict__\n"
        "    return kept.setdefault(f'{threads_y} {threads_x}', schedule)"
    },
    message="the loops blockIdx",
)
