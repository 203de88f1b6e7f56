"""Fourier transforms of complex numbers that are kept as pairs: products with matrices of waves."""

import math
from collections.abc import Callable, Sequence
from typing import Any

Rule = Callable[..., Any]

_LONGEST = 4096
"""Of the lengths that are transformed: the matrix has its square of elements."""


def rules() -> dict[Any, Rule]:
    """The rules by operator; their complex tensors are PyTorch's ComplexTensors."""
    import torch

    aten = torch.ops.aten
    return {
        aten._fft_c2c.default: _complex,
        aten._fft_r2c.default: _of_reals,
        aten._fft_c2r.default: _to_reals,
    }


def _waves(rows: int, columns: int, length: int, dtype: Any) -> tuple[Any, Any]:
    """Cosine and sine of 2π j k / length, both [rows, columns]."""
    import torch

    # The product is reduced as a whole number: a float32 angle of many turns is inexact.
    turns = (torch.arange(rows).unsqueeze(-1) * torch.arange(columns)) % length
    angle = turns.to(dtype) * (2 * math.pi / length)
    return torch.cos(angle), torch.sin(angle)


def _along(x: Any, matrix: Any, dim: int) -> Any:
    return (x.movedim(dim, -1) @ matrix).movedim(-1, dim)


def _scale(extents: Sequence[int], normalization: int) -> float:
    """By PyTorch's number of a normalization: none, by the root of the size, by the size."""
    return float(math.prod(extents) ** -(0, 0.5, 1)[normalization])


def _takes(extents: Sequence[Any]) -> bool:
    return all(isinstance(each, int) and 0 < each <= _LONGEST for each in extents)


def _complex(x: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    from torch._subclasses.complex_tensor import ComplexTensor

    extents = [x.shape[axis] for axis in dim]
    if not _takes(extents):
        return NotImplemented
    real, imaginary = x.re, x.im
    for axis, extent in zip(dim, extents, strict=True):
        cosine, sine = _waves(extent, extent, extent, real.dtype)
        sine = sine if forward else -sine
        real, imaginary = (
            _along(real, cosine, axis) + _along(imaginary, sine, axis),
            _along(imaginary, cosine, axis) - _along(real, sine, axis),
        )
    scale = _scale(extents, normalization)
    return ComplexTensor(real * scale, imaginary * scale)


def _of_reals(x: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    from torch._subclasses.complex_tensor import ComplexTensor

    *others, last = dim
    extent = x.shape[last]
    if not _takes([x.shape[axis] for axis in dim]):
        return NotImplemented
    cosine, sine = _waves(extent, extent // 2 + 1 if onesided else extent, extent, x.dtype)
    scale = _scale([extent], normalization)
    found = ComplexTensor(_along(x, cosine, last) * scale, _along(x, sine, last) * -scale)
    return _complex(found, others, normalization, True) if others else found


def _to_reals(x: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    import torch

    *others, last = dim
    if not _takes([last_dim_size, *(x.shape[axis] for axis in others)]):
        return NotImplemented
    if others:
        x = _complex(x, others, normalization, False)
    half = last_dim_size // 2 + 1
    real, imaginary = x.re.narrow(last, 0, half), x.im.narrow(last, 0, half)
    cosine, sine = _waves(half, last_dim_size, last_dim_size, real.dtype)
    # The other half is the conjugate of this one; the first has none, the middle is its own.
    place = torch.arange(half).unsqueeze(-1)
    weight = torch.where((place == 0) | (2 * place == last_dim_size), 1, 2)
    weight = weight.to(real.dtype) * _scale([last_dim_size], normalization)
    return _along(real, cosine * weight, last) - _along(imaginary, sine * weight, last)
