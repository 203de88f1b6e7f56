"""Lab 6: compilers compared.

The same five workloads, from a matmul to attention, in numpy, PyTorch, torch.compile, JAX, ONNX
Runtime, Triton and TVM: how much code each needs, how long until the first result, how fast it
then runs, and for which machines it generates code. Such tables are common and seldom say where
their figures come from. Here each cell is counted or measured on this machine, and the tables name
the commands.

Compilers can do two things that a library cannot do for its caller.

One pass. A softmax reads its row for the maximum, again for the sum and again for the result. An
attention kernel, such as the lab's in Triton, reads its scores once. It carries a *state*, a
summary of the elements so far, that can be merged with others. In a tensor expression, such a state
is a reduction of a tuple:

    te.comm_reducer(merge, identity)
        merge(left, right)     merges two states, each a sequence of numbers
        identity(*types)       the state of no elements

    reducer((a, b), axis=j)    each element's state is (a, b); te.compute then makes one tensor
                               per number of the state
    te.min_value("float32")    the most negative finite number of a type
    tirx.const(0, "float32")   a number of a type

The worked example, `normalized`, has a state of three numbers; model `online_softmax` on it.

Fusion. Bias and activation after a product are its *epilogue*. torch.compile and XLA, JAX's
compiler, by default call a library for the product. The library may add the bias; the activation
is a loop of its own after the call. A schedule by hand can put both into the product's own loops,
as in `fuse_epilogue`:

    schedule.reverse_compute_inline(block)
                               the block's formula goes into the block that computes its input

The other three functions fill the table: lines of code, time to the first result, and the calls
after which a compiler pays. The frameworks' files are in tvm_practice/labs/workloads. Write the
functions, then run

    python -m tvm_practice.labs.compilers_compared
    pytest -m lab6
"""

import subprocess  # noqa: F401  # for time_to_first_result
from collections.abc import Sequence
from typing import Any

from tvm_practice.course.phase import phase_command


def normalized(rows: int, columns: int) -> list[Any]:
    """Worked example: each row minus its mean, over its standard deviation, read once for both.

    A state is (count, mean, sum of squared distances from the mean) of some elements. Two states
    merge without looking at the elements again (Chan, Golub, LeVeque 1979): the means move
    towards each other by their weights, and the distance between them adds to the squares. The
    mean of the squares minus the square of the mean also needs only one pass, but loses every
    digit where the mean is large.

    Args:
        rows: independent rows of X.
        columns: elements per row.

    Returns:
        The tensors [X, Y] of shape (rows, columns), float32.
    """
    from tvm import te, tirx

    def merge(left: Any, right: Any) -> Any:
        count = left[0] + right[0]
        distance = right[1] - left[1]
        share = right[0] / te.max(count, 1)  # 0 / 1 where both states are empty
        return (
            count,
            left[1] + distance * share,
            left[2] + right[2] + distance * distance * left[0] * share,
        )

    def nothing(*types: str) -> Any:
        return tuple(tirx.const(0, each) for each in types)

    one, zero = (tirx.const(value, "float32") for value in (1, 0))
    moments = te.comm_reducer(merge, nothing, name="moments")
    X = te.placeholder((rows, columns), name="X")
    j = te.reduce_axis((0, columns), name="j")
    _, mean, squares = te.compute(
        (rows,), lambda i: moments((one, X[i, j], zero), axis=j), name="moments"
    )
    Y = te.compute(
        (rows, columns),
        lambda i, c: (X[i, c] - mean[i]) / te.sqrt(squares[i] / columns),
        name="Y",
    )
    return [X, Y]


def online_softmax(rows: int, columns: int) -> list[Any]:
    """Declare a softmax over each row that reads the row once for its maximum and its sum.

    A state is (maximum, sum of exp(x - maximum)) of some elements; one element's is (x, 1). To
    merge two states, keep the larger maximum, multiply each sum by exp(its own maximum - the
    larger one), and add. The identity is the most negative finite float32 and sum 0. Its maximum
    is not -inf because masked scores are -inf, and -inf - (-inf) is NaN.

    Two stages: the reduction, named "state", of two tensors; and "Y", exp(X - maximum) / sum.

    Args:
        rows: independent rows of X.
        columns: elements per row.

    Returns:
        The tensors [X, Y], both of shape (rows, columns), float32.
    """
    raise NotImplementedError("te.comm_reducer of (maximum, sum), then Y")


def fuse_epilogue(schedule: Any, stages: Sequence[str]) -> None:
    """Bring the elementwise stages after a tiled product into its tile.

    The product is scheduled with `register_block` of phase 2: a tile accumulates in a local
    buffer, and a block copies it to memory. Elementwise stages follow, each reading the one
    before: a bias, an activation. As given, each passes over the whole result again.
    Afterwards, the copying block computes them all and writes the result of the last; the product
    itself is never in memory.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place. Its tiles divide the matrices.
        stages: names of the stages' blocks, in the order in which they are computed.
    """
    raise NotImplementedError("schedule.reverse_compute_inline of each stage")


def count_lines(source: str) -> int:
    """The logical lines of Python source.

    A logical line is a statement, a decorator, or the head of a statement that has a body (def, if,
    for), however many lines of the file it spans. Statements joined by semicolons are one, and so
    are a head and a body on its last line. Blank lines, comments and docstrings (any line that is
    nothing but a string) do not count.

    Args:
        source: whole statements.

    Returns:
        The number of logical lines.
    """
    raise NotImplementedError("tokenize: count the lines that NEWLINE ends, unless only a string")


def time_to_first_result(command: Sequence[str], *, runs: int) -> float:
    """Time a program from its start to the first line that it prints.

    Each run is a new process, in the caller's folder and with its environment. The clock stops when
    the line arrives, not when the process ends: many take a while to clean up, and some print more.
    Read that too: a full pipe stops them. The next run starts only after the process has ended.

    Args:
        command: the program and its arguments. It prints text in the caller's encoding.
        runs: number of processes, one after the other.

    Returns:
        Seconds, the median of the runs.

    Raises:
        RuntimeError: a process ended with an exit status other than 0, or printed no line; the
            message has the status and the last line of its standard error.
    """
    raise NotImplementedError("subprocess.Popen, and the clock before it and after readline")


def pays_after(
    load_seconds: float, baseline_ms: float, ratio: tuple[float, float, float]
) -> int | None:
    """The number of calls after which a compiler has saved the time that it took.

    Args:
        load_seconds: seconds it needs before the first call, beyond those of the baseline; 0 or
            less if it needs no more.
        baseline_ms: milliseconds per call of the baseline.
        ratio: time of the compiled call over the baseline's, and the low and high end of its 95%
            interval.

    Returns:
        The smallest number of calls that save at least load_seconds, 0 if load_seconds is not
        positive. None, whatever load_seconds is, if the interval does not show that the compiled
        call is faster.
    """
    raise NotImplementedError("None unless ratio's high end is below 1; else round up")


main = phase_command("labs.compilers_compared", "Lab 6: compilers compared.")

if __name__ == "__main__":
    main()
