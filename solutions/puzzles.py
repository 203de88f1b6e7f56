"""Reference solutions of the puzzles."""

from typing import Any


def split_loop(schedule: Any, factor: int) -> None:
    """Split the loop i in two, the inner one of `factor` iterations.

    `factor` need not divide the length of Y: TVM rounds the outer loop up and adds a guard, a
    condition that skips the iterations past the end.

    Args:
        schedule: of Y[i] = 2 X[i], changed in place; a tvm.s_tir.Schedule.
        factor: iterations of the inner loop.
    """
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.split(i, [None, factor])


def columns_first(schedule: Any) -> None:
    """Put the loop over columns outside the loop over rows.

    Args:
        schedule: of Y[i, j] = X[i, j] + 1, changed in place.
    """
    i, j = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.reorder(j, i)


def one_loop(schedule: Any) -> None:
    """Make one loop of the loops over rows and columns, row by row as before.

    Args:
        schedule: of Y[i, j] = X[i, j] + 1, changed in place.
    """
    i, j = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.fuse(i, j)


def rows_to_threads(schedule: Any) -> None:
    """Share the rows among the threads; each row stays a serial loop.

    Args:
        schedule: of Y[i, j] = X[i, j] + 1, changed in place.
    """
    i, _ = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.parallel(i)


def columns_to_lanes(schedule: Any) -> None:
    """Compute each row in vector lanes, in one loop over all of its columns.

    Args:
        schedule: of Y[i, j] = X[i, j] + 1, changed in place.
    """
    _, j = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.vectorize(j)


def written_out(schedule: Any) -> None:
    """Write out the additions of a row's sum one after the other, without a loop.

    Args:
        schedule: of Y[i] = sum over k of X[i, k], changed in place.
    """
    _, k = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.unroll(k)


def no_middle_stage(schedule: Any) -> None:
    """Make Y read X directly, so that B is neither stored nor looped over.

    Args:
        schedule: of B[i, j] = 2 X[i, j] and Y[i, j] = B[i, j] + 1, changed in place.
    """
    schedule.compute_inline(schedule.get_sblock("B"))


def row_by_row(schedule: Any) -> None:
    """Compute each row of B just before that row of Y.

    A row of B is then still in the cache when Y reads it.

    Args:
        schedule: of B[i, j] = 2 X[i, j] and Y[i, j] = B[i, j] + 1, changed in place.
    """
    i, _ = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.compute_at(schedule.get_sblock("B"), i)


def follow_the_sum(schedule: Any) -> None:
    """Compute each element of Y as soon as its sum is complete.

    Args:
        schedule: of B[i] = sum over k of X[i, k] and Y[i] = 2 B[i], changed in place.
    """
    i, _ = schedule.get_loops(schedule.get_sblock("B"))
    schedule.reverse_compute_at(schedule.get_sblock("Y"), i)


def row_copy(schedule: Any) -> None:
    """Copy each row of X to a buffer of scope "local", and compute that row of Y from the copy.

    Y reads most elements twice. On a GPU, such a copy would be in the memory that the threads of a
    thread block share.

    Args:
        schedule: of Y[i, j] = X[i, j] + X[i, j + 1], changed in place.
    """
    block = schedule.get_sblock("Y")
    copy = schedule.cache_read(block, 0, "local")
    i, _ = schedule.get_loops(block)
    schedule.compute_at(copy, i)


def local_sum(schedule: Any) -> None:
    """Add up each row in a buffer of scope "local", and write it to Y once, right after its sum.

    The sum stays one statement, which also sets the buffer to zero.

    Args:
        schedule: of Y[i] = sum over k of X[i, k], changed in place.
    """
    block = schedule.get_sblock("Y")
    write_back = schedule.cache_write(block, 0, "local")
    i, _ = schedule.get_loops(block)
    schedule.reverse_compute_at(write_back, i)


def zero_first(schedule: Any) -> None:
    """Set each element of Y to zero in a statement of its own, right before its loop over k.

    Until then the block tests in every iteration whether k is 0.

    Args:
        schedule: of Y[i] = sum over k of X[i, k], changed in place.
    """
    block = schedule.get_sblock("Y")
    _, k = schedule.get_loops(block)
    schedule.decompose_reduction(block, k)


def partial_sums(schedule: Any, factor: int) -> None:
    """Add up each row in `factor` partial sums first, then add those.

    A sum's additions wait for each other; `factor` independent sums do not, and can become the
    lanes of a vector. Partial sum number s takes the elements s, s + factor, s + 2 factor, …
    One element is added to each partial sum before the next is added to any.

    Args:
        schedule: of Y[i] = sum over k of X[i, k], changed in place.
        factor: partial sums per row; it divides the length of a row.
    """
    _, k = schedule.get_loops(schedule.get_sblock("Y"))
    _, k_inner = schedule.split(k, [None, factor])
    schedule.rfactor(k_inner, factor_axis=0)


def stored_by_columns(schedule: Any) -> None:
    """Store B transposed, so that Y reads it along its rows; the loops stay as they are.

    Args:
        schedule: of B[j, i] = 2 X[j, i] and Y[i, j] = B[j, i] + 1, changed in place.
    """
    schedule.transform_layout("B", ("write", 0), lambda j, i: (i, j))


def grid_of_threads(schedule: Any) -> None:
    """Give each row to a thread block of a GPU, and each of its columns to a thread.

    The thread blocks are those of blockIdx.x, the threads those of threadIdx.x.

    Args:
        schedule: of Y[i, j] = X[i, j] + 1, changed in place.
    """
    i, j = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.bind(i, "blockIdx.x")
    schedule.bind(j, "threadIdx.x")
