"""Convolutions over pixels counted by one iterator: a tile's rows go on in the next line.

With the channels last, the sum of a convolution is out[n, y, x, f], and a tile of rows is some x of
one line. Lines of 14 or 7 pixels waste a part of most tiles. Here n, y and x become one iterator,
the pixel, so that only the last tile of all can reach beyond the end:

    out[pixel, f] += in[n(pixel), y(pixel) * stride + r, x(pixel) * stride + s, c] * w[r, s, c, f]

The rule schedules that function; afterwards the output has its own shape again. It pays in float32
where the cycles that are taken for it are fewer, and on tile registers where the pixels, if they
are neighbours in the input, fill fewer registers of rows.
"""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import find_contraction, least_cost
from tvm_practice.tvm_export.rules.cpu.dot_products import in_groups
from tvm_practice.tvm_export.rules.cpu.loops import (
    SPATIAL,
    Cpu,
    blocks_of,
    constant,
    is_reduction,
    kind_of,
    loads,
    nest,
    stages,
    substitute,
    with_stages,
)
from tvm_practice.tvm_export.rules.cpu.padded import Rule, written_to
from tvm_practice.tvm_export.rules.cpu.tile_registers import tile_products

# Pixels that are no neighbours in memory have an address each, and registers hold so many.
_MOST_ADDRESSES = 8
_ADDRESSED = 1.03
# Of the cycles, or registers, what may be left at most: a smaller gain is not sure.
_LEFT = 0.97


@dataclass(frozen=True)
class _Flat:
    """A function whose last stages count pixels by one iterator.

    Attributes:
        func: the function.
        output, written: its output's buffer, and that of the function it was made of.
        extents: images, lines, pixels per line.
        linear: whether neighbouring pixels are neighbours in the convolution's input too.
        types: that its last stages write.
    """

    func: Any
    output: Any
    written: Any
    extents: tuple[int, int, int]
    linear: bool
    types: set[str]


def flat(rule: Rule) -> Rule:
    """A rule that takes a convolution over pixels, where that makes for fuller tiles."""

    def scheduled(func: Any, cpu: Cpu) -> Any:
        import tvm

        made = _that_pays(func, cpu)
        if made is None:
            return rule(func, cpu)
        schedule = rule(made.func, cpu)

        def at(indices: Any) -> list[Any]:
            return [*_pixel(indices[0], made.extents), indices[1]]

        func = written_to(schedule.mod["main"], made.output, made.written, at)
        return tvm.s_tir.Schedule(func)

    return scheduled


def tiled_function(func: Any, cpu: Cpu) -> Any:
    """The function that `flat` has its rule schedule: over pixels, or `func` itself."""
    made = _that_pays(func, cpu)
    return func if made is None else made.func


def _that_pays(func: Any, cpu: Cpu) -> _Flat | None:
    made = _flattened(func)
    if made is None:
        return None
    try:
        found = find_contraction(made.func, cpu)
        if found.outer or len(found.rows) != 1 or found.transposed or not found.prepack:
            return None  # channels come first, say
        if made.linear and (registers := _registers_of_rows(made.func, cpu)):
            before = _registers_of_rows(func, cpu) or registers
            return made if registers < _LEFT * before else None
        if made.types != {"float32"}:
            return None
        cost, tile = least_cost(found, cpu)
    except NotApplicable:
        return None
    if not made.linear:
        if math.prod(tile.rows.values()) > _MOST_ADDRESSES:
            return None
        cost *= _ADDRESSED
    of_lines, _ = least_cost(find_contraction(func, cpu), cpu)
    return made if cost < _LEFT * of_lines else None


def _registers_of_rows(func: Any, cpu: Cpu) -> int:
    """How many of them tile registers multiply, of every panel; 0 where they do not."""
    found = in_groups(func, find_contraction(func, cpu), cpu)[1]
    products = tile_products(found, cpu)
    return products.registers_of(found) if products else 0


def _flattened(func: Any) -> _Flat | None:
    """The function over pixels; None where it is no such convolution."""
    from tvm import tirx

    try:
        blocks = blocks_of(func)
    except NotApplicable:
        return None
    sums = [number for number, each in enumerate(blocks) if is_reduction(each)]
    if len(sums) != 1 or not all(isinstance(e.body, tirx.BufferStore) for e in blocks):
        return None
    last = blocks[sums[0] :]
    extents = _extents(last[0])
    if extents is None or any(_extents(each) != extents for each in last):
        return None
    written = [each.body.buffer for each in last]
    output = written[-1]
    plain = all(_reads_in_place(each, written) for each in last)
    if not plain or not any(output.same_as(each) for each in func.params):
        return None
    if any(each.source.same_as(one) for each in _loads_of(blocks[: sums[0]]) for one in written):
        return None
    images, lines, pixels, channels = extents
    index = str(last[0].iter_vars[0].var.ty.dtype)
    shape = [tirx.const(images * lines * pixels, index), tirx.const(channels, index)]
    made = {each: tirx.decl_buffer(shape, each.dtype, str(each.name)) for each in written}
    spans = (images, lines, pixels)
    statements = [*stages(func)[: sums[0]], *(_over_pixels(each, made, spans) for each in last)]
    kept = [made.get(each, each) for each in func.body.block.alloc_buffers]
    body = with_stages(func, statements, kept).body
    params = [made.get(each, each) for each in func.params]
    flattened = tirx.PrimFunc(params, body, func.ret_type, func.attrs)
    types = {str(each.dtype) for each in written}
    return _Flat(flattened, made[output], output, spans, _is_linear(last[0], spans), types)


