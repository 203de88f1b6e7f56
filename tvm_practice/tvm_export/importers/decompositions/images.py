"""Images made smaller with a filter: the frontend leaves the filter out."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

Rule = Callable[..., Any]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    return {
        aten._upsample_bilinear2d_aa.default: functools.partial(_filtered, _triangle, 1.0),
        aten._upsample_bicubic2d_aa.default: functools.partial(_filtered, _cubic, 2.0),
    }


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

    if align_corners:
        scale = (extent - 1) / (out - 1) if out > 1 else 0.0
    else:
        scale = 1 / given if given else extent / out
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
