"""Contractions on tile registers (AMX): matrices of 16 rows of 64 bytes, and their products.

A contraction in groups of 32 bits (see `dot_products`) multiplies, at each step of its sum,

    sums (rows x 16, 32 bits)  +=  other (rows x groups)  .  packed (groups x 16)

in one instruction. A row of `other` is up to 16 groups that lie side by side; a row of the packed
operand is 16 columns of one group, the order in which weights are packed for vectors too. A tile
has up to two registers of rows and two of columns, so that each is loaded once for two products;
with four for the sums, that is all eight registers. The sums are stored when they are complete, and
the operators fused after the contraction read them from memory.

Each thread sets the shapes of its registers before it uses them. The last tile may have fewer rows,
and gets smaller registers. A process has to ask Linux for tile registers. The library does so when
it is loaded; if they are denied or missing, it prints a line and ends the program.

Intel, Architecture Instruction Set Extensions Programming Reference, chapter 3 (AMX);
https://www.intel.com/content/www/us/en/developer/articles/technical/intel-sdm.html
"""

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_practice.engines.host import ASK_FOR_TILES
from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import Contraction, Tile, TileChoice, tile_of
from tvm_practice.tvm_export.rules.cpu.dot_products import operator_of
from tvm_practice.tvm_export.rules.cpu.loops import (
    REDUCTION,
    SPATIAL,
    Axis,
    Cpu,
    constant,
    stages,
    substitute,
    with_stages,
)

_ROWS, _ROW_BYTES, _REGISTERS = 16, 64, 8
_WORD = 4  # bytes of a group, and of a sum
_COLUMNS = _ROW_BYTES // _WORD
_GROUPS = _ROW_BYTES // _WORD  # of a register's row
# Products of fewer rows, or groups, are left to vectors.
_FEWEST_ROWS, _FEWEST_GROUPS = 4, 8
# Cycles that a product of full registers, and a load of 16 lines, are taken for; not measured.
_A_PRODUCT, _A_LOAD = 16, 8
_PREFIX, _TILE = "llvm.x86.", "amx-tile"
# By the operator of a step: LLVM's instruction, and the feature that has it.
_PRODUCTS = {
    "tvm_practice.dot_bfloat16": ("tdpbf16ps", "amx-bf16"),
    "tvm_practice.dot_uint8_int8": ("tdpbusd", "amx-int8"),
}
# A configuration: its size, its kind, and where the registers' shapes are.
_CONFIGURATION, _PALETTE, _ROW_BYTES_AT, _ROWS_AT = 64, 1, 16, 48
# What a library does when it is loaded, in assembly: TVM keeps no function of LLVM's text that
# nothing calls. Every function with tiles brings it along, so that its labels are numbers.
_ASKING = """
.pushsection .text.tvm_practice,"ax",@progbits
1:
movl ${call}, %eax
movl ${request}, %edi
movl ${tiles}, %esi
syscall
testq %rax, %rax
je 2f
movl $1, %eax
movl $2, %edi
leaq 3f(%rip), %rsi
movl ${length}, %edx
syscall
movl $231, %eax
movl $1, %edi
syscall
2:
ret
.popsection
.pushsection .rodata.tvm_practice,"a",@progbits
3:
.ascii "{line}"
.popsection
.pushsection .init_array,"aw",@init_array
.balign 8
.quad 1b
.popsection
"""
_DENIED = (
    "this library needs tile registers (AMX): this processor has none, or Linux denies them; "
    "export the model for another target"
)

_At = Callable[[dict[Hashable, Any]], Any]
"""An element of a buffer, from the values of all iterators of a nest."""


