"""Default schedules for CUDA: TVM's own rules (dlight), and who compiles the kernels.

    module = schedule_defaults(module, target)
    with compiling_kernels(target):
        executable = tvm.compile(module, target)

The rules, first match first: matmul, gemv, reduction, general_reduction, fallback. The first takes
convolutions too: it reads their windows as the rows of a matrix. The reductions divide each sum
among the threads of a block, so they are not given many short sums, such as a depthwise
convolution's: the last rule gives each thread an element.

No GPU is needed for any of it. Without a CUDA runtime TVM keeps the kernels as CUDA source, and
they are compiled where the library is loaded.
"""

import math
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest import mock

from tvm_practice.tvm_export.errors import NotApplicable
from tvm_practice.tvm_export.extremes import keeping_nan_on_gpu
from tvm_practice.tvm_export.rules.first_match import Decision, first_match

# So many outputs for each term of a sum keep a GPU busy with one thread for an output.
_ENOUGH = 128
# The rules by which the threads of a block share a sum.
_SHARING = ("gemv", "reduction", "general_reduction")


def schedule_defaults(mod: Any, target: Any, *, report: list[Decision] | None = None) -> Any:
    """Bind every PrimFunc of a module that is not scheduled yet to threads.

    Args:
        mod: an IRModule of fused functions, as `optimize_relax` leaves it; it is left as it was.
        target: a tvm.target.Target of kind cuda.
        report: receives the decision on each function that is not scheduled yet.

    Returns:
        A new IRModule.
    """
    import tvm

    scheduled = mod.clone()
    for name, func in mod.functions_items():
        if not isinstance(func, tvm.tirx.PrimFunc) or (func.attrs or {}).get("tirx.is_scheduled"):
            continue
        bound, decision = _scheduled(name, func, target)
        if bound is not None:
            shares_sums = decision.rule in _SHARING
            scheduled[name] = keeping_nan_on_gpu(bound, shares_sums=shares_sums)
        if report is not None:
            report.append(decision)
    return scheduled


def schedule_default(func: Any, target: Any) -> Any:
    """One function with the schedule that `schedule_defaults` gives it.

    Args:
        func: an unscheduled PrimFunc.
        target: a tvm.target.Target of kind cuda.

    Returns:
        An IRModule with the function as its "main".
    """
    import tvm

    name = tvm.ir.GlobalVar("main")
    func = func.with_attr("global_symbol", "main")
    bound, _ = _scheduled(name, func, target)
    return tvm.IRModule({name: func if bound is None else bound})


def _scheduled(name: Any, func: Any, target: Any) -> tuple[Any, Decision]:
    """What the first rule that takes a PrimFunc makes of it, None if none does; the decision."""
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    kinds = (gpu.Matmul, gpu.GEMV, gpu.Reduction, gpu.GeneralReduction, gpu.Fallback)
    rules = [(_words(each.__name__), partial(_bound, name, func, each(), target)) for each in kinds]
    return first_match(str(name.name_hint), rules)


def _many_short_sums(func: Any) -> str | None:
    """One line that says that the only sums of a PrimFunc are many and short; else None."""
    import tvm

    schedule = tvm.s_tir.Schedule(func)
    found = []
    for block in schedule.get_child_blocks(schedule.get_sblock("root")):
        iterators = schedule.get(block).iter_vars
        extents: dict[bool, list[int]] = {True: [], False: []}
        for each in iterators:
            extent = each.dom.extent
            if not isinstance(extent, tvm.tirx.IntImm):
                return None
            extents[each.iter_type == tvm.tirx.IterVar.CommReduce].append(int(extent))
        if extents[True]:
            found.append((math.prod(extents[False]), math.prod(extents[True])))
    if len(found) != 1 or found[0][0] < _ENOUGH * found[0][1]:
        return None
    return f"{found[0][0]} sums of {found[0][1]} terms each: a thread for each is enough"


def _bound(name: Any, func: Any, rule: Any, target: Any) -> Any:
    """A PrimFunc as one of dlight's rules binds it; NotApplicable where the rule declines."""
    import tvm
    from tvm.s_tir import dlight

    if isinstance(rule, dlight.gpu.Reduction | dlight.gpu.GeneralReduction) and (
        sums := _many_short_sums(func)
    ):
        raise NotApplicable(sums)
    with target:
        try:
            bound = dlight.ApplyDefaultSchedule(rule)(tvm.IRModule({name: func}))[name]
        except AssertionError as error:  # how Matmul says that it cannot inline what is fused
            raise NotApplicable(f"TVM's rule declines: {error}") from None
    if bound.same_as(func):
        raise NotApplicable("TVM's rule declines without a reason")
    return bound


def _words(name: str) -> str:
    """GeneralReduction as general_reduction."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


@contextmanager
def compiling_kernels(target: Any) -> Iterator[None]:
    """Within the block TVM compiles CUDA kernels by the compiler that is here, if any.

    That is NVRTC or nvcc, see `cuda.compiler`; with neither, kernels stay CUDA source. For
    a target of another kind nothing changes.
    """
    from tvm_practice.tvm_export.cuda import KEEP_SOURCE, compiler, use_for_kernels

    if str(target.kind.name) != "cuda":
        yield
    elif compiler() is None:
        with mock.patch.dict(os.environ, {KEEP_SOURCE: "1"}):
            yield
    else:
        use_for_kernels(str(target.attrs["arch"]))
        yield
