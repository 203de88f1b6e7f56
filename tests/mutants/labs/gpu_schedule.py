"""Wrong solutions of lab 1."""

from tests.mutants import edited, mutant, right, right_edited
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


@mutant("pad_shared", message="(?s)in 32 banks: 1 wavefront.*32 wavefronts per request")
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
    "bind_threads",
    "always_eight_by_sixteen_threads",
    {"[None, threads_y]": "[None, 8]", "[None, threads_x]": "[None, 16]"},
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
    message="multiple of 32",
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
    message="16 rows outside 16 columns",
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


right_edited(
    "stage_shared",
    "scope_set_later",
    {
        'schedule.cache_read(block, index, "shared")': (
            'schedule.cache_read(block, index, "global")\n    schedule.set_scope(copy, 0, "shared")'
        )
    },
)
right_edited(
    "register_tile_gpu",
    "scopes_set_later",
    {
        'schedule.cache_read(block, 0, "local")': 'schedule.cache_read(block, 0, "global")',
        'schedule.cache_read(block, 1, "local")': (
            'schedule.cache_read(block, 1, "global")\n'
            '    schedule.set_scope(a_registers, 0, "local")\n'
            '    schedule.set_scope(b_registers, 0, "local")'
        ),
    },
)
right_edited(
    "stage_shared_classic",
    "scope_set_later",
    {
        'schedule.cache_read(tensor, "shared", [reader])': (
            'schedule.cache_read(tensor, "global", [reader])\n'
            '    schedule[copy].set_scope("shared")'
        )
    },
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
    message="row after row of the tile",
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
    message="the next multiple of 32, plus 0",
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


@mutant("register_tile_classic", message='a stage in a buffer of scope "local": registers')
def classic_adds_up_in_memory(tensors, threads_y, threads_x, rows, columns, step):
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    i, j = C.op.axis
    block_i, i = schedule[C].split(i, factor=threads_y * rows)
    block_j, j = schedule[C].split(j, factor=threads_x * columns)
    thread_i, i = schedule[C].split(i, factor=rows)
    thread_j, j = schedule[C].split(j, factor=columns)
    k_outer, k_inner = schedule[C].split(C.op.reduce_axis[0], factor=step)
    schedule[C].reorder(block_i, block_j, thread_i, thread_j, k_outer, k_inner, i, j)
    schedule[C].bind(block_i, te.thread_axis("blockIdx.y"))
    schedule[C].bind(block_j, te.thread_axis("blockIdx.x"))
    schedule[C].bind(thread_i, te.thread_axis("threadIdx.y"))
    schedule[C].bind(thread_j, te.thread_axis("threadIdx.x"))
    schedule[C].unroll(i)
    schedule[C].unroll(j)
    return schedule, C, k_outer


edited(
    "register_tile_classic",
    "classic_tile_of_a_thread_block",
    {"compute_at(schedule[C], thread_j)": "compute_at(schedule[C], block_j)"},
    message="compute_at of the local stage|local stage computed at the axis on threadIdx.x",
)
edited(
    "register_tile_classic",
    "classic_rows_stay_loops",
    {"    schedule[local].unroll(i)\n": ""},
    message="unroll of the last two",
)
edited(
    "register_tile_classic",
    "classic_steps_inside_the_tile",
    {"reorder(k_outer, k_inner, i, j)": "reorder(i, j, k_outer, k_inner)"},
    message="the order of its loops",
)
edited(
    "register_tile_classic",
    "classic_threads_interleaved",
    {
        "thread_j, j = schedule[C].split(j, factor=columns)": "j, thread_j = schedule[C].split("
        "j, factor=threads_x)"
    },
    message="columns of C from one threadIdx.x to the next",
)
edited(
    "register_tile_classic",
    "classic_blocks_interleaved",
    {
        "block_i, i = schedule[C].split(i, factor=threads_y * rows)": "i, block_i = schedule[C]"
        ".split(i, nparts=threads_y * rows)"
    },
    message="rows and 0 columns of C from one blockIdx.y to the next",
)
edited(
    "register_tile_classic",
    "classic_tile_of_eight_rows",
    {
        "(i, factor=threads_y * rows)": "(i, factor=threads_y * min(rows, 8))",
        "(i, factor=rows)": "(i, factor=min(rows, 8))",
    },
    message="rows and 0 columns of C from one blockIdx.y",
)
edited(
    "register_tile_classic",
    "classic_eight_steps",
    {"factor=step)": "factor=min(step, 8))"},
    message="the factors of the splits of C",
)
edited(
    "register_tile_classic",
    "classic_returns_k_inner",
    {"return schedule, local, k_outer": "return schedule, local, k_inner"},
    message="k_outer returned last",
)
edited(
    "register_tile_classic",
    "classic_returns_the_schedule_alone",
    {"return schedule, local, k_outer": "return schedule"},
    message="the return statement",
)
edited(
    "register_tile_classic",
    "classic_sum_in_shared_memory",
    {'cache_write(C, "local")': 'cache_write(C, "shared")'},
    message='scope "local": registers',
)
edited(
    "register_tile_classic",
    "classic_tile_with_rows_on_x",
    {
        'bind(thread_i, te.thread_axis("threadIdx.y"))': "bind(thread_i, "
        'te.thread_axis("threadIdx.x"))',
        'bind(thread_j, te.thread_axis("threadIdx.x"))': "bind(thread_j, "
        'te.thread_axis("threadIdx.y"))',
    },
    message="of C from one threadIdx",
)


edited(
    "stage_shared_classic",
    "classic_fetches_alone",
    {
        '    schedule[copy].bind(thread_y, te.thread_axis("threadIdx.y"))\n': "",
        '    schedule[copy].bind(thread_x, te.thread_axis("threadIdx.x"))\n': "",
    },
    message="every thread fetches the whole tile",
)
edited(
    "stage_shared_classic",
    "classic_rows_fetch_the_same",
    {'    schedule[copy].bind(thread_y, te.thread_axis("threadIdx.y"))\n': ""},
    message="some threads fetch the same",
)
edited(
    "stage_shared_classic",
    "classic_stages_in_registers",
    {'cache_read(tensor, "shared", [reader])': 'cache_read(tensor, "local", [reader])'},
    message='a buffer of scope "shared"',
)
edited(
    "stage_shared_classic",
    "classic_copies_the_whole_matrix",
    {"    schedule[copy].compute_at(schedule[reader], k_outer)\n": ""},
    message="is written inside k_outer",
)
edited(
    "stage_shared_classic",
    "classic_a_run_of_the_tile_each",
    {
        "tile, thread_x = schedule[copy].split(tile, factor=threads_x)": "thread_x, tile = "
        "schedule[copy].split(tile, nparts=threads_x)"
    },
    message="fuse of both axes, and the factors of the splits",
)
edited(
    "stage_shared_classic",
    "classic_rows_of_threads_first",
    {
        "tile, thread_x = schedule[copy].split(tile, factor=threads_x)\n": "tile, thread_y = "
        "schedule[copy].split(tile, factor=threads_y)\n",
        "    tile, thread_y = schedule[copy].split(tile, factor=threads_y)\n    s": "    tile, "
        "thread_x = schedule[copy].split(tile, factor=threads_x)\n    s",
    },
    message="threads_x of the fused axis first",
)
edited(
    "stage_shared_classic",
    "classic_rows_of_32_threads",
    {"factor=threads_x)": "factor=32)"},
    message="expected: +the loops",
)
edited(
    "stage_shared_classic",
    "classic_returns_the_matrix",
    {"    return copy": "    return tensor"},
    message="the return statement",
)
edited(
    "stage_shared_classic",
    "classic_returns_no_tensor",
    {"    return copy": ""},
    message="seen: +a NoneType",
)
edited(
    "stage_shared_classic",
    "classic_copies_the_first_input",
    {"cache_read(tensor,": "cache_read(reader.op.input_tensors[0],"},
    message="the tensor that copies",
)
edited(
    "stage_shared_classic",
    "classic_finds_k_outer_by_its_place",
    {
        "compute_at(schedule[reader], k_outer)": "compute_at(\n        schedule[reader],\n"
        "        [each for each in schedule[reader].leaf_iter_vars "
        'if str(each.var.name)[0] in "kr"][0],\n    )'
    },
    message="the axis that was given|is written inside k_outer",
)


edited(
    "tensor_core_template",
    "always_tensor_cores",
    {'if not cfg["use_tensorcore"].val:': "if not divides:"},
    message=r"no tvm_load_matrix_sync with use_tensorcore = 0",
)
edited(
    "tensor_core_template",
    "never_tensor_cores",
    {'if not cfg["use_tensorcore"].val:': 'if cfg["use_tensorcore"].val >= 0:'},
    message=r"2 tvm_load_matrix_sync with use_tensorcore = 1",
)
edited(
    "tensor_core_template",
    "a_choice_for_every_size",
    {"[0, 1] if divides else [0]": "[0, 1]"},
    message="each of m, n and k has to be a multiple of 16|tensor_core_template to run",
)
edited(
    "tensor_core_template",
    "steps_need_not_divide",
    {"m % 16 == n % 16 == k % 16 == 0": "m % 16 == n % 16 == 0"},
    message="each of m, n and k has to be a multiple of 16|tensor_core_template to run",
)
edited(
    "tensor_core_template",
    "divisible_by_eight",
    {"m % 16 == n % 16 == k % 16 == 0": "m % 8 == n % 8 == k % 8 == 0"},
    message="each of m, n and k has to be a multiple of 16|tensor_core_template to run",
)
edited(
    "tensor_core_template",
    "no_knob_at_all",
    {
        '    cfg.define_knob("use_tensorcore", [0, 1] if divides else [0])\n': "",
        'cfg["use_tensorcore"].val': "divides",
    },
    message='a knob "use_tensorcore"',
)
edited(
    "tensor_core_template",
    "a_knob_of_another_name",
    {
        'define_knob("use_tensorcore"': 'define_knob("tensorcore"',
        'cfg["use_tensorcore"]': 'cfg["tensorcore"]',
    },
    message='a knob "use_tensorcore"',
)
edited(
    "tensor_core_template",
    "multiplies_in_halves",
    {
        'A[i, r].astype("float32") * B[r, j].astype("float32")': "(A[i, r] * B[r, j])"
        '.astype("float32")'
    },
    message="the casts to float32|that TVM can replace",
)


edited(
    "tensor_core_template",
    "multiplies_plain_ones_in_halves",
    {
        'A[i, r].astype("float32") * B[r, j].astype("float32")': "factors(A[i, r], B[r, j])",
        "    C = te.compute(\n": """    cfg = autotvm.get_config()
    divides = m % 16 == n % 16 == k % 16 == 0
    cfg.define_knob("use_tensorcore", [0, 1] if divides else [0])

    def factors(a, b):
        if cfg["use_tensorcore"].val:
            return a.astype("float32") * b.astype("float32")
        return (a * b).astype("float32")

    C = te.compute(
""",
        """        name="C",
    )
    cfg = autotvm.get_config()
    divides = m % 16 == n % 16 == k % 16 == 0
    cfg.define_knob("use_tensorcore", [0, 1] if divides else [0])
""": """        name="C",
    )
""",
    },
    message="products of float32 with use_tensorcore = 0",
)
edited(
    "tensor_core_template",
    "forgets_to_store",
    {
        "        schedule[stage].tensorize(": '        if name != "store":\n'
        "            schedule[stage].tensorize("
    },
    message="1 tvm_store_matrix_sync with use_tensorcore = 1",
)
edited(
    "tensor_core_template",
    "inputs_of_float32",
    {'te.placeholder((m, k), "float16", name="A")': 'te.placeholder((m, k), "float32", name="A")'},
    message="float16|tensor_core_template to run",
)
edited(
    "tensor_core_template",
    "plain_loops_of_another_block",
    {"bind_threads_classic([A, B, C], 8, 32)": "bind_threads_classic([A, B, C], 16, 16)"},
    message=r"bind_threads_classic\(\[A, B, C\], 8, 32\)",
)
edited(
    "tensor_core_template",
    "returns_c_alone",
    {"return schedule, [A, B, C]": "return schedule, [C]"},
    message="the tensors",
)


right_edited(
    "register_tile_gpu",
    "unrolls_the_copy_of_a",
    {
        "schedule.unroll(i_inner)": (
            "if rows > 1:  # else compute_at has dropped the copy's loop\n"
            "        schedule.unroll(schedule.get_loops(a_registers)[-1])\n"
            "    schedule.unroll(i_inner)"
        )
    },
)
right_edited(
    "register_tile_gpu",
    "unrolls_the_rows_of_the_write_back",
    {
        "schedule.reverse_compute_at(write_back, thread_j)": (
            "schedule.reverse_compute_at(write_back, thread_j, preserve_unit_loops=True)\n"
            "    schedule.unroll(schedule.get_loops(write_back)[-2])"
        )
    },
)
right_edited(
    "register_tile_classic",
    "classic_vectorizes_the_write_back",
    {
        "    schedule[local].compute_at(": "    schedule[C].vectorize(j)\n"
        "    schedule[local].compute_at("
    },
)


@right("stage_shared_classic")
def classic_splits_from_the_outside(schedule, tensor, reader, k_outer, threads_y, threads_x):
    from tvm import te

    copy = schedule.cache_read(tensor, "shared", [reader.op])
    stage = schedule[copy]
    stage.compute_at(schedule[reader], k_outer)
    _, threads = stage.split(stage.fuse(*stage.op.axis), factor=threads_y * threads_x)
    y, x = stage.split(threads, nparts=threads_y)
    stage.bind(y, te.thread_axis((0, threads_y), "threadIdx.y"))
    stage.bind(x, te.thread_axis((0, threads_x), "threadIdx.x"))
    return copy


@right("stage_shared_classic")
def binds_to_the_axes_of_the_reader_s_threads(
    schedule, tensor, reader, k_outer, threads_y, threads_x
):
    threads = {}
    for stage in schedule.stages:
        for how in stage.iter_var_attrs.values():
            if how.bind_thread is not None:
                threads[str(how.bind_thread.thread_tag)] = how.bind_thread
    copy = schedule.cache_read(tensor, "shared", [reader])
    stage = schedule[copy]
    stage.compute_at(schedule[reader], k_outer)
    rest, x = stage.split(stage.fuse(*copy.op.axis), factor=threads_x)
    _, y = stage.split(rest, factor=threads_y)
    stage.bind(y, threads["threadIdx.y"])
    stage.bind(x, threads["threadIdx.x"])
    return copy


edited(
    "stage_shared_classic",
    "exchanges_the_axes_of_the_reader_s_threads",
    {
        'stage.bind(y, threads["threadIdx.y"])': 'stage.bind(x, threads["threadIdx.y"])',
        'stage.bind(x, threads["threadIdx.x"])': 'stage.bind(y, threads["threadIdx.x"])',
    },
    of="binds_to_the_axes_of_the_reader_s_threads",
    message="the loops (serial.*)?threadIdx.y",
)
right_edited(
    "register_tile_classic",
    "names_its_thread_axes",
    {
        'te.thread_axis("threadIdx.y")': 'te.thread_axis("threadIdx.y", name="row")',
        'te.thread_axis("threadIdx.x")': 'te.thread_axis("threadIdx.x", name="column")',
    },
)
edited(
    "register_tile_classic",
    "computed_at_an_axis_that_is_only_named_so",
    {
        'te.thread_axis("threadIdx.y")': 'te.thread_axis("threadIdx.y", name="threadIdx.x")',
        "compute_at(schedule[C], thread_j)": "compute_at(schedule[C], thread_i)",
    },
    message="computed at the axis on threadIdx.x",
)
right_edited(
    "bind_threads_classic",
    "names_its_thread_axes_of_elements",
    {
        'te.thread_axis("threadIdx.y")': 'te.thread_axis("threadIdx.y", name="row")',
        'te.thread_axis("threadIdx.x")': 'te.thread_axis("threadIdx.x", name="column")',
    },
)
right_edited(
    "tensor_core_template",
    "tensorizes_by_keyword",
    {"instructions[name])": "tensor_intrin=instructions[name])"},
)


@right("tensor_core_template")
def plain_loops_written_out(m, n, k):
    from tvm import autotvm, te

    from tvm_practice.labs.classic_fragments import fragment_stages, wmma_instructions

    left = te.placeholder((m, k), "float16")
    right = te.placeholder((k, n), "float16")
    r = te.reduce_axis((0, k))
    out = te.compute(
        (m, n),
        lambda i, j: te.sum(left[i, r].astype("float32") * right[r, j].astype("float32"), axis=r),
    )
    config = autotvm.get_config()
    config.define_knob("use_tensorcore", [1, 0] if not (m % 16 or n % 16 or k % 16) else [0])
    schedule = te.create_schedule(out.op)
    if config["use_tensorcore"].val == 1:
        for name, (stage, axis) in fragment_stages(schedule, [left, right, out]).items():
            schedule[stage].tensorize(axis, wmma_instructions()[name])
        return schedule, [left, right, out]
    stage = schedule[out]
    block_i, thread_i = stage.split(out.op.axis[0], factor=8)
    block_j, thread_j = stage.split(out.op.axis[1], factor=32)
    stage.reorder(block_i, block_j, thread_i, thread_j, r)
    for axis, name in (
        (block_i, "blockIdx.y"), (block_j, "blockIdx.x"),
        (thread_i, "threadIdx.y"), (thread_j, "threadIdx.x"),
    ):  # fmt: skip
        stage.bind(axis, te.thread_axis(name))
    return schedule, (left, right, out)


edited(
    "register_tile_classic",
    "classic_copies_column_by_column",
    {
        "reorder(block_i, block_j, thread_i, thread_j, i, j)": "reorder("
        "block_i, block_j, thread_i, thread_j, j, i)"
    },
    message="rows, then .* columns",
)
edited(
    "stage_shared_classic",
    "classic_a_copy_for_all_readers",
    {
        'cache_read(tensor, "shared", [reader])': 'cache_read(\n        tensor, "shared", '
        "[each.origin_op for each in schedule.stages if tensor in each.op.input_tensors]\n    )"
    },
    message="for the stage of `reader` alone",
)
edited(
    "tensor_core_template",
    "none_for_many_rows",
    {"divides = m % 16 ==": "divides = m <= 128 and m % 16 =="},
    message="the values 0 and 1 for",
)
edited(
    "tensor_core_template",
    "one_remainder_for_all",
    {"n % 16 == k % 16 == 0": "n % 16 == k % 16"},
    message="a multiple of 16|tensor_core_template to run",
)
edited(
    "tensor_core_template",
    "a_knob_besides",
    {"    cfg.define_knob(": '    cfg.define_knob("steps", [1, 2])\n    cfg.define_knob('},
    message='"use_tensorcore" as the only knob',
)
edited(
    "register_tile_classic",
    "classic_copies_twice",
    {
        "    i, j = C.op.axis\n": '    again = schedule.cache_read(local, "local", [C])\n'
        "    i, j = C.op.axis\n",
        "    schedule[local].compute_at(": "    schedule[again].compute_at(schedule[C], thread_j)\n"
        "    schedule[local].compute_at(",
    },
    message="two stages",
)
edited(
    "stage_shared_classic",
    "classic_eight_threads_exchanged",
    {"factor=threads_y)": "factor=threads_x if threads_y == 8 else threads_y)"},
    message="the factors of the splits",
)
edited(
    "tensor_core_template",
    "the_sum_divides",
    {"m % 16 == n % 16 == k % 16 == 0": "m % 16 == (m + n + k) % 16 == 0"},
    message="a multiple of 16|tensor_core_template to run",
)
edited(
    "tensor_core_template",
    "eight_of_each",
    {"n % 16 == k % 16 == 0": "n % 16 == k % 16 == 0 or m == n == k == 8"},
    message="a multiple of 16|tensor_core_template to run",
)
edited(
    "register_tile_classic",
    "classic_keeps_a_schedule",
    {
        "    C = tensors[-1]\n": "    kept = register_tile_classic.__dict__\n"
        "    key = str((tensors[-1].shape, threads_y, threads_x, rows, columns, step))\n"
        "    if key in kept:\n        return kept[key]\n    C = tensors[-1]\n",
        "    return schedule, local, k_outer": "    kept[key] = schedule, local, k_outer\n"
        "    return kept[key]",
    },
    message="a schedule of the tensors that were given",
)
edited(
    "register_tile_classic",
    "classic_no_eight_steps",
    {"factor=step)": "factor=step if step != 8 else 4)"},
    message="the factors of the splits of C",
)
edited(
    "register_tile_classic",
    "classic_no_tile_of_eight_by_eight",
    {"split(i, factor=rows)": "split(i, factor=rows if rows != 8 or columns != 8 else 4)"},
    message="rows and .* columns of C from one",
)
edited(
    "stage_shared_classic",
    "classic_shares_what_is_scaled",
    {'"shared", [': '"shared" if str(tensor.op.name) in ("A", "B", "scale") else "local", ['},
    message='a buffer of scope "shared"',
)


edited(
    "pad_shared",
    "offsets_below_16",
    {"offset=offset": "offset=offset % 16"},
    message="padded to the next multiple of 32 plus offset",
)
edited(
    "fragment_loops",
    "leaves_a_single_fragment",
    {
        "    row_tiles, rows = schedule.split": (
            "    if int(schedule.get(rows).extent) == int(schedule.get(columns).extent) == 16:\n"
            "        return rows\n"
            "    row_tiles, rows = schedule.split"
        )
    },
    message="1 row tiles, 1 column tiles",
)


edited(
    "register_tile_gpu",
    "copies_a_in_lanes_of_even_rows",
    {
        "schedule.unroll(j_inner)": (
            "schedule.unroll(j_inner)\n"
            "    if rows in (2, 4):\n"
            "        schedule.vectorize(schedule.get_loops(a_registers)[-1])"
        )
    },
    message="the loops of A's copy serial",
)


edited(
    "register_tile_gpu",
    "copies_a_at_k_outer_for_single_steps",
    {
        "schedule.compute_at(a_registers, k_inner)": (
            "schedule.compute_at(a_registers, k_outer if step == 1 else k_inner)"
        )
    },
    message="A is copied to registers at each k_inner",
)


edited(
    "tensorize_product",
    "zeroes_elsewhere_for_a_single_step",
    {
        "zero = schedule.decompose_reduction(product, k_outer)": (
            "zero = schedule.decompose_reduction(product, k_outer if "
            "int(schedule.get(k_outer).extent) > 1 else "
            "schedule.get_loops(product)[-1])"
        )
    },
    message="decompose_reduction",
)


edited(
    "bind_threads_classic",
    "splits_columns_in_parts",
    {"split(j, factor=threads_x)": "split(j, nparts=-(-int(C.shape[1]) // threads_x))"},
    message="the loops blockIdx.y",
)


edited(
    "bind_threads_classic",
    "unrolls_k_of_a_single_row",
    {
        "return schedule": (
            "if int(C.shape[0]) == 1:\n        schedule[C].unroll(k)\n    return schedule"
        )
    },
    message="the loops blockIdx.y",
)


edited(
    "register_tile_classic",
    "returns_k_inner_of_single_steps",
    {"return schedule, local, k_outer": "return schedule, local, k_outer if step > 1 else k_inner"},
    message="k_outer returned last",
)


edited(
    "tensor_core_template",
    "as_many_threads_as_rows",
    {"bind_threads_classic([A, B, C], 8, 32)": "bind_threads_classic([A, B, C], min(8, m), 32)"},
    message="bind_threads_classic\\(\\[A, B, C\\], 8, 32\\)",
)


edited(
    "stage_shared",
    "pads_the_third_input",
    {
        "schedule.compute_at(copy, k_outer)": (
            "schedule.compute_at(copy, k_outer, preserve_unit_loops=False)\n"
            "    if index > 1:\n"
            "        schedule.storage_align(copy, 0, axis=-2, factor=32, "
            "offset=8)"
        )
    },
    message="of them padded",
)


edited(
    "stage_shared",
    "annotates_the_rounds",
    {
        "schedule.vectorize(vector)": (
            "schedule.vectorize(vector)\n    schedule.annotate(_, 'pragma_unroll_explicit', 1)"
        )
    },
    message="without annotations",
)


edited(
    "stage_shared_classic",
    "pads_the_copy",
    {
        "tile = schedule[copy].fuse": (
            "schedule[copy].storage_align(copy.op.axis[0], 32, 4)\n    tile = schedule[copy].fuse"
        )
    },
    message="storage_align",
)


edited(
    "stage_shared_classic",
    "doubles_the_buffer",
    {"return copy": ("schedule[copy].double_buffer()\n    return copy")},
    message="double_buffer",
)


edited(
    "register_tile_classic",
    "a_pragma_on_k",
    {
        "schedule[local].unroll(j)": (
            "schedule[local].unroll(j)\n"
            "    schedule[local].pragma(k_outer, 'auto_unroll_max_step', 8)"
        )
    },
    message="pragma .?auto_unroll",
)


edited(
    "tensorize_product",
    "takes_the_first_of_two_names",
    {
        'intrinsics["init"]': (
            'intrinsics.get("zero", list(intrinsics.values())[0] if '
            'len(intrinsics) == 2 else intrinsics["init"])'
        )
    },
    message="doesn't match the tensor intrin",
)


edited(
    "bind_threads",
    "many_rows_along_x",
    {
        ('schedule.bind(block_i, "blockIdx.y")\n    schedule.bind(block_j, "blockIdx.x")'): (
            "tall = int(schedule.get(block_i).extent) > 65535\n"
            '    schedule.bind(block_i, "blockIdx.x" if tall else '
            '"blockIdx.y")\n'
            '    schedule.bind(block_j, "blockIdx.y" if tall else "blockIdx.x")'
        )
    },
    message="blockIdx.y\\(75001\\)",
)


edited(
    "register_tile_gpu",
    "many_threads_write_by_rows",
    {
        "schedule.reverse_compute_at(write_back, thread_j)": (
            "schedule.reverse_compute_at(write_back, thread_j if threads_x * "
            "threads_y < 512 else thread_i)"
        )
    },
    message="written once per thread",
)


edited(
    "stage_shared",
    "many_rounds_unrolled",
    {
        "_, thread_y, thread_x, vector =": "rounds, thread_y, thread_x, vector =",
        "    return copy": (
            "    if int(schedule.get(rounds).extent) > 8:\n"
            "        schedule.unroll(rounds)\n"
            "    return copy"
        ),
    },
    message="the copy's loops serial\\(64\\)",
)


edited(
    "fragment_loops",
    "many_tiles_unrolled",
    {
        "return rows": (
            "if int(schedule.get(row_tiles).extent) > 2:\n"
            "        schedule.unroll(row_tiles)\n"
            "    return rows"
        )
    },
    message="all serial",
)


edited(
    "bind_threads_classic",
    "wide_products_unrolled",
    {
        "schedule[C].reorder(block_i, block_j, thread_i, thread_j, k)": (
            "schedule[C].reorder(block_i, block_j, thread_i, thread_j, k)\n"
            "    if int(C.shape[1]) > 2048:\n"
            "        schedule[C].unroll(k)"
        )
    },
    message="serial\\(7\\)",
)


edited(
    "tensor_core_template",
    "divides_the_product_of_sizes",
    {"m % 16 == n % 16 == k % 16 == 0": "m * n * k % 4096 == 0"},
    message="the values 0 for",
)


edited(
    "register_tile_classic",
    "square_tile_by_columns",
    {
        (
            "    k_outer, k_inner = "
            "schedule[local].split(local.op.reduce_axis[0], factor=step)\n"
            "    schedule[local].reorder(k_outer, k_inner, i, j)"
        ): (
            "    k_outer, k_inner = "
            "schedule[local].split(local.op.reduce_axis[0], factor=step)\n"
            "    schedule[local].reorder(k_outer, k_inner, *([j, i] if rows == "
            "columns else [i, j]))"
        )
    },
    message="rows of the tile outside",
)


edited(
    "stage_shared",
    "first_or_last_input",
    {
        "schedule.cache_read(block, index": (
            "schedule.cache_read(block, 0 if index == 0 else len(schedule.get(block).reads) - 1"
        )
    },
    message="B is copied",
)


edited(
    "stage_shared",
    "column_of_threads_unbound",
    {
        '    schedule.bind(thread_y, "threadIdx.y")\n': (
            "    if threads_x == 1:\n"
            "        schedule.unroll(thread_y)\n"
            "    else:\n"
            '        schedule.bind(thread_y, "threadIdx.y")\n'
        )
    },
    message="threadIdx",
)


edited(
    "stage_shared",
    "returns_the_first_producer",
    {"    return copy": "    return schedule.get_producers(block)[0]"},
    message="block of the copy",
)


edited(
    "tensor_cores",
    "annotated_product",
    {
        "    tensorize_copies(schedule, load_a, load_b, store, intrinsics)": (
            "    tensorize_copies(schedule, load_a, load_b, store, "
            "{**intrinsics, 'store': intrinsics['store']})\n"
            "    schedule.annotate(product, 'tensorized', 1)"
        )
    },
    message="the product and its loops as they were",
)


edited(
    "tensorize_copies",
    "one_name_for_alike_ones",
    {
        '(load_b, "load_b")': (
            '(load_b, "load_a" if intrinsics["load_a"][-6:] == '
            'intrinsics["load_b"][-6:] else "load_b")'
        )
    },
    message="doesn't match the tensor intrin",
)


edited(
    "register_tile_classic",
    "single_row_at_its_own_loop",
    {
        "schedule[local].compute_at(schedule[C], thread_j)": (
            "schedule[local].compute_at(schedule[C], i if rows == 1 else thread_j)"
        )
    },
    message="at the axis on threadIdx.x",
)


edited(
    "register_tile_gpu",
    "steps_of_k_apart",
    {
        "k_outer, k_inner = schedule.split(k, [None, step])": (
            "k_inner, k_outer = schedule.split(k, [step, None])"
        ),
    },
    message="loops that step along",
)


edited(
    "tensor_core_template",
    "eights_of_k",
    {
        "m % 16 == n % 16 == k % 16 == 0": "m % 16 == n % 16 == 0 and k >= 16 and k % 8 == 0",
    },
    message="has to be a multiple of 16",
)


edited(
    "stage_shared_classic",
    "local_for_two_rows",
    {
        'schedule.cache_read(tensor, "shared", [reader])': (
            'schedule.cache_read(tensor, "shared" if int(tensor.shape[0]) > 2 else '
            '"local", [reader])'
        ),
    },
    message="to a buffer of scope",
)


edited(
    "bind_threads",
    "asks_the_compiler_to_unroll",
    {
        '    schedule.bind(thread_j, "threadIdx.x")': (
            '    schedule.bind(thread_j, "threadIdx.x")\n'
            '    schedule.annotate(k, "pragma_auto_unroll_max_step", 16)'
        )
    },
    message="without annotations",
)

edited(
    "stage_shared",
    "tall_tiles_by_columns",
    {
        "tile = schedule.fuse(*schedule.get_loops(copy)[-2:])": "rows, columns = "
        "schedule.get_loops(copy)[-2:]\n    tall = int(schedule.get(rows).extent) > 64\n"
        "    if tall:\n        schedule.reorder(columns, rows)\n"
        "    tile = schedule.fuse(*((columns, rows) if tall else (rows, columns)))"
    },
    message="neighbours at each step|adjacent",
)

edited(
    "pad_shared",
    "marked_as_padded",
    {
        "    schedule.storage_align(copy, 0": '    schedule.annotate(copy, "padded", offset)\n'
        "    schedule.storage_align(copy, 0"
    },
    message="annotated as storage_align does it",
)

edited(
    "tensor_cores",
    "leaves_the_store_whose_name_says_shared",
    {
        "    tensorize_copies(schedule, load_a, load_b, store, intrinsics)": (
            "    for block, name in ((load_a, 'load_a'), (load_b, 'load_b'), (store, 'store')):\n"
            "        loop = fragment_loops(schedule, block)\n"
            "        if name != 'store' or 'shared' not in intrinsics[name]:\n"
            "            schedule.tensorize(loop, intrinsics[name])"
        )
    },
    message="tvm_store_matrix_sync",
)

edited(
    "stage_shared",
    "tall_tiles_of_single_elements_by_columns",
    {
        "    tile = schedule.fuse(": "    rows, columns = schedule.get_loops(copy)[-2:]\n"
        "    high, wide = (int(schedule.get(each).extent) for each in (rows, columns))\n"
        "    if lanes == 1 and high > 4 * wide:\n"
        "        schedule.reorder(columns, rows)\n"
        "    tile = schedule.fuse("
    },
    message="row after row of the tile",
)

edited(
    "register_tile_gpu",
    "marks_the_write_back_of_one_step",
    {
        "    schedule.reverse_compute_at(write_back, thread_j)": (
            "    schedule.reverse_compute_at(write_back, thread_j)\n"
            "    if int(schedule.get(k_outer).extent) == 1:\n"
            '        schedule.annotate(write_back, "hint", 1)'
        )
    },
    message="without annotations",
)

edited(
    "tensorize_product",
    "at_the_first_loop_of_that_extent",
    {
        "decompose_reduction(product, k_outer)": "decompose_reduction(\n"
        "        product,\n"
        "        next(\n"
        "            loop\n"
        "            for loop in schedule.get_loops(product)\n"
        "            if schedule.get(loop).extent == schedule.get(k_outer).extent\n"
        "            and schedule.get(loop).kind == schedule.get(k_outer).kind\n"
        "        ),\n"
        "    )"
    },
    message="set to zero once, before k_outer",
)

edited(
    "tensor_core_template",
    "plain_loops_for_large_sizes",
    {"[0, 1] if divides": "[0, 1] if divides and m * n * k < 1 << 27"},
    message="the values 0 and 1",
)
