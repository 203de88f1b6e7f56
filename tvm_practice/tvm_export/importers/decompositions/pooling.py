"""Pooling windows that hang over the edge, or that are divided by something else."""

import math
from collections.abc import Callable, Sequence
from typing import Any, cast

from tvm_practice.tvm_export.importers.decompositions.elementwise import operator_of

Rule = Callable[..., Any]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    found: dict[Any, Rule] = {torch.ops.aten.unfold.default: _unfold}
    for axes in (2, 3):
        operator = operator_of(f"avg_pool{axes}d.default")
        found[operator] = _mean_of_windows(operator, axes)
        largest = operator_of(f"max_pool{axes}d_with_indices.default")
        found[largest] = _largest_of_windows(largest, axes)
        fractional = operator_of(f"fractional_max_pool{axes}d.default")
        found[fractional] = _largest_of_drawn_windows
        adaptive = operator_of(f"adaptive_max_pool{axes}d.default")
        found[adaptive] = _largest_of_parts
    for name in ("adaptive_avg_pool1d", "_adaptive_avg_pool2d", "_adaptive_avg_pool3d"):
        operator = operator_of(f"{name}.default")
        found[operator] = _mean_of_parts(operator)
    return found


def _mean_of_parts(operator: Any) -> Rule:
    """Adaptive averages of 16-bit numbers, which do not hold a part's sum, by way of float32."""

    def rule(x: Any, size: Sequence[int]) -> Any:
        import torch

        if x.dtype not in (torch.float16, torch.bfloat16):
            return NotImplemented
        return operator(x.to(torch.float32), size).to(x.dtype)

    return rule


def _largest_of_windows(operator: Any, axes: int) -> Rule:
    """Maxima whose stride is left out, which is the kernel then; in ceil_mode of open extents.

    In ceil_mode TVM's own type of the result is a choice between two extents, which its passes do
    not take for a shape. There the image ends where its last window does, if that hangs over.
    """

    def rule(
        x: Any,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        dilation: Sequence[int] = (1,),
        ceil_mode: bool = False,
    ) -> Any:
        import torch

        extents = x.shape[-axes:]
        if not ceil_mode or all(isinstance(extent, int) for extent in extents):
            more = (padding, dilation, ceil_mode)
            return NotImplemented if stride else operator(x, kernel, kernel, *more)
        stride = stride or kernel
        around: list[Any] = []
        for extent, k, s, p, d in zip(
            extents,
            *(_per_axis(each, axes) for each in (kernel, stride, padding, dilation)),
            strict=True,
        ):
            beyond = d * (k - 1) + 1
            last = (extent + 2 * p - beyond + s - 1) // s * s  # where the window begins
            is_outside = last >= extent + p
            around = [0, 0 if is_outside else last + beyond - extent - 2 * p, *around]
        floats = x.dtype.is_floating_point
        least = -math.inf if floats else torch.iinfo(x.dtype).min
        whole = torch.ops.aten.constant_pad_nd.default(x, around, least)
        found, places = operator(whole, kernel, stride, padding, dilation)
        return found, _in_another_image(places, whole.shape[-axes:], extents)

    return rule


def _in_another_image(places: Any, extents: Sequence[Any], other: Sequence[Any]) -> Any:
    """Places in a flat image as the places of the same pixels in a larger or smaller one."""
    along = []
    for extent in reversed(extents):
        along.append(places % extent)
        places = places // extent
    flat: Any = 0
    for extent, place in zip(other, reversed(along), strict=True):
        flat = flat * extent + place
    return flat


def _largest_of_drawn_windows(
    x: Any, kernel: Sequence[int], size: Sequence[int], samples: Any
) -> tuple[Any, Any]:
    """Maxima of windows that begin where numbers between 0 and 1 say, and their places.

    See generate_intervals in ATen's FractionalMaxPooling.h.
    """
    import torch

    axes = len(size)
    extents, batch = x.shape[-axes:], x.shape[:-axes]
    # Two axes are drawn in the order width, height; three in that of the axes.
    drawn = (samples if len(batch) == 2 else samples[0]).unbind(-1)
    flat: Any = 0
    for axis, one in enumerate(drawn[::-1] if axes == 2 else drawn):
        extent, out, window = extents[axis], size[axis], kernel[axis]
        last = torch.full((*batch, 1), extent - window, device=x.device)
        step = (extent - window) / max(out - 1, 1)
        steps = torch.arange(out - 1, device=x.device, dtype=one.dtype)
        before = ((steps + one.unsqueeze(-1)) * step).to(torch.int64)
        begin = torch.cat((before - (one * step).to(torch.int64).unsqueeze(-1), last), -1)
        shape = [1] * (2 * axes)
        shape[axis], shape[axes + axis] = out, window
        places = begin.unsqueeze(-1) + torch.arange(window, device=x.device)
        flat = flat * extent + places.reshape(*batch, *shape)
    flat = flat.reshape(*batch, math.prod(size) * math.prod(kernel))
    values = x.reshape(*batch, -1).gather(-1, flat)
    windows = (*batch, *size, math.prod(kernel))
    found, at = values.reshape(windows).max(-1, keepdim=True)
    return found.squeeze(-1), flat.reshape(windows).gather(-1, at).squeeze(-1)


