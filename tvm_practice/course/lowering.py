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


def build_expression(tensors: Sequence[Any]) -> Callable[..., np.ndarray]:
    """Compile an expression as it stands, unscheduled, for this machine's CPU.

    Args:
        tensors: its inputs, then its one output.

    Returns:
        A function from numpy inputs to the numpy output.
    """
    import tvm
    from tvm import te

    shape = [int(extent) for extent in tensors[-1].shape]
    dtype = str(tensors[-1].dtype)
    if engines.active() == engines.CLASSIC:
        function = tvm.build(te.create_schedule(tensors[-1].op), list(tensors), target="llvm")
    else:
        primfunc = te.create_prim_func(list(tensors)).with_attr("global_symbol", "main")
        function = tvm.compile(primfunc, target={"kind": "llvm"})["main"]

    def run(*inputs: np.ndarray) -> np.ndarray:
        output = to_device(np.zeros(shape, dtype))
        function(*(to_device(each) for each in inputs), output)
        result: np.ndarray = output.numpy()
        return result

    return run


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
