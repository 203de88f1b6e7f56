"""Linear interpolation for classic TVM, whose own weighs other places at an image's edges.

For an image's first row it takes no part of the second one. PyTorch takes 0 times it, which is NaN
of an infinity; and TVM leaves out a term whose factor is the constant 0. Weights are tensors here.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.converters.relay import shape_of

Converter = Callable[[Sequence[Any], Sequence[str]], Any]


def converters() -> dict[str, Converter]:
    """By operator's name, for `import_relay`."""
    names = ("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d")
    return {f"aten::{name}": functools.partial(linear, axes) for axes, name in enumerate(names, 1)}


def linear(axes: int, inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::upsample_bilinear2d(input, size, align_corners, scale_factors)` over the last axes.

    Its other form has a scale of its own for each axis.
    """
    from tvm import relay
    from tvm.relay.frontend.common import try_infer_value

    data, size, aligned, *scales = inputs
    shape = shape_of(data)
    if scales == [None] or isinstance(scales[0], list):
        scales = scales[0] or [None] * axes
    before = shape[-axes:]
    if size is None:
        after = [int(extent * by) for extent, by in zip(before, scales, strict=True)]
    else:
        after = [
            int(try_infer_value(each)[0]) if isinstance(each, relay.Expr) else int(each)
            for each in size
        ]
    wide = "float64" if types[0] == "float64" else "float32"
    found = relay.cast(data, wide)
    for place in reversed(range(axes)):
        axis = len(shape) - axes + place
        first, second, part = _places(before[place], after[place], aligned, scales[place], wide)
        along = [-1 if each == axis else 1 for each in range(len(shape))]
        one, other = (
            relay.take(found, relay.const(each, "int64"), axis=axis)
            * relay.const(weight.reshape(along), wide)
            for each, weight in ((first, 1 - part), (second, part))
        )
        found = one + other
    return relay.cast(found, types[0])


def _places(
    before: int, after: int, aligned: bool, by: float | None, dtype: str
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The two places that each element is between, and the second one's weight."""
    real = np.dtype(dtype).type
    if before == after:
        same = np.arange(after)
        return same, same, np.zeros(after, dtype)
    if aligned:
        step = real(before - 1) / real(after - 1) if after > 1 else real(0)
        where = np.arange(after).astype(dtype) * step
    else:
        step = real(1 / by) if by else real(before) / real(after)
        where = np.maximum(step * (np.arange(after).astype(dtype) + real(0.5)) - real(0.5), 0)
    first = np.minimum(where.astype("int64"), before - 1)
    second = np.minimum(first + 1, before - 1)
    return first, second, np.clip(where - first.astype(dtype), 0, 1).astype(dtype)
