"""Operators without a reduction: elementwise, reshape, transpose, concatenate, gather, pad."""

from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.loops import Cpu, blocks_of, is_reduction
from tvm_practice.tvm_export.rules.cpu.scheduling import (
    declares_reads,
    inline_cheap,
    schedule_stage,
    vectorize,
)


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
        if around is not None and declares_reads(schedule, block):
            try:
                # A loop of its own, if only of one element: `vectorize` takes the innermost.
                schedule.compute_at(block, around, preserve_unit_loops=True)
            except tvm.s_tir.ScheduleError:
                pass  # another output needs it too
            else:
                vectorize(schedule, block, cpu)
                continue
        schedule_stage(schedule, block, cpu)
    return schedule
