"""Products and convolutions of bytes by int8 constants, exact in int32.

    sum_k (q[i, k] - z) v[k, j] = sum_k q[i, k] v[k, j] - z sum_k v[k, j]

q is uint8, z its zero point, and the last sum a constant: the form that the rules for processors
have instructions for. A convolution is padded with z, so that its last sum is a constant too.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tvm_practice.tvm_export.relax_passes.channels_last import FIRST
from tvm_practice.tvm_export.relax_passes.fused_padding import padded
from tvm_practice.tvm_export.relax_passes.requantization import operator_name

STEPS, LARGEST = 255, 127  # of a uint8, and of a weight's int8
# The sum's magnitude is less than STEPS * LARGEST * terms, and z sum_k v's no more: 32 bits.
MOST_TERMS = (2**31 - 1) // (2 * STEPS * LARGEST)
FEWEST_CHANNELS = 3  # of a convolution without groups: the instruction takes _AT_ONCE at a time
_AT_ONCE = 4


def suits(attributes: Any, weight: Sequence[int]) -> bool:
    """Whether a convolution has a form in integers, and gains by it.

    Args:
        attributes: of a relax.nn.conv2d.
        weight: the shape of its weight.
    """
    return (
        str(attributes.data_layout) == "NCHW"
        and str(attributes.kernel_layout) == "OIHW"
        and gains(weight, int(attributes.groups))
        and int(np.prod(weight[1:])) <= MOST_TERMS
    )


def gains(weight: Sequence[int], groups: int) -> bool:
    """Whether a convolution gains by integers: by arithmetic, or a depthwise one by its bytes.

    Args:
        weight: the shape of its weight.
        groups: of its channels.
    """
    return (
        weight[1] == 1 if groups == weight[0] > 1 else groups == 1 and weight[1] >= FEWEST_CHANNELS
    )


def product(emit: Any, rows: Any, zero: Any, values: np.ndarray) -> Any:
    """The sums of (rows - zero) times the values, int32.

    Args:
        emit: of the function's builder.
        rows: a variable (..., terms) of uint8.
        zero: the zero point, a number; or a tensor that broadcasts to (..., channels).
        values: (terms, channels) of int8.
    """
    from tvm import relax
    from tvm.relax import op

    total = emit(op.matmul(rows, relax.const(np.ascontiguousarray(values)), out_dtype="int32"))
    sums = values.astype("int32").sum(0, dtype="int32")
    if isinstance(zero, int):
        return op.subtract(total, relax.const(zero * sums)) if zero else total
    shift = op.multiply(emit(op.astype(zero, "int32")), relax.const(sums))
    return op.subtract(total, emit(shift))


def convolution(
    builder: Any,
    attributes: Any,
    image: Any,
    zero: Any,
    values: np.ndarray,
    *,
    outside: Sequence[int] = (0,) * 8,
) -> Any:
    """The sums of a convolution of (image - zero) with the values, int32.

    Args:
        builder: of the function.
        attributes: those of a relax.nn.conv2d that `suits`; its padding is of zero points.
        image: a variable (images, channels, height, width) of uint8.
        zero: the zero point, a number; or a tensor of one element without axes.
        values: of int8, as the convolution's weight.
        outside: pads the image with the zero point before.
    """
    from tvm import relax
    from tvm.relax import op

    emit = builder.emit
    padding = [int(each) for each in attributes.padding]
    groups, is_known = int(attributes.groups), isinstance(zero, int)
    sums = values.astype("int32").sum((1, 2, 3), dtype="int32").reshape(1, -1, 1, 1)
    more = -values.shape[1] % _AT_ONCE if groups == 1 else 0  # channels of weight 0
    top, left, bottom, right = padding
    inside = [0, 0, 0, more, top, bottom, left, right]
    around = [one + other for one, other in zip(outside, inside, strict=True)]
    is_word = values.shape[1] + more == _AT_ONCE and groups == 1
    if is_word and is_known and _is_closed(image):
        image = _pixels(builder, _steps(builder, image), zero, around)
    elif not (more or any(outside) or (any(padding) and (not is_known or zero))):
        around = []  # the convolution's own zeros do
    elif is_known:
        image = emit(op.nn.pad(image, around, "constant", zero))
    else:
        image = _padded(emit, image, zero, around)
    if around:
        padding = [0, 0, 0, 0]
        values = np.pad(values, [(0, 0), (0, more), (0, 0), (0, 0)])
    total = op.nn.conv2d(
        image,
        relax.const(np.ascontiguousarray(values)),
        strides=[int(each) for each in attributes.strides],
        padding=padding,
        dilation=[int(each) for each in attributes.dilation],
        groups=groups,
        out_dtype="int32",
    )
    if is_known:
        return op.subtract(emit(total), relax.const(zero * sums)) if zero else total
    shift = op.multiply(emit(op.astype(zero, "int32")), relax.const(sums))
    return op.subtract(emit(total), emit(shift))


def _padded(emit: Any, image: Any, zero: Any, around: Sequence[int]) -> Any:
    """An image padded with a zero point that only a call knows."""
    from tvm import relax
    from tvm.relax import op

    width = list(zip(around[::2], around[1::2], strict=True))
    inside = np.zeros([1, *(int(each) for each in list(image.ty.shape)[1:])], "uint8")
    ring = np.pad(inside, width, constant_values=1)
    edges = emit(op.multiply(relax.const(ring), zero))
    return emit(op.add(emit(op.nn.pad(image, list(around), "constant", 0)), edges))


def _steps(builder: Any, image: Any) -> Any:
    """A variable of bytes as int32: what it was made of where that is int32."""
    from tvm.relax import op

    made = builder.lookup_binding(image)
    if operator_name(made) == "astype" and str(made.args[0].ty.dtype) == "int32":
        return made.args[0]
    return builder.emit(op.astype(image, "int32"))


def _pixels(builder: Any, steps: Any, zero: int, around: list[int]) -> Any:
    """Bytes (images, 4, height, width), those of a pixel side by side, made as one word a pixel.

    A store of single bytes with others between them is no store of a vector.

    Args:
        builder: of the function.
        steps: the bytes as int32, of at most 4 channels.
        zero: of the bytes around, and of the channels that are not there.
        around: pads the bytes.
    """
    from tvm import relax
    from tvm.relax import op

    emit = builder.emit

    def word(*values: int) -> Any:
        return relax.const(int.from_bytes(bytes(values), "little", signed=True), "int32")

    images, channels, height, width = (int(each) for each in steps.ty.shape)
    whole = word(*([0] * channels + [zero] * (_AT_ONCE - channels)))
    for channel in range(channels):
        plane = emit(op.strided_slice(steps, [1], [channel], [channel + 1]))
        shifted = emit(op.left_shift(plane, relax.const(8 * channel, "int32")))
        whole = emit(op.bitwise_or(shifted, whole))
    edges = [*around[:2], 0, 0, *around[4:]]
    filled = int(word(*[zero] * _AT_ONCE).value.numpy())
    words = emit(padded(whole, edges, filled, builder)) if any(edges) else whole
    shape = [images, height + sum(around[4:6]), width + sum(around[6:]), _AT_ONCE]
    return emit(op.permute_dims(emit(op.memory.view(words, shape, "uint8")), FIRST))


def _is_closed(tensor: Any) -> bool:
    """Whether all extents are known."""
    return all(hasattr(each, "value") for each in tensor.ty.shape)


def constant_matrix(expression: Any, lookup: Any) -> np.ndarray | None:
    """A constant matrix or a transposed one as an array; None for anything else."""
    import tvm
    from tvm import relax

    if isinstance(expression, relax.Var):
        expression = lookup(expression)
    if str(getattr(getattr(expression, "op", None), "name", "")) == "relax.permute_dims":
        inner = constant_matrix(expression.args[0], lookup)
        return None if inner is None else inner.T
    if not isinstance(expression, tvm.ir.GenericConst) or len(expression.value.shape) != 2:
        return None
    return np.asarray(expression.value.numpy())
