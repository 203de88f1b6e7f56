"""Default schedules for CUDA: TVM's own rules (dlight), and who compiles the kernels.

    module = schedule_defaults(module, target)
    with compiling_kernels(target):
        executable = tvm.compile(module, target)

The rules, first match first: matmul, gemv, reduction, general_reduction, fallback. A convolution is
for the last, a thread for each element. No GPU is needed for any of it. Without a CUDA runtime
TVM keeps the kernels as CUDA source, and they are compiled where the library is loaded.
"""

import logging
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

_log = logging.getLogger(__name__)


def schedule_defaults(mod: Any, target: Any, *, report: list[tuple[str, str]] | None = None) -> Any:
    """Bind every PrimFunc of a module that is not scheduled yet to threads.

    Args:
        mod: an IRModule of fused functions, as `optimize_relax` leaves it; it is left as it was.
        target: a tvm.target.Target of kind cuda.
        report: receives (function name, rule name) of each function scheduled here.

    Returns:
        A new IRModule.
    """
    import tvm
    from tvm.s_tir import dlight

    gpu = dlight.gpu
    rules = (gpu.Matmul, gpu.GEMV, gpu.Reduction, gpu.GeneralReduction, gpu.Fallback)
    scheduled = mod.clone()
    for name, func in mod.functions_items():
        if not isinstance(func, tvm.tirx.PrimFunc) or (func.attrs or {}).get("tirx.is_scheduled"):
            continue
        alone = tvm.IRModule({name: func})
        taken = "unscheduled"
        for rule in rules:
            try:
                with target:
                    bound = dlight.ApplyDefaultSchedule(rule())(alone)[name]
            except Exception as error:  # a mistake in a rule must not cost the build
                _log.warning("rule %s failed on %s: %s", rule.__name__, name.name_hint, error)
                continue
            if not bound.same_as(func):
                scheduled[name], taken = bound, _words(rule.__name__)
                break
        if report is not None:
            report.append((str(name.name_hint), taken))
    return scheduled


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
