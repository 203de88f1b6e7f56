"""What phase 3 shows: schedules beside numpy and torch, and where parallel loops pay."""

import itertools
import json
import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.analysis import Analysis, Run, coverage, median, ratio_cells
from tvm_practice.course.tours.printing import cell, number_table, say, show

# Matrix sizes in full and, second, with --quick: compared with torch on each engine, searched for
# the break-even, and next to a power of two.
_SIZES = ((128, 256, 512, 1024), (128, 256))
_SIZES_CLASSIC = ((128, 512), (256,))
_BREAK_EVEN_SIZES = ((16, 32, 48, 64, 96, 128, 256, 512), (32, 64, 256))
_POWER_OF_TWO = (480, 512, 544)
_TILE = 32  # what compile_variants takes if nothing is said
_ROUNDS_DRAWN = (3, 6, 7, 30)  # per interval
_INTERVALS = 500  # drawn for each number of rounds


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Time schedules beside numpy and torch on the active engine; find where parallel pays.

    Returns:
        {"environment", "threads", "sizes": {size: {name: {"ms", "ratio", "gflops"}}}}; on current
        TVM also "first_calls_ms", "spinning_ms", "coverage" (a share by rounds), "break_even",
        "roofline" (a file), and "power_of_two" unless quick.
    """
    import torch

    from tvm_practice import engines
    from tvm_practice.course.tours.break_even import break_even

    is_classic = engines.active() == engines.CLASSIC
    threads = engines.thread_count()
    torch.set_num_threads(threads)
    analysis = Analysis(steps, quick)
    figures: dict[str, Any] = {"environment": _show_machine(threads), "threads": threads}
    if is_classic:
        figures["sizes"] = _beside_torch(analysis, _SIZES_CLASSIC[quick], threads)
        return figures
    figures["first_calls_ms"] = _show_first_calls(analysis)
    figures["spinning_ms"] = _show_spinning(analysis)
    figures["coverage"] = _show_coverage()
    figures["sizes"] = _beside_torch(analysis, _SIZES[quick], threads)
    if not quick:
        figures["power_of_two"] = _beside_a_power_of_two(analysis)
    figures["break_even"] = break_even(analysis, _BREAK_EVEN_SIZES[quick], threads)
    figures["roofline"] = _show_roofline(steps, quick)
    return figures


def _show_machine(threads: int) -> dict[str, Any]:
    """This machine, as figures; a busy one is said."""
    from tvm_practice.measure import environment

    machine = environment()
    if machine["load_1min"] > threads / 2:
        say(
            f"Other programs are busy on this machine (load {machine['load_1min']}): expect wide "
            "intervals, and times that are too long."
        )
    return machine


def _show_first_calls(analysis: Analysis) -> list[float]:
    """Print what the first calls of a parallel product take; returns them, in milliseconds."""
    size = 256
    taken = analysis.first_calls(_packed_run(size), 20)
    usual = median(taken)
    say(
        f"\nWorked example: the first calls of phase 2's packed product at {size}, in ms: "
        f"{' '.join(f'{each:.2f}' for each in taken[:6])}; the median of 20 is {usual:.2f}."
    )
    if taken[0] > 1.2 * usual:
        say(
            f"The first took {cell(taken[0] / usual, 2)} times as long: it started the thread "
            "pool and touched the memory for the first time. It says nothing about the others."
        )
    return taken


def _show_spinning(analysis: Analysis) -> dict[str, float]:
    """Print what a torch product takes while TVM's threads spin, and when they sleep."""
    import torch

    from tvm_practice.measure import quiesce

    size = 128
    by_tvm, by_torch = _packed_run(size), partial(torch.matmul, *torch.rand(2, size, size))
    taken: dict[str, list[float]] = {"at once": [], "after quiesce()": []}
    for _ in range(5):
        for when, samples in taken.items():
            quiesce()
            analysis.first_calls(by_tvm, 3)
            if when == "after quiesce()":
                quiesce()
            samples.append(analysis.first_calls(by_torch, 2)[1])
    medians = {when: median(samples) for when, samples in taken.items()}
    say(
        f"Thread pools: torch's product at {size}, the second call after TVM's, takes "
        + ", ".join(f"{cell(each)} ms {when}" for when, each in medians.items())
        + ", which waits until TVM's threads sleep."
    )
    if medians["at once"] > 2 * medians["after quiesce()"]:
        say("TVM's threads still spun, on the cores that torch's threads need.")
    return medians


