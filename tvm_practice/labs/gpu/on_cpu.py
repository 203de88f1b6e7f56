"""The values of a CUDA schedule, on a CPU: its threads one after the other.

In a schedule's IR, a loop that is bound to threads is still a loop. The fetch that a thread block's
threads share stands inside each thread, as loops over all threads. So a correct function stays
correct when plain loops replace the bound ones: every thread fetches the whole tile before it uses
it. That is slow (each thread fetches everything), and it does not check

- the barriers and warp shuffles that TVM adds when it lowers the bound loops;
- intrinsics: tensor-core instructions have no meaning on a CPU; `untensorized` leaves them out.
"""

import re
from typing import Any

from tvm_practice.labs.gpu.matmul import declare

# As TVM's printer writes them.
_THREAD = re.compile(r'T\.thread_binding\((.*?), thread="[^"]*"')


def with_plain_loops(mod: Any) -> Any:
    """The IRModule with its bound loops serial."""
    import tvm

    return tvm.script.from_source(_THREAD.sub(r"T.serial(\1", mod.script()))


def untensorized(schedule: Any, original: Any) -> Any:
    """The module of a tvm.s_tir.Schedule as it would be without its `tensorize`.

    Args:
        original: the IRModule that the schedule began with.
    """
    import tvm
    from tvm.s_tir.schedule.trace import Trace

    kept = [each for each in schedule.trace.insts if str(each.kind.name) != "Tensorize"]
    replayed = tvm.s_tir.Schedule(original)
    Trace(kept, {}).apply_to_schedule(replayed, remove_postproc=False)
    return replayed.mod


def run_on_cpu(mod: Any, inputs: list[Any], shape: tuple[int, ...], dtype: str = "float32") -> Any:
    """Run an IRModule's main(*inputs, output) with plain loops; returns the output as numpy.

    The output starts as NaN, so elements that no thread writes show.
    """
    import numpy as np
    import tvm

    from tvm_practice import engines

    function = tvm.compile(with_plain_loops(mod), target=engines.host_target())["main"]
    output = tvm.runtime.tensor(np.full(shape, np.nan, dtype))
    function(*(tvm.runtime.tensor(each) for each in inputs), output)
    return output.numpy()


def matmul_on_cpu(schedule: Any, m: int, n: int, k: int, *, name: str = "C") -> tuple[Any, Any]:
    """C of a scheduled matmul on new inputs, and numpy's.

    Args:
        schedule: a schedule of the function that `declare` gives for m, n and k.
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        name: of C.

    Returns:
        Two float32 arrays of shape (m, n).
    """
    import numpy as np

    dtype = str(schedule.mod["main"].params[0].dtype)
    rng = np.random.default_rng()
    a, b = (rng.standard_normal(s, dtype="float32").astype(dtype) for s in ((m, k), (k, n)))
    mod = untensorized(schedule, declare(m, n, k, dtype, name=name)[0].mod)
    return run_on_cpu(mod, [a, b], (m, n)), a.astype("float32") @ b.astype("float32")
