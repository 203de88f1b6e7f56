"""Models that come quantized: integer operators between their dequantizations and quantizations.

Such a model rounds each value to bytes and computes on with the numbers that these stand for:

    q = clip(round(x / s) + z, 0, 255)       x' = s (q - z)

A product of x' by a constant that is dequantized too is a product of the bytes, scaled after it, so
that it becomes one of `integer_operators`. What only moves or compares x' moves or compares bytes.
int8 is uint8 after 128 is added to it and to its zero point. The rest stays float32, as the model
says, and so does a product that has no such form.

Quantization is one operator in a model from ONNX, and arithmetic in one from PyTorch. ONNX's
integer products subtract zero points in int32: they are read as dequantizations without a scale.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tvm_practice.tvm_export.constant_folding import known_constants
from tvm_practice.tvm_export.relax_passes.integer_operators import (
    MOST_TERMS,
    convolution,
    product,
    suits,
)
from tvm_practice.tvm_export.relax_passes.kept_bytes import in_float32, steps_of, with_bytes_kept
from tvm_practice.tvm_export.relax_passes.requantization import (
    BYTE,
    limits_of,
    operator_name,
    with_short_requantization,
)
from tvm_practice.tvm_export.rewriting import rewritten

_OFFSET = 128  # from int8 to uint8
_SIGNED = -128.0, 127.0
_INTEGERS = {"int8": _SIGNED, "uint8": BYTE}
_SUMS = ("float32", "int32")
_WIDE = (*_SUMS, "int64")
# Operators of constants that numpy computes.
_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "divide": np.divide,
    "multiply": np.multiply,
    "negative": np.negative,
    "subtract": np.subtract,
}
_PER_CHANNEL = 1, -1, 1, 1
_SHAPING = {"expand_dims", "flatten", "reshape", "squeeze"}
_MOVING = _SHAPING | {"nn.max_pool2d", "permute_dims", "strided_slice"}


@dataclass(frozen=True)
class _Weight:
    """A constant as scale * values.

    Attributes:
        values: int32, the zero points subtracted.
        scale: float32, broadcasts to the values; None: none.
    """

    values: np.ndarray
    scale: np.ndarray | None = None

    def in_bytes(self, axis: int) -> tuple[np.ndarray, np.ndarray] | None:
        """The values as int8 and an offset, int32, for each index of an axis; their sum.

        Returns None where that cannot be. An offset is 0 where the values are int8 themselves, as
        those of uint8 with another zero point than 128 are not.
        """
        others = tuple(each for each in range(self.values.ndim) if each != axis)
        low, high = (np.asarray(each) for each in _SIGNED)
        least, largest = self.values.min(others), self.values.max(others)
        if (largest - least > high - low).any():
            return None
        fits = (low <= least) & (largest <= high)
        offsets = np.where(fits, 0, least - low).astype("int32")
        along = np.expand_dims(offsets, others)
        return (self.values - along).astype("int8"), offsets

    def scales(self, axis: int) -> np.ndarray | None:
        """One scale for each index of an axis; None where it varies along others."""
        given = np.asarray(1.0 if self.scale is None else self.scale, "float32")
        shape = (1,) * (self.values.ndim - given.ndim) + given.shape
        if any(extent != 1 for place, extent in enumerate(shape) if place != axis):
            return None
        return np.broadcast_to(given.ravel(), self.values.shape[axis : axis + 1])


@dataclass(frozen=True)
class _Stored:
    """A tensor as scale * (bytes - zero).

    Attributes:
        bytes: a variable of uint8.
        zero, scale: numbers, or variables of one element without axes; scale None: none.
    """

    bytes: Any
    zero: Any
    scale: Any = None

    @property
    def is_known(self) -> bool:
        """Whether scale and zero point are numbers."""
        return isinstance(self.zero, int) and isinstance(self.scale, float)

    @property
    def has_byte(self) -> bool:
        """Whether the zero point is a byte that is known."""
        return isinstance(self.zero, int) and 0 <= self.zero <= BYTE[1]


def with_quantized_operators(module: Any, target: Any) -> Any:
    """A Relax module that multiplies bytes where the model it was imported from is quantized.

    Args:
        module: as imported, the weights constants of its graph; it is left as it was.
        target: what it is to be compiled for; but for processors, it stays.
    """
    from tvm import relax

    if str(target.kind.name) != "llvm":
        return module
    flat = relax.transform.CanonicalizeBindings()(module)  # tuples are what is in them
    finding = _mutator()(flat)
    found = rewritten(flat, finding)
    if not finding.made:
        return module
    import tvm

    passes = [
        known_constants(),
        relax.transform.CanonicalizeBindings(),
        relax.transform.EliminateCommonSubexpr(),
        relax.transform.DeadCodeElimination(),
    ]
    shared = tvm.ir.transform.Sequential(passes)(found)
    return with_short_requantization(with_bytes_kept(shared, additions=False))


def _mutator() -> Any:
    """The class of mutators that make the operators; `made` of one is how many."""
    import tvm
    from tvm import relax
    from tvm.relax import op
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Finding(PyExprMutator):  # type: ignore[misc]
        def __init__(self, module: Any):
            super().__init__(module)
            self.made = 0
            self.known: dict[Any, _Stored | _Weight] = {}  # by variable
            self.moved: dict[Any, Any] = {}  # from variables of int8 to the uint8 that they are
            self.pending: _Stored | _Weight | None = None  # what the value that is bound next is
            self.pending_bytes: Any = None  # likewise

        def visit_var_binding_(self, binding: Any) -> None:
            self.pending = self.pending_bytes = None
            super().visit_var_binding_(binding)
            var = self.visit_expr(binding.var)
            if self.pending is not None:
                self.known[var] = self.pending
            if self.pending_bytes is not None:
                self.moved[var] = self.pending_bytes

        def visit_call_(self, call: Any) -> Any:
            call = super().visit_call_(call)
            self.pending = self.pending_bytes = None
            name = operator_name(call)
            if name in ("astype", "quantize") and (made := self._quantized(call)) is not None:
                return made
            if name in ("astype", "dequantize", "multiply", "subtract"):
                return self._dequantized(name, call)
            if name in ("matmul", "nn.conv2d"):
                return self._multiplied(name, call)
            if call.args and (known := self.known.get(call.args[0])) is not None:
                return self._moved(name, call, known)
            return call

        # From numbers to bytes.

        def _quantized(self, call: Any) -> Any | None:
            """A quantization by numbers as `steps_of` writes it; None for anything else."""
            dtype = str(call.ty.dtype)
            found = None
            if dtype in _INTEGERS:
                found = self._one_operator(call) or self._arithmetic(call)
            if found is None:
                return None
            x, scale, zero, limits = found
            offset = _OFFSET if dtype == "int8" else 0
            known = self.known.get(x)
            whole = limits == _INTEGERS[dtype]
            if isinstance(known, _Stored) and whole and _same(known, zero + offset, scale):
                made = known.bytes
            elif isinstance(x, relax.Var):
                low, high = (each + offset for each in limits)
                steps = steps_of(self.builder_.emit, x, 1 / scale, zero + offset, (low, high))
                made = self.builder_.emit(op.astype(steps, "uint8"))
            else:
                return None
            if not offset:
                return made
            self.pending_bytes = made
            return op.astype(self._flipped(made), "int8")

        def _one_operator(self, call: Any) -> tuple[Any, float, int, Any] | None:
            """What relax.quantize reads, its scale, zero point and limits."""
            if operator_name(call) != "quantize" or str(call.args[0].ty.dtype) != "float32":
                return None
            scale, zero = map(self._number, call.args[1:3])
            if scale is None or zero is None:
                return None
            return call.args[0], scale, int(zero), _INTEGERS[str(call.ty.dtype)]

        def _arithmetic(self, call: Any) -> tuple[Any, float, int, Any] | None:
            """Likewise, of round(x * inverse) + zero that is clipped and cast."""
            clip = self._bound(call.args[0], "clip")
            if clip is None or (limits := limits_of(clip)) is None:
                return None
            rounded, zero = clip.args[0], 0.0
            added = self._bound(rounded, "add")
            if added is not None:
                given = self._number(added.args[1])
                if given is None:
                    return None
                rounded, zero = added.args[0], given
            rounding = self._bound(rounded, "round")
            if rounding is None or str(rounding.ty.dtype) != "float32" or zero != int(zero):
                return None
            scaling = self._bound(rounding.args[0], "multiply", "divide")
            factor = None if scaling is None else self._number(scaling.args[1])
            if scaling is None or factor is None or factor <= 0:
                return None
            scale = factor if operator_name(scaling) == "divide" else 1 / factor
            return scaling.args[0], scale, int(zero), limits

        # From bytes to numbers.

        def _dequantized(self, name: str, call: Any) -> Any:
            """A step from bytes to numbers; the numbers are written of uint8."""
            if str(call.ty.dtype) not in _WIDE:
                return call
            if name == "dequantize":
                found = self._by_operator(call)
            elif name == "astype":
                found = self.known.get(call.args[0])
                if found is None:
                    found = self._read(call.args[0])
                elif found.scale is not None:
                    return call
            else:
                found = self._arranged(name, call)
            self.pending = found
            if isinstance(found, _Weight) and name == "dequantize":
                scale = 1.0 if found.scale is None else found.scale
                return relax.const((found.values * scale).astype("float32"))
            if isinstance(found, _Stored) and found.is_known:
                return in_float32(self.builder_.emit, found.bytes, found.scale, found.zero)
            return call

        def _read(self, given: Any) -> _Stored | _Weight | None:
            """What stands for bytes as they are."""
            value, dtype = self._value(given), str(given.ty.dtype)
            if value is not None and value.dtype.kind in "iu" and value.dtype.itemsize <= 4:
                return _Weight(value.astype("int32"))
            if not isinstance(given, relax.Var):
                return None
            while isinstance(self.lookup_binding(given), relax.Var):
                given = self.lookup_binding(given)
            if dtype == "uint8":
                return _Stored(given, 0)
            if dtype == "int8":
                made = self.moved.get(given)
                if made is None:
                    unsigned = self.builder_.emit(op.astype(given, "uint8"))
                    made = self.moved[given] = self._flipped(unsigned)
                return _Stored(made, _OFFSET)
            return None

        def _by_operator(self, call: Any) -> _Stored | _Weight | None:
            """What relax.dequantize makes."""
            read = self._read(call.args[0])
            if read is None or str(call.ty.dtype) != "float32":
                return None
            scale, zero = call.args[1:3]
            if isinstance(read, _Weight):
                factors, points = self._value(scale), self._value(zero)
                if factors is None or points is None:
                    return None
                axis = int(call.attrs.axis) % max(1, read.values.ndim)

                def along(given: np.ndarray) -> np.ndarray:
                    shape = [-1 if each == axis else 1 for each in range(read.values.ndim)]
                    return given.reshape(()) if given.size == 1 else given.reshape(shape)

                values = read.values - along(points).astype("int32")
                return _Weight(values, along(factors).astype("float32"))
            moved = self._less(read, zero)
            return None if moved is None else self._times(moved, scale)

        def _arranged(self, name: str, call: Any) -> _Stored | _Weight | None:
            """What a zero point less, or a scale, makes of bytes that are read."""
            read = self.known.get(call.args[0])
            if read is None or read.scale is not None:
                return None
            other = call.args[1]
            if isinstance(read, _Stored):
                return self._less(read, other) if name == "subtract" else self._times(read, other)
            value = self._value(other)
            if value is None or np.broadcast_shapes(value.shape, read.values.shape) != (
                read.values.shape
            ):
                return None
            if name == "multiply":
                is_float = value.dtype == "float32" and str(call.ty.dtype) == "float32"
                return replace(read, scale=value) if is_float else None
            if (value != np.rint(value)).any():
                return None
            return _Weight(read.values - value.astype("int32"))

        def _less(self, read: _Stored, point: Any) -> _Stored | None:
            """Bytes whose zero point is moved by a tensor of one element."""
            number = self._number(point)
            if number is not None:
                return replace(read, zero=read.zero + int(number)) if number % 1 == 0 else None
            if _elements(point) != 1:
                return None
            emit = self.builder_.emit
            whole = emit(op.astype(emit(op.reshape(point, ())), "int32"))
            moved = whole if not read.zero else op.add(whole, relax.const(read.zero, "int32"))
            return replace(read, zero=emit(op.astype(moved, "uint8")))

        def _times(self, read: _Stored, scale: Any) -> _Stored | None:
            """Bytes with a scale of one element."""
            number = self._number(scale)
            if number is not None:
                return replace(read, scale=number) if number > 0 else None
            if _elements(scale) != 1 or str(scale.ty.dtype) != "float32":
                return None
            return replace(read, scale=self.builder_.emit(op.reshape(scale, ())))

        # What is computed of bytes.

        def _moved(self, name: str, call: Any, known: _Stored | _Weight) -> Any:
            """An operator that moves or compares, done to bytes."""
            if isinstance(known, _Weight):
                self.pending = _rearranged(name, call, known)
                return call
            if name in _MOVING:
                made = relax.Call(call.op, [known.bytes, *call.args[1:]], call.attrs)
            elif name == "nn.pad" and _pads_zeros(call) and known.has_byte:
                width = [int(each) for each in call.attrs.pad_width]
                made = op.nn.pad(known.bytes, width, "constant", known.zero)
            else:
                return call
            self.pending = moved = replace(known, bytes=self.builder_.emit(made))
            if not moved.is_known:
                return call
            return in_float32(self.builder_.emit, moved.bytes, moved.scale, moved.zero)

        def _multiplied(self, name: str, call: Any) -> Any:
            """A product or convolution in integers; the call where it has no such form."""
            x, weight = (self.known.get(each) for each in call.args)
            if not isinstance(x, _Stored) or not isinstance(weight, _Weight):
                return call
            axis, dtype = 1 if name == "matmul" else 0, str(call.ty.dtype)
            scales = weight.scales(axis) if weight.values.size else None
            if scales is None or dtype not in _SUMS or not _fits(name, call, x, weight.values):
                return call
            split = weight.in_bytes(axis)
            if split is None:
                return call
            total = self._total(name, call, x, *split)
            if name == "nn.conv2d":
                scales = scales.reshape(_PER_CHANNEL)
            self.made += 1
            if dtype == "int32":
                return total
            exact = self.builder_.emit(op.astype(self.builder_.emit(total), dtype))
            scale = 1.0 if x.scale is None else x.scale
            if not isinstance(scale, float):
                exact = self.builder_.emit(op.multiply(exact, scale))
                scale = 1.0
            return op.multiply(exact, relax.const((scales * scale).astype("float32")))

        def _total(
            self, name: str, call: Any, x: _Stored, values: np.ndarray, offsets: np.ndarray
        ) -> Any:
            """The sums, int32, of (bytes - zero) by (values + offsets)."""

            def summed(factors: np.ndarray) -> Any:
                if name == "matmul":
                    return product(self.builder_.emit, x.bytes, x.zero, factors)
                return convolution(self.builder_, call.attrs, x.bytes, x.zero, factors)

            total = summed(values)
            if not offsets.any():
                return total
            if name == "matmul":
                ones = values[:, :1]
            else:
                ones = values[:1] if int(call.attrs.groups) == 1 else values
                offsets = offsets.reshape(_PER_CHANNEL)
            plain = self.builder_.emit(summed(np.ones_like(ones)))
            moved = self.builder_.emit(op.multiply(plain, relax.const(offsets)))
            return op.add(self.builder_.emit(total), moved)

        # What is known of an expression.

        def _flipped(self, unsigned: Any) -> Any:
            """The highest bit of each byte flipped."""
            bit = relax.const(np.array(_OFFSET, "uint8"))
            return self.builder_.emit(op.bitwise_xor(unsigned, bit))

        def _bound(self, var: Any, *names: str) -> Any | None:
            """The call of one of these operators that a variable is bound to."""
            value = self.lookup_binding(var) if isinstance(var, relax.Var) else None
            return value if operator_name(value) in names else None

        def _number(self, expression: Any) -> float | None:
            value = self._value(expression)
            return None if value is None or value.size != 1 else float(value.reshape(()))

        def _value(self, expression: Any) -> np.ndarray | None:
            """What an expression of constants alone comes to; None for anything else."""
            if isinstance(expression, relax.Var):
                expression = self.lookup_binding(expression)
            if isinstance(expression, tvm.ir.GenericConst):
                return np.asarray(expression.value.numpy())
            name = operator_name(expression)
            if name not in {*_ARITHMETIC, *_SHAPING, "astype", "permute_dims"}:
                return None
            count = 2 if name in ("add", "divide", "multiply", "subtract") else 1
            found = [self._value(each) for each in expression.args[:count]]
            values = [each for each in found if each is not None]
            if len(values) < count:
                return None
            with np.errstate(all="ignore"):
                made = _ARITHMETIC[name](*values) if name in _ARITHMETIC else values[0]
            if name == "permute_dims":
                made = np.transpose(made, _axes(expression))
            shape = [int(each) for each in expression.ty.shape]
            return np.asarray(made, str(expression.ty.dtype)).reshape(shape)

    return Finding


def _fits(name: str, call: Any, x: _Stored, values: np.ndarray) -> bool:
    """Whether a product or convolution of constant values has a form in integers."""
    if name == "matmul":
        return values.ndim == 2 and len(values) <= MOST_TERMS
    pads = x.has_byte if isinstance(x.zero, int) else _elements(x.bytes) is not None
    return pads and suits(call.attrs, values.shape)


def _same(known: _Stored, zero: int, scale: float) -> bool:
    """Whether bytes have this zero point and scale, which may be the reciprocal's reciprocal."""
    return known.is_known and known.zero == zero and bool(np.isclose(known.scale, scale, 1e-6, 0))


