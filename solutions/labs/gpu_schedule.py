"""Reference answers of lab 1."""

from typing import Any


def bind_threads(schedule: Any, block: Any, threads_y: int, threads_x: int) -> None:
    """Give each element of C a thread: split the rows and the columns, reorder, bind.

    The block's three loops are i (rows), j (columns) and k (the sum). Afterwards they are,
    outermost first: row tiles on blockIdx.y, column tiles on blockIdx.x, threads_y rows on
    threadIdx.y, threads_x columns on threadIdx.x, and k. Threads adjacent in x then read adjacent
    elements of B and write adjacent elements of C, which lie in few sectors. The sizes need not
    divide; `split` guards the block.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block, its loops as declared.
        threads_y: rows of C per thread block.
        threads_x: columns of C per thread block.
    """
    i, j, k = schedule.get_loops(block)
    block_i, thread_i = schedule.split(i, [None, threads_y])
    block_j, thread_j = schedule.split(j, [None, threads_x])
    schedule.reorder(block_i, block_j, thread_i, thread_j, k)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(thread_j, "threadIdx.x")


def stage_shared(
    schedule: Any,
    block: Any,
    index: int,
    k_outer: Any,
    threads_y: int,
    threads_x: int,
    lanes: int,
) -> Any:
    """Stage a block's input in shared memory: all threads fetch the tile together.

    Copy the block's input number `index` to a "shared" buffer, inside k_outer: the tile that the
    whole thread block needs per step. Fuse the copy's last two loops, rows and columns of the
    tile, and split the fused loop: the outermost part serial, then threads_y iterations on
    threadIdx.y, threads_x on threadIdx.x, and `lanes` vectorized. In one step the threads of a
    warp then read adjacent pieces of `lanes` elements.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block that reads a matrix of two dimensions; its loops are bound.
        index: the matrix's position among the block's inputs.
        k_outer: the loop around the block that needs another tile at each step.
        threads_y: extent of a thread block along threadIdx.y.
        threads_x: extent of a thread block along threadIdx.x.
        lanes: elements that a thread fetches at once; a tile's rows are a multiple of it, and the
            tile is a multiple of threads_y * threads_x * lanes.

    Returns:
        The copying block.
    """
    copy = schedule.cache_read(block, index, "shared")
    schedule.compute_at(copy, k_outer)
    # With one fused loop, adjacent threads load adjacent addresses whatever the tile's width, and
    # no thread is idle.
    tile = schedule.fuse(*schedule.get_loops(copy)[-2:])
    _, thread_y, thread_x, vector = schedule.split(tile, [None, threads_y, threads_x, lanes])
    schedule.bind(thread_y, "threadIdx.y")
    schedule.bind(thread_x, "threadIdx.x")
    schedule.vectorize(vector)
    return copy


def register_tile_gpu(
    schedule: Any,
    block: Any,
    threads_y: int,
    threads_x: int,
    rows: int,
    columns: int,
    step: int,
) -> tuple[Any, Any, Any]:
    """Keep each thread's tile of C, and the operands it multiplies, in registers.

    The block's loops i, j, k become, outermost first: row tiles (blockIdx.y), column tiles
    (blockIdx.x), threads_y (threadIdx.y), threads_x (threadIdx.x), k_outer, k_inner of `step`
    iterations, and the thread's `rows` and `columns`, both unrolled. The block accumulates in a
    "local" buffer, written to C inside threadIdx.x when k_outer has ended.

    At each k_inner a thread's column of A and row of B are copied to "local" buffers before they
    are multiplied: each fetched float is used `columns` or `rows` times. The last loops of the
    write-back and of the copy of B are vectorized. Do not decompose the reduction: the caller does
    that last, after it has staged A and B.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block, its loops as declared.
        threads_y: extent of a thread block along threadIdx.y.
        threads_x: extent of a thread block along threadIdx.x.
        rows: adjacent rows of C per thread.
        columns: adjacent columns of C per thread: 2 or 4.
        step: iterations of k_inner. All sizes divide their loops.

    Returns:
        (k_outer, the block that copies A to registers, the block that copies B).
    """
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
    return k_outer, a_registers, b_registers


def pad_shared(schedule: Any, copy: Any, offset: int) -> None:
    """Pad the rows of a staged tile, so that its columns spread over the banks.

    Shared memory has 32 banks of 4 bytes. In a tile with 32 floats per row, all elements of a
    column are in one bank, so 32 threads that read a column wait for each other. Make the distance
    from row to row the least multiple of 32 elements plus `offset` that holds a row: if `offset` is
    odd, no thread waits. With vectors of 4 floats, `offset` is a multiple of 4: they stay aligned.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        copy: the block that writes the tile, a buffer of two dimensions.
        offset: elements past a multiple of 32, from one row of the buffer to the next.
    """
    schedule.storage_align(copy, 0, axis=-2, factor=32, offset=offset)


