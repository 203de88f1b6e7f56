"""Normalizations of types that TVM's operators do not take: it knows float32 and float16.

And of open channels, which they do not take either. Of open extents, PyTorch's rule for instance
normalization is slow, too.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

Rule = Callable[..., Any]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    return {
        aten.native_layer_norm.default: _layer_norm,
        aten.native_group_norm.default: _group_norm,
        aten.instance_norm.default: _instance_norm,
        aten._native_batch_norm_legit_no_training.default: _batch_norm,
    }


def _layer_norm(x: Any, shape: Sequence[int], weight: Any, bias: Any, eps: float) -> Any:
    if _is_known(x):
        return NotImplemented
    axes = list(range(-len(shape), 0))
    normalized, *more = _normalized(x, axes, eps)
    return _scaled(normalized, weight, bias).to(x.dtype), *(each.to(x.dtype) for each in more)


def _group_norm(
    x: Any, weight: Any, bias: Any, N: int, C: int, HxW: int, group: int, eps: float
) -> Any:
    if _is_known(x) and isinstance(C, int):
        return NotImplemented
    normalized, *more = _normalized(x.reshape(N, group, -1), [2], eps)
    scaled = _scaled(normalized.reshape(x.shape), *_along_channels(x, weight, bias))
    return scaled.to(x.dtype), *(each.squeeze(2).to(x.dtype) for each in more)


def _batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any, variance: Any, momentum: float, eps: float
) -> Any:
    if isinstance(x.shape[1], int):
        return NotImplemented
    mean, variance, *own = _along_channels(x, mean, variance, weight, bias)
    nothing = x.new_empty((0,))
    return _scaled((x - mean) * (variance + eps).rsqrt(), *own), nothing, nothing


def _instance_norm(
    x: Any,
    weight: Any,
    bias: Any,
    running_mean: Any,
    running_var: Any,
    use_input_stats: bool,
    momentum: float,
    eps: float,
    cudnn_enabled: bool,
) -> Any:
    """With open extents, each channel as a group.

    PyTorch's rule takes all examples as one of more channels: two reshapes, which copy with
    divisions by open extents for each element.
    """
    import torch

    examples, channels, *inner = x.shape
    is_open = not all(isinstance(each, int) for each in x.shape)
    if not is_open or not isinstance(channels, int) or not use_input_stats:
        return NotImplemented
    if running_mean is not None or running_var is not None:
        return NotImplemented
    count = math.prod(inner)
    group_norm = torch.ops.aten.native_group_norm.default
    return group_norm(x, weight, bias, examples, channels, count, channels, eps)[0]


def _is_known(x: Any) -> bool:
    import torch

    return x.dtype in (torch.float32, torch.float16)


def _normalized(x: Any, axes: list[int], eps: float) -> tuple[Any, Any, Any]:
    """In at least float32: the normalized values, their mean, and the reciprocal deviation."""
    import torch

    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    mean = wide.mean(axes, keepdim=True)
    apart = wide - mean
    factor = torch.rsqrt((apart * apart).mean(axes, keepdim=True) + eps)
    return apart * factor, mean, factor


def _along_channels(x: Any, *given: Any) -> list[Any]:
    """Tensors of a number per channel, or None, in the shape that broadcasts over `x`."""
    shape = [1, x.shape[1]] + [1] * (x.ndim - 2)
    return [each if each is None else each.reshape(shape) for each in given]


def _scaled(x: Any, weight: Any, bias: Any) -> Any:
    x = x if weight is None else x * weight
    return x if bias is None else x + bias
