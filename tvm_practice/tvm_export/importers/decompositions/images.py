"""Images made larger or smaller, with a filter or without, and sampled volumes."""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

Rule = Callable[..., Any]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    linear = (aten.upsample_linear1d, aten.upsample_bilinear2d, aten.upsample_trilinear3d)
    return {
        **{each.default: _interpolated for each in linear},
        **{each.vec: _interpolated_by for each in linear},
        aten.upsample_bicubic2d.vec: _cubic_by,
        aten.upsample_nearest2d.vec: functools.partial(_nearest_by, aten.upsample_nearest2d.vec),
        aten.upsample_nearest3d.vec: functools.partial(_nearest_by, aten.upsample_nearest3d.vec),
        aten._upsample_bilinear2d_aa.default: functools.partial(_filtered, _triangle, 1.0),
        aten._upsample_bicubic2d_aa.default: functools.partial(_filtered, _cubic, 2.0),
        aten.grid_sampler_3d.default: _sampled,
    }


def _interpolated_by(
    x: Any, size: Sequence[int] | None, align_corners: bool, factors: Sequence[float] | None
) -> Any:
    """As `_interpolated`, to a size or by factors."""
    if size is None:
        assert factors is not None
        size = _sizes(x.shape[2:], factors)
    return _interpolated(x, size, align_corners, *(factors or ()))


def _cubic_by(
    x: Any, size: Sequence[int] | None, align_corners: bool, factors: Sequence[float] | None
) -> Any:
    """Cubic interpolation by whole factors, as to a size."""
    import torch

    if size is not None or factors is None or any(each != int(each) for each in factors):
        return NotImplemented
    operator = torch.ops.aten.upsample_bicubic2d.vec
    return operator(x, _sizes(x.shape[2:], factors), align_corners, None)