def _show_coverage() -> dict[str, float]:
    """Print how often intervals of few rounds and of many hold the true median; the shares."""
    from tvm_practice.measure import MIN_ROUNDS

    shares = {str(rounds): coverage(rounds, _INTERVALS) for rounds in _ROUNDS_DRAWN}
    say(
        f"\nIntervals: ratios with a known median are drawn {_INTERVALS} times, and each time a "
        "95% bootstrap interval is computed. The share of the intervals that contain the median: "
        + ", ".join(f"{each:.0%} with {rounds} rounds" for rounds, each in shares.items())
        + ". So a 95% interval is narrower than its name says, most of all with few rounds. With "
        f"fewer than {MIN_ROUNDS}, this project reports `too few rounds` instead."
    )
    return shares


def _packed(size: int) -> Any:
    """Phase 2's packed product, compiled on current TVM."""
    from tvm_practice.course.stack import earlier
    from tvm_practice.course.tours.products import compiled
    from tvm_practice.engines.blocking import packed_blocking

    packed_matmul = earlier("manual_schedule.packed_matmul")
    return compiled(packed_matmul(size, size, size, **packed_blocking(size)), ())


def _packed_run(size: int) -> Run:
    """A call of phase 2's packed product on random matrices."""
    from tvm_practice.course.tours.products import random_product

    return partial(_packed(size)["main"], *random_product(size).arguments)


def _beside_torch(analysis: Analysis, sizes: tuple[int, ...], threads: int) -> dict[str, Any]:
    """Print a table for each size; their figures, by size."""
    say(
        f"\nThe schedules, numpy and torch on {threads} threads (numpy's library for matrix "
        "products chooses its own number). ms is the median of consecutive calls. The ratio is the "
        "time over torch's, measured in turns: 1 is as fast, 2 takes twice as long. Undecided: the "
        "95% interval contains 1, so there is no significant difference. A call that takes more "
        "than a second has no ratio."
    )
    figures = {}
    for size in sizes:
        rows = _measured(analysis, size)
        intensity = analysis.step("arithmetic_intensity", size, size, size, read=float)
        _print_products(size, rows, intensity)
        if all(row["ms"] is None and row["ratio"] is None for row in rows.values()):
            break  # nothing is written yet that could measure
        figures[str(size)] = rows
    _explain(figures)
    return figures


def _measured(analysis: Analysis, size: int) -> dict[str, Any]:
    """{"ms", "ratio", "gflops"} of every product of that size, by name."""
    import numpy as np
    import torch

    from tvm_practice.course.tours.products import Product

    a, b = np.random.default_rng().standard_normal((2, size, size), dtype="float32")
    product = Product(a, b)
    left, right, output = (torch.from_numpy(each) for each in (a, b, np.zeros_like(a)))
    by_torch = partial(torch.matmul, left, right, out=output)
    by_numpy = partial(np.matmul, a, b, out=np.zeros_like(a))
    torch_s, numpy_s = analysis.duration(by_torch), analysis.duration(by_numpy)
    figures: dict[str, Any] = {}
    for name, module in _modules(analysis, size).items():
        run = partial(module["main"], *product.arguments)
        seconds = analysis.duration(run)
        if not product.is_right():
            off = product.difference()
            say(f"{name} is wrong at {size}: it differs from numpy by {off:.3g}")
            continue
        figures[name] = {
            "ms": analysis.median(module, product, seconds),
            "ratio": analysis.ratio(run, by_torch, seconds, torch_s),
        }
    figures["numpy"] = {
        "ms": analysis.latency(by_numpy, numpy_s),
        "ratio": analysis.ratio(by_numpy, by_torch, numpy_s, torch_s),
    }
    figures["torch"] = {"ms": analysis.latency(by_torch, torch_s), "ratio": None}
    for row in figures.values():
        row["gflops"] = analysis.rate(size, row["ms"])
    return figures


