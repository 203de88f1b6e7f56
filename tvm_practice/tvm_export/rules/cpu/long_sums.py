"""Long sums in parts: partial sums first, then the sum of those.

A float32 sum of a million numbers, added one after another, loses what is below the sum's own last
digit at each step, so its error grows with the number of steps. In two levels it grows with about
the square root of that number, and the parts run in parallel. See Higham, "The accuracy of
floating point summation", SIAM J. Sci. Comput. 14 (1993).

A sum over an open extent has as many terms as its caller likes, and is added up in float64.
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
    loads,
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
    """`func` with each long sum of floats replaced by partial sums and their sum, or in float64."""
    statements: list[Any] = []
    buffers = list(func.body.block.alloc_buffers)
    for stage in stages(func):
        block = only_block(stage)
        if block is None or not is_reduction(block):
            statements.append(stage)
            continue
        parts = _parts_of(block, cpu)
        if parts is not None:
            made, own = _in_parts(parts)
        elif _may_be_long(block) and not _adds_exponentials(block, func):
            made, own = _in_float64(block)
        else:
            made, own = [stage], []
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


def _may_be_long(block: Any) -> bool:
    """Whether a block sums float32 over an open extent."""
    from tvm import tirx

    return (
        operand_of(block) is not None
        and isinstance(block.body.value, tirx.Add)
        and str(block.body.buffer.dtype) == "float32"
        and any(
            kind_of(each) == REDUCTION and constant(each.dom.extent) is None
            for each in block.iter_vars
        )
    )


def _adds_exponentials(block: Any, func: Any) -> bool:
    """Whether a block sums what another stage makes by `exp`, as a softmax does.

    A softmax has short rows, not millions of terms, and float64 has half as many lanes.
    """
    from tvm import tirx

    read = [each.source for each in loads(operand_of(block))]
    for stage in stages(func):
        made = only_block(stage)
        if made is None or not isinstance(made.body, tirx.BufferStore):
            continue
        by = getattr(getattr(made.body.value, "op", None), "name", "")
        if str(by) == "tirx.exp" and any(each.same_as(made.body.buffer) for each in read):
            return True
    return False


def _in_float64(block: Any) -> tuple[list[Any], list[Any]]:
    """A sum in float64 and its rounding, and the buffer between them."""
    from tvm import tirx

    axes: list[Axis] = [(each.var, each.dom.extent, kind_of(each)) for each in block.iter_vars]
    spatial = [axis for axis in axes if axis[2] == SPATIAL]
    wide = tirx.decl_buffer(
        [extent for _, extent, _ in spatial], "float64", f"{block.name_hint}_wide"
    )

    def indices(values: dict[Any, Any]) -> list[Any]:
        return [values[key] for key, _, _ in spatial]

    def add(values: dict[Any, Any]) -> Any:
        at = indices(values)
        operand = tirx.Cast("float64", substitute(operand_of(block), values))
        return tirx.BufferStore(wide, tirx.BufferLoad(wide, at) + operand, at)

    def rounded(values: dict[Any, Any]) -> Any:
        value = tirx.Cast("float32", tirx.BufferLoad(wide, indices(values)))
        at = [substitute(each, values) for each in block.body.indices]
        return tirx.BufferStore(block.body.buffer, value, at)

    zero = tirx.const(0.0, "float64")
    made = [
        nest(
            str(wide.name),
            axes,
            add,
            init=lambda values: tirx.BufferStore(wide, zero, indices(values)),
        ),
        nest(str(block.name_hint), spatial, rounded),
    ]
    return made, [wide]


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
