"""Operators on complex numbers that are kept as pairs, PyTorch's ComplexTensors.

PyTorch has rules of its own for most. Those here are for operators that make complex numbers of
real ones, and where PyTorch's rule makes complex numbers of its own on the way.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.importers.decompositions import fourier

Rule = Callable[..., Any]


def call(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What an operator makes of ComplexTensors, or of real tensors where that is complex.

    Raises:
        NotImplementedError: where neither this module nor PyTorch has a rule.
    """
    rule = _rules().get(target, target)
    found = rule(*args, **kwargs)
    if found is NotImplemented:
        raise NotImplementedError("no rule for these extents or arguments")
    return found


@functools.cache
def _rules() -> dict[Any, Rule]:
    import torch

    aten = torch.ops.aten
    found: dict[Any, Rule] = {
        aten.polar.default: lambda size, angle: _pair(
            size * torch.cos(angle), size * torch.sin(angle)
        ),
        aten.complex.default: _pair,
        aten.view_as_complex.default: lambda x: _pair(x.select(-1, 0), x.select(-1, 1)),
        aten._to_copy.default: _converted,
        aten.full.default: _full,
        aten.scalar_tensor.default: functools.partial(_full, ()),
        aten.full_like.default: lambda x, value, **settings: _full(x.shape, value, dtype=x.dtype),
        aten.index_put.default: _index_put,
        aten.div.Tensor: _quotient,
        aten.div.Scalar: _quotient,
        aten.pow.Tensor_Scalar: _power,
        aten.add.Tensor: functools.partial(_sum, 1),
        aten.add.Scalar: functools.partial(_sum, 1),
        aten.sub.Tensor: functools.partial(_sum, -1),
        aten.sub.Scalar: functools.partial(_sum, -1),
        **fourier.rules(),
    }
    for each in (aten.roll.default, aten.unfold.default):
        found[each] = functools.partial(_moved, each)
    for each in (aten.mul.Tensor, aten.mul.Scalar, aten.mm.default, aten.bmm.default):
        whole = torch.mul if each in (aten.mul.Tensor, aten.mul.Scalar) else each
        found[each] = functools.partial(_product, whole)
    return found


def _pair(real: Any, imaginary: Any) -> Any:
    import torch
    from torch._subclasses.complex_tensor import ComplexTensor

    spread: Any = torch.broadcast_tensors
    return ComplexTensor(*spread(real, imaginary))


def _parts(value: Any) -> tuple[Any, Any]:
    """Real and imaginary part; the latter is None where the value is real."""
    from torch._subclasses.complex_tensor import ComplexTensor

    if isinstance(value, ComplexTensor):
        return value.re, value.im
    return (value.real, value.imag) if isinstance(value, complex) else (value, None)


def _moved(move: Rule, x: Any, *where: Any) -> Any:
    """Elements in other places, which are not looked at."""
    return _pair(*(move(part, *where) for part in _parts(x)))


def _product(multiplied: Rule, x: Any, y: Any) -> Any:
    """Of numbers or matrices."""
    (a, b), (c, d) = _parts(x), _parts(y)
    if b is None:
        return _pair(multiplied(a, c), multiplied(a, d))
    if d is None:
        return _pair(multiplied(a, c), multiplied(b, c))
    return _pair(
        multiplied(a, c) - multiplied(b, d),
        multiplied(a, d) + multiplied(b, c),
    )


def _sum(sign: int, x: Any, y: Any, *, alpha: Any = 1) -> Any:
    (a, b), (c, d) = _parts(x), _parts(y)
    factor = alpha * sign
    real = a + c * factor
    if d is None:
        return _pair(real, b)
    return _pair(real, d * factor if b is None else b + d * factor)


def _power(x: Any, exponent: Any) -> Any:
    if exponent not in (1, 2, 3, 4) or not _is_pair(x):
        return NotImplemented
    return functools.reduce(functools.partial(_product, operator.mul), [x] * int(exponent))


def _is_pair(x: Any) -> bool:
    return _parts(x)[1] is not None


def _quotient(x: Any, y: Any) -> Any:
    import torch

    c, d = _parts(y)
    if d is None:
        return _pair(*(each / c for each in _parts(x)))
    size = c * c + d * d
    return _product(torch.mul, x, _pair(c / size, -d / size))


def _real_type(dtype: Any) -> Any:
    import torch

    halves = {torch.complex64: torch.float32, torch.complex128: torch.float64}
    return halves.get(dtype, dtype)


def _converted(x: Any, *, dtype: Any = None, **settings: Any) -> Any:
    """To another type; to a real one, the imaginary part is lost, as in PyTorch."""
    import torch

    a, b = _parts(x)
    if dtype is not None and not dtype.is_complex:
        return a.to(dtype)
    real = a.clone() if dtype is None else a.to(_real_type(dtype), copy=True)
    return _pair(real, torch.zeros_like(real) if b is None else b.to(real.dtype))


def _full(size: Any, value: Any, *, dtype: Any = None, **settings: Any) -> Any:
    import torch

    kind = torch.get_default_dtype() if dtype is None else _real_type(dtype)
    number = complex(value)
    return _pair(
        torch.full(size, number.real, dtype=kind), torch.full(size, number.imag, dtype=kind)
    )


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    import torch

    (a, b), (c, d) = _parts(x), _parts(values)
    put = torch.ops.aten.index_put.default
    imaginary = torch.zeros_like(c) if d is None else d
    return _pair(put(a, indices, c, accumulate), put(b, indices, imaginary, accumulate))
