"""What the farm's tests call on an engine."""

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
