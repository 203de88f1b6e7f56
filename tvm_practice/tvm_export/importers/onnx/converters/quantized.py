"""Products of quantized tensors, exact in 32-bit integers, and quantization by blocks."""

import importlib
from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.onnx.converters.base import (
    Node,
    dtype_of,
    whole_axis,
)


def integer_convolution(node: Node) -> Any:
    return node.from_tvm("Conv", [*_centred(node, (0, 2), (1, 3)), None], node.attributes)


def quantized_convolution(node: Node) -> Any:
    """QLinearConv: the bias is of 32 bits already."""
    from tvm import relax

    x, weight = _centred(node, (0, 2), (3, 5))
    made = node.from_tvm("Conv", [x, weight, node.input(8)], node.attributes)
    scale = relax.op.multiply(
        node.inputs[1], _per_channel(node, node.inputs[4], len(node.shape(0)))
    )
    return _requantized(node, made, scale, node.inputs[6], node.inputs[7])


def quantized_product(node: Node) -> Any:
    """QLinearMatMul."""
    from tvm import relax

    for position in (1, 2, 4, 5, 6, 7):
        if int(np.prod(node.shape(position))) != 1:
            raise node.refused("scales by row or column")
    made = relax.op.matmul(*_centred(node, (0, 2), (3, 5)))
    scale = relax.op.multiply(node.inputs[1], node.inputs[4])
    return _requantized(node, node.emit(made), scale, node.inputs[6], node.inputs[7])


def _centred(node: Node, *pairs: tuple[int, int]) -> list[Any]:
    """Tensors as 32-bit integers, their zero points subtracted."""
    from tvm import relax

    made = []
    for tensor, zero in pairs:
        wide = relax.op.astype(node.inputs[tensor], "int32")
        if node.input(zero) is not None:
            point = relax.op.astype(node.inputs[zero], "int32")
            if tensor != 0 and "Conv" in node.operator:
                point = _per_channel(node, node.emit(point), len(node.shape(tensor)), axis=0)
            wide = relax.op.subtract(wide, point)
        made.append(node.emit(wide))
    return made


def _per_channel(node: Node, values: Any, rank: int, axis: int = 1) -> Any:
    """A scalar, or one value per channel, so that it meets that axis."""
    from tvm import relax

    count = int(np.prod([int(each) for each in values.ty.shape]))
    shape = [count if each == axis else 1 for each in range(rank)]
    return node.emit(relax.op.reshape(values, shape if count > 1 else ()))


def _requantized(node: Node, total: Any, scale: Any, out_scale: Any, zero: Any) -> Any:
    """A sum of products as a quantized tensor of another scale."""
    from tvm import relax

    dtype = dtype_of(zero)
    limits = np.iinfo(dtype)
    factor = relax.op.divide(
        relax.op.astype(scale, "float32"), relax.op.astype(out_scale, "float32")
    )
    scaled = relax.op.round(relax.op.multiply(relax.op.astype(total, "float32"), factor))
    moved = relax.op.add(scaled, relax.op.astype(zero, "float32"))
    return relax.op.astype(relax.op.clip(moved, int(limits.min), int(limits.max)), dtype)


def quantize(node: Node) -> Any:
    """QuantizeLinear, whose blocks TVM's converter does not know."""
    from tvm import relax

    if not node.get("block_size", 0):
        return node.default()
    x, zero = node.inputs[0], node.input(2)
    scale, point = _by_block(node)
    dtype = dtype_of(zero) if zero is not None else "uint8"
    if given := node.get("output_dtype", 0):
        helper: Any = importlib.import_module("onnx.helper")
        dtype = str(helper.tensor_dtype_to_np_dtype(given))
    if not dtype.startswith(("int", "uint")):
        raise node.refused(f"blocks of {dtype}")
    limits = np.iinfo(dtype)
    made = relax.op.round(relax.op.divide(relax.op.astype(x, "float32"), scale))
    if point is not None:
        made = relax.op.add(made, point)
    return relax.op.astype(relax.op.clip(made, int(limits.min), int(limits.max)), dtype)


def dequantize(node: Node) -> Any:
    """DequantizeLinear, likewise."""
    from tvm import relax

    if not node.get("block_size", 0):
        return node.default()
    scale, point = _by_block(node)
    made = relax.op.astype(node.inputs[0], "float32")
    if point is not None:
        made = relax.op.subtract(made, point)
    return relax.op.astype(relax.op.multiply(made, scale), dtype_of(node.inputs[1]))


def _by_block(node: Node) -> tuple[Any, Any | None]:
    """Scale and zero point in float32, each repeated for its block."""
    from tvm import relax

    extents, size = node.shape(0), node.get("block_size")
    axis = whole_axis(node.get("axis", 1), len(extents))

    def spread(given: Any) -> Any:
        wide = relax.op.repeat(relax.op.astype(given, "float32"), size, axis)
        return node.emit(relax.op.strided_slice(wide, [axis], [0], [extents[axis]]))

    zero = node.input(2)
    return spread(node.inputs[1]), None if zero is None else spread(zero)


CONVERTERS = {
    "ConvInteger": integer_convolution,
    "DequantizeLinear": dequantize,
    "QLinearConv": quantized_convolution,
    "QLinearMatMul": quantized_product,
    "QuantizeLinear": quantize,
}
