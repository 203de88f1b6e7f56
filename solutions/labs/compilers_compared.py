"""Reference answers of lab 6."""

from collections.abc import Sequence
from typing import Any


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
    from tvm import te, tirx

    def merge(left: Any, right: Any) -> Any:
        maximum = te.max(left[0], right[0])
        return (
            maximum,
            left[1] * te.exp(left[0] - maximum) + right[1] * te.exp(right[0] - maximum),
        )

    def nothing(*types: str) -> Any:
        return te.min_value(types[0]), tirx.const(0, types[1])

    reducer = te.comm_reducer(merge, nothing, name="online")
    X = te.placeholder((rows, columns), name="X")
    j = te.reduce_axis((0, columns), name="j")
    one = tirx.const(1, "float32")
    maximum, total = te.compute((rows,), lambda i: reducer((X[i, j], one), axis=j), name="state")
    Y = te.compute((rows, columns), lambda i, c: te.exp(X[i, c] - maximum[i]) / total[i], name="Y")
    return [X, Y]


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
    # In this order: a stage can be inlined only into the block that computes its input.
    for stage in stages:
        schedule.reverse_compute_inline(schedule.get_sblock(stage))


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
    import io
    import tokenize

    beside = (tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT)
    lines = 0
    only_strings = True
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NEWLINE:
            lines += not only_strings
            only_strings = True
        elif token.type not in (*beside, tokenize.STRING):
            only_strings = False
    return lines


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
    import statistics
    import subprocess
    import tempfile
    import time

    seconds = []
    for _ in range(runs):
        with tempfile.TemporaryFile("w+") as errors:
            started = time.perf_counter()
            with subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process:
                assert process.stdout is not None
                line = process.stdout.readline()
                seconds.append(time.perf_counter() - started)
                process.stdout.read()  # a closed pipe would end a program that prints more
            errors.seek(0)
            said = errors.read().strip().splitlines()
        if process.returncode or not line:
            last = said[-1] if said else "nothing on standard error"
            raise RuntimeError(f"exit status {process.returncode}: {last}")
    return statistics.median(seconds)


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
    import math

    value, _, high = ratio
    if high >= 1:
        return None
    saved_ms = baseline_ms * (1 - value)
    return max(0, math.ceil(load_seconds * 1e3 / saved_ms))
