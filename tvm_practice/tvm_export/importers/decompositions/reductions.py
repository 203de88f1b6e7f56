"""Reductions: scalars, types that a sum is taken in, and the position of the first extremum."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.decompositions.elementwise import operator_of
from tvm_practice.tvm_export.importers.decompositions.precise import of_float16

Rule = Callable[..., Any]

# Numbers that float32 adds one after another without losing more than a few of its last digits.
_LONG = 4096

# Operators whose first argument may be a scalar, along "its" axis.
_ALONG = [
    "amax.default",
    "amin.default",
    "argmax.default",
    "argmin.default",
    "sum.dim_IntList",
    "prod.dim_int",
    "mean.dim",
    "any.dim",
    "any.dims",
    "cumsum.default",
    "cumprod.default",
    "_softmax.default",
    "_log_softmax.default",
    "flip.default",
    "var.correction",
]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    found: dict[Any, Rule] = {
        aten.max.dim: _extremum(aten.amax.default, aten.argmax.default),
        aten.min.dim: _extremum(aten.amin.default, aten.argmin.default),
        aten.max.default: _whole(aten.amax.default),
        aten.min.default: _whole(aten.amin.default),
        aten.cummax.default: _running(aten.amax.default),
        aten.cummin.default: _running(aten.amin.default),
        aten.logcumsumexp.default: _logcumsumexp,
        aten.median.dim: _median,
        aten.median.default: _median_of_all,
        aten.nanmedian.dim: _nanmedian,
        aten.nanmedian.default: _nanmedian_of_all,
        aten.mode.default: _mode,
        aten.any.default: _any,
        aten.prod.default: _prod,
        aten.linalg_vector_norm.default: _norm,
        aten.cumsum.default: _running_sum,
        aten.cumprod.default: _accumulated(aten.cumprod.default),
        aten.sum.dim_IntList: _accumulated(aten.sum.dim_IntList),
        aten.prod.dim_int: _accumulated(aten.prod.dim_int),
        aten.mean.dim: _in_float32(aten.mean.dim),
        aten.mean.default: _in_float32(aten.mean.default),
        aten.var.correction: _variance,
        aten.var_mean.correction: _var_mean,
        aten.renorm.default: _renorm,
        aten.any.dim: _truth(aten.any.dim),
        aten.any.dims: _truth(aten.any.dims),
        aten.amax.default: _of_bool(aten.amax.default),
        aten.amin.default: _of_bool(aten.amin.default),
        aten.argmax.default: _position(aten.argmax.default, aten.amax.default),
        aten.argmin.default: _position(aten.argmin.default, aten.amin.default),
    }
    for operator in (aten._softmax.default, aten._log_softmax.default):
        found[operator] = of_float16(operator)
    for name in _ALONG:
        operator = operator_of(name)
        found[operator] = _of_scalars(operator, found.get(operator))
    return found


def _of_scalars(operator: Any, then: Rule | None) -> Rule:
    """A rule that gives a scalar an axis first; `then` is the rule for everything else."""

    def rule(x: Any, *args: Any, **kwargs: Any) -> Any:
        if x.ndim == 0:
            found = operator(x.reshape(1), *args, **kwargs)
            return found.reshape(())
        return then(x, *args, **kwargs) if then is not None else NotImplemented

    return rule


def _extremum(value: Any, position: Any) -> Rule:
    def rule(x: Any, dim: int, keepdim: bool = False) -> Any:
        return value(x, [dim], keepdim), position(x, dim, keepdim)

    return rule


def _whole(operator: Any) -> Rule:
    def rule(x: Any) -> Any:
        return operator(x, list(range(x.ndim)))

    return rule


def _before(x: Any, dim: int, fill: Any) -> Any:
    """For each place along an axis, on a new last axis, what is not behind it; else `fill`."""
    import torch

    last = x.movedim(dim, -1).unsqueeze(-2)
    steps = torch.arange(x.shape[dim], device=x.device)
    return torch.where(steps <= steps.unsqueeze(-1), last, fill)


def _running(value: Any) -> Rule:
    """The running extremum and the last place of it or of NaN: of n elements by n² comparisons."""

    def rule(x: Any, dim: int) -> Any:
        import torch

        if x.ndim == 0:
            return x.clone(), torch.zeros_like(x, dtype=torch.int64)
        # Of bool TVM has no extrema, of bfloat16 no isnan.
        kind = {torch.bool: torch.int8, torch.bfloat16: torch.float32}.get(x.dtype, x.dtype)
        x, dtype = x.to(kind), x.dtype
        bounds = torch.finfo(kind) if kind.is_floating_point else torch.iinfo(kind)
        smallest = value.__name__.startswith("amax")
        fill = (-math.inf if smallest else math.inf) if kind.is_floating_point else None
        if fill is None:
            fill = bounds.min if smallest else bounds.max
        found = value(_before(x, dim, fill), [-1], True)
        each = x.movedim(dim, -1).unsqueeze(-2)
        here = (each == found) | torch.isnan(each) if kind.is_floating_point else each == found
        steps = torch.arange(x.shape[dim], device=x.device)
        place = torch.where(here & (steps <= steps.unsqueeze(-1)), steps, 0).amax(-1)
        return found.squeeze(-1).movedim(-1, dim).to(dtype), place.movedim(-1, dim)

    return rule


def _logcumsumexp(x: Any, dim: int) -> Any:
    import torch

    if x.ndim == 0:
        return x.clone()
    return torch.logsumexp(_before(x, dim, -math.inf), -1).movedim(-1, dim)


def _median(x: Any, dim: int, keepdim: bool = False) -> Any:
    import torch

    if x.ndim == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    found = torch.kthvalue(x, (x.shape[dim] + 1) // 2, dim, keepdim)
    if not x.is_floating_point():
        return found
    unknown = torch.isnan(x).any(dim, keepdim)
    first = torch.isnan(x).to(torch.int32).argmax(dim, keepdim)
    return torch.where(unknown, math.nan, found[0]), torch.where(unknown, first, found[1])


def _median_of_all(x: Any) -> Any:
    return _median(x.reshape(-1), 0)[0]


def _nanmedian(x: Any, dim: int, keepdim: bool = False) -> Any:
    import torch

    if x.ndim == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    if not x.is_floating_point():
        return _median(x, dim, keepdim)
    unknown = torch.isnan(x)
    values, order = torch.sort(torch.where(unknown, math.inf, x), dim)
    known = (~unknown).sum(dim, keepdim=True)
    place = torch.where(known > 0, (known - 1) // 2, 0)
    value = torch.where(known > 0, torch.gather(values, dim, place), math.nan)
    found = value, torch.gather(order, dim, place)
    return found if keepdim else tuple(each.squeeze(dim) for each in found)


def _nanmedian_of_all(x: Any) -> Any:
    return _nanmedian(x.reshape(-1), 0)[0]


def _mode(x: Any, dim: int = -1, keepdim: bool = False) -> Any:
    """The smallest of the most frequent values, and its last place."""
    import torch

    if x.ndim == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, order = torch.sort(x.movedim(dim, -1), stable=True, dim=-1)
    counts = (values.unsqueeze(-1) == values.unsqueeze(-2)).sum(-1)
    first = counts.argmax(-1, keepdim=True)
    last = first + torch.gather(counts, -1, first).clamp(min=1) - 1  # NaN equals none
    found = [torch.gather(each, -1, last).movedim(-1, dim) for each in (values, order)]
    return tuple(each if keepdim else each.squeeze(dim) for each in found)


def _any(x: Any) -> Any:
    import torch

    return torch.ops.aten.any.dims(x, list(range(x.ndim)))


def _truth(operator: Any) -> Rule:
    def rule(x: Any, *args: Any) -> Any:
        import torch

        if x.dtype == torch.bool:
            return NotImplemented
        found = operator(x != 0, *args)
        return found.to(torch.uint8) if x.dtype == torch.uint8 else found

    return rule


def _norm(
    x: Any,
    order: float = 2,
    dim: Sequence[int] | None = None,
    keepdim: bool = False,
    *,
    dtype: Any = None,
) -> Any:
    import torch

    if x.ndim == 0:
        return torch.abs(x) if order else (x != 0).to(x.dtype)
    axes = dim or range(x.ndim)
    extents = [x.shape[axis] for axis in axes]
    if order and dtype is None and all(isinstance(n, int) and n == 1 for n in extents):
        return _of_ones(torch.abs(x), [axis % x.ndim for axis in axes], keepdim)
    if dtype is not None or x.dtype in (torch.float16, torch.bfloat16):
        wide = x.to(dtype or torch.float32)
        return torch.linalg.vector_norm(wide, order, dim, keepdim).to(dtype or x.dtype)
    if order:
        return NotImplemented
    return (x != 0).to(x.dtype).sum(list(range(x.ndim)) if dim is None else dim, keepdim)


def _of_ones(x: Any, axes: Sequence[int], keepdim: bool) -> Any:
    """A reduction over axes of one element each: the square of a large one would overflow."""
    return x if keepdim else x.reshape([n for i, n in enumerate(x.shape) if i not in axes])


def _prod(x: Any, *, dtype: Any = None) -> Any:
    import torch

    return torch.ops.aten.prod.dim_int(x.reshape(-1), 0, False, dtype=dtype)


def _accumulated(operator: Any) -> Rule:
    """Sums and products in the type that PyTorch gives them: whole numbers in int64."""

    def rule(x: Any, *args: Any, dtype: Any = None) -> Any:
        import torch

        exact = x.dtype.is_floating_point or x.dtype.is_complex
        wanted = dtype or (x.dtype if exact else torch.int64)
        if x.dtype == wanted and dtype is None and wanted not in (torch.float16, torch.bfloat16):
            return NotImplemented
        wide = torch.float32 if wanted in (torch.float16, torch.bfloat16) else wanted
        return operator(x.to(wide), *args).to(wanted)

    return rule


def _running_sum(x: Any, dim: int, *, dtype: Any = None) -> Any:
    """Long ones of float32 in float64, as PyTorch's are: TVM adds one number after another."""
    import torch

    along = x.shape[dim] if x.ndim else 1
    if x.dtype == torch.float32 and dtype is None and isinstance(along, int) and along > _LONG:
        return torch.ops.aten.cumsum.default(x.to(torch.float64), dim).to(torch.float32)
    return _accumulated(torch.ops.aten.cumsum.default)(x, dim, dtype=dtype)


