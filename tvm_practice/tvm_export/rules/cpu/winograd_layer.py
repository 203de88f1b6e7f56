"""Which convolutions Winograd's algorithm computes, and how it cuts them; see `winograd`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import Contraction
from tvm_practice.tvm_export.rules.cpu.loops import (
    REDUCTION,
    SPATIAL,
    Cpu,
    both_orders,
    constant,
    kind_of,
    loads,
)

FILTERS = 4
"""Filters of a register tile."""
UNROLL = 4
"""Channels by which the products' sum is unrolled."""
# With fewer channels or filters the transforms take what the products save; with fewer tiles the
# weights, 16 values instead of 9, take longer to fetch than they are used.
_FEWEST_CHANNELS, _FEWEST_FILTERS, _FEWEST_TILES = 32, 32, 48
# Of what is computed, at most this part of what is asked for; the rest are tiles beyond the edge.
_MOST_WASTE = 1.4


@dataclass(frozen=True)
class Layer:
    """A convolution that Winograd's algorithm can compute, and how it is cut.

    Attributes:
        images, channels, filters: extents.
        height, width: of the output, in elements.
        row: tiles in a row, those beyond the edge that fill vectors included.
        rows: rows of tiles that a thread takes at a time.
        block: tiles of a register tile.
        parts: that the filters are divided in, for the threads; each transforms the input anew.
    """

    images: int
    channels: int
    filters: int
    height: int
    width: int
    row: int
    rows: int
    block: int
    parts: int

    @property
    def chunks(self) -> int:
        """How often a thread's rows of tiles fit the height."""
        return math.ceil(self.height / (2 * self.rows))


def find_layer(found: Contraction, cpu: Cpu) -> Layer:
    """The convolution that a contraction is, cut for a processor.

    Raises:
        NotApplicable: it is another contraction, or would gain nothing.
    """
    _require_multiply_add(found)
    images, filters, height, width, channels = _require_convolution(found)
    if channels < _FEWEST_CHANNELS or filters < _FEWEST_FILTERS:
        raise NotApplicable(f"{channels} channels and {filters} filters are too few to gain")
    if channels % UNROLL or filters % FILTERS:
        raise NotApplicable(f"{channels} channels or {filters} filters do not divide by 4")
    tiles = images * math.ceil(height / 2) * math.ceil(width / 2)
    if tiles < _FEWEST_TILES:
        raise NotApplicable(f"{tiles} tiles of 2x2 outputs are too few to gain")
    return _cut(images, channels, filters, height, width, cpu)


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


def _require_convolution(found: Contraction) -> tuple[int, int, int, int, int]:
    """Images, filters, height, width, channels; NotApplicable if it is no plain 3x3 convolution."""
    import tvm

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
    (n, f, y, x), (c, r, s) = spatial, reduced
    images, filters, height, width = (iterators[each] or 0 for each in spatial)
    channels, *window = (iterators[each] or 0 for each in reduced)
    if window != [3, 3] or not all(each.same_as(found.origin.get(each)) for each in (f, y, x)):
        raise NotApplicable("the window is not 3x3, or the convolution is in groups")
    analyzer = tvm.sym.Analyzer()

    def reads(load: Any, indices: Sequence[Any]) -> bool:
        return len(load.indices) == len(indices) and all(
            analyzer.can_prove_equal(one, other)
            for one, other in zip(load.indices, indices, strict=True)
        )

    image = n if n in found.origin else 0
    if not reads(found.packed, [f, c, r, s]) or not reads(found.other, [image, c, y + r, x + s]):
        raise NotApplicable("the window has a stride or a dilation, or the layout is another")
    return images, filters, height, width, channels


def _cut(images: int, channels: int, filters: int, height: int, width: int, cpu: Cpu) -> Layer:
    """The cut of a convolution that computes least beyond its edges, and fits the cache."""
    lanes = cpu.lanes("float32")
    block = lanes * (4 if cpu.registers >= 32 else 2)
    across, down = math.ceil(width / 2), math.ceil(height / 2)
    best: tuple[float, Layer] | None = None
    # A vector is whole rows, or lies in one.
    least = 1 << (across - 1).bit_length() if across < lanes else math.ceil(across / lanes) * lanes
    for row in range(least, least + block, lanes):
        rows = block // math.gcd(row, block)
        chunks = math.ceil(down / rows)
        waste = 4 * row * rows * chunks / (height * width)
        patches = 16 * channels * row * rows * 4  # bytes
        if waste > _MOST_WASTE or 2 * patches > cpu.cache_bytes:
            continue
        parts = _parts(images * chunks, filters // FILTERS, cpu.threads)
        layer = Layer(images, channels, filters, height, width, row, rows, block, parts)
        if best is None or waste < best[0]:
            best = waste, layer
    if best is None:
        raise NotApplicable("every cut computes much beyond the edge, or does not fit the cache")
    return best[1]


def _parts(tasks: int, blocks: int, threads: int) -> int:
    """Into how many parts the filters' blocks are divided, as few as busy the threads."""
    divisors = [each for each in range(1, blocks + 1) if blocks % each == 0]
    for parts in divisors:
        count = parts * tasks
        if count >= threads and (count % threads == 0 or count >= 4 * threads):
            return parts
    return divisors[-1]
