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
        to_device = tvm.nd.array
    else:
        primfunc = te.create_prim_func(list(tensors)).with_attr("global_symbol", "main")
        function = tvm.compile(primfunc, target={"kind": "llvm"})["main"]
        to_device = tvm.runtime.tensor

    def run(*inputs: np.ndarray) -> np.ndarray:
        output = to_device(np.zeros(shape, dtype))
        function(*(to_device(each) for each in inputs), output)
        result: np.ndarray = output.numpy()
        return result

    return run