def _in_float32(operator: Any) -> Rule:
    """Means of 16-bit numbers, whose sum 16 bits do not hold; those of none are NaN."""

    def rule(x: Any, *args: Any, dtype: Any = None, **kwargs: Any) -> Any:
        import torch

        if dtype is not None:
            return operator(x.to(dtype), *args, **kwargs)
        if args and args[0] is not None and not len(args[0]) and x.ndim:  # TVM reduces over none
            return operator(x, list(range(x.ndim)), *args[1:], **kwargs)
        if not x.numel():  # TVM divides by how many there are
            return torch.full_like(x.sum(*args, **kwargs), math.nan)
        if x.dtype not in (torch.float16, torch.bfloat16):
            return NotImplemented
        return operator(x.to(torch.float32), *args, **kwargs).to(x.dtype)

    return rule


def _variance(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    """Also of no more elements than the correction: infinite, or NaN where they are equal."""
    import torch

    if dim is not None and not len(dim) and x.ndim:  # TVM reduces over none
        every = list(range(x.ndim))
        return torch.ops.aten.var.correction(x, every, correction=correction, keepdim=keepdim)
    axes = list(dim) if dim else list(range(x.ndim))
    extents = [x.shape[axis] for axis in axes]
    free = 1 if correction is None else correction
    if 0 in extents:
        return torch.full_like(x.sum(axes, keepdim), math.nan)
    is_open = not all(isinstance(each, int) for each in extents)
    if (is_open and not free) or (not is_open and math.prod(extents) > free):
        rule = _in_float32(torch.ops.aten.var.correction)
        return rule(x, dim, correction=correction, keepdim=keepdim)
    wide = x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x
    apart = wide - wide.mean(axes, True)
    squares = (apart * apart).sum(axes, keepdim)
    if is_open:
        count = torch.scalar_tensor(math.prod(extents), dtype=wide.dtype)
        return (squares / (count - free).clamp(min=0)).to(x.dtype)
    return (squares * math.inf).to(x.dtype)


def _var_mean(x: Any, dim: Any = None, *, correction: Any = None, keepdim: bool = False) -> Any:
    import torch

    is_open = not all(isinstance(each, int) for each in x.shape)
    if x.dtype not in (torch.float16, torch.bfloat16) and not is_open and x.numel():
        return NotImplemented
    wide = x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x
    found = (
        torch.ops.aten.var.correction(wide, dim, correction=correction, keepdim=keepdim),
        torch.ops.aten.mean.dim(wide, dim, keepdim),
    )
    return tuple(each.to(x.dtype) for each in found)


def _renorm(x: Any, p: float, dim: int, maxnorm: float) -> Any:
    import torch

    if x.dtype not in (torch.float16, torch.bfloat16):
        return NotImplemented
    others = [axis for axis in range(x.ndim) if axis != dim % x.ndim]
    norm = torch.linalg.vector_norm(x.to(torch.float32), p, others, True)
    factor = torch.where(norm > maxnorm, maxnorm / (norm + 1e-7), 1.0)
    return x * factor.to(x.dtype)


def _position(operator: Any, extremum: Any) -> Rule:
    """The first place of the extremum, or of NaN: TVM's own finds none among infinities alone."""

    def rule(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        import torch

        if x.dtype == torch.bool:
            return operator(x.to(torch.int8), dim, keepdim)
        if not x.is_floating_point():
            return NotImplemented
        if x.dtype == torch.bfloat16:  # TVM has no isnan of it
            return operator(x.to(torch.float32), dim, keepdim)
        largest = extremum(x, list(range(x.ndim)) if dim is None else [dim], True)
        places = torch.logical_or(x == largest, torch.isnan(x)).to(torch.int8)
        return torch.argmax(places, dim, keepdim)

    return rule


def _of_bool(operator: Any) -> Rule:
    def rule(x: Any, dim: Sequence[int] = (), keepdim: bool = False) -> Any:
        import torch

        if x.dtype != torch.bool:
            return NotImplemented
        return operator(x.to(torch.int8), dim, keepdim).to(torch.bool)

    return rule
