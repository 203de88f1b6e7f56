"""Operators whose results are of a size that depends on values: by way of `nonzero` and `item`.

For `unique`, elements or slices that are equal are made neighbours by sorting, and the first of
each run is kept.
"""

from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.importers.constants import require_constants

Rule = Callable[..., Any]

# Slices of more elements are not sorted: there is a sort for each element.
_MOST_KEYS = 64


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    return {
        aten._unique2.default: _unique,
        aten.unique_dim.default: _unique_slices,
        aten.unique_consecutive.default: _consecutive,
        aten.unique_dim_consecutive.default: _consecutive_slices,
        aten.bincount.default: _bincount,
        aten.slice.Tensor: _slice,
    }


def _slice(x: Any, dim: int = 0, start: Any = None, end: Any = None, step: int = 1) -> Any:
    """A slice whose bounds are values: the places between them.

    Of another one the axis is counted from the front: TVM takes no other along an open extent.
    """
    import torch
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    if dim < 0:
        return torch.ops.aten.slice.Tensor(x, dim + x.ndim, start, end, step)
    if not any(free_unbacked_symbols(each) for each in (start, end) if each is not None):
        return NotImplemented
    extent = x.shape[dim]
    places = torch.arange(extent, device=x.device)

    def bound(given: Any) -> Any:
        known = torch.scalar_tensor(given, dtype=torch.int64, device=x.device)
        return torch.where(known < 0, known + extent, known).clamp(0, extent)

    first = bound(0 if start is None else start)
    is_in = places >= first
    if end is not None:
        is_in = is_in & (places < bound(end))
    if step != 1:
        is_in = is_in & ((places - first) % step == 0)
    return x.index_select(dim, torch.nonzero(is_in).select(1, 0))


def size_of(count: Any) -> Any:
    """The number that a tensor of one element holds, as an extent. Raises DependsOnValues."""
    import torch

    size = count.item()
    if isinstance(size, int):
        return size
    require_constants("the size of a result depends on values")
    check: Any = torch._check
    check(size >= 0)
    return size


def _bincount(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """How often each number from 0 to the largest one occurs, or the sum of its weights."""
    import torch

    count = minlength
    if x.numel():
        count = size_of((x.max().to(torch.int64) + 1).clamp(min=minlength))
    if weights is None:
        weights = torch.ones_like(x, dtype=torch.int64)
    elif weights.dtype != torch.float32:
        weights = weights.to(torch.float64)
    return weights.new_zeros(count).scatter_add(0, x.to(torch.int64), weights)


def _unique(
    x: Any, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    rows = x.reshape(-1, 1)
    values, inverse, counts = _runs(rows, _order(rows))
    return _asked(
        x, values.reshape(-1), inverse.reshape(x.shape), counts, return_inverse, return_counts
    )


def _unique_slices(
    x: Any,
    dim: int,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
) -> Any:
    rows = _rows(x, dim)
    if rows is None or rows.shape[1] > _MOST_KEYS:
        return NotImplemented
    values, inverse, counts = _runs(rows, _order(rows))
    return _asked(x, _slices(values, x, dim), inverse, counts, return_inverse, return_counts)


def _consecutive(
    x: Any, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    if dim is not None:
        return _consecutive_slices(x, dim, return_inverse, return_counts)
    values, inverse, counts = _runs(x.reshape(-1, 1), None)
    return _asked(
        x, values.reshape(-1), inverse.reshape(x.shape), counts, return_inverse, return_counts
    )


def _consecutive_slices(
    x: Any, dim: int, return_inverse: bool = False, return_counts: bool = False
) -> Any:
    rows = _rows(x, dim)
    if rows is None:
        return NotImplemented
    values, inverse, counts = _runs(rows, None)
    return _asked(x, _slices(values, x, dim), inverse, counts, return_inverse, return_counts)


def _asked(
    x: Any, values: Any, inverse: Any, counts: Any, has_inverse: bool, has_counts: bool
) -> tuple[Any, Any, Any]:
    """The outputs, those that were not asked for empty."""
    import torch

    empty = x.new_empty(0, dtype=torch.int64)
    return values, inverse if has_inverse else empty, counts if has_counts else empty


def _rows(x: Any, dim: int) -> Any:
    """The slices along an axis as rows; None where they have no elements."""
    first = x.movedim(dim, 0)
    return first.reshape(first.shape[0], -1) if x.numel() else None


def _slices(rows: Any, x: Any, dim: int) -> Any:
    """Rows as slices along an axis of `x`."""
    rest = x.movedim(dim, 0).shape[1:]
    return rows.reshape(-1, *rest).movedim(0, dim)


def _order(rows: Any) -> Any:
    """The indices that sort rows by their first elements, then by their second ones, and so on."""
    import torch

    order = torch.sort(rows[:, -1], stable=True)[1]
    for column in range(rows.shape[1] - 2, -1, -1):
        keys = rows[:, column].index_select(0, order)
        order = order.index_select(0, torch.sort(keys, stable=True)[1])
    return order


def _runs(rows: Any, order: Any) -> tuple[Any, Any, Any]:
    """One row of each run of equal ones, the run of each row, and how many rows each run has.

    Args:
        rows: of two axes.
        order: in which they are looked at; None: as they are.
    """
    import torch

    ordered = rows if order is None else rows.index_select(0, order)
    number = torch.arange(ordered.shape[0], device=rows.device)
    before = ordered.index_select(0, (number - 1).clamp(min=0))
    begins = (ordered != before).any(1) | (number == 0)
    places = torch.nonzero(begins).select(1, 0)
    run = begins.to(torch.int64).cumsum(0) - 1
    counts = torch.zeros_like(places).scatter_add(0, run, torch.ones_like(run))
    inverse = run if order is None else torch.zeros_like(run).scatter(0, order, run)
    return ordered.index_select(0, places), inverse, counts
