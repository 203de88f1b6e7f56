"""Fourier transforms, as products with constant matrices."""

from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.onnx.converters.base import (
    Node,
    constant,
    dtype_of,
    whole_axis,
)

_LONGEST = 4096  # whose matrix is not too large


def dft(node: Node) -> Any:
    """A discrete Fourier transform along one axis; the last has the real and imaginary parts."""
    from tvm import relax

    x, extents = node.inputs[0], node.shape(0)
    rank = len(extents)
    given = node.known(2) if node.opset >= 20 else np.array(node.get("axis", 1))
    axis = whole_axis(-2 if given is None else int(given.item()), rank)
    length_given = node.known(1)
    length = extents[axis] if length_given is None else int(length_given.item())
    inverse, onesided = bool(node.get("inverse", 0)), bool(node.get("onesided", 0))
    if inverse and onesided and length_given is None:
        length = 2 * (extents[axis] - 1)
    x = _of_length(node, x, axis, length // 2 + 1 if inverse and onesided else length)
    order = [each for each in range(rank - 1) if each != axis]
    moved = node.emit(relax.op.permute_dims(x, [*order, rank - 1, axis]))
    parts = [
        node.emit(
            relax.op.squeeze(relax.op.strided_slice(moved, [rank - 2], [at], [at + 1]), [rank - 2])
        )
        for at in range(extents[-1])
    ]
    if inverse and onesided:
        turned = _real(node, parts, length)
    else:
        count = length // 2 + 1 if onesided else length
        turned = _transformed(node, parts, length, count, inverse)
    back = [*range(axis), rank - 2, *range(axis, rank - 2), rank - 1]
    return relax.op.permute_dims(turned, back)


def _of_length(node: Node, x: Any, axis: int, length: int) -> Any:
    """A tensor with an axis cut, or continued with zeros."""
    from tvm import relax

    extent = int(x.ty.shape[axis])
    if length < extent:
        return node.emit(relax.op.strided_slice(x, [axis], [0], [length]))
    if length == extent:
        return x
    zeros = list(x.ty.shape)
    zeros[axis] = length - extent
    return node.emit(relax.op.concat([x, relax.op.zeros(zeros, dtype_of(x))], axis))


def _transformed(node: Node, parts: list[Any], length: int, count: int, inverse: bool) -> Any:
    """The transform of (…, length) to (…, count, 2), of real or of complex values."""
    from tvm import relax

    if length > _LONGEST:
        raise node.refused(f"a length of {length} is more than {_LONGEST}")
    dtype = dtype_of(parts[0])
    angle = 2 * np.pi / length * np.outer(np.arange(length), np.arange(count))
    scale = 1 / length if inverse else 1
    cosine = constant((np.cos(angle) * scale).astype(dtype), dtype)
    sine = constant((np.sin(angle) * (scale if inverse else -scale)).astype(dtype), dtype)
    real, imaginary = (node.emit(relax.op.matmul(parts[0], each)) for each in (cosine, sine))
    if len(parts) == 2:
        real = node.emit(relax.op.subtract(real, relax.op.matmul(parts[1], sine)))
        imaginary = node.emit(relax.op.add(imaginary, relax.op.matmul(parts[1], cosine)))
    return node.emit(relax.op.stack([real, imaginary], -1))


def _real(node: Node, parts: list[Any], length: int) -> Any:
    """The real values (…, length, 1) whose transform begins with the given half."""
    from tvm import relax

    if length > _LONGEST:
        raise node.refused(f"a length of {length} is more than {_LONGEST}")
    dtype, half = dtype_of(parts[0]), np.arange(length // 2 + 1)
    angle = 2 * np.pi / length * np.outer(half, np.arange(length))
    # All but the first frequency, and the middle one of an even length, stand for two.
    twice = np.where((half == 0) | (2 * half == length), 1, 2)[:, None] / length
    cosine = constant((np.cos(angle) * twice).astype(dtype), dtype)
    sine = constant((np.sin(angle) * twice).astype(dtype), dtype)
    real = relax.op.matmul(parts[0], cosine)
    return relax.op.expand_dims(relax.op.subtract(real, relax.op.matmul(parts[1], sine)), -1)


def short_time(node: Node) -> Any:
    """STFT: the transforms of windows that step along a signal of real values."""
    from tvm import relax

    signal, extents = node.inputs[0], node.shape(0)
    step_given, length_given = node.known(1), node.known(3)
    assert step_given is not None  # an input that is not optional
    step = int(step_given.item())
    window = node.input(2)
    if extents[-1] != 1 and len(extents) == 3:
        raise node.refused("a signal of complex values")
    if length_given is not None:
        length = int(length_given.item())
    elif window is not None:
        length = int(window.ty.shape[0])
    else:
        raise node.refused("neither a window nor a length is given")
    frames = (extents[1] - length) // step + 1
    places = (np.arange(frames)[:, None] * step + np.arange(length)).reshape(-1)
    flat = relax.op.reshape(signal, (extents[0], extents[1]))
    taken = relax.op.take(flat, constant(places, "int64"), axis=1)
    rows = relax.op.reshape(taken, (extents[0], frames, length))
    if window is not None:
        rows = relax.op.multiply(rows, window)
    count = length // 2 + 1 if node.get("onesided", 1) else length
    return _transformed(node, [node.emit(rows)], length, count, inverse=False)


CONVERTERS = {"DFT": dft, "STFT": short_time}
