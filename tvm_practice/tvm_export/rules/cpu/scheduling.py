"""Steps on a `Schedule` that several rules take: inline, vectorize, run in parallel."""

import math
from typing import Any

from tvm_practice.tvm_export.rules.cpu.loops import Cpu, constant, loads, substitute, variables
from tvm_practice.tvm_export.rules.cpu.vector_math import FUNCTIONS, called

# A vectorized loop longer than this many registers only makes the code longer.
_MAX_REGISTERS = 4
# Expressions that inlining may repeat, and for how many of them a function counts.
_MAX_REPEATED, _CALL = 60, 20
# Iterations of a parallel loop for each thread from which they are balanced enough.
TASKS = 8
# Elements below which starting the other threads costs more than they save: a microsecond when
# they are waiting for work, tens of it when the processor is busy.
SERIAL_ELEMENTS = 1 << 16


def extent_of(schedule: Any, loop: Any) -> int | None:
    """The extent of a loop, None if it is not a constant."""
    return constant(schedule.get(loop).extent)


def iterations(schedule: Any, loops: list[Any]) -> int | None:
    """How often the body of nested loops runs; None if that is not constant."""
    extents = [extent_of(schedule, each) for each in loops]
    return None if None in extents else math.prod(each or 0 for each in extents)


def inline_cheap(schedule: Any, blocks: list[Any]) -> list[Any]:
    """Inline blocks into their consumers, unless that repeats much; the blocks that are left."""
    import tvm

    left = []
    for block in blocks:
        try:
            if _better_apart(schedule, block):
                left.append(block)
            else:
                schedule.compute_inline(block)
        except tvm.s_tir.ScheduleError:
            left.append(block)
    return left


def declares_reads(schedule: Any, block: Any) -> bool:
    """Whether all that read a block's output declare it, so that it can be computed at a loop.

    TVM declares one part of two that are read under different conditions, as where the same tensor
    is concatenated twice; the other part would never be computed.
    """
    import tvm_ffi

    buffer = schedule.get(block).writes[0].source
    for consumer in map(schedule.get, schedule.get_consumers(block)):
        read = [each for each in loads(consumer.body) if each.source.same_as(buffer)]
        regions = [each.region for each in consumer.reads if each.source.same_as(buffer)]
        points = [
            [each.min for each in region]
            for region in regions
            if all(constant(each.extent) == 1 for each in region)
        ]
        if len(read) > 1 and len(points) == len(regions):
            for load in read:
                at = list(load.indices)
                if not any(tvm_ffi.structural_equal(at, point) for point in points):
                    return False
    return True


def parts_are_small(func: Any) -> bool:
    """Whether TVM allocates no more for intermediate results than all of them take.

    Of a stage that is computed within another's loops it allocates a part, by an estimate. Where a
    reshape divides by extents that are no multiples of each other, that can be gigabytes.
    """
    import tvm

    whole = _allocated(func)
    if not whole:  # nothing is, or extents are open
        return True
    passes = tvm.s_tir.transform
    compacted = tvm.ir.transform.Sequential(
        [
            passes.LowerInitBlock(),
            passes.PlanAndUpdateBufferAllocationLocation(),
            passes.ConvertBlocksToOpaque(),
            passes.CompactBufferAllocation(),
        ]
    )
    module = tvm.IRModule({"main": func.with_attr("global_symbol", "main")})
    part = _allocated(compacted(module)["main"])
    return part is not None and part <= whole


def can_be_lowered(func: Any) -> bool:
    """Whether TVM's passes take a scheduled function, if its extents are open.

    A part of a stage may get an extent that depends on loops within it.
    """
    import tvm
    import tvm_ffi
    from tvm import tirx

    extents: list[Any] = []
    tvm_ffi.structural_walk(func.body, (tirx.For, lambda loop: extents.append(loop.extent)))
    if None not in map(constant, extents):
        return True
    target = tvm.target.Target("llvm")
    named = func.with_attrs({"global_symbol": "main", "target": target.with_host(target)})
    lower, *_ = tvm.s_tir.pipeline.default_s_tir_pipeline()
    # Without its common subexpressions, as it is compiled when TVM fails to name them.
    with tvm.transform.PassContext(config={"tirx.disable_cse_tir": True}):
        try:
            lower(tvm.IRModule({"main": named}))
        except tvm.error.InternalError:
            return False
    return True


