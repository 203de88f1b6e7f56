"""Operators without a reduction: elementwise, reshape, transpose, concatenate, gather, pad."""

from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.loops import Cpu, blocks_of, is_reduction
from tvm_practice.tvm_export.rules.cpu.scheduling import (
    declares_reads,
    inline_cheap,
    iterations,
    parts_are_small,
    schedule_stage,
    vectorize,
)

# How often, on average, a stage's elements may be computed when it moves into a loop of its use.
_MOST_OFTEN = 2


def schedule_injective(func: Any, cpu: Cpu) -> Any:
    """Every stage inlined into those that write the outputs, or computed just before its use.

    The loop nest of a transpose:

        for ax0_ax1_fused in parallel(768):
            for ax2_0 in serial(16):
                for ax2_1 in vectorized(8):
                    T_transpose: T_transpose <- x0

    Raises:
        NotApplicable: there is a reduction, or a loop nest written by hand.
    """
    import tvm

    blocks = blocks_of(func)
    if any(map(is_reduction, blocks)):
        raise NotApplicable("there is a reduction")
    if not all(each.writes for each in blocks):
        raise NotApplicable("a stage does not say what it writes")
    schedule = tvm.s_tir.Schedule(func)
    *before, output = inline_cheap(schedule, schedule.get_child_blocks(schedule.get_sblock("root")))
    around = schedule_stage(schedule, output, cpu)
    for block in reversed(before):
        moved = None if around is None else _computed_at(schedule, block, around)
        if moved is None:
            schedule_stage(schedule, block, cpu)
        else:
            schedule = moved
            vectorize(schedule, block, cpu)
    return schedule


def _computed_at(schedule: Any, block: Any, loop: Any) -> Any:
    """Another schedule, in which a block is computed at a loop; None where it cannot be.

    Nor is it where the part that the loop's body needs differs in size from one iteration to the
    next: TVM would make a buffer of the largest from loops that do not exist there. Nor where most
    elements would be computed more than once: a part is a box around the elements needed. Nor
    where TVM would allocate more for the part than for the whole.
    """
    import tvm

    if not declares_reads(schedule, block):
        return None
    moved = schedule.copy()
    try:
        # A loop of its own, if only of one element: `vectorize` takes the innermost.
        moved.compute_at(block, loop, preserve_unit_loops=True)
    except tvm.s_tir.ScheduleError:
        return None  # another output needs it too
    if not parts_are_small(moved.mod["main"]):
        return None
    whole, part = (iterations(each, each.get_loops(block)) for each in (schedule, moved))
    if whole is None:
        return moved
    return moved if part is not None and part <= _MOST_OFTEN * whole else None
