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
    """MetaSchedule's runner on a farm, with as many trials at a time as there are workers.

    An RPCRunner takes an RPCConfig, whose session_timeout_sec has the worker end a session: it is
    for candidates that hang. An EvaluatorConfig says how to time. max_workers is how many trials
    are sent out at a time, one if nothing is said. initializer is called in each of the processes
    that send them.

    Nothing limits how long such a process waits for a free worker, or for the answer of one that
    has fallen silent. `pool`, a tvm.support.popen_pool.PopenPoolExecutor, can: shut it down and
    put another in its place, with the same number of workers, the same initializer, and timeout=
    the seconds after which a trial is given up.

    Args:
        host: of the tracker.
        port: of the tracker.
        key: of the workers.
        workers: trials at a time.
        session_seconds: after which a worker ends a session.
        trial_seconds: after which a trial is given up here, waiting for a worker included.

    Returns:
        The RPCRunner. It times by 1 call, 3 times, each at least 20 ms long (number, repeat,
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
