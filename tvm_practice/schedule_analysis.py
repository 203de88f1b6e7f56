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

import itertools
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tvm_practice.course.phase import phase_command

if TYPE_CHECKING:
    import numpy as np

    from tvm_practice.course import Steps

_Interval: TypeAlias = tuple[float, float, float]  # a ratio, and its 95% interval's ends

# Matrix sizes in full and, second, with --quick: compared with torch on each engine, searched for
# the break-even, and next to a power of two.
_SIZES = ((128, 256, 512, 1024), (128, 256))
_SIZES_CLASSIC = ((128, 512), (256,))
_BREAK_EVEN_SIZES = ((16, 32, 48, 64, 96, 128, 256, 512), (32, 64, 256))
_POWER_OF_TWO = (480, 512, 544)
_TILE = 32  # what compile_variants takes if nothing is said
_SMALL_TILE = 16  # several tasks even for the smallest matrices


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


def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """Time schedules beside numpy and torch on the active engine; find where parallel pays."""
    import torch

    from tvm_practice import engines
    from tvm_practice.measure import environment

    classic = engines.active() == engines.CLASSIC
    threads = engines.thread_count()
    torch.set_num_threads(threads)
    analysis = _Analysis(steps, quick)
    machine = environment()
    if machine["load_1min"] > threads / 2:
        _say(
            f"Other programs are busy on this machine (load {machine['load_1min']}): expect wide "
            "intervals, and times that are too long."
        )
    figures: dict[str, Any] = {"environment": machine, "threads": threads}
    if not classic:
        figures["first_calls_ms"] = _show_first_calls()
        figures["spinning_ms"] = _show_spinning()

    _say(
        f"\nThe schedules, numpy and torch on {threads} threads (numpy's BLAS starts as many as it "
        "likes). ms is the median of calls one after the other. The ratio is time over torch's "
        "time, taken in turns: 1 is as fast, 2 takes twice as long. Undecided means that its 95% "
        "interval holds 1: no significant difference. What takes more than a second has no ratio."
    )
    figures["sizes"] = {}
    for size in (_SIZES_CLASSIC if classic else _SIZES)[quick]:
        rows = analysis.table(size)
        if all(row["ms"] is None and row["ratio"] is None for row in rows.values()):
            break  # nothing is written yet that could measure
        figures["sizes"][str(size)] = rows
    _explain(figures["sizes"])
    if not classic:
        if not quick:
            figures["power_of_two"] = _beside_a_power_of_two(analysis)
        figures["break_even"] = _break_even(analysis, _BREAK_EVEN_SIZES[quick], threads)
        figures["roofline"] = _show_roofline(steps, quick)
    return figures


def _show_roofline(steps: "Steps", quick: bool) -> str:
    """Print how near phase 2's schedules come to what this machine can do; the file with it."""
    import json

    from rich import box
    from rich.console import Console
    from rich.table import Table

    from tvm_practice.course.tours.matmuls import matmul_roofline
    from tvm_practice.viz.drawing import standalone

    study = matmul_roofline(256 if quick else 512, seconds=2 if quick else 5)
    limits = study["limits"]
    _say(
        f"\nThe limits of this machine on {limits['threads']} threads, by two kernels that TVM "
        f"made: {limits['peak_gflops']:.0f} GFLOP/s of multiply-adds in registers, "
        f"{limits['memory_gbps']:.0f} GB/s from memory. A schedule that does fewer than "
        f"{limits['ridge']:.1f} operations for each byte from beyond the second cache is held up "
        f"by memory. Phase 2's reference schedules at {study['size']}:"
    )
    table = Table(box=box.SIMPLE)
    for heading in ("schedule", "operations per byte", "limit, GFLOP/s", "GFLOP/s", "share"):
        table.add_column(heading, justify="left" if heading == "schedule" else "right")
    for name, kernel in study["kernels"].items():
        limit = min(limits["peak_gflops"], limits["memory_gbps"] * kernel["intensity"])
        table.add_row(
            name,
            f"{kernel['intensity']:.1f}",
            f"{limit:.0f}",
            f"{kernel['gflops']:.3g}",
            f"{kernel['gflops'] / limit:.1%}",
        )
    Console().print(table)
    file = steps.folder / "roofline.json"
    file.write_text(json.dumps(study))
    picture = steps.folder / "roofline.svg"
    picture.write_text(standalone(study["svg"]))
    print(f"picture: {picture}")
    return str(file)


