"""Operators whose results have as many elements as values ask for."""

import math
from typing import Any

from tvm_practice.tvm_export.importers.converters.nonzero import indices_of_nonzero
from tvm_practice.tvm_export.importers.converters.own_relax import in_whole_numbers
from tvm_practice.tvm_export.importers.onnx.converters.base import (
    Node,
    dtype_of,
    fixed_shape,
    is_float,
    whole_axis,
)

# Slices of more elements are not sorted: there is a sort for each element.
_MOST_KEYS = 64


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


def unique(node: Node) -> Any:
    """The distinct elements or slices, the first places, every element's number, and counts.

    Equal ones are made neighbours by sorting, and the first of each run is kept.
    """
    from tvm import relax

    x, axis = node.inputs[0], node.get("axis")
    if axis is None:
        rows, rest = node.emit(relax.op.reshape(x, (-1, 1))), None
    else:
        axis = whole_axis(axis, len(x.ty.shape))
        others = [each for each in range(len(x.ty.shape)) if each != axis]
        first = node.emit(relax.op.permute_dims(x, [axis, *others]))
        rest = fixed_shape(first, but_first=True)
        if rest is None or not 0 < math.prod(rest) <= _MOST_KEYS:
            raise node.refused(f"its slices are not of 1 to {_MOST_KEYS} elements")
        rows = node.emit(relax.op.reshape(first, (-1, math.prod(rest))))
    order = _order(node, rows)
    ordered = node.emit(relax.op.take(rows, order, 0))
    begins = node.compute(_begins, ordered, name="begins")
    run = relax.op.cumsum(relax.op.astype(begins, "int64"), 0)
    run = node.emit(relax.op.subtract(run, relax.const(1, "int64")))
    places = node.emit(relax.op.squeeze(_indices(node, begins), [1]))
    values = node.emit(relax.op.take(ordered, places, 0))
    first_places = node.emit(relax.op.take(order, places, 0))
    which = node.emit(relax.op.scatter_elements(order, order, run))
    nothing = relax.op.zeros_like(places)
    counts = node.emit(relax.op.scatter_elements(nothing, run, relax.op.ones_like(run), 0, "add"))
    if not node.get("sorted", 1):
        as_met = node.emit(relax.op.argsort(first_places, 0, dtype="int64"))
        values, first_places, counts = (
            node.emit(relax.op.take(each, as_met, 0)) for each in (values, first_places, counts)
        )
        number = relax.op.argsort(as_met, 0, dtype="int64")
        which = node.emit(relax.op.take(number, which, 0))
    if rest is None:
        values = relax.op.reshape(values, (-1,))
    else:
        values = node.emit(relax.op.reshape(values, (-1, *rest)))
        values = relax.op.permute_dims(
            values, [*range(1, axis + 1), 0, *range(axis + 1, len(rest) + 1)]
        )
    made = [values, first_places, which, counts][: node.outputs]
    return made[0] if node.outputs == 1 else relax.Tuple([node.emit(each) for each in made])


def _order(node: Node, rows: Any) -> Any:
    """The indices that sort rows by their first elements, then by their second ones, and so on."""
    from tvm import relax

    if is_float(dtype_of(rows)):
        rows = node.compute(in_whole_numbers, rows, name="order")
    elif dtype_of(rows) not in ("int32", "int64"):
        rows = node.emit(relax.op.astype(rows, "int64"))
    order = None
    for column in reversed(range(int(rows.ty.shape[1]))):
        keys = node.emit(relax.op.take(rows, relax.const(column, "int64"), 1))
        if order is not None:
            keys = node.emit(relax.op.take(keys, order, 0))
        found = node.emit(relax.op.argsort(keys, 0, dtype="int64"))
        order = found if order is None else node.emit(relax.op.take(order, found, 0))
    return order


def _begins(rows: Any) -> Any:
    """Of each row whether it differs from the one before."""
    from tvm import te, tirx

    def differs(row: Any) -> Any:
        before = tirx.max(row - 1, tirx.const(0, "int64"))
        pairs = [rows[row, each] != rows[before, each] for each in range(int(rows.shape[1]))]
        return tirx.any(row == 0, *pairs)

    return te.compute(rows.shape[:1], differs, name="begins")


def _indices(node: Node, x: Any) -> Any:
    name = node.builder.get_unique_name("rows")
    return indices_of_nonzero(node.builder, x, name)


CONVERTERS = {"Compress": compress, "NonZero": nonzero, "Unique": unique}
