"""Parallel loops compiled with claims; run in a process of the current engine."""

from typing import Any

import numpy as np
import tvm
from tvm.script import tirx as T

from tvm_practice import engines
from tvm_practice.tvm_export.lowering.claimed_loops import claiming_iterations


def _compiled(extent: int, level: int, dtype: str) -> Any:
    """Adds 1 to each element of x, and writes to y which iteration was there, in parallel."""

    @T.prim_func(s_tir=True)
    def count(
        x: T.Buffer((extent,), "int32"),  # type: ignore[valid-type]
        y: T.Buffer((extent,), "int32"),  # type: ignore[valid-type]
    ) -> None:
        for i in T.parallel(T.Cast(dtype, extent)):
            with T.sblock("count"):
                at = T.axis.spatial(extent, T.Cast("int32", i))
                x[at] = x[at] + 1
                y[at] = at

    target = tvm.target.Target({"kind": "llvm", "num-cores": 2, "opt-level": level})
    with claiming_iterations(target):
        return tvm.compile(count, target=target)


def counted(extent: int, threads: int, level: int = 3, dtype: str = "int32") -> dict[str, Any]:
    """How often each iteration ran in three calls on some threads, and whether by claims."""
    compiled = _compiled(extent, level, dtype)
    set_threads = tvm.get_global_func("runtime.config_threadpool")
    x, y = (tvm.runtime.tensor(np.zeros(extent, "int32")) for _ in range(2))
    set_threads(1, threads)
    for _ in range(3):
        compiled(x, y)
    set_threads(1, engines.thread_count())
    return {
        "times": sorted(set(x.numpy().tolist())),
        "in_place": bool((y.numpy() == np.arange(extent)).all()),
        "claimed": "atomicrmw" in compiled.mod.inspect_source("ll"),
    }
