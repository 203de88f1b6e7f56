"""Functions that the tests of the matmul's schedules call in a child process."""

from typing import Any


def loops(size: int) -> dict[str, str]:
    """The loops of what phase 3's roofline compares, and of its own variants, as text by name."""
    from tvm_practice.course.tours.matmuls import compared_makers
    from tvm_practice.viz.loop_nest import format_nest, loop_nest

    return {
        name: format_nest(loop_nest(make().mod["main"]))
        for name, make in compared_makers(size).items()
    }


def packed_of_the_tables(size: int) -> str:
    """The loops of the packed product that phase 3's tables time, as text."""
    from unittest import mock

    from tvm_practice.course.tours import products, schedule_analysis
    from tvm_practice.viz.loop_nest import format_nest, loop_nest

    def loops_of(schedule: Any, _: Any) -> str:
        return format_nest(loop_nest(schedule.mod["main"]))

    with mock.patch.object(products, "compiled", loops_of):
        return str(schedule_analysis._packed(size))


def whose_tile(passing: list[str]) -> list[str]:
    """The packages of the functions `tile` that phase 3's tiled schedules are made by."""
    import solutions.manual_schedule
    import tvm_practice.manual_schedule
    from tvm_practice.course.stack import stand_on
    from tvm_practice.course.tours.matmuls import compared_makers

    called = []
    modules: list[Any] = [solutions.manual_schedule, tvm_practice.manual_schedule]
    kept = {module: module.tile for module in modules}
    right = solutions.manual_schedule.tile

    def noting(package: str) -> Any:
        def tile(*arguments: Any) -> Any:
            called.append(package)
            return right(*arguments)

        return tile

    try:
        for module in kept:
            module.tile = noting(module.__name__.partition(".")[0])
        stand_on(passing)
        compared_makers(64)["tiled"]()
    finally:
        stand_on([])
        for module, function in kept.items():
            module.tile = function
    return called
