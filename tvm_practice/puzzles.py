"""Puzzles: one schedule primitive each.

Each function changes a schedule's loops from one picture to another, in one to five lines:

    tvm-practice puzzle              the next puzzle's loops, before and after
    tvm-practice check split_loop    grade it

The stages are small. X is the input, Y the output, and B, where there is one, the stage between
them: B is the *producer*, and Y, which reads it, the *consumer*. A *block* (TVM: sblock) is a
stage's statement. You change the loops around it:

    schedule.get_sblock("Y")         the block of a stage, by name
    schedule.get_loops(block)        the loops around it, outermost first
    int(schedule.get(loop).extent)   the number of a loop's iterations

So `i, j = schedule.get_loops(schedule.get_sblock("Y"))` are the two loops of Y.

The primitives are methods of the schedule:

    split(loop, [None, 8])           makes two loops of one and returns them, the outer first. The
                                     list has their extents (numbers of iterations); TVM works out
                                     None, rounded up
    reorder(a, b)                    puts these loops in this order, a outside b
    fuse(a, b)                       makes one loop of two and returns it
    parallel(loop)                   its iterations are shared among the threads
    vectorize(loop)                  its iterations become vector instructions: each computes
                                     several elements at once, one per lane
    unroll(loop)                     its body is written out, iteration after iteration
    compute_inline(block)            the block's formula goes into its readers
    compute_at(block, loop)          moves a producer into a loop of its consumer
    reverse_compute_at(block, loop)  moves a consumer into a loop of its producer
    cache_read(block, 0, "local")    copies the block's first input to a buffer, which the block
                                     then reads; returns the copying block. "local" is the buffer's
                                     scope, the memory that holds it: here, one thread's
    cache_write(block, 0, "local")   the block writes to a buffer; returns a new block that copies
                                     the buffer to the output
    decompose_reduction(block, loop) moves a sum's zeroing to a block of its own, right before
                                     `loop`
    rfactor(loop, factor_axis=0)     makes a partial sum per iteration of `loop`, and a block that
                                     adds these; factor_axis is their axis in the new buffer
    transform_layout(block, ("write", 0), lambda i, j: …)
                                     stores the block's output under other indices: the function
                                     takes the old ones and returns the new ones
    bind(loop, "threadIdx.x")        its iterations become the threads of a GPU's thread block, a
                                     group of threads that share a memory; with "blockIdx.x" they
                                     become thread blocks

Every size is drawn anew for each check, so read it from the schedule or leave it to TVM. The names
of loops do not matter. `transform_layout` is for `stored_by_columns` alone: the other puzzles store
their buffers as the other primitives leave them. When all puzzles pass, run them together:

    python -m tvm_practice.puzzles
    pytest -m puzzles

Current TVM only; phase 2 has the same ideas in classic TVM.
"""

from typing import Any

from tvm_practice.course.phase import phase_command


def split_loop(schedule: Any, factor: int) -> None:
    """Split the loop i in two, the inner one of `factor` iterations.

    `factor` need not divide the length of Y: TVM rounds the outer loop up and adds a guard, a
    condition that skips the iterations past the end.

    Args:
        schedule: of Y[i] = 2 X[i], changed in place; a tvm.s_tir.Schedule.
        factor: iterations of the inner loop.
    """
    raise NotImplementedError("split(loop, [None, factor])")


def columns_first(schedule: Any) -> None:
    """Put the loop over columns outside the loop over rows.

    Args:
        schedule: of Y[i, j] = X[i, j] + 1, changed in place.
    """
    raise NotImplementedError("reorder(j, i)")


def one_loop(schedule: Any) -> None:
    """Make one loop of the loops over rows and columns, row by row as before.

    Args:
        schedule: of Y[i, j] = X[i, j] + 1, changed in place.
    """
    raise NotImplementedError("fuse(i, j)")


def rows_to_threads(schedule: Any) -> None:
    """Share the rows among the threads; each row stays a serial loop.

    Args:
        schedule: of Y[i, j] = X[i, j] + 1, changed in place.
    """
    raise NotImplementedError("parallel(i)")


