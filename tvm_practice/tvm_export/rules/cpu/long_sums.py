"""Long sums in parts: partial sums first, then the sum of those.

A float32 sum of a million numbers, added one after another, loses what is below the sum's own last
digit at each step, so its error grows with the number of steps. In two levels it grows with about
the square root of that number, and the parts run in parallel. See Higham, "The accuracy of
floating point summation", SIAM J. Sci. Comput. 14 (1993).
"""

import math
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.rules.cpu.lanes import find_lanes, operand_of
from tvm_practice.tvm_export.rules.cpu.loops import (
    REDUCTION,
    SPATIAL,
    Axis,
    Cpu,
    constant,
    is_reduction,
    kind_of,
    nest,
    only_block,
    stages,
    substitute,
    with_stages,
)

# Additions that one accumulator may make, and those of a part once a sum is longer.
_MOST, _OF_PART = 1 << 12, 1 << 10
# A part may be this much shorter, so that parts divide an extent; else there is a rest.
_SHORTER = 8


@dataclass(frozen=True)
class _Parts:
    """A sum taken apart.

    Attributes:
        block: what sums.
        spatial: its axes of the result.
        outer: reduction iterators of which each value has parts of its own.
        head: the reduction iterator that is divided into parts.
        inner: reduction iterators that stay within a part.
        steps: values of `head` per part.
        contiguous: whether neighbours of the sum are neighbours in memory, rather than those of
            the result.
    """

    block: Any
    spatial: list[Axis]
    outer: list[Any]
    head: Any
    inner: list[Any]
    steps: int
    contiguous: bool

    @property
    def number(self) -> int:
        """Whole parts per value of the outer iterators."""
        return (constant(self.head.dom.extent) or 0) // self.steps

    @property
    def rest(self) -> int:
        """Values of `head` after the last whole part."""
        return (constant(self.head.dom.extent) or 0) % self.steps

    def ordered(self, spatial: list[Any], parts: list[Any]) -> list[Any]:
        """Axes, extents or indices of the parts, those side by side in memory last."""
        return [*spatial, *parts] if self.contiguous else [*parts, *spatial]


def in_parts(func: Any, cpu: Cpu) -> Any:
    """`func` with each long sum of floats replaced by partial sums and their sum."""
    statements: list[Any] = []
    buffers = list(func.body.block.alloc_buffers)
    for stage in stages(func):
        block = only_block(stage)
        parts = _parts_of(block, cpu) if block is not None and is_reduction(block) else None
        if parts is None:
            statements.append(stage)
            continue
        made, own = _in_parts(parts)
        statements += made
        buffers += own
    return with_stages(func, statements, buffers)


def _parts_of(block: Any, cpu: Cpu) -> _Parts | None:
    """How to take a sum apart; None if it is short, of open extent, or no sum of floats."""
    from tvm import tirx

    if operand_of(block) is None or not isinstance(block.body.value, tirx.Add):
        return None
    dtype = str(block.body.buffer.dtype)
    reduced = [each for each in block.iter_vars if kind_of(each) == REDUCTION]
    extents = [constant(each.dom.extent) for each in reduced]
    if not dtype.startswith("float") or None in extents:
        return None
    lanes = cpu.lanes(dtype)
    contiguous = find_lanes(block, lanes) is not None
    accumulators = lanes if contiguous else 1
    if _count(reduced) <= _MOST * accumulators:
        return None
    most, first = _OF_PART * accumulators, 0
    while _count(reduced[first + 1 :]) >= most:
        first += 1
    head, inner = reduced[first], reduced[first + 1 :]
    return _Parts(
        block,
        [
            (each.var, each.dom.extent, SPATIAL)
            for each in block.iter_vars
            if kind_of(each) == SPATIAL
        ],
        reduced[:first],
        head,
        inner,
        _steps(constant(head.dom.extent) or 1, most // _count(inner)),
        contiguous,
    )


def _count(iterators: list[Any]) -> int:
    return math.prod(constant(each.dom.extent) or 0 for each in iterators)


def _steps(extent: int, most: int) -> int:
    """The steps of a part: at most that many, and a divisor of the extent where one is near."""
    for steps in range(min(extent, most), max(most // _SHORTER, 1) - 1, -1):
        if extent % steps == 0:
            return steps
    return min(extent, most)


def _in_parts(parts: _Parts) -> tuple[list[Any], list[Any]]:
    """The stages that replace a sum, and the buffers between them."""
    from tvm import tirx

    block = parts.block
    index, dtype = str(parts.head.dom.extent.ty.dtype), block.body.buffer.dtype
    outer: list[Axis] = [(each.var, each.dom.extent, SPATIAL) for each in parts.outer]
    inner: list[Axis] = [(each.var, each.dom.extent, REDUCTION) for each in parts.inner]
    number = tirx.const(parts.number, index)

    def buffer(name: str, axes: list[Axis]) -> Any:
        extents = [extent for _, extent, _ in axes]
        shape = parts.ordered([extent for _, extent, _ in parts.spatial], extents)
        return tirx.decl_buffer(shape, dtype, f"{block.name_hint}_{name}")

    def indices(values: dict[Any, Any], axes: list[Axis]) -> list[Any]:
        spatial = [values[key] for key, _, _ in parts.spatial]
        return parts.ordered(spatial, [values[key] for key, _, _ in axes])

    def partial_sum(into: Any, axes: list[Axis], steps: int, first: Any) -> Any:
        def add(values: dict[Any, Any]) -> Any:
            at = indices(values, axes)
            head = first(values) + values["step"]
            operand = substitute(operand_of(block), {**values, parts.head.var: head})
            return tirx.BufferStore(into, tirx.BufferLoad(into, at) + operand, at)

        return nest(
            str(into.name),
            [
                *parts.ordered(parts.spatial, axes),
                ("step", tirx.const(steps, index), REDUCTION),
                *inner,
            ],
            add,
            init=lambda values: tirx.BufferStore(into, block.init.value, indices(values, axes)),
        )

    whole_axes: list[Axis] = [*outer, ("part", number, SPATIAL)]
    whole = buffer("parts", whole_axes)
    made = [
        partial_sum(whole, whole_axes, parts.steps, lambda values: values["part"] * parts.steps)
    ]
    buffers = [whole]
    if parts.rest:
        rest = buffer("rest", outer)
        after = tirx.const(parts.number * parts.steps, index)
        made.append(partial_sum(rest, outer, parts.rest, lambda _: after))
        buffers.append(rest)

    def join(values: dict[Any, Any]) -> Any:
        if parts.rest:
            last = {**values, "part": tirx.min(values["part"], number - 1)}
            value = tirx.if_then_else(
                values["part"] < number,
                tirx.BufferLoad(whole, indices(last, whole_axes)),
                tirx.BufferLoad(rest, indices(values, outer)),
            )
        else:
            value = tirx.BufferLoad(whole, indices(values, whole_axes))
        at = [substitute(each, values) for each in block.body.indices]
        return tirx.BufferStore(
            block.body.buffer, tirx.BufferLoad(block.body.buffer, at) + value, at
        )

    joined: list[Axis] = [
        *((key, extent, REDUCTION) for key, extent, _ in outer),
        ("part", tirx.const(parts.number + bool(parts.rest), index), REDUCTION),
    ]
    made.append(
        nest(
            str(block.name_hint),
            [*parts.spatial, *joined],
            join,
            init=lambda values: substitute(block.init, values),
        )
    )
    return made, buffers
