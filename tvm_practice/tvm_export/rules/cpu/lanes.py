"""Reductions over contiguous memory, written anew over the lanes of a vector register."""

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import partial
from typing import Any

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
    variables,
    with_stages,
)


@dataclass(frozen=True)
class Lanes:
    """A reduction taken apart over the lanes of a register.

    Attributes:
        block: what reduces.
        kept: its iterators that stay as they are, with their axes.
        joined: reduction iterators, innermost last, that run over contiguous memory.
        extent: how many elements they run over.
        count: of the lanes.
    """

    block: Any
    kept: list[Axis]
    joined: list[Any]
    extent: Any
    count: int

    @property
    def spatial(self) -> list[Axis]:
        """Axes of the result."""
        return [axis for axis in self.kept if axis[2] == SPATIAL]

    @property
    def also_reduced(self) -> list[Axis]:
        """Axes that are reduced beside the contiguous ones."""
        return [axis for axis in self.kept if axis[2] == REDUCTION]

    @property
    def rounds(self) -> Any:
        """Contiguous elements that each lane takes."""
        import tvm

        return tvm.sym.Analyzer().simplify(tvm.tirx.floordiv(self.extent, self.count))

    @property
    def rest(self) -> Any:
        """Contiguous elements left over."""
        import tvm

        return tvm.sym.Analyzer().simplify(self.extent - self.rounds * self.count)

    def element(self, values: dict[Hashable, Any], position: Any) -> Any:
        """What is combined at a position among the contiguous elements."""
        return substitute(operand_of(self.block), {**values, **_unjoin(self.joined, position)})


def operand_of(block: Any) -> Any | None:
    """What a block combines with its output at each step, by +, *, max or min; else None."""
    from tvm import tirx

    if not all(isinstance(each, tirx.BufferStore) for each in (block.body, block.init)):
        return None
    value, out = block.body.value, block.body.buffer
    if not isinstance(value, tirx.Add | tirx.Mul | tirx.Max | tirx.Min):
        return None
    neutral = {tirx.Add: 0, tirx.Mul: 1}.get(type(value))
    if neutral is not None and getattr(block.init.value, "value", None) != neutral:
        return None
    for own, operand in ((value.a, value.b), (value.b, value.a)):
        read = [each.source for each in loads(operand)]
        if own.same_as(next(iter(loads(own)), None)) and own.source.same_as(out):
            return None if any(each.same_as(out) for each in read) else operand
    return None


def find_lanes(block: Any, lanes: int) -> Lanes | None:
    """How to reduce over lanes, if the reduction runs over contiguous memory long enough."""
    import tvm
    from tvm import tirx

    operand = operand_of(block)
    reduced = [each for each in block.iter_vars if kind_of(each) == REDUCTION]
    if operand is None or not reduced:
        return None
    best = None
    for first in range(len(reduced) - 1, -1, -1):
        joined = reduced[first:]
        index = str(joined[0].var.ty.dtype)
        extent = tvm.sym.Analyzer().simplify(
            math.prod((each.dom.extent for each in joined), start=tirx.const(1, index))
        )
        analyzer = tvm.sym.Analyzer()
        for each in block.iter_vars:
            analyzer.bind(each.var, each.dom)
        step = tirx.Var("step", index)
        analyzer.bind(step, tvm.ir.Range(tirx.const(0, index), extent))
        strides = []
        for load in loads(operand):
            if not variables(*load.indices) & {each.var for each in joined}:
                continue
            here, there = (
                load.source.offset_of([substitute(i, _unjoin(joined, at)) for i in load.indices])[0]
                for at in (step, step + 1)
            )
            strides.append(constant(analyzer.canonical_simplify(there - here)))
        if not strides or any(each != 1 for each in strides):
            break
        size = constant(extent)
        if size is None or size >= lanes:
            kept = [
                (each.var, each.dom.extent, kind_of(each))
                for each in block.iter_vars
                if not any(each.same_as(other) for other in joined)
            ]
            best = Lanes(block, kept, joined, extent, lanes)
    return best


def _unjoin(joined: list[Any], position: Any) -> dict[Any, Any]:
    """Iterators of nested reductions at a position counted through all of them."""
    from tvm import tirx

    values = {}
    for each in reversed(joined[1:]):
        values[each.var] = tirx.floormod(position, each.dom.extent)
        position = tirx.floordiv(position, each.dom.extent)
    values[joined[0].var] = position
    return values


def separate(func: Any) -> Any:
    """`func` with stages that compute several independent reductions taken apart, one per stage."""
    statements: list[Any] = []
    for stage in stages(func):
        block = only_block(stage)
        parts = _independent(block) if block is not None and is_reduction(block) else []
        for number, (store, init) in enumerate(parts):
            axes = [(each.var, each.dom.extent, kind_of(each)) for each in block.iter_vars]
            update, start = partial(substitute, store), partial(substitute, init)
            statements.append(nest(f"{block.name_hint}_{number}", axes, update, init=start))
        if not parts:
            statements.append(stage)
    return with_stages(func, statements, func.body.block.alloc_buffers)


