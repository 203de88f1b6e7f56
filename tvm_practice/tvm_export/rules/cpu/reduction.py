"""Reductions: softmax, normalizations, pooling, means, depthwise convolutions.

Two kinds, by the axis that lies contiguous in memory:

    along the sum      row sums and maxima, softmax, layer norm: each lane of a vector register
                       takes every n-th element of a row, and the lanes are joined at the end
    across the sum     pooling windows, depthwise convolutions, sums over a leading axis: each
                       lane is another output, and up to eight neighbours of a window are computed
                       together

Rows, or outputs, run in parallel.
"""

import math
from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.lanes import operand_of, over_lanes, separate
from tvm_practice.tvm_export.rules.cpu.long_sums import in_parts
from tvm_practice.tvm_export.rules.cpu.loops import (
    REDUCTION,
    SPATIAL,
    Cpu,
    blocks_of,
    constant,
    is_reduction,
    kind_of,
    loads,
    substitute,
)
from tvm_practice.tvm_export.rules.cpu.scheduling import (
    SERIAL_ELEMENTS,
    TASKS,
    declares_reads,
    extent_of,
    inline_cheap,
    iterations,
    parallelize,
    schedule_stage,
    split_lanes,
    vectorize,
)

# Longest reduction that is unrolled whole: a 5 x 5 window, the lanes of a register and a rest.
_UNROLL = 32
# Elements of a window whose neighbours are computed together, and how many neighbours.
_MOST_OF_WINDOW, _MOST_NEIGHBOURS = 64, 8


def schedule_reduction(func: Any, cpu: Cpu) -> Any:
    """Reductions over lanes or windows, in parallel.

    The loop nest of a softmax over rows of 128, on 256-bit vectors:

        for i0_i1_fused in parallel(1536):
            for ax0 in serial(1):
                for ax1 in serial(1):
                    for ax3_init in vectorized(8):
                        maxelem_lanes_init: maxelem_lanes <- constant
                    for ax2 in serial(16):
                        for ax3 in vectorized(8):
                            maxelem_lanes_update: maxelem_lanes <- maxelem_lanes, x0
            for ax0 in serial(1):
                for ax1 in serial(1):
                    maxelem_init: maxelem <- constant
                    for ax2 in unrolled(8):
                        maxelem_update: maxelem <- maxelem, maxelem_lanes
            for ax0 in serial(1):
                for ax1 in serial(1):
                    for ax2_0 in serial(16):
                        for ax2_1 in vectorized(8):
                            exp: exp <- maxelem, x0
            for ax0 in serial(1):
                for ax1 in serial(1):
                    for ax3_init in vectorized(8):
                        expsum_lanes_init: expsum_lanes <- constant
                    for ax2 in serial(16):
                        for ax3 in vectorized(8):
                            expsum_lanes_update: expsum_lanes <- exp, expsum_lanes
            for ax0 in serial(1):
                for ax1 in serial(1):
                    expsum_init: expsum <- constant
                    for ax2 in unrolled(8):
                        expsum_update: expsum <- expsum, expsum_lanes
            for i2_0 in serial(16):
                for i2_1 in vectorized(8):
                    norm: norm <- exp, expsum

    Raises:
        NotApplicable: there is no reduction, or one that is no sum, product, maximum or minimum.
    """
    import tvm

    func = separate(func)
    reductions = [each for each in blocks_of(func) if is_reduction(each)]
    if not reductions:
        raise NotApplicable("there is no reduction")
    if any(operand_of(each) is None for each in reductions):
        raise NotApplicable("a reduction is no sum, product, maximum or minimum")
    schedule = tvm.s_tir.Schedule(func)
    _inline_single_use(schedule)
    written, by_lane = over_lanes(in_parts(schedule.mod["main"], cpu), cpu)
    schedule = tvm.s_tir.Schedule(written)
    kinds = {}
    for block in blocks_of(written):
        name = str(block.name_hint)
        if not is_reduction(block):
            kinds[name] = "injective"
        elif name in by_lane:
            kinds[name] = "lanes"
        else:
            kinds[name] = "join" if f"{name}_lanes" in by_lane else "across"
    whole = all(declares_reads(schedule, each) for each in _children(schedule))
    rows = _common_rows(written, cpu) if whole and "across" not in kinds.values() else 0
    if 0 < rows <= len(schedule.get_loops(_children(schedule)[-1])):
        _by_rows(schedule, rows, kinds, cpu)
    else:
        _by_stages(schedule, kinds, cpu)
    return schedule


def _children(schedule: Any) -> list[Any]:
    return list(schedule.get_child_blocks(schedule.get_sblock("root")))


def _elements(block: Any) -> int | None:
    """How often a block runs; None if that is not constant."""
    extents = [constant(each.dom.extent) for each in block.iter_vars]
    return None if None in extents else math.prod(each or 0 for each in extents)


