"""Layers in 8-bit integers: linear ones dynamic per row, convolutions static, weights per channel.

A layer's weight becomes int8 at compile time, one scale per output channel. At every call, each row
of the layer's input becomes uint8, with a scale and a zero point that cover the row's range:

    x[i, k] ~ s[i] (q[i, k] - z[i])       w[k, j] ~ t[j] v[k, j]
    y[i, j] = s[i] t[j] (sum_k q[i, k] v[k, j] - z[i] sum_k v[k, j])

The sum of products is exact in int32, the last sum is a constant, and the rest is an epilogue that
is fused with the bias.

A convolution's input gets one scale and one zero point, from the range that calibration has seen;
values beyond it are clipped. It is padded with the zero point, so that z sum v is a constant.
Everything else stays float32.
"""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tvm_practice.tvm_export.calibration import Range
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.relax_passes.integer_operators import (
    LARGEST,
    MOST_TERMS,
    STEPS,
    constant_matrix,
    convolution,
    product,
    suits,
)
from tvm_practice.tvm_export.relax_passes.kept_bytes import steps_of, with_bytes_kept
from tvm_practice.tvm_export.relax_passes.kept_sums import with_short_sums
from tvm_practice.tvm_export.relax_passes.requantization import (
    SMALLEST_SCALE,
    with_short_requantization,
)
from tvm_practice.tvm_export.rewriting import rewritten

_ROWS = 16  # of a weight that its layer is found by


@dataclass
class Quantization:
    """Which layers to quantize, and what became of them.

    Attributes:
        keep: names of layers that stay float32, or of modules whose layers all do.
        names: of the layers, by `key` of their weights.
        ranges: of all two-dimensional convolutions, in their order; None: they stay float32.
        done: receives the names of the linear layers that were quantized.
        convolutions: receives those of convolutions.
    """

    keep: Sequence[str]
    names: Mapping[bytes, str]
    ranges: Sequence[Range] | None = None
    done: list[str] = field(default_factory=list)
    convolutions: list[str] = field(default_factory=list)

    @staticmethod
    def of(
        module: Any, keep: Sequence[str], ranges: Sequence[Range] | None = None
    ) -> "Quantization":
        """For a torch.nn.Module. Raises BadInput for a name in `keep` that no layer has."""
        names: dict[bytes, str] = {}
        for name, weight in module.named_parameters(remove_duplicate=False):
            if weight.ndim == 2 and str(weight.dtype) == "torch.float32":
                names.setdefault(key(weight.detach().numpy()), name.rpartition(".")[0])
        layers = [*names.values(), *(each.name for each in ranges or ())]
        for each in keep:
            if not any(_is_within(name, each) for name in layers):
                close = difflib.get_close_matches(each, layers, n=1, cutoff=0.4)
                near = f"; is it {close[0]}?" if close else ""
                raise BadInput(f"--keep-float {each}: no layer has this name{near}")
        return Quantization(keep, names, ranges)

    @property
    def told(self) -> str:
        """What was done, in a line."""
        counts = {"linear layer": len(self.done)}
        if self.ranges is not None:
            counts["convolution"] = len(self.convolutions)
        parts = [f"{count} {name}{'s' * (count != 1)}" for name, count in counts.items()]
        kept = f"; float32: {', '.join(self.keep)}" if self.keep else ""
        return f"{' and '.join(parts)} in int8{kept}"

    def name_of(self, weight: np.ndarray) -> str | None:
        """The layer of a (terms, channels) weight; None if it is to stay float32.

        The name of a weight that the model computes is its shape.
        """
        found = (self.names.get(key(each)) for each in (weight.T, weight))
        name = next((each for each in found if each is not None), f"a product of {weight.shape}")
        return None if self.keeps(name) or weight.shape[0] > MOST_TERMS else name

    def keeps(self, name: str) -> bool:
        """Whether a layer is to stay float32."""
        return any(_is_within(name, each) for each in self.keep)


