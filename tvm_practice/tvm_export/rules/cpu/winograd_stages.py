"""The stages of Winograd's algorithm written as loop nests; see `winograd`."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from tvm_practice.tvm_export.rules.cpu.contraction import Contraction
from tvm_practice.tvm_export.rules.cpu.loops import (
    REDUCTION,
    SPATIAL,
    Axis,
    constant,
    kind_of,
    nest,
    only_block,
    stages,
    with_stages,
)
from tvm_practice.tvm_export.rules.cpu.winograd_layer import FILTERS, Layer

_INPUT = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))  # B^T
_WEIGHTS = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))  # G
_OUTPUT = ((1, 1, 1, 0), (0, 1, -1, -1))  # A^T


def stage_names(block: str) -> dict[str, str]:
    """The names of the stages' blocks and of their buffers, by part, made of the block's."""
    parts = ("phases", "columns", "patches", "weights", "products", "tiles")
    return {each: f"{block}_{each}" for each in parts} | {"copy": block}


def in_stages(func: Any, found: Contraction, layer: Layer) -> Any:
    """The function with the convolution's block written anew, in the stages of `stage_names`."""
    written = _Stages(found, layer, func.body.block.alloc_buffers)

    # Phase 1. Transform the input.
    phases = _phases(written, found.other.source)
    columns = _columns(written, phases)
    patches = _patches(written, columns)

    # Phase 2. Transform the weights.
    weights = _weights(written, found.packed.source)

    # Phase 3. Multiply, and sum over the channels.
    products = _products(written, weights, patches)

    # Phase 4. Transform the sums to outputs, and write those that exist.
    tiles = _tiles(written, products)
    _copy(written, tiles, found.block)

    statements = []
    for each in stages(func):
        statements += written.nests if only_block(each).same_as(found.block) else [each]
    return with_stages(func, statements, written.buffers)


class _Stages:
    """The nests written so far.

    Attributes:
        layer: the convolution.
        names: of the stages.
        nests: one per stage, in their order.
        buffers: what they write, and what the function had.
    """

    def __init__(self, found: Contraction, layer: Layer, buffers: Sequence[Any]):
        self.layer = layer
        self.names = stage_names(str(found.block.name_hint))
        self.nests: list[Any] = []
        self.buffers = list(buffers)
        self._index = str(found.column.ty.dtype)

    def add(
        self,
        name: str,
        shape: Sequence[int],
        store: Callable[[list[Any]], tuple[Any, list[Any]]],
        *,
        axes: Sequence[int] = (),
        reduced: int = 0,
    ) -> Any:
        """Add a stage; the float32 buffer that it writes.

        Args:
            name: a key of `stage_names`.
            shape: of the buffer.
            store: from the nest's iterators to the value and the indices where it is stored.
            axes: extents of the nest, where it is not over the buffer's shape.
            reduced: extent of a sum inside the nest, whose iterator comes last.
        """
        from tvm import tirx

        def extent(number: int) -> Any:
            return tirx.const(number, self._index)

        buffer = tirx.decl_buffer([extent(each) for each in shape], "float32", self.names[name])
        over: list[Axis] = [(n, extent(each), SPATIAL) for n, each in enumerate(axes or shape)]
        if reduced:
            over.append(("sum", extent(reduced), REDUCTION))

        def start(values: dict[Hashable, Any]) -> Any:
            at = [each for key, each in values.items() if key != "sum"]
            return tirx.BufferStore(buffer, tirx.const(0, "float32"), at)

        def body(values: dict[Hashable, Any]) -> Any:
            value, at = store(list(values.values()))
            if reduced:
                value = tirx.BufferLoad(buffer, at) + value
            return tirx.BufferStore(buffer, value, at)

        self.buffers.append(buffer)
        self.nests.append(nest(self.names[name], over, body, init=start if reduced else None))
        return buffer


def _phases(written: _Stages, source: Any) -> Any:
    """The padded input, its even and its odd columns apart."""
    from tvm import tirx

    layer = written.layer
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


