"""Worked examples of lab 1: a transposition through shared memory, and a software pipeline."""

from typing import Any


def transposed(n: int, *, staged: bool) -> tuple[Any, Any]:
    """Worked example: Y[i, j] = X[j, i] in tiles of 32 x 32, by thread blocks of 8 x 32 threads.

    Threads adjacent in threadIdx.x write adjacent elements of a row of Y. These come from a column
    of X: 32 rows, so 32 memory sectors per request. With staging, a tile of X is first copied to
    shared memory row by row. Reading a column there costs nothing extra if its elements are all in
    different banks.

    Args:
        n: rows and columns, a multiple of 32.
        staged: whether the tile goes through shared memory.

    Returns:
        The schedule and the copying block (None if there is none).
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
    """Worked example: fetch the next tile while using this one, as a software pipeline.

    `annotate` attaches a note to a block or a loop, for a later pass of TVM. k_outer contains the
    copy of A, the copy of B and the product, in this order. The first note routes each copy through
    registers, which makes two statements of it: a load to registers and a store to shared memory.

    The other two notes have a number for each of the five statements. The product, the last, is
    of stage 1: it works on the tile that stage 0 fetched one step earlier. The order gives each
    statement its place in the loop body: load the next tile to registers (0 and 1), multiply this
    tile while the loads are under way (2), then store the loaded tile to shared memory (3 and 4).
    The registers are the second buffer, so one buffer in shared memory suffices.

    Args:
        copies: the two blocks of `stage_shared`.
        k_outer: the loop they are in; the reduction is decomposed at it.
    """
    for copy in copies:
        schedule.annotate(copy, "tirx.manifest_shared_memory_local_stage", 1)
    schedule.annotate(k_outer, "software_pipeline_stage", [0, 0, 0, 0, 1])
    schedule.annotate(k_outer, "software_pipeline_order", [0, 3, 1, 4, 2])
