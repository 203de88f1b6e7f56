"""Winograd's algorithm where the channels come last: a lane of a vector is a channel, or a filter.

The channels of a pixel lie side by side, so a transform adds whole vectors, and only the tiles that
reach over the edge compute anything beyond it:

    patches     B^T d B      of the 4x4 input pixels of each tile
    products    the sums over the channels, in register tiles of tiles x filters
    tiles       A^T [...] A
    (copy)      to the output, through the operators fused after the convolution

A task is some rows of tiles of an image, or all rows of several images, and a part of the filters.
"""

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import (
    VECTORS,
    Contraction,
    find_contraction,
    least_cost,
    step_of_panel,
)
from tvm_practice.tvm_export.rules.cpu.flat import tiled_function
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

_PARTS = ("patches", "weights", "products", "tiles")
# Cycles of a thread for a vector of a tile: to transform its 16 inputs, and its 16 sums.
_TO_TRANSFORM, _TO_TRANSFORM_BACK = 24, 40
# Bytes a cycle from the last cache, and tiles of a task from which there is no gain in more.
_FROM_LAST, _MOST_TILES = 32, 256
# Of the direct convolution's cycles, what may be left at most: a smaller gain is not sure.
_LEFT = 0.9


@dataclass(frozen=True)
class Cut:
    """How a convolution is cut into tasks and tiles.

    Attributes:
        convolution: the whole.
        lanes: of a vector.
        together: images of a task, one unless it takes all their rows.
        rows: rows of tiles of a task.
        parts: that the filters are divided in; each part's tasks transform the input anew.
        size, vectors: tiles and vectors of filters of a register tile.
    """

    convolution: Convolution
    lanes: int
    together: int
    rows: int
    parts: int
    size: int
    vectors: int

    @property
    def across(self) -> int:
        """Tiles in a row."""
        return math.ceil(self.convolution.width / 2)

    @property
    def tiles(self) -> int:
        """Tiles of a task."""
        return self.together * self.rows * self.across

    @property
    def groups(self) -> int:
        """How often a task's images fit all of them."""
        return self.convolution.images // self.together

    @property
    def chunks(self) -> int:
        """How often a task's rows fit an image."""
        return math.ceil(self.convolution.height / 2) // self.rows

    @property
    def panel(self) -> int:
        """Filters of a register tile."""
        return self.vectors * self.lanes

    @property
    def panels(self) -> int:
        """How often a register tile fits the filters."""
        return self.convolution.filters // self.panel


def schedule_last(func: Any, found: Contraction, convolution: Convolution, cpu: Cpu) -> Any:
    """The function of a convolution whose channels come last, by Winograd's algorithm.

    The loop nest of a 3x3 convolution of 64 channels, 56x56, on 256-bit vectors:

        for i0 in serial(4):
            for i1 in serial(4):
                for i2 in serial(4):
                    for i3 in serial(64):
                        for i4 in serial(16):
                            weights: weights <- param_0
        for i1_0_i0_i2_fused in parallel(56):
            for ax0 in serial(28):
                for ax1_0 in serial(8):
                    for ax2 in unrolled(4):
                        for ax3 in unrolled(4):
                            for ax1_1 in vectorized(8):
                                patches: patches <- x0
            for i1_1 in serial(2):
                for ax0 in serial(4):
                    for ax1 in serial(4):
                        for ax2 in serial(7):
                            for ax3_init in unrolled(4):
                                for ax4_0_init in unrolled(2):
                                    for ax4_1_init in vectorized(8):
                                        products_init: products <- constant
                            for ax5_0 in serial(8):
                                for ax5_1 in unrolled(8):
                                    for ax3 in unrolled(4):
                                        for ax4_0 in unrolled(2):
                                            for ax4_1 in vectorized(8):
                                                products_update: products <- patches, products, weights
                for i3 in serial(1):
                    for i4 in serial(1):
                        for i6 in serial(28):
                            for i8_0 in serial(2):
                                for i5 in unrolled(2):
                                    for i7 in unrolled(2):
                                        for i8_1 in vectorized(8):
                                            tiles: tiles <- products
                for ax0 in serial(2):
                    for ax1 in serial(56):
                        for ax2_0 in serial(2):
                            for ax2_1 in vectorized(8):
                                compute: compute_intermediate <- tiles, param_1

    Raises:
        NotApplicable: it gains nothing, or what is fused with it does not go with it.
    """  # noqa: E501
    import tvm

    cut = gaining_cut(func, convolution, cpu)
    written = _in_stages(func, found, cut)
    schedule, names = tvm.s_tir.Schedule(written.function()), written.names

    # Phase 1. Inline what comes before the convolution, and what is fused after it.
    epilogue, after = inline_around(schedule, names["patches"], names["copy"])
    blocks = {each: schedule.get_sblock(names[each]) for each in _PARTS}

    # Phase 2. Transform the weights at compile time.
    transform_ahead(schedule, names["weights"])

    # Phase 3. Nest the stages.
    work = iterations(schedule, schedule.get_loops(blocks["products"]))
    group, panel, chunk, *inside = schedule.get_loops(blocks["tiles"])
    part, panel = schedule.split(panel, [cut.parts, None])
    schedule.reorder(part, group, chunk, panel, *inside)
    for each in epilogue:
        schedule.reverse_compute_at(each, panel)
    schedule.compute_at(blocks["products"], panel)
    schedule.compute_at(blocks["patches"], chunk)

    # Phase 4. Vectorize the transforms; what they are of is unrolled, so that factors are known.
    for each in epilogue:
        vectorize_lanes(schedule, each, cpu)
    a, x, b, filter_ = schedule.get_loops(blocks["tiles"])[-4:]
    _unroll_matrix(schedule, filter_, (a, b), cut.lanes, [x])
    channel, i, j = schedule.get_loops(blocks["patches"])[-3:]
    _unroll_matrix(schedule, channel, (i, j), cut.lanes, [])

    # Phase 5. Keep the products' sums in registers.
    steps = _unrolled(convolution.channels)
    outer = tile_products(schedule, blocks["products"], cpu, steps)

    # Phase 6. Run the tasks in parallel, and then what no tile stands for.
    elements = None if work is None else work // WORK_AN_ELEMENT
    parallelize(schedule, [part, group, chunk], elements)
    schedule.decompose_reduction(blocks["products"], outer)
    for each in after:
        schedule_stage(schedule, each, cpu)
    return schedule


