"""Operators whose results have as many elements as values ask for."""

from typing import Any

from tvm_practice.tvm_export.importers.converters.nonzero import indices_of_nonzero
from tvm_practice.tvm_export.importers.onnx.converters.base import Node, whole_axis


def nonzero(node: Node) -> Any:
    """The indices of each element that is not 0, a column for each."""
    from tvm import relax

    return relax.op.permute_dims(_indices(node, node.inputs[0]))


def compress(node: Node) -> Any:
    """The slices along an axis for which a condition is true, which may be of fewer slices."""
    from tvm import relax

    data, condition = node.inputs[:2]
    axis = node.get("axis")
    if axis is None:
        data, axis = node.emit(relax.op.reshape(data, (-1,))), 0
    places = node.emit(relax.op.squeeze(_indices(node, condition), [1]))
    return relax.op.take(data, places, whole_axis(axis, len(data.ty.shape)))


def _indices(node: Node, x: Any) -> Any:
    name = node.builder.get_unique_name("rows")
    return indices_of_nonzero(node.builder, x, name)


CONVERTERS = {"Compress": compress, "NonZero": nonzero}