def _inline_single_use(schedule: Any) -> None:
    """Inline what one stage alone reads, unless it would be computed more often there."""
    from tvm.ir.expr import TensorLoad

    for block in _children(schedule):
        statement = schedule.get(block)
        consumers = schedule.get_consumers(block)
        if is_reduction(statement) or len(consumers) != 1:
            continue
        often = _elements(schedule.get(consumers[0])) != _elements(statement)
        if often and not isinstance(statement.body.value, TensorLoad):
            continue
        inline_cheap(schedule, [block])


def _common_rows(func: Any, cpu: Cpu) -> int:
    """How many leading axes all stages share as spatial; 0 if they are too few rows to share."""
    import tvm_ffi

    blocks = blocks_of(func)
    last = blocks[-1].iter_vars
    count = 0
    while count < len(last) and all(
        count < len(block.iter_vars)
        and kind_of(block.iter_vars[count]) == SPATIAL
        and tvm_ffi.structural_equal(block.iter_vars[count].dom, last[count].dom)
        for block in blocks
    ):
        count += 1
    rows = 1
    for axis in last[:count]:
        extent = constant(axis.dom.extent)
        if extent is None:
            return count
        rows *= extent
    return count if rows >= cpu.threads or rows == _elements(blocks[-1]) else 0


def _by_rows(schedule: Any, count: int, kinds: dict[str, str], cpu: Cpu) -> None:
    """All stages of a row one after the other, while it is in the cache; rows in parallel."""
    blocks = _children(schedule)
    work = max((_elements(schedule.get(each)) or SERIAL_ELEMENTS) for each in blocks)
    loops = schedule.get_loops(blocks[-1])
    row = parallelize(schedule, loops[:count], work)
    for block in reversed(blocks[:-1]):
        schedule.compute_at(block, row, preserve_unit_loops=True)
    for block in blocks:
        inside = schedule.get_loops(block)[1:]
        _schedule_inside(schedule, block, inside, kinds[str(schedule.get(block).name_hint)], cpu)


def _by_stages(schedule: Any, kinds: dict[str, str], cpu: Cpu) -> None:
    """Each stage on its own, in parallel."""
    done: set[str] = set()
    for block in _children(schedule):
        statement = schedule.get(block)
        name = str(statement.name_hint)
        if name in done:
            continue
        kind = kinds[name]
        if kind == "injective":
            readers = [str(schedule.get(each).name_hint) for each in schedule.get_consumers(block)]
            if len(readers) != 1 or kinds[readers[0]] != "across":  # else that takes it along
                schedule_stage(schedule, block, cpu)
        elif kind == "across":
            before = [
                each
                for each in schedule.get_producers(block)
                if (producer := str(schedule.get(each).name_hint)) not in done
                and kinds.get(producer) == "injective"
                and len(schedule.get_consumers(each)) == 1
                and declares_reads(schedule, each)
            ]
            done.add(_across(schedule, block, before, cpu))
        else:
            loops = schedule.get_loops(block)
            spatial = sum(kind_of(each) == SPATIAL for each in statement.iter_vars)
            spatial -= kind == "lanes"
            if spatial:  # before the reduction is taken apart: TVM refuses it afterwards
                parallelize(schedule, loops[:spatial], _elements(statement))
            _schedule_inside(schedule, block, loops[spatial:], kind, cpu)


def _schedule_inside(schedule: Any, block: Any, loops: list[Any], kind: str, cpu: Cpu) -> None:
    """Schedule the loops of one row of a stage."""
    reduced = sum(kind_of(each) == REDUCTION for each in schedule.get(block).iter_vars)
    if not loops:
        return
    if kind == "lanes":
        schedule.vectorize(loops[-1])
        schedule.decompose_reduction(block, loops[-1 - reduced])
    elif kind == "join":
        if (extent_of(schedule, loops[-1]) or _UNROLL + 1) <= _UNROLL:
            schedule.unroll(loops[-1])
        schedule.decompose_reduction(block, loops[-1])
    else:
        vectorize(schedule, block, cpu)


