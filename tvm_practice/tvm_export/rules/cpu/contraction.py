"""Matrix products and convolutions: register tiles over a packed operand.

A contraction multiplies two operands and sums. One spatial axis that only one operand has, the
*column*, is made the vector: that operand is packed so that a tile of columns lies contiguous
for each step of the sum. Axes that only the other operand has are the *rows*: a few of them are
unrolled, and each broadcasts one element a step. The tile of rows x columns stays in vector
registers for the whole sum and is written back once, through the operators fused after it. A sum
of many terms is taken in parts, for its rounding errors: each part stays in the registers, and the
tile's sums, to which it is added, in memory.

    dense    Y[i, j] = sum_k X[i, k] W[k, j]                         row i, column j
    conv2d   Y[n, f, y, x] = sum_crs X[n, c, y + r, x + s] W[f, c, r, s]
                                                                     rows n, y, x, column f

The packed operand of a layer is a constant: its packing is split off and done at compile time.
Tiles need not divide: the packed operand is padded with zeros, of the other the last row is read
again for those beyond it, and only what exists is written back.
"""

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.loops import (
    CONSTANTS,
    REDUCTION,
    SPATIAL,
    Cpu,
    blocks_of,
    both_orders,
    constant,
    is_reduction,
    kind_of,
    loads,
    substitute,
    variables,
)
from tvm_practice.tvm_export.rules.cpu.prefetch import foreseen
from tvm_practice.tvm_export.rules.cpu.row_blocks import WAITING, tiles_of_block

# Two multiply-adds and two loads start in a cycle; a multiply-add takes four.
# Loads start late now and then, so that sums that wait for each other take a little longer.
_A_CYCLE, _LATENCY = 2, 4.5
# Loads that hide behind multiply-adds still cost a little.
_A_LOAD = 0.05
VECTORS = (1, 2, 3, 4, 6, 8)
# A tile written back across its vectors goes through shuffles, and LLVM spills larger ones.
_TRANSPOSED_ROWS, _TRANSPOSED_VECTORS = 8, 2
_SPILLS = 4
# What lies beyond the last column, or row where those are written back as vectors, costs masks and
# stores across cache lines at write-back beside wasted arithmetic: of a matrix so many cycles an
# element.
_INEXACT, _CHECKED = 1.1, 1.0
# Parts of a sum that are tried first, and what their sums' way through memory is taken for.
_CHUNKS, _APART = (1, 4), 1.1
# A panel of a matrix is read by one row tile after the other. With vectors of so many bits, one
# that does not fit the first cache keeps sums waiting: it comes from the second, so many bytes a
# cycle; one that leaves no room there for the other operand comes from beyond it in part. With
# 256-bit vectors, and of windows and batches, sums taken in parts like that were slower.
_WIDE, _WIDE_CHUNKS = 512, (1, 2, 4, 8)
# Where four parts do not divide the sum, any number of them up to eight.
_UNEVEN_CHUNKS = tuple(range(1, 9))
_FIRST_CACHE, _ROOM = 1 << 15, 0.25
_FROM_SECOND, _FROM_BEYOND = 512, 128
# No tile is faster than the second cache delivers its panel, so many bytes a cycle: one of few rows
# and many vectors waits.
_AT_MOST = 32
# The address of a line of memory decides in which set of the first cache it can be, and a set has
# so many places. Rows that lie a multiple of 4096 bytes apart share one set. Where a tile reads
# more of them, each comes from the second cache, so many cycles a step.
_LINE, _SETS, _PLACES = 64, 64, 8
_FROM_SET = 0.4
# A constant's panels come from memory, so many bytes a cycle where tiles ask for them ahead, which
# hides most of the shorter of fetching and computing; else so many while nothing is computed.
_AHEAD, _BESIDE, _WAITED_FOR = 5.5, 0.2, 8
# What a step takes where LLVM has no register left to load ahead, and where it has few.
_TIGHT, _FEW_LEFT = 1.1, 1.03
# What packing the other operand at every call is taken for.
_COPIED = 1.05
# Steps of the sum that are unrolled, the most that divide: fewer instructions beside the sums.
_UNROLLED = 8
# LLVM keeps sums in registers only in loops that access memory at most 250 times
# (licm-mssa-max-acc-promotion). Eight steps of whole numbers or of groups do so more often, and
# their sums go through memory: half as many stores as products.
_UNROLLED_LESS = 4
# What a symbolic extent is taken for when tiles are chosen.
UNKNOWN = 64
# Rounding errors grow with the number of terms that are added one after the other. A longer sum is
# a sum of parts, each of at most so many terms, or of a few more where only that divides. See
# Higham, Accuracy and Stability of Numerical Algorithms, 4.2 (blocked summation).
_TERMS, _FEWEST_TERMS = 256, 32


