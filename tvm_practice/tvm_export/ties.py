"""Which of equal elements an operator means: PyTorch leaves it open, so a reference must choose.

`torch.sort` without `stable=True`, `topk`, `kthvalue` and `mode` return indices by some order of
equal elements (https://docs.pytorch.org/docs/stable/generated/torch.sort.html), which differs
between sizes and versions. A compiled model has another such order, and is right too.

The importer's rules for these operators are not used: a reference must not share their mistakes.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
_Dispatching: Any = TorchDispatchMode  # which has no types


class FirstOfEqual(_Dispatching):  # type: ignore[misc]
    """In the block, PyTorch orders equal elements by their places; `mode`'s place is the last.

    with FirstOfEqual():
        torch.topk(torch.tensor([1, 1, 1]), 2).indices  # 0, 1

    The values are PyTorch's own.
    """

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        chosen = _CHOSEN.get(func, func)
        return chosen(*args, **(kwargs or {}))


def _sort(x: torch.Tensor, dim: int = -1, descending: bool = False) -> Any:
    return torch.sort(x, dim=dim, descending=descending, stable=True)


def _argsort(x: torch.Tensor, dim: int = -1, descending: bool = False) -> torch.Tensor:
    return torch.argsort(x, dim=dim, descending=descending, stable=True)


def _topk(x: torch.Tensor, k: int, dim: int = -1, largest: bool = True, *_: bool) -> Any:
    if x.ndim == 0:
        return _aten.topk.default(x, k, dim, largest)
    # Contiguous as PyTorch's own: what comes next may view it.
    return tuple(each.narrow(dim, 0, k).contiguous() for each in _sort(x, dim, largest))


def _kthvalue(x: torch.Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    if x.ndim == 0:
        return _aten.kthvalue.default(x, k, dim, keepdim)
    found = [each.narrow(dim, k - 1, 1).contiguous() for each in _sort(x, dim)]
    return tuple(each if keepdim else each.squeeze(dim) for each in found)


def _mode(x: torch.Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    value, place = _aten.mode.default(x, dim, True)
    if x.ndim:
        length = x.shape[dim]
        last = (x == value).flip(dim).to(torch.int8).argmax(dim, keepdim=True)
        # NaN equals none: its place stays PyTorch's.
        place = torch.where((x == value).any(dim, keepdim=True), length - 1 - last, place)
    return tuple(each if keepdim or not x.ndim else each.squeeze(dim) for each in (value, place))


_CHOSEN = {
    _aten.sort.default: _sort,
    _aten.argsort.default: _argsort,
    _aten.topk.default: _topk,
    _aten.kthvalue.default: _kthvalue,
    _aten.mode.default: _mode,
}