def _modules(analysis: "_Analysis", size: int) -> dict[str, Any]:
    """The compiled products of the active engine by name: yours, and phase 2's."""
    from tvm_practice import engines

    if engines.active() == engines.CLASSIC:
        import tvm
        from tvm import te

        from solutions.manual_schedule import tile_classic
        from solutions.te_basics import matmul

        tensors = matmul(size, size, size)
        schedules = {
            "naive": te.create_schedule(tensors[-1].op),
            "tiled+parallel": tile_classic(tensors, _TILE, _TILE),
        }
        return {
            name: tvm.build(schedule, tensors, target=engines.host_target(), name="main")
            for name, schedule in schedules.items()
        }
    return {**(analysis.step("compile_variants", size, read=dict) or {}), "packed": _packed(size)}


def _packed(size: int) -> Any:
    """Phase 2's packed product, compiled on current TVM."""
    import tvm

    from solutions.manual_schedule import packed_matmul
    from tvm_practice import engines
    from tvm_practice.manual_schedule import packed_blocking

    schedule = packed_matmul(size, size, size, **packed_blocking(size))
    return tvm.compile(schedule.mod, target=engines.host_target()).mod


def _tensors(*arrays: "np.ndarray") -> list[Any]:
    """Copies as tensors of the active engine on the CPU."""
    import tvm

    from tvm_practice import engines

    classic = engines.active() == engines.CLASSIC
    to_tensor = tvm.nd.array if classic else tvm.runtime.tensor
    return [to_tensor(each, tvm.cpu()) for each in arrays]


