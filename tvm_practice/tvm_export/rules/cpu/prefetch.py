"""Packed weights asked for ahead of their use.

In a model every layer's weights were last read a whole run ago, and come from memory or a shared
cache. A column's panel of packed weights is read by many row tiles one after the other; the first
waits for it, the others find it near, and while they compute nothing is fetched. Here each row tile
asks for its part of the next panel, a few cache lines at a time.

It is a hint to the processor: no value depends on it, and the addresses stay within the buffer.
"""

import math
from collections.abc import Sequence
from typing import Any

from tvm_practice.tvm_export.rules.cpu.loops import (
    REDUCTION,
    constant,
    kind_of,
    loads,
    substitute,
    variables,
)

_LINE_BYTES = 64
# Lines asked for at once. A core waits for a dozen or so at a time; more would hold it up.
_BURST = 8
# With fewer row tiles a panel is over too soon.
_FEWEST_ROW_TILES = 4
# llvm.prefetch: to read, into the second cache (a panel is larger than the first), data.
_READ, _SECOND_CACHE, _DATA = 0, 2, 1


def prefetch_next_panel(
    func: Any,
    block: str,
    packed: str,
    *,
    panel_axes: int,
    row_tiles: Sequence[int],
    cache_bytes: int,
) -> Any:
    """`func` with prefetches of a packed operand's next panel while a panel is used.

    Args:
        func: a scheduled PrimFunc.
        block: adds a step of the sum to a tile.
        packed: the name of the operand's buffer [..., panels, steps of the sum ..., columns].
        panel_axes: how many of the buffer's axes pick a panel, the last of them the next one.
        row_tiles: which of the block's iterators count the row tiles of a panel.
        cache_bytes: of the cache that the panel in use and the next are to share.

    Returns:
        The function; as it was where extents are symbolic, row tiles are few, two panels are
        larger than the cache, or something of another panel comes between row tiles.
    """
    import tvm
    import tvm_ffi
    from tvm import tirx

    found = _loops_around(func.body, block, [])
    if found is None or not panel_axes:
        return func
    loops, realize = found
    iterators = realize.block.iter_vars
    values = {each.var: value for each, value in zip(iterators, realize.iter_values, strict=True)}
    steps = variables(*(values[each.var] for each in iterators if kind_of(each) == REDUCTION))
    sums = [each for each in loops if each.loop_var in steps]
    read = [each for each in loads(realize.block.body.value) if str(each.source.name) == packed]
    if not sums or len(read) != 1:
        return func
    buffer = read[0].source
    tile_of = [values[iterators[each].var] for each in row_tiles]
    panel = [substitute(each, values) for each in read[0].indices[:panel_axes]]
    # Where a sum is taken in parts, a part of all row tiles comes before the next part of any.
    around_tiles = [each for each in sums if variables(*tile_of) & _inside(loops, each)]
    sums = sums[len(around_tiles) :]
    if not sums:
        return func
    outermost = sums[0]
    tiles = [constant(iterators[each].dom.extent) for each in row_tiles]
    chunks = [constant(each.extent) for each in around_tiles]
    shape = [constant(each) for each in buffer.shape]
    count = constant(outermost.extent)
    if (
        count is None
        or None in (*chunks, *tiles, *shape)
        or math.prod(each or 1 for each in tiles) < _FEWEST_ROW_TILES
        or variables(*tile_of) & _inside(loops, outermost)
        or variables(*panel) & _inside(loops, (around_tiles or sums)[0])
    ):
        return func

    index = str(outermost.loop_var.ty.dtype)

    def number(value: int) -> Any:
        return tirx.const(value, index)

    inner_shape = [each or 1 for each in shape[panel_axes:]]
    size = math.prod(inner_shape)
    bits = int(tvm.DataType(str(buffer.dtype)).bits)
    if 2 * size * bits // 8 > cache_bytes:
        return func
    line = _LINE_BYTES * 8 // bits
    turns = [
        *((each.loop_var, extent or 1) for each, extent in zip(around_tiles, chunks, strict=True)),
        *((value, extent or 1) for value, extent in zip(tile_of, tiles, strict=True)),
    ]
    parts = math.prod(extent for _, extent in turns) * count  # of a panel, one a step
    lines_a_step = size / line / parts
    together = next(
        each
        for each in range(1, count + 1)
        if count % each == 0 and (lines_a_step * each >= _BURST or each == count)
    )
    burst = math.ceil(lines_a_step * together)

    part, step, one = (tirx.Var(each, index) for each in ("part", "step", "line"))
    position = number(0)
    for value, extent in turns:
        position = position * number(extent) + value
    position = position * number(count // together) + part
    element = tirx.min((position * number(burst) + one) * number(line), number(size - 1))
    at: list[Any] = []
    for extent in reversed(inner_shape):
        at.insert(0, tirx.floormod(element, number(extent)))
        element = tirx.floordiv(element, number(extent))
    panel[-1] = tirx.min(panel[-1] + number(1), number((shape[panel_axes - 1] or 1) - 1))
    hint = tirx.call_llvm_intrin(
        "void",
        "llvm.prefetch",
        tirx.address_of(tirx.BufferLoad(buffer, [*panel, *at])),
        *(tirx.const(each, "int32") for each in (_READ, _SECOND_CACHE, _DATA)),
    )
    ask = tirx.For(one, number(0), number(burst), tirx.ForKind.UNROLLED, tirx.Evaluate(hint))

    def in_parts(loop: Any) -> Any:
        if not loop.same_as(outermost):
            return loop
        own = {loop.loop_var: part * number(together) + step}
        body = tirx.For(step, number(0), number(together), loop.kind, substitute(loop.body, own))
        whole = tirx.SeqStmt([ask, body])
        return tirx.For(part, number(0), number(count // together), loop.kind, whole)

    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.For, in_parts), order="pre"))


def _inside(loops: list[Any], loop: Any) -> set[Any]:
    """The variables of a loop and of those within it."""
    return {each.loop_var for each in loops[loops.index(loop) :]}


def _loops_around(statement: Any, block: str, loops: list[Any]) -> tuple[list[Any], Any] | None:
    """The loops around a block of that name, outermost first, and its realization."""
    from tvm import tirx
    from tvm.s_tir import SBlockRealize

    if isinstance(statement, tirx.For):
        return _loops_around(statement.body, block, [*loops, statement])
    if isinstance(statement, tirx.SeqStmt):
        each = (_loops_around(one, block, loops) for one in statement.seq)
        return next((found for found in each if found is not None), None)
    if isinstance(statement, SBlockRealize):
        if str(statement.block.name_hint) == block:
            return loops, statement
        return _loops_around(statement.block.body, block, loops)
    return None
