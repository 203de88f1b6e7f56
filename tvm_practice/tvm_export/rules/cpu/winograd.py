"""3x3 convolutions with four multiplications where the sum has nine: Winograd's F(2x2, 3x3).

    Y = A^T [(G g G^T) . (B^T d B)] A

A tile of 2x2 outputs of a filter is made from a patch d of 4x4 inputs: both the patch and the
filter's 3x3 weights g are transformed to 4x4 values, which are multiplied element by element and
summed over the channels, and the sums transformed back. What is summed are 16 matrix products, one
for each element: a filter's transformed weights, a constant of the model, times those of the
tiles. Per output that is 4 multiplications a channel instead of 9. The transforms only add; the
result differs from a direct convolution's by rounding, about as much as that from the exact one.

Source: Lavin and Gray, Fast Algorithms for Convolutional Neural Networks, 2015,
https://arxiv.org/abs/1509.09308, section 4.1.

One thread takes a few rows of tiles at a time, so that what is between the transforms stays in its
second cache:

    phases      the padded input, its even and its odd columns apart: a tile is two of each
    columns     d B          in the direction of x
    patches     B^T d B      in the direction of y
    products    the sums over the channels, in register tiles of filters x tiles
    tiles       A^T [...] A
    (copy)      to the output, through the operators fused after the convolution
"""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import Contraction, find_contraction
from tvm_practice.tvm_export.rules.cpu.loops import (
    REDUCTION,
    SPATIAL,
    Axis,
    Cpu,
    constant,
    kind_of,
    nest,
    only_block,
    stages,
    with_stages,
)
from tvm_practice.tvm_export.rules.cpu.register_tiles import (
    WORK_AN_ELEMENT,
    advice_of,
    can_prepack,
)
from tvm_practice.tvm_export.rules.cpu.scheduling import (
    inline_cheap,
    iterations,
    parallelize,
    split_lanes,
)

_INPUT = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))  # B^T
_WEIGHTS = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))  # G
_OUTPUT = ((1, 1, 1, 0), (0, 1, -1, -1))  # A^T
# With fewer channels or filters the transforms take what the products save; with fewer tiles the
# weights, 16 values instead of 9, take longer to fetch than they are used.
_FEWEST_CHANNELS, _FEWEST_FILTERS, _FEWEST_TILES = 32, 32, 48
# Of what is computed, at most this part of what is asked for; the rest are tiles beyond the edge.
_MOST_WASTE = 1.4
_UNROLL = 4
_FILTERS = 4  # of a register tile


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


def schedule_winograd(func: Any, cpu: Cpu) -> Any | None:
    """The function by Winograd's algorithm; None if it is no convolution that gains by it.

    None too if a tuner has chosen its register tile (`advise`).

    Raises:
        NotApplicable: what is fused with the convolution does not go with it.
    """
    found = find_contraction(func, cpu)
    if found is None or advice_of(func) is not None:
        return None
    layer = _layer(found, cpu)
    if layer is None:
        return None
    return _schedule(_written(func, found, layer), layer, str(found.block.name_hint), cpu)


def _layer(found: Contraction, cpu: Cpu) -> Layer | None:
    """The convolution that a contraction is, None if it is another or would gain nothing."""
    import tvm

    iterators = {each.var: constant(each.dom.extent) for each in found.block.iter_vars}
    spatial = [each.var for each in found.block.iter_vars if kind_of(each) == SPATIAL]
    reduced = [each.var for each in found.block.iter_vars if kind_of(each) == REDUCTION]
    out = found.block.body
    if not found.prepack or len(spatial) != 4 or len(reduced) != 3 or None in iterators.values():
        return None
    if str(out.buffer.dtype) != "float32" or list(out.indices) != spatial:
        return None
    (n, f, y, x), (c, r, s) = spatial, reduced
    images, filters, height, width = (iterators[each] or 0 for each in spatial)
    channels, *window = (iterators[each] or 0 for each in reduced)
    if window != [3, 3] or not all(each.same_as(found.origin.get(each)) for each in (f, y, x)):
        return None
    analyzer = tvm.sym.Analyzer()

    def reads(load: Any, indices: Sequence[Any]) -> bool:
        return len(load.indices) == len(indices) and all(
            analyzer.can_prove_equal(one, other)
            for one, other in zip(load.indices, indices, strict=True)
        )

    image = n if n in found.origin else 0
    if not reads(found.packed, [f, c, r, s]) or not reads(found.other, [image, c, y + r, x + s]):
        return None
    tiles = math.ceil(height / 2) * math.ceil(width / 2)
    if channels < _FEWEST_CHANNELS or channels % _UNROLL or filters < _FEWEST_FILTERS:
        return None
    if filters % _FILTERS or images * tiles < _FEWEST_TILES:
        return None
    return _cut(images, channels, filters, height, width, cpu)