def _unroll_matrix(
    schedule: Any, vector: Any, matrix: tuple[Any, Any], lanes: int, around: list[Any]
) -> None:
    """Unroll the loops over a matrix around one vector's lanes."""
    several, lanes = schedule.split(vector, [None, lanes])
    schedule.reorder(*around, several, *matrix, lanes)
    for each in matrix:
        schedule.unroll(each)
    schedule.vectorize(lanes)


def _unrolled(channels: int) -> int:
    """Steps of the sum that are unrolled."""
    return next(steps for steps in (8, 4, 2, 1) if channels % steps == 0)


def gaining_cut(func: Any, convolution: Convolution, cpu: Cpu) -> Cut:
    """The cut that should take the fewest cycles.

    Raises:
        NotApplicable: there is none, or the rule for contractions should take about as few.
    """
    cuts = [(_cycles(each, cpu), each) for each in _cuts(convolution, cpu)]
    if not cuts:
        raise NotApplicable("the channels or the filters do not fill vectors")
    cycles, cut = min(cuts, key=lambda each: (round(each[0]), each[1].tiles))
    a_step, _ = least_cost(find_contraction(tiled_function(func, cpu), cpu), cpu)
    if cycles > _LEFT * 9 * convolution.channels * a_step:
        raise NotApplicable("the transforms would take what the products save")
    return cut


def _cuts(convolution: Convolution, cpu: Cpu) -> Iterator[Cut]:
    lanes = cpu.lanes("float32")
    if convolution.channels % lanes or convolution.filters % lanes:
        return
    down = math.ceil(convolution.height / 2)
    several = [(each, down) for each in _divisors(convolution.images) if each > 1]
    for together, rows in [*((1, each) for each in _divisors(down)), *several]:
        for vectors in VECTORS:
            if convolution.filters % (vectors * lanes):
                continue
            panels = convolution.filters // (vectors * lanes)
            whole = Cut(convolution, lanes, together, rows, 1, 1, vectors)
            if whole.tiles > _MOST_TILES and (together, rows) != (1, 1):
                continue
            sizes = [e for e in _divisors(whole.tiles) if (e + 1) * vectors < cpu.registers]
            for parts, size in itertools.product(_divisors(panels), sizes):
                yield Cut(convolution, lanes, together, rows, parts, size, vectors)


def _divisors(number: int) -> list[int]:
    return [each for each in range(1, number + 1) if number % each == 0]