def _columns(written: _Stages, phases: Any) -> Any:
    """d B: the input transformed in the direction of x."""
    from tvm import tirx

    layer = written.layer

    def column(v: list[Any]) -> tuple[Any, list[Any]]:
        image, channel, y, j, x = v

        def at(b: int) -> Any:
            return tirx.BufferLoad(phases, [image, channel, y, b % 2, x + b // 2])

        return _row_times(_INPUT, j, at), v

    height = 2 * layer.rows * layer.chunks + 2
    return written.add("columns", [layer.images, layer.channels, height, 4, layer.row], column)


def _patches(written: _Stages, columns: Any) -> Any:
    """B^T d B: the input transformed in the direction of y too."""
    from tvm import tirx

    layer = written.layer
    images, chunks, channels = layer.images, layer.chunks, layer.channels

    def patch(v: list[Any]) -> tuple[Any, list[Any]]:
        image, chunk, channel, y, i, j, x = v
        first = 2 * (chunk * layer.rows + y)

        def at(a: int) -> Any:
            return tirx.BufferLoad(columns, [image, channel, first + a, j, x])

        return _row_times(_INPUT, i, at), [image, chunk, i, j, channel, y * layer.row + x]

    shape = [images, chunks, 4, 4, channels, layer.rows * layer.row]
    axes = [images, chunks, channels, layer.rows, 4, 4, layer.row]
    return written.add("patches", shape, patch, axes=axes)


def _weights(written: _Stages, weight: Any) -> Any:
    """G g G^T: the weights transformed, filters of a register tile side by side."""
    from tvm import tirx

    layer = written.layer

    def transformed(v: list[Any]) -> tuple[Any, list[Any]]:
        some, i, j, channel, filter_ = v
        number = some * FILTERS + filter_

        def at(a: int) -> Any:
            def across(b: int) -> Any:
                return tirx.BufferLoad(weight, [number, channel, a, b])

            return _row_times(_WEIGHTS, j, across)

        return _row_times(_WEIGHTS, i, at), v

    shape = [layer.filters // FILTERS, 4, 4, layer.channels, FILTERS]
    return written.add("weights", shape, transformed)


def _products(written: _Stages, weights: Any, patches: Any) -> Any:
    """The sums over the channels, in register tiles of filters x tiles."""
    from tvm import tirx

    layer = written.layer

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


def _tiles(written: _Stages, products: Any) -> Any:
    """A^T [...] A: the sums transformed to tiles of 2x2 outputs."""
    from tvm import tirx

    layer = written.layer

    def tile(v: list[Any]) -> tuple[Any, list[Any]]:
        image, some, chunk, filter_, y, a, x, b = v
        number = y * layer.row + x

        def at(i: int) -> Any:
            place = [number // layer.block, filter_, number % layer.block]

            def across(j: int) -> Any:
                return tirx.BufferLoad(products, [image, some, chunk, i, j, *place])

            return _row_times(_OUTPUT, b, across)

        return _row_times(_OUTPUT, a, at), v

    shape = [layer.images, layer.filters // FILTERS, layer.chunks, FILTERS]
    return written.add("tiles", [*shape, layer.rows, 2, layer.row, 2], tile)


def _copy(written: _Stages, tiles: Any, block: Any) -> None:
    """Add the stage that copies the outputs that exist to the convolution's own buffer."""
    from tvm import tirx

    rows = written.layer.rows

    def copy(values: dict[Hashable, Any]) -> Any:
        image, filter_, y, x = values.values()
        at = [
            *(image, filter_ // FILTERS, y // (2 * rows), filter_ % FILTERS),
            *(y // 2 % rows, y % 2, x // 2, x % 2),
        ]
        value = tirx.BufferLoad(tiles, at)
        return tirx.BufferStore(block.body.buffer, value, list(values.values()))

    own = [each for each in block.iter_vars if kind_of(each) == SPATIAL]
    axes = [(each.var, each.dom.extent, SPATIAL) for each in own]
    written.nests.append(nest(written.names["copy"], axes, copy))


def _row_times(matrix: Sequence[Sequence[float]], row: Any, term: Callable[[int], Any]) -> Any:
    """A row of a matrix times a vector. Which row is an expression, a constant once unrolled."""
    from tvm import tirx

    *others, chosen = [_dot(factors, term) for factors in matrix]
    for number, value in reversed(list(enumerate(others))):
        chosen = tirx.Select(row == number, value, chosen)
    return chosen


def _dot(factors: Sequence[float], term: Callable[[int], Any]) -> Any:
    """The sum of factors times terms: no term for a 0, no multiplication for a 1."""
    from tvm import tirx

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
