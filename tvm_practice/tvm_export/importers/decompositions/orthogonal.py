"""Orthogonal factors: Householder's reflections, unrolled for few columns, one per column.

More of them are made and applied by `converters.factorizations`, on processors alone. The signs
are LAPACK's. See Golub and Van Loan, Matrix Computations, 4th edition, section 5.2.
"""

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]

_MOST = 16
"""Reflections that are unrolled at most: each is a dozen operators."""


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    return {
        aten.linalg_qr.default: _qr,
        aten.geqrf.default: _geqrf,
        aten.linalg_householder_product.default: _householder_product,
        aten.ormqr.default: _ormqr,
    }


def _are_few(a: Any) -> bool:
    return bool(min(a.shape[-2:]) <= _MOST)


def _geqrf(a: Any) -> Any:
    """R on and above the diagonal, the reflections' vectors below; their factors."""
    import torch

    if not a.numel() or not _are_few(a):
        return NotImplemented
    m, n = a.shape[-2:]
    rows, columns = torch.arange(m), torch.arange(n)
    factors = []
    for k in range(min(m, n)):
        below = rows > k
        head = a[..., k, k].unsqueeze(-1)
        tail = torch.where(below, a[..., k], 0)
        square = (tail * tail).sum(-1, keepdim=True)
        needed = square > 0
        size = torch.sqrt(head * head + square)
        made = torch.where(needed, torch.where(head < 0, size, -size), head)
        factors.append(torch.where(needed, (made - head) / torch.where(needed, made, 1), 0))
        tail = tail / torch.where(needed, head - made, 1)
        vector = torch.where(rows == k, 1, tail)
        reflected = _reflected(a, vector, factors[-1])
        column = torch.where(below, tail, torch.where(rows == k, made, a[..., k]))
        kept = torch.where(columns == k, column.unsqueeze(-1), a)
        a = torch.where(columns > k, reflected, kept)
    return a, torch.cat(factors, -1)


def _reflected(a: Any, vector: Any, factor: Any) -> Any:
    """a - factor * vector (vectorᵀ a), for each matrix of a batch."""
    products = (vector.unsqueeze(-1) * a).sum(-2, keepdim=True)
    return a - (factor * vector).unsqueeze(-1) * products


def _applied(packed: Any, factors: Any, x: Any, transposed: bool) -> Any:
    """Q x or Qᵀ x, Q being the product of the reflections as `_geqrf` packs them."""
    import torch

    if not _are_few(packed):
        return torch.ops.aten.ormqr.default(packed, factors, x, True, transposed)
    rows = torch.arange(packed.shape[-2])
    count = factors.shape[-1]
    for k in range(count) if transposed else reversed(range(count)):
        below = torch.where(rows > k, packed[..., k], 0)
        x = _reflected(x, torch.where(rows == k, 1, below), factors[..., k : k + 1])
    return x


def _qr(a: Any, mode: str = "reduced") -> Any:
    import torch

    m, count = a.shape[-2], min(a.shape[-2:])
    height = m if mode == "complete" else count
    one = torch.eye(m, height, dtype=a.dtype).expand(*a.shape[:-2], m, height)
    if not a.numel():
        return one.clone(), a.new_zeros(*a.shape[:-2], height, a.shape[-1])
    packed, factors = torch.ops.aten.geqrf.default(a)
    r = torch.triu(packed[..., :height, :])
    if mode == "r":
        return a.new_zeros(0), r
    return _applied(packed, factors, one, False), r


def _householder_product(packed: Any, factors: Any) -> Any:
    import torch

    if not packed.numel():
        return NotImplemented
    one = torch.eye(*packed.shape[-2:], dtype=packed.dtype).expand(packed.shape)
    return _applied(packed, factors, one, False)


def _ormqr(packed: Any, factors: Any, x: Any, left: bool = True, transpose: bool = False) -> Any:
    if not packed.numel():  # no reflection
        return x.clone()
    if left:
        few = _are_few(packed)
        return _applied(packed, factors, x, transpose) if few else NotImplemented
    return _applied(packed, factors, x.mT, not transpose).mT
