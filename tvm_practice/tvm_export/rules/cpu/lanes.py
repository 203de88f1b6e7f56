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
    """

    block: Any
    kept: list[Axis]
    joined: list[Any]
    extent: Any


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


def _find_lanes(block: Any, lanes: int) -> Lanes | None:
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
            best = Lanes(block, kept, joined, extent)
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
    """`func` with stages that compute several independent reductions taken apart, one a stage."""
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
            found = _find_lanes(block, lanes) if lanes else None
        if found is None:
            statements.append(stage)
            continue
        by_lane, pair = _in_lanes(found, lanes)
        buffers.append(by_lane)
        statements += pair
        made.append(str(by_lane.name))
    return with_stages(func, statements, buffers), made


def _in_lanes(found: Lanes, lanes: int) -> tuple[Any, list[Any]]:
    """The buffer with a result for each lane, and the two stages that replace the reduction."""
    import tvm
    from tvm import tirx

    block, name = found.block, str(found.block.name_hint)
    own, operand, index = block.body.buffer, operand_of(block), str(found.extent.ty.dtype)
    combine = type(block.body.value)
    analyzer = tvm.sym.Analyzer()
    rounds = analyzer.simplify(tirx.floordiv(found.extent, lanes))
    rest = analyzer.simplify(found.extent - rounds * lanes)
    spatial = [axis for axis in found.kept if axis[2] == SPATIAL]
    also_reduced = [axis for axis in found.kept if axis[2] == REDUCTION]
    shape = [extent for _, extent, _ in spatial] + [tirx.const(lanes, index)]
    by_lane = tirx.decl_buffer(shape, own.dtype, f"{name}_lanes")

    def at(values: dict[Hashable, Any], lane: Any) -> list[Any]:
        return [*(values[key] for key, _, _ in spatial), lane]

    def element(values: dict[Hashable, Any], position: Any) -> Any:
        return substitute(operand, {**values, **_unjoin(found.joined, position)})

    def add(values: dict[Hashable, Any]) -> Any:
        where = at(values, values["lane"])
        position = values["round"] * lanes + values["lane"]
        value = combine(tirx.BufferLoad(by_lane, where), element(values, position))
        return tirx.BufferStore(by_lane, value, where)

    axes = [
        *spatial,
        *also_reduced,
        ("round", rounds, REDUCTION),
        ("lane", tirx.const(lanes, index), SPATIAL),
    ]
    first = nest(
        f"{name}_lanes",
        axes,
        add,
        init=lambda v: tirx.BufferStore(by_lane, block.init.value, at(v, v["lane"])),
    )
    left_over = tirx.const(1, index)
    for _, extent, _ in also_reduced:
        left_over = left_over * extent
    left_over = analyzer.simplify(rest * left_over)

    def join(values: dict[Hashable, Any]) -> Any:
        where = [substitute(each, values) for each in block.body.indices]
        lane = values["part"]
        value = tirx.BufferLoad(by_lane, at(values, lane))
        if constant(left_over) != 0:
            number = tirx.max(lane - lanes, 0)
            outer, after = dict(values), tirx.floormod(number, rest)
            number = tirx.floordiv(number, rest)
            for key, extent, _ in reversed(also_reduced):
                outer[key] = tirx.floormod(number, extent)
                number = tirx.floordiv(number, extent)
            value = tirx.BufferLoad(by_lane, at(values, tirx.min(lane, lanes - 1)))
            extra = element(outer, rounds * lanes + after)
            value = tirx.if_then_else(lane < lanes, value, extra)
        value = combine(tirx.BufferLoad(own, where), value)
        return tirx.BufferStore(own, value, where)

    second = nest(
        name,
        [*spatial, ("part", analyzer.simplify(left_over + lanes), REDUCTION)],
        join,
        init=lambda v: substitute(block.init, v),
    )
    return by_lane, [first, second]
