"""Contractions written anew in register tiles, and the schedule of such a function."""

import math
from collections.abc import Callable, Hashable
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import (
    UNKNOWN,
    VECTORS,
    Contraction,
    Tile,
    TileChoice,
    block_of,
    find_contraction,
    parts_to_add,
    ranked_tiles,
    tile_of,
)
from tvm_practice.tvm_export.rules.cpu.dot_products import in_groups, wrapper_of
from tvm_practice.tvm_export.rules.cpu.loops import (
    CONSTANTS,
    REDUCTION,
    SPATIAL,
    Axis,
    Cpu,
    constant,
    is_copy,
    kind_of,
    nest,
    only_block,
    stages,
    substitute,
    variables,
    with_stages,
)
from tvm_practice.tvm_export.rules.cpu.prefetch import prefetch_next_panel
from tvm_practice.tvm_export.rules.cpu.row_blocks import WAITING
from tvm_practice.tvm_export.rules.cpu.scheduling import (
    TASKS,
    extent_of,
    inline_epilogue,
    iterations,
    parallelize,
    schedule_stage,
    vectorize,
)
from tvm_practice.tvm_export.rules.cpu.tile_registers import (
    ProductNest,
    TileProducts,
    asking,
    configured,
    tile_products,
)

# Row tiles from which packing an operand that is no constant pays for itself.
_PACKING_PAYS = 3
# Multiply-adds that take as long as an element of an elementwise operator.
WORK_AN_ELEMENT = 4

# The annotations of a tuner's choice, and the values that each can have. Records name a value by
# its place: new ones come last.
_ADVICE = "tvm_practice.register_tile."
_UP_TO_EIGHT = [1, 2, 4, 8, 3, 5, 6, 7]
CHOICES: dict[str, list[int]] = {
    "rows": list(range(1, 31)),
    "vectors": list(VECTORS),
    "unroll": _UP_TO_EIGHT,
    "rows_first": [0, 1],
    "chunks": _UP_TO_EIGHT,
    "both": [0, 1],
}


