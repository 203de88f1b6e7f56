"""Packed weights asked for ahead of their use.

In a model every layer's weights were last read a whole run ago, and come from memory or a shared
cache. A column's panel of packed weights is read by many row tiles one after the other; the first
waits for it, the others find it near, and while they compute nothing is fetched. Here each row tile
asks for its part of the next panel, a few cache lines at a time.

It is a hint to the processor: no value depends on it, and the addresses stay within the buffer.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
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
# Steps between bursts: in one basic block with a burst, LLVM loads operands ahead of it, which
# spills.
_APART = 2
# One row tile alone reads all weights once, as they lie: hardware foresees that.
_FEWEST_ROW_TILES = 2
# llvm.prefetch: to read, into the second cache (a panel is larger than the first), data.
_READ, _SECOND_CACHE, _DATA = 0, 2, 1


@dataclass(frozen=True)
class _Use:
    """How a scheduled function uses a panel of the packed operand.

    Attributes:
        buffer: of the packed operand.
        panel: the indices that pick the panel.
        shape: of a panel, in elements.
        turns: what counts the uses of a panel, outermost first, each with its extent.
        row_tiles: how many row tiles use it.
        loop: the outermost loop over the steps of one turn.
        steps: its extent.
    """

    buffer: Any
    panel: list[Any]
    shape: list[int]
    turns: list[tuple[Any, int]]
    row_tiles: int
    loop: Any
    steps: int

    @property
    def size(self) -> int:
        """Elements of a panel."""
        return math.prod(self.shape)

    @property
    def bits(self) -> int:
        """Of an element."""
        import tvm

        return int(tvm.DataType(str(self.buffer.dtype)).bits)

    @property
    def line(self) -> int:
        """Elements of a cache line."""
        return _LINE_BYTES * 8 // self.bits


def foreseen(row_tiles: int, panel_bytes: int, cache_bytes: int) -> bool:
    """Whether row tiles should ask for a panel while they use the one before.

    Two panels fit the cache, and there are tiles enough to ask in time.
    """
    return row_tiles >= _FEWEST_ROW_TILES and 2 * panel_bytes <= cache_bytes


def prefetch_next_panel(
    func: Any,
    name: str,
    packed: str,
    *,
    panel_axes: int,
    row_tiles: Sequence[int],
    part_axes: Sequence[int] = (),
    block: int = 0,
    cache_bytes: int,
) -> Any:
    """`func` with prefetches of a packed operand's next panel while a panel is used.

    Args:
        func: a scheduled PrimFunc.
        name: of the block that adds a step of the sum to a tile.
        packed: the name of the operand's buffer [..., panels, steps of the sum ..., columns].
        panel_axes: how many of the buffer's axes pick a panel, the last of them the next one.
        row_tiles: which of the block's iterators count the row tiles of a panel.
        part_axes: which of them count the parts of a sum that are added when they are done.
        block: where a panel is used by so many row tiles at a time; 0: by all.
        cache_bytes: of the cache that the panel in use and the next are to share.

    Returns:
        The function; as it was where extents are symbolic, row tiles are few, two panels are
        larger than the cache, or something of another panel comes between row tiles.
    """
    # Phase 1. Find how a panel is used; leave alone what gains nothing.
    try:
        use = _find_use(func, name, packed, panel_axes, row_tiles, part_axes, block)
    except NotApplicable:
        return func
    if not foreseen(use.row_tiles, use.size * use.bits // 8, cache_bytes):
        return func

    # Phase 2. Share the lines of the next panel among the steps of this one's use.
    together, burst = _share_out(use)

    # Phase 3. Ask for a share ahead of its steps.
    return _with_bursts(func, use, together, burst)


def _find_use(
    func: Any,
    name: str,
    packed: str,
    panel_axes: int,
    row_tiles: Sequence[int],
    part_axes: Sequence[int],
    block: int,
) -> _Use:
    """How panels are used; NotApplicable where something of another comes between row tiles."""
    from tvm import tirx

    found = _loops_around(func.body, name, [])
    if found is None or not panel_axes:
        raise NotApplicable("there is no next panel")
    loops, realize = found
    if not isinstance(realize.block.body, tirx.BufferStore):
        return _find_use_in_registers(realize.block, packed, panel_axes, row_tiles, block)
    read = [each for each in loads(realize.block.body.value) if str(each.source.name) == packed]
    if len(read) != 1:
        raise NotApplicable("a step does not read the packed operand exactly once")
    buffer, indices = read[0].source, read[0].indices
    iterators = realize.block.iter_vars
    values = {each.var: value for each, value in zip(iterators, realize.iter_values, strict=True)}
    panel = [substitute(each, values) for each in indices[:panel_axes]]
    tiles = [(values[iterators[i].var], _whole(iterators[i].dom.extent)) for i in row_tiles]
    tiles = _in_blocks(tiles, block)

    steps = variables(*(values[each.var] for each in iterators if kind_of(each) == REDUCTION))
    counted = variables(*(values[iterators[i].var] for i in part_axes))
    sums = [each for each in loops if each.loop_var in steps | counted]
    # Where a sum is taken in parts, a part of all row tiles comes before the next part of any.
    tile_variables = variables(*(value for value, _ in tiles))
    outside = [each for each in sums if tile_variables & _inside(loops, each)]
    within = [each for each in sums[len(outside) :] if each.loop_var in counted]
    if len(outside) + len(within) == len(sums):
        raise NotApplicable("no loop of the sum is within a row tile")
    if variables(*panel) & _inside(loops, sums[0]):
        raise NotApplicable("another panel comes between the row tiles of one")
    loop = sums[len(outside) + len(within)]
    return _Use(
        buffer,
        panel,
        shape=[_whole(each) for each in buffer.shape][panel_axes:],
        turns=[*_counted(outside), *tiles, *_counted(within)],
        row_tiles=math.prod(extent for _, extent in tiles),
        loop=loop,
        steps=_whole(loop.extent),
    )


def _find_use_in_registers(
    sums: Any, packed: str, panel_axes: int, row_tiles: Sequence[int], block: int
) -> _Use:
    """How a block uses panels that sums a whole tile in tile registers, its steps within it."""
    read = [each for each in loads(sums.body) if str(each.source.name) == packed]
    steps = _first_loop(sums.body)
    if not read or steps is None:
        raise NotApplicable("the packed operand is not read in a loop")
    iterators = sums.iter_vars
    tiles = [(iterators[i].var, _whole(iterators[i].dom.extent)) for i in row_tiles]
    return _Use(
        read[0].source,
        list(read[0].indices[:panel_axes]),
        shape=[_whole(each) for each in read[0].source.shape][panel_axes:],
        turns=_in_blocks(tiles, block),
        row_tiles=math.prod(extent for _, extent in tiles),
        loop=steps,
        steps=_whole(steps.extent),
    )


def _in_blocks(tiles: list[tuple[Any, int]], block: int) -> list[tuple[Any, int]]:
    """What counts the uses of a panel by a block's row tiles; by all where there are no blocks."""
    from tvm import tirx

    if not block:
        return tiles
    position: Any = 0
    for value, extent in tiles:
        position = position * extent + value
    return [(tirx.floormod(position, block), block)]