class _Analysis:
    """Measures with the steps, as far as they are written; what is to do gives None.

    Attributes:
        seconds: how long each way of measuring one thing takes, about.
        rounds: of a comparison, at most.
    """

    def __init__(self, steps: "Steps", quick: bool):
        self.steps = steps
        self.seconds = 1.0 if quick else 1.5
        self.rounds = 5 if quick else 9

    def step(
        self, name: str, *arguments: Any, read: Callable[[Any], Any] | None = None, **options: Any
    ) -> Any:
        """Call a step and `read` what it returns; what goes wrong in either is said once."""
        if name in self.steps.failed:
            return None
        value = self.steps.attempt(name, *arguments, **options)
        if value is None or read is None:
            return value
        try:
            return read(value)
        except (TypeError, ValueError):
            self.steps.failed[name] = f"returned {value!r}"[:80]
            _say(f"fails  {name}: {self.steps.failed[name]}")
            return None

    def median(self, module: Any, arguments: list[Any], seconds: float) -> float | None:
        """Milliseconds of a module's "main", by time_function; it takes about `seconds`."""
        from tvm_practice.measure import quiesce

        number = _between(1, int(1e-3 / seconds), 100)
        repeats = _between(2, int(self.seconds / (number * seconds)), 20)
        quiesce()
        milliseconds: float | None = self.step(
            "time_function", module, arguments, number=number, repeats=repeats, read=_median
        )
        return milliseconds

    def latency(self, run: Callable[[], Any], seconds: float) -> float | None:
        """Milliseconds of anything, by sample_latency; it takes about `seconds`."""
        from tvm_practice.measure import quiesce

        repeats = _between(3, int(self.seconds / seconds), 100)
        quiesce()
        milliseconds: float | None = self.step(
            "sample_latency", run, warmup=repeats // 2, repeats=repeats, read=_median
        )
        return milliseconds

    def ratio(
        self, first: Callable[[], Any], second: Callable[[], Any], *seconds: float
    ) -> _Interval | None:
        """Time of `first` over that of `second`, by compare_interleaved; both take `seconds`.

        What takes less than a millisecond is called in a loop, the same number of times each.
        What takes more than a second is left out: None.
        """
        shorter, longer = sorted(seconds)
        if longer > 1:
            return None
        number = _between(1, int(1e-3 / shorter), 100)
        rounds = _between(3, int(self.seconds / (2 * number * longer)), self.rounds)
        ratio: _Interval | None = self.step(
            "compare_interleaved",
            _repeated(first, number),
            _repeated(second, number),
            rounds=rounds,
            read=_interval,
        )
        return ratio

    def rate(self, size: int, milliseconds: float | None) -> float | None:
        """GFLOP/s of a product of that size, by gflop_per_second."""
        # Called without a time too, so that it is said if it is to do.
        rate: float | None = self.step(
            "gflop_per_second", size, size, size, milliseconds or 1.0, read=float
        )
        return None if milliseconds is None else rate

    def table(self, size: int) -> dict[str, Any]:
        """Print a table of all products of that size; returns its figures by name."""
        import numpy as np
        import torch

        a, b = np.random.default_rng().standard_normal((2, size, size), dtype="float32")
        exact = a @ b
        arguments = _tensors(a, b, np.zeros_like(a))
        left, right, output = (torch.from_numpy(each) for each in (a, b, np.zeros_like(a)))
        by_torch = partial(torch.matmul, left, right, out=output)
        by_numpy = partial(np.matmul, a, b, out=np.zeros_like(a))
        torch_s, numpy_s = _seconds(by_torch), _seconds(by_numpy)
        figures: dict[str, Any] = {}
        for name, module in _modules(self, size).items():
            run = partial(module["main"], *arguments)
            seconds = _seconds(run)
            off = float(np.abs(arguments[-1].numpy() - exact).max())
            if not off <= 1e-5 * size:  # NaN is wrong too
                _say(f"{name} is wrong at {size}: it differs from numpy by {off:.3g}")
                continue
            figures[name] = {
                "ms": self.median(module, arguments, seconds),
                "ratio": self.ratio(run, by_torch, seconds, torch_s),
            }
        figures["numpy"] = {
            "ms": self.latency(by_numpy, numpy_s),
            "ratio": self.ratio(by_numpy, by_torch, numpy_s, torch_s),
        }
        figures["torch"] = {"ms": self.latency(by_torch, torch_s), "ratio": None}
        for row in figures.values():
            row["gflops"] = self.rate(size, row["ms"])
        intensity = self.step("arithmetic_intensity", size, size, size, read=float)
        _print_table(size, figures, intensity)
        return figures


def _median(samples: Any) -> float:
    import numpy as np

    return float(np.median(samples))


def _interval(answer: Any) -> _Interval:
    value, low, high = (float(each) for each in answer)
    return value, low, high


def _repeated(run: Callable[[], Any], number: int) -> Callable[[], None]:
    def runs() -> None:
        for _ in range(number):
            run()

    return runs


def _seconds(run: Callable[[], Any]) -> float:
    """What a call takes, roughly: of something quick the better of two."""
    taken = first_calls(run, 1)
    if taken[0] < 100:
        taken += first_calls(run, 1)
    return max(min(taken) / 1e3, 1e-7)


def _between(low: int, value: int, high: int) -> int:
    return max(low, min(value, high))


def _say(text: str) -> None:
    """Print a paragraph, wrapped to the terminal."""
    from rich.console import Console

    Console().print(text, markup=False, highlight=False)


def _cell(value: float | None, digits: int = 3) -> str:
    """A number with that many digits that count; a dash for what is to do."""
    import math

    if value is None:
        return "-"
    decimals = digits - 1 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{_between(0, decimals, 6)}f}"


