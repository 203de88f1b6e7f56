"""What both layouts share: the matrices of F(2x2, 3x3), stages as loop nests, their scheduling."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.contraction import Contraction
from tvm_practice.tvm_export.rules.cpu.loops import (
    REDUCTION,
    SPATIAL,
    Axis,
    Cpu,
    kind_of,
    nest,
    only_block,
    stages,
    with_stages,
)
from tvm_practice.tvm_export.rules.cpu.register_tiles import can_prepack
from tvm_practice.tvm_export.rules.cpu.scheduling import inline_epilogue, split_lanes

INPUT = ((1, 0, -1, 0), (0, 1, 1, 0), (0, -1, 1, 0), (0, 1, 0, -1))
"""B^T"""
WEIGHTS = ((1.0, 0.0, 0.0), (0.5, 0.5, 0.5), (0.5, -0.5, 0.5), (0.0, 0.0, 1.0))
"""G"""
OUTPUT = ((1, 1, 1, 0), (0, 1, -1, -1))
"""A^T"""


class Stages:
    """The nests that replace a convolution's, as far as they are written.

    Attributes:
        names: of the stages' blocks and of their buffers, by part, made of the convolution's.
        nests: one per stage, in their order.
        buffers: what they write, and what the function had.
    """

    def __init__(self, func: Any, found: Contraction, parts: Sequence[str]):
        own = str(found.block.name_hint)
        self.names = {each: f"{own}_{each}" for each in parts} | {"copy": own}
        self.nests: list[Any] = []
        self.buffers = list(func.body.block.alloc_buffers)
        self._func, self._block = func, found.block
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
            name: a key of `names`.
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

    def add_copy(self, buffer: Any, at: Callable[..., list[Any]]) -> None:
        """Add the stage that copies a buffer to the convolution's own, and nothing beyond its edge.

        Args:
            buffer: what the last stage wrote.
            at: from the output's indices to those in the buffer.
        """
        from tvm import tirx

        def copy(values: dict[Hashable, Any]) -> Any:
            value = tirx.BufferLoad(buffer, at(*values.values()))
            return tirx.BufferStore(self._block.body.buffer, value, list(values.values()))

        own = [each for each in self._block.iter_vars if kind_of(each) == SPATIAL]
        axes = [(each.var, each.dom.extent, SPATIAL) for each in own]
        self.nests.append(nest(self.names["copy"], axes, copy))

    def function(self) -> Any:
        """The function with these nests in place of the convolution's."""
        statements = []
        for each in stages(self._func):
            is_convolution = only_block(each).same_as(self._block)
            statements += self.nests if is_convolution else [each]
        return with_stages(self._func, statements, self.buffers)


def row_times(matrix: Sequence[Sequence[float]], row: Any, term: Callable[[int], Any]) -> Any:
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


def inline_around(schedule: Any, first: str, copy: str) -> tuple[list[Any], list[Any]]:
    """Inline a padding into the first stage, and operators after the copy.

    Returns what `inline_epilogue` returns.
    """
    root = schedule.get_child_blocks(schedule.get_sblock("root"))
    order = [str(schedule.get(each).name_hint) for each in root]
    for before in root[: order.index(first)]:
        schedule.compute_inline(before)
    return inline_epilogue(schedule, root[order.index(copy) :])


def transform_ahead(schedule: Any, weights: str) -> None:
    """Have the weights' stage run at compile time; NotApplicable if it cannot."""
    if not can_prepack(schedule, weights):
        raise NotApplicable("the weights are used elsewhere too, or made of more than a constant")
    schedule.annotate(schedule.get_sblock(weights), "meta_schedule.layout_rewrite_preproc", True)


def vectorize_lanes(schedule: Any, block: Any, cpu: Cpu) -> None:
    """Vectorize the innermost loop of a block, as much of it as goes into a few registers."""
    inner = split_lanes(schedule, block, cpu)
    if inner is not None:
        schedule.vectorize(inner)


def tile_products(schedule: Any, block: Any, cpu: Cpu, steps: int) -> Any:
    """Unroll a register tile, the block's last two axes, inside so many steps of the sum.

    Returns the sum's outer loop.
    """
    *_, row, column, summed = schedule.get_loops(block)
    outer, inner = schedule.split(summed, [None, steps])
    vectors, lanes = schedule.split(column, [None, cpu.lanes("float32")])
    schedule.reorder(outer, inner, row, vectors, lanes)
    schedule.vectorize(lanes)
    for each in (inner, row, vectors):
        schedule.unroll(each)
    return outer
