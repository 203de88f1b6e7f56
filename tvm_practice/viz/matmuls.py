"""The course's matmul, naive to packed: the schedules that the pictures show."""

import functools
import importlib
from collections.abc import Callable
from typing import Any

# A tile of the pictures: with 32 x 32 matrices, a quarter of a row and of a column.
SMALL_SIZE, SMALL_TILE = 32, 8


def matmul_makers(
    size: int, *, rows: int, columns: int, source: str = "solutions"
) -> dict[str, Callable[[], Any]]:
    """Functions that make the schedules of a size³ matmul on the current engine.

    Args:
        size: rows and columns of A, B and C.
        rows: of a tile of C.
        columns: of a tile of C.
        source: the package whose phase-2 functions are used; one that is still to do raises
            NotImplementedError when its schedule is made.

    Returns:
        By name, a function without arguments that returns a tvm.s_tir.Schedule.
    """
    steps = importlib.import_module(f"{source}.manual_schedule")

    def naive() -> Any:
        import tvm
        from tvm import te

        from solutions.te_basics import matmul

        function = te.create_prim_func(matmul(size, size, size)).with_attr("global_symbol", "main")
        return tvm.s_tir.Schedule(tvm.IRModule({"main": function}))

    def tiled() -> Any:
        schedule = naive()
        steps.tile(schedule, schedule.get_sblock("C"), rows, columns)
        return schedule

    def tiled_in_parallel() -> Any:
        schedule = tiled()
        block = schedule.get_sblock("C")
        steps.vectorize(schedule, block)
        steps.parallelize(schedule, block)
        return schedule

    packed = functools.partial(steps.packed_matmul, size, size, size, rows=rows, columns=columns)
    return {
        "naive": naive, "tiled": tiled, "tiled+parallel": tiled_in_parallel, "packed": packed
    }  # fmt: skip