def _ratio_cells(ratio: _Interval | None) -> tuple[str, str, str]:
    """A ratio, its interval, and what it says of the first of the two."""
    from tvm_practice.measure import Ratio

    if ratio is None:
        return "-", "", ""
    value, low, high = ratio
    verdict = Ratio(value, low, high).verdict.replace("no significant difference", "undecided")
    return _cell(value), f"{_cell(low)} to {_cell(high)}", verdict


def _print_table(size: int, figures: dict[str, Any], intensity: float | None) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table

    said = "" if intensity is None else f", {intensity:.1f} FLOP/byte"
    table = Table(title=f"{size} x {size} x {size}{said}", title_justify="left", box=box.SIMPLE)
    table.add_column("product")
    for heading in ("ms", "GFLOP/s", "ratio", "95% interval"):
        table.add_column(heading, justify="right")
    table.add_column("than torch")
    for name, row in figures.items():
        cells = ("1", "", "") if name == "torch" else _ratio_cells(row["ratio"])
        table.add_row(name, _cell(row["ms"]), _cell(row["gflops"]), *cells)
    Console().print(table)


def _packed_run(size: int) -> Callable[[], Any]:
    """A call of phase 2's packed product on random matrices."""
    import numpy as np

    arguments = _tensors(*np.random.default_rng().random((3, size, size), dtype="float32"))
    return partial(_packed(size)["main"], *arguments)


def _show_first_calls() -> list[float]:
    """Print what the first calls of a parallel product take; returns them, in milliseconds."""
    size = 256
    taken = first_calls(_packed_run(size), 20)
    usual = _median(taken)
    _say(
        f"\nWorked example: the first calls of phase 2's packed product at {size}, in ms: "
        f"{' '.join(f'{each:.2f}' for each in taken[:6])}; the median of 20 is {usual:.2f}."
    )
    if taken[0] > 1.2 * usual:
        _say(
            f"The first took {_cell(taken[0] / usual, 2)} times as long: it started the thread "
            "pool and touched the memory for the first time. It tells nothing of the others."
        )
    return taken


def _show_spinning() -> dict[str, float]:
    """Print what a torch product takes while TVM's threads spin, and when they sleep."""
    import torch

    from tvm_practice.measure import quiesce

    size = 128
    by_tvm, by_torch = _packed_run(size), partial(torch.matmul, *torch.rand(2, size, size))
    taken: dict[str, list[float]] = {"at once": [], "after quiesce()": []}
    for _ in range(5):
        for when, samples in taken.items():
            quiesce()
            first_calls(by_tvm, 3)
            if when == "after quiesce()":
                quiesce()
            samples.append(first_calls(by_torch, 2)[1])
    medians = {when: _median(samples) for when, samples in taken.items()}
    _say(
        f"Thread pools: torch's product at {size}, the second call after one of TVM's, takes "
        + ", ".join(f"{_cell(each)} ms {when}" for when, each in medians.items())
        + "."
    )
    if medians["at once"] > 2 * medians["after quiesce()"]:
        _say("TVM's threads still spun, on the cores that torch's threads need.")
    return medians


def _explain(sizes: dict[str, Any]) -> None:
    """Say what the tables show of the largest size, from their figures."""
    if not sizes:
        return
    size, rows = list(sizes.items())[-1]
    rate = {name: row["gflops"] for name, row in rows.items() if row["gflops"] is not None}
    reasons = {
        "naive": "",
        "tiled": "a tile uses cache lines of B again before they are gone, and in vectors",
        "tiled+parallel": "the tiles are shared among the threads",
        "packed": "B is read in the order it lies in memory, and C stays in registers",
    }
    order = list(reasons)
    schedules = [name for name in order if name in rate]
    for before, after in itertools.pairwise(schedules):
        factor = rate[after] / rate[before]
        added = order[order.index(before) + 1 : order.index(after) + 1]
        why = "; ".join(reasons[name] for name in added) if factor > 1.1 else "no gain here"
        _say(
            f"At {size}, {before} to {after}: {_cell(rate[before])} to {_cell(rate[after])} "
            f"GFLOP/s, x {_cell(factor, 2)}: {why}."
        )
    if len(schedules) > 1:
        _say(
            "All do the same operations and have to move the same bytes. FLOP/byte grows with the "
            "size: large products can keep a processor busy, if their schedule lets them."
        )


