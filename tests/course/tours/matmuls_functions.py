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
