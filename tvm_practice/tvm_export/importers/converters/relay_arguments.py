"""Arguments that classic TVM's converters drop or cannot do without: changed here, or refused."""

import math
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.converters.relay import shape_of
from tvm_practice.tvm_export.importers.refusals import Refused

# What adds elements up, and float16 does not hold a sum; functions that TVM compiles for wider
# numbers alone, or in steps that each round.
_IN_FLOAT32 = re.compile(
    r"aten::((adaptive_)?avg_pool\dd|mean|var|std|(layer|group|instance)_norm"
    r"|scaled_dot_product_attention|linalg_vector_norm"
    r"|acosh?|asinh?|atanh?|atan2|hard(swish|sigmoid)|(log_?)?softmax|logcumsumexp|leaky_relu)"
)


def heeded(
    operator: str, inputs: Sequence[Any], types: Sequence[str]
) -> tuple[list[Any], Sequence[str]]:
    """An operator's inputs and their types, so that its converter needs no more than it heeds.

    Sums and some functions of float16 are taken in float32: a result of another width is cast
    back, see `results_as_traced`. Raises Refused where an argument would be dropped.
    """
    name = operator.removesuffix("_")
    given = list(inputs)
    if types and types[0] == "float16" and _IN_FLOAT32.fullmatch(name):
        given, types = _widened(given, types)
    change = _CHANGES.get(name)
    return (change(operator, given, types) if change else given), types


def _widened(inputs: list[Any], types: Sequence[str]) -> tuple[list[Any], list[str]]:
    """Tensors of float16 in float32, and their types."""
    from tvm import relay

    wide = ["float32" if each == "float16" else each for each in types]
    for place, (given, dtype) in enumerate(zip(inputs, types, strict=False)):
        if isinstance(given, relay.Expr) and dtype == "float16":
            inputs[place] = relay.cast(given, "float32")
    return inputs, wide