def _across(schedule: Any, block: Any, before: list[Any], cpu: Cpu) -> str:
    """A reduction in which each lane is an output; the name of the stage that writes it.

    `before` are stages that it alone reads, a padding say. They are computed image by image, just
    before their image is read, where the images busy the threads. Raises NotApplicable.
    """
    import tvm

    statement = schedule.get(block)
    if not any(kind_of(each) == SPATIAL for each in statement.iter_vars):
        for each in before:
            schedule_stage(schedule, each, cpu)
        return str(statement.name_hint)  # a single, short sum
    consumers = schedule.get_consumers(block)
    if len(consumers) == 1 and _elementwise_use(schedule.get(block), schedule.get(consumers[0])):
        output = consumers[0]
    else:
        output = schedule.cache_write(block, 0, "global")
    statement = schedule.get(block)
    work = _elements(statement)
    inner = split_lanes(schedule, output, cpu)
    loops = schedule.get_loops(output)
    if len(loops) < 2:
        loops = [schedule.add_unit_loop(loops[0]), *loops]
    neighbours = None if inner is None else _neighbours(schedule, statement, loops)
    if neighbours is not None:
        loops = schedule.get_loops(output)[:-2] + loops[-1:]
    try:
        schedule.compute_at(block, loops[-2], preserve_unit_loops=True)
    except tvm.s_tir.ScheduleError as why:  # it reads beyond what a stage writes, as a crop may
        raise NotApplicable("TVM cannot compute the sum within its output's loops") from why
    count = sum(kind_of(each) == REDUCTION for each in statement.iter_vars)
    own = schedule.get_loops(block)
    reduced, lanes = own[-count:], own[-count - 1]
    if neighbours is None:
        schedule.reorder(*reduced, lanes)
    else:
        schedule.reorder(*reduced, own[-count - 2], lanes)
        schedule.unroll(own[-count - 2])
        schedule.unroll(neighbours)
    if inner is not None:
        if not _strided(statement):
            schedule.vectorize(lanes)
        schedule.vectorize(inner)
    unrolled = 1
    for loop in reversed(reduced):
        unrolled *= extent_of(schedule, loop) or _UNROLL + 1
        if unrolled > _UNROLL:
            break
        schedule.unroll(loop)
    images = loops[: max(len(statement.iter_vars) - 2 * count, 0)]
    if before and (iterations(schedule, images) or 0) >= TASKS * cpu.threads:
        image = parallelize(schedule, images, work)
        for each in before:
            schedule.compute_at(each, image, preserve_unit_loops=True)
            vectorize(schedule, each, cpu)
    else:
        tasks = loops[:-1] if neighbours is None else _enough(schedule, loops[:-1], cpu)
        parallelize(schedule, tasks, work)
        for each in before:
            schedule_stage(schedule, each, cpu)
    schedule.decompose_reduction(block, reduced[0])
    return str(schedule.get(output).name_hint)


def _neighbours(schedule: Any, block: Any, loops: list[Any]) -> Any | None:
    """The loop over outputs that are computed together; None where each is by itself.

    Neighbours share the weights of a window and most of what it covers. Split off the axis before
    the last, the loop is put around the lanes.

    Args:
        schedule: of the function.
        block: of a reduction over windows.
        loops: over the outputs; the last over lanes, the one before over registers.
    """
    window = [constant(each.dom.extent) for each in block.iter_vars if kind_of(each) == REDUCTION]
    if len(loops) < 4 or len(window) < 2 or None in window or _strided(block):
        return None
    if math.prod(each or 0 for each in window) > _MOST_OF_WINDOW:
        return None
    extent = extent_of(schedule, loops[-3]) or 1
    together = max(each for each in range(1, _MOST_NEIGHBOURS + 1) if extent % each == 0)
    if together == 1 and extent <= 2 * _MOST_NEIGHBOURS:
        together = extent
    if together == 1:
        return None
    _, neighbours = schedule.split(loops[-3], [None, together])
    schedule.reorder(loops[-2], neighbours, loops[-1])
    return neighbours


def _enough(schedule: Any, loops: list[Any], cpu: Cpu) -> list[Any]:
    """The outermost of the loops that make tasks for all threads.

    The rest stay loops: an index fused of all would be divided for every output.
    """
    for count in range(1, len(loops)):
        if (iterations(schedule, loops[:count]) or 0) >= TASKS * cpu.threads:
            return loops[:count]
    return loops


def _strided(block: Any) -> bool:
    """Whether the lanes of a block's innermost spatial iterator are apart in what it reads.

    TVM loads such lanes one by one; LLVM, left a loop, loads whole registers and shuffles them.
    """
    import tvm
    from tvm import tirx

    var = [each.var for each in block.iter_vars if kind_of(each) == SPATIAL][-1]
    one = tirx.const(1, str(var.ty.dtype))
    analyzer = tvm.sym.Analyzer()
    steps = [
        constant(
            analyzer.simplify(substitute(load.indices[-1], {var: var + one}) - load.indices[-1])
        )
        for load in loads(block.body)
        if load.indices
    ]
    return any(step is not None and step > 1 for step in steps)


def _elementwise_use(producer: Any, consumer: Any) -> bool:
    """Whether an injective consumer has the producer's axes and reads it element by element."""
    if is_reduction(consumer):
        return False
    own = [each.var for each in consumer.iter_vars]
    reads = [each for each in loads(consumer.body) if each.source.same_as(producer.body.buffer)]
    return all(
        len(read.indices) == len(own)
        and all(index.same_as(var) for index, var in zip(read.indices, own, strict=True))
        for read in reads
    )
