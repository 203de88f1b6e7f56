"""The pictures of a report, made on the current engine: a call with JSON in and out."""

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from math import prod
from typing import TYPE_CHECKING, Any

from tvm_practice.viz.access import AccessProgram, access_program
from tvm_practice.viz.cache import (
    USUAL,
    USUAL_TLB,
    CacheCounts,
    CacheLevel,
    last_cache,
    machine_caches,
    simulate,
)
from tvm_practice.viz.cache_picture import cache_svg
from tvm_practice.viz.history import ScheduleStep, recorded
from tvm_practice.viz.loop_nest import format_nest, loop_nest, paths
from tvm_practice.viz.nest_picture import changed_lines, nest_svg
from tvm_practice.viz.roofline import (
    Kernel,
    Roofline,
    measure_roofline,
    one_threads_gbps,
    roofline_svg,
)

if TYPE_CHECKING:
    import numpy as np

    from tvm_practice.measure import Comparison


def make_all(
    makers: Mapping[str, Callable[[], Any]],
) -> tuple[dict[str, tuple[Any, list[ScheduleStep]]], dict[str, str]]:
    """Schedules with their steps, and why one could not be made.

    Args:
        makers: what makes each, see `history.recorded`.

    Returns:
        ({name: (schedule, steps)}, {name: reason}): each name is in one of the two.
    """
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


def pictured(steps: list[ScheduleStep]) -> list[dict[str, Any]]:
    """Each step with its loop nest as a picture and as text, what it changed marked.

    Returns:
        [{"primitive", "svg", "text"}], the loops as they were first.
    """
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


def roofline_study(
    schedules: Mapping[str, Any], arguments: Sequence["np.ndarray"], *, flop: int, seconds: float
) -> dict[str, Any]:
    """This machine's limits, and schedules of one computation under them.

    Args:
        schedules: tvm.s_tir.Schedule by name; the first is what the others are compared with.
        arguments: what each is called with, its output last.
        flop: operations of each.
        seconds: for timing them, in turns.

    Returns:
        {"limits": see Roofline.to_dict, and "one_threads_gbps" from memory, "kernels": {name: {see
        Kernel, and "limit"}}, "comparison", "svg"}.
    """
    limits = measure_roofline()
    timed = _timed(schedules, arguments, seconds)
    # What else ran on this machine meanwhile can only have lowered them.
    again = measure_roofline()
    limits = Roofline(
        max(limits.peak_gflops, again.peak_gflops),
        max(limits.memory_gbps, again.memory_gbps),
        limits.threads,
        max(limits.cache_gbps, again.cache_gbps or 0) if limits.cache_gbps else None,
    )
    kernels = {
        name: _kernel(flop / timed.latency[name].median / 1e6, schedule, flop)
        for name, schedule in schedules.items()
    }
    return {
        "limits": {**limits.to_dict(), "one_threads_gbps": one_threads_gbps()},
        "kernels": {
            name: asdict(each) | {"limit": limits.limit(each)} for name, each in kernels.items()
        },
        "comparison": timed.to_dict(),
        "svg": roofline_svg(limits, kernels, title="Roofline of this machine"),
    }


def _timed(
    schedules: Mapping[str, Any], arguments: Sequence["np.ndarray"], seconds: float
) -> "Comparison":
    """The schedules compiled, and called in turns."""
    import tvm

    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved

    on_device = [tvm.runtime.tensor(each) for each in arguments]
    target = engines.host_target()
    runs = {
        name: functools.partial(tvm.compile(schedule.mod, target=target)["main"], *on_device)
        for name, schedule in schedules.items()
    }
    return compare_interleaved(
        runs, baseline=next(iter(runs)), rounds=10, warmup=1, time_limit=seconds
    )


def _kernel(gflops: float, schedule: Any, flop: int) -> Kernel:
    """A schedule's operations per byte that misses the second cache, and the last one."""
    levels, _ = machine_caches()
    last = last_cache()
    program = access_program(schedule.mod)
    counts = simulate(program, [*levels, *([last] if last else [])])
    kilobytes = sum(
        prod(each.shape) * each.item_bytes for each in program.buffers if not each.in_registers
    ) / 1024  # fmt: skip

    def per_byte(level: CacheLevel) -> float:
        return flop / (counts.total_misses(level.name) * level.line_bytes)

    stays_in = None
    if kilobytes <= levels[-1].kilobytes:
        stays_in = "second cache"
    elif last is not None and kilobytes <= last.kilobytes:
        stays_in = "last cache"
    if last is None:
        return Kernel(gflops, per_byte(levels[-1]), stays_in=stays_in)
    return Kernel(gflops, per_byte(last), per_byte(levels[-1]), stays_in)


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