def _allocated(func: Any) -> int | None:
    """Elements of all intermediate buffers; None if an extent is not constant."""
    import tvm_ffi
    from tvm.s_tir import SBlock

    shapes: list[Any] = []

    def look(block: Any) -> None:
        shapes.extend(each.shape for each in block.alloc_buffers)

    tvm_ffi.structural_walk(func.body, (SBlock, look))
    extents = [[constant(each) for each in shape] for shape in shapes]
    if any(None in shape for shape in extents):
        return None
    return sum(math.prod(each or 0 for each in shape) for shape in extents)


def inline_epilogue(schedule: Any, blocks: list[Any]) -> tuple[list[Any], list[Any]]:
    """Inline what is fused after a contraction.

    Args:
        schedule: of the function.
        blocks: the copy of the contraction's tiles to its output, and all stages after it.

    Returns:
        The stages left that are computed where a tile is done, and those that are not: a padding,
        say, has elements that no tile stands for, and what follows it has too.
    """
    known = {schedule.get(blocks[0]).writes[0].source}
    count = 1
    while count < len(blocks) and _covered(schedule.get(blocks[count]), known):
        known |= {each.source for each in schedule.get(blocks[count]).writes}
        count += 1
    within, apart = blocks[:count], blocks[count:]
    if len(within) > 1:
        schedule.compute_inline(within.pop(0))
    within = [*inline_cheap(schedule, within[:-1]), within[-1]]
    return within, [*inline_cheap(schedule, apart[:-1]), *apart[-1:]]


def _covered(block: Any, known: set[Any]) -> bool:
    """Whether a block reads the buffers in `known` element by element, and has no axis longer."""
    import tvm_ffi

    extents = {each.var: each.dom.extent for each in block.iter_vars}

    def whole(index: Any, extent: Any) -> bool:
        if constant(extent) == 1:
            return constant(index) == 0 or constant(extents.get(index)) == 1
        return index in extents and bool(tvm_ffi.structural_equal(extents[index], extent))

    return all(
        whole(index, extent)
        for load in loads(block.body)
        if load.source in known
        for index, extent in zip(load.indices, load.source.shape, strict=True)
    )


def _better_apart(schedule: Any, block: Any) -> bool:
    """Whether inlining would write a long expression more than once, or nest two functions.

    Left unchecked, a chain of operators that use their input twice doubles with each; and
    functions that become arithmetic, nested in one expression, take TVM's code generator long.
    """
    statement = schedule.get(block)
    buffer = statement.writes[0].source
    value = getattr(statement.body, "value", statement.body)
    readers = [schedule.get(each).body for each in schedule.get_consumers(block)]
    if _functions(value) and any(_functions(each) for each in readers):
        return True
    uses = [
        each
        for body in readers
        for each in _find(body, "TensorLoad")
        if each.source.same_as(buffer)
    ]
    cost = len(_find(value, "Expr")) + _CALL * len(_functions(value))
    return (len(uses) - 1) * cost > _MAX_REPEATED


def _functions(node: Any) -> list[Any]:
    return [each for each in _find(node, "Call") if called(each) in FUNCTIONS]


def _find(node: Any, kind: str) -> list[Any]:
    """The expressions of a class of `tvm.ir.expr` in a node, as often as they are written."""
    import tvm
    import tvm_ffi

    found: list[Any] = []
    tvm_ffi.structural_walk(node, (getattr(tvm.ir.expr, kind), lambda each: found.append(each)))
    return found