@dataclass(frozen=True)
class Contraction:
    """The reduction out[outer, rows, column] = sum over `reduced` of packed * other.

    Attributes:
        block: the block that computes it.
        value: what the block stores at each step.
        extents: of every iterator below; those of extent 1 are replaced by 0 everywhere.
        origin: every spatial iterator below in terms of the block's own: a filter of a grouped
            convolution is taken apart into its group and its number in the group.
        outer, rows, column: the spatial iterators; see the module's description.
        packed, other: the two loads in `value`.
        prepack: whether `packed` is a constant of the model.
        transposed: whether the column is not the innermost axis of the output.
    """

    block: Any
    value: Any
    extents: dict[Any, Any]
    origin: dict[Any, Any]
    reduced: list[Any]
    outer: list[Any]
    rows: list[Any]
    column: Any
    packed: Any
    other: Any
    prepack: bool
    transposed: bool

    @cached_property
    def windowless(self) -> bool:
        """Whether every axis of `other` is one iterator, as in a matrix product."""
        return self._is_of_iterators(self.other.indices)

    @cached_property
    def is_matrix(self) -> bool:
        """Whether no window slides over `other`, or it is rows of groups that are read as they lie.

        Of images in groups, which have several row iterators, sums in parts were slower.
        """
        from tvm import tirx

        indices = list(self.other.indices)
        if len(self.rows) == 1 and indices and isinstance(indices[-1], tirx.Ramp):
            base = indices[-1].base
            within = variables(base)
            indices[-1] = within.pop() if len(within) == 1 else base
        return self._is_of_iterators(indices)

    @cached_property
    def row_strides(self) -> dict[Any, int]:
        """Bytes from a row of `other` to the next, by row iterator; none where extents are open."""
        import tvm
        from tvm import tirx
        from tvm.tirx.expr import Ramp

        shape = [constant(each) for each in self.other.source.shape]
        if None in shape:
            return {}
        analyzer = tvm.sym.Analyzer()
        bits = int(tvm.DataType(str(self.other.source.dtype)).bits)
        indices = [each.base if isinstance(each, Ramp) else each for each in self.other.indices]

        def offset(row: Any, number: int) -> int | None:
            values = {
                each: tirx.const(number * each.same_as(row), str(each.ty.dtype))
                for each in variables(*indices)
            }
            place = 0
            for index, extent in zip(indices, shape, strict=True):
                at = constant(analyzer.simplify(substitute(index, values)))
                if at is None:
                    return None
                place = place * (extent or 1) + at
            return place * bits // 8

        strides = {}
        for row in self.rows:
            first, second = offset(row, 0), offset(row, 1)
            if first is None or second is None:
                return {}
            strides[row] = second - first
        return strides

    def _is_of_iterators(self, indices: Iterable[Any]) -> bool:
        known = [each for each in indices if constant(each) is None]
        return all(each in self.extents for each in known) and len(known) == len(set(known))

    @cached_property
    def adds_floats(self) -> bool:
        """Whether the value is what is stored already, plus a floating-point term; from 0 on."""
        from tvm import tirx
        from tvm.ir.expr import TensorLoad

        out, start = self.block.body.buffer, getattr(self.block.init.value, "value", None)
        if not str(out.dtype).startswith("float") or start != 0:
            return False
        return any(
            isinstance(total, TensorLoad)
            and total.source.same_as(out)
            and all(not each.source.same_as(out) for each in loads(term))
            for total, term in both_orders(self.value, tirx.Add)
        )

    @cached_property
    def of_group(self) -> bool:
        """Whether the column is part of an iterator, its number in a group."""
        return not self.origin[self.column].same_as(self.column)


