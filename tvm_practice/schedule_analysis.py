"""Phase 3: schedule analysis.

Phase 2 made schedules; this one finds out which is faster, by how much, and why. A figure is
worth what the way it was taken is worth. Four things spoil it:

- The first calls are slower: memory is touched for the first time, the thread pool starts, the
  caches are cold. Make them, and do not keep them.
- One call is not a figure. The machine does other things too, so take many samples and give
  their median, or their mean with an interval.
- Two things timed one after the other are not compared: the clock rate, the temperature and
  other programs' load change in between. Time them in turn, A B A B, and look at the ratio of
  each pair.
- Thread pools spin. For a tenth of a second after a parallel call its workers burn the cores
  that the next thing needs; `tvm_practice.measure.quiesce` waits until they sleep.

TVM has a stopwatch of its own, `time_evaluator`, which loops in C++, so that a call from Python
(about a microsecond) is no part of the figure:

    evaluator = module.time_evaluator("main", tvm.cpu(), number=10, repeat=5)
    evaluator(A, B, C).results          5 times in seconds, each the mean of 10 calls

A time alone says little. Set against the work, 2·m·n·k operations, it is a rate in GFLOP/s; set
against the bytes that have to be moved, the work is an arithmetic intensity in FLOP/byte. A
processor that computes 200 GFLOP/s and reads 20 GB/s from memory needs 10 FLOP/byte to be busy.

The worked example is `first_calls`. Write the functions below it, then run

    python -m tvm_practice.schedule_analysis
    pytest -m phase3
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from tvm_practice.course.phase import phase_command

if TYPE_CHECKING:
    import numpy as np


def first_calls(run: Callable[[], Any], count: int) -> list[float]:
    """Worked example: what each of the first `count` calls takes, in milliseconds."""
    import time

    taken = []
    for _ in range(count):
        started = time.perf_counter()
        run()
        taken.append((time.perf_counter() - started) * 1e3)
    return taken


def time_function(
    function: Any, arguments: Sequence[Any], *, number: int, repeats: int
) -> "np.ndarray":
    """Time a compiled function with the engine's time_evaluator.

    The evaluator calls the function once and forgets that call, then reads the clock around
    `number` calls, `repeats` times over. Its loop is in C++: a loop in Python would add about a
    microsecond to each call.

    Args:
        function: a compiled module (tvm.runtime.Module) whose function is called "main".
        arguments: tensors on the CPU, in the order that "main" takes them.
        number: calls that one sample is the mean of.
        repeats: samples.

    Returns:
        Milliseconds per call, of shape (repeats,). The evaluator's `results` are in seconds.
    """
    raise NotImplementedError("module.time_evaluator, its seconds as milliseconds")


def sample_latency(run: Callable[[], Any], *, warmup: int, repeats: int) -> "np.ndarray":
    """Time single calls of anything callable with time.perf_counter.

    The first calls are slower (memory is touched for the first time, thread pools start, caches
    are cold), so they are made but not kept.

    Args:
        run: takes no arguments.
        warmup: calls to make before the first sample.
        repeats: samples, one call each.

    Returns:
        Milliseconds of each call after the warm-up, in the order they were made, of shape
        (repeats,).
    """
    raise NotImplementedError("call run() untimed, then call it timed, one sample a call")


def gflop_per_second(m: int, n: int, k: int, milliseconds: float) -> float:
    """The rate of a matrix product, a multiplication and an addition counting as two.

    Args:
        m: rows of A and of C.
        n: columns of B and of C.
        k: columns of A, rows of B.
        milliseconds: what one product took.

    Returns:
        10⁹ floating-point operations per second.
    """
    raise NotImplementedError("operations, divided by seconds and by 1e9")


def arithmetic_intensity(m: int, n: int, k: int) -> float:
    """Operations per byte that a matrix product cannot avoid moving.

    The compulsory traffic is each float32 of A and of B read once and each of C written once.
    A schedule moves more than that wherever it fetches the same value again.

    Args:
        m: rows of A and of C.
        n: columns of B and of C.
        k: columns of A, rows of B.

    Returns:
        Floating-point operations per byte.
    """
    raise NotImplementedError("operations, divided by the bytes of A, B and C")


def compare_interleaved(
    first: Callable[[], Any], second: Callable[[], Any], *, rounds: int
) -> tuple[float, float, float]:
    """Compare two callables in turn, so that what the machine does meanwhile hits both.

    In each round, for `first` and then for `second`: wait with tvm_practice.measure.quiesce()
    until the threads of the other one sleep (thread pools spin for a tenth of a second after a
    call, on cores that the next one needs), call once untimed to wake its own threads, and call
    once more, timed with time.perf_counter.

    A round gives one ratio, time of `first` over time of `second`. The interval is a bootstrap
    of the median: draw `rounds` ratios from those measured, with replacement, take their median,
    do so 2000 times; the 2.5th and 97.5th percentile of these medians are its ends.

    Args:
        first: takes no arguments.
        second: takes no arguments.
        rounds: how many ratios to take.

    Returns:
        The median ratio and the low and high end of its 95% interval. Below 1 `first` is faster;
        where the interval holds 1 there is no significant difference.
    """
    raise NotImplementedError("time both in turn, a ratio a round, and bootstrap the median")


def compile_variants(size: int, *, tile: int = 32) -> dict[str, Any]:
    """Compile the product of two size x size matrices under three schedules of phase 2.

    "naive" leaves the loops as they are; "tiled" has tiles of C, all of k for each, and a
    vectorized innermost loop; "tiled+parallel" is "tiled" with its outer tile loops run in
    parallel. Each needs a schedule of its own: a primitive changes the schedule it is called on.

    Args:
        size: rows and columns of A, B and C; any positive number.
        tile: rows and columns of a tile of C; need not divide the size.

    Returns:
        The three modules (tvm.runtime.Module) by name, each with a function "main"(A, B, C) for
        `engines.host_target()`.
    """
    raise NotImplementedError("schedule the product in three ways and compile each")


def parallel_pays_from(
    sizes: Sequence[int], serial_ms: Sequence[float], parallel_ms: Sequence[float]
) -> int | None:
    """The smallest size from which on the parallel schedule is always the faster one.

    A size where it happens to be faster, followed by one where it is not, does not count.

    Args:
        sizes: matrix sizes, ascending.
        serial_ms: what the serial schedule takes at each size.
        parallel_ms: what the parallel schedule takes at each size.

    Returns:
        One of `sizes`, or None if the parallel schedule is not faster at the largest.
    """
    raise NotImplementedError("find the size after which parallel is always the faster one")


main = phase_command("schedule_analysis", "Phase 3: schedule analysis, which is faster and why.")

if __name__ == "__main__":
    main()