def split_lanes(schedule: Any, block: Any, cpu: Cpu) -> Any | None:
    """Split off a block's innermost loop what is to be vectorized; None if it does not divide."""
    loops = schedule.get_loops(block)
    extent = extent_of(schedule, loops[-1])
    lanes = cpu.lanes(schedule.get(block).writes[0].source.dtype)
    if extent is None or extent < 2:
        return None
    # A register of narrow numbers, or of what they are computed in.
    registers = [each for each in (lanes, lanes // 2, lanes // 4) if each >= cpu.lanes("int32")]
    widths = [extent, *range(_MAX_REGISTERS * lanes, lanes // 2, -1)]
    for width in [e for e in (registers or [lanes]) if extent % e == 0] or widths:
        if width <= _MAX_REGISTERS * lanes and extent % width == 0:
            return schedule.split(loops[-1], [None, width])[1]
    return None


def vectorize(schedule: Any, block: Any, cpu: Cpu) -> None:
    """Vectorize the innermost loop of a block, or the largest part of it that divides.

    Left to LLVM, whose vectorizer makes masks: loops of unknown or indivisible extent, bodies
    with a condition on the innermost index, which TVM's vectorizer takes apart into scalars, and
    one bfloat16 for all lanes, which TVM does not store.
    """
    if _conditional(schedule, block) or _spreads_bfloat16(schedule, block):
        return
    inner = split_lanes(schedule, block, cpu)
    if inner is not None:
        schedule.vectorize(inner)


def _conditional(schedule: Any, block: Any) -> bool:
    """Whether the block's value depends on a condition on its innermost iterator."""
    from tvm import tirx

    statement = schedule.get(block)
    if not statement.iter_vars or not isinstance(statement.body, tirx.BufferStore):
        return True
    innermost = statement.iter_vars[-1].var
    return any(
        innermost in variables(each.args[0])
        for each in _find(statement.body.value, "Call")
        if called(each) == "if_then_else"
    )


def _spreads_bfloat16(schedule: Any, block: Any) -> bool:
    """Whether a block stores a bfloat16 that some iterations of its innermost loop share."""
    import tvm
    import tvm_ffi
    from tvm import tirx

    statement = schedule.get(block)
    store = statement.body
    innermost = statement.iter_vars[-1].var
    if str(store.buffer.dtype) != "bfloat16":
        return False
    steps = [tirx.const(at, str(innermost.ty.dtype)) for at in (0, 1)]
    first, second = (substitute(store.value, {innermost: step}) for step in steps)
    analyzer = tvm.sym.Analyzer()  # x[j // 8] is x[0] in both, and a padding may be all there is
    for each in statement.iter_vars:
        analyzer.bind(each.var, each.dom)
    return bool(tvm_ffi.structural_equal(analyzer.simplify(first), analyzer.simplify(second)))


def parallelize(schedule: Any, loops: list[Any], elements: int | None) -> Any:
    """Fuse `loops` and run them in parallel if there is work for it.

    Returns the fused loop; where TVM cannot fuse them, the innermost of `loops`.
    """
    fused = _fused(schedule, loops)
    outer = fused or loops[0]
    if (elements is None or elements >= SERIAL_ELEMENTS) and extent_of(schedule, outer) != 1:
        schedule.parallel(outer)
    return fused or loops[-1]


def _fused(schedule: Any, loops: list[Any]) -> Any | None:
    """The loops fused; None if TVM cannot simplify quotients of their open extents."""
    import tvm

    if len(loops) == 1:
        return loops[0]
    try:
        return schedule.fuse(*loops)
    except tvm.error.InternalError:  # PadDividendToDivisor of iter_affine_map.cc
        if iterations(schedule, loops) is not None:
            raise
        return None


def schedule_stage(schedule: Any, block: Any, cpu: Cpu) -> Any | None:
    """Schedule one injective block at the root: parallel outside, vectorized inside.

    Returns the loop around what is vectorized, None if there is none.
    """
    loops = schedule.get_loops(block)
    if not loops:
        return None
    elements = iterations(schedule, loops)
    vectorize(schedule, block, cpu)
    loops = list(schedule.get_loops(block))
    if len(loops) == 1:
        loops = list(schedule.split(loops[0], [cpu.threads, None]))
    if (iterations(schedule, loops[:-2]) or 0) >= TASKS * cpu.threads:
        parallelize(schedule, loops[:-2], elements)
        return loops[-2]  # not fused: its index needs no division
    return parallelize(schedule, loops[:-1], elements)
