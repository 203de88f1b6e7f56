"""Lab 1: GPU schedules.

On a GPU thousands of threads run the same kernel. They come in *blocks*; the threads of a block
share a small fast memory and can wait for each other. They run in *warps* of 32, in step: one
instruction of a warp is one request to memory for all 32. A schedule says which loop becomes which:

    bind(loop, "blockIdx.x")        an iteration is a block (also .y and .z)
    bind(loop, "threadIdx.x")       an iteration is a thread of its block; neighbours in x are in
                                    the same warp
    cache_read(block, 0, "shared")  what the block reads first is copied to shared memory before;
                                    a new block, which is returned, does it
    cache_read(block, 0, "local")   likewise to registers, which are a thread's own
    compute_at(copy, loop)          the copy is made inside this loop, of what is needed there
    storage_align(copy, 0, axis, factor, offset)
                                    in the buffer that the copy writes, two neighbours along `axis`
                                    lie `offset` more than a multiple of `factor` elements apart
    tensorize(loop, intrinsic)      the loops from this one inwards are one instruction

Copies to shared memory are shared work: loops of the copy are bound to the same threads as those
of the product, and TVM puts barriers where threads have to wait for each other. Classic TVM has
`bind` too: schedule[C].bind(axis, te.thread_axis("threadIdx.x")).

No GPU is needed. TVM writes the CUDA text without one; what a kernel asks of memory is counted
from its IR (tvm_practice.labs.gpu); its values are computed on the CPU, thread after thread. With a
GPU the same run verifies and times all kernels beside cuBLAS.

The worked examples are a transposition through shared memory, and double buffering. The tiling
that tensor cores need is worked too: `warp_tiles` in tvm_practice/labs/gpu/wmma.py. Write the
functions below them, then run

    python -m tvm_practice.labs.gpu_schedule
    pytest -m lab1
"""

from typing import Any

from tvm_practice.course.phase import phase_command