def _modules(analysis: Analysis, size: int) -> dict[str, Any]:
    """The compiled products of the active engine by name: yours, and phase 2's."""
    from tvm_practice import engines

    if engines.active() != engines.CLASSIC:
        return {**analysis.variants(size), "packed": _packed(size)}
    from tvm import te

    from tvm_practice.course.stack import earlier
    from tvm_practice.course.tours.products import compiled

    tensors = earlier("te_basics.matmul")(size, size, size)
    tile_classic = earlier("manual_schedule.tile_classic")
    schedules = {
        "naive": te.create_schedule(tensors[-1].op),
        "tiled+parallel": tile_classic(tensors, _TILE, _TILE),
    }
    return {name: compiled(schedule, tensors) for name, schedule in schedules.items()}


def _print_products(size: int, figures: Mapping[str, Any], intensity: float | None) -> None:
    said = "" if intensity is None else f", {intensity:.1f} FLOP/byte"
    table = number_table(
        "product", "ms", "GFLOP/s", "ratio", "95% interval", title=f"{size} x {size} x {size}{said}"
    )
    table.add_column("than torch")
    for name, row in figures.items():
        cells = ("1", "", "") if name == "torch" else ratio_cells(row["ratio"])
        table.add_row(name, cell(row["ms"]), cell(row["gflops"]), *cells)
    show(table)


def _explain(sizes: Mapping[str, Any]) -> None:
    """Say what the tables show of the largest size, from their figures."""
    if not sizes:
        return
    size, rows = list(sizes.items())[-1]
    rate = {name: row["gflops"] for name, row in rows.items() if row["gflops"] is not None}
    reasons = {
        "naive": "",
        "tiled": "a tile reuses cache lines of B before they are evicted, and computes in vectors",
        "tiled+parallel": "the tiles are shared among the threads",
        "packed": "B is read in the order it lies in memory, and C stays in registers",
    }
    order = list(reasons)
    schedules = [name for name in order if name in rate]
    for before, after in itertools.pairwise(schedules):
        factor = rate[after] / rate[before]
        added = order[order.index(before) + 1 : order.index(after) + 1]
        why = "; ".join(reasons[name] for name in added) if factor > 1.1 else "no gain here"
        say(
            f"At {size}, {before} to {after}: {cell(rate[before])} to {cell(rate[after])} "
            f"GFLOP/s, x {cell(factor, 2)}: {why}."
        )
    if len(schedules) > 1:
        say(
            "All do the same operations and must move each matrix at least once: that gives "
            "FLOP/byte. It grows with the size: large products can keep a processor busy if their "
            "schedule lets them."
        )


def _beside_a_power_of_two(analysis: Analysis) -> dict[str, float]:
    """Time the tiled product at 512 and at its neighbours; returns GFLOP/s by size."""
    from tvm_practice.course.tours.products import random_product

    rates: dict[str, float] = {}
    for size in _POWER_OF_TWO:
        module = analysis.variants(size).get("tiled")
        if module is None:
            return {}
        product = random_product(size)
        seconds = analysis.duration(partial(module["main"], *product.arguments))
        milliseconds = analysis.median(module, product, seconds)
        rate = analysis.rate(size, milliseconds)
        if rate is None:
            return {}
        if not rates:
            print("\nThe tiled product on one thread, at 512 and just beside it:")
        rates[str(size)] = rate
        print(f"  {size}: {cell(milliseconds)} ms, {cell(rate)} GFLOP/s")
    before, at, after = rates.values()
    factor = min(before, after) / at
    if factor < 1.3:
        print("No cliff at the power of two: this processor's caches cope.")
    else:
        say(
            f"At 512 the same loops take {cell(factor, 2)} times as long per operation. A tile "
            "reads 512 rows of B, each 2048 bytes after the one before. Addresses a power of two "
            "apart fall into the same few sets of a cache and push each other out. The packed "
            "product avoids this: it reads a copy without gaps."
        )
    return rates


