"""Reference solutions of the bug hunts."""

from typing import Any


def parallel_sum(schedule: Any, C: Any) -> str:
    """A matmul on all threads, whose value changes from run to run.

    Classic TVM. The repair keeps a parallel loop of 2 iterations or more.

    Args:
        schedule: a fresh tvm.te.Schedule of C = A · B, changed in place.
        C: the tensor whose stage is to be scheduled, with axes i, j and the sum's axis k.

    Returns:
        The letter of the cause.
    """
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    schedule[C].reorder(i, k, j)
    schedule[C].parallel(i)
    return "b"


def lost_bound(schedule: Any) -> str:
    """A matmul in parts of rows, each part in tiles; rows next to a part's end may be wrong.

    The repair keeps the parallel parts of rows as the outermost loop and, in each part, two or more
    tiles that add up in a local buffer of the thread's own. It writes each element of C once.

    Args:
        schedule: a fresh tvm.s_tir.Schedule of C = A · B, changed in place.

    Returns:
        The letter of the cause.
    """
    block = schedule.get_sblock("C")
    write_back = schedule.cache_write(block, 0, "local")
    i, j, k = schedule.get_loops(block)
    part, rows = schedule.split(i, [None, 21])
    tile, row = schedule.split(rows, [None, 3])
    schedule.reorder(part, tile, k, row, j)
    schedule.parallel(part)
    schedule.reverse_compute_at(write_back, tile)
    schedule.decompose_reduction(block, k)
    return "c"


def column_walk(schedule: Any) -> str:
    """A transposition that misses the cache in half of its accesses or more.

    The repair brings the misses to 250 of 1000 accesses or fewer.

    Args:
        schedule: a fresh schedule of Y[i, j] = X[j, i], changed in place.

    Returns:
        The letter of the cause.
    """
    i, j = schedule.get_loops(schedule.get_sblock("Y"))
    i_outer, i_inner = schedule.split(i, [None, 16])
    j_outer, j_inner = schedule.split(j, [None, 16])
    schedule.reorder(i_outer, j_outer, i_inner, j_inner)
    return "d"


def strided_lanes(schedule: Any) -> str:
    """Vectors whose lanes are loaded and stored one by one.

    The repair keeps a vectorized innermost loop of 4 lanes or more.

    Args:
        schedule: a fresh schedule of Y[i, j] = X[i, j] + 1, changed in place; the columns are a
            multiple of 16.

    Returns:
        The letter of the cause.
    """
    _, j = schedule.get_loops(schedule.get_sblock("Y"))
    _, lanes = schedule.split(j, [None, 8])
    schedule.vectorize(lanes)
    return "b"


def guarded_lanes(schedule: Any) -> str:
    """Vectors that test a bound each time.

    The repair keeps a vectorized innermost loop of 4 lanes or more, side by side in memory.

    Args:
        schedule: a fresh schedule of Y[i] = 2 X[i], changed in place; the length is a multiple of
            8, and not of 16.

    Returns:
        The letter of the cause.
    """
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    _, lanes = schedule.split(i, [None, 8])
    schedule.vectorize(lanes)
    return "c"


def false_sharing(schedule: Any) -> str:
    """Sums of rows on all threads, which gain less than they should.

    The repair keeps the parallel loop. It makes no more writes to shared cache lines than Y has
    elements; a buffer that it adds is each thread's own.

    Args:
        schedule: a fresh schedule of Y[i] = sum over k of X[i, k], changed in place.

    Returns:
        The letter of the cause.
    """
    block = schedule.get_sblock("Y")
    write_back = schedule.cache_write(block, 0, "local")
    i, _ = schedule.get_loops(block)
    schedule.parallel(i)
    schedule.reverse_compute_at(write_back, i)
    return "a"


def inner_parallel(schedule: Any) -> str:
    """A loop on all threads that spends its time starting them.

    The repair keeps a parallel loop of 2 iterations or more, which is reached once.

    Args:
        schedule: a fresh schedule of Y[i, j] = X[i, j] + 1, changed in place.

    Returns:
        The letter of the cause.
    """
    i, _ = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.parallel(i)
    return "d"


def recomputed_stage(schedule: Any) -> str:
    """A stage B = exp(X) that is computed many times per element.

    The repair computes each element of B once, still inside a loop of Y of 2 iterations or more.

    Args:
        schedule: a fresh schedule of B[i, k] = exp(X[i, k]) and Y = B · W, changed in place.

    Returns:
        The letter of the cause.
    """
    i, _, _ = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.compute_at(schedule.get_sblock("B"), i)
    return "a"


def written_every_step(schedule: Any) -> str:
    """Sums in a local buffer that saves no write.

    The repair keeps the buffer, copies it to Y inside a loop over rows (of 2 iterations or more),
    and writes each element of Y once.

    Args:
        schedule: a fresh schedule of Y[i] = sum over k of X[i, k], changed in place.

    Returns:
        The letter of the cause.
    """
    block = schedule.get_sblock("Y")
    write_back = schedule.cache_write(block, 0, "local")
    i, _ = schedule.get_loops(block)
    schedule.reverse_compute_at(write_back, i)
    return "b"


def huge_unroll(schedule: Any) -> str:
    """A small matmul whose code is larger than the instruction cache.

    The repair keeps an unrolled loop of 2 iterations or more, and makes at most 64 copies.

    Args:
        schedule: a fresh schedule of C = A · B, changed in place.

    Returns:
        The letter of the cause.
    """
    _, _, k = schedule.get_loops(schedule.get_sblock("C"))
    _, steps = schedule.split(k, [None, 4])
    schedule.unroll(steps)
    return "c"
