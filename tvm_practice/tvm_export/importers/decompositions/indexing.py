"""Indexing: gathers and scatters along one axis are what the frontend converts rightly."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.refusals import Refused

Rule = Callable[..., Any]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    return {
        aten.arange.start_step: _arange,
        aten.select.int: _select,
        aten.index.Tensor: _index,
        aten._unsafe_index.Tensor: _as_index,
        aten.index_put.default: _index_put,
        aten._unsafe_index_put.default: _index_put,
        aten._index_put_impl.default: _as_index_put,
        aten.index_select.default: _index_select,
        aten.gather.default: _gather,
        **{
            operator: functools.partial(_where_reached, operator, rule)
            for operator, rule in (
                (aten.scatter.src, _scatter),
                (aten.scatter_add.default, _scatter_add),
                (aten.scatter_reduce.two, _scatter_reduce),
            )
        },
        aten.scatter.value: _scatter_value,
        aten.scatter.reduce: _scatter_reduced,
        aten.scatter.value_reduce: _scatter_value_reduced,
        aten.index_reduce.default: _index_reduce,
        aten.put.default: _put,
        aten.as_strided.default: _as_strided,
        aten.view.default: _view,
        aten._unsafe_view.default: _view,
        aten.sort.stable: _sort,
        aten.sort.default: _sort_default,
        aten.topk.default: _topk,
        aten.kthvalue.default: _kthvalue,
        aten.searchsorted.Tensor: _searchsorted,
        aten.searchsorted.Scalar: _searchsorted,
        aten.embedding_renorm.default: _embedding_renorm,
        aten.masked_scatter.default: _masked_scatter,
        aten.as_strided_scatter.default: _as_strided_scatter,
        aten.diagonal_scatter.default: _diagonal_scatter,
        aten.slice_scatter.default: _slice_scatter,
        aten.masked_fill.Scalar: _masked_fill,
        aten.masked_fill.Tensor: _masked_fill,
        aten.constant_pad_nd.default: _constant_pad,
        aten.new_empty_strided.default: _new_empty,
        aten.empty_strided.default: _empty,
        aten.unfold_backward.default: _overlapping,
    }


def _new_empty(x: Any, size: Any, stride: Any, *, dtype: Any = None, **settings: Any) -> Any:
    """Zeros, as any values will do; PyTorch's rule for it calls itself."""
    return x.new_zeros(size, dtype=dtype or x.dtype)


def _empty(size: Any, stride: Any, *, dtype: Any = None, **settings: Any) -> Any:
    """As `_new_empty`."""
    import torch

    return torch.zeros(size, dtype=dtype)


def _overlapping(parts: Any, shape: Any, axis: int, size: int, step: int) -> Any:
    """Parts of an axis added up where they lie, as in istft, by one operator.

    PyTorch has an operator for each place in a part, unless all other axes have the result's
    extents.
    """
    import torch

    axis %= max(len(shape), 1)
    given = list(parts.shape)
    if len(given) != len(shape) + 1 or not all(isinstance(each, int) for each in (*given, *shape)):
        return NotImplemented
    count = given[axis]
    if step >= size or given[-1] != size or count > (shape[axis] - size) // step + 1:
        return NotImplemented
    wide = [*shape[:axis], count, *shape[axis + 1 :], size]
    rows = parts.expand(wide).movedim(-1, axis + 1).flatten(axis, axis + 1)
    places = torch.arange(count).unsqueeze(1) * step + torch.arange(size)
    index = [None] * axis + [places.flatten()]
    empty = parts.new_zeros(shape)
    return torch.ops.aten.index_put.default(empty, index, rows, accumulate=True)


def _constant_pad(x: Any, pad: Any, value: Any = 0) -> Any:
    """Of bool, by whether the value is not 0."""
    import torch

    if x.dtype != torch.bool or value in (0, 1):
        return NotImplemented
    return torch.ops.aten.constant_pad_nd.default(x, pad, True)