def _show_roofline(steps: Steps, quick: bool) -> str:
    """Print how near phase 2's schedules come to what this machine can do; the file with it."""
    from tvm_practice.course.tours.matmuls import matmul_roofline
    from tvm_practice.viz.drawing import standalone

    beyond = _beyond_the_second_cache()
    study = matmul_roofline(256 if quick else beyond, seconds=2 if quick else 5)
    _print_roofline(study)
    _explain_roofline(study, beyond)
    file = steps.folder / "roofline.json"
    file.write_text(json.dumps(study))
    picture = steps.folder / "roofline.svg"
    picture.write_text(standalone(study["svg"]))
    print(f"picture: {picture}")
    return str(file)


def _beyond_the_second_cache() -> int:
    """The size from which B is larger than the second cache, rounded up to 128; at most 1024."""
    size = math.sqrt(1.25 * _second_cache_bytes() / 4)
    return min(1024, 128 * math.ceil(size / 128))


def _second_cache_bytes() -> float:
    from tvm_practice.viz.cache import machine_caches

    levels, _ = machine_caches()
    return levels[-1].kilobytes * 1024


def _print_roofline(study: Mapping[str, Any]) -> None:
    limits = study["limits"]
    say(
        f"\nThe limits of this machine on {limits['threads']} threads, measured by kernels that "
        f"TVM made: {limits['peak_gflops']:.0f} GFLOP/s of multiply-adds in registers, "
        f"{limits['memory_gbps']:.0f} GB/s from memory ({limits['one_threads_gbps']:.0f} by one "
        "thread)"
        + (f", {limits['cache_gbps']:.0f} GB/s from the last cache" if limits["cache_gbps"] else "")
        + f". The same schedules at {study['size']}, made by phase 2's functions (yours where they "
        "pass). The first two columns are operations per byte in a first call: per byte that comes "
        "from beyond the L2 cache, and per byte from memory."
    )
    table = number_table("schedule", "per byte, L2", "memory", "limit, GFLOP/s", "GFLOP/s", "share")
    for name, kernel in study["kernels"].items():
        near = kernel["cache_intensity"]
        table.add_row(
            name,
            "-" if near is None else f"{near:.1f}",
            f"{kernel['intensity']:.1f}",
            f"{kernel['limit']:.0f}",
            f"{kernel['gflops']:.3g}",
            f"{kernel['gflops'] / kernel['limit']:.1%}",
        )
    show(table)


def _explain_roofline(study: Mapping[str, Any], beyond: int) -> None:
    """Say which levels are no limit at this size, and where `packed` has bytes of its own."""
    size, kernels = study["size"], study["kernels"]
    held = {kernel["stays_in"] for kernel in kernels.values()}
    if held == {"second cache"}:
        say(
            f"At {size}, all matrices fit the L2 cache: from the second call on, nothing comes "
            "from beyond it, and the limit is the peak."
        )
    elif held and None not in held:
        say(
            f"At {size}, all matrices fit the last cache: from the second call on, nothing comes "
            "from memory, and memory is no limit."
        )
    if "packed" in kernels:
        say("packed writes copies and reads them again: bytes that the others do not move.")
    if size < beyond and 4 * beyond**2 > _second_cache_bytes():
        say(f"Without --quick the size is {beyond}, where B alone is larger than the L2 cache.")


def report(results: Mapping[str, Any], folder: Path) -> None:
    """Save the figures, GFLOP/s by size, and the ratio parallel/serial by size."""
    figures = {engine: lane.get("figures") or {} for engine, lane in results.items()}
    record = folder / "figures.json"
    record.write_text(json.dumps(figures, indent=2))
    print()
    for path in [record, *_plots(figures, folder)]:
        print(f"saved {path}")


def _plots(figures: Mapping[str, Any], folder: Path) -> list[Path]:
    """Draw what was measured; the files."""
    from tvm_practice.viz.scaling import plot_break_even, plot_rates

    saved = []
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
    return saved