@dataclass(frozen=True)
class TileChoice:
    """A point of the space of register tiles: what a tuner decides, and the rules guess.

    Attributes:
        rows: the most rows of a tile.
        vectors: vector registers that a tile is wide.
        unroll: steps of the sum that are unrolled, where that divides.
        rows_first: whether the tiles of a column are far apart, and not those of a row.
        chunks: parts that the sum is taken in, where that divides. All tiles that share a piece
            of the packed operand take one part of it before any takes the next, so that a part
            is still in the cache; meanwhile their sums are in memory.
        both: whether the other operand is packed too, at every call: a tile's rows lie side by
            side for each step of the sum. Only where no window slides over it.
    """

    rows: int
    vectors: int
    unroll: int = 1
    rows_first: bool = False
    chunks: int = 1
    both: bool = False


@dataclass(frozen=True)
class Tile:
    """Rows (by iterator) and columns kept in registers; whether each divides its extent."""

    rows: dict[Any, int]
    columns: int
    exact_rows: bool
    exact_columns: bool


def find_contraction(func: Any, cpu: Cpu) -> Contraction:
    """The contraction that `func` computes.

    Raises:
        NotApplicable: it has another reduction or none, or that has no packing that pays.
    """
    reductions = [each for each in blocks_of(func) if is_reduction(each)]
    if len(reductions) != 1:
        raise NotApplicable(f"there are {len(reductions)} reductions, not one")
    return _analyse(reductions[0], _constants(func), cpu)


def _constants(func: Any) -> set[Any]:
    """Buffers that hold nothing but constants of the model: weights, and what is made of them."""
    attributes = func.attrs or {}
    known = {func.params[int(each)] for each in attributes.get(CONSTANTS, ())}
    for block in blocks_of(func):
        if block.reads and {each.source for each in block.reads} <= known:
            known |= {each.source for each in block.writes}
    return known


def _analyse(block: Any, constants: set[Any], cpu: Cpu) -> Contraction:
    """The block's best contraction: a constant packed before all, then columns innermost."""
    from tvm import tirx

    if not all(isinstance(each, tirx.BufferStore) for each in (block.body, block.init)):
        raise NotApplicable("a step of the reduction stores more than one value")
    values, extents, origin = _iterators(block)
    value, operands, last = _sum_of_two(block, values, extents, origin)
    best: tuple[int, Contraction] | None = None
    reduced = [each for each in extents if each not in origin]
    for packed, other in (operands, operands[::-1]):
        in_other, in_packed = variables(*other.indices), variables(*packed.indices)
        rows = [each for each in origin if each in in_other - in_packed]
        if any(not origin[each].same_as(each) for each in rows):
            continue  # where tiles of part of an iterator are written could not be told
        for column in origin:
            held = [variables(each) for each in packed.indices if column in variables(each)]
            if column in in_other or not held or any(each & set(reduced) for each in held):
                continue  # not of `packed` alone, or a window slides along it
            extent = constant(extents[column])
            if extent is not None and 2 * extent < cpu.lanes(block.body.buffer.dtype):
                continue
            innermost = last in variables(origin[column])
            prepack = packed.source in constants
            if not (rows or innermost or prepack):
                continue  # used once and packed for that: the images of a depthwise convolution
            found = Contraction(
                block=block,
                value=value,
                extents=extents,
                origin=origin,
                reduced=reduced,
                outer=[each for each in origin if each not in rows and not each.same_as(column)],
                rows=rows,
                column=column,
                packed=packed,
                other=other,
                prepack=prepack,
                transposed=not innermost and bool(rows),
            )
            score = 2 * found.prepack + innermost
            if best is None or score > best[0]:
                best = score, found
    if best is None:
        raise NotApplicable("no axis of one operand alone makes a vector that pays for packing")
    return best[1]