def _counted(loops: list[Any]) -> list[tuple[Any, int]]:
    return [(each.loop_var, _whole(each.extent)) for each in loops]


def _share_out(use: _Use) -> tuple[int, int]:
    """Steps from one burst of prefetches to the next, and the lines of a burst."""
    steps = math.prod(extent for _, extent in use.turns) * use.steps
    lines_a_step = use.size / use.line / steps
    together = next(
        each
        for each in range(min(_APART, use.steps), use.steps + 1)
        if use.steps % each == 0 and (lines_a_step * each >= _BURST or each == use.steps)
    )
    return together, math.ceil(lines_a_step * together)


def _with_bursts(func: Any, use: _Use, together: int, burst: int) -> Any:
    """`func` with a burst of prefetches ahead of every so many steps."""
    import tvm_ffi
    from tvm import tirx

    index = str(use.loop.loop_var.ty.dtype)
    part, step, line = (tirx.Var(each, index) for each in ("part", "step", "line"))
    zero, parts = tirx.const(0, index), use.steps // together
    position: Any = 0
    for value, extent in use.turns:
        position = position * extent + value
    hint = _prefetch(use, (position * parts + part) * burst + line)
    ask = tirx.For(line, zero, tirx.const(burst, index), tirx.ForKind.UNROLLED, hint)

    def in_parts(loop: Any) -> Any:
        if not loop.same_as(use.loop):
            return loop
        own = {loop.loop_var: part * together + step}
        steps = tirx.const(together, index)
        body = tirx.For(step, zero, steps, loop.kind, substitute(loop.body, own))
        whole = tirx.SeqStmt([ask, body])
        return tirx.For(part, zero, tirx.const(parts, index), loop.kind, whole)

    return func.with_body(tvm_ffi.structural_map(func.body, (tirx.For, in_parts), order="pre"))


def _prefetch(use: _Use, line: Any) -> Any:
    """The prefetch of one cache line of the next panel, of its last line where there are fewer.

    After the last panel comes that one again.
    """
    from tvm import tirx

    element = tirx.min(line * use.line, use.size - 1)
    at: list[Any] = []
    for extent in reversed(use.shape):
        at.insert(0, tirx.floormod(element, extent))
        element = tirx.floordiv(element, extent)
    *outer, panel = use.panel
    following = tirx.min(panel + 1, use.buffer.shape[len(outer)] - 1)
    hint = tirx.call_llvm_intrin(
        "void",
        "llvm.prefetch",
        tirx.address_of(tirx.BufferLoad(use.buffer, [*outer, following, *at])),
        *(tirx.const(each, "int32") for each in (_READ, _SECOND_CACHE, _DATA)),
    )
    return tirx.Evaluate(hint)


def _whole(extent: Any) -> int:
    """The value of an extent; NotApplicable where it is symbolic."""
    value = constant(extent)
    if value is None:
        raise NotApplicable("an extent is symbolic")
    return value


def _inside(loops: list[Any], loop: Any) -> set[Any]:
    """The variables of a loop and of those within it."""
    return {each.loop_var for each in loops[loops.index(loop) :]}


def _first_loop(statement: Any) -> Any | None:
    """The first loop of a sequence of statements."""
    from tvm import tirx

    parts = statement.seq if isinstance(statement, tirx.SeqStmt) else [statement]
    return next((each for each in parts if isinstance(each, tirx.For)), None)


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