def transposed(n: int, *, staged: bool) -> tuple[Any, Any]:
    """Worked example: Y[i, j] = X[j, i] in tiles of 32 x 32, by 8 x 32 threads a block.

    Neighbours in threadIdx.x write neighbours of a row of Y, which are in a column of X: 32 rows,
    32 sectors of memory for one request. Staged, a tile of X is first copied to shared memory row
    by row; there a column costs nothing, if no two of its elements are in the same bank.

    Args:
        n: rows and columns, a multiple of 32.
        staged: whether the tile goes through shared memory.

    Returns:
        The schedule, and the block of the copy (None if there is none).
    """
    import tvm
    from tvm import te

    X = te.placeholder((n, n), name="X")
    Y = te.compute((n, n), lambda i, j: X[j, i], name="Y")
    function = te.create_prim_func([X, Y]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    block = schedule.get_sblock("Y")
    i, j = schedule.get_loops(block)
    block_i, step, thread_i = schedule.split(i, [None, 4, 8])
    block_j, thread_j = schedule.split(j, [None, 32])
    schedule.reorder(block_i, block_j, step, thread_i, thread_j)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(thread_j, "threadIdx.x")
    if not staged:
        return schedule, None
    copy = schedule.cache_read(block, 0, "shared")
    schedule.compute_at(copy, block_j)
    rows, columns = schedule.get_loops(copy)[-2:]
    _, thread_i = schedule.split(rows, [None, 8])
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(columns, "threadIdx.x")
    return schedule, copy


def double_buffer(schedule: Any, copies: list[Any], k_outer: Any) -> None:
    """Worked: fetch the next tile while this one is used, as a software pipeline.

    In k_outer stand, in this order, the copies of A and B and the product. Each copy goes by way
    of registers (the first annotation), which makes five statements of three. Those of stage 1
    work on the tile that stage 0 fetched one step before. The order says how they stand in the
    loop: first the next tile is loaded to registers, then this tile is multiplied, while the
    loads are under way, and then what was loaded goes to shared memory. The second buffer is the
    registers: shared memory is needed once.

    Args:
        copies: the two blocks of `stage_shared`.
        k_outer: the loop they are in; the reduction is decomposed at it.
    """
    for copy in copies:
        schedule.annotate(copy, "tirx.manifest_shared_memory_local_stage", 1)
    schedule.annotate(k_outer, "software_pipeline_stage", [0, 0, 0, 0, 1])
    schedule.annotate(k_outer, "software_pipeline_order", [0, 3, 1, 4, 2])


def bind_threads(schedule: Any, block: Any, threads_y: int, threads_x: int) -> None:
    """Give each element of C a thread: split the rows and the columns, reorder, bind.

    The block's three loops are i (rows), j (columns) and k (the sum). Afterwards they are,
    outermost first: row blocks on blockIdx.y, column blocks on blockIdx.x, threads_y rows on
    threadIdx.y, threads_x columns on threadIdx.x, and k. Threads that are neighbours in x then
    read neighbouring elements of B and write neighbouring ones of C, in few sectors. The sizes
    need not divide; `split` guards the block.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block, its loops as declared.
        threads_y: rows of C that a block of threads computes.
        threads_x: columns of C that it computes.
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
    """Stage what a block reads in shared memory: all threads fetch the tile together.

    Copy the block's input number `index` to a "shared" buffer, inside k_outer: the tile that the
    whole block of threads needs for one step of it. The copy's last two loops, rows and columns of
    the tile, become one, which is shared out: the outermost part serial, then threads_y iterations
    on threadIdx.y, threads_x on threadIdx.x, and `lanes` vectorized, so that in one step the
    threads of a warp read neighbouring pieces of `lanes` elements.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block that reads a matrix of two dimensions, its loops bound.
        index: of that matrix among what the block reads.
        k_outer: the loop, outside the block, whose steps each have a tile of their own.
        threads_y: of a block of threads.
        threads_x: of a block of threads.
        lanes: elements that a thread fetches at once; a tile's rows are a multiple of it, and the
            tile is a multiple of threads_y * threads_x * lanes.

    Returns:
        The block of the copy.
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
    """Give each thread a tile of C in registers, and what it multiplies too.

    The block's loops i, j, k become, outermost first: row blocks (blockIdx.y), column blocks
    (blockIdx.x), threads_y (threadIdx.y), threads_x (threadIdx.x), k_outer, k_inner of `step`
    iterations, and the thread's `rows` and `columns`, both unrolled. The block adds up in a
    "local" buffer, written to C inside threadIdx.x when k_outer has ended. At each k_inner a
    thread's column of A and row of B are copied to "local" buffers before they are multiplied: a
    float that is fetched is used `columns` or `rows` times. The last loops of the write-back and
    of the copy of B are vectorized. The reduction is not decomposed: that comes last, when A and B
    are staged.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block, its loops as declared.
        threads_y: of a block of threads.
        threads_x: of a block of threads.
        rows: of C a thread, neighbours.
        columns: of C a thread, neighbours: 2 or 4.
        step: iterations of k_inner. All sizes divide.

    Returns:
        (k_outer, the block that copies A to registers, the block that copies B).
    """
    raise NotImplementedError(
        "split i, j, k; reorder; bind; cache_write; cache_read of both; vectorize; unroll"
    )


def pad_shared(schedule: Any, copy: Any, offset: int) -> None:
    """Pad the rows of a staged tile, so that its columns spread over the banks.

    Shared memory has 32 banks of 4 bytes. In a tile with 32 floats a row all elements of a column
    are in one bank, and 32 threads that read a column wait for each other. With rows that begin
    `offset` elements past a multiple of 32 they do not. `offset` must keep a row's vectors
    aligned: with vectors of 4 floats it is a multiple of 4.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        copy: the block that writes the tile, a buffer of two dimensions.
        offset: elements past a multiple of 32, from one row of the buffer to the next.
    """
    raise NotImplementedError("schedule.storage_align of the buffer's rows")


def tensor_cores(
    schedule: Any,
    product: Any,
    load_a: Any,
    load_b: Any,
    store: Any,
    k_outer: Any,
    intrinsics: dict[str, str],
) -> None:
    """Replace the loops of a tiled matmul by instructions of tensor cores.

    The loops are as `warp_tiles` leaves them, A and B staged. Decompose the reduction at k_outer,
    which makes a block that sets accumulators to zero. Then five blocks are tensorized, each from
    the loops of one fragment inwards: load_a, load_b and store, whose last two loops are split by
    16 first and reordered so that the 16 x 16 are innermost; the one inside the zeroing block; and
    the one inside `product`. Of a block that blockize made, schedule.get_child_blocks gives the
    one inside; its loops of 16 are the last of get_loops.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        product: the block of one product of fragments, made by blockize.
        load_a: the block that copies A to fragments.
        load_b: the block that copies B to fragments.
        store: the block that copies the sum to C.
        k_outer: the loop whose steps are staged.
        intrinsics: names for `tensorize` by what they do: "load_a", "load_b", "init", "compute",
            "store".
    """
    raise NotImplementedError("decompose_reduction, then schedule.tensorize five times")


def bind_threads_classic(
    tensors: list[Any], threads_y: int, threads_x: int
) -> Any:  # a tvm.te.Schedule
    """`bind_threads` in classic TVM's words.

    The loops of the stage of C become row blocks on blockIdx.y, column blocks on blockIdx.x,
    threads_y rows on threadIdx.y, threads_x columns on threadIdx.x, and inside them k. An axis is
    bound to what te.thread_axis("blockIdx.y") and the like return.

    Args:
        tensors: [A, B, C] as `matmul` of phase 1 returns them.
        threads_y: rows of C that a block of threads computes.
        threads_x: columns of C that it computes.

    Returns:
        The tvm.te.Schedule of te.create_schedule.
    """
    raise NotImplementedError("te.create_schedule, split, reorder, then four times bind")


main = phase_command("labs.gpu_schedule", "Lab 1: GPU schedules, from threads to tensor cores.")

if __name__ == "__main__":
    main()
