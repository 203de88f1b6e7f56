"""The course's matmul, naive to packed: its schedules, and the studies that picture them.

`python -m tvm_practice.viz` shows it unless it is given a schedule, and finds its functions here by
their names.
"""

import functools
import importlib
from collections.abc import Callable, Mapping
from typing import Any

from tvm_practice.course.catalog import MINE
from tvm_practice.course.stack import earlier
from tvm_practice.engines.blocking import packed_blocking, register_tile
from tvm_practice.viz.access import AccessProgram, access_program
from tvm_practice.viz.access_picture import Window, access_svg, animation, window
from tvm_practice.viz.studies import cache_study, make_all, pictured, roofline_study

# The maps of memory: with 32 x 32 matrices, a tile is a quarter of a row and of a column.
_SMALL_SIZE, _SMALL_TILE = 32, 8
_PHASE_3_TILE = 32  # what its compile_variants takes if nothing is said


def matmul_makers(
    size: int, *, tile: tuple[int, int] | None = None, mine: bool = False
) -> dict[str, Callable[[], Any]]:
    """Functions that make the schedules of a size³ matmul on the current engine.

    Args:
        size: rows and columns of A, B and C.
        tile: rows and columns of a tile of C; `register_tile`'s if not given.
        mine: by the learner's functions of phase 2, whether they pass or not; one that is still to
            do raises NotImplementedError when its schedule is made. Without it, by those that the
            process stands on (see `stack`): the reference ones unless a run says otherwise.

    Returns:
        By name, a function without arguments that returns a tvm.s_tir.Schedule.
    """
    rows, columns = tile or register_tile()
    step = functools.partial(_step, mine=mine)

    def naive() -> Any:
        import tvm
        from tvm import te

        matmul = earlier("te_basics.matmul")
        function = te.create_prim_func(matmul(size, size, size)).with_attr("global_symbol", "main")
        return tvm.s_tir.Schedule(tvm.IRModule({"main": function}))

    def tiled() -> Any:
        schedule = naive()
        step("tile")(schedule, schedule.get_sblock("C"), rows, columns)
        return schedule

    def tiled_in_parallel() -> Any:
        schedule = tiled()
        block = schedule.get_sblock("C")
        step("vectorize")(schedule, block)
        step("parallelize")(schedule, block)
        return schedule

    packed = functools.partial(step("packed_matmul"), size, size, size, rows=rows, columns=columns)
    return {
        "naive": naive, "tiled": tiled, "tiled+parallel": tiled_in_parallel, "packed": packed
    }  # fmt: skip


def _step(name: str, *, mine: bool) -> Callable[..., Any]:
    """Phase 2's function of that name: see `matmul_makers`."""
    if not mine:
        return earlier(f"manual_schedule.{name}")
    function: Callable[..., Any] = getattr(importlib.import_module(f"{MINE}.manual_schedule"), name)
    return function


def compared_makers(size: int, *, mine: bool = False) -> dict[str, Callable[[], Any]]:
    """The schedules that phase 3 compares, under its names: those of compile_variants, and packed.

    "tiled" is vectorized here, on one thread, and "packed" has the tiles of `packed_blocking`.

    Args:
        size: rows and columns of A, B and C.
        mine: see `matmul_makers`.
    """
    in_tiles = matmul_makers(size, tile=(_PHASE_3_TILE, _PHASE_3_TILE), mine=mine)

    def tiled() -> Any:
        schedule = in_tiles["tiled"]()
        _step("vectorize", mine=mine)(schedule, schedule.get_sblock("C"))
        return schedule

    packed_matmul = _step("packed_matmul", mine=mine)
    packed = functools.partial(packed_matmul, size, size, size, **packed_blocking(size))
    return {**in_tiles, "tiled": tiled, "packed": packed}


def small_matmul_makers(*, mine: bool = False) -> dict[str, Callable[[], Any]]:
    """Those of `matmul_makers` whose accesses `matmul_windows` shows, of a small matmul."""
    makers = matmul_makers(_SMALL_SIZE, tile=(_SMALL_TILE, _SMALL_TILE), mine=mine)
    del makers["tiled+parallel"]  # touches what tiled does, on each core a part
    return makers


def matmul_windows(programs: Mapping[str, AccessProgram]) -> dict[str, Window]:
    """The same work of each small matmul: the multiply-adds of one tile of C.

    Packing is left out: it is done once, and the window begins where its copies are read.

    Args:
        programs: of the functions of `small_matmul_makers`.
    """
    work = _SMALL_TILE * _SMALL_TILE * _SMALL_SIZE
    windows = {}
    for name, program in programs.items():
        copies = [each.name for each in program.buffers if each.name.endswith("_packed")]
        # A tile in registers touches memory for A and B alone; otherwise C is read and written
        # too, and set to zero at first.
        in_registers = any(each.in_registers for each in program.buffers)
        touches = 2 * work if in_registers else 4 * work + _SMALL_TILE * _SMALL_TILE
        since = min(copies) if copies else None
        windows[name] = window(program, touches, since=since, caption=f"{work} multiply-adds")
    return windows


