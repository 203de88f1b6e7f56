"""From a convolution's 32-bit sums to the next one's bytes in one step of each kind.

As layers are quantized one by one, sums are moved, scaled, biased and clipped by an activation, and
the result is scaled, rounded, moved and clipped again. All of it but the rounding is affine or a
clip, so that one multiplication, one addition and one clip do:

    clip(round(inverse * activation(scale * (sum - shift) + bias)) + zero, 0, 255)
    = clip(round(factor * sum + offset), low, high)
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tvm_practice.tvm_export.relax_passes.fused_padding import read_once
from tvm_practice.tvm_export.rewriting import rewritten

BYTE = 0.0, 255.0
"""The limits of a byte."""
SMALLEST_SCALE = 2.0**-100  # of values that are all the same


@dataclass(frozen=True)
class Affine:
    """The values clip(factor * total + offset, low, high), of a variable of 32-bit sums.

    Attributes:
        total: the variable of the sums.
        factor, offset: float64, of the sums' rank.
        low, high: the limits.
    """

    total: Any
    factor: Any
    offset: Any
    low: float
    high: float


def with_short_requantization(module: Any) -> Any:
    """A Relax module in which what only makes bytes of sums is one step of each kind.

    Args:
        module: as `quantization.with_integer_layers` makes it; it is left as it was.
    """
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    found: dict[Any, Affine] = {}  # by what the last clip reads
    for _, function in module.functions_items():
        if isinstance(function, relax.Function):
            found |= _requantizations(function)

    @mutator
    class Shortening(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            if operator_name(call) != "clip" or (known := found.get(call.args[0])) is None:
                return super().visit_call_(call)
            total = self.visit_expr(known.total)
            steps = in_whole_steps(self.builder_.emit, total, known.factor, known.offset)
            return relax.op.clip(steps, known.low, known.high)

    return relax.transform.DeadCodeElimination()(rewritten(module, Shortening(module)))


def in_whole_steps(emit: Any, total: Any, factor: np.ndarray, offset: np.ndarray) -> Any:
    """round(factor * total + offset) in float32, of 32-bit sums, emitted step by step."""
    from tvm.relax import const, op

    scaled = emit(op.multiply(emit(op.astype(total, "float32")), const(factor.astype("float32"))))
    return emit(op.round(emit(op.add(scaled, const(offset.astype("float32"))))))


def _requantizations(function: Any) -> dict[Any, Affine]:
    """The ways from sums to bytes that nothing else reads from, by what the last clip reads."""
    bound = {each.var: each.value for block in function.body.blocks for each in block.bindings}
    once = read_once(function)
    found = {}
    for value in bound.values():
        if operator_name(value) != "clip":
            continue
        known = _rounded(value.args[0], limits_of(value), bound, once)
        if known is not None:
            found[value.args[0]] = known
    return found


def _rounded(
    var: Any, limits: tuple[float, float], bound: dict[Any, Any], once: set[Any]
) -> Affine | None:
    """What round(inverse * x) + zero comes to, the rounding left out, within limits."""
    parts = _step(var, "add", bound, once)
    if parts is None or (value := bound.get(parts[0])) is None or operator_name(value) != "round":
        return None
    if parts[0] not in once:
        return None
    zero = parts[1]
    scaled = _step(value.args[0], "multiply", bound, once)
    if scaled is None or zero.ndim or scaled[1].ndim or zero != np.rint(zero) or scaled[1] <= 0:
        return None
    known = affine(scaled[0], bound, once)
    if known is None:
        return None
    inverse = scaled[1]
    low, high = (
        float(np.clip(np.rint(each * inverse) + zero, *limits)) for each in (known.low, known.high)
    )
    offset = known.offset * inverse + zero
    return Affine(known.total, known.factor * inverse, offset, low, high)


def affine(var: Any, bound: dict[Any, Any], once: set[Any]) -> Affine | None:
    """What a variable is in terms of sums of int32, if that is all it is."""
    value = bound.get(var)
    if value is None or var not in once:
        return None
    name = operator_name(value)
    if name in ("nn.relu", "clip"):
        known = affine(value.args[0], bound, once)
        if known is None or (known.low, known.high) != (-np.inf, np.inf):
            return None
        low, high = (0.0, np.inf) if name == "nn.relu" else limits_of(value)
        return Affine(known.total, known.factor, known.offset, low, high)
    if name == "add" and (parts := _step(var, name, bound, once)):
        known = affine(parts[0], bound, once)
        if known is None or (known.low, known.high) != (-np.inf, np.inf):
            return None
        return Affine(known.total, known.factor, known.offset + parts[1], -np.inf, np.inf)
    if name == "multiply" and (parts := _step(var, name, bound, once)):
        moved = bound.get(parts[0])
        if moved is None or operator_name(moved) != "astype" or parts[0] not in once:
            return None
        shifted = _step(moved.args[0], "subtract", bound, once) or (moved.args[0], np.zeros(()))
        if str(shifted[0].ty.dtype) != "int32":
            return None
        return Affine(shifted[0], parts[1], -shifted[1] * parts[1], -np.inf, np.inf)
    return None


def _step(var: Any, name: str, bound: dict[Any, Any], once: set[Any]) -> tuple[Any, Any] | None:
    """The variable and the constant, in float64, that an operator makes `var` of."""
    import tvm
    from tvm import relax

    value = bound.get(var)
    if value is None or operator_name(value) != name or var not in once:
        return None
    first, second = value.args
    if name in ("add", "multiply") and isinstance(second, relax.Var):
        first, second = second, first
    if not isinstance(first, relax.Var) or not isinstance(second, tvm.ir.GenericConst):
        return None
    return first, np.asarray(second.value.numpy(), "float64")


def limits_of(clip: Any) -> tuple[float, float]:
    """The limits of a call of relax.clip."""
    low, high = (float(getattr(each, "value", each)) for each in clip.args[1:])
    return low, high


def operator_name(value: Any) -> str:
    """The name of the Relax operator that a value is a call of; empty for anything else."""
    return str(getattr(getattr(value, "op", None), "name", "")).removeprefix("relax.")