def _cut(
    images: int, channels: int, filters: int, height: int, width: int, cpu: Cpu
) -> Layer | None:
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
        parts = _parts(images * chunks, filters // _FILTERS, cpu.threads)
        layer = Layer(images, channels, filters, height, width, row, rows, block, parts)
        if best is None or waste < best[0]:
            best = waste, layer
    return best[1] if best else None


def _parts(tasks: int, blocks: int, threads: int) -> int:
    """Into how many parts the filters' blocks are divided, as few as busy the threads."""
    divisors = [each for each in range(1, blocks + 1) if blocks % each == 0]
    for parts in divisors:
        count = parts * tasks
        if count >= threads and (count % threads == 0 or count >= 4 * threads):
            return parts
    return divisors[-1]


def _sum(matrix: Sequence[Sequence[float]], row: Any, term: Callable[[int], Any]) -> Any:
    """A row of a matrix times a vector. Which row is an expression, a constant once unrolled."""
    from tvm import tirx

    def times(factors: Sequence[float]) -> Any:
        total = None
        for number, factor in enumerate(factors):
            if factor == 0:
                continue
            value = term(number)
            if abs(factor) != 1:
                value = value * tirx.const(abs(factor), "float32")
            if total is None:
                total = value if factor > 0 else -value
            else:
                total = total + value if factor > 0 else total - value
        return total

    *others, chosen = [times(factors) for factors in matrix]
    for number, value in reversed(list(enumerate(others))):
        chosen = tirx.Select(row == number, value, chosen)
    return chosen


def _names(block: str) -> dict[str, str]:
    """Of the blocks, and of what they write."""
    parts = ("phases", "columns", "patches", "weights", "products", "tiles")
    return {each: f"{block}_{each}" for each in parts} | {"copy": block}


def _written(func: Any, found: Contraction, layer: Layer) -> Any:
    """The function with the convolution's block written anew."""
    from tvm import tirx

    names = _names(str(found.block.name_hint))
    index = str(found.column.ty.dtype)
    source, weight = found.other.source, found.packed.source
    buffers = list(func.body.block.alloc_buffers)
    made: list[Any] = []

    def stage(
        name: str,
        shape: Sequence[int],
        store: Callable[[Any], tuple[Any, list[Any]]],
        axes: Sequence[int] | None = None,
        reduced: int | None = None,
    ) -> Any:
        """A buffer, and the nest over `axes` (its shape) that stores (value, indices) to it."""
        buffer = tirx.decl_buffer(
            [tirx.const(each, index) for each in shape], "float32", names[name]
        )
        buffers.append(buffer)
        over: list[Axis] = [
            (n, tirx.const(each, index), SPATIAL) for n, each in enumerate(axes or shape)
        ]
        start = None
        if reduced is not None:
            over.append(("sum", tirx.const(reduced, index), REDUCTION))

            def start(values: dict[Hashable, Any]) -> Any:
                at = [each for key, each in values.items() if key != "sum"]
                return tirx.BufferStore(buffer, tirx.const(0, "float32"), at)

        def body(values: dict[Hashable, Any]) -> Any:
            value, at = store(list(values.values()))
            if reduced is not None:
                value = tirx.BufferLoad(buffer, at) + value
            return tirx.BufferStore(buffer, value, at)

        made.append(nest(names[name], over, body, init=start))
        return buffer

    read = tirx.BufferLoad
    n, c, f = layer.images, layer.channels, layer.filters
    chunks, rows, row, block = layer.chunks, layer.rows, layer.row, layer.block

    def phase(v: Any) -> tuple[Any, list[Any]]:
        image, channel, y, odd, x = v
        inside = []
        if 2 * rows * chunks + 2 > (constant(source.shape[2]) or 0):
            inside.append(y < source.shape[2])
        inside.append(2 * x + odd < source.shape[3])
        value = read(source, [image, channel, y, 2 * x + odd])
        return tirx.if_then_else(tirx.all(*inside), value, tirx.const(0, "float32")), v

    phases = stage("phases", [n, c, 2 * rows * chunks + 2, 2, row + 1], phase)

    def column(v: Any) -> tuple[Any, list[Any]]:
        image, channel, y, j, x = v
        return _sum(_INPUT, j, lambda b: read(phases, [image, channel, y, b % 2, x + b // 2])), v

    columns = stage("columns", [n, c, 2 * rows * chunks + 2, 4, row], column)

    def patch(v: Any) -> tuple[Any, list[Any]]:
        image, chunk, channel, y, i, j, x = v
        first = 2 * (chunk * rows + y)
        value = _sum(_INPUT, i, lambda a: read(columns, [image, channel, first + a, j, x]))
        return value, [image, chunk, i, j, channel, y * row + x]

    patches = stage(
        "patches",
        [n, chunks, 4, 4, c, rows * row],
        patch,
        axes=[n, chunks, c, rows, 4, 4, row],
    )

    def transformed(v: Any) -> tuple[Any, list[Any]]:
        some, i, j, channel, filter_ = v

        def at(a: int) -> Any:
            number = some * _FILTERS + filter_
            return _sum(_WEIGHTS, j, lambda b: read(weight, [number, channel, a, b]))

        return _sum(_WEIGHTS, i, at), v

    weights = stage("weights", [f // _FILTERS, 4, 4, c, _FILTERS], transformed)

    def multiplied(v: Any) -> tuple[Any, list[Any]]:
        image, some, chunk, i, j, group, filter_, tile, channel = v
        value = read(weights, [some, i, j, channel, filter_]) * read(
            patches, [image, chunk, i, j, channel, group * block + tile]
        )
        return value, v[:-1]

    products = stage(
        "products",
        [n, f // _FILTERS, chunks, 4, 4, rows * row // block, _FILTERS, block],
        multiplied,
        reduced=c,
    )

    def tile(v: Any) -> tuple[Any, list[Any]]:
        image, some, chunk, filter_, y, a, x, b = v
        number = y * row + x

        def across(i: int) -> Any:
            at = [number // block, filter_, number % block]
            return _sum(_OUTPUT, b, lambda j: read(products, [image, some, chunk, i, j, *at]))

        return _sum(_OUTPUT, a, across), v

    tiles = stage("tiles", [n, f // _FILTERS, chunks, _FILTERS, rows, 2, row, 2], tile)
    own = [each for each in found.block.iter_vars if kind_of(each) == SPATIAL]

    def copy(values: dict[Hashable, Any]) -> Any:
        image, filter_, y, x = values.values()
        at = [
            *(image, filter_ // _FILTERS, y // (2 * rows), filter_ % _FILTERS),
            *(y // 2 % rows, y % 2, x // 2, x % 2),
        ]
        return tirx.BufferStore(found.block.body.buffer, read(tiles, at), list(values.values()))

    made.append(nest(names["copy"], [(each.var, each.dom.extent, SPATIAL) for each in own], copy))
    statements = []
    for each in stages(func):
        statements += made if only_block(each).same_as(found.block) else [each]
    return with_stages(func, statements, buffers)


def _schedule(written: Any, layer: Layer, block: str, cpu: Cpu) -> Any:
    import tvm

    schedule = tvm.s_tir.Schedule(written)
    names = _names(block)
    root = schedule.get_child_blocks(schedule.get_sblock("root"))
    order = [str(schedule.get(each).name_hint) for each in root]
    for before in root[: order.index(names["phases"])]:
        schedule.compute_inline(before)
    epilogue = root[order.index(names["copy"]) :]
    if len(epilogue) > 1:
        schedule.compute_inline(epilogue.pop(0))
    epilogue = inline_cheap(schedule, epilogue)
    blocks = {each: schedule.get_sblock(names[each]) for each in names if each != "copy"}
    if not can_prepack(schedule, names["weights"]):
        raise NotApplicable("the weights are used elsewhere too, or made of more than a constant")
    schedule.annotate(blocks["weights"], "meta_schedule.layout_rewrite_preproc", True)

    image, some, chunk, *inside = schedule.get_loops(blocks["tiles"])
    work = iterations(schedule, schedule.get_loops(blocks["products"]))
    part, some = schedule.split(some, [layer.parts, None])
    schedule.reorder(image, part, chunk, some, *inside)
    for each in epilogue:
        schedule.reverse_compute_at(each, some)
        _vectorize(schedule, each, cpu)
    schedule.compute_at(blocks["products"], some)
    schedule.compute_at(blocks["patches"], chunk)
    channel = schedule.get_loops(blocks["patches"])[3]
    schedule.compute_at(blocks["columns"], channel)
    schedule.compute_at(blocks["phases"], channel)

    a, x, b = schedule.get_loops(blocks["tiles"])[-3:]
    schedule.reorder(a, b, x)
    schedule.unroll(a)
    schedule.unroll(b)
    _vectorize(schedule, blocks["tiles"], cpu)
    for each, count in (("patches", 2), ("columns", 1)):
        for loop in schedule.get_loops(blocks[each])[-1 - count : -1]:
            schedule.unroll(loop)
        _vectorize(schedule, blocks[each], cpu)
    schedule.vectorize(schedule.get_loops(blocks["phases"])[-1])

    *_, filter_, tile, summed = schedule.get_loops(blocks["products"])
    outer, inner = schedule.split(summed, [None, _UNROLL])
    vectors, lanes = schedule.split(tile, [None, cpu.lanes("float32")])
    schedule.reorder(outer, inner, filter_, vectors, lanes)
    schedule.vectorize(lanes)
    for each in (inner, filter_, vectors):
        schedule.unroll(each)
    parallelize(schedule, [image, part, chunk], None if work is None else work // WORK_AN_ELEMENT)
    schedule.decompose_reduction(blocks["products"], outer)
    return schedule


def _vectorize(schedule: Any, block: Any, cpu: Cpu) -> None:
    """Vectorize the innermost loop of a block, as much of it as goes into a few registers."""
    inner = split_lanes(schedule, block, cpu)
    if inner is not None:
        schedule.vectorize(inner)