# Phase 2's steps, each of which keeps what the one before it does, and what it changes.
_STEPS = {
    "naive": "the loops as declared",
    "tile": "split, reorder",
    "vectorize": "a vector at a time",
    "parallelize": "tiles on all cores",
    "register_block": "C in registers",
    "packed_matmul": "A and B in reading order",
}


def steps_said() -> dict[str, str]:
    """What each step changes, in a few words."""
    return dict(_STEPS)


def step_makers(size: int, *, tile: tuple[int, int] | None = None) -> dict[str, Callable[[], Any]]:
    """Functions that make the schedule of each step of `steps_said`, with phase 2's functions.

    Args:
        size: rows and columns of A, B and C.
        tile: rows and columns of a tile of C; `register_tile`'s if not given.
    """
    rows, columns = tile or register_tile()
    step = functools.partial(_step, mine=False)
    makers = matmul_makers(size, tile=(rows, columns))

    def vectorized() -> Any:
        schedule = makers["tiled"]()
        step("vectorize")(schedule, schedule.get_sblock("C"))
        return schedule

    def in_registers() -> Any:
        schedule = makers["naive"]()
        block = schedule.get_sblock("C")
        task, _ = schedule.split(schedule.get_loops(block)[0], [None, 8 * rows])
        schedule.parallel(task)
        step("register_block")(schedule, block, rows, columns, 4)
        return schedule

    made = (makers["naive"], makers["tiled"], vectorized, makers["tiled+parallel"])
    return dict(zip(_STEPS, (*made, in_registers, makers["packed"]), strict=True))


def step_windows() -> dict[str, Window]:
    """The multiply-adds of one tile of C, by each of `step_makers`, of a small matmul."""
    made = step_makers(_SMALL_SIZE, tile=(_SMALL_TILE, _SMALL_TILE))
    programs = {name: access_program(make().mod) for name, make in made.items()}
    return matmul_windows(programs)


def step_rates(size: int, *, seconds: float = 10.0) -> dict[str, Any]:
    """Time the schedules of `step_makers` in turns, on this machine.

    Returns:
        {"size", "threads", "processor", "disturbance": see measure.Comparison, "gflops": by step,
        of the median}.
    """
    import numpy as np
    import tvm

    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved
    from tvm_practice.measure.environment import environment

    a, b = np.random.default_rng(0).standard_normal((2, size, size), dtype="float32")
    arguments = [tvm.runtime.tensor(each) for each in (a, b, np.zeros_like(a))]
    runs = {
        name: functools.partial(
            tvm.compile(make().mod, target=engines.host_target())["main"], *arguments
        )
        for name, make in step_makers(size).items()
    }
    compared = compare_interleaved(runs, baseline="naive", rounds=100, warmup=2, time_limit=seconds)
    return {
        "size": size,
        "threads": engines.thread_count(),
        "processor": environment()["processor"],
        "disturbance": compared.disturbance,
        "gflops": {
            name: round(2 * size**3 / latency.median / 1e6, 2)
            for name, latency in compared.latency.items()
        },
    }


def matmul_study(size: int, *, mine: bool = False) -> dict[str, Any]:
    """Look at the matmul under its schedules: loops, accesses, caches.

    Args:
        size: rows and columns for the caches; the maps of memory are of 32 x 32.
        mine: see `matmul_makers`.

    Returns:
        {"size", "tile", "left_out": {name: reason}, "steps": {name: see viz.studies.pictured},
        "access": SVG, "players": {name: see viz.access_picture.animation}, "cache": see
        viz.studies.cache_study}.
    """
    made, left_out = make_all(matmul_makers(size, mine=mine))
    small, _ = make_all(small_matmul_makers(mine=mine))
    windows = matmul_windows(
        {name: access_program(schedule.mod) for name, (schedule, _) in small.items()}
    )
    return {
        "size": size,
        "tile": list(register_tile()),
        "left_out": left_out,
        # The loops of the naive one are the first step of the others.
        "steps": {
            name: pictured(steps)
            for name, (_, steps) in made.items()
            if len(steps) > 1 or len(made) == 1
        },
        "access": access_svg(windows, title=f"Memory access of a {_SMALL_SIZE}³ matmul"),
        "players": {name: animation(part) for name, part in windows.items()},
        "cache": cache_study(
            {name: access_program(schedule.mod) for name, (schedule, _) in made.items()},
            work=size**3,
        ),
    }


def matmul_roofline(size: int, *, seconds: float = 5.0, mine: bool = False) -> dict[str, Any]:
    """This machine's limits, and the matmul under them, by the schedules of `compared_makers`.

    Args:
        size: rows and columns.
        seconds: for timing the schedules, in turns.
        mine: see `matmul_makers`.

    Returns:
        {"size", and what viz.studies.roofline_study returns}.
    """
    import numpy as np

    made, _ = make_all(compared_makers(size, mine=mine))
    a, b = np.random.default_rng().standard_normal((2, size, size), dtype="float32")
    study = roofline_study(
        {name: schedule for name, (schedule, _) in made.items()},
        [a, b, np.zeros_like(a)],
        flop=2 * size**3,
        seconds=seconds,
    )
    return {"size": size, **study}
