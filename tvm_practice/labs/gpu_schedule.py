"""Lab 1: GPU schedules.

On a GPU thousands of threads run the same kernel. The threads of a *thread block* run on one of the
GPU's *multiprocessors*, share a small fast memory there, its *shared memory*, and can wait for each
other. They run in *warps* of 32: unless a branch separates them, the 32 threads execute each
instruction together. A read is then one memory request for all 32, which memory answers in
*sectors* of 32 bytes. A schedule maps loops to these levels:

    bind(loop, "blockIdx.x")        an iteration is a thread block (also .y and .z)
    bind(loop, "threadIdx.x")       an iteration is a thread; neighbours in x are in the same warp
    cache_read(block, 0, "shared")  copies the block's first input to shared memory and returns
                                    the copying block
    cache_read(block, 0, "local")   likewise to registers, which belong to one thread
    compute_at(copy, loop)          moves the copy into this loop, where it copies only the elements
                                    needed: by one thread if its scope is "local", by the whole
                                    thread block if it is "shared"
    storage_align(copy, 0, axis, factor, offset)
                                    pads the copy's first output buffer: the distance of neighbours
                                    along `axis` becomes a multiple of `factor` elements plus
                                    `offset`
    tensorize(loop, intrinsic)      replaces the loops from this one inwards by one instruction; the
                                    intrinsic, a name, says which, and which loops it can replace
    get_child_blocks(block)         the blocks directly inside a block, in a list

To *stage* a tile is to copy it to shared memory before it is used. All threads share this work: the
copy's loops are bound to the same threads as the product's, and TVM inserts barriers where threads
must wait for each other.

Classic TVM schedules stages, each of which computes one tensor:

    schedule[C].bind(axis, te.thread_axis("threadIdx.x"))
    schedule.cache_read(A, "shared", [reader])
                                    adds a stage that copies A for the stage of `reader`; returns
                                    its tensor
    schedule.cache_write(C, "local")
                                    adds a stage that computes C in registers; returns its tensor,
                                    whose op has the sum's axes. C's own stage then copies from it.
                                    Call it before you split the loops of C
    schedule[copy].compute_at(schedule[reader], axis)
    schedule[tensor].tensorize(axis, intrinsic)

No GPU is needed. TVM generates CUDA source without one; the lab counts a kernel's memory requests
from its IR (tvm_practice.labs.gpu) and computes its values on the CPU, thread by thread. With a
GPU the same run also verifies all kernels and times them against cuBLAS.

*Tensor cores* are units that multiply *fragments*: tiles of 16 x 16 elements that a warp holds in
registers. `warp_tiles` in tvm_practice/labs/gpu/wmma.py has the tiling for them. Its `blockize`
makes the loops of one product of fragments a block with a block inside.

The worked examples are in tvm_practice/labs/gpu/worked.py: a transposition through shared memory
(`transposed`), and double buffering. Write the functions below, then run

    python -m tvm_practice.labs.gpu_schedule
    pytest -m lab1
"""

from typing import Any

from tvm_practice.course.phase import phase_command


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
    raise NotImplementedError("split i and j, reorder, then schedule.bind four loops")


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
    raise NotImplementedError("cache_read, compute_at, fuse, split, bind twice, vectorize")


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
    raise NotImplementedError(
        "split i, j, k; reorder; bind; cache_write; cache_read of both; vectorize; unroll"
    )


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
    raise NotImplementedError("schedule.storage_align of the buffer's rows")


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
    raise NotImplementedError("split both loops by 16, then schedule.reorder")


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
    raise NotImplementedError(
        "schedule.tensorize from the loop of fragment_loops inwards, three times"
    )


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
    raise NotImplementedError("decompose_reduction, get_child_blocks and tensorize, twice")


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
    raise NotImplementedError("decompose_reduction, then schedule.tensorize five times")


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
    raise NotImplementedError("te.create_schedule, split, reorder, then four times bind")


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
    raise NotImplementedError("cache_write, split, reorder, bind, compute_at, unroll")


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
    raise NotImplementedError("cache_read, compute_at, fuse, split twice, bind twice")


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
    raise NotImplementedError("declare the matmul, define the knob, and tensorize or bind by it")


main = phase_command("labs.gpu_schedule", "Lab 1: GPU schedules, from threads to tensor cores.")

if __name__ == "__main__":
    main()