def _beside_a_power_of_two(analysis: _Analysis) -> dict[str, float]:
    """Time the tiled product at 512 and at its neighbours; returns GFLOP/s by size."""
    import numpy as np

    rates: dict[str, float] = {}
    for size in _POWER_OF_TWO:
        module = (analysis.step("compile_variants", size, read=dict) or {}).get("tiled")
        if module is None:
            return {}
        arguments = _tensors(*np.random.default_rng().random((3, size, size), dtype="float32"))
        seconds = _seconds(partial(module["main"], *arguments))
        milliseconds = analysis.median(module, arguments, seconds)
        rate = analysis.rate(size, milliseconds)
        if rate is None:
            return {}
        if not rates:
            print("\nThe tiled product on one thread, at 512 and just beside it:")
        rates[str(size)] = rate
        print(f"  {size}: {_cell(milliseconds)} ms, {_cell(rate)} GFLOP/s")
    before, at, after = rates.values()
    factor = min(before, after) / at
    if factor < 1.3:
        print("No cliff at the power of two: this processor's caches cope.")
    else:
        _say(
            f"At 512 the same loops take {_cell(factor, 2)} times as long per operation. A tile "
            "reads 512 rows of B, each 2048 bytes after the one before. Addresses a power of two "
            "apart fall into the same few sets of a cache and push each other out. The packed "
            "product reads a copy without gaps, and is spared."
        )
    return rates


