"""How a pass in Python goes over the functions of a Relax module."""

from typing import Any


def rewritten(module: Any, mutator: Any) -> Any:
    """A Relax module in which a mutator has visited each function of Relax.

    Args:
        module: what the mutator was made for.
        mutator: a `tvm.relax.PyExprMutator` of it. Functions that it adds to its builder are in
            the result, unvisited.
    """
    from tvm import relax

    for name, function in list(module.functions_items()):
        if isinstance(function, relax.Function):
            mutator.builder_.update_func(name, mutator.visit_expr(function))
    return mutator.builder_.get()
