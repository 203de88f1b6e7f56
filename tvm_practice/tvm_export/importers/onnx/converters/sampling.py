"""Convolutions that sample their image between its elements."""

from typing import Any

from tvm_practice.tvm_export.importers.onnx.converters.base import Node, dtype_of


def deformable_convolution(node: Node) -> Any:
    """DeformConv: each tap of the filters is moved by an offset of its own at each place.

    Samples are linear between elements and zero outside; they become a matrix that the filters
    are multiplied by.
    """
    from tvm import relax

    x, filters, offsets = node.inputs[:3]
    bias, mask = node.input(3), node.input(4)
    if dtype_of(x) not in ("float32", "float64"):
        raise node.refused(f"of type {dtype_of(x)}")
    extents, (outputs, _, *kernel), places = node.shape(0), node.shape(1), node.shape(2)
    if len(kernel) != 2:
        raise node.refused(f"a kernel of {len(kernel)} axes")
    samples, channels = extents[:2]
    groups, taps = node.get("group", 1), kernel[0] * kernel[1]
    given = (
        kernel[1],
        node.get("strides", [1, 1]),
        node.get("pads", [0] * 4),
        node.get("dilations", [1, 1]),
        channels // node.get("offset_group", 1),
        taps,
    )
    moved = [offsets] if mask is None else [offsets, mask]
    columns = node.compute(_columns, x, *moved, name="deformed_columns", given=given)
    image = places[2] * places[3]
    columns = relax.op.reshape(columns, [samples, groups, channels // groups * taps, image])
    matrices = relax.op.reshape(filters, [1, groups, outputs // groups, channels // groups * taps])
    made = relax.op.reshape(
        relax.op.matmul(node.emit(matrices), node.emit(columns)), [samples, outputs, *places[2:]]
    )
    if bias is None:
        return made
    return relax.op.add(node.emit(made), relax.op.reshape(bias, [1, outputs, 1, 1]))


def _columns(x: Any, offsets: Any, *more: Any) -> Any:
    """The samples (samples, channels, taps, height, width), times the mask where there is one."""
    from tvm import te, tirx

    mask = more[0] if hasattr(more[0], "op") else None
    width, strides, pads, dilations, shared, taps = more[-6:]
    samples, channels, *image = (int(each) for each in x.shape)

    def of(sample: Any, channel: Any, tap: Any, *at: Any) -> Any:
        first = tirx.floordiv(channel, shared) * taps + tap
        inside = (tirx.floordiv(tap, width), tirx.floormod(tap, width))
        whole, parts = [], []
        for d in range(2):
            place = (at[d] * strides[d] + inside[d] * dilations[d] - pads[d]).astype(x.dtype)
            place = place + offsets(sample, 2 * first + d, *at)
            # Further out there is nothing, and an integer may not hold the place.
            place = tirx.max(tirx.min(place, tirx.const(image[d] + 1, x.dtype)),
                             tirx.const(-2, x.dtype))  # fmt: skip
            whole.append(tirx.floor(place))
            parts.append(place - tirx.floor(place))
        value: Any = tirx.const(0, x.dtype)
        for corner in ((0, 0), (0, 1), (1, 0), (1, 1)):
            weight: Any = tirx.const(1, x.dtype)
            element, is_inside = [], []
            for d in range(2):
                index = whole[d].astype("int32") + corner[d]
                is_inside += [index >= 0, index < image[d]]
                element.append(tirx.max(tirx.min(index, image[d] - 1), 0))
                weight = weight * (parts[d] if corner[d] else 1 - parts[d])
            value = value + tirx.Select(
                tirx.all(*is_inside), x(sample, channel, *element) * weight, tirx.const(0, x.dtype)
            )
        return value if mask is None else value * mask(sample, first, *at)

    return te.compute((samples, channels, taps, *offsets.shape[2:]), of, name="columns")


CONVERTERS = {"DeformConv": deformable_convolution}
