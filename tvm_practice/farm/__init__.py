"""A tuning farm: TVM's RPC tracker and servers, for both engines.

A tuner builds a trial where it runs. It asks the tracker for a free server and measures the trial
there.

    python -m tvm_practice.farm tracker --host HOST                  on one machine
    python -m tvm_practice.farm server --tracker HOST --host OWN     on each machine that measures
    python -m tvm_practice.farm status --tracker HOST
    python -m tvm_practice.farm tune --tracker HOST                  a small matmul, to see it work

The two TVMs do not understand each other's servers. So each engine has a tracker of its own, on a
port of its own, and each machine runs one server per engine. Whoever reaches a server can run code
on it. Without --host they listen on this machine's loopback alone: keep the farm on a network that
you trust, or behind SSH tunnels (docs/container.md).

The container's image holds this package and `engines` alone: to import what its farm runs must
need neither TVM nor the rest of the project.
"""

from tvm_practice.farm.lost import is_lost
from tvm_practice.farm.tuning import tune_matmul

__all__ = ["is_lost", "tune_matmul"]