def fragment_loops(schedule: Any, block: Any) -> Any:
    """Make the loops of one fragment the innermost ones of a copy.

    Split the last two loops, rows and columns, by 16, and reorder them to row tiles, column
    tiles, 16 rows, 16 columns. Loops outside them stay as they are.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block that copies fragments; 16 divides both loops.

    Returns:
        The loop of 16 rows.
    """
    rows, columns = schedule.get_loops(block)[-2:]
    row_tiles, rows = schedule.split(rows, [None, 16])
    column_tiles, columns = schedule.split(columns, [None, 16])
    schedule.reorder(row_tiles, column_tiles, rows, columns)
    return rows


def tensorize_copies(
    schedule: Any, load_a: Any, load_b: Any, store: Any, intrinsics: dict[str, str]
) -> None:
    """Replace the copies of fragments by instructions, from the loop of `fragment_loops` inwards.

    Their last two loops, rows and columns, are not yet split: call `fragment_loops` on each block.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        load_a: the block that copies A to fragments.
        load_b: the block that copies B to fragments.
        store: the block that copies the sum to C.
        intrinsics: names for `tensorize` by purpose, here "load_a", "load_b" and "store".
    """
    for block, name in ((load_a, "load_a"), (load_b, "load_b"), (store, "store")):
        schedule.tensorize(fragment_loops(schedule, block), intrinsics[name])


def tensorize_product(
    schedule: Any, product: Any, k_outer: Any, intrinsics: dict[str, str]
) -> None:
    """Replace the product of fragments, and the zeroing before it, by instructions.

    The multiply instruction only accumulates, so decompose the reduction at k_outer first:
    schedule.decompose_reduction returns a new block, which sets the accumulators to zero. This
    block and `product` each contain another one (schedule.get_child_blocks). Tensorize those inner
    blocks: the zeroing from its loop of 16 rows, the product from the first of its three loops of
    16. These loops are the last ones of get_loops for the inner block.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        product: the block of one product of fragments, made by blockize.
        k_outer: the loop whose steps are staged.
        intrinsics: names for `tensorize` by purpose, here "init" and "compute".
    """
    zero = schedule.decompose_reduction(product, k_outer)
    [inside] = schedule.get_child_blocks(zero)
    schedule.tensorize(schedule.get_loops(inside)[-2], intrinsics["init"])
    [inside] = schedule.get_child_blocks(product)
    schedule.tensorize(schedule.get_loops(inside)[-3], intrinsics["compute"])


def tensor_cores(
    schedule: Any,
    product: Any,
    load_a: Any,
    load_b: Any,
    store: Any,
    k_outer: Any,
    intrinsics: dict[str, str],
) -> None:
    """Replace the loops of a tiled matmul by tensor-core instructions.

    Call the steps above, or write it in one piece.

    The loops are as `warp_tiles` leaves them, with A and B staged. Decompose the reduction at
    k_outer, which creates a block that sets the accumulators to zero. Then tensorize five blocks,
    each from the loops of one fragment inwards:

    - load_a, load_b and store: their last two loops are split by 16 first and reordered so that
      the 16 x 16 are innermost;
    - the block inside the zeroing block, and the block inside `product`: schedule.get_child_blocks
      gives the inner block, and its loops of 16 are the last ones of get_loops.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        product: the block of one product of fragments, made by blockize.
        load_a: the block that copies A to fragments.
        load_b: the block that copies B to fragments.
        store: the block that copies the sum to C.
        k_outer: the loop whose steps are staged.
        intrinsics: names for `tensorize` by purpose: "load_a", "load_b", "init", "compute",
            "store".
    """
    tensorize_product(schedule, product, k_outer, intrinsics)
    tensorize_copies(schedule, load_a, load_b, store, intrinsics)


def bind_threads_classic(
    tensors: list[Any], threads_y: int, threads_x: int
) -> Any:  # a tvm.te.Schedule
    """`bind_threads` in classic TVM's words.

    The loops of the stage of C become row tiles on blockIdx.y, column tiles on blockIdx.x,
    threads_y rows on threadIdx.y, threads_x columns on threadIdx.x, and inside them k. Bind an
    axis to the result of te.thread_axis("blockIdx.y") and the like.

    Args:
        tensors: [A, B, C] as `matmul` of phase 1 returns them.
        threads_y: rows of C per thread block.
        threads_x: columns of C per thread block.

    Returns:
        The tvm.te.Schedule of te.create_schedule.
    """
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
    return schedule