def _scaled(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::add(input, other, alpha)` with 1 for alpha."""
    from tvm import relay

    if len(inputs) < 3 or inputs[2] == 1:
        return inputs
    one, other, alpha = inputs
    by = relay.const(alpha, types[1]) if isinstance(other, relay.Expr) else alpha
    return [one, other * by, 1]


def _times_zeros(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::mul(input, 0.0)` by a tensor of one 0: TVM takes x * 0 for 0, also of infinities."""
    import numpy as np
    from tvm import relay

    one, other = inputs[:2]
    if isinstance(other, float) and other == 0 and "float" in types[0] and shape_of(one):
        inputs[1] = relay.const(np.full((1,), other), types[0])
    return inputs


def _of_one_size(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::scatter(input, dim, index, source, …)`, which Relay has for an index of all of them.

    One that is shorter is left to PyTorch's operators, see `relay_operators`.
    """
    from tvm import relay

    x, index, source = shape_of(inputs[0]), shape_of(inputs[2]), inputs[3]
    if len(index) == len(x) > 0:
        axis = int(inputs[1]) % len(x)
        beside = [size for place, size in enumerate(x) if place != axis]
        reached = [size for place, size in enumerate(index) if place != axis]
        whole = not isinstance(source, relay.Expr) or shape_of(source) in (index, ())
        if beside != reached or not whole:
            raise Refused(f"{operator} by an index shorter than the tensor or the source")
    return inputs


def _without_divisor(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::avg_pool2d(input, kernel, stride, padding, ceil, count_include_pad, divisor)`."""
    if inputs[6] is not None:
        raise Refused(f"{operator} with divisor_override={inputs[6]}")
    return _in_a_batch(operator, inputs, types)


def _in_a_batch(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::max_pool2d(input, …)` and its like, of one example as of a batch of one."""
    from tvm import relay

    axes = re.search(r"pool(\d)d", operator)
    rank = int(axes[1]) + 2 if axes else 4
    if len(shape_of(inputs[0])) == rank - 1:
        inputs[0] = relay.expand_dims(inputs[0], 0)
    return _of_known_sizes(operator, inputs, types) if "adaptive" in operator else inputs


def _from_the_first(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::index(input, indices)`: TVM takes negative ones for places before the tensor."""
    inputs[1] = counted(inputs[0], inputs[1])
    return inputs


def counted(data: Any, indices: Sequence[Any]) -> list[Any]:
    """Indices of a tensor's first axes, counted from its start; masks and None stay as they are."""
    from tvm import relay
    from tvm.relay.frontend.common import infer_type

    extents, axis, found = shape_of(data), 0, []
    for each in indices:
        dtype = None if each is None else infer_type(each).checked_type.dtype
        if dtype is None or dtype == "bool":
            axis += 1 if dtype is None else len(shape_of(each))
            found.append(each)
            continue
        after = each + relay.const(extents[axis], dtype)
        found.append(relay.where(relay.less(each, relay.const(0, dtype)), after, each))
        axis += 1
    return found


def _around(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::pad(input, pad, mode, value)` without the circular mode, which TVM refuses."""
    from tvm import relay

    if inputs[2] != "circular":
        return inputs
    data, ends = inputs[0], [int(each) for each in inputs[1]]
    rank = len(shape_of(data))
    for place, (before, after) in enumerate(zip(ends[::2], ends[1::2], strict=True), start=1):
        extent = shape_of(data)[rank - place]
        places = [each % extent for each in range(-before, extent + after)]
        data = relay.take(data, relay.const(places, "int64"), axis=rank - place)
    return [data, [0] * len(ends), "constant", 0.0]


def _with_weights(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::group_norm(input, groups, weight, bias, eps)` with a weight and a bias."""
    import numpy as np
    from tvm import relay

    channels = shape_of(inputs[0])[1]
    for place, value in ((2, 1), (3, 0)):
        if inputs[place] is None:
            inputs[place] = relay.const(np.full(channels, value), types[0])
    return inputs


def _within(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::slice(input, dim, start, end, step)` from one element of the axis to another."""
    given = inputs[2:5]
    extent = shape_of(inputs[0])[int(inputs[1])]
    if not all(each is None or isinstance(each, int) for each in (*given, extent)):
        return inputs
    start, end, _ = slice(*given).indices(extent)
    # A slice of the whole axis is left out where its end is the largest number.
    inputs[2:4] = [start, sys.maxsize if end == extent else max(start, end)]
    return inputs


def _of_known_sizes(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::unflatten(input, dim, sizes)` with numbers for sizes that the model computes.

    And `aten::adaptive_avg_pool2d(input, sizes)` and its like.
    """
    from tvm import relay
    from tvm.relay.frontend.common import try_infer_value

    inputs[-1] = [
        int(try_infer_value(each)[0]) if isinstance(each, relay.Expr) else each
        for each in inputs[-1]
    ]
    return inputs


def _by_size(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::upsample_…(input, size, [align_corners,] scales)`: places follow from the sizes."""
    *_, aligned, scales = inputs
    if not scales or aligned is True:
        return inputs
    extents = shape_of(inputs[0])[2:]
    if any(extent * by != int(extent * by) for extent, by in zip(extents, scales, strict=True)):
        raise Refused(f"{operator} of {extents} by {list(scales)}, which gives no whole size")
    return inputs


def _repeated(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::_convolution` over three axes, with a channel for each filter where it has several.

    Run, TVM's own is called with a buffer of another shape.
    """
    from tvm import relay

    filters, channels, *window = shape_of(inputs[1])
    transposed, groups = inputs[6], int(inputs[8])
    if len(window) == 3 and channels == 1 and 1 < groups < filters and not transposed:
        inputs[0] = relay.repeat(inputs[0], filters // groups, axis=1)
        inputs[8] = filters
    return inputs


def _by_magnitude(operator: str, inputs: list[Any], types: Sequence[str]) -> list[Any]:
    """`aten::linalg_vector_norm(input, ord, dim, …)` of one element each, which is its magnitude.

    The square of a large element would overflow; the largest magnitude, an order too, does not.
    """
    extents = shape_of(inputs[0])
    if inputs[1] and all(extents[axis] == 1 for axis in inputs[2] or range(len(extents))):
        inputs[1] = math.inf
    return inputs


_CHANGES: dict[str, Callable[[str, list[Any], Sequence[str]], list[Any]]] = {
    "aten::_convolution": _repeated,
    "aten::add": _scaled,
    "aten::avg_pool2d": _without_divisor,
    "aten::avg_pool3d": _without_divisor,
    "aten::group_norm": _with_weights,
    "aten::index": _from_the_first,
    "aten::linalg_vector_norm": _by_magnitude,
    "aten::mul": _times_zeros,
    "aten::pad": _around,
    "aten::pixel_shuffle": _in_a_batch,
    "aten::avg_pool1d": _in_a_batch,
    **{
        f"aten::{kind}_pool{axes}d{more}": _in_a_batch
        for kind, more in (
            ("max", ""),
            ("max", "_with_indices"),
            ("adaptive_avg", ""),
            ("adaptive_max", ""),
        )
        for axes in (1, 2, 3)
    },
    **{f"aten::{name}": _of_one_size for name in ("scatter", "scatter_add", "scatter_reduce")},
    "aten::slice": _within,
    "aten::unflatten": _of_known_sizes,
    "aten::upsample_nearest2d": _by_size,
    "aten::upsample_nearest3d": _by_size,
    "aten::upsample_bicubic2d": _by_size,
}
