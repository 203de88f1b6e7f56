"""Operators that place elements: by constants, by indices, by windows."""

import itertools
from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.onnx.converters.base import (
    Node,
    constant,
    dtype_of,
    fixed_shape,
    whole_axis,
)


def one_hot(node: Node) -> Any:
    """Of two values that may be known only at run time."""
    from tvm import relax

    indices, values = node.inputs[0], node.inputs[2]
    depth_given = node.known(1)
    assert depth_given is not None  # an input that is not optional
    depth, rank = int(depth_given.item()), len(indices.ty.shape)
    axis = whole_axis(node.get("axis", -1), rank + 1)
    indices = node.emit(relax.op.astype(indices, "int64"))
    below = relax.op.less(indices, constant(0, "int64"))
    counted = relax.op.where(below, relax.op.add(indices, constant(depth, "int64")), indices)
    column = np.arange(depth).reshape([depth if each == axis else 1 for each in range(rank + 1)])
    hot = relax.op.equal(relax.op.expand_dims(counted, axis), constant(column, "int64"))
    off, on = (relax.op.strided_slice(values, [0], [at], [at + 1]) for at in range(2))
    return relax.op.where(hot, node.emit(on), node.emit(off))


def reverse_sequence(node: Node) -> Any:
    from tvm import relax, topi

    lengths = node.emit(relax.op.astype(node.inputs[1], "int64"))
    axes = node.get("time_axis", 0), node.get("batch_axis", 1)
    return node.compute(
        topi.reverse_sequence, node.inputs[0], lengths, name="reverse_sequence", given=axes
    )


def tensor_scatter(node: Node) -> Any:
    """A cache whose rows from each sample's index on are an update's."""
    import tvm
    from tvm import te

    past, update = node.inputs[:2]
    extents, rows = node.shape(0), node.shape(1)
    axis = whole_axis(node.get("axis", -2), len(extents))
    starts = node.input(2)
    if starts is None:
        starts = constant(np.zeros(extents[0]), "int64")
    circular = node.get("mode", "linear") == "circular"

    def scattered(past: Any, update: Any, starts: Any) -> Any:
        def of(*at: Any) -> Any:
            row = at[axis] - starts[at[0]]
            if circular:
                row = tvm.tirx.floormod(row, extents[axis])
            inside = tvm.tirx.all(row >= 0, row < rows[axis])
            new = update(*at[:axis], row, *at[axis + 1 :])
            return tvm.tirx.if_then_else(inside, new, past(*at))

        return te.compute(past.shape, of, name="scattered")

    return node.compute(scattered, past, update, starts, name="tensor_scatter")


def scatter_elements(node: Node) -> Any:
    """By scatter_nd of each element's whole coordinates."""
    from tvm import relax

    data, indices, updates = node.inputs[:3]
    extents, shape = node.shape(0), node.shape(1)
    axis, count = whole_axis(node.get("axis", 0), len(extents)), int(np.prod(shape))
    indices = node.emit(relax.op.astype(indices, "int64"))
    below = relax.op.less(indices, constant(0, "int64"))
    moved = relax.op.add(indices, constant(extents[axis], "int64"))
    counted = relax.op.reshape(relax.op.where(below, moved, indices), (count, 1))
    grid = np.indices(shape).reshape(len(shape), count)
    columns = [
        counted if each == axis else constant(grid[each].reshape(count, 1), "int64")
        for each in range(len(shape))
    ]
    places = node.emit(relax.op.concat(columns, 1) if len(columns) > 1 else counted)
    reduction = {"none": "update"}.get(node.get("reduction", "none"), node.get("reduction"))
    flat = node.emit(relax.op.reshape(updates, (count,)))
    return relax.op.scatter_nd(data, places, flat, reduction)


def max_unpool(node: Node) -> Any:
    """Values at flat indices of a larger tensor of zeros."""
    from tvm import relax

    x, indices = node.inputs[:2]
    extents, kernel = node.shape(0), node.get("kernel_shape")
    count, given = int(np.prod(extents)), node.known(2)
    strides = node.get("strides", [1] * len(kernel))
    pads = np.reshape(node.get("pads", [0] * 2 * len(kernel)), (2, -1)).sum(0)
    inferred = [
        (extent - 1) * stride + size - pad
        for extent, stride, size, pad in zip(extents[2:], strides, kernel, pads, strict=True)
    ]
    if given is not None and list(given[2:]) != inferred:
        # The indices count in the tensor that was pooled.
        indices = _recounted(node, indices, inferred, [int(each) for each in given[2:]])
        inferred = [int(each) for each in given[2:]]
    shape = [*extents[:2], *map(int, inferred)]
    zeros = constant(np.zeros(int(np.prod(shape))), dtype_of(x))
    places = node.emit(relax.op.reshape(indices, (count, 1)))
    flat = node.emit(relax.op.reshape(x, (count,)))
    return relax.op.reshape(relax.op.scatter_nd(zeros, places, flat, "update"), shape)


def _recounted(node: Node, indices: Any, inner: list[int], outer: list[int]) -> Any:
    """Flat indices of images of one size as those of images of another."""
    from tvm import relax

    def number(value: int) -> Any:
        return constant(value, "int64")

    rest, found, step = indices, None, 1
    for small, large in zip(reversed(inner), reversed(outer), strict=True):
        part = node.emit(relax.op.multiply(relax.op.floor_mod(rest, number(small)), number(step)))
        found = part if found is None else node.emit(relax.op.add(found, part))
        rest = node.emit(relax.op.floor_divide(rest, number(small)))
        step *= large
    return node.emit(relax.op.add(found, relax.op.multiply(rest, number(step))))


