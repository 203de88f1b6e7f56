"""What the tests of lab 5 call on an engine."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def _built(folder: str, name: str, body: Any) -> Any:
    """A trial whose main(X, Y) computes Y[0] = `body`(X)."""
    import tvm
    from tvm import te
    from tvm.s_tir.meta_schedule.arg_info import TensorInfo
    from tvm.s_tir.meta_schedule.runner import RunnerInput

    X = te.placeholder((1,), name="X")
    Y = te.compute((1,), lambda _: body(X), name="Y")
    function = te.create_prim_func([X, Y]).with_attr("global_symbol", "main")
    file = f"{folder}/{name}.so"
    tvm.compile(function, target={"kind": "llvm"}).mod.export_library(file)
    return RunnerInput(file, "cpu", [TensorInfo("float32", [1]) for _ in range(2)])


def _sum_of(terms: int) -> Any:
    """The body of a candidate that takes long."""
    from tvm import te

    def body(X: Any) -> Any:
        k = te.reduce_axis((0, terms), name="k")
        return te.sum(X[0] * te.exp(X[0] + k.var.astype("float32")), axis=k)

    return body


def _crash(X: Any) -> Any:
    import tvm

    return X[0] + tvm.tirx.call_extern("float32", "abort")


@contextmanager
def _measuring(farm: Any, *, session_seconds: float, trial_seconds: float) -> Iterator[Any]:
    """The reference runner on a farm of two, its processes started."""
    from solutions.labs.tuning_farm import rpc_runner

    limits = {"session_seconds": session_seconds, "trial_seconds": trial_seconds}
    runner = rpc_runner(farm.host, farm.port, farm.key, workers=2, **limits)
    try:
        for each in [runner.pool.submit(time.sleep, 0.1) for _ in range(2)]:
            each.result()
        yield runner
    finally:
        runner.pool.shutdown(wait=False)


def _run(runner: Any, trials: list[Any]) -> list[Any]:
    return [each.result() for each in runner.run(trials)]


def _seen(farm: Any, results: list[Any], *, servers: int) -> dict[str, Any]:
    """The errors, and how many servers the tracker knows once that is `servers`; adds the lost."""
    errors = [str(each.error_msg) for each in results if each.error_msg]
    time.sleep(0.3)  # a server too many that is lost would be gone by then
    until = time.monotonic() + 60
    while len(farm.servers) != servers and time.monotonic() < until:
        time.sleep(0.05)
    known = len(farm.servers)
    farm.add(2 - known)
    return {"errors": errors, "servers": known}


def what_goes_wrong(folder: str) -> dict[str, Any]:
    """Trials of the reference runner, on a farm of two, of which something goes wrong each time.

    Returns:
        By what goes wrong: the errors, and how many servers the tracker knows after it.
    """
    from solutions.labs.tuning_farm import survive_lost_worker
    from tvm_practice.course.checks.labs.tuning_farm import a_trial
    from tvm_practice.farm.local import LocalFarm, SilentServer
    from tvm_practice.tvm_export.tuners.workers import without_torch

    seen: dict[str, Any] = {}
    with LocalFarm(2) as farm, without_torch():
        with _measuring(farm, session_seconds=10, trial_seconds=30) as runner:
            # They take much longer than to find a server in the middle of one and to end it.
            trials = [_built(folder, "slow", _sum_of(5 * 10**7))] * 6

            def survive(runner: Any, trials: list[Any]) -> list[Any]:
                return survive_lost_worker(runner, trials, attempts=3)

            for name, measure in (("killed", _run), ("survived", survive)):
                killer = threading.Thread(target=farm.lose, kwargs={"serving": True})
                killer.start()
                results = measure(runner, trials)
                killer.join()
                seen[name] = _seen(farm, results, servers=1)
            results = _run(runner, [_built(folder, "crashes", _crash)])
            seen["crashes"] = _seen(farm, results, servers=1)
        # These wait for the limits.
        with _measuring(farm, session_seconds=5, trial_seconds=15) as runner:
            results = _run(runner, [_built(folder, "hangs", _sum_of(10**12))])
            seen["hangs"] = _seen(farm, results, servers=2)
            with SilentServer(farm.host, farm.port, farm.key) as silent:
                silent.offer()
                results = _run(runner, [a_trial(64, 64)] * 6)
            seen["silent"] = _seen(farm, results, servers=2)
    return seen