def _sum_of_two(
    block: Any, values: dict[Any, Any], extents: dict[Any, Any], origin: dict[Any, Any]
) -> tuple[Any, list[Any], Any]:
    """The value that the block stores, its two operands, the output's innermost iterator.

    Raises NotApplicable.
    """
    import tvm
    from tvm import tirx

    out = block.body.buffer
    if any(constant(each) == 0 for each in extents.values()):
        raise NotApplicable("no element is computed")
    analyzer = tvm.sym.Analyzer()
    for var, extent in extents.items():
        analyzer.bind(var, tvm.ir.Range(tirx.const(0, str(var.ty.dtype)), extent))
    value = _simplify_indices(substitute(block.body.value, values), analyzer)
    operands = [each for each in loads(value) if not each.source.same_as(out)]
    spatial = {each.var for each in block.iter_vars if kind_of(each) == SPATIAL}
    indices = [each for each in block.body.indices if constant(each) is None]
    written = [each for each in indices if each in spatial and constant(values[each]) is None]
    if len(operands) != 2:
        raise NotApplicable(f"the reduction has {len(operands)} operands, not two")
    if not written or not set(indices) <= spatial:
        raise NotApplicable("the output's indices are not the block's iterators")
    if len(extents) == len(origin):
        raise NotApplicable("the sum has one element")
    return value, operands, written[-1]


def _iterators(block: Any) -> tuple[dict[Any, Any], dict[Any, Any], dict[Any, Any]]:
    """What replaces a block's iterators; extents and origin of what is left, as in Contraction."""
    from tvm import tirx

    values: dict[Any, Any] = {}
    extents: dict[Any, Any] = {}
    origin: dict[Any, Any] = {}
    for each in block.iter_vars:
        var, extent = each.var, each.dom.extent
        size = None if constant(extent) is None else _group_size(each, block.body.value)
        if constant(extent) == 1:
            values[var] = tirx.const(0, str(var.ty.dtype))
        elif kind_of(each) == REDUCTION:
            values[var], extents[var] = var, extent
        elif size is None:
            values[var], extents[var], origin[var] = var, extent, var
        else:
            dtype = str(var.ty.dtype)
            group = tirx.Var(f"{var.name}_group", dtype)
            number = tirx.Var(f"{var.name}_number", dtype)
            values[var] = group * size + number
            extents[group] = tirx.floordiv(extent, size)
            extents[number] = tirx.const(size, dtype)
            origin[group], origin[number] = tirx.floordiv(var, size), tirx.floormod(var, size)
    return values, extents, origin


def _group_size(iterator: Any, value: Any) -> int | None:
    """The size where `value` is indexed by iterator // size, as in a grouped convolution."""
    import tvm_ffi
    from tvm import tirx

    sizes: set[int] = set()
    rests: list[Any] = []

    def keep(division: Any) -> None:
        size = constant(division.b)
        if division.a.same_as(iterator.var) and size is not None and size > 1:
            sizes.add(size)

    def keep_rest(division: Any) -> None:
        if division.a.same_as(iterator.var):
            rests.append(division)

    tvm_ffi.structural_walk(value, (tirx.FloorDiv, keep))
    tvm_ffi.structural_walk(value, (tirx.FloorMod, keep_rest))
    if rests:  # several axes counted by one iterator
        return None
    divides = len(sizes) == 1 and (constant(iterator.dom.extent) or 0) % min(sizes) == 0
    return sizes.pop() if divides else None


def _simplify_indices(expression: Any, analyzer: Any) -> Any:
    import tvm_ffi
    from tvm import tirx
    from tvm.ir.expr import TensorLoad

    def simplified(load: Any) -> Any:
        return tirx.BufferLoad(load.source, [analyzer.simplify(each) for each in load.indices])

    return tvm_ffi.structural_map(expression, (TensorLoad, simplified), order="post")


