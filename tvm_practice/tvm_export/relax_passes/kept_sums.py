"""A convolution's sums that an addition reads, kept in 16 bits.

Where a residual connection has a convolution of its own, an addition reads two convolutions. It is
fused with the first; the second would write float32 for it. But the second's values are

    y = factor * sum + offset       255 * (negative weights) <= sum <= 255 * (positive weights)

with bounds per channel that need no calibration. Steps of a 65,536th of the range between them clip
nothing, and take half of float32's memory. Values fill only a part of that range, and have fewer
steps than that: the accuracy that an export reports includes their rounding.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_practice.tvm_export.relax_passes.fused_padding import read_once
from tvm_practice.tvm_export.relax_passes.requantization import (
    BYTE,
    SMALLEST_SCALE,
    Affine,
    affine,
    in_whole_steps,
    operator_name,
)
from tvm_practice.tvm_export.rewriting import rewritten

_LEAST, _LARGEST = -(2.0**15), 2.0**15 - 1  # of int16


@dataclass(frozen=True)
class _Steps:
    """The values scale * h + middle, where h, an int16, is round(factor * total + offset).

    Attributes:
        total: the variable of the sums.
        factor, offset, scale, middle: float64, an element per channel.
    """

    total: Any
    factor: np.ndarray
    offset: np.ndarray
    scale: np.ndarray
    middle: np.ndarray


def with_short_sums(module: Any) -> Any:
    """A Relax module whose additions of two integer convolutions read the second in 16 bits.

    Args:
        module: as `quantization.with_integer_layers` makes it; it is left as it was.
    """
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    found: dict[Any, _Steps] = {}  # by the variable that an addition reads
    for _, function in module.functions_items():
        if isinstance(function, relax.Function):
            found |= _second_terms(function)

    @mutator
    class Shortening(PyExprMutator):  # type: ignore[misc]
        def visit_var_binding_(self, binding: Any) -> None:
            if (known := found.get(binding.var)) is None:
                super().visit_var_binding_(binding)
                return
            emit, op = self.builder_.emit, relax.op

            def constant(values: np.ndarray) -> Any:
                return relax.const(values.astype("float32"))

            steps = in_whole_steps(emit, self.visit_expr(known.total), known.factor, known.offset)
            short = emit(op.astype(emit(op.astype(steps, "int32")), "int16"))
            read = emit(op.multiply(emit(op.astype(short, "float32")), constant(known.scale)))
            self.set_var_remap(binding.var, emit(op.add(read, constant(known.middle))))

    return relax.transform.DeadCodeElimination()(rewritten(module, Shortening(module)))


def with_short_sums_stored(module: Any) -> Any:
    """A Relax module whose fusion ends where sums are in 16 bits, so that memory has them so.

    Args:
        module: of `with_short_sums`, its layouts chosen; it is left as it was.
    """
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Storing(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            call = super().visit_call_(call)
            if operator_name(call) != "astype" or str(call.args[0].ty.dtype) != "int16":
                return call
            # No function is fused across a view, which copies nothing.
            stored = self.builder_.emit(relax.op.memory.view(call.args[0], dtype="int16"))
            return relax.op.astype(stored, str(call.ty.dtype))

    return rewritten(module, Storing(module))


def _second_terms(function: Any) -> dict[Any, _Steps]:
    """The second of the two convolutions of each addition, by the variable that it is added as."""
    bindings = [each for block in function.body.blocks for each in block.bindings]
    bound = {each.var: each.value for each in bindings}
    place = {each.var: index for index, each in enumerate(bindings)}
    once = read_once(function)
    found = {}
    for value in bound.values():
        if operator_name(value) != "add" or not all(each in place for each in value.args):
            continue
        first, second = sorted(value.args, key=lambda each: place[each])
        steps = [_steps_of(affine(each, bound, once), bound) for each in (first, second)]
        if not first.same_as(second) and steps[0] is not None and steps[1] is not None:
            found[second] = steps[1]
    return found


def _steps_of(known: Affine | None, bound: dict[Any, Any]) -> _Steps | None:
    """The steps of an integer convolution's values; None for any other values."""
    import tvm

    value: Any = None if known is None else bound.get(known.total)
    if known is None or operator_name(value) != "nn.conv2d":
        return None
    x, weight = value.args
    if not isinstance(weight, tvm.ir.GenericConst) or str(x.ty.dtype) != "uint8":
        return None
    if (known.low, known.high) != (-np.inf, np.inf):
        return None
    return _steps(known, np.asarray(weight.value.numpy()))


def _steps(known: Affine, weight: np.ndarray) -> _Steps:
    """The steps of a convolution's values, of a weight (channels, …) of int8."""
    each = weight.reshape(len(weight), -1).astype("int64")
    bounds = np.stack([each.clip(max=0).sum(1), each.clip(min=0).sum(1)]) * BYTE[1]
    low, high = np.sort(bounds.reshape(2, 1, -1, 1, 1) * known.factor, axis=0) + known.offset
    scale = np.maximum((high - low) / (_LARGEST - _LEAST), SMALLEST_SCALE)
    middle = low - _LEAST * scale
    return _Steps(known.total, known.factor / scale, (known.offset - middle) / scale, scale, middle)
