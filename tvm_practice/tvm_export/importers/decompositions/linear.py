"""Systems of linear equations: eliminations, unrolled for small matrices, a step per row.

Larger ones are factored by `converters.factorizations`, on processors alone. A singular matrix
gives infinities or NaN at run time, where PyTorch raises.
"""

import math
from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]

_LARGEST = 16
"""Rows of the largest matrix that is unrolled: each is a dozen operators."""


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    return {
        # Those that check for singular matrices, without the check: TVM has no such effect.
        aten.linalg_inv.default: lambda a: aten.linalg_inv_ex.default(a)[0],
        aten.linalg_solve.default: _solve_only,
        aten.linalg_cholesky.default: _cholesky_only,
        aten.linalg_tensorinv.default: _tensor_inverse,
        aten.linalg_lu_factor.default: _lu_factor_only,
        aten._linalg_det.default: _det,
        aten._linalg_slogdet.default: _slogdet,
        aten._linalg_solve_ex.default: _solve,
        aten.linalg_inv_ex.default: _inverse,
        aten.linalg_lu_factor_ex.default: _lu_factor,
        aten.linalg_lu.default: _lu_parts,
        aten.linalg_lu_solve.default: _lu_solve,
        aten.linalg_solve_triangular.default: _solve_triangular,
        aten.triangular_solve.default: _triangular_solve,
        aten.linalg_cholesky_ex.default: _cholesky_ex,
        aten.cholesky.default: _cholesky,
        aten.cholesky_solve.default: _cholesky_solve,
        aten.cholesky_inverse.default: _cholesky_inverse,
        aten.lu_unpack.default: _lu_unpack,
    }


def _is_small(a: Any) -> bool:
    return bool(max(a.shape[-2:]) <= _LARGEST)


def _tensor_inverse(a: Any, ind: int = 2) -> Any:
    import torch

    count = math.prod(a.shape[:ind])
    inverse = torch.ops.aten.linalg_inv_ex.default(a.reshape(count, count))[0]
    return inverse.reshape(*a.shape[ind:], *a.shape[:ind])


def _solve_only(a: Any, b: Any, *, left: bool = True) -> Any:
    import torch

    return torch.ops.aten._linalg_solve_ex.default(a, b, left=left)[0]


def _cholesky_only(a: Any, *, upper: bool = False) -> Any:
    import torch

    return torch.ops.aten.linalg_cholesky_ex.default(a, upper=upper)[0]


def _lu_factor_only(a: Any, *, pivot: bool = True) -> Any:
    import torch

    return torch.ops.aten.linalg_lu_factor_ex.default(a, pivot=pivot)[:2]


def _rows(a: Any, order: Any) -> Any:
    """The rows of each matrix in its order."""
    import torch

    return torch.gather(a, -2, order.unsqueeze(-1).expand(*order.shape, a.shape[-1]))


def _lu(a: Any, pivot: bool = True) -> tuple[Any, Any, Any]:
    """L below and U above the diagonal, the rows' order, and which was exchanged with which."""
    import torch

    if not _is_small(a):
        lu, exchanges, _ = torch.ops.aten.linalg_lu_factor_ex.default(a, pivot=pivot)
        return lu, _order(lu, exchanges), exchanges
    m, n = a.shape[-2:]
    rows, columns = torch.arange(m), torch.arange(n)
    order = rows.expand(a.shape[:-1])
    exchanged = []
    for k in range(min(m, n)):
        if pivot:
            size = torch.where(rows >= k, torch.abs(a[..., k]), -1)
            best = size.argmax(-1, keepdim=True)
        else:
            best = torch.full((*a.shape[:-2], 1), k, dtype=torch.int64)
        exchanged.append(best + 1)
        moved = torch.where(rows == k, best, torch.where(rows == best, k, rows))
        moved = moved.expand(a.shape[:-1])
        a, order = _rows(a, moved), torch.gather(order, -1, moved)
        by = a[..., k, k].unsqueeze(-1)
        factor = a[..., k] / torch.where(by == 0, 1, by)
        below = (rows > k).unsqueeze(-1)
        factor = torch.where(below, factor.unsqueeze(-1), 0)
        left = a - factor * torch.where(columns > k, a[..., k, :].unsqueeze(-2), 0)
        a = torch.where(below & (columns == k), factor, left)
    return a, order, torch.cat(exchanged, -1).to(torch.int32)


