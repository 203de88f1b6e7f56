"""Products of int8 by constant weights for processors whose instruction takes uint8 by int8.

    sum_k x[i, k] w[k, j] = sum_k (x[i, k] + 128) w[k, j] - 128 sum_k w[k, j]

The first operand is moved by flipping its highest bit, and the last sum is a constant. Without
that, both operands are widened to 16 bits, half as many of which are multiplied at once.
"""

from typing import Any

import numpy as np

from tvm_practice.tvm_export.relax_passes.integer_operators import MOST_TERMS, constant_matrix
from tvm_practice.tvm_export.rewriting import rewritten
from tvm_practice.tvm_export.rules.cpu.dot_products import takes_unsigned

_OFFSET = 128


def with_unsigned_operands(module: Any, target: Any) -> Any:
    """A Relax module whose products and convolutions of int8 by constant int8 are of uint8.

    Sums are exact in int32 before and after.

    Args:
        module: as imported, the weights constants of its graph; it is left as it was.
        target: what it is to be compiled for; one without such an instruction changes nothing.
    """
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    if not takes_unsigned(target):
        return module

    @mutator
    class Moving(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            call = super().visit_call_(call)
            name = str(getattr(call.op, "name", ""))
            if name not in ("relax.matmul", "relax.nn.conv2d"):
                return call
            if tuple(str(each.ty.dtype) for each in (*call.args, call)) != (
                "int8",
                "int8",
                "int32",
            ):
                return call
            emit = self.builder_.emit
            if name == "relax.nn.conv2d":
                return _convolution(emit, call)
            weight = constant_matrix(call.args[1], self.lookup_binding)
            if weight is None or len(weight) > MOST_TERMS:
                return call
            weight = np.ascontiguousarray(weight)
            moved = _moved(emit, call.args[0])
            total = emit(relax.op.matmul(moved, relax.const(weight), out_dtype="int32"))
            return relax.op.subtract(total, relax.const(_OFFSET * weight.sum(0, dtype="int32")))

    # An operand of several products is moved once.
    return relax.transform.EliminateCommonSubexpr()(rewritten(module, Moving(module)))


def _moved(emit: Any, x: Any) -> Any:
    """x + 128, uint8."""
    from tvm import relax

    return emit(
        relax.op.bitwise_xor(
            emit(relax.op.astype(x, "uint8")), relax.const(np.array(_OFFSET, "uint8"))
        )
    )


def _convolution(emit: Any, call: Any) -> Any:
    """The same convolution of an operand that is moved; the call where it is of another form."""
    import tvm
    from tvm import relax

    attributes, (x, weight) = call.attrs, call.args
    if not isinstance(weight, tvm.ir.GenericConst) or int(attributes.groups) != 1:
        return call
    if (str(attributes.data_layout), str(attributes.kernel_layout)) != ("NCHW", "OIHW"):
        return call
    values = np.asarray(weight.value.numpy())
    if int(np.prod(values.shape[1:])) > MOST_TERMS:
        return call
    top, left, bottom, right = (int(each) for each in attributes.padding)
    moved = _moved(emit, x)
    if top or left or bottom or right:  # with what is 0 before
        around = [0, 0, 0, 0, top, bottom, left, right]
        moved = emit(relax.op.nn.pad(moved, around, "constant", _OFFSET))
    total = relax.op.nn.conv2d(
        moved,
        weight,
        strides=[int(each) for each in attributes.strides],
        padding=[0, 0, 0, 0],
        dilation=[int(each) for each in attributes.dilation],
        out_dtype="int32",
    )
    shift = _OFFSET * values.sum((1, 2, 3), dtype="int32").reshape(1, -1, 1, 1)
    return relax.op.subtract(emit(total), relax.const(shift))
