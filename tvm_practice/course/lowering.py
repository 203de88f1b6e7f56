"""Tensor expressions to loops and to something callable, on whichever engine is active."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_practice import engines


def lower_expression(tensors: Sequence[Any]) -> Any:
    """The default loops of an expression: what `viz.loop_nest` reads on either engine."""
    from tvm import te

    if engines.active() == engines.CLASSIC:
        from tvm_practice.viz.loop_nest import classic_statement

        return classic_statement(te.create_schedule(tensors[-1].op))
    return te.create_prim_func(list(tensors))


def build_expressions(
    inputs: Sequence[Any], outputs: Sequence[Any]
) -> Callable[..., list[np.ndarray]]:
    """Compile stages as they stand, unscheduled, for this machine's CPU.

    Args:
        inputs: the placeholders.
        outputs: the stages that are wanted; those that others read come before them.

    Returns:
        A function from a numpy array per input to one per output.
    """
    import tvm
    from tvm import te

    tensors = [*inputs, *outputs]
    if engines.active() == engines.CLASSIC:
        schedule = te.create_schedule([each.op for each in outputs])
        function = tvm.build(schedule, tensors, target="llvm")
    else:
        primfunc = te.create_prim_func(tensors).with_attr("global_symbol", "main")
        function = tvm.compile(primfunc, target={"kind": "llvm"})["main"]

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        results = [
            to_device(_unwritten([int(extent) for extent in each.shape], str(each.dtype)))
            for each in outputs
        ]
        function(*(to_device(each) for each in arrays), *results)
        return [each.numpy() for each in results]

    return run


def _unwritten(shape: list[int], dtype: str) -> np.ndarray:
    """What no kernel writes by chance: NaN, or a number where the type has none."""
    return np.full(shape, np.nan if dtype.startswith(("float", "bfloat")) else 77, dtype)


def stages_of(output: Any) -> dict[str, Any]:
    """The tensors that te.compute declares on the way to `output`, itself included, by name."""
    found: dict[str, Any] = {}
    pending = [output]
    while pending:
        tensor = pending.pop()
        operation = tensor.op
        if type(operation).__name__ == "ComputeOp" and operation.name not in found:
            found[str(operation.name)] = tensor
            pending.extend(operation.input_tensors)
    return found


def build_expression(tensors: Sequence[Any]) -> Callable[..., np.ndarray]:
    """`build_expressions` of one output, which comes last."""
    run = build_expressions(tensors[:-1], tensors[-1:])
    return lambda *arrays: run(*arrays)[0]


def build_module(module: Any) -> Callable[..., None]:
    """`main` of a module of PrimFuncs, compiled for this machine. Current TVM."""
    import tvm

    function: Callable[..., None] = tvm.compile(module, target=engines.host_target())["main"]
    return function


def build_schedule(schedule: Any, tensors: Sequence[Any]) -> Callable[..., None]:
    """A te.Schedule and its tensors, compiled for this machine. Classic TVM."""
    import tvm

    function: Callable[..., None] = tvm.build(schedule, list(tensors), target=engines.host_target())
    return function


def to_device(array: np.ndarray) -> Any:
    """The active engine's tensor on the CPU, with these values."""
    import tvm

    return tvm.nd.array(array) if engines.active() == engines.CLASSIC else tvm.runtime.tensor(array)
