"""Converters for classic TVM of operators that it has none for, or for few of their arguments."""

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.converters.relay import shape_of
from tvm_practice.tvm_export.importers.converters.relay_arguments import counted
from tvm_practice.tvm_export.importers.converters.relay_rare import ordered
from tvm_practice.tvm_export.importers.refusals import Refused

Converter = Callable[[Sequence[Any], Sequence[str]], Any]


def converters() -> dict[str, Converter]:
    """By operator's name, for `import_relay`."""
    return {
        "aten::channel_shuffle": channel_shuffle,
        "aten::count_nonzero": count_nonzero,
        "aten::cross_entropy_loss": cross_entropy,
        "aten::diagonal": diagonal,
        "aten::embedding_bag": embedding_bag,
        "aten::exp2": exp2,
        "aten::expm1": expm1,
        "aten::frac": frac,
        "aten::index_add": index_add,
        "aten::index_put": index_put,
        "aten::lerp": lerp,
        "aten::meshgrid": meshgrid,
        "aten::mish": mish,
        "aten::numel": numel,
        "aten::pixel_unshuffle": pixel_unshuffle,
        "aten::rms_norm": rms_norm,
        "aten::rot90": rot90,
        "aten::std": _spread("std"),
        "aten::std_mean": _spread("std", with_mean=True),
        "aten::unfold": unfold,
        "aten::var": _spread("var"),
        "aten::var_mean": _spread("var", with_mean=True),
        **{
            f"aten::max_pool{axes}d_with_indices": functools.partial(max_pool, axes)
            for axes in (1, 2, 3)
        },
    }


