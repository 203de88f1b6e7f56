"""What AutoTVM and Ansor share: how they build and time, a GPU's limits, error numbers, logs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.tuners.history import Row, mean_seconds, prepare_log
from tvm_practice.tvm_export.tuners.journal import Journal

# Short: a slow candidate needs no exact time, and a fast one gets many calls in 20 ms.
TIMING = {"number": 1, "repeat": 3, "min_repeat_ms": 20}
# Of a trial on a farm, waiting for a free server included.
RPC_SECONDS = 60

_MOST_IN_Z = 64  # threads of a block in z, on every CUDA device

# Numbers of MeasureErrorNo, which both write to their logs.
ERRORS = {
    1: "the schedule could not be made",
    2: "it does not compile",
    3: "it does not load",
    4: "it crashes or its process died",
    5: "it computes a wrong answer",
    6: "compiling took too long",
    7: "running took too long",
    8: "unknown error",
}


def limits(target: Any) -> dict[str, int]:
    """What a thread block of a GPU target may have at most; {} for a processor.

    Candidates beyond it are refused before they are compiled. No device is asked.
    """
    if "gpu" not in target.keys:
        return {}
    threads = int(target.attrs["max_threads_per_block"])
    return {
        "max_shared_memory_per_block": int(target.attrs["max_shared_memory_per_block"]),
        "max_threads_per_block": threads,
        "max_thread_x": threads,
        "max_thread_y": threads,
        "max_thread_z": _MOST_IN_Z,
    }


def hardware(target: Any) -> Any:
    """Ansor's `HardwareParams` of a GPU target, from its attributes; None for a processor.

    Ansor asks the device for them otherwise, which may be another machine's.
    """
    from tvm import auto_scheduler

    if not (most := limits(target)):
        return None
    return auto_scheduler.HardwareParams(
        num_cores=-1,  # of no use on a GPU
        vector_unit_bytes=16,
        cache_line_bytes=64,
        max_shared_memory_per_block=most["max_shared_memory_per_block"],
        max_local_memory_per_block=2**31 - 1,
        max_threads_per_block=most["max_threads_per_block"],
        max_vthread_extent=8,
        warp_size=int(target.attrs["thread_warp_size"]),
    )


def start_builder(scope: Any, arch: str | None) -> None:
    """What a process that builds candidates does first.

    Args:
        scope: AutoTVM's settings, `AutotvmGlobalScope.current`.
        arch: the CUDA architecture whose kernels it compiles; None for processors.
    """
    from tvm.autotvm.env import reset_global_scope

    from tvm_practice.tvm_export.cuda import use_for_kernels

    reset_global_scope(scope)
    if arch is not None:
        use_for_kernels(arch)


def builders(target: Any, **pool: Any) -> Any:  # a tvm.contrib.popen_pool.PopenPoolExecutor
    """A pool of processes that build candidates for a target, with the kernels' compiler."""
    from tvm.autotvm.env import AutotvmGlobalScope
    from tvm.contrib.popen_pool import PopenPoolExecutor

    arch = str(target.attrs["arch"]) if "gpu" in target.keys else None
    start = (AutotvmGlobalScope.current, arch)
    return PopenPoolExecutor(initializer=start_builder, initargs=start, **pool)


def recover(log: str | Path) -> Journal:
    """The log's journal, empty: what a killed run had measured is in the log, every line whole."""
    prepare_log(Path(log))
    journal = Journal(Path(f"{log}.journal"), Path(log))
    journal.recover()
    journal.settle()
    return journal


def row(result: Sequence[Any], task: str) -> Row:
    """The row of a log's `[seconds of each run, error number, cost, timestamp]`."""
    costs, error_number, _, timestamp = result
    if error_number:
        return Row(None, ERRORS[int(error_number)], float(timestamp), task)
    return Row(mean_seconds(costs), None, float(timestamp), task)