def _break_even(analysis: _Analysis, sizes: Sequence[int], threads: int) -> dict[str, Any]:
    """Print tiled+parallel against tiled by size, and from where on the threads pay."""
    import numpy as np
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for heading in ("size", "tasks", "serial µs", "parallel µs", "ratio", "95% interval"):
        table.add_column(heading, justify="right")
    table.add_column("parallel")
    rows: list[dict[str, Any]] = []
    runs: dict[int, Callable[[], Any]] = {}
    for size in sizes:
        modules = analysis.step("compile_variants", size, tile=_SMALL_TILE, read=dict) or {}
        if not {"tiled", "tiled+parallel"} <= set(modules):
            analysis.step("parallel_pays_from", (), (), ())  # said if it is to do
            return {}
        serial, parallel = modules["tiled"], modules["tiled+parallel"]
        arguments = _tensors(*np.random.default_rng().random((3, size, size), dtype="float32"))
        runs[size] = partial(parallel["main"], *arguments)
        seconds = _seconds(partial(serial["main"], *arguments))
        number = _between(1, int(1e-3 / seconds), 100)
        row: dict[str, Any] = {
            "size": size,
            "tasks": (size // _SMALL_TILE) ** 2,
            "serial_ms": analysis.median(serial, arguments, seconds),
            "parallel_ms": analysis.median(parallel, arguments, seconds),
            "ratio": analysis.ratio(
                _in_c(parallel, arguments, number),
                _in_c(serial, arguments, number),
                *[(number + 1) * seconds] * 2,
            ),
        }
        times = (None if row[of] is None else row[of] * 1e3 for of in ("serial_ms", "parallel_ms"))
        cells = (_cell(each) for each in times)
        table.add_row(str(size), str(row["tasks"]), *cells, *_ratio_cells(row["ratio"]))
        rows.append(row)
    _say(
        f"\nThe tiled product on 1 thread and on {threads}, each tile of {_SMALL_TILE} x "
        f"{_SMALL_TILE} a task. The ratio is parallel over serial, called back to back: below 1 "
        "the threads pay."
    )
    Console().print(table)
    if any(None in row.values() for row in rows):
        return {"rows": rows}

    serial_ms = [row["serial_ms"] for row in rows]
    medians = [row["parallel_ms"] for row in rows]
    ends = [row["serial_ms"] * row["ratio"][2] for row in rows]
    pays = analysis.step("parallel_pays_from", sizes, serial_ms, medians)
    certain = analysis.step("parallel_pays_from", sizes, serial_ms, ends)
    if "parallel_pays_from" not in (*analysis.steps.todo, *analysis.steps.failed):
        _say(
            f"By the medians parallel pays {_from(pays)}; by the upper ends of the intervals "
            f"{_from(certain)}."
        )
    _explain_break_even(rows, threads)
    at = certain if certain in runs else sizes[-1]
    awake, asleep = rows[list(sizes).index(at)]["parallel_ms"], _after_a_pause(runs[at])
    if threads > 1 and asleep > 1.1 * awake:
        _say(
            f"The threads were awake here. When they sleep, after a pause, a call at {at} takes "
            f"{_cell(asleep * 1e3)} µs instead of {_cell(awake * 1e3)}: called now and then, "
            "parallel pays later."
        )
    return {
        "rows": rows,
        "pays_from": pays,
        "certain_from": certain,
        "after_a_pause": {"size": at, "ms": asleep},
    }


def _from(size: int | None) -> str:
    return "at no size up to the largest" if size is None else f"from {size} on"


def _in_c(module: Any, arguments: list[Any], number: int) -> Callable[[], Any]:
    """Calls of "main" in a loop in C++: from Python, each would be a microsecond longer."""
    import tvm

    return partial(module.time_evaluator("main", tvm.cpu(), number=number), *arguments)


def _after_a_pause(run: Callable[[], Any]) -> float:
    """Median milliseconds of a call that finds its threads asleep."""
    from tvm_practice.measure import quiesce

    taken: list[float] = []
    for _ in range(5):
        quiesce()
        taken += first_calls(run, 1)
    return _median(taken)


def _explain_break_even(rows: list[dict[str, Any]], threads: int) -> None:
    """Say why small products do not gain, from the figures."""
    row = next((row for row in rows if row["tasks"] >= threads), rows[-1])
    shared, seen = row["serial_ms"] * 1e3 / threads, row["parallel_ms"] * 1e3
    if threads == 1:
        print("There is one thread here, and nobody to share with.")
    elif seen > shared:
        _say(
            f"Why: at {row['size']} the work, shared out, would take {_cell(shared)} µs, but "
            f"parallel takes {_cell(seen)} µs. The {_cell(seen - shared, 2)} µs between them go "
            "into handing out tasks and waiting for the last. That hardly grows with the size, "
            "while the work grows with its cube. One tile is one task, and nothing to share."
        )


def report(results: dict[str, Any], folder: Path) -> None:
    """Save the figures, GFLOP/s by size, and the ratio parallel/serial by size."""
    import json

    from tvm_practice.viz.scaling import plot_break_even, plot_rates

    figures = {engine: lane.get("figures") or {} for engine, lane in results.items()}
    record = folder / "figures.json"
    record.write_text(json.dumps(figures, indent=2))
    saved = [record]
    rates = {
        engine: {
            int(size): {name: row["gflops"] for name, row in rows.items() if row["gflops"]}
            for size, rows in each.get("sizes", {}).items()
        }
        for engine, each in figures.items()
    }
    if any(row for sizes in rates.values() for row in sizes.values()):
        saved.append(plot_rates(folder / "gflops.png", rates))
    even = figures.get("current", {}).get("break_even", {})
    rows = [row for row in even.get("rows", ()) if row["ratio"]]
    if rows:
        pays_from = even.get("certain_from")
        saved.append(plot_break_even(folder / "parallel.png", rows, pays_from=pays_from))
    print()
    for path in saved:
        print(f"saved {path}")


main = phase_command("schedule_analysis", "Phase 3: schedule analysis, which is faster and why.")

if __name__ == "__main__":
    main()
