"""A model's graph as JSON, for inspection: its weights by name and digest, not by value."""

import hashlib
from typing import Any


def graph_json(module: Any) -> tuple[str, int]:
    """A Relax module as `tvm.ir.save_json` writes it, without its weights, and their bytes.

    Each constant of more than one element is a parameter of its function instead, after the
    inputs. The function's attribute "constants" has the SHA-256 of each by the parameter's name.

    Args:
        module: an IRModule; it is left as it was.
    """
    import tvm
    from tvm import relax

    lifted = module.clone()
    total = 0
    for name, function in module.functions_items():
        if isinstance(function, relax.Function):
            lifted[name], size = _without_weights(module, function)
            total += size
    return str(tvm.ir.save_json(lifted)), total


def _without_weights(module: Any, function: Any) -> tuple[Any, int]:
    """A function whose weights are parameters, and how many bytes these have."""
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    parameters: dict[tuple[Any, ...], Any] = {}
    digests: dict[str, str] = {}
    total = 0

    @mutator
    class Lifting(PyExprMutator):  # type: ignore[misc]
        def visit_generic_const_(self, constant: Any) -> Any:
            nonlocal total
            kind = getattr(constant, "ty", None)
            if not isinstance(kind, relax.TensorType):
                return constant
            array = constant.value.numpy()
            if array.size <= 1:
                return constant
            digest = hashlib.sha256(array.reshape(-1).view("uint8"))
            key = (digest.digest(), array.shape, str(kind.dtype))
            if key not in parameters:
                parameters[key] = relax.Var(f"constant_{len(parameters)}", kind)
                digests[parameters[key].name] = digest.hexdigest()
                total += array.nbytes
            return parameters[key]

    found = Lifting(module).visit_expr(function)
    if not parameters:
        return function, 0
    made = relax.Function(
        [*found.params, *parameters.values()], found.body, found.ret_ty, found.is_pure, found.attrs
    )
    made = made.with_attr("num_input", len(found.params))
    return made.with_attr("constants", digests), total