def _arange(start: Any, end: Any, step: Any = 1, **settings: Any) -> Any:
    """Downwards, where TVM counts one too many: upwards from 0, times the step."""
    import torch

    if not all(isinstance(each, int) for each in (start, end, step)) or step >= 0:
        return NotImplemented
    count = max(0, -((start - end) // step))
    return torch.ops.aten.arange.start_step(0, count, 1, **settings) * step + start


def _select(x: Any, dim: int, index: int) -> Any:
    import torch

    if not isinstance(index, int) or index >= 0:
        return NotImplemented
    return torch.ops.aten.select.int(x, dim % x.ndim, index + x.shape[dim])


def _view(x: Any, shape: Sequence[Any]) -> Any:
    """Of elements in a row: a rule's result may have other strides than PyTorch's own."""
    import torch
    from torch._prims_common import is_contiguous_or_false  # it asks nothing of open extents

    if is_contiguous_or_false(x):
        return NotImplemented
    return torch.ops.aten.view.default(x.contiguous(), shape)


def _counted(index: Any, extent: Any) -> Any:
    """An index, of which negative ones count from the end."""
    import torch

    return torch.where(index < 0, index + extent, index)


def _linear(x: Any, indices: Sequence[Any]) -> tuple[Any, list[int], Any]:
    """`x` with its indexed axes in front, those axes, and one index into all of them.

    The index is broadcast from the given ones. Where one of them is out of bounds it is, too.
    """
    import torch

    axes = [axis for axis, each in enumerate(indices) if each is not None]
    spread: Any = torch.broadcast_tensors
    given = spread(*(indices[axis].to(torch.int64) for axis in axes))
    linear: Any = None
    wrong: Any = None
    for axis, each in zip(axes, given, strict=True):
        counted = _counted(each, x.shape[axis])
        linear = counted if linear is None else linear * x.shape[axis] + counted
        outside = (counted < 0) | (counted >= x.shape[axis])
        wrong = outside if wrong is None else wrong | outside
    if len(axes) > 1:
        linear = torch.where(wrong, math.prod(x.shape[axis] for axis in axes), linear)
    others = [axis for axis in range(x.ndim) if axis not in axes]
    return x.permute(*axes, *others), axes, linear


def _index(x: Any, indices: Sequence[Any]) -> Any:
    import torch

    if any(map(_is_mask, indices)):
        places = _places(indices)
        return NotImplemented if places is None else torch.ops.aten.index.Tensor(x, places)
    given = sum(each is not None for each in indices)
    if given == 1 or given == len(indices):
        return NotImplemented
    front, axes, linear = _linear(x, indices)
    rest = front.shape[len(axes) :]
    extents = [x.shape[axis] for axis in axes]
    rows = front.reshape(math.prod(extents), *rest)
    taken = torch.index_select(rows, 0, linear.reshape(-1)).reshape(*linear.shape, *rest)
    if axes != list(range(axes[0], axes[-1] + 1)) or axes[0] == 0:
        return taken  # PyTorch puts the indexed axes first too
    # Neighbouring axes keep their place.
    count, before = linear.ndim, axes[0]
    order = [
        *range(count, count + before),
        *range(count),
        *range(count + before, taken.ndim),
    ]
    return taken.permute(order)


def _is_mask(index: Any) -> bool:
    import torch

    return index is not None and index.dtype in (torch.bool, torch.uint8)


def _places(indices: Sequence[Any]) -> list[Any] | None:
    """Indices with masks as the indices of what is true in them; None if one has no axis."""
    import torch

    found: list[Any] = []
    for each in indices:
        if not _is_mask(each):
            found.append(each)
        elif each.ndim == 0:
            return None
        else:
            rows = torch.nonzero(each)
            found += [rows.select(1, axis) for axis in range(each.ndim)]
    return found


def _as_index(x: Any, indices: Sequence[Any]) -> Any:
    import torch

    return torch.ops.aten.index.Tensor(x, indices)


def _index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    import torch

    if any(map(_is_mask, indices)):
        return _masked_put(x, indices, values, accumulate)
    front, axes, linear = _linear(x, indices)
    rest = front.shape[len(axes) :]
    rows = front.reshape(math.prod(x.shape[axis] for axis in axes), math.prod(rest))
    before = axes[0]
    together = axes == list(range(axes[0], axes[-1] + 1)) and before > 0
    shape = [*linear.shape, *rest]
    if together:
        shape = [*rest[:before], *linear.shape, *rest[before:]]
    spread = values.to(x.dtype).expand(shape)
    if together:
        count = linear.ndim
        spread = spread.permute(
            *range(before, before + count), *range(before), *range(before + count, len(shape))
        )
    source = spread.reshape(linear.numel(), rows.shape[1])
    index = linear.reshape(-1, 1).expand(source.shape)
    scatter = torch.ops.aten.scatter_add.default if accumulate else torch.ops.aten.scatter.src
    put = scatter(rows, 0, index, source).reshape(front.shape)
    order = [*axes, *(axis for axis in range(x.ndim) if axis not in axes)]
    return put.permute([order.index(axis) for axis in range(x.ndim)])


def _as_index_put(
    x: Any, indices: Any, values: Any, accumulate: bool = False, unsafe: bool = False
) -> Any:
    import torch

    return torch.ops.aten.index_put.default(x, indices, values, accumulate)


def _masked_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool) -> Any:
    import torch

    [mask] = [each for each in indices if each is not None][:1]
    rows = values.ndim - (x.ndim - mask.ndim)
    if len(indices) != 1 or (values.numel() != 1 and rows > 1):
        places = _places(indices)
        return NotImplemented if places is None else _index_put(x, places, values, accumulate)
    mask = mask.to(torch.bool).reshape(*mask.shape, *[1] * (x.ndim - mask.ndim))
    if values.numel() == 1:
        values = values.reshape(())
    elif rows == 1:
        values = _spread_where(x, mask, values.to(x.dtype))
    return torch.where(mask, x + values if accumulate else values.to(x.dtype), x)


def _spread_where(x: Any, mask: Any, rows: Any) -> Any:
    """The n-th row where the mask is true the n-th time; one row, at each place.

    PyTorch refuses another number of rows. Here an index is out of range then, which raises too.

    Args:
        mask: of `x`'s axes, with the extent 1 where a row has its own.
    """
    import torch

    if rows.shape[0] == 1:
        return rows.select(0, 0)
    flat = mask.reshape(-1).to(torch.int64)
    known = torch.cat([rows, rows.new_zeros(1, *rows.shape[1:])])  # there may be none
    order = torch.cumsum(flat, 0) - 1
    order = torch.where(order < 0, 0, order)
    count = rows.shape[0]
    order = torch.where(flat.sum() == count, order, count + 1)
    taken = torch.index_select(known, 0, order)
    rest = x.shape[x.ndim - rows.ndim + 1 :]
    return taken.expand(flat.shape[0], *rest).reshape(x.shape)


def _index_select(x: Any, dim: int, index: Any) -> Any:
    import torch

    if x.ndim == 0:
        return x.reshape(1).index_select(0, index.reshape(-1)).reshape(())
    if index.ndim == 0:
        return torch.index_select(x, dim, index.reshape(1))
    return NotImplemented


def _gather(x: Any, dim: int, index: Any, sparse_grad: bool = False) -> Any:
    import torch

    if x.ndim == 0 or index.ndim == 0:
        wide = torch.gather(x.reshape(x.numel()), 0, index.reshape(index.numel()))
        return wide.reshape(index.shape)
    # TVM's reads an index's own extents; every other axis must have the input's.
    shape = [x.shape[a] if a == dim % x.ndim else index.shape[a] for a in range(x.ndim)]
    if all(a == b for a, b in zip(shape, x.shape, strict=True)):
        return NotImplemented
    for axis, extent in enumerate(shape):
        x = x.narrow(axis, 0, extent)
    return torch.gather(x, dim, index)


def _flat(name: str, x: Any, index: Any, *source: Any, **kwargs: Any) -> Any:
    """A scatter of scalars, by way of one axis."""
    import torch

    packet, _, overload = name.partition(".")
    operator = getattr(getattr(torch.ops.aten, packet), overload)
    wide = [each.reshape(each.numel()) if hasattr(each, "reshape") else each for each in source]
    return operator(x.reshape(1), 0, index.reshape(index.numel()), *wide, **kwargs).reshape(())


def _fitted(index: Any, source: Any) -> Any:
    """The part of a source that an index reaches."""
    import torch
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    for axis, extent in enumerate(index.shape):
        before = source.shape[axis]
        if statically_known_true(before == extent):
            continue
        if isinstance(before, int) and isinstance(extent, int):
            source = source.narrow(axis, 0, extent)
        else:  # of open extents, PyTorch asks of a narrowed axis whether it is shorter
            source = source.index_select(axis, torch.arange(extent, device=source.device))
    return source


def _where_reached(
    operator: Any, rule: Rule, x: Any, dim: int, index: Any, source: Any, *args: Any, **kwargs: Any
) -> Any:
    """A scatter's rule; where the index is shorter along another axis, of what it reaches.

    TVM takes the index's extents for the tensor's.
    """
    import torch
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    others = range(x.ndim) if index.ndim == x.ndim else ()
    for axis in others:
        reach, extent = index.shape[axis], x.shape[axis]
        if axis != dim % x.ndim and not statically_known_true(reach == extent):
            part = operator(x.narrow(axis, 0, reach), dim, index, source, *args, **kwargs)
            after = x.ndim - 1 - axis
            whole = torch.constant_pad_nd(part, [0, 0] * after + [0, extent - reach])
            place = torch.arange(extent, device=x.device).reshape(-1, *[1] * after)
            return torch.where(place < reach, whole, x)
    return rule(x, dim, index, source, *args, **kwargs)


def _scatter(x: Any, dim: int, index: Any, source: Any) -> Any:
    import torch

    if x.ndim == 0:
        return _flat("scatter.src", x, index, source)
    fitted = _fitted(index, source) if index.ndim == source.ndim else source
    if fitted is source:
        return NotImplemented
    return torch.ops.aten.scatter.src(x, dim, index, fitted)


def _scatter_value(x: Any, dim: int, index: Any, value: Any) -> Any:
    import torch

    return torch.ops.aten.scatter.src(x, dim, index, torch.full_like(index, value, dtype=x.dtype))


def _scatter_reduced(x: Any, dim: int, index: Any, source: Any, *, reduce: str) -> Any:
    import torch

    kind = {"add": "sum", "multiply": "prod"}[reduce]
    return torch.ops.aten.scatter_reduce.two(x, dim, index, source, kind)


def _scatter_value_reduced(x: Any, dim: int, index: Any, value: Any, *, reduce: str) -> Any:
    import torch

    source = torch.full_like(index, value, dtype=x.dtype)
    return torch.ops.aten.scatter.reduce(x, dim, index, source, reduce=reduce)


def _scatter_add(x: Any, dim: int, index: Any, source: Any) -> Any:
    import torch

    if x.ndim == 0:
        return _flat("scatter_add.default", x, index, source)
    fitted = _fitted(index, source) if index.ndim == source.ndim else source
    if fitted is source:
        return NotImplemented
    return torch.ops.aten.scatter_add.default(x, dim, index, fitted)


def _scatter_reduce(
    x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    import torch

    scatter = torch.ops.aten.scatter_reduce.two
    if x.ndim == 0:
        flat = scatter(
            x.reshape(1),
            0,
            index.reshape(-1),
            source.reshape(-1),
            reduce,
            include_self=include_self,
        )
        return flat.reshape(())
    fitted = _fitted(index, source)
    if reduce == "mean":
        ones = torch.ones_like(fitted)
        count = torch.ops.aten.scatter_add.default(
            torch.ones_like(x) if include_self else torch.zeros_like(x), dim, index, ones
        )
        total = scatter(x, dim, index, fitted, "sum", include_self=include_self)
        count = torch.where(count < 1, 1, count)
        if x.is_floating_point():
            return total / count
        return torch.div(total, count, rounding_mode="floor")
    if not include_self:
        identity = torch.full_like(fitted, _identity(reduce, x.dtype))
        x = torch.ops.aten.scatter.src(x, dim, index, identity)
        return scatter(x, dim, index, fitted, reduce)
    if fitted is source:
        return NotImplemented
    return scatter(x, dim, index, fitted, reduce)


def _index_reduce(
    x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    import torch

    if x.ndim == 0:
        flat = x.reshape(1), 0, index.reshape(-1), source.reshape(-1), reduce
        return _index_reduce(*flat, include_self=include_self).reshape(())
    shape = [1] * source.ndim
    shape[dim] = index.numel()
    spread = index.to(torch.int64).reshape(shape).expand(source.shape)
    return torch.ops.aten.scatter_reduce.two(
        x, dim, spread, source, reduce, include_self=include_self
    )


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    import torch

    places = _counted(index.reshape(-1), x.numel())
    scatter = torch.ops.aten.scatter_add.default if accumulate else torch.ops.aten.scatter.src
    return scatter(x.reshape(-1), 0, places, source.reshape(-1)).reshape(x.shape)


def _identity(reduce: str, dtype: Any) -> Any:
    import torch

    if reduce in ("sum", "prod"):
        return int(reduce == "prod")
    if dtype.is_floating_point:
        return -math.inf if reduce == "amax" else math.inf
    if dtype == torch.bool:
        return reduce == "amin"
    bounds = torch.iinfo(dtype)
    return bounds.min if reduce == "amax" else bounds.max


def _as_strided(
    x: Any, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Any:
    import torch

    flat, first = _in_memory(x), 0 if offset is None else offset - x.storage_offset()
    last = first + sum((extent - 1) * by for extent, by in zip(size, stride, strict=True))
    if flat is None or (0 not in size and (first < 0 or last >= x.numel())):
        raise Refused("as_strided of memory beside a tensor's elements")
    plain = [math.prod(size[axis + 1 :]) for axis in range(len(size))]
    same = all(e == 1 or s == p for e, s, p in zip(size, stride, plain, strict=True))
    if same and math.prod(size) == x.numel():
        return flat.reshape(*size)
    index = _strided_index(size, stride, first)
    return torch.index_select(flat, 0, index.reshape(-1)).reshape(*size)


def _in_memory(x: Any) -> Any:
    """The elements in the order of their addresses; None if there is room between some of them."""
    from torch._prims_common import is_non_overlapping_and_dense_or_false

    if x.is_contiguous():
        return x.reshape(-1)
    if not is_non_overlapping_and_dense_or_false(x):
        return None
    return x.permute(sorted(range(x.ndim), key=x.stride, reverse=True)).reshape(-1)


def _strided_index(size: Sequence[int], stride: Sequence[int], offset: int) -> Any:
    """Where each element of a strided view is in its storage."""
    import torch

    index = torch.full((), offset, dtype=torch.int64)
    for extent, by in zip(size, stride, strict=True):
        index = index.unsqueeze(-1) + torch.arange(extent) * by
    return index


def _as_strided_scatter(
    x: Any, source: Any, size: Sequence[int], stride: Sequence[int], offset: int | None = None
) -> Any:
    import torch

    if not x.is_contiguous():
        return NotImplemented
    index = _strided_index(size, stride, offset or 0).reshape(-1)
    return torch.scatter(x.reshape(-1), 0, index, source.reshape(-1)).reshape(x.shape)


def _masked_scatter(x: Any, mask: Any, source: Any) -> Any:
    """The n-th place that the mask has gets the source's n-th element."""
    import torch

    spread: Any = torch.broadcast_tensors
    x, mask = spread(x, mask)
    order = torch.cumsum(mask.reshape(-1).to(torch.int64), 0) - 1
    order = torch.where(order < 0, 0, order)
    source = source.reshape(-1)
    if not isinstance(source.shape[0], int):  # it may have no elements
        source = torch.cat([source, source.new_zeros(1)])
    taken = torch.index_select(source, 0, order).reshape(x.shape)
    return torch.where(mask, taken, x)


def _sort(x: Any, *, stable: bool | None, dim: int = -1, descending: bool = False) -> Any:
    import torch

    return torch.ops.aten.sort.default(x, dim, descending)


def _sort_default(x: Any, dim: int = -1, descending: bool = False) -> Any:
    import torch

    if x.ndim == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    # TVM sorts bfloat16 by its bits, and no bytes.
    narrow = {torch.bool: torch.int32, torch.bfloat16: torch.float32, torch.uint8: torch.int32}
    if (wide := narrow.get(x.dtype)) is None:
        return NotImplemented
    values, order = torch.ops.aten.sort.default(x.to(wide), dim, descending)
    return values.to(x.dtype), order


def _topk(x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    import torch

    if x.ndim == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    values, order = torch.ops.aten.sort.default(x, dim, largest)
    return values.narrow(dim, 0, k), order.narrow(dim, 0, k)


def _kthvalue(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    import torch

    if x.ndim == 0:
        return x.clone(), torch.zeros_like(x, dtype=torch.int64)
    found = [each.narrow(dim, k - 1, 1) for each in torch.ops.aten.sort.default(x, dim)]
    return tuple(each if keepdim else each.squeeze(dim) for each in found)


def _searchsorted(
    boundaries: Any,
    x: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    """How many boundaries are below each value: as many comparisons as pairs."""
    import torch

    if not isinstance(x, torch.Tensor):
        x = torch.scalar_tensor(x, dtype=boundaries.dtype, device=boundaries.device)
    if sorter is not None and boundaries.numel():
        boundaries = torch.gather(boundaries, -1, sorter)
    one, other = boundaries.unsqueeze(-2), x.unsqueeze(-1)
    if boundaries.ndim == 1:
        one = boundaries
    below = one <= other if right or side == "right" else one < other
    return below.sum(-1).to(torch.int32 if out_int32 else torch.int64)


def _embedding_renorm(weight: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """A table whose rows that are looked up have at most a norm."""
    import torch

    each = indices.reshape(-1)
    used = torch.zeros(weight.shape[0], dtype=torch.int32, device=weight.device)
    used = torch.scatter(used, 0, each, torch.ones_like(each, dtype=torch.int32)).unsqueeze(1)
    norm = torch.linalg.vector_norm(weight, norm_type, 1, True)
    factor = torch.where(norm > max_norm, max_norm / (norm + 1e-7), 1.0).to(weight.dtype)
    return torch.where(used > 0, weight * factor, weight)


def _slice_scatter(
    x: Any, source: Any, dim: int = 0, start: Any = None, end: Any = None, step: Any = 1
) -> Any:
    """What is before, the source, and what is after: TVM reads a source as far as `x` reaches."""
    import torch

    extent = x.shape[dim]
    if not all(each is None or isinstance(each, int) for each in (start, end, step, extent)):
        return NotImplemented
    places = range(*slice(start, end, step).indices(extent))
    source = source.to(x.dtype)
    if step == 1:
        end = places.start + len(places)
        before, after = x.narrow(dim, 0, places.start), x.narrow(dim, end, extent - end)
        return torch.cat((before, source, after), dim)
    index = torch.arange(places.start, places.stop, places.step, device=x.device)
    return x.index_copy(dim, index, source)


def _diagonal_scatter(x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    import torch

    front = x.movedim((dim1, dim2), (0, 1))
    steps = torch.arange(source.shape[-1], device=x.device)
    places = [steps + max(-offset, 0), steps + max(offset, 0)]
    put = torch.ops.aten.index_put.default(front, places, source.movedim(-1, 0))
    return put.movedim((0, 1), (dim1, dim2))


def _masked_fill(x: Any, mask: Any, value: Any) -> Any:
    import torch

    if not isinstance(value, torch.Tensor):
        value = torch.scalar_tensor(value, dtype=x.dtype, device=x.device)
    return torch.where(mask, value.to(x.dtype), x)