def _substituted(a: Any, b: Any, upper: bool, unit: bool = False) -> Any:
    """The x of a x = b for a triangular `a`."""
    import torch

    n = a.shape[-1]
    shape = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # type: ignore[no-untyped-call]
    b = b.expand(*shape, *b.shape[-2:])
    if not _is_small(a):
        solve = torch.ops.aten.linalg_solve_triangular.default
        return solve(a.expand(*shape, n, n), b, upper=upper, unitriangular=unit)
    found: list[Any] = [None] * n
    for k in reversed(range(n)) if upper else range(n):
        known = range(k + 1, n) if upper else range(k)
        row = b[..., k, :]
        for j in known:
            row = row - a[..., k, j].unsqueeze(-1) * found[j]
        found[k] = row if unit else row / a[..., k, k].unsqueeze(-1)
    return torch.stack(found, -2)


def _none(a: Any) -> Any:
    """That no matrix was singular, which nobody asks at run time."""
    import torch

    return torch.zeros(a.shape[:-2], dtype=torch.int32)


def _sign(exchanged: Any) -> Any:
    """1 where the rows were exchanged an even number of times, else -1."""
    import torch

    steps = torch.arange(exchanged.shape[-1]) + 1
    return 1 - 2 * ((exchanged.to(torch.int64) != steps).sum(-1) % 2)


def _diagonal(a: Any) -> Any:
    return a.diagonal(dim1=-2, dim2=-1)


def _nothing(a: Any) -> tuple[Any, Any]:
    """The factors of empty matrices, and which of their rows were exchanged."""
    import torch

    return a.clone(), torch.zeros(*a.shape[:-2], min(a.shape[-2:]), dtype=torch.int32)


def _det(a: Any) -> Any:
    if not a.numel():
        return a.new_ones(a.shape[:-2]), *_nothing(a)
    lu, _, exchanged = _lu(a)
    return _diagonal(lu).prod(-1) * _sign(exchanged).to(a.dtype), lu, exchanged


def _slogdet(a: Any) -> Any:
    import torch

    if not a.numel():
        return a.new_ones(a.shape[:-2]), a.new_zeros(a.shape[:-2]), *_nothing(a)
    lu, _, exchanged = _lu(a)
    diagonal = _diagonal(lu)
    negative = (diagonal < 0).sum(-1) % 2
    sign = (_sign(exchanged) * (1 - 2 * negative)).to(a.dtype)
    sign = torch.where((diagonal == 0).any(-1), 0, sign)
    return sign, torch.log(torch.abs(diagonal)).sum(-1), lu, exchanged


def _solved(lu: Any, order: Any, b: Any, adjoint: bool = False) -> Any:
    """The x of a x = b, or of its transposed matrix, for the factors of `a` and its rows' order."""
    import torch

    shape = torch.broadcast_shapes(lu.shape[:-2], b.shape[:-2])  # type: ignore[no-untyped-call]
    order, b = order.expand(*shape, order.shape[-1]), b.expand(*shape, *b.shape[-2:])
    if adjoint:
        found = _substituted(lu.mT, _substituted(lu.mT, b, False), True, True)
        return _permutation(order, lu.dtype) @ found
    return _substituted(lu, _substituted(lu, _rows(b, order), False, True), True)


def _solve(a: Any, b: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    vector = b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1])
    given = b.unsqueeze(-1) if vector else b
    if left and not a.numel() and b.shape[: b.ndim - 1 + vector] == a.shape[:-1]:
        return b.clone(), *_nothing(a), _none(a)
    if not a.numel() or b.numel() == 0:
        return NotImplemented
    lu, order, exchanged = _lu(a)
    sides = given if left else given.mT
    found = _solved(lu, order, sides, adjoint=not left)
    found = found if left else found.mT
    return found.squeeze(-1) if vector else found, lu, exchanged, _none(a)


def _inverse(a: Any, *, check_errors: bool = False) -> Any:
    import torch

    if not a.numel():
        return a.clone(), _none(a)
    lu, order, _ = _lu(a)
    return _solved(lu, order, torch.eye(a.shape[-1], dtype=a.dtype)), _none(a)


def _lu_factor(a: Any, *, pivot: bool = True, check_errors: bool = False) -> Any:
    if not a.numel() or not _is_small(a):
        return NotImplemented
    lu, _, exchanged = _lu(a, pivot)
    return lu, exchanged, _none(a)


def _lu_parts(a: Any, *, pivot: bool = True) -> Any:
    if not a.numel():
        return NotImplemented
    lu, order, _ = _lu(a, pivot)
    permutation = _permutation(order, a.dtype)
    if not pivot:
        permutation = permutation[..., :0, :0].reshape(0)
    return permutation, *_triangles(lu)