def _nearest_by(
    operator: Any, x: Any, size: Sequence[int] | None, factors: Sequence[float] | None
) -> Any:
    """Nearest neighbours by factors, as PyTorch's kernel for small images or channels innermost.

    That kernel keeps an axis whose extent stays, and repeats twice where it doubles, whatever the
    factor; PyTorch's others and its rule go by the factor. See ATen's UpSampleKernel.cpp.
    """
    import torch

    if size is not None or factors is None or not all(isinstance(each, int) for each in x.shape):
        return NotImplemented
    sizes = _sizes(x.shape[2:], factors)
    layout = torch.channels_last if x.ndim == 4 else torch.channels_last_3d
    innermost = x.shape[1] > 3 and x.is_contiguous(memory_format=layout)
    if not innermost and (x.ndim != 4 or sum(sizes) > 128):
        return NotImplemented
    whole = [
        float(after // before) if after in (before, 2 * before) else by
        for before, after, by in zip(x.shape[2:], sizes, factors, strict=True)
    ]
    return NotImplemented if whole == list(factors) else operator(x, None, whole)


def _sizes(extents: Sequence[int], factors: Sequence[float]) -> list[int]:
    """Extents times factors. A product by a whole number may be of an open extent."""
    return [
        each * int(by) if by == int(by) else int(each * by)
        for each, by in zip(extents, factors, strict=True)
    ]


def _interpolated(x: Any, size: Sequence[int], align_corners: bool, *factors: float | None) -> Any:
    """One axis after the other, each of two neighbours by its weight.

    PyTorch's rule adds a part of their difference, which is NaN between infinities; and goes by
    the factor where an extent stays, which its kernels do not (ATen's UpSample.h).
    """
    import torch

    if not x.is_floating_point():
        return NotImplemented
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    for axis in reversed(range(len(size))):
        extent, out = x.shape[axis + 2], size[axis]
        step = _step(extent, out, align_corners, factors[axis] if factors else None)
        place = torch.arange(out, device=x.device).to(wide.dtype)
        if extent != out:
            place = place * step if align_corners else ((place + 0.5) * step - 0.5).clamp(min=0)
        low = place.to(torch.int64).clamp(max=extent - 1)
        high = low if extent == out else (low + 1).clamp(max=extent - 1)
        weight = (place - low).clamp(max=1).reshape([-1] + [1] * (len(size) - 1 - axis))
        lower, upper = (torch.index_select(wide, axis + 2, each) for each in (low, high))
        wide = lower * (1 - weight) + upper * weight
    return wide.to(x.dtype)


def _step(extent: int, out: int, align_corners: bool, factor: float | None) -> float:
    """Elements of an axis from one element of the output to the next."""
    if align_corners:
        return (extent - 1) / (out - 1) if out > 1 else 0.0
    return 1 / factor if factor else extent / out


def _triangle(x: Any) -> Any:
    import torch

    return torch.where(x < 1, 1 - x, 0)


def _cubic(x: Any) -> Any:
    import torch

    near = (1.5 * x - 2.5) * x * x + 1
    far = ((-0.5 * x + 2.5) * x - 4) * x + 2
    return torch.where(x < 1, near, torch.where(x < 2, far, 0))


def _filtered(
    kernel: Rule,
    support: float,
    x: Any,
    size: Sequence[int],
    align_corners: bool,
    scale_h: float | None = None,
    scale_w: float | None = None,
) -> Any:
    """Two products with the weights of each output row and column."""
    rows = _weights(kernel, support, x.shape[-2], size[0], align_corners, scale_h)
    columns = _weights(kernel, support, x.shape[-1], size[1], align_corners, scale_w)
    wide = x.to(rows.dtype)
    return ((rows @ wide) @ columns.transpose(0, 1)).to(x.dtype)


def _weights(
    kernel: Rule, support: float, extent: int, out: int, align_corners: bool, given: float | None
) -> Any:
    """Of each output element, the weight of every input element."""
    import torch

    scale = _step(extent, out, align_corners, given)
    stretch = max(scale, 1.0)
    centre = (torch.arange(out, dtype=torch.float32) + 0.5) * scale
    places = torch.arange(extent, dtype=torch.float32)
    reach = support * stretch
    first = torch.floor(torch.clamp(centre - reach + 0.5, min=0))
    last = torch.floor(torch.clamp(centre + reach + 0.5, max=extent))
    apart = torch.abs(places + 0.5 - centre.unsqueeze(1)) / stretch
    inside = (places >= first.unsqueeze(1)) & (places < last.unsqueeze(1))
    weight = torch.where(inside, kernel(apart), 0)
    return weight / weight.sum(1, keepdim=True)


_NEAREST = 1
_BORDER, _REFLECTION = 1, 2


def _sampled(x: Any, grid: Any, mode: int, padding: int, align_corners: bool) -> Any:
    """Values of a volume at the places that a grid names, between -1 and 1 along each axis."""
    import torch

    extents = x.shape[2:]
    at = [
        _place(grid.select(-1, 2 - axis), extent, padding, align_corners)
        for axis, extent in enumerate(extents)
    ]
    if mode == _NEAREST:
        return _taken(x, [torch.round(each) for each in at])
    low = [torch.floor(each) for each in at]
    total: Any = 0.0
    for corner in itertools.product((0, 1), repeat=3):
        weight: Any = 1.0
        for one, first, upper in zip(at, low, corner, strict=True):
            weight = weight * (one - first if upper else first + 1 - one)
        places = [first + upper for first, upper in zip(low, corner, strict=True)]
        total = total + _taken(x, places) * weight.unsqueeze(1)
    return total


def _place(given: Any, extent: int, padding: int, align_corners: bool) -> Any:
    """Where a number between -1 and 1 lies along an axis, in elements."""
    import torch

    low, high = (0.0, extent - 1.0) if align_corners else (-0.5, extent - 0.5)
    place = low + (given + 1) * ((high - low) / 2)
    if padding == _REFLECTION:
        span = high - low
        if span == 0:
            place = torch.zeros_like(place)
        else:
            apart = torch.abs(place - low)
            turns = torch.floor(apart / span)
            rest = apart - turns * span
            place = low + torch.where(turns % 2 == 0, rest, span - rest)
    return torch.clamp(place, 0, extent - 1) if padding in (_BORDER, _REFLECTION) else place


def _taken(x: Any, places: Sequence[Any]) -> Any:
    """The elements of volumes at whole places, 0 beside the volume."""
    import torch

    extents = x.shape[2:]
    inside = torch.ones_like(places[0], dtype=torch.bool)
    flat = torch.zeros_like(places[0], dtype=torch.int64)
    for place, extent in zip(places, extents, strict=True):
        inside = inside & (place >= 0) & (place < extent)
        flat = flat * extent + torch.clamp(place, 0, extent - 1).to(torch.int64)
    number, channels = x.shape[:2]
    index = flat.reshape(number, 1, -1).expand(number, channels, -1)
    found = torch.gather(x.reshape(number, channels, -1), 2, index)
    return torch.where(inside.unsqueeze(1), found.reshape(number, channels, *flat.shape[1:]), 0)
