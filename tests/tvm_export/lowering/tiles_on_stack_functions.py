"""Arrays on the stack; run in a process of the current engine."""

from typing import Any

import numpy as np
import tvm
from tvm.script import tirx as T

from tvm_practice.tvm_export.lowering.tiles_on_stack import keeping_tiles

_WORKSPACE = "TVMBackendAllocWorkspace"


def compiled(size: int, mcpu: str | None) -> dict[str, Any]:
    """A function that writes an array of so many floats and reads it again, for a processor.

    Returns {"workspace": whether TVM's workspace has the array, by "plain" and "kept", "right":
    whether what is compiled for this machine (mcpu None) computes twice its input}.
    """

    @T.prim_func(s_tir=True)
    def double(
        x: T.Buffer((size,), "float32"),  # type: ignore[valid-type]
        y: T.Buffer((size,), "float32"),  # type: ignore[valid-type]
    ) -> None:
        twice = T.sblock_alloc_buffer((size,), "float32")
        for i in range(size):
            with T.sblock("twice"):
                at = T.axis.spatial(size, i)
                twice[at] = x[at] * T.float32(2)
        for i in range(size):
            with T.sblock("copy"):
                at = T.axis.spatial(size, i)
                y[at] = twice[size - 1 - at]

    named = {"mtriple": "x86_64-linux-gnu", "mcpu": mcpu} if mcpu else {}
    target = tvm.target.Target({"kind": "llvm", **named})
    plain = tvm.compile(double, target=target)
    with keeping_tiles(target):
        kept = tvm.compile(double, target=target)
    right = None
    if mcpu is None:
        given = np.arange(size, dtype="float32")
        x, y = tvm.runtime.tensor(given), tvm.runtime.tensor(np.zeros(size, "float32"))
        kept(x, y)
        right = bool((y.numpy() == 2 * given[::-1]).all())
    code = {"plain": plain, "kept": kept}
    return {
        "workspace": {
            name: _WORKSPACE in each.mod.inspect_source("ll") for name, each in code.items()
        },
        "right": right,
    }