def _rearranged(name: str, call: Any, known: _Weight) -> _Weight | None:
    """A constant whose axes are moved."""
    scale = np.asarray(1.0 if known.scale is None else known.scale, "float32")
    if name == "permute_dims":
        axes = _axes(call)
        whole = scale.reshape((1,) * (known.values.ndim - scale.ndim) + scale.shape)
        moved = whole if scale.ndim == 0 else whole.transpose(axes)
        return _Weight(known.values.transpose(axes), None if known.scale is None else moved)
    if name in _SHAPING and scale.size == 1:
        shape = [int(each) for each in call.ty.shape]
        factor = None if known.scale is None else scale.reshape(())
        return _Weight(known.values.reshape(shape), factor)
    return None


def _axes(call: Any) -> list[int] | None:
    given = call.attrs.axes
    return None if given is None else [int(each) for each in given]


def _pads_zeros(call: Any) -> bool:
    return str(call.attrs.pad_mode) == "constant" and float(call.attrs.pad_value) == 0


def _elements(tensor: Any) -> int | None:
    """How many elements a tensor has; None where that is open."""
    if tensor.ty.shape is None:
        return None
    shape = list(tensor.ty.shape)
    extents = [int(each.value) for each in shape if hasattr(each, "value")]
    return math.prod(extents) if len(extents) == len(shape) else None
