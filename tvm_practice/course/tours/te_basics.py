"""What phase 1 shows: each expression's loops on the active engine, and that they run."""

from typing import Any

from tvm_practice.course.steps import Steps

_SIZES = {
    "matmul": (256, 256, 256),
    "dense_bias_relu": (32, 784, 128),
    "softmax": (64, 1000),
}


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Lower each expression on the active engine, show its loops, and run it.

    Returns:
        {name: {"shape": the output's}} of the functions that are written and run.
    """
    from tvm_practice.course.lowering import build_expression, lower_expression
    from tvm_practice.viz.loop_nest import loop_nest, print_nest

    _show_vector_add(steps)
    shown = {}
    for name, arguments in _SIZES.items():
        expression = steps.attempt(name, *arguments)
        if expression is None:
            continue
        with steps.blaming(name):
            print_nest(f"{name}{arguments}", loop_nest(lower_expression(expression)))
            output = build_expression(expression)(*_random_inputs(expression))
            print(f"{name} ran: output {output.shape}, mean {output.mean():.4f}")
            shown[name] = {"shape": list(output.shape)}
    return shown


def _show_vector_add(steps: Steps) -> None:
    """The worked example: its loop, and its values beside numpy's."""
    import numpy as np

    from tvm_practice.course.lowering import build_expression, lower_expression
    from tvm_practice.viz.loop_nest import loop_nest, print_nest

    print("\nvector_add(1024): one formula, one loop.")
    expression = steps.chapter.vector_add(1024)
    print_nest("vector_add", loop_nest(lower_expression(expression)))
    a, b = _random_inputs(expression)
    difference = np.abs(build_expression(expression)(a, b) - (a + b)).max()
    print(f"built, run, compared with numpy: largest difference {difference:g}")


def _random_inputs(expression: list[Any]) -> list[Any]:
    """Standard normal values of the shapes of an expression's inputs."""
    import numpy as np

    random = np.random.default_rng()
    shapes = ([int(extent) for extent in tensor.shape] for tensor in expression[:-1])
    return [random.standard_normal(shape, dtype="float32") for shape in shapes]
