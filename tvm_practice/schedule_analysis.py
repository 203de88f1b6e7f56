"""Phase 3: schedule analysis.

Phase 2 made schedules; this phase finds out which is faster, by how much, and why. A figure is only
as good as its measurement. Four things spoil it:

- The first calls are slower: they touch memory for the first time, start the thread pool, and find
  empty caches. Make these calls, but discard their times.
- One call proves nothing. The machine does other things too, so take many samples and report
  their median or mean, with a confidence interval.
- Timing two things one after the other does not compare them: the clock rate, the temperature and
  the load of other programs change in between. Time them in turn, A B A B, and look at the ratio
  of each pair.
- Thread pools spin. For a tenth of a second after a parallel call, their threads poll for more work
  on the cores that the next call needs; `tvm_practice.measure.quiesce` waits until they sleep.

The pieces:

    module = tvm.compile(schedule.mod, target=host_target()).mod
                                        a schedule compiled to a module; host_target(), from
                                        tvm_practice.engines, is this machine's processor
    module["main"](A, B, C)             calls its function main with tensors in memory; writes C
    evaluator = module.time_evaluator("main", tvm.cpu(), number=10, repeat=5)
                                        TVM's own stopwatch, on the device tvm.cpu(). Its loop is in
                                        C++, so the figure does not include the call from Python
                                        (about a microsecond)
    evaluator(A, B, C).results          5 times in seconds, each the mean of 10 calls; one call
                                        before them is not counted
    tvm_practice.measure.quiesce()      waits until the threads of earlier calls sleep
    time.perf_counter()                 Python's clock, in seconds; only differences have a meaning
    from solutions.te_basics import matmul
                                        a reference function of an earlier phase; yours are in
                                        tvm_practice.te_basics and so on

A time alone says little. The work, 2·m·n·k operations, divided by the time is a rate in GFLOP/s;
divided by the bytes to move, it is the arithmetic intensity in FLOP/byte. A processor that computes
200 GFLOP/s and reads 20 GB/s from memory needs 10 FLOP/byte to stay busy.

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
    """Worked example: the time of each of the first `count` calls, in milliseconds."""
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
        number: calls per sample, which is their mean.
        repeats: samples.

    Returns:
        Milliseconds per call, of shape (repeats,). The evaluator's `results` are in seconds.
    """
    raise NotImplementedError("module.time_evaluator, its seconds as milliseconds")


def sample_latency(run: Callable[[], Any], *, warmup: int, repeats: int) -> "np.ndarray":
    """Time single calls of any callable with time.perf_counter.

    Read the clock directly before and directly after each call: the time between two calls belongs
    to neither.

    The first calls are slower (they touch memory for the first time, start thread pools, and find
    empty caches), so they are made but not kept.

    Args:
        run: takes no arguments.
        warmup: calls to make before the first sample.
        repeats: samples, one call each.

    Returns:
        Milliseconds of each call after the warm-up, in the order they were made, as float64 of
        shape (repeats,).
    """
    raise NotImplementedError("call run() untimed, then call it timed, one sample per call")


def gflop_per_second(m: int, n: int, k: int, milliseconds: float) -> float:
    """The rate of a matrix product; a multiplication and an addition count as two operations.

    Args:
        m: rows of A and of C.
        n: columns of B and of C.
        k: columns of A, rows of B.
        milliseconds: the time of one product.

    Returns:
        10⁹ floating-point operations per second.
    """
    raise NotImplementedError("operations, divided by seconds and by 1e9")


def arithmetic_intensity(m: int, n: int, k: int) -> float:
    """Operations per byte that a matrix product cannot avoid moving.

    The compulsory traffic reads each float32 of A and of B once and writes each of C once.
    A schedule that fetches a value again moves more, so this is the largest intensity that a
    schedule can have.

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
    """Compare two callables in turn, so that other load on the machine affects both.

    In each round, for `first` and then for `second`: wait with tvm_practice.measure.quiesce()
    until the threads of the other one sleep (thread pools spin for a tenth of a second after a
    call, on cores that the next one needs), call once untimed to wake its own threads, and call
    once more, timed with time.perf_counter.

    A round gives one ratio, time of `first` over time of `second`. The interval is a bootstrap
    of the median: draw `rounds` of the measured ratios with replacement, take their median, and
    repeat this 2000 times; the 2.5th and 97.5th percentile of these medians are its ends. Leave the
    seed of NumPy's shared generator alone: it belongs to the caller.

    Args:
        first: takes no arguments.
        second: takes no arguments.
        rounds: how many ratios to take.

    Returns:
        The median ratio and the low and high end of its 95% interval. Below 1 `first` is faster;
        if the interval contains 1, the difference is not significant.
    """
    raise NotImplementedError("time both in turn, one ratio per round, and bootstrap the median")


def compile_variants(size: int, *, tile: int = 32) -> dict[str, Any]:
    """Compile the product of two size x size matrices under three schedules of phase 2.

    "naive" leaves the loops as they are; "tiled" has the five loops of `tile`, in their order, and
    the innermost is vectorized; "tiled+parallel" is "tiled" with its outer tile loops fused and
    parallel. Each needs a schedule of its own: a primitive changes the schedule it is called on.

    Args:
        size: rows and columns of A, B and C; any positive number.
        tile: rows and columns of a tile of C; need not divide the size, and may be larger.

    Returns:
        The three modules (tvm.runtime.Module) by name, each with a function "main"(A, B, C) for
        `engines.host_target()`.
    """
    raise NotImplementedError("schedule the product in three ways and compile each")


def parallel_pays_from(
    sizes: Sequence[int], serial_ms: Sequence[float], parallel_ms: Sequence[float]
) -> int | None:
    """The smallest size from which the parallel schedule is always faster.

    A size where it happens to be faster, followed by one where it is not, does not count; as fast
    is not faster.

    Args:
        sizes: matrix sizes, ascending.
        serial_ms: time of the serial schedule at each size.
        parallel_ms: time of the parallel schedule at each size.

    Returns:
        One of `sizes`, or None if the parallel schedule is not faster at the largest or there is
        no size.
    """
    raise NotImplementedError("find the size after which parallel is always the faster one")


main = phase_command("schedule_analysis", "Phase 3: schedule analysis, which is faster and why.")

if __name__ == "__main__":
    main()
