"""The pictures of a report, made on the current engine: a call with JSON in and out."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from math import prod
from typing import Any

from tvm_practice.viz.access import AccessProgram, access_program
from tvm_practice.viz.access_picture import Window, access_svg, animation, window
from tvm_practice.viz.cache import USUAL, USUAL_TLB, CacheCounts, machine_caches, simulate
from tvm_practice.viz.cache_picture import cache_svg
from tvm_practice.viz.history import ScheduleStep, recorded
from tvm_practice.viz.loop_nest import format_nest, loop_nest, paths
from tvm_practice.viz.matmuls import SMALL_SIZE, SMALL_TILE, matmul_makers
from tvm_practice.viz.nest_picture import changed_lines, nest_svg


def matmul_study(size: int, source: str = "solutions") -> dict[str, Any]:
    """Look at the course's matmul under its schedules: loops, accesses, caches.

    Args:
        size: rows and columns for the caches; the maps of memory are of 32 x 32.
        source: the package whose phase-2 functions make the schedules.

    Returns:
        {"size", "tile", "left_out": {name: reason}, "steps": {name: [{"primitive", "svg",
        "text"}]}, "access": SVG, "players": {name: see access_picture.animation}, "cache": see
        cache_study}.
    """
    from tvm_practice.manual_schedule import register_tile

    rows, columns = register_tile()
    made, left_out = _make(matmul_makers(size, rows=rows, columns=columns, source=source))
    small, _ = _make(matmul_makers(SMALL_SIZE, rows=SMALL_TILE, columns=SMALL_TILE, source=source))
    windows = matmul_windows(
        {
            name: access_program(schedule.mod)
            for name, (schedule, _) in small.items()
            if name != "tiled+parallel"  # touches what tiled does, on each core a part
        }
    )
    return {
        "size": size,
        "tile": [rows, columns],
        "left_out": left_out,
        # The loops of the naive one are the first step of the others.
        "steps": {
            name: pictured(steps)
            for name, (_, steps) in made.items()
            if len(steps) > 1 or len(made) == 1
        },
        "access": access_svg(windows, title=f"Memory access of a {SMALL_SIZE}³ matmul"),
        "players": {name: animation(part) for name, part in windows.items()},
        "cache": cache_study(
            {name: access_program(schedule.mod) for name, (schedule, _) in made.items()},
            work=size**3,
        ),
    }


def _make(
    makers: Mapping[str, Callable[[], Any]],
) -> tuple[dict[str, tuple[Any, list[ScheduleStep]]], dict[str, str]]:
    """Schedules with their steps, and why one could not be made."""
    made, left_out = {}, {}
    for name, make in makers.items():
        try:
            made[name] = recorded(make)
        except NotImplementedError:
            left_out[name] = "to do"
        except Exception as error:  # whatever is wrong with a learner's schedule
            lines = str(error).strip().splitlines() or ["no message"]
            left_out[name] = f"{type(error).__name__}: {lines[-1]}"
    return made, left_out


def matmul_windows(programs: Mapping[str, AccessProgram]) -> dict[str, Window]:
    """The same work of each small matmul: the multiply-adds of one tile of C.

    Packing is left out: it is done once, and the window begins where its copies are read.
    """
    work = SMALL_TILE * SMALL_TILE * SMALL_SIZE
    windows = {}
    for name, program in programs.items():
        copies = [each.name for each in program.buffers if each.name.endswith("_packed")]
        # A tile in registers touches memory for A and B alone; otherwise C is read and written
        # too, and set to zero at first.
        touches = 2 * work if copies else 4 * work + SMALL_TILE * SMALL_TILE
        since = min(copies) if copies else None
        windows[name] = window(program, touches, since=since, caption=f"{work} multiply-adds")
    return windows


def pictured(steps: list[ScheduleStep]) -> list[dict[str, Any]]:
    """Each step with its loop nest as a picture and as text, what it changed marked."""
    found = []
    before = ""
    for step in steps:
        text = format_nest(step.nest)
        changed = changed_lines(before, text) if before else frozenset()
        found.append(
            {
                "primitive": step.primitive,
                "svg": nest_svg(step.nest, title=step.primitive or "loops", changed=changed),
                "text": text,
            }
        )
        before = text
    return found


def cache_study(
    programs: Mapping[str, AccessProgram], *, work: int, usual: bool = False
) -> dict[str, Any]:
    """Misses of each program in this machine's caches.

    Args:
        work: multiply-adds of each, for a rate.
        usual: usual caches instead, for figures that do not depend on the machine.
    """
    levels, known = (USUAL, False) if usual else machine_caches()
    counts: dict[str, CacheCounts] = {}
    for name, program in programs.items():
        caches = simulate(program, levels)
        pages = simulate(program, [USUAL_TLB])
        counts[name] = CacheCounts(caches.accesses, {**caches.misses, **pages.misses})
    shown = [*levels, USUAL_TLB]
    return {
        "levels": [str(level) for level in shown],
        "known": known,
        "work": work,
        "counts": {name: each.to_dict() for name, each in counts.items()},
        "svg": cache_svg(
            counts, [level.name for level in shown], work=work, title="Cache misses by schedule"
        ),
    }


def cache_study_of(programs: Mapping[str, Any], work: int, usual: bool = False) -> dict[str, Any]:
    """`cache_study` of programs as JSON, for those of the classic engine."""
    return cache_study(
        {name: AccessProgram.from_dict(each) for name, each in programs.items()},
        work=work,
        usual=usual,
    )


def roofline_study(size: int, seconds: float = 5.0, source: str = "solutions") -> dict[str, Any]:
    """This machine's limits, and the course's matmul under them, schedule by schedule.

    Args:
        size: rows and columns.
        seconds: for timing the schedules, in turns.
        source: the package whose phase-2 functions make the schedules.

    Returns:
        {"size", "limits": see Roofline.to_dict, "kernels": {name: {"gflops", "intensity"}},
        "comparison", "svg"}.
    """
    import functools

    import numpy as np
    import tvm

    from tvm_practice import engines
    from tvm_practice.manual_schedule import register_tile
    from tvm_practice.measure import compare_interleaved
    from tvm_practice.viz.roofline import Kernel, Roofline, measure_roofline, roofline_svg

    rows, columns = register_tile()
    made, _ = _make(matmul_makers(size, rows=rows, columns=columns, source=source))
    limits = measure_roofline()
    levels, _ = machine_caches()
    a, b = np.random.default_rng().standard_normal((2, size, size), dtype="float32")
    arguments = [tvm.runtime.tensor(each) for each in (a, b, np.zeros_like(a))]
    target = engines.host_target()
    runs = {
        name: functools.partial(tvm.compile(schedule.mod, target=target)["main"], *arguments)
        for name, (schedule, _) in made.items()
    }
    timed = compare_interleaved(
        runs, baseline=next(iter(runs)), rounds=10, warmup=1, time_limit=seconds
    )
    # What else ran on this machine meanwhile can only have lowered them.
    again = measure_roofline()
    limits = Roofline(
        max(limits.peak_gflops, again.peak_gflops),
        max(limits.memory_gbps, again.memory_gbps),
        limits.threads,
    )
    flop = 2 * size**3
    kernels = {}
    for name, latency in timed.latency.items():
        counts = simulate(access_program(made[name][0].mod), levels)
        moved = counts.total_misses(levels[-1].name) * levels[-1].line_bytes
        kernels[name] = Kernel(gflops=flop / latency.median / 1e6, intensity=flop / moved)
    return {
        "size": size,
        "limits": limits.to_dict(),
        "kernels": {name: asdict(each) for name, each in kernels.items()},
        "comparison": timed.to_dict(),
        "svg": roofline_svg(limits, kernels, title="Roofline of this machine"),
    }


def kernel_pictures(module: Any, *, most: int = 5) -> list[dict[str, Any]]:
    """The loops of a scheduled Relax module's kernels with most work.

    Work is how many elements are stored in all; an extent that is not a number counts once.

    Returns:
        [{"name", "work", "svg"}], the largest first.
    """
    nests = {
        str(variable.name_hint): loop_nest(function)
        for variable, function in module.functions.items()
        if type(function).__name__ == "PrimFunc"
    }
    work = {
        name: sum(
            prod(loop.extent for loop in loops if isinstance(loop.extent, int))
            for loops, _ in paths(nest)
        )
        for name, nest in nests.items()
    }
    largest = sorted(nests, key=lambda name: -work[name])[:most]
    return [
        {"name": name, "work": work[name], "svg": nest_svg(nests[name], title=name)}
        for name in largest
    ]
