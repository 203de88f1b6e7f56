"""Anything that no other rule takes: the outer loops in parallel."""

from typing import Any

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.rules.cpu.loops import SPATIAL, Cpu, has_stages, kind_of


def schedule_loops(func: Any, cpu: Cpu) -> Any:
    """The leading spatial loops of each stage in parallel.

    The loop nest of an argmax:

        for ax0_ax1_fused in parallel(527):
            for k1 in serial(9):
                x0_red_temp: x0_red_temp.v0 <- constant
                x0_red_temp: x0_red_temp.v1 <- constant
        for ax0_ax1_fused in parallel(527):
            x0_red: x0_red_intermediate <- x0_red_temp.v0
        for ax0_ax1_fused in parallel(527):
            T_maximum: T_maximum_intermediate <- x0_red_intermediate

    Raises:
        NotApplicable: no loop may run in parallel.
    """
    import tvm

    if not has_stages(func):
        raise NotApplicable("the function has no root block")
    schedule = tvm.s_tir.Schedule(func)
    changed = False
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        loops = schedule.get_loops(block)
        kinds = [kind_of(each) for each in schedule.get(block).iter_vars]
        leading = 0
        while leading < min(len(loops), len(kinds)) and kinds[leading] == SPATIAL:
            leading += 1
        if not leading:
            continue
        try:
            schedule.parallel(schedule.fuse(*loops[:leading]) if leading > 1 else loops[0])
            changed = True
        except tvm.s_tir.ScheduleError:
            pass  # its loops are not independent; those of other stages may be
    if not changed:
        raise NotApplicable("no loop of it may run in parallel")
    return schedule