def columns_to_lanes(schedule: Any) -> None:
    """Compute each row in vector lanes, in one loop over all of its columns.

    Args:
        schedule: of Y[i, j] = X[i, j] + 1, changed in place.
    """
    raise NotImplementedError("vectorize(j)")


def written_out(schedule: Any) -> None:
    """Write out the additions of a row's sum one after the other, without a loop.

    Args:
        schedule: of Y[i] = sum over k of X[i, k], changed in place.
    """
    raise NotImplementedError("unroll(k)")


def no_middle_stage(schedule: Any) -> None:
    """Make Y read X directly, so that B is neither stored nor looped over.

    Args:
        schedule: of B[i, j] = 2 X[i, j] and Y[i, j] = B[i, j] + 1, changed in place.
    """
    raise NotImplementedError("compute_inline(B)")


def row_by_row(schedule: Any) -> None:
    """Compute each row of B just before that row of Y.

    A row of B is then still in the cache when Y reads it.

    Args:
        schedule: of B[i, j] = 2 X[i, j] and Y[i, j] = B[i, j] + 1, changed in place.
    """
    raise NotImplementedError("compute_at(B, i)")


def follow_the_sum(schedule: Any) -> None:
    """Compute each element of Y as soon as its sum is complete.

    Args:
        schedule: of B[i] = sum over k of X[i, k] and Y[i] = 2 B[i], changed in place.
    """
    raise NotImplementedError("reverse_compute_at(Y, i)")


def row_copy(schedule: Any) -> None:
    """Copy each row of X to a buffer of scope "local", and compute that row of Y from the copy.

    Y reads most elements twice. On a GPU, such a copy would be in the memory that the threads of a
    thread block share.

    Args:
        schedule: of Y[i, j] = X[i, j] + X[i, j + 1], changed in place.
    """
    raise NotImplementedError("cache_read, then compute_at")


def local_sum(schedule: Any) -> None:
    """Add up each row in a buffer of scope "local", and write it to Y once, right after its sum.

    The sum stays one statement, which also sets the buffer to zero.

    Args:
        schedule: of Y[i] = sum over k of X[i, k], changed in place.
    """
    raise NotImplementedError("cache_write, then reverse_compute_at")


def zero_first(schedule: Any) -> None:
    """Set each element of Y to zero in a statement of its own, right before its loop over k.

    Until then the block tests in every iteration whether k is 0.

    Args:
        schedule: of Y[i] = sum over k of X[i, k], changed in place.
    """
    raise NotImplementedError("decompose_reduction(Y, k)")


def partial_sums(schedule: Any, factor: int) -> None:
    """Add up each row in `factor` partial sums first, then add those.

    A sum's additions wait for each other; `factor` independent sums do not, and can become the
    lanes of a vector. Partial sum number s takes the elements s, s + factor, s + 2 factor, …
    One element is added to each partial sum before the next is added to any.

    Args:
        schedule: of Y[i] = sum over k of X[i, k], changed in place.
        factor: partial sums per row; it divides the length of a row.
    """
    raise NotImplementedError("split k, then rfactor")


def stored_by_columns(schedule: Any) -> None:
    """Store B transposed, so that Y reads it along its rows; the loops stay as they are.

    Args:
        schedule: of B[j, i] = 2 X[j, i] and Y[i, j] = B[j, i] + 1, changed in place.
    """
    raise NotImplementedError("transform_layout of B's output")


def grid_of_threads(schedule: Any) -> None:
    """Give each row to a thread block of a GPU, and each of its columns to a thread.

    The thread blocks are those of blockIdx.x, the threads those of threadIdx.x.

    Args:
        schedule: of Y[i, j] = X[i, j] + 1, changed in place.
    """
    raise NotImplementedError("bind(i, 'blockIdx.x'), bind(j, 'threadIdx.x')")


main = phase_command("puzzles", "Puzzles: one schedule primitive each.")

if __name__ == "__main__":
    main()
