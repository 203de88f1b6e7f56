"""Products of a batch by one matrix, without a copy of the matrix for each of the batch.

Where a tensor is not contiguous, PyTorch makes of a linear layer on it

    bmm(x, weight.expand(batch, k, n))

Folded, that is a constant of `batch` copies of the weight, which are stored, loaded, and read one
after the other: an LSTM over 35 steps came with 447 MB of them. A product repeats its operands over
the batch itself.
"""

from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.relax_passes.requantization import operator_name
from tvm_practice.tvm_export.rewriting import rewritten


def without_repeated_operands(module: Any) -> Any:
    """A Relax module whose products read one matrix where its operand was copies of one.

    Args:
        module: as imported; it is left as it was.
    """
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Sharing(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            call = super().visit_call_(call)
            if operator_name(call) != "matmul":
                return call
            for position in (1, 0):  # the second is a weight more often
                once = _before_repeating(call.args[position], self.lookup_binding)
                if once is None:
                    continue
                operands = [*call.args[:position], once, *call.args[position + 1 :]]
                changed = self.builder_.normalize(
                    relax.op.matmul(*operands, out_dtype=call.attrs.out_dtype)
                )
                call = changed if _equal(_extents(changed), _extents(call)) else call
            return call

    return relax.transform.DeadCodeElimination()(rewritten(module, Sharing(module)))


def _before_repeating(operand: Any, binding: Callable[[Any], Any]) -> Any | None:
    """The tensor that an operand of a product repeats over its batch; None where there is none."""
    from tvm import relax

    made = binding(operand) if isinstance(operand, relax.Var) else None
    name = operator_name(made)
    if made is None or name not in ("broadcast_to", "reshape"):
        return None
    if not _same_matrices(made.args[0], operand):
        return None
    if name == "broadcast_to":
        return made.args[0]
    once = _before_repeating(made.args[0], binding)  # reshape of (b, c, k, n) to (b * c, k, n)
    return once if once is not None and len(_extents(once)) == 2 else None


def _same_matrices(one: Any, other: Any) -> bool:
    """Whether the last two axes of two tensors have the same extents."""
    extents = [_extents(each)[-2:] for each in (one, other)]
    return all(len(each) == 2 for each in extents) and _equal(*extents)


def _extents(tensor: Any) -> list[Any]:
    """Of a tensor's shape; none where it is unknown."""
    return list(getattr(tensor.ty.shape, "values", ()))


def _equal(one: list[Any], other: list[Any]) -> bool:
    import tvm_ffi

    return len(one) == len(other) and all(map(tvm_ffi.structural_equal, one, other))
