"""Quantization as PyTorch's own programs write it (PT2E): to integers and back, step by step.

And the rounding to such steps in models that are trained for it (fake quantization).

PyTorch's implementations read a scale or a zero point as a number, which an exported program cannot
do with a tensor, or check values; these rules compute the same with tensors.
"""

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch
    from torch.ao.quantization.fx import _decomposed as theirs

    ops, aten = torch.ops.quantized_decomposed, torch.ops.aten
    return {
        aten.fake_quantize_per_tensor_affine_cachemask.default: _to_steps,
        aten.fake_quantize_per_channel_affine_cachemask.default: _to_steps_by_channel,
        aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default: _to_steps_if_asked,
        ops.quantize_per_tensor.default: _quantize,
        ops.quantize_per_tensor.tensor: _quantize,
        ops.quantize_per_tensor.tensor2: _quantize,
        ops.dequantize_per_tensor.default: _dequantize,
        ops.dequantize_per_tensor.tensor: _dequantize,
        ops.dequantize_per_tensor.tensor2: _dequantize,
        ops.choose_qparams.tensor: _choose,
        ops.choose_qparams_symmetric.tensor: _choose_symmetric,
        ops.quantize_per_channel.default: theirs.quantize_per_channel,
        ops.dequantize_per_channel.default: theirs.dequantize_per_channel,
        ops.choose_qparams_per_token.default: theirs.choose_qparams_per_token,
        ops.choose_qparams_per_token_asymmetric.default: (
            theirs._choose_qparams_per_token_asymmetric_impl
        ),
        ops.quantize_per_token.default: theirs.quantize_per_token,
        ops.dequantize_per_token.default: theirs.dequantize_per_token,
        ops.quantize_per_channel_group.default: _quantize_groups,
        ops.dequantize_per_channel_group.default: theirs.dequantize_per_channel_group,
    }


def _quantize(x: Any, scale: Any, zero: Any, low: Any, high: Any, dtype: Any) -> Any:
    """One scale, a number or a tensor of one element; its reciprocal is rounded once."""
    import torch

    if isinstance(scale, torch.Tensor):
        inverse: Any = (1.0 / scale.reshape(()).to(torch.float64)).to(torch.float32)
    else:
        inverse = 1.0 / scale
    steps = torch.round(x.to(torch.float32) * inverse) + _scalar(zero)
    return torch.clamp(steps, _scalar(low), _scalar(high)).to(dtype)


def _to_steps(
    x: Any, scale: Any, zero: Any, low: int, high: int, *, as_int64: bool = False
) -> tuple[Any, Any]:
    """The nearest step of each element, and whether it lies between the first and the last.

    NaN becomes the first, as does what no int64 holds where PyTorch converts to it.
    """
    import torch

    factor = scale if isinstance(scale, torch.Tensor) else torch.full((), scale)
    steps = torch.round(x.to(torch.float32) * (1.0 / factor)) + zero
    known = torch.abs(steps) < 2.0**63 if as_int64 else steps == steps
    kept = torch.where(known, torch.clamp(steps, low, high), low)
    return ((kept - zero) * factor).to(x.dtype), (steps >= low) & (steps <= high)


def _to_steps_by_channel(x: Any, scale: Any, zero: Any, axis: int, low: int, high: int) -> Any:
    if zero.dtype.is_floating_point:  # which PyTorch adds before it rounds
        return NotImplemented
    shape = [-1 if each == axis % x.ndim else 1 for each in range(x.ndim)]
    return _to_steps(x, scale.reshape(shape), zero.reshape(shape), low, high, as_int64=True)


def _to_steps_if_asked(
    x: Any, scale: Any, zero: Any, is_on: Any, low: int, high: int
) -> tuple[Any, Any]:
    import torch

    found, inside = _to_steps(x, scale.reshape(()), zero.reshape(()), low, high)
    asked = is_on.reshape(()) > 0
    return torch.where(asked, found, x), inside | ~asked


def _dequantize(
    x: Any, scale: Any, zero: Any, low: Any, high: Any, dtype: Any, *, out_dtype: Any = None
) -> Any:
    import torch

    wide = x.to(out_dtype or torch.float32)
    factor = _scalar(scale)
    if isinstance(factor, torch.Tensor):
        factor = factor.to(wide.dtype)
    return (wide - _scalar(zero)) * factor


def _scalar(value: Any) -> Any:
    """A number as it is; a tensor of one element without axes, float32 if it holds integers."""
    import torch

    if not isinstance(value, torch.Tensor):
        return value
    value = value.reshape(())
    return value if value.is_floating_point() else value.to(torch.float32)


def _choose(x: Any, low: int, high: int, eps: float, dtype: Any) -> tuple[Any, Any]:
    """Scale (1,) in float64 and zero point (1,) in int64, so that x's range and 0 are covered."""
    import torch

    smallest, largest = _range(x)
    scale = torch.clamp((largest - smallest) / float(high - low), min=_float32(eps))
    zero = low - torch.round(smallest / scale).to(torch.int32)
    return scale.reshape(1).to(torch.float64), torch.clamp(zero, low, high).reshape(1).long()


def _choose_symmetric(x: Any, low: int, high: int, eps: float, dtype: Any) -> tuple[Any, Any]:
    """As `_choose`, with 0 in the middle of the integers."""
    import torch

    smallest, largest = _range(x)
    scale = torch.maximum(-smallest, largest) / (float(high - low) / 2)
    scale = torch.clamp(scale, min=_float32(eps)).reshape(1).to(torch.float64)
    return scale, torch.full((1,), 128 if dtype == torch.uint8 else 0, dtype=torch.int64)


def _range(x: Any) -> tuple[Any, Any]:
    """The least and the largest element, 0 at most and at least."""
    import torch

    return torch.clamp(torch.amin(x), max=0.0), torch.clamp(torch.amax(x), min=0.0)


def _float32(value: float) -> float:
    import numpy as np

    return float(np.float32(value))


def _quantize_groups(
    x: Any, scales: Any, zeros: Any, low: int, high: int, dtype: Any, size: int
) -> Any:
    """PyTorch's, without its check for NaN."""
    import torch

    size = min(size, int(x.shape[-1]))
    steps = x.reshape(-1, size) * (1.0 / scales.reshape(-1, 1)) + zeros.reshape(-1, 1)
    return torch.clamp(torch.round(steps), low, high).to(dtype).reshape(x.shape)
