"""Products in 16 bits: which of a model's operators round their operands, and which do not.

What gains by instructions for 16-bit numbers, and stands their rounding, is a sum of products:
matrix products and convolutions round what they multiply, and add in float32. Normalizations,
softmax, other sums and everything element by element stay float32, so a value is rounded where it
is multiplied, once, and not where it is carried along. A constant weight is rounded at compile
time: the artifact holds 16-bit weights.
"""

from typing import Any

from tvm_practice.tvm_export.rewriting import rewritten

_CONVOLUTIONS = ("conv1d", "conv2d", "conv3d")
_FULL = "float32"


def with_products_in(module: Any, dtype: str) -> Any:
    """A Relax module whose products and convolutions have operands of `dtype`, and float32 sums.

    Convolutions in groups stay: a group has few products, and no instruction sums them.

    Args:
        module: as imported, the weights constants of its graph; it is left as it was.
        dtype: "bfloat16" or "float16"; "float32" changes nothing.
    """
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    if dtype == _FULL:
        return module

    @mutator
    class Rounding(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            call = super().visit_call_(call)
            make = _maker(call)
            if make is None:
                return call
            return make(*(self.builder_.emit(relax.op.astype(each, dtype)) for each in call.args))

    # An operand of several products is rounded once.
    return relax.transform.EliminateCommonSubexpr()(rewritten(module, Rounding(module)))


def _maker(call: Any) -> Any | None:
    """A function from rounded operands to the same product; None for any other call."""
    from tvm import relax

    name = str(getattr(call.op, "name", ""))
    if name != "relax.matmul" and name not in {f"relax.nn.{each}" for each in _CONVOLUTIONS}:
        return None
    if {str(each.ty.dtype) for each in call.args} != {_FULL}:
        return None
    if name == "relax.matmul":
        return lambda one, other: relax.op.matmul(one, other, out_dtype=_FULL)
    attributes = call.attrs
    if int(attributes.groups) != 1:
        return None
    convolution = getattr(relax.op.nn, name.rpartition(".")[2])

    def convolved(data: Any, weight: Any) -> Any:
        return convolution(
            data,
            weight,
            strides=[int(each) for each in attributes.strides],
            padding=[int(each) for each in attributes.padding],
            dilation=[int(each) for each in attributes.dilation],
            data_layout=str(attributes.data_layout),
            kernel_layout=str(attributes.kernel_layout),
            out_layout=str(attributes.out_layout),
            out_dtype=_FULL,
        )

    return convolved