def _mean_of_windows(operator: Any, axes: int) -> Rule:
    """Averages with ceil_mode or a divisor: the sum of a padded window by its own count."""

    def rule(
        x: Any,
        kernel: Sequence[int],
        stride: Sequence[int] = (),
        padding: Sequence[int] = (0,),
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor: int | None = None,
    ) -> Any:
        import torch

        if x.dtype in (torch.float16, torch.bfloat16):  # which do not hold a window's sum
            wide = x.to(torch.float32)
            more = (padding, ceil_mode, count_include_pad, divisor)
            return operator(wide, kernel, stride, *more).to(x.dtype)
        kernel, padding = _per_axis(kernel, axes), _per_axis(padding, axes)
        stride = _per_axis(stride, axes) if stride else kernel
        padded = any(padding)
        if x.is_floating_point() and divisor is None and not ceil_mode and not padded:
            return NotImplemented
        shape = x.shape[-axes:]
        counts: list[Any] = []
        around: list[int] = []
        sizes: list[int] = []
        for extent, k, s, p in zip(shape, kernel, stride, padding, strict=True):
            out = _windows(extent, k, s, p, ceil_mode)
            # A window beyond both ends is as if it ended there: EfficientNet's last is 1280 wide.
            alone = isinstance(out, int) and out == 1
            sizes.append(min(k, extent + 2 * p) if alone else k)
            around = [p, (out - 1) * s + sizes[-1] - extent - p, *around]
            first = torch.arange(out, device=x.device) * s - p
            last = torch.where(first + k > extent + p, extent + p, first + k)
            if not count_include_pad:
                first = torch.where(first < 0, 0, first)
                last = torch.where(last > extent, extent, last)
            counts.append(last - first)
        volume = math.prod(sizes)
        wide = x if x.is_floating_point() else x.to(torch.float64)
        whole = torch.ops.aten.constant_pad_nd.default(wide, around, 0)
        total = operator(whole, sizes, stride) * volume
        if divisor is not None:
            return _divided(total, divisor, x.dtype)
        count = counts[0]
        for each in counts[1:]:
            count = count.unsqueeze(-1) * each
        return _divided(total, count.to(total.dtype), x.dtype)

    return rule


def _divided(total: Any, by: Any, dtype: Any) -> Any:
    import torch

    found = total / by
    return found if dtype.is_floating_point else torch.trunc(found).to(dtype)


def _per_axis(given: Sequence[int], axes: int) -> list[int]:
    return list(given) * axes if len(given) == 1 else list(given)


def _windows(extent: int, kernel: int, stride: int, padding: int, ceil_mode: bool) -> int:
    """How many windows there are along an axis; none may begin beyond the input and its pad."""
    over = extent + 2 * padding - kernel
    count = (over + (stride - 1 if ceil_mode else 0)) // stride + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= extent + padding else count


def _unfold(x: Any, dim: int, size: int, step: int) -> Any:
    import torch

    if x.ndim == 0:
        return x.reshape(1)[:size]
    dim %= x.ndim
    count = (x.shape[dim] - size) // step + 1
    begin = torch.arange(count, device=x.device) * step
    index = (begin.unsqueeze(1) + torch.arange(size, device=x.device)).reshape(-1)
    taken = torch.index_select(x, dim, index)
    split = taken.reshape(*x.shape[:dim], count, size, *x.shape[dim + 1 :])
    return split.movedim(dim + 1, -1)


def _largest_of_parts(x: Any, size: Sequence[int]) -> tuple[Any, Any]:
    """Adaptive maxima, each part of an axis from floor(i n / m) to ceil((i + 1) n / m)."""
    import torch

    axes = len(size)
    lead = x.ndim - axes
    steps = range(axes)
    values, place, inside = x, cast(Any, None), cast(Any, None)
    for axis, out in enumerate(size):
        extent = x.shape[lead + axis]
        first = [i * extent // out for i in range(out)]
        last = [-(-(i + 1) * extent // out) for i in range(out)]
        longest = max(b - a for a, b in zip(first, last, strict=True))
        begin = torch.arange(out, device=x.device) * extent // out
        end = (torch.arange(out, device=x.device) * extent + extent + out - 1) // out
        index = begin.unsqueeze(1) + torch.arange(longest, device=x.device)
        valid = index < end.unsqueeze(1)
        index = torch.where(valid, index, extent - 1)
        taken = torch.index_select(values, lead + 2 * axis, index.reshape(-1))
        at = lead + 2 * axis
        values = taken.reshape(*taken.shape[:at], out, longest, *taken.shape[at + 1 :])
        shape = [1] * (2 * axes)
        shape[2 * axis : 2 * axis + 2] = [out, longest]
        index, valid = index.reshape(shape), valid.reshape(shape)
        place = index if place is None else place * extent + index
        inside = valid if inside is None else inside & valid
    order = [*range(lead), *(lead + 2 * i for i in steps), *(lead + 2 * i + 1 for i in steps)]
    parts = torch.where(inside, values, -math.inf).permute(order).flatten(-axes)
    places = place.expand(values.shape).permute(order).flatten(-axes)
    unknown = torch.isnan(parts)  # of which PyTorch names the last
    last_unknown = parts.shape[-1] - 1 - unknown.flip(-1).to(torch.int8).argmax(-1, keepdim=True)
    which = torch.where(unknown.any(-1, keepdim=True), last_unknown, parts.argmax(-1, keepdim=True))
    return parts.amax(-1), torch.gather(places, -1, which).squeeze(-1)