@dataclass(frozen=True)
class TileProducts:
    """How a contraction is computed by products of tile registers.

    Attributes:
        instruction: LLVM's name of the product, without `llvm.x86.`.
        choice, tile: the rows and columns of all registers of sums together.
        row: the innermost row iterator, whose neighbours are a register's rows.
        extent: its extent.
        starts: of each register of rows, its first row by iterator, within the tile.
        grouped: the iterator of the sum whose groups lie side by side in the other operand.
        groups: in a register's row.
        row_stride: bytes from one row of the other operand to the next.
        steps: of the whole sum.
    """

    instruction: str
    choice: TileChoice
    tile: Tile
    row: Any
    extent: int
    starts: tuple[dict[Any, int], ...]
    grouped: Any
    groups: int
    row_stride: int
    steps: int

    @property
    def columns(self) -> int:
        """Registers of columns."""
        return self.tile.columns // _COLUMNS

    @property
    def work(self) -> int:
        """Multiplications of groups for a tile."""
        return math.prod(self.tile.rows.values()) * self.tile.columns * self.steps

    def registers_of(self, found: Contraction) -> int:
        """Registers of rows that are multiplied by each panel of columns.

        Args:
            found: the contraction.
        """
        extents = (
            (constant(found.extents[each]) or 1, size) for each, size in self.tile.rows.items()
        )
        return math.prod(-(-extent // size) for extent, size in extents) * len(self.starts)

    def rows(self, register: int) -> int:
        """Of a register, where the tile is whole."""
        return min(_ROWS, self.tile.rows[self.row] - self.starts[register][self.row])


def tile_products(found: Contraction, cpu: Cpu) -> TileProducts | None:
    """How tile registers compute a contraction in groups; None where they do not.

    Args:
        found: the contraction, as `dot_products.in_groups` leaves it.
        cpu: the processor.
    """
    name, feature = _PRODUCTS.get(operator_of(found) or "", ("", ""))
    if feature not in cpu.instructions or found.transposed or not found.rows:
        return None
    row, other = found.rows[-1], found.other
    grouped = [each for each in found.reduced if _stride(other, each) == _WORD]
    extent, stride = constant(found.extents[row]), _stride(other, row)
    if len(grouped) != 1 or stride is None or extent is None or extent < _FEWEST_ROWS:
        return None
    if any(_stride(other, each) is None for each in (*found.reduced, *found.rows)):
        return None
    steps = [constant(found.extents[each]) for each in found.reduced]
    if None in steps:
        return None
    side_by_side = constant(found.extents[grouped[0]]) or 1
    groups = max(each for each in range(1, _GROUPS + 1) if side_by_side % each == 0)
    if groups < _FEWEST_GROUPS:
        return None
    choice = _choice(found, extent)
    try:
        tile = tile_of(found, cpu, choice)
    except NotApplicable:
        return None
    further = [range(tile.rows[each]) for each in found.rows[:-1]]
    starts = tuple(
        dict(zip((*found.rows[:-1], row), at, strict=True))
        for at in itertools.product(*further, range(0, tile.rows[row], _ROWS))
    )
    return TileProducts(
        instruction=name,
        choice=choice,
        tile=tile,
        row=row,
        extent=extent,
        starts=starts,
        grouped=grouped[0],
        groups=groups,
        row_stride=stride,
        steps=math.prod(each or 1 for each in steps),
    )


def _choice(found: Contraction, extent: int) -> TileChoice:
    """Rows and columns of a tile: what divides, then what takes few loads for a product."""
    registers = 1
    if extent > _ROWS:
        registers = 2
        tiles = -(-extent // (2 * _ROWS))
        rows = extent // tiles if extent % tiles == 0 else min(extent, 2 * _ROWS)
    else:
        rows = extent
        further = found.rows[-2:-1]
        if further and (constant(found.extents[further[0]]) or 1) % 2 == 0:
            registers, rows = 2, 2 * extent
    columns = constant(found.extents[found.column]) or 1

    def cost(count: int) -> tuple[float, int]:
        loads = _A_LOAD * (1 / registers + 1 / count)
        return -(-columns // (count * _COLUMNS)) * count * (_A_PRODUCT + loads), -count

    fit = [each for each in (1, 2, 3) if registers * each + registers + each <= _REGISTERS]
    return TileChoice(rows, min(fit, key=cost))


def _stride(load: Any, iterator: Any) -> int | None:
    """Bytes between a load's elements for neighbouring values of an iterator; None if it varies."""
    import tvm
    from tvm import tirx

    shape = [constant(each) for each in load.source.shape]
    step, offset = 1, tirx.const(0, str(iterator.ty.dtype))
    for index, extent in reversed(list(zip(load.indices, shape, strict=True))):
        offset += (index.base if isinstance(index, tirx.Ramp) else index) * step
        if extent is None:
            break  # of the outermost axis alone
        step *= extent
    if None in shape[1:]:
        return None
    one = tirx.const(1, str(iterator.ty.dtype))
    difference = tvm.sym.Analyzer().simplify(
        substitute(offset, {iterator: iterator + one}) - offset
    )
    found = constant(difference)
    bits = int(tvm.DataType(str(load.source.dtype)).bits)
    return None if found is None else found * bits // 8


class ProductNest:
    """The sums of a contraction's tiles, by products of tile registers.

    Args:
        products: how.
        axes: of the nest: keys of iterators, see `Rewriter`, their extents and kinds.
        total: the buffer of the sums.
        other, packed: the operands' elements, from the values of all iterators.
        reaches_beyond: whether the last tile of a row does, beyond the last row.
    """

    def __init__(
        self,
        products: TileProducts,
        axes: Sequence[Axis],
        total: Any,
        other: _At,
        packed: _At,
        *,
        reaches_beyond: bool,
    ):
        self._products, self._total, self._reaches_beyond = products, total, reaches_beyond
        self._other, self._packed = other, packed
        self._keys = [key for key, _, kind in axes if kind == SPATIAL]
        self._outside = list(itertools.takewhile(lambda axis: axis[2] == SPATIAL, axes))
        self._sums = [(key, extent) for key, extent, kind in axes if kind == REDUCTION]
        self._column = axes[-1][0]

    def statement(self, name: str) -> Any:
        """Loops over the tiles around a block of that name."""
        import tvm
        from tvm import tirx
        from tvm.s_tir import SBlock, SBlockRealize

        loops, iterators = [], []
        for number, (_, extent, _) in enumerate(self._outside):
            dtype = str(extent.ty.dtype)
            span = tvm.ir.Range(tirx.const(0, dtype), extent)
            loops.append(tirx.Var(f"i{number}", dtype))
            iterator = tirx.IterVar(span, tirx.Var(f"v{number}", dtype), tirx.IterVar.DataPar)
            iterators.append(iterator)
        tile = {key: each.var for (key, _, _), each in zip(self._outside, iterators, strict=True)}
        first = self._within(tile, {})
        at = [
            tvm.ir.Range.from_min_extent(tile.get(key, 0), 1 if key in tile else extent)
            for key, extent in zip(self._keys, self._total.shape, strict=True)
        ]
        reads = [
            tirx.BufferRegion(load.source, _region(load, set(tile.values())))
            for load in (self._other(first), self._packed(first))
        ]
        body, buffers = self._body(tile)
        # TVM does not see what is written through an address.
        told = {"explicit_write_region": [0]}
        written = [tirx.BufferRegion(self._total, at)]
        block = SBlock(
            iterators, reads, written, name, body, alloc_buffers=buffers, annotations=told
        )
        statement = SBlockRealize(loops, True, block)
        for loop, iterator in reversed(list(zip(loops, iterators, strict=True))):
            statement = tirx.For(
                loop, iterator.dom.min, iterator.dom.extent, tirx.ForKind.SERIAL, statement
            )
        return statement

    def _within(
        self, tile: dict[Hashable, Any], sums: dict[Hashable, Any], row: int = 0, column: int = 0
    ) -> dict[Hashable, Any]:
        """The values of all iterators at the first element of a register.

        Args:
            tile: of those that pick a tile.
            sums: of those of the sum; what is left out is 0.
            row, column: the number of the register of rows, of columns.
        """
        from tvm import tirx

        def number(value: int) -> Any:
            return tirx.const(value, str(self._sums[0][1].ty.dtype))

        starts = self._products.starts[row]
        lanes: dict[Hashable, Any] = {(each, "lane"): number(at) for each, at in starts.items()}
        zero = {key: number(0) for key, _ in self._sums}
        return {**tile, **zero, **sums, **lanes, self._column: number(column * _COLUMNS)}

    def _body(self, tile: dict[Hashable, Any]) -> tuple[Any, list[Any]]:
        """The statements for a tile, and the buffers that they need."""
        from tvm import tirx

        products = self._products
        rows, columns = range(len(products.starts)), range(products.columns)
        pairs = list(itertools.product(rows, columns))  # the registers of sums, from 0
        first_row = len(pairs)
        first_column = first_row + len(rows)
        sums: dict[Hashable, Any] = {}
        loops: list[tuple[Any, Any]] = []
        for key, extent in self._sums:
            step = tirx.Var(f"step{len(loops)}", str(extent.ty.dtype))
            is_grouped = products.grouped.same_as(key)
            size = products.groups if is_grouped else 1
            sums[key] = step * size
            loops.append((step, tirx.floordiv(extent, size)))
        steps = []
        for row in rows:
            element = self._other(self._within(tile, sums, row=row))
            steps.append(_call("tileloadd64", first_row + row, element, products.row_stride))
        for column in columns:
            element = self._packed(self._within(tile, sums, column=column))
            steps.append(_call("tileloadd64", first_column + column, element, self._group_stride()))
        for number, (row, column) in enumerate(pairs):
            registers = number, first_row + row, first_column + column
            steps.append(_call(products.instruction, *registers))
        body = tirx.SeqStmt(steps)
        for step, extent in reversed(loops):
            zero = tirx.const(0, str(step.ty.dtype))
            body = tirx.For(step, zero, extent, tirx.ForKind.SERIAL, body)
        stores = []
        for number, (row, column) in enumerate(pairs):
            values = self._within(tile, {}, row=row, column=column)
            element = tirx.BufferLoad(self._total, [values[key] for key in self._keys])
            line = products.tile.columns * _WORD
            stores.append(_call("tilestored64", number, element, line))
        zeros = [_call("tilezero", number) for number in range(first_row)]
        whole = [*zeros, body, *stores]
        if not self._reaches_beyond:
            return tirx.SeqStmt(whole), []
        return self._with_fewer_rows(tile, whole)

    def _group_stride(self) -> int:
        """Bytes from a group of the packed operand to the next."""
        from tvm import tirx

        grouped = self._products.grouped
        group = tirx.Var("group", str(grouped.ty.dtype))
        zero = {key: tirx.const(0, str(extent.ty.dtype)) for key, extent, _ in self._outside}
        stride = _stride(self._packed(self._within(zero, {grouped: group})), group)
        assert stride is not None
        return stride

    def _with_fewer_rows(
        self, tile: dict[Hashable, Any], whole: list[Any]
    ) -> tuple[Any, list[Any]]:
        """The statements with smaller registers for a tile that reaches beyond the last row."""
        from tvm import tirx

        products = self._products
        row, size = products.row, products.tile.rows[products.row]
        ahead = products.extent - tile[row, "tile"] * size
        rows = [
            tirx.max(tirx.min(ahead - start[row], products.rows(number)), 1)
            for number, start in enumerate(products.starts)
        ]
        fewer, full = (
            tirx.decl_buffer((_CONFIGURATION // 8,), "int64", f"{name}_rows")
            for name in ("fewer", "all")
        )
        statements = [
            tirx.IfThenElse(ahead < size, _configuration(fewer, products, rows), None),
            *whole,
            tirx.IfThenElse(ahead < size, _configuration(full, products), None),
        ]
        return tirx.SeqStmt(statements), [fewer, full]


def _region(load: Any, tile: set[Any]) -> list[Any]:
    """The part of a buffer that a tile may read: whole axes, but where an iterator picks one."""
    import tvm

    return [
        tvm.ir.Range.from_min_extent(index, 1)
        if index in tile
        else tvm.ir.Range.from_min_extent(0, extent)
        for index, extent in zip(load.indices, load.source.shape, strict=True)
    ]


def configured(func: Any, products: TileProducts, block: str) -> Any:
    """A scheduled function in which every thread sets the shapes of its registers.

    Args:
        func: with a `ProductNest`.
        products: its.
        block: its block's name.
    """
    import tvm_ffi
    from tvm import tirx

    shapes = tirx.decl_buffer((_CONFIGURATION // 8,), "int64", "tile_shapes")

    def around(body: Any) -> Any:
        return tirx.SeqStmt([_configuration(shapes, products), body, _call("tilerelease")])

    def in_thread(loop: Any) -> Any:
        if loop.kind != tirx.ForKind.PARALLEL or not _holds(loop, block):
            return loop
        own = (loop.loop_var, loop.min, loop.extent, loop.kind, around(loop.body))
        return tirx.For(*own, annotations=loop.annotations)

    statements = []
    for stage in stages(func):
        changed = tvm_ffi.structural_map(stage, (tirx.For, in_thread))
        if changed.same_as(stage) and _holds(stage, block):  # not in parallel
            once = tirx.Var("once", "int64"), tirx.const(0, "int64"), tirx.const(1, "int64")
            changed = tirx.For(*once, tirx.ForKind.SERIAL, around(stage))
        statements.append(changed)
    return with_stages(func, statements, [*func.body.block.alloc_buffers, shapes])


def asking() -> str:
    """LLVM's text of code that asks Linux for tile registers when the library is loaded."""
    call, request, tiles = ASK_FOR_TILES
    lines = _ASKING.format(
        call=call, request=request, tiles=tiles, length=len(_DENIED) + 1, line=f"{_DENIED}\\n"
    )
    quoted = (line.replace("\\", "\\5C").replace('"', "\\22") for line in lines.split("\n"))
    return "".join(f'module asm "{line}"\n' for line in quoted if line)


def features_in(module: Any) -> list[str]:
    """The features, by LLVM's names, that the tile instructions of a scheduled module need."""
    import tvm
    import tvm_ffi

    called: set[str] = set()
    name_of = tvm_ffi.get_global_func("target.llvm_get_intrinsic_name")

    def look(call: Any) -> None:
        if str(getattr(call.op, "name", "")) == "tirx.call_llvm_intrin":
            called.add(str(name_of(call.args[0].value)).removeprefix(_PREFIX))

    for _, func in module.functions_items():
        if isinstance(func, tvm.tirx.PrimFunc):
            tvm_ffi.structural_walk(func.body, (tvm.ir.Call, look))
    needed = {feature for name, feature in _PRODUCTS.values() if name in called}
    return sorted(needed | ({_TILE} if needed else set()))


def _holds(statement: Any, block: str) -> bool:
    """Whether a block of that name is in a statement."""
    import tvm_ffi
    from tvm.s_tir import SBlock

    found: list[str] = []
    tvm_ffi.structural_walk(statement, (SBlock, lambda each: found.append(str(each.name_hint))))
    return block in found


def _configuration(buffer: Any, products: TileProducts, rows: Sequence[Any] = ()) -> Any:
    """Statements that set the shapes of a thread's registers.

    Args:
        buffer: of eight 64-bit words, which the shapes are written to.
        products: what the registers are for.
        rows: of each register of rows, an expression; none: as many as it has.
    """
    from tvm import tirx

    heights = rows or [products.rows(each) for each in range(len(products.starts))]
    shapes = [
        *((height, _ROW_BYTES) for height in heights for _ in range(products.columns)),
        *((height, products.groups * _WORD) for height in heights),
        *((products.groups, _ROW_BYTES) for _ in range(products.columns)),
    ]
    content: list[Any] = [0] * _CONFIGURATION
    content[0] = _PALETTE
    for number, (height, row_bytes) in enumerate(shapes):
        content[_ROW_BYTES_AT + 2 * number] = row_bytes
        content[_ROWS_AT + number] = height
    # TVM's analysis cannot cast a height's bounds to a byte, so whole words are written.
    stores = [
        tirx.BufferStore(buffer, _word(content[8 * number :][:8]), [number])
        for number in range(_CONFIGURATION // 8)
    ]
    return tirx.SeqStmt([*stores, _call("ldtilecfg", tirx.BufferLoad(buffer, [0]))])


def _word(content: Sequence[Any]) -> Any:
    """The 64-bit number of eight bytes, the least significant first; some may be expressions."""
    from tvm import tirx

    known = sum(each << 8 * at for at, each in enumerate(content) if isinstance(each, int))
    word: Any = tirx.const(known, "int64")
    for at, each in enumerate(content):
        if not isinstance(each, int):
            word += tirx.Cast("int64", each) * tirx.const(1 << 8 * at, "int64")
    return word


def _call(name: str, *arguments: Any) -> Any:
    """A tile instruction.

    Args:
        name: LLVM's, without `llvm.x86.`.
        arguments: numbers of registers; an element in memory, and behind it bytes from row to row.
    """
    from tvm import tirx
    from tvm.ir.expr import TensorLoad

    given: list[Any] = []
    for each in arguments:
        if isinstance(each, TensorLoad):
            at = [index.base if isinstance(index, tirx.Ramp) else index for index in each.indices]
            given.append(tirx.address_of(tirx.BufferLoad(each.source, at)))
        else:
            is_stride = any(not isinstance(one, tirx.IntImm) for one in given)
            given.append(tirx.const(each, "int64" if is_stride else "uint8"))
    return tirx.Evaluate(tirx.call_llvm_intrin("int32", f"{_PREFIX}{name}", *given))
