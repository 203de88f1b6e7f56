"""What the farm's tests call on an engine."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psutil


def open_lose_and_close() -> dict[str, Any]:
    """What a farm of two looks like on its way."""
    from tvm import rpc

    from tvm_practice.farm.local import LocalFarm

    with LocalFarm(2, key="box") as farm:
        family = [psutil.Process(pid) for pid in (farm.tracker_pid, *farm.pids)]
        known = len(farm.servers)
        session = rpc.connect_tracker(farm.host, farm.port).request("box", session_timeout=30)
        answer = int(session.get_function("rpc.test.addone")(41))
        del session
        farm.lose()
        left = len(farm)
        farm.add()
        again = len(farm.servers)
    _, alive = psutil.wait_procs(family, timeout=10)
    return {"known": known, "answer": answer, "left": left, "again": again, "alive": len(alive)}


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


def what_goes_wrong(folder: str) -> dict[str, Any]:
    """Trials of the reference runner, on a farm of two, of which something goes wrong each time.

    Returns:
        By what goes wrong: the errors, and how many servers the tracker knows after it.
    """
    import tvm
    from tvm import te

    from solutions.labs.tuning_farm import rpc_runner, survive_lost_worker
    from tvm_practice.course.checks.labs.tuning_farm import a_trial
    from tvm_practice.farm.local import LocalFarm, SilentServer
    from tvm_practice.tvm_export.tuners.workers import without_torch

    def sum_of(terms: int) -> Any:
        def body(X: Any) -> Any:
            k = te.reduce_axis((0, terms), name="k")
            return te.sum(X[0] * te.exp(X[0] + k.var.astype("float32")), axis=k)

        return body

    def crash(X: Any) -> Any:
        return X[0] + tvm.tirx.call_extern("float32", "abort")

    seen: dict[str, Any] = {}
    with LocalFarm(2) as farm, without_torch():

        @contextmanager
        def measuring(*, session_seconds: float, trial_seconds: float) -> Iterator[Any]:
            runner = rpc_runner(
                farm.host,
                farm.port,
                farm.key,
                workers=2,
                session_seconds=session_seconds,
                trial_seconds=trial_seconds,
            )
            try:
                for each in [runner.pool.submit(time.sleep, 0.1) for _ in range(2)]:
                    each.result()
                yield runner
            finally:
                runner.pool.shutdown(wait=False)

        def run(runner: Any, some: list[Any]) -> list[Any]:
            return [each.result() for each in runner.run(some)]

        def note(name: str, results: list[Any], *, servers: int) -> None:
            errors = [str(each.error_msg) for each in results if each.error_msg]
            time.sleep(0.3)  # a server too many that is lost would be gone by then
            until = time.monotonic() + 60
            while len(farm.servers) != servers and time.monotonic() < until:
                time.sleep(0.05)
            seen[name] = {"errors": errors, "servers": len(farm.servers)}
            farm.add(2 - len(farm.servers))

        with measuring(session_seconds=10, trial_seconds=30) as runner:
            # They take much longer than to find a server in the middle of one and to end it.
            trials = [_built(folder, "slow", sum_of(5 * 10**7))] * 6
            for name, survive in (("killed", False), ("survived", True)):
                killer = threading.Thread(target=farm.lose, kwargs={"serving": True})
                killer.start()
                results = (
                    survive_lost_worker(runner, trials, attempts=3)
                    if survive
                    else run(runner, trials)
                )
                killer.join()
                note(name, results, servers=1)
            note("crashes", run(runner, [_built(folder, "crashes", crash)]), servers=1)
        # These wait for the limits.
        with measuring(session_seconds=5, trial_seconds=15) as runner:
            note("hangs", run(runner, [_built(folder, "hangs", sum_of(10**12))]), servers=2)
            with SilentServer(farm.host, farm.port, farm.key) as silent:
                silent.offer()
                results = run(runner, [a_trial(64, 64)] * 6)
            note("silent", results, servers=2)
    return seen