def _independent(block: Any) -> list[tuple[Any, Any]]:
    """The (update, initial) stores of a block with several, if none reads what another writes."""
    from tvm import tirx

    if not all(isinstance(each, tirx.SeqStmt) for each in (block.body, block.init)):
        return []
    bound = {each.var: each.value for each in block.body.seq if isinstance(each, tirx.Bind)}
    stores = [each for each in block.body.seq if isinstance(each, tirx.BufferStore)]
    inits = [each for each in block.init.seq if isinstance(each, tirx.BufferStore)]
    if len(stores) != len(inits) or len(bound) + len(stores) != len(block.body.seq):
        return []
    buffers = {each.buffer for each in stores}
    parts = []
    for store, init in zip(stores, inits, strict=True):
        whole = substitute(store, bound)
        read = {each.source for each in loads(whole.value)}
        if not store.buffer.same_as(init.buffer) or read & (buffers - {store.buffer}):
            return []
        parts.append((whole, init))
    return parts


def over_lanes(func: Any, cpu: Cpu) -> tuple[Any, list[str]]:
    """`func` with its contiguous reductions taken apart, and the names of the stages by lane.

    A reduction becomes two: one whose lanes take every so many-th element, and one that joins
    the lanes and the elements left over. The former's name is the latter's with "_lanes" added.
    """
    statements, made = [], []
    buffers = list(func.body.block.alloc_buffers)
    for stage in stages(func):
        block = only_block(stage)
        found = None
        if block is not None and is_reduction(block):
            lanes = cpu.lanes(block.body.buffer.dtype) if hasattr(block.body, "buffer") else 0
            found = find_lanes(block, lanes) if lanes else None
        if found is None:
            statements.append(stage)
            continue
        by_lane, pair = _in_lanes(found)
        buffers.append(by_lane)
        statements += pair
        made.append(str(by_lane.name))
    return with_stages(func, statements, buffers), made


def _in_lanes(found: Lanes) -> tuple[Any, list[Any]]:
    """The buffer with a result for each lane, and the two stages that replace the reduction."""
    from tvm import tirx

    count = tirx.const(found.count, str(found.extent.ty.dtype))
    shape = [*(extent for _, extent, _ in found.spatial), count]
    name = f"{found.block.name_hint}_lanes"
    by_lane = tirx.decl_buffer(shape, found.block.body.buffer.dtype, name)
    return by_lane, [_lane_stage(found, by_lane), _join_stage(found, by_lane)]


def _lane_stage(found: Lanes, by_lane: Any) -> Any:
    """The stage whose lanes take every so many-th element."""
    from tvm import tirx

    block = found.block
    combine = type(block.body.value)

    def at(values: dict[Hashable, Any]) -> list[Any]:
        return [*(values[key] for key, _, _ in found.spatial), values["lane"]]

    def add(values: dict[Hashable, Any]) -> Any:
        position = values["round"] * found.count + values["lane"]
        so_far = tirx.BufferLoad(by_lane, at(values))
        value = combine(so_far, found.element(values, position))
        return tirx.BufferStore(by_lane, value, at(values))

    axes = [
        *found.spatial,
        *found.also_reduced,
        ("round", found.rounds, REDUCTION),
        ("lane", by_lane.shape[-1], SPATIAL),
    ]
    return nest(
        str(by_lane.name),
        axes,
        add,
        init=lambda values: tirx.BufferStore(by_lane, block.init.value, at(values)),
    )


def _join_stage(found: Lanes, by_lane: Any) -> Any:
    """The stage that joins the lanes, and then the elements left over."""
    import tvm
    from tvm import tirx

    block, count, rest = found.block, found.count, found.rest
    combine = type(block.body.value)
    left_over = tvm.sym.Analyzer().simplify(
        math.prod((extent for _, extent, _ in found.also_reduced), start=rest)
    )

    def left(values: dict[Hashable, Any], number: Any) -> Any:
        outer, after = dict(values), tirx.floormod(number, rest)
        number = tirx.floordiv(number, rest)
        for key, extent, _ in reversed(found.also_reduced):
            outer[key] = tirx.floormod(number, extent)
            number = tirx.floordiv(number, extent)
        return found.element(outer, found.rounds * count + after)

    def join(values: dict[Hashable, Any]) -> Any:
        part, spatial = values["part"], [values[key] for key, _, _ in found.spatial]
        if constant(left_over) == 0:
            value = tirx.BufferLoad(by_lane, [*spatial, part])
        else:
            value = tirx.if_then_else(
                part < count,
                tirx.BufferLoad(by_lane, [*spatial, tirx.min(part, count - 1)]),
                left(values, tirx.max(part - count, 0)),
            )
        where = [substitute(each, values) for each in block.body.indices]
        value = combine(tirx.BufferLoad(block.body.buffer, where), value)
        return tirx.BufferStore(block.body.buffer, value, where)

    parts = tvm.sym.Analyzer().simplify(left_over + count)
    return nest(
        str(block.name_hint),
        [*found.spatial, ("part", parts, REDUCTION)],
        join,
        init=lambda values: substitute(block.init, values),
    )
