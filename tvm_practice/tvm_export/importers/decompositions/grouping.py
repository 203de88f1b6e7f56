"""Sums and extremes of groups of elements: embedding bags, segments, histograms, counted places."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.decompositions.sized_by_values import size_of

Rule = Callable[..., Any]

_SUM, _MEAN, _MAX = range(3)


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    return {
        aten._embedding_bag.default: functools.partial(_embedding_bag, is_for_training=True),
        aten._embedding_bag_forward_only.default: _embedding_bag,
        aten.segment_reduce.default: _segment_reduce,
        aten.histc.default: _histc,
        aten.histogram.bin_ct: _histogram_of_count,
        aten.histogram.bins_tensor: _histogram,
        aten._histogramdd_bin_edges.default: _edges_of_points,
        aten._histogramdd_from_bin_cts.default: _histogram_of_counted_points,
        aten._histogramdd_from_bin_tensors.default: _histogram_of_points,
        aten.nonzero_static.default: _nonzero_static,
        aten.isin.Tensor_Tensor: _isin,
        aten.repeat_interleave.Tensor: _repeated,
    }


def _embedding_bag(
    weight: Any,
    indices: Any,
    offsets: Any,
    scale_grad_by_freq: bool = False,
    mode: int = _SUM,
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
    *,
    is_for_training: bool = False,
) -> tuple[Any, Any, Any, Any]:
    """Rows of a table, summed, averaged or maximized by bag; and the further outputs.

    These are the indices' bags, how many each has, and where the largest come from: of a sum zeros,
    or none, as PyTorch's kernel for processors leaves them. The last bag reaches to the last index,
    whatever the last offset is; but the fast kernel adds up the indices before that offset.
    """
    import torch

    is_fast = weight.dtype != torch.float64 and padding_idx < 0
    starts = offsets[:-1] if include_last_offset else offsets
    bags, width = starts.shape[0], weight.shape[1]
    places = torch.arange(indices.shape[0], device=indices.device)
    found = (starts <= places.unsqueeze(1)).sum(1) - 1
    beyond = bags  # whose row is left out at the end
    bag = torch.where(indices == padding_idx, beyond, found) if padding_idx >= 0 else found
    rows = torch.ops.aten.embedding.default(weight, indices)
    inside = bag == torch.arange(bags, device=indices.device).unsqueeze(1)
    count = inside.sum(1)
    if mode == _MAX:
        if not indices.shape[0]:
            return weight.new_zeros((bags, width)), found, count, found.new_zeros((bags, width))
        spread = torch.where(inside.unsqueeze(2), rows, -math.inf)
        full = (count > 0).unsqueeze(1)
        largest = torch.where(full, spread.amax(1), 0)
        return largest, found, count, torch.where(full, indices[spread.argmax(1)], 0)
    wide = rows.to(torch.float32) if rows.dtype in (torch.float16, torch.bfloat16) else rows
    if per_sample_weights is not None:
        wide = wide * per_sample_weights.to(wide.dtype).unsqueeze(1)
    total = torch.zeros((bags + 1, width), dtype=wide.dtype, device=wide.device)
    if indices.shape[0]:
        if include_last_offset and is_fast:
            bag = torch.where(places < offsets[-1], bag, beyond)
        total = torch.ops.aten.index_put.default(total, [bag], wide, True)
    total = total[:bags]
    if mode == _MEAN:
        total = total / torch.where(count > 0, count, 1).to(total.dtype).unsqueeze(1)
        return total.to(weight.dtype), found, count, count
    if is_fast:
        found = found.new_zeros((0,))
    nothing = torch.zeros_like(starts if is_for_training else offsets, dtype=count.dtype)
    return total.to(weight.dtype), found, nothing, nothing


def _segment_reduce(
    x: Any,
    reduce: str,
    *,
    lengths: Any = None,
    indices: Any = None,
    offsets: Any = None,
    axis: int = 0,
    unsafe: bool = False,
    initial: float | None = None,
) -> Any:
    """Each element taken by each segment that it is in: as many steps as pairs of them."""
    import torch

    if lengths is not None:
        last = torch.cumsum(lengths, axis)
        first = last - lengths
    else:
        first, last = (
            offsets.narrow(axis, 0, offsets.shape[axis] - 1),
            offsets.narrow(axis, 1, offsets.shape[axis] - 1),
        )
    neutral = {"max": -math.inf, "min": math.inf, "prod": 1.0}.get(reduce, 0.0)
    places = torch.arange(x.shape[axis], device=x.device)
    inside = (places >= first.unsqueeze(-1)) & (places < last.unsqueeze(-1))
    inside = inside.reshape(*inside.shape, *[1] * (x.ndim - axis - 1))
    each = torch.where(inside, x.unsqueeze(axis), neutral)
    begin = neutral if initial is None else initial
    if reduce in ("max", "min"):
        extreme, join = (
            (each.amax, torch.maximum) if reduce == "max" else (each.amin, torch.minimum)
        )
        found = extreme(axis + 1)
        return join(found, torch.full_like(found, begin))
    if reduce == "prod":
        return each.prod(axis + 1) * begin
    total = each.sum(axis + 1) + begin
    if reduce == "sum":
        return total
    size = (last - first).reshape(*first.shape, *[1] * (x.ndim - axis - 1))
    empty = math.nan if initial is None else total
    return torch.where(size > 0, total / torch.where(size > 0, size, 1).to(x.dtype), empty)


def _histc(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """How many elements lie in each of `bins` equal parts of [min, max].

    Where the two are equal the range is the elements' own, and where those are equal, too, from one
    below them to one above.
    """
    import torch

    flat = x.reshape(-1, 1)
    if not x.numel():
        return x.new_zeros(bins)
    low, high = (torch.scalar_tensor(each, dtype=x.dtype) for each in (min, max))
    if min == max:
        low, high = x.amin(), x.amax()
        apart = torch.where(low == high, 1.0, 0.0).to(x.dtype)
        low, high = low - apart, high + apart
    part = torch.floor((flat - low) * bins / (high - low))
    part = torch.where(flat == high, bins - 1, part)
    return (part == torch.arange(bins, dtype=x.dtype)).to(x.dtype).sum(0)


def _histogram_of_count(
    x: Any,
    bins: int = 100,
    *,
    range: Sequence[float] | None = None,
    weight: Any = None,
    density: bool = False,
) -> tuple[Any, Any]:
    return _histogram(x, _edges(x, bins, range), weight=weight, density=density)


def _edges(x: Any, bins: int, range: Sequence[float] | None) -> Any:
    """Of bins of one width, between the extremes where no range is given."""
    import torch

    scalar = functools.partial(torch.scalar_tensor, dtype=x.dtype, device=x.device)
    low, high = scalar(0.0), scalar(1.0)
    if range is not None:
        low, high = scalar(range[0]), scalar(range[1])
    elif x.numel():
        low, high = x.amin(), x.amax()
    apart = torch.where(low == high, 0.5, 0.0).to(x.dtype)
    low, high = low - apart, high + apart
    steps = torch.arange(bins + 1, device=x.device)
    width = (high - low) / bins
    upwards = steps < (bins + 1) // 2  # as PyTorch's linspace, from either end
    return torch.where(upwards, low + width * steps, high - width * (bins - steps))


def _histogram(x: Any, edges: Any, *, weight: Any = None, density: bool = False) -> tuple[Any, Any]:
    found = _histogram_of_points(x.reshape(-1, 1), [edges], weight=weight, density=density)
    return found, edges.clone()


def _edges_of_points(
    x: Any,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Any = None,
    density: bool = False,
) -> list[Any]:
    columns = x.reshape(-1, len(bins)).unbind(1)
    ranges = [None] * len(bins) if range is None else zip(range[::2], range[1::2], strict=True)
    return [_edges(*each) for each in zip(columns, bins, ranges, strict=True)]


def _histogram_of_counted_points(
    x: Any,
    bins: Sequence[int],
    *,
    range: Sequence[float] | None = None,
    weight: Any = None,
    density: bool = False,
) -> Any:
    edges = _edges_of_points(x, bins, range=range)
    return _histogram_of_points(x, edges, weight=weight, density=density)


def _histogram_of_points(
    x: Any, edges: Sequence[Any], *, weight: Any = None, density: bool = False
) -> Any:
    """The weight of the points in each box between edges; the last ones have their upper edge."""
    import torch

    counts = [each.shape[0] - 1 for each in edges]
    number: Any = 0
    inside: Any = True
    for column, bounds, count in zip(
        x.reshape(-1, len(edges)).unbind(1), edges, counts, strict=True
    ):
        number = number * count + (column.unsqueeze(1) >= bounds[1:-1]).sum(1)
        inside = inside & (column >= bounds[0]) & (column <= bounds[-1])
    value = torch.ones_like(number, dtype=x.dtype) if weight is None else weight.reshape(-1)
    boxes = torch.arange(math.prod(counts), device=x.device)
    among = (number.unsqueeze(1) == boxes) & inside.unsqueeze(1)
    found = torch.where(among, value.unsqueeze(1), 0).sum(0).reshape(counts)
    if density:
        found = found / found.sum()
        for axis, bounds in enumerate(edges):
            shape = [-1 if each == axis else 1 for each, _ in enumerate(counts)]
            found = found / (bounds[1:] - bounds[:-1]).reshape(shape)
    return found


def _nonzero_static(x: Any, *, size: int, fill_value: int = -1) -> Any:
    """The places of the first elements other than 0, of a number that is known."""
    import torch

    flat = (x != 0).reshape(-1)
    extents = list(x.shape)
    if not flat.shape[0] or not size or not extents:
        if extents or not size:
            return torch.full((size, len(extents)), fill_value, dtype=torch.int64, device=x.device)
        return torch.empty((size, 0), dtype=torch.int64, device=x.device)
    order = torch.cumsum(flat.to(torch.int64), 0)
    steps = torch.arange(flat.shape[0], device=x.device)
    target = torch.where(flat & (order <= size), order - 1, size)
    places = torch.zeros((size + 1,), dtype=torch.int64, device=x.device)
    places = torch.scatter(places, 0, target, steps)[:size]
    columns: list[Any] = []
    for extent in reversed(extents):
        columns.insert(0, places % extent)
        places = torch.div(places, extent, rounding_mode="floor")
    known = torch.arange(size, device=x.device) < order[-1]
    return torch.where(known.unsqueeze(1), torch.stack(columns, 1), fill_value)


def _isin(x: Any, among: Any, *, assume_unique: bool = False, invert: bool = False) -> Any:
    import torch

    dtype = torch.result_type(x, among)
    if not among.numel():
        return torch.full_like(x, invert, dtype=torch.bool)
    found = (x.to(dtype).unsqueeze(-1) == among.to(dtype).reshape(-1)).any(-1)
    return torch.logical_not(found) if invert else found


def _repeated(repeats: Any, *, output_size: int | None = None) -> Any:
    """The place of each element as often as it is repeated."""
    import torch

    ends = torch.cumsum(repeats, 0)
    count = size_of(repeats.sum()) if output_size is None else output_size
    places = torch.arange(count, device=repeats.device)
    return (ends <= places.unsqueeze(1)).sum(1).to(repeats.dtype)