def columns_to_image(node: Node) -> Any:
    """Col2Im: the sum of the blocks that cover each element."""
    image, block = node.known(1), node.known(2)
    assert image is not None and block is not None  # inputs that are not optional
    rank = len(image)
    geometry = [
        list(map(int, each))
        for each in (
            image,
            block,
            node.get("strides", [1] * rank),
            node.get("dilations", [1] * rank),
            node.get("pads", [0] * 2 * rank),
        )
    ]
    return node.compute(_from_columns, node.inputs[0], name="col2im", given=geometry)


def _from_columns(
    x: Any,
    image: list[int],
    block: list[int],
    strides: list[int],
    dilations: list[int],
    pads: list[int],
) -> Any:
    from tvm import te, tirx

    rank, size = len(image), int(np.prod(block))
    steps = [
        (image[d] + pads[d] + pads[d + rank] - dilations[d] * (block[d] - 1) - 1) // strides[d] + 1
        for d in range(rank)
    ]
    inside = [te.reduce_axis((0, each), f"k{d}") for d, each in enumerate(block)]

    def of(sample: Any, channel: Any, *at: Any) -> Any:
        moved = [at[d] + pads[d] - inside[d] * dilations[d] for d in range(rank)]
        column, row = 0, 0
        for d in range(rank):
            column = column * steps[d] + tirx.floordiv(moved[d], strides[d])
            row = row * block[d] + inside[d]
        valid = [
            condition
            for d in range(rank)
            for condition in (
                moved[d] >= 0,
                tirx.floormod(moved[d], strides[d]) == 0,
                tirx.floordiv(moved[d], strides[d]) < steps[d],
            )
        ]
        value = x[sample, channel * size + row, column]
        return te.sum(
            tirx.if_then_else(tirx.all(*valid), value, tirx.const(0, x.dtype)), axis=inside
        )

    return te.compute([x.shape[0], tirx.floordiv(x.shape[1], size), *image], of, name="image")


def old_slice(node: Node) -> Any:
    """Slice, whose ends and axes were attributes until opset 9: TVM looks for inputs."""
    if node.opset >= 10:
        return node.default()
    starts = node.get("starts")
    given = [starts, node.get("ends"), node.get("axes", range(len(starts)))]
    inputs = [constant(np.array(each, "int64"), "int64") for each in given]
    return node.from_tvm("Slice", [node.inputs[0], *inputs], {})


def split(node: Node) -> Any:
    """TVM's, of sizes that add up to the axis: it takes what is left for the last part."""
    sizes = node.get("split") if node.opset < 13 else node.known(1)
    extents = fixed_shape(node.inputs[0])
    if sizes is not None and extents is not None:
        extent = extents[whole_axis(node.get("axis", 0), len(extents))]
        parts = [int(each) for each in sizes]
        if sum(parts) != extent or any(each < 0 for each in parts):
            raise node.refused(f"sizes {', '.join(map(str, parts))} of an axis of {extent}")
    return node.default()


def pad(node: Node) -> Any:
    """As Relax's operator; with a value that is known only at run time, as a function of its own.

    TVM's converter always makes a function, which passes on the graph do not know.
    """
    import tvm
    from tvm import relax, te

    if node.opset < 11 or node.get("mode", "constant") != "constant":
        return node.default()
    value = node.input(2)
    if value is None or isinstance(value, tvm.ir.GenericConst):
        if dtype_of(node.inputs[0]) != "float32" or ((amounts := _amounts(node)) < 0).any():
            return node.default()
        number = 0.0 if value is None else float(value.value.numpy().item())
        width = [int(each) for each in amounts.ravel()]
        return relax.op.nn.pad(node.inputs[0], width, "constant", number)
    extents, amounts = node.shape(0), _amounts(node)
    shape = [extent + int(sum(each)) for extent, each in zip(extents, amounts, strict=True)]

    def padded(x: Any, value: Any) -> Any:
        def of(*at: Any) -> Any:
            places = [one - int(before) for one, (before, _) in zip(at, amounts, strict=True)]
            inside = itertools.chain.from_iterable(
                (place >= 0, place < extent) for place, extent in zip(places, extents, strict=True)
            )
            other = value(*[0] * len(value.shape))
            return tvm.tirx.if_then_else(tvm.tirx.all(*inside), x(*places), other)

        return te.compute(shape, of, name="padded")

    return node.compute(padded, node.inputs[0], value, name="pad")


def _amounts(node: Node) -> np.ndarray:
    """By how much a node pads, (axes, 2): before and after; less than 0 where it crops."""
    given, rank = node.known(1), int(node.inputs[0].ty.ndim)
    assert given is not None  # an input that is not optional
    chosen = node.known(3)
    axes = range(rank) if chosen is None else chosen
    amounts = np.zeros((rank, 2), int)
    for place, axis in enumerate(axes):
        amounts[int(axis)] = given[place], given[place + len(given) // 2]
    return amounts


CONVERTERS = {
    "Col2Im": columns_to_image,
    "MaxUnpool": max_unpool,
    "OneHot": one_hot,
    "Pad": pad,
    "ReverseSequence": reverse_sequence,
    "ScatterElements": scatter_elements,
    "Slice": old_slice,
    "Split": split,
    "TensorScatter": tensor_scatter,
}
