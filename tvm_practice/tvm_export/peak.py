"""The speed that no float32 code of this machine exceeds: multiply-adds in registers."""

import time
from typing import Any

SETTLING = 0.5
"""Seconds of calls: Linux may start two threads on one core, and moves one only after a while."""
_STEPS = 20_000  # multiply-adds in a row for each accumulator: about a millisecond

_SOURCE = """@T.prim_func(s_tir=True)
def main(X: T.Buffer((2,), "float32"), Y: T.Buffer(({threads}, {rows}, {lanes}), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for t in T.parallel({threads}):
        sums = T.alloc_buffer(({rows}, {lanes}), "float32", scope="local")
        for i in T.unroll({rows}):
            for l in T.vectorized({lanes}):
                sums[i, l] = T.float32(0)
        for r in range({steps}):
            for i in T.unroll({rows}):
                for l in T.vectorized({lanes}):
                    sums[i, l] = sums[i, l] * X[0] + X[1]
        for i in T.unroll({rows}):
            for l in T.vectorized({lanes}):
                Y[t, i, l] = sums[i, l]
"""


def peak_gflops(target: Any, *, repeats: int = 15) -> float:
    """10^9 operations per second on all threads, two per multiply-add: the best of `repeats`.

    Runs on current TVM; takes a second.

    Args:
        target: this machine's, a tvm.target.Target or its text.
        repeats: calls that are timed.
    """
    import numpy as np

    from tvm_practice import engines

    here, threads = engines.host(), engines.thread_count()
    lanes = here.vector_lanes
    # TVM puts a buffer on the stack, from where LLVM moves it to registers, up to 1 KiB.
    rows = min(here.vector_registers * 3 // 4, 1024 // (4 * lanes))
    text = _SOURCE.format(threads=threads, rows=rows, lanes=lanes, steps=_STEPS)
    # Near 1, where sums neither vanish nor grow: denormal numbers would be slow.
    arrays = [np.array([0.5, 0.5], "float32"), np.zeros((threads, rows, lanes), "float32")]
    settling = SETTLING if threads > 1 else 0.0
    seconds = best_seconds(text, arrays, target, repeats, settling)
    return 2 * threads * rows * lanes * _STEPS / seconds / 1e9


def best_seconds(
    source: str, arrays: list[Any], target: Any, repeats: int, at_least: float = 0.0
) -> float:
    """Seconds of the fastest call of a PrimFunc, given as TVMScript, on these arrays.

    Args:
        source: TVMScript.
        arrays: numpy arrays, one per buffer.
        target: this machine's.
        repeats: calls that are timed.
        at_least: seconds for which calls go on beyond that.
    """
    import tvm

    function = tvm.script.from_source(source).with_attr("global_symbol", "main")
    module = tvm.compile(tvm.IRModule({"main": function}), target=tvm.target.Target(target))
    arguments = [tvm.runtime.tensor(each) for each in arrays]
    evaluator = module.mod.time_evaluator("main", tvm.cpu(), number=1, repeat=repeats)
    began = time.monotonic()
    best = min(evaluator(*arguments).results)
    while time.monotonic() - began < at_least:
        best = min(best, *evaluator(*arguments).results)
    return float(best)