def _permutation(order: Any, dtype: Any) -> Any:
    """The matrix that puts row i into row order[i]."""
    import torch

    rows = torch.arange(order.shape[-1])
    return (order.unsqueeze(-2) == rows.unsqueeze(-1)).to(dtype)


def _triangles(lu: Any) -> tuple[Any, Any]:
    import torch

    m, n = lu.shape[-2:]
    count = min(m, n)
    lower = torch.tril(lu[..., :count], -1) + torch.eye(m, count, dtype=lu.dtype)
    return lower, torch.triu(lu[..., :count, :])


def _order(lu: Any, exchanged: Any) -> Any:
    """Where each row of a matrix's factors comes from, after its rows' exchanges."""
    import torch

    if not _is_small(lu):
        unpacked = torch.ops.aten.lu_unpack.default(lu, exchanged, unpack_data=False)
        return unpacked[0].argmax(-2)
    rows = torch.arange(lu.shape[-2])
    order = rows.expand(*exchanged.shape[:-1], lu.shape[-2])
    for k in range(exchanged.shape[-1]):
        other = exchanged[..., k : k + 1].to(torch.int64) - 1
        moved = torch.where(rows == k, other, torch.where(rows == other, k, rows))
        order = torch.gather(order, -1, moved.expand(order.shape))
    return order


def _lu_unpack(
    lu: Any, exchanged: Any, unpack_data: bool = True, unpack_pivots: bool = True
) -> Any:
    import torch

    parts = _triangles(lu) if unpack_data else (lu.new_zeros(0), lu.new_zeros(0))
    if not unpack_pivots:
        return lu.new_zeros(0), *parts
    m = lu.shape[-2]
    if not lu.numel():
        return torch.eye(m, dtype=lu.dtype).expand(*lu.shape[:-2], m, m).clone(), *parts
    if _is_small(lu):
        return _permutation(_order(lu, exchanged), lu.dtype), *parts
    if not unpack_data:
        return NotImplemented
    unpacked = torch.ops.aten.lu_unpack.default(lu, exchanged, unpack_data=False)
    return unpacked[0], *parts


def _lu_solve(lu: Any, exchanged: Any, b: Any, *, left: bool = True, adjoint: bool = False) -> Any:
    if not lu.numel() or b.numel() == 0:
        return NotImplemented
    order = _order(lu, exchanged)
    if left:
        return _solved(lu, order, b, adjoint)
    return _solved(lu, order, b.mT, not adjoint).mT


def _solve_triangular(
    a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    if not a.numel() or b.numel() == 0:
        return NotImplemented
    if not left:
        return _substituted(a.mT, b.mT, not upper, unitriangular).mT
    if not _is_small(a) and a.shape[:-2] == b.shape[:-2]:
        return NotImplemented
    return _substituted(a, b, upper, unitriangular)


def _triangular_solve(
    b: Any, a: Any, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    if not a.numel() or b.numel() == 0:
        return NotImplemented
    given = a.mT if transpose else a
    found = _substituted(given, b, upper != transpose, unitriangular)
    return found, a.expand(*found.shape[:-2], *a.shape[-2:]).clone()


def _lower(a: Any) -> Any:
    """The Cholesky factor below the diagonal, of which only that half is read."""
    import torch

    if not _is_small(a):
        return torch.ops.aten.linalg_cholesky_ex.default(a)[0]
    n = a.shape[-1]
    rows = torch.arange(n)
    columns: list[Any] = []
    for k in range(n):
        column = a[..., k]
        for each in columns:
            column = column - each * each[..., k].unsqueeze(-1)
        root = torch.sqrt(column[..., k]).unsqueeze(-1)
        columns.append(torch.where(rows >= k, column / root, 0))
    return torch.stack(columns, -1)


def _cholesky(a: Any, upper: bool = False) -> Any:
    if not a.numel():
        return a.clone()
    return _lower(a.mT).mT if upper else _lower(a)


def _cholesky_ex(a: Any, *, upper: bool = False, check_errors: bool = False) -> Any:
    if a.numel() and not upper and not _is_small(a):
        return NotImplemented
    return _cholesky(a, upper), _none(a)


def _cholesky_solve(b: Any, factor: Any, upper: bool = False) -> Any:
    if b.numel() == 0:
        return b.clone()
    lower = factor.mT if upper else factor
    return _substituted(lower.mT, _substituted(lower, b, False), True)


def _cholesky_inverse(factor: Any, upper: bool = False) -> Any:
    import torch

    if factor.numel() == 0:
        return factor.clone()
    one = torch.eye(factor.shape[-1], dtype=factor.dtype)
    return _cholesky_solve(one.expand(factor.shape), factor, upper)
