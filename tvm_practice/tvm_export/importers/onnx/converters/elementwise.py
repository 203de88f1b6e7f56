"""Operators of one element."""

import importlib
from dataclasses import replace
from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.onnx.converters.base import (
    Node,
    constant,
    dtype_of,
    is_float,
    whole_axis,
)


def aligned(node: Node) -> Any:
    """An operator of two tensors; TVM's ignores the axis where the second one's axes begin."""
    return _aligned(node).default()


def _aligned(node: Node) -> Node:
    """The node with the operands numpy would want; until opset 6 it may name an axis."""
    from tvm import relax

    axis = node.get("axis") if node.opset < 7 and node.get("broadcast", 0) else None
    if axis is None:
        return node
    shape, rank = node.shape(1), len(node.inputs[0].ty.shape)
    ones = [1] * (rank - whole_axis(axis, rank) - len(shape))
    second = node.emit(relax.op.reshape(node.inputs[1], [*shape, *ones]))
    attributes = {name: each for name, each in node.attributes.items() if name != "axis"}
    return replace(node, inputs=[node.inputs[0], second], attributes=attributes)


def prelu(node: Node) -> Any:
    """Slopes by numpy's rules; until opset 6 one per channel."""
    from tvm import relax

    x, slope = node.inputs[:2]
    rank, shape = len(x.ty.shape), node.shape(1)
    if node.opset < 7 and len(shape) == 1:
        slope = node.emit(relax.op.reshape(slope, [*shape, *[1] * (rank - 2)]))
    zero = constant(0, dtype_of(x))
    return relax.op.where(relax.op.less(x, zero), relax.op.multiply(slope, x), x)


def is_inf(node: Node) -> Any:
    """Infinities of the signs that are asked for."""
    from tvm import relax

    x = node.inputs[0]
    dtype = dtype_of(x)
    signs = [("detect_positive", np.inf), ("detect_negative", -np.inf)]
    wanted = [sign for name, sign in signs if node.get(name, 1)]
    if len(wanted) == 2:
        return relax.op.isinf(x)
    if wanted:
        return relax.op.equal(x, constant(wanted[0], dtype))
    return relax.op.zeros_like(x, "bool")


def mod(node: Node) -> Any:
    """A remainder: of the dividend's sign with fmod, of the divisor's without."""
    import tvm
    from tvm import relax, te

    x, y = node.inputs[:2]
    dtype = dtype_of(x)
    if not is_float(dtype):
        return node.default()
    wide = dtype if dtype in ("float32", "float64") else "float32"
    x, y = (node.emit(relax.op.astype(each, wide)) for each in (x, y))
    shape = [int(each) for each in node.emit(relax.op.add(x, y)).ty.shape]
    x, y = (node.emit(relax.op.broadcast_to(each, shape)) for each in (x, y))
    keeps_dividend = bool(node.get("fmod", 0))

    def remainder(x: Any, y: Any) -> Any:
        def of(*at: Any) -> Any:
            rest = tvm.tirx.truncmod(x(*at), y(*at))
            if keeps_dividend:
                return rest
            differs = tvm.tirx.any(
                tvm.tirx.all(rest < 0, y(*at) > 0), tvm.tirx.all(rest > 0, y(*at) < 0)
            )
            return tvm.tirx.Select(differs, rest + y(*at), rest)

        return te.compute(x.shape, of, name="remainder")

    return relax.op.astype(node.compute(remainder, x, y, name="mod"), dtype)


def power(node: Node) -> Any:
    """A power of two types; of two integers by multiplications alone, modulo their range."""
    from tvm import relax

    x, y = _aligned(node).inputs[:2]
    base, exponent = dtype_of(x), dtype_of(y)
    if is_float(base):
        if base != exponent:
            y = relax.op.astype(y, base)
        return node.from_tvm("Pow", [x, node.emit(y)], {})
    if is_float(exponent):
        x, y = (node.emit(relax.op.astype(each, "float64")) for each in (x, y))
        return relax.op.astype(relax.op.power(x, y), base)
    result: Any = constant(1, base)
    y = node.emit(relax.op.astype(y, base))
    for bit in range(6):
        odd = relax.op.bitwise_and(relax.op.right_shift(y, constant(bit, base)), constant(1, base))
        chosen = relax.op.where(relax.op.astype(odd, "bool"), x, constant(1, base))
        result = node.emit(relax.op.multiply(result, chosen))
        x = node.emit(relax.op.multiply(x, x))
    return result


def cosh(node: Node) -> Any:
    from tvm import relax

    x = node.inputs[0]
    both = relax.op.add(relax.op.exp(x), relax.op.exp(relax.op.negative(x)))
    return relax.op.multiply(both, constant(0.5, dtype_of(x)))


def sinh(node: Node) -> Any:
    """By tanh, which is exact where the exponentials cancel each other."""
    from tvm import relax

    return relax.op.multiply(relax.op.tanh(node.inputs[0]), cosh(node))


def elu(node: Node) -> Any:
    from tvm import relax

    x = node.inputs[0]
    dtype = dtype_of(x)
    zero, one = constant(0, dtype), constant(1, dtype)
    below = relax.op.subtract(relax.op.exp(relax.op.minimum(x, zero)), one)
    scaled = relax.op.multiply(below, constant(node.get("alpha", 1.0), dtype))
    return relax.op.add(relax.op.maximum(x, zero), scaled)


def bit_cast(node: Node) -> Any:
    """The same bits as another type of the same width."""
    import tvm
    from tvm import relax, te

    helper: Any = importlib.import_module("onnx.helper")
    x = node.inputs[0]
    given, wanted = dtype_of(x), str(helper.tensor_dtype_to_np_dtype(node.get("to")))
    bits = [8 if each == "bool" else tvm.DataType(each).bits for each in (given, wanted)]
    if bits[0] != bits[1] or wanted == "bool" != given:
        raise node.refused(f"{given} to {wanted}")
    if given == "bool" != wanted:
        return relax.op.astype(x, wanted)  # false is a byte of zero, true a byte of one

    def reinterpreted(x: Any) -> Any:
        return te.compute(
            x.shape, lambda *at: tvm.tirx.reinterpret(wanted, x(*at)), name="reinterpreted"
        )

    return x if given == wanted else node.compute(reinterpreted, x, name="bit_cast")


def dropout(node: Node) -> Any:
    """What is given, and a mask that keeps all: a compiled model does not train."""
    from tvm import relax

    training = node.known(2) if node.opset >= 12 else None
    if training is not None and bool(np.any(training)):
        raise node.refused("it trains")
    x = node.inputs[0]
    if node.outputs == 1:
        return x
    return relax.Tuple([x, relax.op.ones_like(x, "bool" if node.opset >= 10 else dtype_of(x))])


def eye_like(node: Node) -> Any:
    rows, columns = node.shape(0)
    helper: Any = importlib.import_module("onnx.helper")
    given = node.get("dtype")
    dtype = str(helper.tensor_dtype_to_np_dtype(given)) if given else dtype_of(node.inputs[0])
    return constant(np.eye(rows, columns, node.get("k", 0)).astype(dtype), dtype)


_OF_TWO = ("Add", "And", "Div", "Equal", "Greater", "Less", "Mul", "Or", "Sub", "Xor")
CONVERTERS = {
    **dict.fromkeys(_OF_TWO, aligned),
    "BitCast": bit_cast,
    "Cosh": cosh,
    "Dropout": dropout,
    "Elu": elu,
    "EyeLike": eye_like,
    "IsInf": is_inf,
    "Mod": mod,
    "PRelu": prelu,
    "Pow": power,
    "Sinh": sinh,
}
