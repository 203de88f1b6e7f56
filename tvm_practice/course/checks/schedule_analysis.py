"""Phase 3's exercises and how they are graded: structure and values, never speed.

What reads the clock runs on a clock of the grader's own, so that what it should measure is known
exactly and does not depend on the machine.
"""

import contextlib
import gc
import inspect
import itertools
import operator
import re
import time
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import Any
from unittest import mock

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_close,
    expect_type,
    fail,
    fresh_rng,
    varied,
)
from tvm_practice.course.nests import accumulation, expect_axes
from tvm_practice.course.products import expect_product
from tvm_practice.course.simulated_machine import Machine, pair, scripted
from tvm_practice.engines import CLASSIC, CURRENT, host_target
from tvm_practice.viz.loop_nest import loop_nest, paths
from tvm_practice.wording import number_of

PHASE = Phase(
    number=3,
    module="schedule_analysis",
    title="schedule analysis",
    lanes=(CURRENT, CLASSIC),
    builds_on=(
        "te_basics.matmul",
        "manual_schedule.tile",
        "manual_schedule.vectorize",
        "manual_schedule.parallelize",
        "manual_schedule.packed_matmul",
        "manual_schedule.tile_classic",
    ),
    question="At what matrix size does parallelization start helping? Why?",
)

# Packed calls to this name reach the callback that counts them.
_COUNTED = "tvm_practice.schedule_analysis.counted"


def _expect_samples(samples: Any, repeats: int, *, name: str) -> np.ndarray:
    expect(
        isinstance(samples, np.ndarray) and samples.shape == (repeats,),
        expected=f"{name} returns a numpy array of shape ({repeats},), one sample per repeat",
        seen=f"an array of shape {samples.shape}"
        if isinstance(samples, np.ndarray)
        else f"{type(samples).__name__}",
        look="the return statement",
    )
    return np.asarray(samples, dtype="float64")


def _counted_module(slow: Sequence[int] = ()) -> tuple[Any, list[Any], list[float]]:
    """A compiled "main" that calls back into Python: module, arguments, moments of the calls.

    A call takes 2 ms or longer; those with a number in `slow`, counted from 0, 6 ms.
    """
    import tvm
    from tvm import te

    called: list[float] = []

    def counted() -> None:
        called.append(time.perf_counter())
        time.sleep(0.006 if len(called) - 1 in slow else 0.002)

    tvm.register_global_func(_COUNTED, counted, override=True)
    A = te.placeholder((1,), dtype="float32", name="A")
    B = te.extern((1,), [A], lambda _, __: tvm.tirx.call_packed(_COUNTED), dtype="float32")
    primfunc = te.create_prim_func([A, B]).with_attr("global_symbol", "main")
    module = tvm.compile(primfunc, target={"kind": "llvm"}).mod
    arguments = [tvm.runtime.tensor(np.zeros(1, "float32"), tvm.cpu()) for _ in range(2)]
    return module, arguments, called


def _demonstrate_time_function(time_function: Callable[..., np.ndarray]) -> str:
    module, arguments, called = _counted_module()
    samples = time_function(module, arguments, number=7, repeats=5)
    return f"number=7, repeats=5: {len(called)} calls, samples of shape {samples.shape}"


@PHASE.exercise(
    "time_function",
    engine=CURRENT,
    title="time a compiled function with the engine's time_evaluator",
    hints=(
        "A compiled module makes its own stopwatch: module.time_evaluator gives a function that "
        "takes the arguments of the function being timed.",
        "function.time_evaluator('main', tvm.cpu(), number=..., repeat=...) is that stopwatch. "
        "Call it with *arguments; its result has .results, a sequence of `repeat` times in "
        "seconds, each already divided by `number`.",
        "evaluator = function.time_evaluator('main', tvm.cpu(), number=number, repeat=repeats); "
        "return np.array(evaluator(*arguments).results) * 1e3.",
    ),
    looks_like="number=7, repeats=5: 36 calls, samples of shape (5,)",
    demonstrate=_demonstrate_time_function,
)
def check_time_function(time_function: Callable[..., np.ndarray]) -> None:
    number, repeats = draw_distinct(2, range(3, 9))
    # After a first call the second sample: sorted in either direction, another one is there.
    module, arguments, called = _counted_module(slow=range(number + 1, 2 * number + 1))
    measured: list[Any] = []
    asked: list[dict[str, Any]] = []
    make_evaluator = type(module).time_evaluator

    def recording(self: Any, *args: Any, **options: Any) -> Any:
        asked.append(inspect.signature(make_evaluator).bind(self, *args, **options).arguments)
        evaluate = make_evaluator(self, *args, **options)

        def evaluated(*given: Any) -> Any:
            measured.append(evaluate(*given))
            return measured[-1]

        return evaluated

    with mock.patch.object(type(module), "time_evaluator", recording):
        returned = time_function(module, arguments, number=number, repeats=repeats)
    expect(
        bool(measured),
        expected="the engine's time_evaluator measures the time",
        seen="it was not called",
        look="function.time_evaluator('main', tvm.cpu(), ...): timed from Python, each call is "
        "about a microsecond longer, which is more than a small function takes",
    )
    expect(
        np.shape(returned) != (number,),
        expected=f"a sample for each of repeats={repeats}, of number={number} calls each",
        seen=f"{number_of(number, 'sample')}",
        look="number= and repeat= of time_evaluator, which are exchanged",
    )
    samples = _expect_samples(returned, repeats, name="time_function")
    least = asked[-1].get("min_repeat_ms", 0)
    expect(
        least == 0,
        expected=f"{number} calls per sample, even if they are short",
        seen=f"min_repeat_ms={least}, which repeats short calls more often",
        look="only number= of time_evaluator sets how many",
    )
    expect(
        len(called) > number * repeats,
        expected=f"{number} calls for each of {repeats} samples, and at least one before them",
        seen=f"{number_of(len(called), 'call')}",
        look="number= and repeat= of time_evaluator",
    )
    expect(
        len(called) <= number * (repeats + 1) + 1,
        expected=f"no more than {number} calls for each of {repeats} samples, and one before them",
        seen=f"{number_of(len(called), 'call')}",
        look="one time_evaluator with number=number and repeat=repeats; min_repeat_ms would repeat "
        "the calls more often: leave it out",
    )
    _expect_milliseconds(samples, number)
    expect_close(
        samples,
        np.array(measured[-1].results) * 1e3,
        what="the samples",
        look="the evaluator's .results as they are, in their order, in milliseconds",
        whose="the evaluator",
        atol=1e-9,
        rtol=1e-6,
    )
    asked_for = [(1, 1), (30_000, 3), (3, 30_000), *varied(number, repeats)]
    for at, (calls, samples_wanted) in enumerate(asked_for):
        _expect_evaluated(time_function, module, calls, samples_wanted, at % 6 or 5)
    again = time_function(module, arguments, number=number, repeats=repeats)
    _expect_arrays_apart(samples, again)


