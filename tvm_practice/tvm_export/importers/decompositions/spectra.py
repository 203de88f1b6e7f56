"""What follows from eigenvalues and singular values; of empty matrices, those themselves."""

from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    return {
        aten._linalg_eigh.default: _eigh,
        aten._linalg_svd.default: _svd,
        aten.linalg_pinv.atol_rtol_tensor: _pinv,
    }


def _eigh(a: Any, UPLO: str = "L", compute_v: bool = True) -> Any:
    if a.numel():
        return NotImplemented
    return a.new_zeros(a.shape[:-1]), a.new_zeros(a.shape if compute_v else 0)


def _svd(
    a: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> Any:
    import torch

    if a.numel():
        return NotImplemented
    *lead, m, n = a.shape
    values = a.new_zeros((*lead, min(m, n)))
    if not compute_uv:
        return a.new_zeros(0), values, a.new_zeros(0)
    rows, columns = (m, n) if full_matrices else (min(m, n), min(m, n))
    u = torch.eye(m, rows, dtype=a.dtype).expand(*lead, m, rows)
    return u, values, torch.eye(columns, n, dtype=a.dtype).expand(*lead, columns, n)


def _pinv(a: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """V diag(1 / s) Uᵀ, of the singular values above max(atol, rtol * the largest)."""
    import torch

    if not a.numel():
        return a.mT.clone()
    if hermitian:
        values, vectors = torch.ops.aten._linalg_eigh.default(a)
        u, sizes = vectors, torch.abs(values)
        v = vectors * torch.where(values < 0, -1, 1).to(a.dtype).unsqueeze(-2)
    else:
        u, sizes, vh = torch.ops.aten._linalg_svd.default(a)
        v = vh.mT
    atol = torch.zeros((), dtype=a.dtype) if atol is None else atol
    if rtol is None:
        rtol = max(a.shape[-2:]) * torch.finfo(a.dtype).eps * (atol <= 0).to(a.dtype)
    least = torch.maximum(atol, rtol * sizes.amax(-1)).unsqueeze(-1).to(a.dtype)
    kept = sizes > least
    inverse = torch.where(kept, 1 / torch.where(kept, sizes, 1), 0)
    return (v * inverse.unsqueeze(-2)) @ u.mT