def register_tile_classic(
    tensors: list[Any], threads_y: int, threads_x: int, rows: int, columns: int, step: int
) -> tuple[Any, Any, Any]:  # (te.Schedule, te.Tensor, an axis)
    """Keep each thread's tile of C in registers, with `cache_write` of classic TVM.

    There are two stages: one adds up in a "local" buffer, and the stage of C copies from it. The
    loops of C become row tiles on blockIdx.y, column tiles on blockIdx.x, threads_y on threadIdx.y,
    threads_x on threadIdx.x, and inside them the thread's rows and columns, which are adjacent in
    C. The local stage is computed at the axis on threadIdx.x. Its loops are k_outer, k_inner of
    `step` iterations, and the tile's rows and columns, both unrolled.

    Args:
        tensors: [A, B, C] as `matmul` of phase 1 returns them.
        threads_y: extent of a thread block along threadIdx.y.
        threads_x: extent of a thread block along threadIdx.x.
        rows: adjacent rows of C per thread.
        columns: adjacent columns of C per thread.
        step: iterations of k_inner. All sizes divide their loops.

    Returns:
        (the schedule, the tensor of the local stage, the axis k_outer).
    """
    from tvm import te

    C = tensors[-1]
    schedule = te.create_schedule(C.op)
    local = schedule.cache_write(C, "local")
    i, j = C.op.axis
    block_i, i = schedule[C].split(i, factor=threads_y * rows)
    block_j, j = schedule[C].split(j, factor=threads_x * columns)
    thread_i, i = schedule[C].split(i, factor=rows)
    thread_j, j = schedule[C].split(j, factor=columns)
    schedule[C].reorder(block_i, block_j, thread_i, thread_j, i, j)
    schedule[C].bind(block_i, te.thread_axis("blockIdx.y"))
    schedule[C].bind(block_j, te.thread_axis("blockIdx.x"))
    schedule[C].bind(thread_i, te.thread_axis("threadIdx.y"))
    schedule[C].bind(thread_j, te.thread_axis("threadIdx.x"))
    schedule[local].compute_at(schedule[C], thread_j)
    i, j = local.op.axis
    k_outer, k_inner = schedule[local].split(local.op.reduce_axis[0], factor=step)
    schedule[local].reorder(k_outer, k_inner, i, j)
    schedule[local].unroll(i)
    schedule[local].unroll(j)
    return schedule, local, k_outer


def stage_shared_classic(
    schedule: Any, tensor: Any, reader: Any, k_outer: Any, threads_y: int, threads_x: int
) -> Any:  # a te.Tensor
    """`stage_shared` in classic TVM's words, one element per thread and step.

    Copy `tensor` to a "shared" buffer for the stage of `reader`, at its axis k_outer. Fuse both
    axes of the copy, and split the fused one: the outermost part serial, then threads_y iterations
    on threadIdx.y and threads_x on threadIdx.x. The threads of a warp then read adjacent elements.

    Args:
        schedule: a tvm.te.Schedule, changed in place.
        tensor: a matrix that the stage reads.
        reader: the tensor of that stage, such as the local one of register_tile_classic.
        k_outer: the axis of the stage that needs another tile at each step.
        threads_y: extent of a thread block along threadIdx.y.
        threads_x: extent along threadIdx.x; a tile is a multiple of threads_y * threads_x.

    Returns:
        The tensor of the copying stage.
    """
    from tvm import te

    copy = schedule.cache_read(tensor, "shared", [reader])
    schedule[copy].compute_at(schedule[reader], k_outer)
    tile = schedule[copy].fuse(*copy.op.axis)
    tile, thread_x = schedule[copy].split(tile, factor=threads_x)
    tile, thread_y = schedule[copy].split(tile, factor=threads_y)
    schedule[copy].bind(thread_y, te.thread_axis("threadIdx.y"))
    schedule[copy].bind(thread_x, te.thread_axis("threadIdx.x"))
    return copy


def tensor_core_template(m: int, n: int, k: int) -> tuple[Any, list[Any]]:  # (schedule, tensors)
    """AutoTVM: a template whose knob chooses tensor cores or plain loops.

    C[i, j] is the sum over k of A[i, k] * B[k, j]: A and B are float16, and `.astype("float32")`
    casts each factor to C's type before it is multiplied. The only knob of autotvm.get_config(),
    "use_tensorcore", has the values 0 and 1, or 0 alone if 16 does not divide all three sizes.

    With 0, the loops are those of `bind_threads_classic` with 8 x 32 threads. With 1, schedule
    with `fragment_stages` and `wmma_instructions` of tvm_practice.labs.classic_fragments: tensorize
    each stage of the former by the instruction of the same name in the latter.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.

    Returns:
        The te.Schedule and the tensors [A, B, C] of shapes (m, k), (k, n) and (m, n).
    """
    from tvm import autotvm, te

    from tvm_practice.labs.classic_fragments import fragment_stages, wmma_instructions

    A = te.placeholder((m, k), "float16", name="A")
    B = te.placeholder((k, n), "float16", name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute(
        (m, n),
        lambda i, j: te.sum(A[i, r].astype("float32") * B[r, j].astype("float32"), axis=r),
        name="C",
    )
    cfg = autotvm.get_config()
    divides = m % 16 == n % 16 == k % 16 == 0
    cfg.define_knob("use_tensorcore", [0, 1] if divides else [0])
    if not cfg["use_tensorcore"].val:
        return bind_threads_classic([A, B, C], 8, 32), [A, B, C]
    schedule = te.create_schedule(C.op)
    instructions = wmma_instructions()
    for name, (stage, axis) in fragment_stages(schedule, [A, B, C]).items():
        schedule[stage].tensorize(axis, instructions[name])
    return schedule, [A, B, C]