def key(weight: np.ndarray) -> bytes:
    """A matrix's shape and some of its rows, in few bytes."""
    import hashlib

    rows = weight[:: max(1, len(weight) // _ROWS)]
    return hashlib.sha256(f"{weight.shape} {weight.dtype}".encode() + rows.tobytes()).digest()


def _is_within(name: str, module: str) -> bool:
    return name == module or name.startswith(f"{module}.")


def with_integer_layers(module: Any, quantization: Quantization) -> Any:
    """A Relax module whose products of float32 with constant weights are computed in integers.

    Args:
        module: as imported, the weights constants of its graph; it is left as it was.
        quantization: which; its `done` and `convolutions` are extended.

    Raises:
        BadInput: other convolutions than calibration has seen.
    """
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    ranges = iter(quantization.ranges or ())

    @mutator
    class Quantizing(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            call = super().visit_call_(call)
            if str(getattr(call.op, "name", "")) == "relax.nn.conv2d":
                return self._convolved(call)
            if str(getattr(call.op, "name", "")) != "relax.matmul":
                return call
            x, other = call.args
            if {str(each.ty.dtype) for each in call.args} != {"float32"}:
                return call
            weight = constant_matrix(other, self.lookup_binding)
            name = None if weight is None else quantization.name_of(weight)
            if weight is None or name is None:
                return call
            quantization.done.append(name)
            return _layer(self.builder_.emit, x, weight)

        def _convolved(self, call: Any) -> Any:
            if quantization.ranges is None:
                return call
            seen = next(ranges, None)
            if seen is None or [int(each) for each in call.args[1].ty.shape] != [*seen.weight]:
                raise BadInput("--calibration: PyTorch's convolutions are not the imported model's")
            if quantization.keeps(seen.name) or not _suits(call):
                return call
            quantization.convolutions.append(seen.name)
            return _convolution(self.builder_, call, seen, self.lookup_binding)

    # What several layers read is quantized once; a padding that was passed over is read no more.
    shared = relax.transform.EliminateCommonSubexpr()(rewritten(module, Quantizing(module)))
    kept = with_bytes_kept(relax.transform.DeadCodeElimination()(shared))
    return with_short_requantization(with_short_sums(kept))


def _suits(call: Any) -> bool:
    """Whether a convolution is one that integers gain by, of constant float32 weights."""
    import tvm

    weight = call.args[1]
    return (
        isinstance(weight, tvm.ir.GenericConst)
        and {str(each.ty.dtype) for each in call.args} == {"float32"}
        and suits(call.attrs, [int(each) for each in weight.value.shape])
    )


def _convolution(builder: Any, call: Any, seen: Range, lookup: Any) -> Any:
    """A convolution whose input has the range that was seen.

    Zeros that the model pads it with are padded as bytes.
    """
    from tvm import relax
    from tvm.relax import op

    emit = builder.emit
    x, outside = _before_padding(call.args[0], lookup)
    weight = np.asarray(call.args[1].value.numpy())
    matrix, scales = in_bytes(weight.reshape(len(weight), -1).T)
    smallest, largest = min(seen.smallest, 0.0), max(seen.largest, 0.0)
    scale = max((largest - smallest) / STEPS, SMALLEST_SCALE)
    zero = round(-smallest / scale)

    image = emit(op.astype(steps_of(emit, x, 1 / scale, zero), "uint8"))
    values = matrix.T.reshape(weight.shape)
    total = convolution(builder, call.attrs, image, zero, values, outside=outside)
    exact = emit(op.astype(emit(total), "float32"))
    factors = (scales * scale).astype("float32").reshape(1, -1, 1, 1)
    return op.multiply(exact, relax.const(factors))


def _before_padding(x: Any, lookup: Any) -> tuple[Any, list[int]]:
    """The variable that `x` is of height and width padded with zeros, and by how much; else `x`."""
    from tvm import relax

    value: Any = lookup(x) if isinstance(x, relax.Var) else None
    if str(getattr(getattr(value, "op", None), "name", "")) == "relax.nn.pad":
        width = [int(each) for each in value.attrs.pad_width]
        zeros = str(value.attrs.pad_mode) == "constant" and float(value.attrs.pad_value) == 0
        if zeros and len(width) == 8 and not any(width[:4]) and min(width) >= 0:
            return value.args[0], width
    return x, [0] * 8


def in_bytes(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A weight (terms, channels) as int8, and a float32 scale per channel."""
    scales = np.abs(weight).max(0, initial=0.0) / np.float32(LARGEST)
    scales = np.where(scales > 0, scales, np.float32(1)).astype("float32")
    return np.rint(weight / scales).clip(-LARGEST, LARGEST).astype("int8"), scales


def _layer(emit: Any, x: Any, weight: np.ndarray) -> Any:
    """The product of x (..., terms) and a weight (terms, channels)."""
    from tvm import relax
    from tvm.relax import op

    def number(value: float) -> Any:
        return relax.const(value, "float32")

    values, scales = in_bytes(weight)
    smallest = op.minimum(op.min(x, -1, keepdims=True), number(0.0))
    largest = op.maximum(op.max(x, -1, keepdims=True), number(0.0))
    smallest = emit(smallest)
    scale = op.divide(op.subtract(emit(largest), smallest), number(STEPS))
    scale = emit(op.maximum(scale, number(SMALLEST_SCALE)))
    zero = emit(op.round(op.divide(op.negative(smallest), scale)))
    inverse = emit(op.divide(number(1.0), scale))
    steps = op.add(op.round(op.multiply(x, inverse)), zero)
    whole = op.astype(op.clip(steps, 0, STEPS), "int32")  # in one instruction, unlike to uint8
    rows = emit(op.astype(emit(whole), "uint8"))
    exact = emit(op.astype(product(emit, rows, zero, values), "float32"))
    return op.multiply(emit(op.multiply(exact, scale)), relax.const(scales))
