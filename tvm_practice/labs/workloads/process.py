"""A process that holds one framework: what engines.Session calls in it.

Frameworks are kept apart because each brings threads of its own, and some a copy of LLVM or of
OpenMP. `sample` is called in turns with that of the other processes.
"""

import importlib
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvm_practice.labs.workloads.loaded import Loaded
    from tvm_practice.labs.workloads.problems import Size

_loaded: "dict[str, Loaded]" = {}


def set_threads() -> int:
    """Give every framework that will be imported as many threads as TVM has; returns how many.

    TVM reads TVM_NUM_THREADS, OpenBLAS and OpenMP their own variables, and XLA, which has no option
    for it, PJRT_NPROC. PyTorch and ONNX Runtime are told where they are loaded.
    """
    from tvm_practice import engines

    threads = engines.thread_count()
    for name in ("TVM_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "PJRT_NPROC"):
        os.environ[name] = str(threads)
    return threads


def with_empty_caches(folder: str) -> None:
    """Have torch.compile and Triton keep their caches in `folder`, not in the home folder."""
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        os.environ[name] = folder


def prepare(framework: str, workload: str, size: "Size", trials: int) -> dict[str, Any]:
    """Import a framework, compile a workload, call it and verify the result.

    Args:
        framework: its name in `frameworks.FRAMEWORKS`; in a process always the same.
        workload: its name in `problems.PROBLEMS`.
        size: "full" or "quick".
        trials: schedules that a tuner may measure.

    Returns:
        {"seconds": {"import", "load", "call"}, "error" (see `verifying.verify`), "interpreted"}.
        Raises verifying.WrongResult.
    """
    set_threads()
    started = time.perf_counter()
    from tvm_practice.labs.workloads.frameworks import FRAMEWORKS
    from tvm_practice.labs.workloads.problems import draw

    chosen = FRAMEWORKS[framework]
    if chosen.uses_tvm:
        from tvm_practice import engines

        engines.activate("current")
    module: Any = importlib.import_module(chosen.module)
    inputs = draw(workload, size)
    imported = time.perf_counter()
    options = {"trials": trials} if chosen.tuned else {}
    loaded: Loaded = module.load(workload, inputs, **options)
    ready = time.perf_counter()
    result = loaded.result()
    called = time.perf_counter()
    from tvm_practice.labs.workloads.verifying import verify

    error = verify(workload, inputs, result)
    _loaded[workload] = loaded
    return {
        "seconds": {
            "import": imported - started,
            "load": ready - imported,
            "call": called - ready,
        },
        "error": error,
        "interpreted": bool(getattr(module, "INTERPRETED", False)),
    }


def sample(workload: str) -> float:
    """Milliseconds per call of a workload that was prepared; its threads sleep afterwards."""
    from tvm_practice.measure import one_sample, quiesce

    milliseconds = one_sample(_loaded[workload].call)
    quiesce()  # or its threads would spin into the next process's turn
    return milliseconds


def busy(workload: str, seconds: float = 0.2) -> float:
    """How many processors calls in a row keep busy: processor time over elapsed time."""
    call = _loaded[workload].call
    call()
    started, used = time.perf_counter(), time.process_time()
    while time.perf_counter() - started < seconds:
        call()
    return (time.process_time() - used) / (time.perf_counter() - started)
