"""Reference answers of phase 3."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


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
    import numpy as np
    import tvm

    evaluator = function.time_evaluator("main", tvm.cpu(), number=number, repeat=repeats)
    return np.array(evaluator(*arguments).results) * 1e3


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
    import time

    import numpy as np

    for _ in range(warmup):
        run()
    samples = np.empty(repeats)
    for i in range(repeats):
        started = time.perf_counter()
        run()
        samples[i] = (time.perf_counter() - started) * 1e3
    return samples


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
    return 2 * m * n * k / (milliseconds * 1e-3) / 1e9


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
    return 2 * m * n * k / (4 * (m * k + k * n + m * n))


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
    import time

    import numpy as np

    from tvm_practice.measure import quiesce

    ratios = np.empty(rounds)
    for i in range(rounds):
        taken = []
        for run in (first, second):
            quiesce()
            run()
            started = time.perf_counter()
            run()
            taken.append(time.perf_counter() - started)
        # Both in one round: a slower machine slows both.
        ratios[i] = taken[0] / taken[1]
    drawn = np.random.default_rng().choice(ratios, (2000, rounds))
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return float(np.median(ratios)), float(low), float(high)


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
    import tvm
    from tvm import te

    from solutions import manual_schedule
    from solutions.te_basics import matmul
    from tvm_practice import engines

    expression = te.create_prim_func(matmul(size, size, size)).with_attr("global_symbol", "main")
    modules = {}
    for name in ("naive", "tiled", "tiled+parallel"):
        schedule = tvm.s_tir.Schedule(expression)
        block = schedule.get_sblock("C")
        if name != "naive":
            manual_schedule.tile(schedule, block, tile, tile)
            manual_schedule.vectorize(schedule, block)
        if name == "tiled+parallel":
            manual_schedule.parallelize(schedule, block)
        modules[name] = tvm.compile(schedule.mod, target=engines.host_target()).mod
    return modules


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
    pays = None
    for size, serial, parallel in zip(sizes, serial_ms, parallel_ms, strict=True):
        if parallel >= serial:  # rules out all sizes up to this one
            pays = None
        elif pays is None:
            pays = size
    return pays