def channel_shuffle(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::channel_shuffle(input, groups)`."""
    from tvm import relay

    data, groups = inputs[0], int(inputs[1])
    batch, channels, *rest = shape_of(data)
    grouped = relay.reshape(data, (batch, groups, channels // groups, *rest))
    axes = [0, 2, 1, *range(3, 3 + len(rest))]
    return relay.reshape(relay.transpose(grouped, axes), (batch, channels, *rest))


def cross_entropy(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::cross_entropy_loss(input, target, weight, reduction, ignore_index, label_smoothing)`.

    TVM's own takes scores of two axes, and drops the smoothing.
    """
    import numpy as np
    from tvm import relay

    (data, target, weight), (reduction, ignored, smoothing) = inputs[:3], inputs[3:6]
    dtype, shape = types[0], shape_of(data)
    axis, rank = (0, 1) if len(shape) == 1 else (1, len(shape))
    wide, classes = "float64" if dtype == "float64" else "float32", shape[axis]
    along = [classes if each == axis else 1 for each in range(rank)]
    scores = relay.nn.log_softmax(relay.cast(data, wide), axis)
    scale = relay.const(np.ones(along), wide)
    if weight is not None:
        scale = relay.reshape(relay.cast(weight, wide), along)
    scores, zero = scores * scale, relay.const(0.0, wide)
    if "float" in types[1]:  # probabilities
        kept = relay.const(1.0 - smoothing, wide)
        parts = relay.cast(target, wide) * kept + relay.const(smoothing / classes, wide)
        loss, count = -relay.sum(scores * parts, axis), relay.const(_places(shape, axis), wide)
    else:
        known = relay.expand_dims(relay.not_equal(target, relay.const(ignored, types[1])), axis)
        numbers = relay.const(np.arange(classes).reshape(along), types[1])
        meant = relay.logical_and(relay.equal(relay.expand_dims(target, axis), numbers), known)
        spread = relay.where(known, scores * relay.const(smoothing / classes, wide), zero)
        chosen = relay.where(meant, scores * relay.const(1.0 - smoothing, wide), zero)
        loss = -relay.sum(chosen + spread if smoothing else chosen, axis)
        count = relay.sum(relay.where(meant, scale, zero))
    if reduction:  # 1 is the mean, 2 the sum
        loss = relay.sum(loss) / count if reduction == 1 else relay.sum(loss)
    return relay.cast(loss, dtype)


def _places(shape: Sequence[int], axis: int) -> float:
    """The number of elements of a tensor beside an axis."""
    return float(math.prod(shape)) / shape[axis]


def pixel_unshuffle(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::pixel_unshuffle(input, factor)`."""
    from tvm import relay

    data, by = inputs[0], int(inputs[1])
    *batch, channels, rows, columns = shape_of(data)
    parts = relay.reshape(data, (*batch, channels, rows // by, by, columns // by, by))
    axes = [*range(len(batch)), *(len(batch) + each for each in (0, 2, 4, 1, 3))]
    shape = (*batch, channels * by * by, rows // by, columns // by)
    return relay.reshape(relay.transpose(parts, axes), shape)


def rot90(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::rot90(input, k, dims)`."""
    from tvm import relay

    data, turns = inputs[0], int(inputs[1]) % 4
    rank = len(shape_of(data))
    first, second = (int(each) % rank for each in inputs[2])
    flipped = {0: (), 1: (second,), 2: (first, second), 3: (first,)}[turns]
    for axis in flipped:
        data = relay.reverse(data, axis)
    if turns % 2:
        data = relay.transpose(data, _swapped(rank, first, second))
    return data


def _swapped(rank: int, one: int, other: int) -> list[int]:
    """The axes in order, but for two."""
    axes = list(range(rank))
    axes[one], axes[other] = axes[other], axes[one]
    return axes


def diagonal(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::diagonal(input, offset, dim1, dim2)`."""
    from tvm import relay

    data, offset = inputs[0], int(inputs[1])
    shape = shape_of(data)
    first, second = (int(each) % len(shape) for each in inputs[2:4])
    rest = [axis for axis in range(len(shape)) if axis not in (first, second)]
    rows, columns = shape[first], shape[second]
    places = [row * columns + row + offset for row in range(rows) if 0 <= row + offset < columns]
    matrices = relay.transpose(data, [*rest, first, second])
    flat = relay.reshape(matrices, (*(shape[axis] for axis in rest), rows * columns))
    return relay.take(flat, relay.const(places, "int64"), axis=len(rest))


def unfold(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::unfold(input, dimension, size, step)`: windows, their elements in the last axis."""
    from tvm import relay

    data, size, step = inputs[0], int(inputs[2]), int(inputs[3])
    shape = shape_of(data)
    axis = int(inputs[1]) % len(shape)
    starts = range(0, shape[axis] - size + 1, step)
    places = [[start + place for place in range(size)] for start in starts]
    windows = relay.take(data, relay.const(places, "int64"), axis=axis)
    axes = [each for each in range(len(shape) + 1) if each != axis + 1]
    return relay.transpose(windows, [*axes, axis + 1])


def index_add(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::index_add(input, dim, index, source, alpha)`."""
    from tvm import relay

    data, index, source, alpha = inputs[0], inputs[2], inputs[3], inputs[4]
    shape = shape_of(source)
    axis = int(inputs[1]) % len(shape)
    index = relay.reshape(
        relay.cast(index, "int64"), [-1 if i == axis else 1 for i in range(len(shape))]
    )
    if alpha != 1:
        source = source * relay.const(alpha, types[3])
    return relay.scatter_elements(data, relay.broadcast_to(index, shape), source, axis, "add")


def index_put(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::index_put(input, indices, values, accumulate)`, of the first axes or one number.

    Raises Refused for other axes, and where a mask takes several values.
    """
    import numpy as np
    from tvm import relay
    from tvm.relay.frontend.common import infer_type

    data, places, values, adds = inputs[:4]
    shape = shape_of(data)
    if any(each is None for each in places):
        raise Refused("aten::index_put with a slice before an index")
    if any(infer_type(each).checked_type.dtype == "bool" for each in places):
        if len(places) > 1 or adds or any(extent != 1 for extent in shape_of(values)):
            raise Refused("aten::index_put with a mask and several values")
        mask = shape_of(places[0])
        wide = relay.reshape(places[0], (*mask, *(1 for _ in shape[len(mask) :])))
        return relay.where(wide, relay.reshape(values, ()), data)
    common = np.broadcast_shapes(*map(shape_of, places))
    places = [
        relay.broadcast_to(relay.cast(each, "int64"), common) for each in counted(data, places)
    ]
    values = relay.broadcast_to(values, (*common, *shape[len(places) :]))
    return relay.scatter_nd(data, relay.stack(places, 0), values, "add" if adds else "update")


def expm1(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::expm1(input)`, without a difference of numbers near 1."""
    from tvm import relay

    data, dtype = inputs[0], types[0]
    half, one = relay.const(0.5, dtype), relay.const(1.0, dtype)
    return relay.tanh(data * half) * (relay.exp(data) + one)


def exp2(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::exp2(input)`."""
    from tvm import relay

    return relay.power(relay.const(2.0, types[0]), inputs[0])


def lerp(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::lerp(start, end, weight)`; the weight is a tensor or a number."""
    from tvm import relay

    start, end, weight = inputs
    if not isinstance(weight, relay.Expr):
        weight = relay.const(float(weight), types[0])
    return start + weight * (end - start)


def frac(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::frac(input)`."""
    from tvm import relay

    return inputs[0] - relay.trunc(inputs[0])


def meshgrid(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::meshgrid(tensors, indexing)`; with "xy" the first two axes change places."""
    from tvm import relay

    tensors, *indexing = inputs
    axes = list(range(len(tensors)))
    if "xy" in indexing and len(tensors) > 1:
        axes[:2] = [1, 0]
    extents = [math.prod(shape_of(each)) for each in tensors]
    grid = [extents[axes.index(axis)] for axis in range(len(axes))]
    found = []
    for tensor, axis in zip(tensors, axes, strict=True):
        along = [-1 if place == axis else 1 for place in range(len(axes))]
        found.append(relay.broadcast_to(relay.reshape(tensor, along), grid))
    return relay.expr.TupleWrapper(relay.Tuple(found), len(found))


def mish(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::mish(input)`: x tanh(log(1 + exp(x)))."""
    from tvm import relay

    data, dtype = inputs[0], types[0]
    zero, one = relay.const(0.0, dtype), relay.const(1.0, dtype)
    softplus = relay.maximum(data, zero) + relay.log(relay.exp(-relay.abs(data)) + one)
    return data * relay.tanh(softplus)


def rms_norm(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::rms_norm(input, normalized_shape, weight, eps)`, of 16 bits in float32."""
    import torch
    from tvm import relay

    (data, shape, weight), dtype = inputs[:3], types[0]
    wide = "float64" if dtype == "float64" else "float32"
    eps = torch.finfo(getattr(torch, wide)).eps if inputs[3] is None else inputs[3]
    data = relay.cast(data, wide)
    mean = relay.mean(data * data, axis=list(range(-len(shape), 0)), keepdims=True)
    found = data * relay.rsqrt(mean + relay.const(eps, wide))
    return relay.cast(found if weight is None else found * relay.cast(weight, wide), dtype)


def numel(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::numel(input)`, a constant, which TVM would count at run time."""
    from tvm import relay

    return relay.const(math.prod(shape_of(inputs[0])), "int64")


def count_nonzero(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::count_nonzero(input, dim)`."""
    from tvm import relay

    data, axes = inputs[:2]
    if types[0] != "bool":
        data = relay.not_equal(data, relay.const(0, types[0]))
    return relay.sum(relay.cast(data, "int64"), axis=axes if axes != [] else None)


def _spread(name: str, *, with_mean: bool = False) -> Converter:
    """`aten::var(input, dim, correction, keepdim)` and its like, in each of their forms."""

    def converted(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        from tvm import relay

        data, dtype = inputs[0], types[0]
        # (input, unbiased), (input, dim, unbiased, keepdim), (input, dim, correction, keepdim)
        axes, free, kept = (None, inputs[1], False) if len(inputs) == 2 else inputs[1:4]
        free = 1 if free is None else float(free)
        shape = shape_of(data)
        axes = range(len(shape)) if axes is None or axes == [] else axes
        over = sorted(int(each) % len(shape) for each in (axes if shape else ()))
        count = math.prod(shape[axis] for axis in over)
        wide = "float64" if dtype == "float64" else "float32"
        data = relay.cast(data, wide)
        mean = relay.mean(data, axis=over, keepdims=True) if over else data
        apart = data - mean
        square = relay.sum(apart * apart, axis=over, keepdims=True) if over else apart * apart
        left = max(0.0, count - free)
        found = square / relay.const(left, wide) if left else square * relay.const(math.inf, wide)
        if name == "std":
            found = relay.sqrt(found)
        results = [found, mean] if with_mean else [found]
        if not kept and over:
            results = [relay.squeeze(each, over) for each in results]
        results = [relay.cast(each, dtype) for each in results]
        return tuple(results) if with_mean else results[0]

    return converted


def embedding_bag(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::embedding_bag(weight, indices, offsets, …)` of bags that are equally long.

    Its further outputs, which serve training, are none. Raises Refused for other bags.
    """
    import numpy as np
    from tvm import relay
    from tvm.relay.frontend.common import try_infer_value

    table, indices, offsets, _, mode, _, scales, is_last_given, padding = inputs[:9]
    width = shape_of(table)[1]
    (count,) = shape_of(indices)
    starts = try_infer_value(offsets)[0]
    if isinstance(starts, np.ndarray) and is_last_given:
        *starts, end = starts
        if end != count:
            raise Refused("aten::embedding_bag whose last offset is not the number of indices")
        starts = np.array(starts)
    bags = 0 if not isinstance(starts, np.ndarray) else len(starts)
    if not bags or count % bags or (starts != np.arange(bags) * (count // bags)).any():
        raise Refused("aten::embedding_bag of bags whose lengths are not constant and equal")
    length, dtype = count // bags, types[0]
    found = relay.reshape(relay.take(table, indices, axis=0), (bags, length, width))
    if scales is not None:
        found = found * relay.reshape(scales, (bags, length, 1))
    number = relay.const(float(length), dtype)
    if padding is not None and padding >= 0:
        known = relay.not_equal(indices, relay.const(padding, types[1]))
        known = relay.reshape(known, (bags, length, 1))
        none = relay.const(-math.inf if mode == 2 else 0.0, dtype)
        found = relay.where(known, found, none)
        number = relay.sum(relay.cast(known, dtype), axis=1)
    if mode == 2:
        largest = relay.max(found, axis=1)
        is_empty = relay.equal(number, relay.const(0.0, dtype))
        largest = relay.where(is_empty, relay.const(0.0, dtype), largest)
        return largest, None, None, None
    total = relay.sum(found, axis=1)
    if mode == 1:
        total = total / relay.maximum(number, relay.const(1.0, dtype))
    return total, None, None, None


def max_pool(axes: int, inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::max_pool2d_with_indices(input, kernel, stride, padding, dilation, ceil_mode)`.

    And of other numbers of axes. An index counts the elements of the axes that are pooled; of
    equal elements it is the first one's, of several NaN the last one's.
    """
    import numpy as np
    from tvm import relay

    data, dtype, shape = inputs[0], types[0], shape_of(inputs[0])
    kernel, stride, padding, dilation = (_each(given, axes) for given in inputs[1:5])
    stride = stride or kernel
    lead, extents = shape[:-axes], shape[-axes:]
    places = []  # of each window's elements along an axis, of places beyond it too
    for extent, size, step, pad, apart in zip(
        extents, kernel, stride, padding, dilation, strict=True
    ):
        reach = extent + 2 * pad - apart * (size - 1) - 1
        number = -(-reach // step) if inputs[5] else reach // step
        # The last window begins inside the axis or before it.
        number -= number * step >= extent + pad
        start = np.arange(number + 1) * step - pad
        places.append(start[:, None] + np.arange(size) * apart)
    strides = [math.prod(extents[axis + 1 :]) for axis in range(axes)]
    windows = [len(each) for each in places]
    at = np.zeros((*windows, math.prod(kernel)), "int64")
    for number, within in enumerate(itertools.product(*map(range, kernel))):
        columns = [each[:, k] for each, k in zip(places, within, strict=True)]
        grid = np.meshgrid(*columns, indexing="ij")
        at[..., number] = sum(each * step for each, step in zip(grid, strides, strict=True))
        inside = [(e >= 0) & (e < extent) for e, extent in zip(grid, extents, strict=True)]
        at[..., number] = np.where(np.logical_and.reduce(inside), at[..., number], -1)
    known = at >= 0
    # Beyond the edge stands the window's first element inside, below all others.
    first = np.take_along_axis(at, known.argmax(-1)[..., None], -1)
    at = np.where(known, at, first)
    flat = relay.reshape(data, (*lead, math.prod(extents)))
    elements = relay.take(flat, relay.const(at, "int64"), axis=len(lead))
    order = ordered(elements, dtype)
    if "float" in dtype:
        whole = "int64" if dtype == "float64" else "int32"
        later = relay.const(np.arange(1 - at.shape[-1], 1), whole)
        order = relay.where(relay.isnan(elements), order + later, order)
        dtype = whole
    order = relay.where(relay.const(known), order, relay.const(np.iinfo(dtype).min, dtype))
    # Of nothing but the least number, which the reduction begins with, the place is -1.
    best = relay.maximum(relay.argmax(order, axis=-1, keepdims=True), relay.const(0, "int32"))
    value = relay.squeeze(relay.gather(elements, -1, best), [-1])
    all_places = relay.broadcast_to(relay.const(at, "int64"), (*lead, *at.shape))
    return value, relay.squeeze(relay.gather(all_places, -1, best), [-1])


def _each(given: Any, axes: int) -> list[int]:
    """A setting for each axis; empty where it is left out."""
    listed = [int(each) for each in given] if isinstance(given, (list, tuple)) else [int(given)]
    return listed * axes if len(listed) == 1 else listed
