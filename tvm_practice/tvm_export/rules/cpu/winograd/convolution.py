"""Which convolutions Winograd's algorithm computes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import Contraction
from tvm_practice.tvm_export.rules.cpu.loops import (
    REDUCTION,
    SPATIAL,
    both_orders,
    constant,
    kind_of,
    loads,
)

# With fewer tiles the weights, 16 values instead of 9, take longer to fetch than they are used.
_FEWEST_TILES = 48


@dataclass(frozen=True)
class Convolution:
    """A convolution over 3x3 windows, without stride, of constant weights, in float32.

    Attributes:
        images, channels, filters: extents.
        height, width: of the output, in elements.
        channels_last: whether it is NHWC with weights HWIO, and not NCHW with OIHW.
    """

    images: int
    channels: int
    filters: int
    height: int
    width: int
    channels_last: bool


def find_convolution(found: Contraction) -> Convolution:
    """The convolution that a contraction is.

    Raises:
        NotApplicable: it is another contraction, or so small that nothing would be gained.
    """
    _require_multiply_add(found)
    layer = _require_convolution(found)
    tiles = layer.images * math.ceil(layer.height / 2) * math.ceil(layer.width / 2)
    if tiles < _FEWEST_TILES:
        raise NotApplicable(f"{tiles} tiles of 2x2 outputs are too few to gain")
    return layer


def _require_multiply_add(found: Contraction) -> None:
    """NotApplicable unless a step adds the product of the two operands to a sum from 0.

    The transforms hold for such sums alone: not for a maximum, say, nor for |x - w|.
    """
    import tvm_ffi
    from tvm import tirx

    step, start = found.value, found.block.init.value
    total = tirx.BufferLoad(found.block.body.buffer, _written_at(found))
    for own, product in both_orders(step, tirx.Add):
        for one, other in both_orders(product, tirx.Mul):
            if (
                tvm_ffi.structural_equal(own, total)
                and tvm_ffi.structural_equal(one, found.packed)
                and tvm_ffi.structural_equal(other, found.other)
                and getattr(start, "value", None) == 0
            ):
                return
    raise NotApplicable("a step does not add a product of the operands to a sum from 0")


def _written_at(found: Contraction) -> list[Any]:
    """The indices of the output as `found.value` reads it, iterators of extent 1 replaced by 0."""
    out = found.block.body.buffer
    own = [each for each in loads(found.value) if each.source.same_as(out)]
    return list(own[0].indices) if own else []


def _require_convolution(found: Contraction) -> Convolution:
    """The convolution; NotApplicable if it is no plain 3x3 convolution."""
    iterators = {each.var: constant(each.dom.extent) for each in found.block.iter_vars}
    spatial = [each.var for each in found.block.iter_vars if kind_of(each) == SPATIAL]
    reduced = [each.var for each in found.block.iter_vars if kind_of(each) == REDUCTION]
    out = found.block.body
    if not found.prepack:
        raise NotApplicable("the weights are no constant")
    if len(spatial) != 4 or len(reduced) != 3 or None in iterators.values():
        raise NotApplicable("it is no convolution over two axes of constant extents")
    if str(out.buffer.dtype) != "float32" or list(out.indices) != spatial:
        raise NotApplicable("the output is not float32, or of another layout")
    channels_last = [iterators[each] for each in reduced[:2]] == [3, 3]
    (n, *middle), (r, s, c) = spatial, reduced
    y, x, f = middle
    if not channels_last:
        (f, y, x), (c, r, s) = middle, reduced
    if [iterators[r], iterators[s]] != [3, 3] or not all(
        each.same_as(found.origin.get(each)) for each in (f, y, x)
    ):
        raise NotApplicable("the window is not 3x3, or the convolution is in groups")
    image = n if n in found.origin else 0
    weights, data = [f, c, r, s], [image, c, y + r, x + s]
    if channels_last:
        weights, data = [r, s, c, f], [image, y + r, x + s, c]
    if not _reads(found.packed, weights) or not _reads(found.other, data):
        raise NotApplicable("the window has a stride or a dilation, or the layout is another")
    images, channels, filters, height, width = (iterators[each] or 0 for each in (n, c, f, y, x))
    return Convolution(images, channels, filters, height, width, channels_last)


def _reads(load: Any, indices: Sequence[Any]) -> bool:
    """Whether a load is of these indices."""
    import tvm

    analyzer = tvm.sym.Analyzer()
    return len(load.indices) == len(indices) and all(
        analyzer.can_prove_equal(one, other)
        for one, other in zip(load.indices, indices, strict=True)
    )