class Rewriter:
    """Writes a contraction anew, in tiles.

    Attributes:
        found, tile, choice: what it was made from.
        block: row tiles that take all panels before the next ones take any, see `row_blocks`; 0:
            all take one panel before any takes the next. With one row iterator their number is
            rounded up to whole blocks.
        packs: how the packed operand is read: "constant" (packed at compile time), "run" (packed
            at every call) or "direct" (as it lies).
        products: of tile registers, that sum a tile; None: it is summed in vectors.
        parts: how many of the sum are added when they are done, by iterator; see `parts_to_add`.
        sum, total, copy, pack, pack_rows: names of the blocks of `func` that sum a tile, or a part
            of its sum; add the parts (`sum` where it has but one); copy the tile to the output;
            and pack the operand of the columns and the other.
    """

    def __init__(
        self,
        func: Any,
        found: Contraction,
        tile: Tile,
        choice: TileChoice,
        block: int = 0,
        products: TileProducts | None = None,
    ):
        self.found, self.tile, self.choice, self.block = found, tile, choice, block
        self.products = products
        self.parts = {} if products else parts_to_add(found, choice.chunks)
        self._packs_both = choice.both and found.windowless and bool(found.rows)
        self.copy = str(found.block.name_hint)
        self.sum, self.pack, self.pack_rows = (
            f"{self.copy}_{part}" for part in ("tile", "pack", "pack_rows")
        )
        self.total = f"{self.copy}_total" if self.parts else self.sum
        self.packs = self._how_to_pack()
        self._index = str(found.column.ty.dtype)
        self._edges = [row for row in found.rows if self._reaches_beyond(row)]
        self.func = self._rewrite(func)

    @property
    def outside(self) -> tuple[int, int]:
        """Loops around a tile's sum, and how many of them pick what is packed."""
        axes = self._total_axes()
        keys = [key for key, _, _ in axes[: [kind for _, _, kind in axes].index(REDUCTION)]]
        rows = sum(isinstance(key, tuple) and key[0] in self.tile.rows for key in keys)
        return len(keys), len(keys) - rows

    @property
    def panel_axes(self) -> int:
        """Axes of the packed operand that pick a panel; 0 where there is but one."""
        keys = [key for key, _, _ in self._pack_axes()]
        tile = (self.found.column, "tile")
        return keys.index(tile) + 1 if tile in keys else 0

    @property
    def row_tiles(self) -> list[int]:
        """Which axes of the sum count row tiles."""
        keys = [key for key, _, _ in self._sum_axes()]
        return [
            number
            for number, key in enumerate(keys)
            if isinstance(key, tuple) and key[1] == "tile" and key[0] in self.tile.rows
        ]

    @property
    def part_axes(self) -> list[int]:
        """Which axes of the sum count its parts."""
        keys = [key for key, _, _ in self._sum_axes()]
        return [keys.index((each, "part")) for each in self.parts]

    @property
    def inside(self) -> tuple[int, int]:
        """Loops over the steps of a part, and loops within a tile but those of one iteration."""
        steps = [kind for _, _, kind in self._sum_axes()].count(REDUCTION)
        return steps, 1 + sum(size > 1 for size in self.tile.rows.values())

    def _how_to_pack(self) -> str:
        found, tile = self.found, self.tile
        if found.prepack:
            return "constant"
        row_tiles = math.prod(
            math.ceil((constant(found.extents[row]) or UNKNOWN) / size)
            for row, size in tile.rows.items()
        )
        contiguous = found.packed.indices[-1].same_as(found.column)
        return (
            "direct" if row_tiles < _PACKING_PAYS and contiguous and tile.exact_columns else "run"
        )

    def _count(self, var: Any) -> Any:
        """Tiles along a row iterator or the column."""
        import tvm

        size = self._size(var)
        extent = self.found.extents[var]
        if self.block and len(self.found.rows) == 1 and var.same_as(self.found.rows[0]):
            tiles = math.ceil((constant(extent) or 1) / (size * self.block)) * self.block
            return tvm.tirx.const(tiles, self._index)
        whole = tvm.tirx.floordiv(extent + (size - 1), tvm.tirx.const(size, self._index))
        return tvm.sym.Analyzer().simplify(whole)

    def _reaches_beyond(self, row: Any) -> bool:
        """Whether the last tile or block does; of a symbolic extent a tile has one row."""
        extent, count = constant(self.found.extents[row]), constant(self._count(row))
        return None not in (extent, count) and extent != (count or 0) * self._size(row)

    def _size(self, var: Any) -> int:
        return self.tile.columns if var.same_as(self.found.column) else self.tile.rows[var]

    def _rewrite(self, func: Any) -> Any:
        from tvm import tirx

        found = self.found
        made: list[Any] = []
        buffers = list(func.body.block.alloc_buffers)
        other, packed = found.other.source, found.packed.source
        if self._packs_both:
            shape = [extent for _, extent, _ in self._other_axes()]
            other = tirx.decl_buffer(shape, other.dtype, self.pack_rows)
            buffers.append(other)
            made.append(self._rows_nest(other))
        if self.packs != "direct":
            shape = [extent for _, extent, _ in self._pack_axes()]
            packed = tirx.decl_buffer(shape, packed.dtype, self.pack)
            buffers.append(packed)
            made.append(self._pack_nest(packed))
        total = self._buffer_of(self._sum_axes(), self.sum)
        buffers.append(total)
        made.append(self._sum_nest(total, packed, other))
        if self.parts:
            partial, total = total, self._buffer_of(self._total_axes(), self.total)
            buffers.append(total)
            made.append(self._total_nest(total, partial))
        made.append(self._copy_nest(total))
        statements = []
        for stage in stages(func):
            block = only_block(stage)
            statements += made if block.same_as(found.block) else [stage]
        return with_stages(func, statements, buffers)

    def _buffer_of(self, axes: list[Axis], name: str) -> Any:
        from tvm import tirx

        shape = [extent for _, extent, kind in axes if kind == SPATIAL]
        return tirx.decl_buffer(shape, self.found.block.body.buffer.dtype, name)

    # An iterator's key is the iterator itself, or (iterator, "tile") and (iterator, "lane"); where
    # there is but one tile, its axis is left out. That of a sum in parts is (iterator, "part") and
    # (iterator, "step").

    def _tiled(self, part: str, *names: Any) -> list[Axis]:
        from tvm import tirx

        if part == "tile":
            counts = [(each, self._count(each)) for each in names]
            return [((each, part), n, SPATIAL) for each, n in counts if constant(n) != 1]
        return [
            ((each, part), tirx.const(self._size(each), self._index), SPATIAL) for each in names
        ]

    def _sum_axes(self) -> list[Axis]:
        parts, steps = self._parts_of_sum(SPATIAL)
        return self._around([*parts, *steps])

    def _total_axes(self) -> list[Axis]:
        """Of the block that adds parts, which is the one that sums where there is but one."""
        parts, steps = self._parts_of_sum(REDUCTION)
        return self._around(parts or steps)

    def _parts_of_sum(self, kind: str) -> tuple[list[Axis], list[Axis]]:
        """The axes that count its parts, of that kind, and those that count the steps of one."""
        from tvm import tirx

        parts: list[Axis] = []
        steps: list[Axis] = []
        for each in self.found.reduced:
            count, extent = self.parts.get(each), self.found.extents[each]
            if count is None:
                steps.append((each, extent, REDUCTION))
                continue
            parts.append(((each, "part"), tirx.const(count, self._index), kind))
            if count != constant(extent):
                length = tirx.const((constant(extent) or 1) // count, self._index)
                steps.append(((each, "step"), length, REDUCTION))
        return parts, steps

    def _around(self, summed: list[Axis]) -> list[Axis]:
        """The axes of a nest that sums along some, a tile at a time."""
        found = self.found
        order = (found.column, *found.rows)
        if self.choice.rows_first:
            order = (*found.rows, found.column)
        return [
            *((each, found.extents[each], SPATIAL) for each in found.outer),
            *self._tiled("tile", *order),
            *summed,
            *self._tiled("lane", *found.rows, found.column),
        ]

    def _pack_axes(self) -> list[Axis]:
        found = self.found
        used = variables(*found.packed.indices)
        return [
            *((each, found.extents[each], SPATIAL) for each in found.outer if each in used),
            *self._tiled("tile", found.column),
            *((each, found.extents[each], SPATIAL) for each in found.reduced if each in used),
            *self._tiled("lane", found.column),
        ]

    def _other_axes(self) -> list[Axis]:
        """Of the other operand, where it is packed too."""
        found = self.found
        used = variables(*found.other.indices)
        return [
            *((each, found.extents[each], SPATIAL) for each in found.outer if each in used),
            *self._tiled("tile", *found.rows),
            *((each, found.extents[each], SPATIAL) for each in found.reduced if each in used),
            *self._tiled("lane", *found.rows),
        ]

    def _own(self, values: dict[Hashable, Any]) -> dict[Any, Any]:
        """The contraction's iterators in terms of a nest's."""
        own = {}
        for var in self.found.extents:
            if (var, "tile") in values:
                own[var] = values[var, "tile"] * self._size(var) + values[var, "lane"]
            elif (var, "part") in values:
                steps = (constant(self.found.extents[var]) or 1) // self.parts[var]
                own[var] = values[var, "part"] * steps + values.get((var, "step"), 0)
            elif (var, "lane") in values:
                own[var] = values[var, "lane"]
            elif var in values:
                own[var] = values[var]
        return own

    def _existing(self, own: dict[Any, Any]) -> dict[Any, Any]:
        """The contraction's iterators where the other operand is read: none beyond the last row.

        What the last tile has beyond it is computed from the last row again, and not written.
        """
        from tvm import tirx

        return {
            var: tirx.min(value, self.found.extents[var] - 1) if var in self._edges else value
            for var, value in own.items()
        }

    def _pack_nest(self, packed: Any) -> Any:
        edges = [] if self.tile.exact_columns else [self.found.column]
        return self._packing(self.pack, self._pack_axes(), self.found.packed, packed, edges)

    def _rows_nest(self, packed: Any) -> Any:
        axes = self._other_axes()
        return self._packing(self.pack_rows, axes, self.found.other, packed, self._edges)

    def _packing(
        self,
        name: str,
        axes: list[Axis],
        operand: Any,
        packed: Any,
        edges: list[Any],
    ) -> Any:
        """A nest that copies a load of an operand to `packed`: zeros beyond the end of `edges`."""
        from tvm import tirx

        def store(values: dict[Hashable, Any]) -> Any:
            own = self._own(values)
            value = substitute(operand, own)
            if edges:
                inside = tirx.all(*(own[each] < self.found.extents[each] for each in edges))
                value = tirx.if_then_else(inside, value, tirx.const(0, packed.dtype))
            return tirx.BufferStore(packed, value, list(values.values()))

        return nest(name, axes, store)

    def _sum_nest(self, total: Any, packed: Any, other: Any) -> Any:
        import tvm_ffi
        from tvm import tirx
        from tvm.ir.expr import TensorLoad

        found = self.found
        if self.products is not None:

            def other_at(values: dict[Hashable, Any]) -> Any:
                return substitute(found.other, self._existing(self._own(values)))

            def packed_at(values: dict[Hashable, Any]) -> Any:
                if packed.same_as(found.packed.source):
                    return substitute(found.packed, self._own(values))
                return tirx.BufferLoad(packed, [values[key] for key, _, _ in self._pack_axes()])

            sums = ProductNest(
                self.products,
                self._sum_axes(),
                total,
                other_at,
                packed_at,
                reaches_beyond=self.products.row in self._edges,
            )
            return sums.statement(self.sum)

        def at(values: dict[Hashable, Any]) -> list[Any]:
            return [values[key] for key, _, kind in self._sum_axes() if kind == SPATIAL]

        def store(values: dict[Hashable, Any]) -> Any:
            own = self._own(values)
            places = {**own, **values}

            def renamed(load: Any) -> Any:
                if load.source.same_as(found.block.body.buffer):
                    return tirx.BufferLoad(total, at(values))
                if tvm_ffi.structural_equal(load, found.packed):
                    if packed.same_as(found.packed.source):
                        return substitute(load, own)
                    return tirx.BufferLoad(packed, [places[key] for key, _, _ in self._pack_axes()])
                if self._packs_both:
                    return tirx.BufferLoad(other, [places[key] for key, _, _ in self._other_axes()])
                return substitute(load, self._existing(own))

            value = tvm_ffi.structural_map(found.value, (TensorLoad, renamed), order="post")
            return tirx.BufferStore(total, substitute(value, own), at(values))

        def init(values: dict[Hashable, Any]) -> Any:
            return tirx.BufferStore(total, found.block.init.value, at(values))

        return nest(self.sum, self._sum_axes(), store, init=init)

    def _total_nest(self, total: Any, partial: Any) -> Any:
        """A nest that adds the parts of the sum."""
        from tvm import tirx

        axes = self._total_axes()

        def at(values: dict[Hashable, Any]) -> list[Any]:
            return [values[key] for key, _, kind in axes if kind == SPATIAL]

        def store(values: dict[Hashable, Any]) -> Any:
            part = [values[key] for key, _, kind in self._sum_axes() if kind == SPATIAL]
            added = tirx.BufferLoad(total, at(values)) + tirx.BufferLoad(partial, part)
            return tirx.BufferStore(total, added, at(values))

        def init(values: dict[Hashable, Any]) -> Any:
            return tirx.BufferStore(total, tirx.const(0, total.dtype), at(values))

        return nest(self.total, axes, store, init=init)

    def _copy_nest(self, total: Any) -> Any:
        from tvm import tirx

        found = self.found
        own = [each for each in found.block.iter_vars if kind_of(each) == SPATIAL]
        axes = [(each.var, each.dom.extent, SPATIAL) for each in own]

        def store(values: dict[Hashable, Any]) -> Any:
            indices = []
            for key, _, kind in self._total_axes():
                if kind == REDUCTION:
                    continue
                var, part = key if isinstance(key, tuple) else (key, "")
                index = substitute(found.origin[var], values)
                if part == "tile":
                    index = tirx.floordiv(index, self._size(var))
                elif part == "lane" and constant(self._count(var)) != 1:
                    index = tirx.floormod(index, self._size(var))
                indices.append(index)
            at = [substitute(each, values) for each in found.block.body.indices]
            return tirx.BufferStore(found.block.body.buffer, tirx.BufferLoad(total, indices), at)

        return nest(self.copy, axes, store)


def schedule_contraction(func: Any, cpu: Cpu) -> Any:
    """The function in register tiles.

    The tile is the one that the contraction's block is annotated with (see `advise`), else the
    best guess.

    The loop nest of a dense layer of 128 rows, 256 inputs, 3072 outputs, on 256-bit vectors:

        for i0 in serial(128):
            for i1 in serial(256):
                for i2 in serial(24):
                    matmul_pack: matmul_pack <- param_0
        for i0_i1_fused in parallel(4096):
            for i3_init in unrolled(4):
                for i4_0_init in unrolled(3):
                    for i4_1_init in vectorized(8):
                        matmul_tile_init: matmul_tile <- constant
            for part in serial(1):
                for line in unrolled(12):
                for step in serial(32):
                    for i2_1 in unrolled(8):
                        for i3 in unrolled(4):
                            for i4_0 in unrolled(3):
                                for i4_1 in vectorized(8):
                                    matmul_tile_update: matmul_tile <- matmul_pack, matmul_tile, x0
            for ax0 in serial(4):
                for ax1 in vectorized(24):
                    compute: compute_intermediate <- matmul_tile, param_1

    Raises:
        NotApplicable: it is no contraction, or what is fused with it does not go with tiles.
    """
    import tvm

    # Phase 1. Write the contraction anew, for an instruction and in the tile that was chosen.
    func, found = in_groups(func, find_contraction(func, cpu), cpu)
    advice = _advice(found.block)
    products = None if advice else tile_products(found, cpu)
    choice = advice or (products.choice if products else ranked_tiles(found, cpu)[0][0])
    chosen = tile_of(found, cpu, choice)
    block = block_of(found, chosen, choice, cpu, in_registers=products is not None)
    written = Rewriter(func, found, chosen, choice, block, products)
    schedule = tvm.s_tir.Schedule(written.func)
    total = schedule.get_sblock(written.total)

    # Phase 2. Inline what comes before the sum, and what is fused after it.
    try:
        alone, epilogue, after = _inline_around(schedule, written)
    except tvm.s_tir.ScheduleError:  # TVM cannot prove that tiles cover an output of open extent
        raise NotApplicable("TVM cannot inline what is fused with tiles") from None

    # Phase 3. Nest the loops: over panels, over their other tiles, over the sum, within a tile.
    work = iterations(schedule, schedule.get_loops(schedule.get_sblock(written.sum)))
    if work is not None and products:
        work *= products.work
    panels, others, sums, tile = _nest_loops(schedule, total, written, cpu)

    # Phase 4. Keep the tile's sums in registers.
    starts = [] if products else _keep_in_registers(schedule, total, written, sums, tile, cpu)

    # Phase 5. Write a tile back through what is fused.
    for block in epilogue:
        try:
            schedule.reverse_compute_at(block, [*panels, *others][-1])
        except tvm.s_tir.ScheduleError:  # an open extent, or a consumer of constant indices
            reason = "TVM cannot compute what is fused where a tile is done"
            raise NotApplicable(reason) from None
        _vectorize_write_back(schedule, block, written)

    # Phase 6. Pack the columns' operand where it is due.
    packs_panels = _schedule_packing(schedule, written, panels, cpu)

    # Phase 7. Run the tasks in parallel, and the stages on their own.
    for block in (*alone, *after):
        schedule_stage(schedule, block, cpu)
    tasks = panels if packs_panels else [*panels, *others]
    if products and (iterations(schedule, panels) or 0) >= TASKS * cpu.threads:
        tasks = panels  # few: each sets its registers' shapes
    parallelize(schedule, tasks, None if work is None else work // WORK_AN_ELEMENT)
    for block, loop in starts:
        schedule.decompose_reduction(block, loop)
    llvm = asking() if products else wrapper_of(found)
    if llvm:
        schedule.annotate(schedule.get_loops(total)[0], "pragma_import_llvm", llvm)

    # Phase 8. Ask for constant weights ahead of their use.
    func = schedule.mod["main"]
    if written.packs == "constant":
        func = _fetched_ahead(func, written, cpu)
    if products:
        func = configured(func, products, written.sum)
    return tvm.s_tir.Schedule(func)


def _fetched_ahead(func: Any, written: Rewriter, cpu: Cpu) -> Any:
    """A scheduled function that asks for the next panel of constant weights, where that pays."""
    return prefetch_next_panel(
        func,
        written.sum if written.products else f"{written.sum}_update",
        written.pack,
        panel_axes=written.panel_axes,
        row_tiles=written.row_tiles,
        part_axes=written.part_axes,
        block=written.block,
        cache_bytes=cpu.cache_bytes,
    )


def _nest_loops(
    schedule: Any, total: Any, written: Rewriter, cpu: Cpu
) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
    """The loops over panels, over a panel's other tiles, over the sum, and within a tile.

    Where the sum is taken in parts, its first loop is over them, and other tiles are within it.
    """
    loops = schedule.get_loops(total)
    around, panels = written.outside
    if not panels:  # one panel: there has to be a loop to compute it in
        loops = [schedule.add_unit_loop(loops[0] if loops else total), *loops]
        around, panels = around + 1, 1
    within = around + len(written.parts or written.found.reduced)
    outside, sums, tile = loops[:around], loops[around:within], loops[within:]
    choice = written.choice
    if written.block:
        rows, others = _rows_outside(schedule, outside[panels:], written.block)
        schedule.reorder(*rows, outside[panels - 1])
        around_tiles = [*outside[: panels - 1], *rows, outside[panels - 1]]
        if choice.chunks == 1:
            return around_tiles, others, sums, tile
        return around_tiles, [], _parts_outside(schedule, sums, others, choice.chunks), tile
    if choice.rows_first or choice.chunks == 1:
        return outside[:panels], outside[panels:], sums, tile
    together = _tiles_together(schedule, written, outside, panels, cpu)
    if together and (extent_of(schedule, sums[0]) or 1) % choice.chunks == 0:
        outside, inside = outside[:-together], outside[-together:]
        sums = _parts_outside(schedule, sums, inside, choice.chunks)
    return outside[:panels], outside[panels:], sums, tile


def _parts_outside(schedule: Any, sums: list[Any], tiles: list[Any], parts: int) -> list[Any]:
    """Take a part of the sum of all tiles before the next part of any; the sum's loops."""
    part, step = schedule.split(sums[0], [parts, None])
    schedule.reorder(part, *tiles, step)
    return [part, step, *sums[1:]]


def _rows_outside(schedule: Any, loops: list[Any], tiles: int) -> tuple[list[Any], list[Any]]:
    """Loops over blocks of so many row tiles, and loops over a block's."""
    inner: list[Any] = []
    while loops and tiles > 1:
        *loops, loop = loops
        extent = extent_of(schedule, loop) or 1
        if extent > tiles:
            blocks, loop = schedule.split(loop, [None, tiles])
            loops, extent = [*loops, blocks], tiles
        inner, tiles = [loop, *inner], tiles // extent
    return loops, inner


def _keep_in_registers(
    schedule: Any, total: Any, written: Rewriter, sums: list[Any], tile: list[Any], cpu: Cpu
) -> list[tuple[Any, Any]]:
    """Write out the sums of a tile, or of each part of them; where each block begins at 0.

    Args:
        schedule: of the function in tiles.
        total: its block that sums, or adds the parts.
        written: that function.
        sums, tile: loops of `total`: over what it adds, and within a tile.
        cpu: the processor.
    """
    lanes = cpu.lanes(written.found.block.body.buffer.dtype)
    unroll = written.choice.unroll
    _unroll_tile(schedule, tile, lanes)
    if not written.parts:
        return [(total, _unroll_sum(schedule, sums, unroll)[0])]
    part = schedule.get_sblock(written.sum)
    schedule.compute_at(part, sums[-1])
    steps, within = written.inside
    loops = schedule.get_loops(part)[-steps - within :]
    _unroll_tile(schedule, loops[steps:], lanes)
    return [(total, sums[0]), (part, _unroll_sum(schedule, loops[:steps], unroll)[0])]


def _unroll_tile(schedule: Any, loops: list[Any], lanes: int) -> None:
    """Vectorize a tile's columns, and write out everything else in it."""
    *rows, columns = loops
    vectors, columns = schedule.split(columns, [None, lanes])
    schedule.vectorize(columns)
    for loop in (*rows, vectors):
        schedule.unroll(loop)


def _unroll_sum(schedule: Any, sums: list[Any], steps: int) -> list[Any]:
    """Write out so many steps of a sum, where they divide it; its loops that are left."""
    if steps == 1 or (extent_of(schedule, sums[-1]) or 0) % steps:
        return sums
    outer, inner = schedule.split(sums[-1], [None, steps])
    schedule.unroll(inner)
    return [*sums[:-1], outer]


def _schedule_packing(schedule: Any, written: Rewriter, panels: list[Any], cpu: Cpu) -> bool:
    """Pack at compile time, before all sums, or panel by panel; whether it is the last.

    Args:
        schedule: of the function in tiles.
        written: that function.
        panels: the loops over panels.
        cpu: the processor.
    """
    if written.packs == "direct":
        return False
    pack = schedule.get_sblock(written.pack)
    constant_weights = written.packs == "constant"
    if constant_weights and can_prepack(schedule, written.pack):
        schedule.annotate(pack, "meta_schedule.layout_rewrite_preproc", True)
        return False
    count = iterations(schedule, panels)
    few = count is not None and count < 2 * cpu.threads
    # All of it first where panels come again, or do not busy the threads.
    if constant_weights or written.choice.rows_first or few:
        schedule_stage(schedule, pack, cpu)
        return False
    schedule.compute_at(pack, panels[-1])
    vectorize(schedule, pack, cpu)
    return True


def _tiles_together(
    schedule: Any, written: Rewriter, around: list[Any], panels: int, cpu: Cpu
) -> int:
    """How many of the innermost loops around a tile's sum its parts can be taken outside of.

    Their tiles' sums have to fit the cache, and the loops left outside have to busy the threads.
    """
    size = math.prod(written.tile.rows.values()) * written.tile.columns * 4
    for count, loop in enumerate(reversed(around[panels:]), start=1):
        extent = extent_of(schedule, loop)
        tasks = iterations(schedule, around[:-count])
        size *= extent or WAITING
        if size > WAITING or tasks is None or tasks < 2 * cpu.threads:
            return count - 1
    return len(around) - panels


def advise(schedule: Any, block: Any, decide: Callable[[str, list[int]], Any]) -> None:
    """Annotate a contraction's block with a `TileChoice`, for `schedule_contraction` to follow.

    Args:
        schedule: of the function as it was before any schedule.
        block: the contraction's.
        decide: from a field of `TileChoice` and the values it can have to one of them, or to
            the random variable of a sample.
    """
    for name, values in CHOICES.items():
        schedule.annotate(block, f"{_ADVICE}{name}", decide(name, values))


def advice_of(func: Any) -> TileChoice | None:
    """What the block that `advise` annotated is annotated with, None without such a block."""
    import tvm_ffi
    from tvm.s_tir import SBlock

    advice: list[TileChoice] = []

    def look(block: Any) -> None:
        choice = _advice(block)
        if choice is not None:
            advice.append(choice)

    tvm_ffi.structural_walk(func.body, (SBlock, look))
    return advice[0] if advice else None


def _advice(block: Any) -> TileChoice | None:
    given = {str(key): constant(value) for key, value in block.annotations.items()}
    values = {name: given.get(f"{_ADVICE}{name}") for name in CHOICES}
    for name, before in (("chunks", 1), ("both", 0)):  # a record of before there was the choice
        values[name] = before if values[name] is None else values[name]
    if None in values.values():
        return None
    rows, vectors, unroll, rows_first, chunks, both = (value or 0 for value in values.values())
    return TileChoice(rows, vectors, unroll, bool(rows_first), chunks, bool(both))


def _inline_around(schedule: Any, written: Rewriter) -> tuple[list[Any], list[Any], list[Any]]:
    """Inline the stages before the sum into the packing, those after it into the last.

    Returns the stages before that stay on their own, which are the rows' packing and what the sum
    reads; and those after that stay, see `inline_epilogue`.
    """
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    names = [str(schedule.get(each).name_hint) for each in blocks]
    here = names.index(written.sum)
    last = names.index(written.total)
    alone = []
    for name, block in zip(names[:here], blocks[:here], strict=True):
        readers = {str(schedule.get(each).name_hint) for each in schedule.get_consumers(block)}
        read_by_sum = written.sum in readers and not is_copy(schedule.get(block))
        if name == written.pack_rows or (read_by_sum and name != written.pack):
            alone.append(block)
        elif name != written.pack:
            schedule.compute_inline(block)
    return alone, *inline_epilogue(schedule, blocks[last + 1 :])


def can_prepack(schedule: Any, block: str) -> bool:
    """Whether a block reads one constant parameter, and nothing else reads that."""
    func = schedule.mod["main"]
    constants = {func.params[int(each)] for each in func.attrs.get(CONSTANTS, ())}
    read = {each.source for each in schedule.get(schedule.get_sblock(block)).reads}
    if len(read) != 1 or not read <= constants:
        return False
    others = [each for each in stages(func) if not _holds(each, block)]
    return not any(read & variables(each) for each in others)


def _holds(stage: Any, name: str) -> bool:
    block = only_block(stage)
    return block is not None and str(block.name_hint) == name


def _vectorize_write_back(schedule: Any, block: Any, written: Rewriter) -> None:
    """Vectorize the write-back along the output's innermost axis; see `vectorize` for edges.

    Rows of several tiles that are written back at once are a vector for each tile: LLVM takes
    minutes for one of hundreds of elements.
    """
    tile = written.tile
    exact = tile.exact_rows if written.found.transposed else tile.exact_columns
    loop = schedule.get_loops(block)[-1]
    extent = extent_of(schedule, loop)
    if not exact or extent is None or extent == 1:
        return
    if written.found.transposed:
        rows = tile.rows[written.found.rows[-1]]
        if rows < extent and extent % rows == 0:
            loop = schedule.split(loop, [None, rows])[1]
    schedule.vectorize(loop)
