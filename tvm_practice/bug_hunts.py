"""Bug hunts: schedules that TVM accepts, and that are wrong or slow.

    tvm-practice hunt                the next hunt: a schedule, its loops, its symptom, four causes
    tvm-practice check lost_bound    grade it

Each function below does two things. It schedules the same stages without the bug, for the purpose
that the wrong schedule had: a parallel loop stays parallel, vectors stay vectors. And it returns
the letter of the cause, "a" to "d".

The symptoms are counted in the loops, in their accesses, or by a model of a cache. They are never
timed, so they are the same on every machine. Sizes change from check to check and are never smaller
than those that `hunt` shows: if you need one, read it from the schedule. You get a schedule without
any primitive, so you can begin with the lines that `hunt` shows and mend them. When all pass, run
them together:

    python -m tvm_practice.bug_hunts
    pytest -m bug_hunts
"""

from typing import Any

from tvm_practice.course.phase import phase_command


def parallel_sum(schedule: Any, C: Any) -> str:
    """A matmul on all threads, whose value changes from run to run.

    Classic TVM. The repair keeps a parallel loop of 2 iterations or more.

    Args:
        schedule: a fresh tvm.te.Schedule of C = A · B, changed in place.
        C: the tensor whose stage is to be scheduled, with axes i, j and the sum's axis k.

    Returns:
        The letter of the cause.
    """
    raise NotImplementedError("the cause's letter, and a parallel loop that threads can share")


def lost_bound(schedule: Any) -> str:
    """A matmul in parts of rows, each part in tiles; rows next to a part's end may be wrong.

    The repair keeps the parallel parts of rows as the outermost loop and, in each part, two or more
    tiles that add up in a local buffer of the thread's own. It writes each element of C once.

    Args:
        schedule: a fresh tvm.s_tir.Schedule of C = A · B, changed in place.

    Returns:
        The letter of the cause.
    """
    raise NotImplementedError("the cause's letter, and factors that leave one bound")


def column_walk(schedule: Any) -> str:
    """A transposition that misses the cache in half of its accesses or more.

    The repair brings the misses to 250 of 1000 accesses or fewer.

    Args:
        schedule: a fresh schedule of Y[i, j] = X[j, i], changed in place.

    Returns:
        The letter of the cause.
    """
    raise NotImplementedError("the cause's letter, and tiles")


def strided_lanes(schedule: Any) -> str:
    """Vectors whose lanes are loaded and stored one by one.

    The repair keeps a vectorized innermost loop of 4 lanes or more.

    Args:
        schedule: a fresh schedule of Y[i, j] = X[i, j] + 1, changed in place; the columns are a
            multiple of 16.

    Returns:
        The letter of the cause.
    """
    raise NotImplementedError("the cause's letter, and lanes side by side")


def guarded_lanes(schedule: Any) -> str:
    """Vectors that test a bound each time.

    The repair keeps a vectorized innermost loop of 4 lanes or more, side by side in memory.

    Args:
        schedule: a fresh schedule of Y[i] = 2 X[i], changed in place; the length is a multiple of
            8, and not of 16.

    Returns:
        The letter of the cause.
    """
    raise NotImplementedError("the cause's letter, and a factor that divides")


def false_sharing(schedule: Any) -> str:
    """Sums of rows on all threads, which gain less than they should.

    The repair keeps the parallel loop. It makes no more writes to shared cache lines than Y has
    elements; a buffer that it adds is each thread's own.

    Args:
        schedule: a fresh schedule of Y[i] = sum over k of X[i, k], changed in place.

    Returns:
        The letter of the cause.
    """
    raise NotImplementedError("the cause's letter, and a sum of the thread's own")


def inner_parallel(schedule: Any) -> str:
    """A loop on all threads that spends its time starting them.

    The repair keeps a parallel loop of 2 iterations or more, which is reached once.

    Args:
        schedule: a fresh schedule of Y[i, j] = X[i, j] + 1, changed in place.

    Returns:
        The letter of the cause.
    """
    raise NotImplementedError("the cause's letter, and threads that start once")


def recomputed_stage(schedule: Any) -> str:
    """A stage B = exp(X) that is computed many times per element.

    The repair computes each element of B once, still inside a loop of Y of 2 iterations or more.

    Args:
        schedule: a fresh schedule of B[i, k] = exp(X[i, k]) and Y = B · W, changed in place.

    Returns:
        The letter of the cause.
    """
    raise NotImplementedError("the cause's letter, and the loop that needs a row of B")


def written_every_step(schedule: Any) -> str:
    """Sums in a local buffer that saves no write.

    The repair keeps the buffer, copies it to Y inside a loop over rows (of 2 iterations or more),
    and writes each element of Y once.

    Args:
        schedule: a fresh schedule of Y[i] = sum over k of X[i, k], changed in place.

    Returns:
        The letter of the cause.
    """
    raise NotImplementedError("the cause's letter, and a copy of complete sums")


def huge_unroll(schedule: Any) -> str:
    """A small matmul whose code is larger than the instruction cache.

    The repair keeps an unrolled loop of 2 iterations or more, and makes at most 64 copies.

    Args:
        schedule: a fresh schedule of C = A · B, changed in place.

    Returns:
        The letter of the cause.
    """
    raise NotImplementedError("the cause's letter, and few iterations unrolled")


main = phase_command(
    "bug_hunts", "Bug hunts: schedules that TVM accepts, and that are wrong or slow."
)

if __name__ == "__main__":
    main()
