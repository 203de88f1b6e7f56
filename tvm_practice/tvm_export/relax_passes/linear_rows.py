"""The rows of linear layers as one axis, until something needs them apart.

PyTorch computes a linear layer on a batch of sequences as a product of all their rows:

    y = reshape(matmul(reshape(x, [rows, k]), weight) + bias, [batch, length, n])

TVM fuses nothing that follows the second reshape with the product: an activation or a residual
reads the product from memory and writes it once more. Here elementwise operators come before the
reshape, and go with the product.
"""

import math
from typing import Any

from tvm_practice.tvm_export.constant_folding import constant_extents
from tvm_practice.tvm_export.relax_passes.requantization import operator_name
from tvm_practice.tvm_export.rewriting import rewritten

# Operators of one tensor, that compute each element from the one at its place.
_UNARY = {
    "abs",
    "astype",
    "clip",
    "erf",
    "exp",
    "negative",
    "rsqrt",
    "sigmoid",
    "sqrt",
    "square",
    "tanh",
    "nn.gelu",
    "nn.gelu_tanh",
    "nn.leakyrelu",
    "nn.relu",
    "nn.silu",
}
# And of two, which repeat the smaller one.
_BINARY = {"add", "subtract", "multiply", "divide", "power", "maximum", "minimum"}


def with_rows_together(module: Any) -> Any:
    """A Relax module in which elementwise operators on a product's rows go before their reshape.

    Args:
        module: as it is before its operators become loops; it is left as it was. Shapes that are
            not constant stay as they are.
    """
    import tvm
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Moving(PyExprMutator):  # type: ignore[misc]
        def __init__(self, module: Any):
            super().__init__(module)
            self._products: dict[Any, bool] = {}

        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            shape = constant_extents(call)
            if shape is None:
                return call
            if operator_name(call) == "reshape":
                return self._once(call, shape)
            if operator_name(call) not in _UNARY | _BINARY:
                return call
            count = 1 if operator_name(call) in _UNARY else 2
            together = [self._together(each, shape) for each in call.args[:count]]
            rows = next((constant_extents(each) for each in together if each is not None), None)
            if rows is None:
                return call
            operands = [
                self._as_rows(each, shape, rows) if given is None else given
                for each, given in zip(call.args[:count], together, strict=True)
            ]
            if None in operands:
                return call
            arguments = [*operands, *call.args[count:]]
            moved = self.builder_.emit(relax.Call(call.op, arguments, call.attrs, call.ty_args))
            return relax.op.reshape(moved, shape)

        def _once(self, call: Any, shape: list[int]) -> Any:
            """A reshape of what was before another one."""
            made = self._made(call.args[0])
            if operator_name(made) != "reshape":
                return call
            [source, _] = made.args
            return source if constant_extents(source) == shape else relax.op.reshape(source, shape)

        def _together(self, operand: Any, shape: list[int]) -> Any | None:
            """The product's rows [rows, n] that an operand of this shape is a reshape of."""
            made = self._made(operand)
            if operator_name(made) != "reshape" or constant_extents(operand) != shape:
                return None
            source = made.args[0]
            extents = constant_extents(source)
            if extents is None or len(extents) != 2 or extents[-1:] != shape[-1:]:
                return None
            return source if len(shape) > 2 and self._is_of_product(source) else None

        def _is_of_product(self, value: Any) -> bool:
            """Whether a value is a product, or made of one element by element."""
            if value not in self._products:
                made = self._made(value)
                name = operator_name(made)
                self._products[value] = name == "matmul" or (
                    name in _UNARY | _BINARY and any(map(self._is_of_product, made.args))
                )
            return self._products[value]

        def _as_rows(self, operand: Any, shape: list[int], rows: list[int]) -> Any | None:
            """Another operand as it is added to rows; None where it is repeated in another way."""
            extents = constant_extents(operand)
            if extents is None:
                return None
            if extents == shape:
                return self._reshaped(operand, rows)
            if math.prod(extents[:-1]) != 1:
                return None
            return operand if len(extents) < 2 else self._reshaped(operand, extents[-1:])

        def _reshaped(self, operand: Any, shape: list[int]) -> Any:
            if isinstance(operand, tvm.ir.GenericConst):
                return relax.const(operand.value.numpy().reshape(shape), str(operand.ty.dtype))
            return self.builder_.emit(relax.op.reshape(operand, shape))

        def _made(self, value: Any) -> Any:
            return self.lookup_binding(value) if isinstance(value, relax.Var) else None

    passes = [relax.transform.CanonicalizeBindings(), relax.transform.DeadCodeElimination()]
    return tvm.ir.transform.Sequential(passes)(rewritten(module, Moving(module)))
