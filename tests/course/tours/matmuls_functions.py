"""Functions that the tests of the matmul's schedules call in a child process."""


def loops(size: int) -> dict[str, str]:
    """The loops of what phase 3's roofline compares, and of its own variants, as text by name."""
    from tvm_practice.course.tours.matmuls import compared_makers
    from tvm_practice.viz.loop_nest import format_nest, loop_nest

    return {
        name: format_nest(loop_nest(make().mod["main"]))
        for name, make in compared_makers(size).items()
    }
