"""Resize, by a table of source elements and their weights for each axis."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.onnx.converters.base import Node, constant, dtype_of


def resize(node: Node) -> Any:
    """Axis by axis: each element is the weighted sum of a few of its source's."""
    from tvm import relax

    if node.opset < 11:  # X and scales
        scales, sizes, roi = node.known(1), None, None
        modes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        node.attributes.update(modes)
    else:
        crops = node.get("coordinate_transformation_mode") == "tf_crop_and_resize"
        roi, scales, sizes = node.known(1) if crops else None, node.known(2), node.known(3)
    x, extents = node.inputs[0], node.shape(0)
    axes = [int(each) % len(extents) for each in node.get("axes", range(len(extents)))]
    lengths = [extents[axis] for axis in axes]
    if sizes is not None and sizes.size:
        targets, factors = _by_policy(sizes, lengths, node.get("keep_aspect_ratio_policy"))
    elif scales is not None:
        factors = [float(each) for each in scales]
        targets = [int(np.floor(one * each)) for one, each in zip(lengths, factors, strict=True)]
    else:
        raise node.refused("neither scales nor sizes are given")
    dtype = dtype_of(x)
    for place, axis in enumerate(axes):
        if lengths[place] == targets[place] and factors[place] == 1 and roi is None:
            continue
        ends = None if roi is None or not roi.size else (roi[place], roi[place + len(axes)])
        coordinates = _coordinates(node, lengths[place], targets[place], factors[place], ends)
        sources, weights, outside = _table(node, coordinates, lengths[place], factors[place])
        x = _gathered(node, x, axis, sources, weights)
        if outside is not None and outside.any():
            beside = np.expand_dims(outside, tuple(range(1, len(extents) - axis)))
            value = constant(node.get("extrapolation_value", 0.0), dtype)
            x = node.emit(relax.op.where(constant(beside, "bool"), value, x))
    return x


def upsample(node: Node) -> Any:
    """Resize as it was before opset 10."""
    scales = (
        constant(np.array(node.get("scales"), "float32"), "float32")
        if node.opset < 9
        else node.inputs[1]
    )
    attributes = {"mode": node.attributes.get("mode", b"nearest")}
    return resize(
        Node("Resize", node.builder, [node.inputs[0], scales], attributes, 10, 1, node.from_tvm)
    )


def _by_policy(
    sizes: np.ndarray, lengths: Sequence[int], policy: str | None
) -> tuple[list[int], list[float]]:
    """The target of each axis and its factor, which a policy makes one for all."""
    factors = [float(size) / length for size, length in zip(sizes, lengths, strict=True)]
    if policy in (None, "stretch"):
        return [int(each) for each in sizes], factors
    factor = min(factors) if policy == "not_larger" else max(factors)
    return [int(factor * length + 0.5) for length in lengths], [factor] * len(lengths)


def _coordinates(
    node: Node, length: int, target: int, factor: float, roi: tuple[float, float] | None
) -> np.ndarray:
    """Where each element of an axis lies in its source."""
    mode = node.get("coordinate_transformation_mode", "half_pixel")
    at = np.arange(target, dtype="float64")
    scaled = factor * length
    if mode == "align_corners":
        return at * 0 if scaled == 1 else at * (length - 1) / (scaled - 1)
    if mode == "asymmetric":
        return at / factor
    if mode == "tf_crop_and_resize":
        if roi is None:
            raise node.refused("tf_crop_and_resize without roi")
        start, end = roi
        width = (end - start) * (length - 1)
        moved = at * 0 + width / 2 if scaled == 1 else at * width / (scaled - 1)
        return np.asarray(moved + start * (length - 1))
    half = (at + 0.5) / factor - 0.5
    if mode == "half_pixel":
        return half
    if mode == "pytorch_half_pixel":
        return at * 0 - 0.5 if scaled == 1 else half
    if mode == "half_pixel_symmetric":
        return np.asarray(length / 2 * (1 - target / scaled) + half)
    raise node.refused(f"coordinate_transformation_mode {mode}")


def _table(
    node: Node, coordinates: np.ndarray, length: int, factor: float
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Per element of an axis its sources, their weights if not one, and whether it is outside."""
    outside = None
    if node.get("coordinate_transformation_mode") == "tf_crop_and_resize":
        outside = (coordinates < 0) | (coordinates > length - 1)
    mode = node.get("mode", "nearest")
    if mode == "nearest":
        chosen = _nearest(node.get("nearest_mode", "round_prefer_floor"), coordinates)
        return chosen.clip(0, length - 1)[:, None], None, outside
    narrow = min(factor, 1.0) if node.get("antialias", 0) else 1.0
    reach = {"linear": 1, "cubic": 2}[mode] / narrow
    first = int(np.floor(-reach)) + 1
    base = np.ceil(coordinates).astype(int) - 1  # the element before, by one if it is on one
    steps = np.arange(first, int(np.ceil(reach)) + 1)
    sources = base[:, None] + steps
    distances = np.abs(sources - coordinates[:, None]) * narrow
    if mode == "linear":
        weights = np.clip(1 - distances, 0, None)
    else:
        weights = _cubic(distances, node.get("cubic_coeff_a", -0.75))
    if node.get("exclude_outside", 0):
        weights = weights * ((sources >= 0) & (sources < length))
    if node.get("antialias", 0) or node.get("exclude_outside", 0):
        weights = weights / weights.sum(1, keepdims=True)
    return sources.clip(0, length - 1), weights, outside


def _nearest(mode: str, coordinates: np.ndarray) -> np.ndarray:
    if mode == "round_prefer_floor":
        coordinates = np.ceil(coordinates - 0.5)
    elif mode == "round_prefer_ceil":
        coordinates = np.floor(coordinates + 0.5)
    else:
        coordinates = np.floor(coordinates) if mode == "floor" else np.ceil(coordinates)
    return coordinates.astype("int64")


def _cubic(distance: np.ndarray, a: float) -> np.ndarray:
    near = ((a + 2) * distance - (a + 3)) * distance**2 + 1
    far = ((distance - 5) * distance + 8) * distance * a - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0))


def _gathered(
    node: Node, x: Any, axis: int, sources: np.ndarray, weights: np.ndarray | None
) -> Any:
    """The weighted sum of a tensor's elements at `sources` along an axis."""
    import tvm
    from tvm import te

    dtype = dtype_of(x)
    whole = not dtype.startswith(("float", "bfloat"))
    wide = "float32" if dtype != "float64" else dtype
    extents = list(x.ty.shape)
    shape = [*extents[:axis], len(sources), *extents[axis + 1 :]]

    def gathered(x: Any, sources: Any, *weights: Any) -> Any:
        def of(*at: Any) -> Any:
            def source(tap: int) -> Any:
                return x(*at[:axis], sources[at[axis], tap], *at[axis + 1 :])

            if not weights:
                return source(0)
            total = tvm.tirx.const(0, wide)
            for tap in range(int(sources.shape[1])):
                total = total + source(tap).astype(wide) * weights[0][at[axis], tap]
            return (tvm.tirx.round(total) if whole else total).astype(dtype)

        return te.compute(shape, of, name="resized")

    tables = [constant(sources.astype("int64"), "int64")]
    if weights is not None:
        tables.append(constant(weights.astype(wide), wide))
    return node.compute(gathered, x, *tables, name="resize")


CONVERTERS = {"Resize": resize, "Upsample": upsample}
