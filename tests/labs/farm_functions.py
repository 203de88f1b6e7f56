"""What the farm's tests call on an engine."""

import threading
from typing import Any

import psutil


def open_lose_and_close() -> dict[str, Any]:
    """What a farm of two looks like on its way."""
    from tvm import rpc

    from tvm_practice.local_farm import LocalFarm

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


def lose_a_worker() -> dict[str, Any]:
    """Trials under the reference runner while a worker is killed, and while one falls silent.

    Returns for each way of losing: the errors as they come, and after `survive_lost_worker`.
    """
    from solutions.labs.tuning_farm import rpc_runner, survive_lost_worker
    from tvm_practice.course.checks.labs.tuning_farm import a_trial
    from tvm_practice.local_farm import LocalFarm, SilentServer
    from tvm_practice.tvm_export.tuners.workers import without_torch

    trials = [a_trial(64, 64)] * 6
    seen: dict[str, Any] = {}
    with LocalFarm(2) as farm, without_torch():
        runner = rpc_runner(
            farm.host, farm.port, farm.key, workers=2, session_seconds=20, trial_seconds=4
        )
        try:
            for each in [runner.pool.submit(abs, 0) for _ in range(2)]:
                each.result()
            for name, survive in (("killed", False), ("survived", True)):
                killer = threading.Thread(target=farm.lose, kwargs={"serving": True})
                killer.start()
                if survive:
                    results = survive_lost_worker(runner, trials, attempts=3)
                else:
                    results = [each.result() for each in runner.run(trials)]
                killer.join()
                farm.add(2 - len(farm))
                seen[name] = [str(each.error_msg) for each in results if each.error_msg]
            with SilentServer(farm.host, farm.port, farm.key) as silent:
                silent.offer()
                results = [each.result() for each in runner.run(trials)]
            seen["silent"] = [str(each.error_msg) for each in results if each.error_msg]
        finally:
            runner.pool.shutdown(wait=False)
    return seen