def _cycles(cut: Cut, cpu: Cpu) -> float:
    """The cycles that a cut should take: those of the busiest thread, for each thread."""
    channels, filters = cut.convolution.channels, cut.convolution.filters // cut.parts
    panel_bytes = 4 * channels * cut.panel
    step = step_of_panel(cut.size, cut.vectors, panel_bytes, cpu)
    products = 16 * channels * step * (cut.tiles // cut.size) * (filters // cut.panel)
    patch_bytes = 16 * 4 * channels * cut.tiles
    if patch_bytes > cpu.cache_bytes:
        products += patch_bytes / _FROM_LAST * (filters // cut.panel)
    transforms = _TO_TRANSFORM * channels + _TO_TRANSFORM_BACK * filters
    tasks = math.ceil(cut.parts * cut.groups * cut.chunks / cpu.threads)
    # A part's weights stay in the cache for the tasks of all images, if they fit.
    weight_bytes = 16 * 4 * channels * filters
    fetched = math.ceil(cut.parts / cpu.threads)
    fetched = tasks if 2 * weight_bytes > cpu.cache_bytes else fetched
    busiest = tasks * (products + cut.tiles * transforms / cut.lanes)
    return cpu.threads * (busiest + fetched * weight_bytes / _FROM_LAST)


def _in_stages(func: Any, found: Contraction, cut: Cut) -> Stages:
    """The convolution written anew, in the stages that the module's description lists."""
    written = Stages(func, found, _PARTS)
    patches = _patches(written, cut, found.other.source)
    weights = _weights(written, cut, found.packed.source)
    tiles = _tiles(written, cut, _products(written, cut, weights, patches))

    def at(image: Any, y: Any, x: Any, filter_: Any) -> list[Any]:
        chunk, row = y // (2 * cut.rows), y // 2 % cut.rows
        task = [image // cut.together, filter_ // cut.panel, chunk]
        return [*task, image % cut.together, row, y % 2, x // 2, x % 2, filter_ % cut.panel]

    written.add_copy(tiles, at)
    return written


def _patches(written: Stages, cut: Cut, source: Any) -> Any:
    """B^T d B: the input transformed, zero beyond the edge."""
    from tvm import tirx

    channels = cut.convolution.channels
    rows, across = 2 * cut.rows * cut.chunks + 2, 2 * cut.across + 2
    beyond = [(constant(source.shape[axis]) or 0) < size for axis, size in ((1, rows), (2, across))]

    def patch(v: list[Any]) -> tuple[Any, list[Any]]:
        group, chunk, image, row, x, channel, i, j = v
        top, left = 2 * (chunk * cut.rows + row), 2 * x

        def element(a: int, b: int) -> Any:
            at = [group * cut.together + image, top + a, left + b, channel]
            value = tirx.BufferLoad(source, at)
            # Rows of tiles divide the height, so that at most their last line is beyond it.
            inside = [
                index < source.shape[axis]
                for axis, (index, offset) in enumerate(((top + a, a), (left + b, b)), start=1)
                if beyond[axis - 1] and offset == 3
            ]
            zero = tirx.const(0, "float32")
            return tirx.if_then_else(tirx.all(*inside), value, zero) if inside else value

        def line(a: int) -> Any:
            return row_times(INPUT, j, lambda b: element(a, b))

        tile = (image * cut.rows + row) * cut.across + x
        return row_times(INPUT, i, line), [group, chunk, i, j, tile, channel]

    shape = [cut.groups, cut.chunks, 4, 4, cut.tiles, channels]
    axes = [cut.groups, cut.chunks, cut.together, cut.rows, cut.across, channels, 4, 4]
    return written.add("patches", shape, patch, axes=axes)


def _weights(written: Stages, cut: Cut, weight: Any) -> Any:
    """G g G^T: the weights transformed, filters of a register tile side by side."""
    from tvm import tirx

    def transformed(v: list[Any]) -> tuple[Any, list[Any]]:
        panel, i, j, channel, filter_ = v
        number = panel * cut.panel + filter_

        def line(a: int) -> Any:
            def element(b: int) -> Any:
                return tirx.BufferLoad(weight, [a, b, channel, number])

            return row_times(WEIGHTS, j, element)

        return row_times(WEIGHTS, i, line), v

    shape = [cut.panels, 4, 4, cut.convolution.channels, cut.panel]
    return written.add("weights", shape, transformed)


def _products(written: Stages, cut: Cut, weights: Any, patches: Any) -> Any:
    """The sums over the channels, in register tiles of tiles x filters."""
    from tvm import tirx

    def multiplied(v: list[Any]) -> tuple[Any, list[Any]]:
        group, panel, chunk, i, j, block, tile, filter_, channel = v
        at = [group, chunk, i, j, block * cut.size + tile, channel]
        weight = tirx.BufferLoad(weights, [panel, i, j, channel, filter_])
        return tirx.BufferLoad(patches, at) * weight, v[:-1]

    blocks = cut.tiles // cut.size
    shape = [cut.groups, cut.panels, cut.chunks, 4, 4, blocks, cut.size, cut.panel]
    return written.add("products", shape, multiplied, reduced=cut.convolution.channels)


def _tiles(written: Stages, cut: Cut, products: Any) -> Any:
    """A^T [...] A: the sums transformed to tiles of 2x2 outputs."""
    from tvm import tirx

    def tile(v: list[Any]) -> tuple[Any, list[Any]]:
        group, panel, chunk, image, row, a, x, b, filter_ = v
        number = (image * cut.rows + row) * cut.across + x
        place = [number // cut.size, number % cut.size, filter_]

        def line(i: int) -> Any:
            def element(j: int) -> Any:
                return tirx.BufferLoad(products, [group, panel, chunk, i, j, *place])

            return row_times(OUTPUT, b, element)

        return row_times(OUTPUT, a, line), v

    shape = [cut.groups, cut.panels, cut.chunks, cut.together, cut.rows, 2, cut.across, 2]
    return written.add("tiles", [*shape, cut.panel], tile)
