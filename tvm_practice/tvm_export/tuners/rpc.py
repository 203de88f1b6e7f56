"""Trials measured on a farm's servers, by MetaSchedule."""

from typing import Any


def rpc_runner(
    host: str,
    port: int,
    key: str,
    *,
    workers: int,
    session_seconds: float,
    trial_seconds: float,
) -> Any:  # a tvm.s_tir.meta_schedule.runner.RPCRunner
    """MetaSchedule's runner on a farm, with one trial at a time per worker.

    An RPCRunner takes an RPCConfig, whose session_timeout_sec lets the worker end a session with a
    candidate that hangs. An EvaluatorConfig says how to time. max_workers limits the trials sent
    out at a time (default: one). Each process that sends a trial calls initializer when it starts.

    Nothing limits how long such a process waits for a free worker, or for an answer from a silent
    one. `pool`, a tvm.support.popen_pool.PopenPoolExecutor, can: shut it down and replace it with
    another that has `workers` processes, the same initializer, and as timeout= the seconds after
    which to give up a trial.

    Args:
        host: the tracker's host.
        port: the tracker's port.
        key: the workers' key.
        workers: trials at a time.
        session_seconds: time after which a worker ends a session.
        trial_seconds: time after which a trial is given up here, including the wait for a worker.

    Returns:
        The RPCRunner. It takes 3 samples of 1 call, each at least 20 ms long (repeat, number,
        min_repeat_ms); its processes end with this one
        (tvm_practice.engines.orphans.end_with_parent).
    """
    from tvm.s_tir import meta_schedule as ms
    from tvm.support.popen_pool import PopenPoolExecutor

    from tvm_practice.engines.orphans import end_with_parent

    runner = ms.runner.RPCRunner(
        ms.runner.RPCConfig(host, port, key, session_timeout_sec=session_seconds),
        ms.runner.EvaluatorConfig(number=1, repeat=3, min_repeat_ms=20),
        max_workers=workers,
        initializer=end_with_parent,
    )
    runner.pool.shutdown()
    runner.pool = PopenPoolExecutor(workers, timeout=trial_seconds, initializer=end_with_parent)
    return runner