def ranked_tiles(found: Contraction, cpu: Cpu) -> list[tuple[TileChoice, Tile]]:
    """The tiles that fit the vector registers, by the cycles that they should take."""
    ranked: dict[tuple[int, ...], tuple[float, TileChoice, Tile]] = {}
    packings = (False, True) if found.windowless and found.rows else (False,)
    parts = _parts(found) if _streams(found, cpu) else _CHUNKS
    unrolls = {chunks: _unroll(found, chunks) for chunks in parts}
    for vectors, chunks, both in itertools.product(VECTORS, parts, packings):
        for rows in range(1, (cpu.registers - 1) // vectors):
            choice = TileChoice(rows, vectors, unrolls[chunks], chunks=chunks, both=both)
            if chunks > 1 and _streams(found, cpu) and not _can_wait(found, cpu, choice):
                continue
            try:
                cost, tile = predicted_cycles(found, cpu, choice)
            except NotApplicable:
                continue
            key = (*tile.rows.values(), tile.columns, chunks, both)
            ranked.setdefault(key, (cost, choice, tile))
    if not ranked:
        raise NotApplicable("a group does not fill vector registers")
    return [(choice, tile) for _, choice, tile in sorted(ranked.values(), key=lambda it: it[0])]


def predicted_cycles(found: Contraction, cpu: Cpu, choice: TileChoice) -> tuple[float, Tile]:
    """What tiles are ranked by: cycles of the whole contraction in a choice's tile, and that tile.

    Raises:
        NotApplicable: the choice does not go with the contraction.
    """
    computing, tile = _tile(found, cpu, choice)
    return _fetching_too(found, cpu, tile, computing), tile


def least_cost(found: Contraction, cpu: Cpu) -> tuple[float, Tile]:
    """The cycles that the whole contraction should take in its best tile, and that tile."""
    return _tile(found, cpu, ranked_tiles(found, cpu)[0][0])


def _parts(found: Contraction) -> tuple[int, ...]:
    """The numbers of parts that the sum of a matrix product is tried in."""
    steps = constant(found.extents[found.reduced[0]]) or 1
    return _UNEVEN_CHUNKS if steps % 4 else _WIDE_CHUNKS


def _unroll(found: Contraction, chunks: int) -> int:
    """The most steps of the innermost sum that divide it, its parts if it is taken in parts."""
    innermost = constant(found.extents[found.reduced[-1]]) or 1
    if parts := parts_to_add(found, chunks):
        innermost //= parts.get(found.reduced[-1], 1)
    elif len(found.reduced) == 1:  # it is what chunks are made of
        innermost //= chunks
    types = found.block.body.buffer.dtype, found.packed.source.dtype
    less = any(str(each).startswith("int") for each in types)
    most = _UNROLLED_LESS if less else _UNROLLED
    return next(steps for steps in range(most, 0, -1) if innermost % steps == 0)


def parts_to_add(found: Contraction, chunks: int) -> dict[Any, int]:
    """How many parts of a long sum are each begun at 0 and then added, by iterator of the sum.

    Args:
        found: the contraction.
        chunks: see `TileChoice`; they are of whole parts.
    """
    extents = [constant(found.extents[each]) for each in found.reduced]
    if None in extents or not found.adds_floats:
        return {}
    parts: dict[Any, int] = {}
    terms, together = _steps(found), chunks
    for each, extent in zip(found.reduced, extents, strict=True):
        if terms <= _TERMS:
            break
        whole = [
            count
            for count in range(together, (extent or 1) + 1, together)
            if (extent or 1) % count == 0 and terms // count >= _FEWEST_TERMS
        ]
        if not whole:
            break
        count = next((count for count in whole if terms // count <= _TERMS), whole[-1])
        if count > 1:
            parts[each] = count
        if count != extent:
            break
        terms, together = terms // count, 1
    return parts


def tile_of(found: Contraction, cpu: Cpu, choice: TileChoice) -> Tile:
    """The tile that a choice stands for."""
    return _tile(found, cpu, choice)[1]


def _tile(found: Contraction, cpu: Cpu, choice: TileChoice) -> tuple[float, Tile]:
    """The cycles that a tile should take over the whole contraction, and the tile."""
    lanes = cpu.lanes(found.block.body.buffer.dtype)
    extent = constant(found.extents[found.column])
    columns, width = extent or UNKNOWN, choice.vectors * lanes
    if found.of_group and width != columns:
        raise NotApplicable("the write-back would reach into the next group")
    rows, tiles, exact_rows = _row_tile(found, choice.rows)
    size = math.prod(rows.values())
    steps = constant(found.extents[found.reduced[0]]) or 1
    if choice.chunks > 1 and (tiles == 1 or steps % choice.chunks):
        raise NotApplicable("no two tiles share a part of the sum")
    exact_columns = extent is not None and columns % width == 0
    tile = Tile(rows, width, exact_rows, exact_columns)
    if _streams(found, cpu):
        if block := block_of(found, tile, choice, cpu):
            tiles = math.ceil(tiles / block) * block
        step = _step_of_matrix(found, cpu, choice, tile, tiles)
    else:
        panel_bytes = choice.vectors * cpu.vector_bits // 8 * _steps(found) / choice.chunks
        step = _fed(_step(size, choice.vectors), choice.vectors, panel_bytes, cpu)
        step += _from_full_sets(found, tile, choice)
        step *= tiles * (_APART if choice.chunks > 1 else 1) * (1 if exact_columns else _INEXACT)
    step *= _COPIED if choice.both else 1
    cost = math.ceil(columns / width) * step
    if found.transposed and choice.chunks == 1:  # else it is read from memory
        wide = choice.vectors > _TRANSPOSED_VECTORS and not found.of_group
        cost *= _SPILLS if wide or size > _TRANSPOSED_ROWS else 1
        cost *= 1 if exact_rows else _INEXACT
    return cost, tile


def block_of(
    found: Contraction, tile: Tile, choice: TileChoice, cpu: Cpu, *, in_registers: bool = False
) -> int:
    """Row tiles that take all panels before the next ones do, see `row_blocks`; 0: all take one."""
    if not found.prepack or found.transposed or not found.rows or choice.both or choice.rows_first:
        return 0
    extents = {each: constant(found.extents[each]) for each in (*found.rows, found.column)}
    other, packed = bytes_of(found.other.source), bytes_of(found.packed.source)
    if None in extents.values() or other is None or packed is None:
        return 0
    return tiles_of_block(
        _row_tiles(found, tile),
        math.ceil((extents[found.column] or 1) / tile.columns),
        4 * math.prod(tile.rows.values()) * tile.columns,
        other,
        packed,
        choice.chunks,
        cpu,
        in_registers=in_registers,
    )


def bytes_of(buffer: Any) -> int | None:
    """Of a buffer, None where an extent is open."""
    import tvm

    shape = [constant(each) for each in buffer.shape]
    bits = int(tvm.DataType(str(buffer.dtype)).bits)
    return None if None in shape else math.prod(each or 0 for each in shape) * bits // 8


def _streams(found: Contraction, cpu: Cpu) -> bool:
    """Whether sums may wait for a panel of the packed operand."""
    return cpu.vector_bits >= _WIDE and found.is_matrix and not found.outer


def _can_wait(found: Contraction, cpu: Cpu, choice: TileChoice) -> bool:
    """Whether the sums of a panel's tiles can wait, and panels are enough for the threads.

    They fit the cache, or those of a block of rows do.
    """
    rows = math.prod(constant(found.extents[each]) or UNKNOWN for each in found.rows)
    width = choice.vectors * cpu.lanes(found.block.body.buffer.dtype)
    panels = math.ceil((constant(found.extents[found.column]) or UNKNOWN) / width)
    waits = rows * width * 4 <= WAITING or (found.prepack and not found.transposed)
    return waits and panels >= 2 * cpu.threads


def _step(rows: int, vectors: int) -> float:
    """Cycles of a step of a tile's sum, with all operands in the first cache."""
    step = max(rows * vectors / _A_CYCLE, (rows + vectors) / _A_CYCLE, _LATENCY)
    return step + (rows + vectors) * _A_LOAD


def _fed(step: float, vectors: int, panel_bytes: float, cpu: Cpu) -> float:
    """Cycles of a step that takes so many without waiting for a panel of so many bytes."""
    if panel_bytes <= _FIRST_CACHE:
        return step
    return max(step, vectors * cpu.vector_bits // 8 / _AT_MOST)


def step_of_panel(rows: int, vectors: int, panel_bytes: float, cpu: Cpu) -> float:
    """Cycles of a step of a tile's sum, where one row tile after the other reads a panel.

    Args:
        rows, vectors: of the tile.
        panel_bytes: of the packed operand, as much as is read again.
        cpu: the processor.
    """
    step = _fed(_step(rows, vectors), vectors, panel_bytes, cpu)
    if panel_bytes > _FIRST_CACHE:
        is_large = panel_bytes > _ROOM * cpu.cache_bytes
        width = vectors * cpu.vector_bits // 8
        step += width / (_FROM_BEYOND if is_large else _FROM_SECOND)
    held = (rows + 1) * vectors + 2  # two of them elements of the other operand
    if held >= cpu.registers:
        return step * _TIGHT
    return step * (_FEW_LEFT if held > 0.75 * cpu.registers else 1)


def _step_of_matrix(
    found: Contraction, cpu: Cpu, choice: TileChoice, tile: Tile, tiles: int
) -> float:
    """Cycles of a step of the sums of a panel's row tiles."""
    rows, steps = math.prod(tile.rows.values()), _steps(found)
    if tiles > 1:
        step = tiles * _step_in_parts(rows, choice, steps, cpu)
    else:
        step = _step(rows, choice.vectors)
    step += tiles * _from_full_sets(found, tile, choice)
    if not tile.exact_columns:
        step += tiles * rows * tile.columns * _CHECKED / steps
    return step


def _from_full_sets(found: Contraction, tile: Tile, choice: TileChoice) -> float:
    """Cycles of a step where a tile's rows do not fit the sets of the first cache, see `_SETS`."""
    if choice.both or not found.row_strides:
        return 0.0
    numbers = itertools.product(*(range(size) for size in tile.rows.values()))
    lines = [
        sum(found.row_strides[row] * each for row, each in zip(tile.rows, of_rows, strict=True))
        // _LINE
        for of_rows in numbers
    ]
    sets = Counter(line % _SETS for line in set(lines))
    return _FROM_SET * sum(count for count in sets.values() if count > _PLACES)


def _fetching_too(found: Contraction, cpu: Cpu, tile: Tile, computing: float) -> float:
    """Cycles of a matrix product where weights come from memory; else those of computing alone.

    They tell tiles apart. Other kinds of contraction are compared by computing alone.
    """
    if not (_streams(found, cpu) and found.prepack):
        return computing
    width = tile.columns * cpu.vector_bits // 8 // cpu.lanes(found.block.body.buffer.dtype)
    panels = math.ceil((constant(found.extents[found.column]) or UNKNOWN) / tile.columns)
    if foreseen(math.prod(_row_tiles(found, tile)), width * _steps(found), cpu.cache_bytes):
        fetching = panels * width / _AHEAD
        return max(computing, fetching) + min(computing, fetching) * _BESIDE
    return computing + panels * width / _WAITED_FOR


def _row_tiles(found: Contraction, tile: Tile) -> list[int]:
    """How many there are along each row iterator: together they use a panel."""
    extents = {each: constant(found.extents[each]) or UNKNOWN for each in found.rows}
    return [math.ceil(extents[each] / tile.rows[each]) for each in found.rows]


def _steps(found: Contraction) -> int:
    """Of the sum."""
    return math.prod(constant(found.extents[each]) or UNKNOWN for each in found.reduced)


def _step_in_parts(rows: int, choice: TileChoice, steps: int, cpu: Cpu) -> float:
    """Cycles of a step of a sum of so many, that is taken in as many parts as were chosen."""
    panel_bytes = choice.vectors * cpu.vector_bits // 8 * steps / choice.chunks
    step = step_of_panel(rows, choice.vectors, panel_bytes, cpu)
    if choice.chunks > 1:  # every sum is loaded and stored once for each part
        step += 2 * rows * choice.vectors * choice.chunks / steps
    return step


def _row_tile(found: Contraction, budget: int) -> tuple[dict[Any, int], int, bool]:
    """Up to `budget` rows, innermost first; how many such tiles there are; whether they divide."""
    extents = [constant(found.extents[row]) for row in found.rows]
    sizes, tiles, exact = row_tile(extents, budget)
    return dict(reversed([*zip(found.rows, sizes, strict=True)])), tiles, exact


def row_tile(extents: Sequence[int | None], budget: int) -> tuple[list[int], int, bool]:
    """How many rows of each iterator, see `_row_tile`.

    Args:
        extents: of the row iterators, the innermost last; None if symbolic.
        budget: the most rows of a tile.
    """
    sizes: list[int] = []
    tiles, exact = 1, True
    for extent in reversed(extents):
        # Of a symbolic extent one: that tiles of more cover the output could not be proved.
        size = 1 if extent is None else min(budget, extent)
        budget = budget // size if size == extent else 1
        tiles *= math.ceil((extent or UNKNOWN) / size)
        exact &= extent is None or extent % size == 0
        sizes.append(size)
    return sizes[::-1], tiles, exact
