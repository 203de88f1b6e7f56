"""Winograd's algorithm where the channels come first: a lane of a vector is a tile.

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
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import Contraction
from tvm_practice.tvm_export.rules.cpu.loops import Cpu, constant
from tvm_practice.tvm_export.rules.cpu.register_tiles import WORK_AN_ELEMENT
from tvm_practice.tvm_export.rules.cpu.scheduling import iterations, parallelize, schedule_stage
from tvm_practice.tvm_export.rules.cpu.winograd.convolution import Convolution
from tvm_practice.tvm_export.rules.cpu.winograd.stages import (
    INPUT,
    OUTPUT,
    WEIGHTS,
    Stages,
    inline_around,
    row_times,
    tile_products,
    transform_ahead,
    vectorize_lanes,
)

_PARTS = ("phases", "columns", "patches", "weights", "products", "tiles")
FILTERS = 4
"""Filters of a register tile."""
UNROLL = 4
"""Channels by which the products' sum is unrolled."""
# With fewer channels or filters the transforms take what the products save.
_FEWEST_CHANNELS, _FEWEST_FILTERS = 32, 32
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


def schedule_first(func: Any, found: Contraction, convolution: Convolution, cpu: Cpu) -> Any:
    """The function of a convolution whose channels come first, by Winograd's algorithm.

    The loop nest of a 3x3 convolution of 64 channels, 56x56, on 256-bit vectors:

        for i0 in serial(16):
            for i1 in serial(4):
                for i2 in serial(4):
                    for i3 in serial(64):
                        for i4 in serial(4):
                            weights: weights <- param_0
        for i0_i1_0_i2_fused in parallel(56):
            for ax0 in serial(64):
                for ax0 in serial(4):
                    for ax1 in serial(2):
                        for ax2 in vectorized(33):
                            phases: phases <- x0
                for ax0 in serial(4):
                    for ax1 in unrolled(4):
                        for ax2_0 in serial(4):
                            for ax2_1 in vectorized(8):
                                columns: columns <- phases
                for ax1 in unrolled(4):
                    for ax2 in unrolled(4):
                        for ax3_0 in serial(4):
                            for ax3_1 in vectorized(8):
                                patches: patches <- columns
            for i1_1 in serial(8):
                for ax0 in serial(4):
                    for ax1 in serial(4):
                        for ax2 in serial(2):
                            for ax3_init in unrolled(4):
                                for ax4_0_init in unrolled(2):
                                    for ax4_1_init in vectorized(8):
                                        products_init: products <- constant
                            for ax5_0 in serial(16):
                                for ax5_1 in unrolled(4):
                                    for ax3 in unrolled(4):
                                        for ax4_0 in unrolled(2):
                                            for ax4_1 in vectorized(8):
                                                products_update: products <- patches, products, weights
                for i3 in serial(4):
                    for i4 in serial(1):
                        for i5 in unrolled(2):
                            for i7 in unrolled(2):
                                for i6_0 in serial(4):
                                    for i6_1 in vectorized(8):
                                        tiles: tiles <- products
                for ax0 in serial(4):
                    for ax1 in serial(2):
                        for ax2_0 in serial(7):
                            for ax2_1 in vectorized(8):
                                compute: compute_intermediate <- tiles, param_1

    Raises:
        NotApplicable: it gains nothing, or what is fused with it does not go with it.
    """  # noqa: E501
    import tvm

    layer = cut_of(convolution, cpu)
    written = _in_stages(func, found, layer)
    schedule, names = tvm.s_tir.Schedule(written.function()), written.names

    # Phase 1. Inline what comes before the convolution, and what is fused after it.
    epilogue, after = inline_around(schedule, names["phases"], names["copy"])
    blocks = {each: schedule.get_sblock(names[each]) for each in names if each != "copy"}

    # Phase 2. Transform the weights at compile time.
    transform_ahead(schedule, names["weights"])

    # Phase 3. Nest the stages: a task is an image's rows of tiles and a part of the filters.
    work = iterations(schedule, schedule.get_loops(blocks["products"]))
    tasks = _nest_stages(schedule, blocks, epilogue, layer)

    # Phase 4. Vectorize the transforms.
    _schedule_transforms(schedule, blocks, epilogue, cpu)

    # Phase 5. Keep the products' sums in registers.
    outer = tile_products(schedule, blocks["products"], cpu, UNROLL)

    # Phase 6. Run the tasks in parallel, and then what no tile stands for.
    parallelize(schedule, tasks, None if work is None else work // WORK_AN_ELEMENT)
    schedule.decompose_reduction(blocks["products"], outer)
    for each in after:
        schedule_stage(schedule, each, cpu)
    return schedule


def _nest_stages(
    schedule: Any, blocks: dict[str, Any], epilogue: list[Any], layer: Layer
) -> list[Any]:
    """Compute each stage where the next one needs it; the loops over tasks."""
    image, some, chunk, *inside = schedule.get_loops(blocks["tiles"])
    part, some = schedule.split(some, [layer.parts, None])
    schedule.reorder(image, part, chunk, some, *inside)
    for each in epilogue:
        schedule.reverse_compute_at(each, some)
    schedule.compute_at(blocks["products"], some)
    schedule.compute_at(blocks["patches"], chunk)
    channel = schedule.get_loops(blocks["patches"])[3]
    schedule.compute_at(blocks["columns"], channel)
    schedule.compute_at(blocks["phases"], channel)
    return [image, part, chunk]


def _schedule_transforms(
    schedule: Any, blocks: dict[str, Any], epilogue: list[Any], cpu: Cpu
) -> None:
    """Unroll the loops over a transform's matrix; vectorize those over tiles, and the write-back.

    A row of a matrix is then a constant, and takes additions alone.
    """
    for each in epilogue:
        vectorize_lanes(schedule, each, cpu)
    a, x, b = schedule.get_loops(blocks["tiles"])[-3:]
    schedule.reorder(a, b, x)
    schedule.unroll(a)
    schedule.unroll(b)
    vectorize_lanes(schedule, blocks["tiles"], cpu)
    for name, count in (("patches", 2), ("columns", 1)):
        for loop in schedule.get_loops(blocks[name])[-1 - count : -1]:
            schedule.unroll(loop)
        vectorize_lanes(schedule, blocks[name], cpu)
    schedule.vectorize(schedule.get_loops(blocks["phases"])[-1])


def cut_of(convolution: Convolution, cpu: Cpu) -> Layer:
    """The cut that computes least beyond the edges, and fits the cache; NotApplicable without."""
    images, channels, filters = convolution.images, convolution.channels, convolution.filters
    height, width = convolution.height, convolution.width
    if channels < _FEWEST_CHANNELS or filters < _FEWEST_FILTERS:
        raise NotApplicable(f"{channels} channels and {filters} filters are too few to gain")
    if channels % UNROLL or filters % FILTERS:
        raise NotApplicable(f"{channels} channels or {filters} filters do not divide by 4")
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


def _in_stages(func: Any, found: Contraction, layer: Layer) -> Stages:
    """The convolution written anew, in the stages that the module's description lists."""
    written = Stages(func, found, _PARTS)

    # Phase 1. Transform the input.
    phases = _phases(written, layer, found.other.source)
    columns = _columns(written, layer, phases)
    patches = _patches(written, layer, columns)

    # Phase 2. Transform the weights.
    weights = _weights(written, layer, found.packed.source)

    # Phase 3. Multiply, and sum over the channels.
    products = _products(written, layer, weights, patches)

    # Phase 4. Transform the sums to outputs, and write those that exist.
    tiles = _tiles(written, layer, products)
    rows = layer.rows

    def at(image: Any, filter_: Any, y: Any, x: Any) -> list[Any]:
        place = [image, filter_ // FILTERS, y // (2 * rows), filter_ % FILTERS]
        return [*place, y // 2 % rows, y % 2, x // 2, x % 2]

    written.add_copy(tiles, at)
    return written


def _phases(written: Stages, layer: Layer, source: Any) -> Any:
    """The padded input, its even and its odd columns apart."""
    from tvm import tirx

    height, width = 2 * layer.rows * layer.chunks + 2, layer.row + 1

    def phase(v: list[Any]) -> tuple[Any, list[Any]]:
        image, channel, y, odd, x = v
        inside = []
        if height > (constant(source.shape[2]) or 0):
            inside.append(y < source.shape[2])
        inside.append(2 * x + odd < source.shape[3])
        value = tirx.BufferLoad(source, [image, channel, y, 2 * x + odd])
        return tirx.if_then_else(tirx.all(*inside), value, tirx.const(0, "float32")), v

    return written.add("phases", [layer.images, layer.channels, height, 2, width], phase)


def _columns(written: Stages, layer: Layer, phases: Any) -> Any:
    """d B: the input transformed in the direction of x."""
    from tvm import tirx

    def column(v: list[Any]) -> tuple[Any, list[Any]]:
        image, channel, y, j, x = v

        def at(b: int) -> Any:
            return tirx.BufferLoad(phases, [image, channel, y, b % 2, x + b // 2])

        return row_times(INPUT, j, at), v

    height = 2 * layer.rows * layer.chunks + 2
    return written.add("columns", [layer.images, layer.channels, height, 4, layer.row], column)


def _patches(written: Stages, layer: Layer, columns: Any) -> Any:
    """B^T d B: the input transformed in the direction of y too."""
    from tvm import tirx

    images, chunks, channels = layer.images, layer.chunks, layer.channels

    def patch(v: list[Any]) -> tuple[Any, list[Any]]:
        image, chunk, channel, y, i, j, x = v
        first = 2 * (chunk * layer.rows + y)

        def at(a: int) -> Any:
            return tirx.BufferLoad(columns, [image, channel, first + a, j, x])

        return row_times(INPUT, i, at), [image, chunk, i, j, channel, y * layer.row + x]

    shape = [images, chunks, 4, 4, channels, layer.rows * layer.row]
    axes = [images, chunks, channels, layer.rows, 4, 4, layer.row]
    return written.add("patches", shape, patch, axes=axes)


def _weights(written: Stages, layer: Layer, weight: Any) -> Any:
    """G g G^T: the weights transformed, filters of a register tile side by side."""
    from tvm import tirx

    def transformed(v: list[Any]) -> tuple[Any, list[Any]]:
        some, i, j, channel, filter_ = v
        number = some * FILTERS + filter_

        def at(a: int) -> Any:
            def across(b: int) -> Any:
                return tirx.BufferLoad(weight, [number, channel, a, b])

            return row_times(WEIGHTS, j, across)

        return row_times(WEIGHTS, i, at), v

    shape = [layer.filters // FILTERS, 4, 4, layer.channels, FILTERS]
    return written.add("weights", shape, transformed)


def _products(written: Stages, layer: Layer, weights: Any, patches: Any) -> Any:
    """The sums over the channels, in register tiles of filters x tiles."""
    from tvm import tirx

    def multiplied(v: list[Any]) -> tuple[Any, list[Any]]:
        image, some, chunk, i, j, group, filter_, tile, channel = v
        patch = [image, chunk, i, j, channel, group * layer.block + tile]
        value = tirx.BufferLoad(weights, [some, i, j, channel, filter_]) * tirx.BufferLoad(
            patches, patch
        )
        return value, v[:-1]

    groups = layer.rows * layer.row // layer.block
    shape = [layer.images, layer.filters // FILTERS, layer.chunks, 4, 4, groups]
    return written.add(
        "products", [*shape, FILTERS, layer.block], multiplied, reduced=layer.channels
    )


def _tiles(written: Stages, layer: Layer, products: Any) -> Any:
    """A^T [...] A: the sums transformed to tiles of 2x2 outputs."""
    from tvm import tirx

    def tile(v: list[Any]) -> tuple[Any, list[Any]]:
        image, some, chunk, filter_, y, a, x, b = v
        number = y * layer.row + x

        def at(i: int) -> Any:
            place = [number // layer.block, filter_, number % layer.block]

            def across(j: int) -> Any:
                return tirx.BufferLoad(products, [image, some, chunk, i, j, *place])

            return row_times(OUTPUT, b, across)

        return row_times(OUTPUT, a, at), v

    shape = [layer.images, layer.filters // FILTERS, layer.chunks, FILTERS]
    return written.add("tiles", [*shape, layer.rows, 2, layer.row, 2], tile)