def _expect_evaluated(
    time_function: Callable[..., np.ndarray],
    module: Any,
    number: int,
    repeats: int,
    count: int,
) -> None:
    """The evaluator is asked for so much, and what it answers is returned; nothing is run.

    The function that is timed takes `count` arguments. A call to warm up does nothing.
    """
    import tvm

    # Of other numbers of dimensions and other sizes: no order but the given one is the given one.
    shapes = draw_distinct(count, [(2,), (3, 4), (1, 1, 1), (7,), (2, 3, 2), (1, 9)])
    arguments = [tvm.runtime.tensor(np.zeros(each, "float32")) for each in shapes]
    seconds = 10 ** fresh_rng().uniform(-8, 2, repeats)
    asked: list[tuple[int, int]] = []
    further: dict[str, Any] = {}
    make_evaluator = type(module).time_evaluator
    signature = inspect.signature(make_evaluator)

    def instead(*given: Any, **options: Any) -> Callable[..., Any]:
        bound = signature.bind(*given, **options)
        bound.apply_defaults()
        name, device = (value for _, value in list(bound.arguments.items())[1:3])
        expect(
            name == "main" and device == tvm.cpu(),
            expected='the function "main" timed on tvm.cpu(), whatever its arguments are',
            seen=f"{name!r} on {device}",
            look='the arguments of time_evaluator: "main" and the device come first',
        )
        asked.append((bound.arguments["number"], bound.arguments["repeat"]))
        usual = {name: each.default for name, each in list(signature.parameters.items())[3:]}
        further.update(
            (name, value)
            for name, value in bound.arguments.items()
            if name in usual.keys() - {"number", "repeat"} and value != usual[name]
        )

        def evaluate(*on: Any) -> Any:
            same = len(on) == len(arguments) and all(map(operator.is_, on, arguments))
            expect(
                same,
                expected="the function timed on the arguments given, in their order",
                seen="other ones",
                look="evaluator(*arguments): other values and other memory take other times",
            )
            return tvm.runtime.module.BenchmarkResult(tuple(map(float, seconds)))

        return evaluate

    untimed: Any = {
        "__call__": lambda self, *on: None,
        "__getitem__": lambda self, name: lambda *on: None,
    }
    with mock.patch.multiple(type(module), time_evaluator=instead, **untimed):
        samples = time_function(module, arguments, number=number, repeats=repeats)
    expect(
        asked == [(number, repeats)],
        expected=f"one time_evaluator with number={number} and repeat={repeats}",
        seen=", ".join(f"number={each[0]} and repeat={each[1]}" for each in asked) or "none",
        look="number= and repeat= of time_evaluator, passed on as given",
    )
    expect(
        not further,
        expected="time_evaluator's other settings at their defaults",
        seen=", ".join(f"{name}={value!r}" for name, value in further.items()),
        look="settings beside number= and repeat=: they change what is measured, by emptied "
        "caches, by pauses or by further calls",
    )
    expect_close(
        _expect_samples(samples, repeats, name="time_function"),
        seconds * 1e3,
        what="the samples",
        look="the evaluator's .results as they are, in their order, in milliseconds",
        whose="the evaluator",
        atol=0,
        rtol=1e-6,
    )


def _expect_milliseconds(samples: np.ndarray, number: int) -> None:
    # Each call sleeps for 2 ms: never less, and with any other unit a thousandfold off.
    low, high = float(samples.min()), float(samples.min()) / number
    expect(
        low >= 1.99,
        expected="milliseconds per call: 2 or more of a function that sleeps for 2 ms",
        seen=f"{low:.3g}",
        look="the unit of .results is the second"
        if not 1.99 <= low * number < 4
        else f".results, which are per call: the evaluator has divided by number={number} already",
    )
    expect(
        high < 2 and low < 200,
        expected="milliseconds per call: a little over 2 of a function that sleeps for 2 ms",
        seen=f"{low:.3g} with number={number}",
        look="the unit, and .results: each is already divided by `number`",
    )


def _demonstrate_sample_latency(sample_latency: Callable[..., np.ndarray]) -> str:
    machine = Machine()
    with machine.in_charge_of_time(sample_latency):
        samples = sample_latency(scripted(machine, [9, 5, 3, 2, 2, 2]), warmup=2, repeats=4)
    return f"calls of 9, 5, 3, 2, 2 and 2 ms, warmup=2: samples {np.round(samples, 1).tolist()}"


