"""Convolutions and poolings whose attributes TVM's converters do not know."""

from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.onnx.converters.base import Node, dtype_of


def transposed_convolution(node: Node) -> Any:
    """Of a given output shape, by the pads that lead to it."""
    given = dict(node.attributes)
    wanted = given.pop("output_shape", None)
    if not wanted:
        return node.default()
    extents, weight = node.shape(0)[2:], node.shape(1)[2:]
    rank = len(extents)
    wanted = list(wanted)[-rank:]
    strides, dilations = (given.get(name, [1] * rank) for name in ("strides", "dilations"))
    extra = given.get("output_padding", [0] * rank)
    mode = given.pop("auto_pad", b"NOTSET").decode()
    totals = [
        strides[d] * (extents[d] - 1) + extra[d] + (weight[d] - 1) * dilations[d] + 1 - wanted[d]
        for d in range(rank)
    ]
    # A pad that is negative lengthens the output.
    extra = [extra[d] + max(-totals[d], 0) for d in range(rank)]
    totals = [max(each, 0) for each in totals]
    less, more = [each // 2 for each in totals], [each - each // 2 for each in totals]
    pads = [*less, *more] if mode == "SAME_UPPER" else [*more, *less]
    if any(
        each >= max(stride, dilation)
        for each, stride, dilation in zip(extra, strides, dilations, strict=True)
    ):
        raise node.refused(f"output_shape {wanted} is larger than the kernel reaches")
    given |= {"pads": pads, "output_padding": extra}
    return node.from_tvm("ConvTranspose", node.inputs, given)


def max_pool(node: Node) -> Any:
    """With the flat indices of the largest elements, where they are asked for."""
    from tvm import relax

    if node.outputs == 1:
        given = {name: each for name, each in node.attributes.items() if name != "storage_order"}
        return node.from_tvm("MaxPool", node.inputs, given)
    if node.get("auto_pad", "NOTSET") != "NOTSET" or node.get("ceil_mode", 0):
        raise node.refused("indices with auto_pad or ceil_mode")
    x, extents, kernel = node.inputs[0], node.shape(0), list(node.get("kernel_shape"))
    rank = len(kernel)
    strides, dilations = (list(node.get(name, [1] * rank)) for name in ("strides", "dilations"))
    pads = list(node.get("pads", [0] * 2 * rank))
    geometry = kernel, strides, dilations, pads
    windows = node.compute(_windows, x, name="windows", given=geometry)
    largest = relax.op.max(windows, axis=-1)
    which = node.emit(relax.op.argmax(windows, axis=-1))
    column_major = bool(node.get("storage_order", 0))
    indices = node.compute(
        _flat_indices,
        which,
        name="flat_indices",
        given=(extents, *geometry, column_major),
    )
    return relax.Tuple([largest, indices])


def _windows(
    x: Any, kernel: list[int], strides: list[int], dilations: list[int], pads: list[int]
) -> Any:
    """Each window's elements along a last axis, of the lowest value beside the image."""
    from tvm import te, tirx

    rank = len(kernel)
    extents = [int(each) for each in x.shape[2:]]
    steps = [
        (extents[d] + pads[d] + pads[d + rank] - dilations[d] * (kernel[d] - 1) - 1) // strides[d]
        + 1
        for d in range(rank)
    ]

    def of(sample: Any, channel: Any, *at: Any) -> Any:
        places = _places(at[-1], at[:-1], kernel, strides, dilations, pads)
        inside = [
            condition
            for place, extent in zip(places, extents, strict=True)
            for condition in (place >= 0, place < extent)
        ]
        return tirx.if_then_else(
            tirx.all(*inside), x(sample, channel, *places), tirx.min_value(x.dtype)
        )

    shape = [*x.shape[:2], *steps, int(np.prod(kernel))]
    return te.compute(shape, of, name="windows")


def _places(
    number: Any,
    at: Any,
    kernel: list[int],
    strides: list[int],
    dilations: list[int],
    pads: list[int],
) -> list[Any]:
    """The coordinates of an element of a window by its number there."""
    from tvm import tirx

    places = []
    for d in reversed(range(len(kernel))):
        inside = tirx.floormod(number, kernel[d])
        number = tirx.floordiv(number, kernel[d])
        places.append(at[d] * strides[d] + inside * dilations[d] - pads[d])
    return places[::-1]


def _flat_indices(
    which: Any,
    extents: list[int],
    kernel: list[int],
    strides: list[int],
    dilations: list[int],
    pads: list[int],
    column_major: bool,
) -> Any:
    from tvm import te

    def of(sample: Any, channel: Any, *at: Any) -> Any:
        number = which(sample, channel, *at)
        places = _places(number, at, kernel, strides, dilations, pads)
        order = range(len(kernel))
        flat: Any = 0
        for d in reversed(order) if column_major else order:
            flat = flat * extents[d + 2] + places[d]
        image = int(np.prod(extents[2:]))
        return ((sample * extents[1] + channel) * image + flat).astype("int64")

    return te.compute(which.shape, of, name="flat_indices")


def roi_align(node: Node) -> Any:
    """By the mean; TVM's maximum is over other points."""
    if node.get("mode", "avg") != "avg":
        raise node.refused("mode max")
    return node.default()


def top_k(node: Node) -> Any:
    if dtype_of(node.inputs[0]) in ("uint64", "uint32", "uint16", "bfloat16"):
        raise node.refused(f"TVM does not sort {dtype_of(node.inputs[0])}")
    return node.default()


CONVERTERS = {
    "ConvTranspose": transposed_convolution,
    "MaxPool": max_pool,
    "RoiAlign": roi_align,
    "TopK": top_k,
}