def _extents(block: Any) -> tuple[int, int, int, int] | None:
    """Of a block that writes at its four spatial iterators, in order; else None."""
    spatial = [each for each in block.iter_vars if kind_of(each) == SPATIAL]
    store = block.body
    if len(spatial) != 4 or len(store.indices) != 4:
        return None
    if not all(a.same_as(b.var) for a, b in zip(store.indices, spatial, strict=True)):
        return None
    found = [constant(each.dom.extent) for each in spatial]
    if [constant(each) for each in store.buffer.shape] != found or None in found:
        return None
    images, lines, pixels, channels = (each or 0 for each in found)
    return (images, lines, pixels, channels) if images * lines > 1 else None


def _loads_of(blocks: list[Any]) -> list[Any]:
    return [load for each in blocks for load in loads(each.body)]


def _reads_in_place(block: Any, buffers: list[Any]) -> bool:
    """Whether a block reads the buffers, if at all, where it writes."""
    at = block.body.indices
    return all(
        all(a.same_as(b) for a, b in zip(load.indices, at, strict=True))
        for load in loads(block.body)
        if any(load.source.same_as(each) for each in buffers)
    )


def _is_linear(block: Any, extents: tuple[int, int, int]) -> bool:
    """Whether what a sum reads of a pixel lies by pixels: no window, stride or padding."""
    at = block.body.indices[:3]
    read = [each for each in loads(block.body) if not each.source.same_as(block.body.buffer)]
    return any(
        len(load.indices) == 4
        and all(a.same_as(b) for a, b in zip(load.indices[:3], at, strict=True))
        and [constant(each) for each in load.source.shape[:3]] == list(extents)
        for load in map(_without_window(block), read)
    )


def _without_window(block: Any) -> Any:
    """A change of loads that leaves out windows of one element."""
    import tvm
    from tvm import tirx

    ones = {
        each.var: tirx.const(0, str(each.var.ty.dtype))
        for each in block.iter_vars
        if kind_of(each) != SPATIAL and constant(each.dom.extent) == 1
    }
    analyzer = tvm.sym.Analyzer()

    def changed(load: Any) -> Any:
        at = [analyzer.simplify(substitute(each, ones)) for each in load.indices]
        return tirx.BufferLoad(load.source, at)

    return changed


def _pixel(pixel: Any, extents: tuple[int, int, int]) -> list[Any]:
    """Image, line and place in the line of a pixel."""
    from tvm import tirx

    images, lines, pixels = extents
    zero = tirx.const(0, str(pixel.ty.dtype))
    image = tirx.floordiv(pixel, lines * pixels) if images > 1 else zero
    inside = tirx.floormod(pixel, lines * pixels) if images > 1 else pixel
    return [image, tirx.floordiv(inside, pixels), tirx.floormod(pixel, pixels)]


def _over_pixels(block: Any, made: dict[Any, Any], extents: tuple[int, int, int]) -> Any:
    """A stage with pixels for images, lines and places."""
    import tvm_ffi
    from tvm import tirx
    from tvm.ir.expr import TensorLoad

    spatial = [each for each in block.iter_vars if kind_of(each) == SPATIAL]
    index = str(spatial[0].var.ty.dtype)
    axes: list[tuple[Hashable, Any, str]] = [
        ("pixel", tirx.const(math.prod(extents), index), SPATIAL),
        *((e.var, e.dom.extent, kind_of(e)) for e in block.iter_vars if e not in spatial[:3]),
    ]
    channel, buffer = spatial[3].var, made[block.body.buffer]

    def of(value: Any, values: dict[Hashable, Any]) -> Any:
        at = [values["pixel"], values[channel]]

        def moved(load: Any) -> Any:
            return tirx.BufferLoad(made[load.source], at) if load.source in made else load

        own = dict(zip((e.var for e in spatial), _pixel(at[0], extents), strict=False))
        own |= {key: each for key, each in values.items() if key != "pixel"}
        value = tvm_ffi.structural_map(value, (TensorLoad, moved), order="post")
        return substitute(value, own)

    def store(values: dict[Hashable, Any]) -> Any:
        at = [values["pixel"], values[channel]]
        return tirx.BufferStore(buffer, of(block.body.value, values), at)

    def init(values: dict[Hashable, Any]) -> Any:
        at = [values["pixel"], values[channel]]
        return tirx.BufferStore(buffer, block.init.value, at)

    return nest(
        str(block.name_hint),
        axes,
        store,
        init=init if block.init is not None else None,
        annotations=block.annotations,
    )