@PHASE.exercise(
    "sample_latency",
    engine=CURRENT,
    title="time single calls of anything, after a warm-up",
    hints=(
        "Two loops: one that only calls, `warmup` times, and one that calls and times, `repeats` "
        "times.",
        "time.perf_counter() is in seconds and means something only as a difference: read it "
        "directly before and directly after the call. Keep each difference, not their sum.",
        "for _ in range(warmup): run(). Then for i in range(repeats): started = "
        "time.perf_counter(); run(); samples[i] = (time.perf_counter() - started) * 1e3.",
    ),
    looks_like="calls of 9, 5, 3, 2, 2 and 2 ms, warmup=2: samples [3.0, 2.0, 2.0, 2.0]",
    demonstrate=_demonstrate_sample_latency,
)
def check_sample_latency(sample_latency: Callable[..., np.ndarray]) -> None:
    rng = fresh_rng()
    drawn = int(rng.integers(2, 6)), int(rng.integers(7, 15))
    for warmup, repeats, scale, longest in (
        (*drawn, 1.0, 30),
        (*drawn, 1.0, 3e6),  # a call in which the machine slept
        (0, 1, 1.0, 30),
        (1, 1, 0.1, 30),
        (1, 2, 1e3, 30),
        (3, 700, 1e3, 1e4),
        (150, 3, 1.0, 30),
        (16, 16, 0.01, 30),
        (2, 300, 1.0, 1e5),
        (11_000, 31_000, 1.0, 30),
        (2, 5, 1e7, 30),  # calls of hours
        (2, 6, 1e-4, 30),  # shorter than a microsecond
    ):
        machine = Machine()
        slow, steady = rng.uniform(50, 90, warmup) * scale, rng.uniform(0.5, 3, repeats) * scale
        steady[repeats // 2] = longest * scale  # far off, and a sample like the others
        with machine.in_charge_of_time(sample_latency):
            run = scripted(machine, [*slow, *steady])
            returned = sample_latency(run, warmup=warmup, repeats=repeats)
        samples = _expect_samples(returned, repeats, name="sample_latency")
        expect(
            len(machine.calls) == warmup + repeats,
            expected=f"{warmup} + {repeats} calls for warmup={warmup}, repeats={repeats}",
            seen=f"{number_of(len(machine.calls), 'call')}",
            look="the calls in each of the two loops, and their number",
        )
        expect(
            samples.max() < 1.3 * longest * scale,
            expected=f"the first {warmup} calls, which are slow, left out of the samples",
            seen=f"a sample of {samples.max():.3g}, where the calls after the warm-up take up to "
            f"{steady.max():.3g} ms",
            look="which calls are timed; the clock, which is read anew before each; and the unit, "
            "the millisecond",
        )
        expect(
            len(set(np.round(steady, 2))) == 1
            or np.allclose(samples, steady, rtol=1e-3)
            or not np.allclose(np.sort(samples), np.sort(steady), rtol=1e-3),
            expected="the samples in the order of the calls",
            seen="the right samples in another order",
            look="a statement that sorts or reverses them",
        )
        expect_close(
            samples,
            steady,
            what="the samples in milliseconds",
            whose="the clock",
            look="time.perf_counter() directly before and after each call, in seconds, times 1e3",
            atol=4e-4,  # three looks at the clock
            rtol=1e-6,
        )
        looks = samples - steady  # as many at each call, whatever it takes
        expect(
            # A clock that counts nanoseconds is off by one at most in each of four looks.
            bool((np.abs(looks - looks[0]) <= 4e-6 + 1e-9 * steady).all()),
            expected="the samples as the clock gives them, to a few nanoseconds",
            seen=f"some are off by {np.ptp(looks):.3g} ms",
            look="round and float32: they take digits from times of microseconds",
        )
        expect(
            machine.looks >= 2 * repeats,
            expected="the clock read before each call and after it, so that nothing else is timed",
            seen=f"{number_of(machine.looks, 'reading')} for {number_of(repeats, 'sample')}",
            look="a reading that ends one sample and begins the next: read the clock again",
        )
    _expect_samples(sample_latency(lambda: None, warmup=2, repeats=0), 0, name="sample_latency")
    _expect_each_call_warmed_up(sample_latency)
    one, other = (sample_latency(lambda: None, warmup=0, repeats=5) for _ in range(2))
    _expect_arrays_apart(one, other)
    for failing in (1, 3):  # in the warm-up, and after it
        _expect_failure_told(sample_latency, failing)


def _expect_each_call_warmed_up(sample_latency: Callable[..., np.ndarray]) -> None:
    """The same function, measured again, is warmed up again."""
    machine = Machine()
    with machine.in_charge_of_time(sample_latency):
        run = scripted(machine, [1.0])
        for warmup, repeats in ((3, 4), (2, 3), (3, 4)):
            before = len(machine.calls)
            sample_latency(run, warmup=warmup, repeats=repeats)
            calls = len(machine.calls) - before
            expect(
                calls == warmup + repeats,
                expected=f"{warmup} + {repeats} calls of a function that was measured before",
                seen=number_of(calls, "call"),
                look="a warm-up that is left out: every measurement begins with its own",
            )


def _expect_arrays_apart(one: np.ndarray, other: np.ndarray) -> None:
    """The samples of one call are not overwritten by the next."""
    expect(
        not np.shares_memory(one, other),
        expected="the samples of an earlier call as they were",
        seen="the same array, returned by both calls: the second overwrote the first",
        look="the array that is kept between calls; make one in each call",
    )


def _expect_failure_told(sample_latency: Callable[..., np.ndarray], failing: int) -> None:
    """A call that raises is no sample; Python's collector is left as it was."""
    numbers = itertools.count(1)

    def run() -> None:
        if next(numbers) == failing:
            raise LookupError

    try:
        sample_latency(run, warmup=2, repeats=3)
    except LookupError:
        return
    finally:
        collects = gc.isenabled()
        gc.enable()
        expect(
            collects,
            expected="Python's garbage collector switched on again",
            seen="it is off after the call",
            look="gc.disable",
        )
    raise fail(
        f"the exception of call {failing}, as it was raised",
        "samples, as if no call had failed",
        "the try around a call: let the exception through",
    )


def _expect_number(seen: Any, want: float, *, what: str, look: str) -> None:
    number = isinstance(seen, int | float | np.number) and not isinstance(seen, bool)
    expect(
        number and bool(np.isclose(float(seen), want, rtol=1e-9, atol=0)),
        expected=f"{what} is {want:.12g}",
        seen=f"{float(seen):.12g}" if number else f"{type(seen).__name__}",
        look=look,
    )


def _draw_sizes() -> list[tuple[int, int, int]]:
    """m, n and k: some of them drawn, a single element, large ones, more than 2³¹ operations."""
    rng = fresh_rng()
    drawn = [tuple(int(each) for each in rng.integers(3, 3000, 3)) for _ in range(3)]
    long = [(1, 70_001, 1), (90_001, 1, 3), (2, 1, 80_001), (3001, 3011, 3023)]
    m, n, k = (int(each) for each in rng.integers(10**7, 10**8, 3))
    long.append((m, n, k))
    same, other = draw_distinct(2, range(30, 900))
    equal = [(same, same, other), (same, other, same), (other, same, same)]
    return [*drawn, (1, 1, 1), *equal, *long]  # type: ignore[list-item]


@PHASE.exercise(
    "gflop_per_second",
    engine=CURRENT,
    title="the rate of a matrix product",
    hints=(
        "How many elements does C have, how many products are added up for each, and how many "
        "operations is one of these steps?",
        "m·n elements of k steps each, and a step is a multiplication and an addition: 2·m·n·k "
        "operations. Divide by seconds, then by 10⁹.",
        "return 2 * m * n * k / (milliseconds * 1e-3) / 1e9",
    ),
    looks_like="1024 x 1024 x 1024 in 10 ms: 214.7 GFLOP/s",
    demonstrate=lambda rate: (
        f"1024 x 1024 x 1024 in 10 ms: {rate(1024, 1024, 1024, 10):.1f} GFLOP/s"
    ),
)
def check_gflop_per_second(gflop_per_second: Callable[..., float]) -> None:
    rng = fresh_rng()
    for m, n, k in _draw_sizes():
        milliseconds = 1e-5 if m == 1 else float(10 ** rng.uniform(-5, 5))
        milliseconds = 1e7 if m == 90_001 else milliseconds  # hours
        _expect_number(
            gflop_per_second(m, n, k, milliseconds),
            2e-6 * m * n * k / milliseconds,
            what=f"the rate of m={m}, n={n}, k={k} in {milliseconds:.4g} ms",
            look="one addition and one multiplication for each of the m·n·k steps; "
            "milliseconds, not seconds; 10⁹; Python's own numbers, not float32",
        )
        for steps, taken in ((k, 3 * milliseconds), (2 * k, milliseconds)):
            _expect_number(
                gflop_per_second(m, n, steps, taken),
                2e-6 * m * n * steps / taken,
                what=f"the rate of m={m}, n={n}, k={steps} in {taken:.4g} ms, after another one",
                look="results kept from an earlier call: sizes and time are the arguments'",
            )


@PHASE.exercise(
    "arithmetic_intensity",
    engine=CURRENT,
    title="operations per byte that must be moved",
    hints=(
        "Two numbers: the operations, as in gflop_per_second, and the bytes of three matrices, "
        "each moved once.",
        "A has m·k elements, B has k·n, C has m·n; a float32 has 4 bytes. C is written and not "
        "read.",
        "return 2 * m * n * k / (4 * (m * k + k * n + m * n))",
    ),
    looks_like="1024 x 1024 x 1024: 170.67 FLOP/byte; 1024 x 1 x 1024: 0.50 FLOP/byte",
    demonstrate=lambda intensity: (
        f"1024 x 1024 x 1024: {intensity(1024, 1024, 1024):.2f} FLOP/byte; "
        f"1024 x 1 x 1024: {intensity(1024, 1, 1024):.2f} FLOP/byte"
    ),
)
def check_arithmetic_intensity(arithmetic_intensity: Callable[..., float]) -> None:
    drawn = _draw_sizes()
    # Others have as many operations: a result may be kept from an earlier call.
    for m, n, k in (*drawn, *((m * k, n, 1) for m, n, k in drawn)):
        _expect_number(
            arithmetic_intensity(m, n, k),
            m * n * k / 2 / (m * k + k * n + m * n),
            what=f"the intensity of m={m}, n={n}, k={k}",
            look="bytes and not elements (4 per float32); A, B and C count once each, however "
            "often the loops read them",
        )


Compare = Callable[..., tuple[float, float, float]]


def _demonstrate_compare(compare_interleaved: Compare) -> str:
    machine = Machine()
    first, second = pair(machine, lambda i: 0.6 * 1.04**i, lambda i: 0.2 * 1.04**i)
    with machine.in_charge_of_time(compare_interleaved):
        ratio, low, high = compare_interleaved(first, second, rounds=12)
    return f"0.6 ms and 0.2 ms on a machine that slows down: {ratio:.2f} [{low:.2f}, {high:.2f}]"


@PHASE.exercise(
    "compare_interleaved",
    engine=CURRENT,
    title="compare two callables in turn, as a ratio with its interval",
    hints=(
        "One loop over rounds, and in it both callables, one after the other. Each round ends "
        "with one ratio; the lists of times are not needed afterwards.",
        "Before each timed call: measure.quiesce() waits for the other one's threads to sleep, "
        "one untimed call wakes its own. For the interval, draw with replacement: "
        "np.random.default_rng().choice(ratios, (2000, rounds)).",
        "ratios[i] = taken[0] / taken[1], where taken is filled by: quiesce(); run(); started = "
        "time.perf_counter(); run(); time.perf_counter() - started. The interval is "
        "np.percentile(np.median(drawn, axis=1), [2.5, 97.5]).",
    ),
    looks_like="0.6 ms and 0.2 ms on a machine that slows down: 3.00 [3.00, 3.00]",
    demonstrate=_demonstrate_compare,
)
def check_compare_interleaved(compare_interleaved: Compare) -> None:
    rng = fresh_rng()
    _check_drifting(compare_interleaved, int(rng.integers(30, 40)), float(rng.uniform(2, 4)))
    _check_intervals(compare_interleaved, rng)
    for ratios, ends in (
        ([3.0], (3, 3)),
        ([1.0, 2.0], (1, 2)),
        ([1.0, 2.0, 4.0], (1, 4)),
        ([1.0, 2.0, 4.0, 8.0], (1, 8)),
        ([1.0, 3.0, 3.0, 3.0, 3.0, 3.0], (2, 3)),  # three of six draws are the first: 1 in 19
    ):
        _check_few(compare_interleaved, rng.permutation(ratios).tolist(), ends)
    for rounds in (9, 31):  # without any of those of 2, the median is 1.5
        _check_few(compare_interleaved, [2.0 - i % 2 for i in range(rounds)], (1, 2))
    for far in (1e-4, 1e6):  # no ratio is too large, or too small
        _check_few(compare_interleaved, [far, 2 * far], (far, 2 * far), milliseconds=1e5)
    _check_draws(compare_interleaved, rng)
    _check_medians(compare_interleaved, rng)
    for rounds in (1, 2, 3, 130):
        _check_drifting(compare_interleaved, rounds, float(rng.uniform(0.2, 0.5)))
    _check_second_call(compare_interleaved)
    for failing in (1, 2, 6, 8):  # of four calls in a round
        _expect_failure_raised(compare_interleaved, failing)


def _check_second_call(compare_interleaved: Compare) -> None:
    """The second call of each is timed, also where the first one was faster."""
    machine, numbers = Machine(), itertools.count()

    def first() -> None:
        machine.call("first", 80.0 if next(numbers) % 2 else 20.0, pool=True)

    with machine.in_charge_of_time(compare_interleaved):
        ratio, _, _ = compare_interleaved(
            first, lambda: machine.call("second", 40.0, pool=True), rounds=8
        )
    expect(
        bool(np.isclose(ratio, 2, rtol=0.05)),
        expected="a ratio of 2 where the second calls take 80 ms and 40 ms, and the first call "
        "takes 20 ms",
        seen=f"{ratio:.3g}",
        look="the untimed call is not measured: the clock is read around the second one alone",
    )


def _expect_failure_raised(compare_interleaved: Compare, failing: int) -> None:
    """A call that raises has no time."""
    numbers = itertools.count(1)
    machine = Machine()

    def run() -> None:
        machine.call("run", 1.0, pool=True)
        if next(numbers) == failing:
            raise LookupError

    try:
        with machine.in_charge_of_time(compare_interleaved):
            compare_interleaved(run, run, rounds=2)
    except LookupError:
        return
    raise fail(
        f"the exception of call {failing}, as it was raised",
        "a ratio, as if no call had failed",
        "the try around a call: let the exception through",
    )


def _check_few(
    compare_interleaved: Compare,
    ratios: Sequence[float],
    ends: Sequence[float],
    milliseconds: float = 10.0,
) -> None:
    """Of few rounds one knows the interval: its ends have the same value in each bootstrap.

    Of four rounds, 1 in 20 resampled medians is the smallest ratio, 1 in 20 the largest: three of
    four draws give the same ratio so often, if they are with replacement and as many as the rounds.
    """
    machine = Machine()
    first, second = pair(
        machine, lambda i: milliseconds * ratios[i % len(ratios)], lambda i: milliseconds
    )
    with machine.in_charge_of_time(compare_interleaved):
        ratio, low, high = compare_interleaved(first, second, rounds=len(ratios))
    told = ", ".join(f"{each:g}" for each in sorted(ratios))
    _expect_median(ratio, ratios, told)
    expect(
        bool(np.allclose([low, high], ends, rtol=0.01)),
        expected=f"an interval from {ends[0]:g} to {ends[1]:g} for rounds with the ratios {told}",
        seen=f"from {low:.3g} to {high:.3g}",
        look="each of the 2000 draws: as many ratios as there are rounds, with replacement, so "
        "that a ratio can be drawn three times; and the median of an even number of ratios",
    )


def _expect_median(ratio: float, ratios: Sequence[float] | np.ndarray, told: str) -> None:
    expect(
        bool(np.isclose(ratio, np.median(ratios), rtol=0.01)),
        expected=f"{np.median(ratios):.3g}, the median of the ratios {told}",
        seen=f"{ratio:.3g}",
        look="the median of the ratios themselves, not of the resampled ones",
    )


def _noise(rng: np.random.Generator, rounds: int) -> np.ndarray:
    """What so many rounds are multiplied by, in a drawn order, a seventh of them far off.

    They lie evenly: where drawn ones lie close together by chance, the 2.5th percentile of
    resampled medians is the 5th as well. Any rounds after them repeat them.
    """
    quantiles = (np.arange(rounds) + 0.5) / rounds
    noise = np.exp([NormalDist(0, 0.3).inv_cdf(each) for each in quantiles])
    rng.shuffle(noise)
    noise[::7] *= 40
    return noise


def _check_drifting(compare_interleaved: Compare, rounds: int, slower: float) -> None:
    """On a machine that gets slower while it is measured, each round's ratio is the same."""
    machine = Machine()
    first, second = pair(machine, lambda i: 0.3 * slower * 1.03**i, lambda i: 0.3 * 1.03**i)
    with machine.in_charge_of_time(compare_interleaved):
        answer = compare_interleaved(first, second, rounds=rounds)
    expect(
        isinstance(answer, tuple | list) and len(answer) == 3,
        expected="the tuple (median, low, high)",
        seen=f"{answer!r}"[:80],
        look="the return statement",
    )
    ratio, low, high = (float(each) for each in answer)
    _expect_in_turn(machine, rounds)
    expect(
        not np.isclose(ratio, 1 / slower, rtol=0.1),
        expected=f"time of first over time of second, {slower:.3g}",
        seen=f"{ratio:.3g}, which is second over first",
        look="the division: first over second",
    )
    expect(
        bool(np.isclose(ratio, slower, rtol=0.1)),
        expected=f"a ratio of {slower:.3g} for {0.3 * slower:.3g} ms against 0.3 ms",
        seen=f"{ratio:.3g}; here a call takes 12 ms longer while the other one's threads spin, "
        "and 2 ms longer while its own sleep",
        look="measure.quiesce(), then one untimed call, then the timed one between two readings "
        "of time.perf_counter()",
    )
    expect(
        low <= high,
        expected="(median, low, high), the lower end of the interval first",
        seen=f"({ratio:.7g}, {low:.7g}, {high:.7g})",
        look="the return statement",
    )
    expect(
        bool((np.diff([slower * 0.9, low, ratio, high, slower * 1.1]) >= -1e-9).all()),
        expected=f"an interval close around {slower:.3g}: the machine got {1.03**rounds:.2g} "
        "times slower, but each round's ratio stayed the same",
        seen=f"[{low:.7g}, {high:.7g}] around {ratio:.7g}",
        look="divide the times of one round by each other, and only then take medians; draw other "
        "rounds for each of the medians; np.percentile takes 2.5 and 97.5",
    )
    wanted = ["quiesce", "first", "first", "quiesce", "second", "second"] * rounds
    expect(
        machine.events[: len(wanted)] == wanted,
        expected=f"in each of {rounds} rounds: quiesce, first, first, quiesce, second, second",
        seen=", ".join(machine.events[:14]) + (", …" if len(machine.events) > 14 else ""),
        look="measure.quiesce() before the untimed call of each, first before second",
    )


def _expect_in_turn(machine: Machine, rounds: int) -> None:
    calls = {name: machine.calls.count(name) for name in ("first", "second")}
    expect(
        min(calls.values()) >= rounds,
        expected=f"at least {rounds} calls of each for rounds={rounds}",
        seen=f"{calls['first']} of first, {calls['second']} of second",
        look="the loop over rounds",
    )
    expect(
        max(calls.values()) <= 2 * rounds,
        expected=f"two calls of each in a round, {2 * rounds} for rounds={rounds}",
        seen=f"{calls['first']} of first, {calls['second']} of second",
        look="a round: one untimed call and one timed one of each",
    )
    changes = sum(a != b for a, b in itertools.pairwise(machine.calls))
    expect(
        changes >= 2 * rounds - 1,
        expected=f"first and second in turn: {2 * rounds - 1} changes in {rounds} rounds",
        seen=f"{changes} change{'s' if changes != 1 else ''} from one to the other",
        look="one loop over rounds with both in it; in two loops, a change of the machine "
        "between them would look like a difference",
    )


def _check_intervals(compare_interleaved: Compare, rng: np.random.Generator) -> None:
    """The ends are the 2.5th and 97.5th percentile of as many medians as the docstring says.

    They are random. Of 2000 medians such a percentile is off by 0.35 percentage points, one
    standard error, and of 100 medians by 1.6.
    """
    noise = _noise(rng, 600)
    medians = np.median(fresh_rng().choice(noise, (10_000, len(noise))), axis=1)
    off = []
    for _ in range(6):
        slower = float(rng.uniform(2, 4))
        # In another order an answer that seeds its own generator draws other ratios.
        low, high = _check_noisy(compare_interleaved, slower, rng.permutation(noise))
        for end, seen, percent in (("low", low / slower, 2.5), ("high", high / slower, 97.5)):
            below = 50 * float(np.mean(medians < seen) + np.mean(medians <= seen))
            off.append(below - percent)
            expect(
                abs(off[-1]) < 2.2,  # a percentile next to a gap between ratios is off by more
                expected=f"the {end} end of a 95% interval, about "
                f"{slower * np.percentile(medians, percent):.4g}",
                seen=f"{slower * seen:.4g}, which {below:.1f}% of resampled medians are below",
                look="np.percentile(medians, [2.5, 97.5]) of 2000 medians, each of as many ratios "
                "as there are rounds, drawn with replacement",
            )
    inward = float(np.mean(np.multiply(off, [1, -1] * (len(off) // 2))))
    expect(
        abs(inward) < 0.85,
        expected="each end of a 95% interval at the 2.5th or the 97.5th percentile of the medians",
        seen=f"on average at percentile {2.5 + inward:.1f} or {97.5 - inward:.1f}",
        look="np.percentile(medians, [2.5, 97.5]) of 2000 medians",
    )
    typical = float(np.sqrt(np.mean(np.square(off))))
    expect(
        typical < 0.85,
        expected="ends within about 0.35 percentage points of 2.5 and 97.5, as 2000 resampled "
        "medians give them",
        seen=f"ends that are typically {typical:.2f} percentage points off",
        look="how many medians np.percentile is given: 2000",
    )


def _check_draws(compare_interleaved: Compare, rng: np.random.Generator) -> None:
    """How often an end is the smallest or the largest ratio tells how many medians there are.

    Of 25 rounds, eight have the smallest ratio. It is most of the draws in 3.0% of the medians, so
    the 2.5th percentile of 2000 medians is it but in one of eleven calls. Of 500 medians, it is
    another ratio in one of three. So it is at the other end.
    """
    calls, another = 60, 0  # a loop of 2000 draws takes 0.15 s
    for at in range(calls):
        # With other rounds an answer that seeds its own generator draws others, too.
        rounds, same = ((9, 2), (25, 8), (36, 13), (37, 13))[at % 4]
        ratios = rng.permutation(np.repeat([1.0, 2.0, 4.0], [same, rounds - 2 * same, same]))
        _, low, high = _compared(compare_interleaved, ratios)
        another += (low > 1.01) + (high < 3.99)
    expect(
        another <= 26,  # 11 of 2000 medians, with a standard deviation of 3; 40 of 500
        expected=f"about 11 of {2 * calls} ends that are neither the smallest nor the largest "
        "ratio, as 2000 resampled medians give them",
        seen=f"{another} of them",
        look="how many medians np.percentile is given: 2000 in each call",
    )


def _check_medians(compare_interleaved: Compare, rng: np.random.Generator) -> None:
    """The median is that of the ratios, not of the resampled medians, which differs by chance.

    Of 400 ratios the two in the middle, 2 and 3, are there once. The median of 1.6% of the
    resamples is theirs, and that of the others is far off, below it or above. So the median of 2000
    such medians is 2.5 in half of the calls, and in all of them in one of a million checks.
    """
    half, calls = 200, 22
    for _ in range(calls):
        low, high = rng.choice([0.1, 0.3, 1.0]), rng.choice([7.0, 20.0, 60.0])
        ratios = rng.permutation([*[low] * (half - 1), 2.0, 3.0, *[high] * (half - 1)])
        ratio, _, _ = _compared(compare_interleaved, ratios)
        told = f"2 and 3, {half - 1} of {low:g}, and {half - 1} of {high:g}"
        _expect_median(ratio, ratios, told)


def _compared(compare_interleaved: Compare, ratios: np.ndarray) -> tuple[float, float, float]:
    """What is returned of rounds with these ratios, whose calls take seconds."""
    machine = Machine(waits=False)
    first, second = pair(machine, lambda i: 1e4 * ratios[i % len(ratios)], lambda i: 1e4)
    with machine.in_charge_of_time(compare_interleaved):
        return compare_interleaved(first, second, rounds=len(ratios))


def _check_noisy(
    compare_interleaved: Compare, slower: float, noise: np.ndarray
) -> tuple[float, float]:
    """The median is that of the ratios, a few of which are far off. Returns its interval.

    In each third round both are slow: the ratio of the medians is another one.
    """
    machine, rounds = Machine(), len(noise)
    both = np.where(np.arange(rounds) % 3 == 0, 4.0, 1.0)
    first, second = pair(
        machine,
        lambda i: slower * noise[i % rounds] * both[i % rounds],
        lambda i: both[i % rounds],
    )
    with machine.in_charge_of_time(compare_interleaved):
        ratio, low, high = compare_interleaved(first, second, rounds=rounds)
    ratios = slower * noise
    spread = float(np.ptp(np.percentile(ratios, [2.5, 97.5])))
    median = float(np.median(ratios))
    expect(
        bool(np.isclose(ratio, median, rtol=2e-3)),
        expected=f"{median:.5g}, the median of {rounds} ratios, a seventh of them far off",
        seen=f"{ratio:.5g}",
        look="a ratio for each round, then their median: neither their mean nor the ratio of the "
        "two medians",
    )
    expect(
        low < high,
        expected="an interval with two different ends when the rounds differ",
        seen=f"{low:.3g} to {high:.3g}",
        look="draw the resamples with replacement: without it, each holds the same rounds",
    )
    expect(
        low < ratio < high,
        expected="low < median < high when the rounds differ",
        seen=f"{low:.3g}, {ratio:.3g}, {high:.3g}",
        look="the two percentiles, 2.5 and 97.5, of the resampled medians",
    )
    expect(
        high - low < 0.6 * spread,
        expected="an interval of the median, which narrows as rounds are added",
        seen=f"[{low:.3g}, {high:.3g}], as wide as the middle 95% of the ratios themselves",
        look="resample the ratios, take the median of each resample, then percentiles of these",
    )
    return low, high


def _code(module: Any) -> str:
    """A module's LLVM text without the addresses in it, which differ from run to run."""
    return re.sub(r"0x[0-9a-f]+", "", module.inspect_source("ll"))


def _has_parallel_launch(module: Any) -> bool:
    return "TVMBackendParallelLaunch" in _code(module)


def _demonstrate_variants(compile_variants: Callable[..., dict[str, Any]]) -> str:
    return "\n".join(
        f"{name}: {'launches' if _has_parallel_launch(module) else 'no'} parallel tasks"
        for name, module in compile_variants(64).items()
    )


@PHASE.exercise(
    "compile_variants",
    engine=CURRENT,
    title="compile the naive, the tiled and the tiled+parallel product",
    hints=(
        "The declaration is phase 1's matmul, the steps are phase 2's tile, vectorize and "
        "parallelize: yours are in tvm_practice.manual_schedule, the reference ones in "
        "solutions.manual_schedule.",
        "te.create_prim_func(matmul(size, size, size)).with_attr('global_symbol', 'main') is "
        "what tvm.s_tir.Schedule takes; make a Schedule for each variant, because primitives "
        "change it in place. The block is schedule.get_sblock('C').",
        "For each name: schedule = tvm.s_tir.Schedule(primfunc); manual_schedule.tile(schedule, "
        "block, tile, tile) and .vectorize(schedule, block) unless naive; .parallelize(schedule, "
        "block) for the last; tvm.compile(schedule.mod, target=engines.host_target()).mod.",
    ),
    looks_like="""
        naive: no parallel tasks
        tiled: no parallel tasks
        tiled+parallel: launches parallel tasks
    """,
    demonstrate=_demonstrate_variants,
)
def check_compile_variants(compile_variants: Callable[..., dict[str, Any]]) -> None:
    (size,) = draw_distinct(1, [67, 71, 73, 79, 83, 89])
    (tile,) = draw_distinct(1, [8, 16, 24, 40])
    modules: dict[str, Any] = {}
    for arguments, options in (((size,), {}), ((size,), {"tile": tile}), ((5,), {"tile": 8})):
        earlier = modules
        with _compiled() as nests:
            modules = compile_variants(*arguments, **options)
        expect(
            modules is not earlier,
            expected="a dictionary of its own from each call",
            seen="that of the call before, whose modules were replaced",
            look="the dictionary that is kept between calls",
        )
        names = ["naive", "tiled", "tiled+parallel"]
        expect_type(modules, dict, f"a dictionary with the keys {', '.join(names)}")
        expect(
            sorted(modules) == names,
            expected=f"a dictionary with the keys {', '.join(names)}",
            seen=f"the keys {', '.join(map(str, modules))}",
            look="the dictionary that is returned",
        )
        for name in names:
            # The second time they differ in their tiles alone, which `nests` tells.
            if "tile" not in options or name == "tiled":
                _expect_variant(name, modules[name], *arguments)
        _expect_nests(nests, arguments[0], options.get("tile", 32))
    expect(
        _code(modules["naive"]) != _code(modules["tiled"]),
        expected="naive and tiled are different code",
        seen="the same code twice",
        look="tile and vectorize for tiled, neither for naive",
    )
    few = [(1, 32), (1, 1), (tile, tile), (2 * tile, 3), (255, 32), (2048, 32), (3001, 260)]
    for each in (*few, *varied(size, tile, alone=True, small=True)):
        _expect_given_to_compiler(compile_variants, *each)


# Of products that an answer may run itself: a naive one takes a tenth of a second.
_LARGEST_RUN = 300


class _NotCompiled:
    """What a compiler was given, in place of a module; its functions do nothing."""

    def __init__(self, given: Any, target: Any) -> None:
        self.given = given
        self.target = target

    @property
    def mod(self) -> "_NotCompiled":
        return self

    def jit(self, *_: Any, **__: Any) -> "_NotCompiled":
        return self

    def implements_function(self, *_: Any) -> bool:
        return True

    def inspect_source(self, *_: Any) -> str:
        return ""

    def __getitem__(self, name: str) -> Callable[..., None]:
        return lambda *_: None

    def __call__(self, *_: Any) -> None: ...

    def time_evaluator(self, *_: Any, **__: Any) -> Callable[..., Any]:
        import tvm

        return lambda *on: tvm.runtime.module.BenchmarkResult((1e-3,))


def _expect_given_to_compiler(
    compile_variants: Callable[..., dict[str, Any]], size: int, tile: int
) -> None:
    """What each variant is compiled from, and for; nothing is compiled."""
    import tvm

    usual = tvm.transform.PassContext.current().opt_level

    def settings_now() -> str:
        context = tvm.transform.PassContext.current()
        level = min(context.opt_level, usual)  # a higher one leaves out no pass
        return f"level {level}, {dict(context.config.items())}"

    settings = [settings_now()]

    def instead(mod: Any, target: Any = None, *_: Any, **__: Any) -> Any:
        settings.append(settings_now())
        if target is None:  # then TVM takes that of a `with` around it
            target = tvm.target.Target.current()
        return _NotCompiled(mod, target)

    def watched(compiler: Callable[..., Any]) -> Callable[..., Any]:
        def compile_as_given(mod: Any, target: Any = None, *more: Any, **named: Any) -> Any:
            settings.append(settings_now())
            targets.append(str(target or tvm.target.Target.current() or host_target()))
            return compiler(mod, target, *more, **named)

        return compile_as_given

    targets: list[str] = []
    try:
        with (
            mock.patch.object(tvm, "compile", instead),
            mock.patch.object(tvm.tirx, "build", instead),
        ):
            variants = compile_variants(size, tile=tile)
    except Exception:  # the answer's own error, or one of its tests of what it compiled
        if size > _LARGEST_RUN:  # it may run the products, naive ones as well
            return
        with (
            mock.patch.object(tvm, "compile", watched(tvm.compile)),
            _compiled() as nests,
        ):
            compile_variants(size, tile=tile)
        _expect_nests(nests, size, tile)
        expect(
            set(settings) == {settings[0]} and set(targets) <= {str(host_target())},
            expected="modules compiled for engines.host_target(), with tvm.compile's own settings",
            seen=f"for {', '.join(dict.fromkeys(targets))}; pass contexts "
            f"{', '.join(dict.fromkeys(settings))}",
            look="target= of tvm.compile, and tvm.transform.PassContext",
        )
        return
    expect(
        sorted(variants) == sorted(_wanted_nests(size, tile)) and set(settings) == {settings[0]},
        expected=f"three modules of size {size}, compiled with tvm.compile's own settings",
        seen=f"{', '.join(variants)}; pass contexts {', '.join(dict.fromkeys(settings))}",
        look="the dictionary, and tvm.transform.PassContext",
    )
    for name, built in variants.items():
        mod = getattr(built, "given", None)
        if mod is None:  # it was compiled in another way
            return
        function = mod if isinstance(mod, tvm.tirx.PrimFunc) else mod["main"]
        loops = max((path for path, _ in paths(loop_nest(function))), key=len)
        seen = [(loop.kind, loop.extent) for loop in loops]
        wanted = _wanted_nests(size, tile)[name]
        expect(
            seen in wanted,
            expected=f"{name} of size {size}, tile={tile}: the loops {_told(wanted[0])}",
            seen=_told(seen),
            look="the same primitives for every size and every tile",
        )
        copies = [each.name for _, each in paths(loop_nest(function)) if len(each.reads) == 1]
        expect(
            not copies,
            expected=f"{name} with one statement that adds up, straight into its output",
            seen=f"copies beside it: {', '.join(copies)}",
            look="te.compute: call it once; and cache_write, which phase 2's tile does not use",
        )
        noted = re.findall(r'"(\w*pragma\w*)"', function.script())
        expect(
            not noted,
            expected=f"{name} with the primitives of phase 2 alone",
            seen=", ".join(noted),
            look="schedule.annotate: the docstring asks for none",
        )
        schedule = tvm.s_tir.Schedule(function)
        block = schedule.get_sblock(accumulation(loop_nest(function))[1].name)
        tiled = "k i j" if "parallel" in name else f"i*{tile} j*{tile} k i j"
        look = "the order of the loops: naive leaves it, tile sets it"
        expect_axes(schedule, block, "i j k" if name == "naive" else tiled, look=look)
        target = built.target or function.attrs.get("target")
        expect(
            str(target) == str(host_target()),
            expected=f"{name} compiled for engines.host_target()",
            seen=f"for {target}",
            look="target= of tvm.compile",
        )


@contextlib.contextmanager
def _compiled() -> Iterator[list[list[tuple[str, int | str]]]]:
    """The loops, kind and extent, of each product that is compiled meanwhile."""
    import tvm

    seen: list[list[tuple[str, int | str]]] = []
    build = tvm.tirx.build

    def recording(mod: Any, *arguments: Any, **options: Any) -> Any:
        functions = [mod] if isinstance(mod, tvm.tirx.PrimFunc) else list(mod.functions.values())
        for function in functions:
            loops = [path for path, each in paths(loop_nest(function)) if len(each.reads) > 1]
            seen.extend([(loop.kind, loop.extent) for loop in path] for path in loops)
        return build(mod, *arguments, **options)

    with mock.patch.object(tvm.tirx, "build", recording):
        yield seen


Nest = list[tuple[str, int | str]]


def _told(nest: Nest) -> str:
    return " > ".join(f"{kind}({extent})" for kind, extent in nest)


def _wanted_nests(size: int, tile: int) -> dict[str, list[Nest]]:
    """The loops of each variant, outermost first, and other right ones."""
    tiles = -(-size // tile)
    inside: Nest = [("serial", size), ("serial", tile), ("vectorized", tile)]
    return {
        "naive": [[("serial", size)] * 3],
        "tiled": [[("serial", tiles), ("serial", tiles), *inside]],
        "tiled+parallel": [
            [("parallel", tiles * tiles), *inside],
            [("parallel", tiles), ("parallel", tiles), *inside],
        ],
    }


def _expect_nests(nests: list[Nest], size: int, tile: int) -> None:
    """Among what was compiled are the loops of the three variants."""
    for name, loops in _wanted_nests(size, tile).items():
        expect(
            any(each in nests for each in loops),
            expected=f"{name} of size {size}, tile={tile}: the loops {_told(loops[0])}",
            seen="; ".join(map(_told, nests)) or "nothing compiled",
            look="manual_schedule.tile, its tile sizes, 32 x 32 by default, and vectorize for both "
            "tiled ones, parallelize for the last; the order of the loops is that of tile",
        )


def _expect_variant(name: str, module: Any, size: int) -> None:
    """`module` computes the product, in parallel if it should, with this machine's instructions."""
    import tvm

    expect_type(
        module,
        tvm.runtime.Module,
        f"{name} is a tvm.runtime.Module, which has a time_evaluator",
        look=".mod of tvm.compile's result",
    )
    expect_product(
        module["main"],
        (size, size),
        (size, size),
        what=f"C of {name}",
        look="the block that is scheduled, and the order of A, B and C",
        atol=1e-3,
    )
    parallel = _has_parallel_launch(module)
    expect(
        parallel == (name == "tiled+parallel"),
        expected=f"{name} {'is serial' if parallel else 'shares its tiles among threads'}",
        seen=f"{'a' if parallel else 'no'} parallel launch in its code",
        look="parallelize for the last variant only, and a Schedule of its own for each: "
        "primitives change the Schedule in place",
    )
    wanted = str(host_target().attrs.get("mcpu", ""))
    built_for = re.search(r'"target-cpu"="([^"]*)"', _code(module))
    expect(
        not wanted or built_for is None or built_for[1] == wanted,
        expected=f"{name} is compiled for this machine's processor, {wanted}",
        seen=f"compiled for {built_for[1] if built_for else 'another'}",
        look="target=engines.host_target(); without a processor's name LLVM may use only the "
        "vector instructions that all processors have",
    )


PaysFrom = Callable[[Sequence[int], Sequence[float], Sequence[float]], int | None]


@PHASE.exercise(
    "parallel_pays_from",
    engine=CURRENT,
    title="the smallest size from which parallel is faster",
    hints=(
        "The size asked for is followed only by sizes where the parallel schedule is faster "
        "too. It is easier to name the sizes that rule out all earlier ones.",
        "Go through the sizes in order with an answer that starts as None: where parallel is not "
        "faster, forget the answer; where it is and there is no answer, this size is it.",
        "for size, serial, parallel in zip(sizes, serial_ms, parallel_ms): pays = None if "
        "parallel >= serial else (size if pays is None else pays)",
    ),
    looks_like="""
        sizes 64, 128, 256; serial 1, 8, 64 ms
        parallel 3, 6, 33 ms: from 128
        parallel 3, 9, 70 ms: None
    """,
    demonstrate=lambda pays: (
        "sizes 64, 128, 256; serial 1, 8, 64 ms\n"
        f"parallel 3, 6, 33 ms: from {pays([64, 128, 256], [1, 8, 64], [3, 6, 33])}\n"
        f"parallel 3, 9, 70 ms: {pays([64, 128, 256], [1, 8, 64], [3, 9, 70])}"
    ),
)
def check_parallel_pays_from(parallel_pays_from: PaysFrom) -> None:
    spans = (range(8, 2000), range(5_000, 100_000), range(10**6, 10**9))
    sizes, *larger = (sorted(draw_distinct(6, each)) for each in spans)
    serial = [float(each) for each in fresh_rng().uniform(1, 5, 6)]
    cases = {
        "faster from the fourth size on": ((9, 9, 9, 0, 0, 0), 3),
        "faster at every size": ((0, 0, 0, 0, 0, 0), 0),
        "faster at none": ((9, 9, 9, 9, 9, 9), None),
        "faster at the second size by chance, and from the fifth on": ((9, 0, 9, 9, 0, 0), 4),
        "faster but for the largest size": ((0, 0, 0, 0, 0, 9), None),
        "faster at the largest size alone": ((9, 9, 9, 9, 9, 0), 5),
        "exactly as fast at the third size and faster after it": ((9, 9, 1, 0, 0, 0), 3),
        "as fast at the largest size": ((0, 0, 0, 0, 0, 1), None),
        "slower at the fifth size only": ((0, 0, 0, 0, 9, 0), 5),
        "slower at each second size, the last but one too": ((0, 9, 0, 9, 9, 0), 5),
        "slower at the second and at the fourth size": ((0, 9, 0, 9, 0, 0), 4),
    }
    factor = {9: 1.7, 0: 0.6, 1: 1.0}
    for description, (pattern, index) in cases.items():
        parallel = [each * factor[kind] for each, kind in zip(serial, pattern, strict=True)]
        for some in (sizes, *larger):
            want = None if index is None else some[index]
            _expect_size(parallel_pays_from, (some, serial, parallel), want, description)
    _expect_size(parallel_pays_from, ([], [], []), None, "measured at no size")
    (size,) = draw_distinct(1, range(8, 2000))
    _expect_size(parallel_pays_from, ([size], [2.0], [1.0]), size, "faster at the only size")
    _expect_size(parallel_pays_from, ([size], [2.0], [2.0]), None, "as fast at the only size")
    for few, want in (((0, 0, 0), 1), ((9, 0, 0), 2), ((9, 9, 0), 3)):
        parallel = [factor[each] for each in few]
        _expect_size(
            parallel_pays_from, ([1, 2, 3], [1.0] * 3, parallel), want, f"faster from {want} on"
        )
    for count in (60, 700):  # an answer may call itself once per size
        many = sorted(draw_distinct(count, range(8, 40 * count)))
        at = int(fresh_rng().integers(10, count - 10))
        slower = [3.0 if place < at else 1.0 for place in range(count)]
        told = f"faster from {many[at]} on"
        _expect_size(parallel_pays_from, (many, [2.0] * count, slower), many[at], told)
        once = [1.0] * count
        once[at - 1] = 3.0
        told = f"faster at {count} sizes but for {many[at - 1]}"
        _expect_size(parallel_pays_from, (many, [2.0] * count, once), many[at], told)
        for want, last in ((None, 3.0), (many[-1], 1.0)):
            faster = [*[1.0] * (count - 2), 3.0, last]
            told = f"faster at {count - 2} sizes and not at {many[-2] if want else many[-1]}"
            _expect_size(parallel_pays_from, (many, [2.0] * count, faster), want, told)
    for scale in (1.0, 1e-6):  # milliseconds, and nanoseconds
        short = [each * scale for each in serial]
        little = [each * (1 - 1e-6) for each in short]
        _expect_size(parallel_pays_from, (sizes, short, little), sizes[0], "faster by a millionth")
        little = [each * (1 - 1e-11) for each in short]
        told = "faster by one part in a hundred billion"
        _expect_size(parallel_pays_from, (sizes, short, little), sizes[0], told)
    parallel = [each * factor[9 * (at < 2)] for at, each in enumerate(serial)]
    unchanging = tuple(sizes), tuple(serial), tuple(parallel)
    _expect_size(parallel_pays_from, unchanging, sizes[2], "tuples, and faster from the third on")


def _few(sizes: Sequence[int]) -> str:
    return f"{list(sizes)}" if len(sizes) < 10 else f"{list(sizes[:5])} and {len(sizes) - 5} more"


def _expect_size(
    parallel_pays_from: PaysFrom,
    measured: tuple[Sequence[int], Sequence[float], Sequence[float]],
    want: int | None,
    description: str,
) -> None:
    kept = [list(each) for each in measured]
    seen = parallel_pays_from(*measured)
    whole = isinstance(seen, int | np.integer) and not isinstance(seen, bool)
    expect(
        # As a number: a class of the learner's own may be equal to anything.
        (int(seen) if whole and seen is not None else seen) == want and (whole or seen is None),
        expected=f"{want} where parallel is {description}, sizes {_few(measured[0])}",
        seen=f"{seen}",
        look="parallel is faster at the answer and at every larger size given; equal is not faster",
    )
    expect(
        [list(each) for each in measured] == kept,
        expected="the lists of sizes and times are only read",
        seen="one of them was changed",
        look="sort, reverse and pop change a list in place",
    )
