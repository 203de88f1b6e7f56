"""Reductions, and the normalizations made of them."""

from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.onnx.converters.base import (
    Node,
    constant,
    dtype_of,
    fixed_shape,
    is_float,
    whole_axis,
)

_LARGEST_EXPANDED = 4  # of n x n, n! products are added


def extreme(node: Node) -> Any:
    """ReduceMax and ReduceMin, whose value of nothing is an infinity.

    TVM's begin with the smallest finite number, which they return for rows of minus infinity.
    """
    from tvm import relax

    x = node.inputs[0]
    rank = len(x.ty.shape)
    given = node.get("axes") if node.opset < 18 else node.known(1)
    if given is None or len(given) == 0:
        if node.get("noop_with_empty_axes", 0):
            return x
        given = range(rank)
    axes = sorted(whole_axis(int(each), rank) for each in given)
    largest, keeps = node.operator == "ReduceMax", bool(node.get("keepdims", 1))
    dtype = dtype_of(x)
    if dtype == "bool":  # whose smallest and largest are those of uint8 as bool
        reduce = relax.op.max if largest else relax.op.min
        found = reduce(relax.op.astype(x, "uint8"), axis=axes, keepdims=keeps)
        return relax.op.astype(found, "bool")
    if is_float(dtype) and fixed_shape(x) is not None and axes:
        return node.compute(
            _extreme_of, x, name=node.operator.lower(), given=(axes, largest, keeps)
        )
    return node.default()


def _extreme_of(x: Any, axes: list[int], largest: bool, keeps: bool) -> Any:
    import tvm
    from tvm import te

    bound = -np.inf if largest else np.inf
    better = tvm.tirx.max if largest else tvm.tirx.min
    reducer = te.comm_reducer(
        lambda one, other: better(one, other), lambda dtype: tvm.tirx.const(bound, dtype)
    )
    rows = [te.reduce_axis((0, x.shape[axis]), f"k{axis}") for axis in axes]
    kept = [axis for axis in range(len(x.shape)) if keeps or axis not in axes]
    shape = [1 if axis in axes else x.shape[axis] for axis in kept]

    def of(*at: Any) -> Any:
        place = dict(zip(kept, at, strict=True)) | dict(zip(axes, rows, strict=True))
        return reducer(x(*(place[axis] for axis in range(len(x.shape)))), axis=rows)

    return te.compute(shape, of, name="extreme")


def cumulative_product(node: Node) -> Any:
    from tvm import relax

    x = node.inputs[0]
    axis_given = node.known(1)
    assert axis_given is not None  # an input that is not optional
    axis = whole_axis(int(axis_given.item()), len(x.ty.shape))
    if node.get("reverse", 0):
        x = relax.op.flip(x, axis)
    found = relax.op.cumprod(
        x, axis=axis, dtype=dtype_of(node.inputs[0]), exclusive=bool(node.get("exclusive", 0))
    )
    return relax.op.flip(found, axis) if node.get("reverse", 0) else found


def lp_normalization(node: Node) -> Any:
    """Zeros where the norm is zero."""
    from tvm import relax

    x, axis = node.inputs[0], node.get("axis", -1)
    zero = constant(0, dtype_of(x))
    if node.get("p", 2) == 1:
        norm = relax.op.sum(relax.op.abs(x), axis=axis, keepdims=True)
    else:
        norm = relax.op.sqrt(relax.op.sum(relax.op.multiply(x, x), axis=axis, keepdims=True))
    norm = node.emit(norm)
    return relax.op.where(relax.op.equal(norm, zero), zero, relax.op.divide(x, norm))


def layer_normalization(node: Node) -> Any:
    """With the mean and the inverse deviation, where they are asked for.

    TVM's own is of float32 and float16.
    """
    from tvm import relax

    if node.outputs == 1 and dtype_of(node.inputs[0]) in ("float32", "float16"):
        given = {name: each for name, each in node.attributes.items() if name != "stash_type"}
        return node.from_tvm("LayerNormalization", node.inputs, given)
    x, scale, bias = node.inputs[0], node.inputs[1], node.input(2)
    dtype, rank = dtype_of(x), len(x.ty.shape)
    axes = list(range(whole_axis(node.get("axis", -1), rank), rank))
    wide = "float64" if dtype == "float64" else "float32"
    values = node.emit(relax.op.astype(x, wide))
    mean = node.emit(relax.op.mean(values, axis=axes, keepdims=True))
    apart = node.emit(relax.op.subtract(values, mean))
    variance = relax.op.mean(relax.op.multiply(apart, apart), axis=axes, keepdims=True)
    shifted = relax.op.add(variance, constant(node.get("epsilon", 1e-5), wide))
    inverse = node.emit(relax.op.rsqrt(shifted))
    normal = relax.op.astype(relax.op.multiply(apart, inverse), dtype)
    output = relax.op.multiply(normal, scale)
    if bias is not None:
        output = relax.op.add(output, bias)
    if node.outputs == 1:
        return output
    return relax.Tuple([output, mean, inverse][: node.outputs])


def determinant(node: Node) -> Any:
    """Det of small matrices, by their first rows' cofactors."""
    x, (*_, rows, columns) = node.inputs[0], node.shape(0)
    if rows != columns or not 0 < rows <= _LARGEST_EXPANDED or not is_float(dtype_of(x)):
        raise node.refused(f"{rows} x {columns} of {dtype_of(x)}")
    return node.compute(_determinant, x, name="determinant")


def _determinant(x: Any) -> Any:
    from tvm import te

    size = int(x.shape[-1])

    def expanded(at: tuple[Any, ...], row: int, columns: list[int]) -> Any:
        if row == size - 1:
            return x(*at, row, columns[0])
        found: Any = None
        for place, column in enumerate(columns):
            others = [each for each in columns if each != column]
            term = x(*at, row, column) * expanded(at, row + 1, others)
            found = term if found is None else found - term if place % 2 else found + term
        return found

    return te.compute(
        x.shape[:-2], lambda *at: expanded(at, 0, list(range(size))), name="determinants"
    )


CONVERTERS = {
    "CumProd": cumulative_product,
    "Det": determinant,
    "LayerNormalization": layer_normalization,
    "LpNormalization": lp_normalization,
    "ReduceMax": extreme,
    "ReduceMin": extreme,
}
