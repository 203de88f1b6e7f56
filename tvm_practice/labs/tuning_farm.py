"""Lab 5: a tuning farm.

A tuner spends its time on trials, and trials do not depend on each other. A farm runs many at a
time, on machines like those that the model will run on:

    tuner ── asks for a worker ──> tracker <── "I am free" ── server (one a device)
      └──────── uploads the candidate, has it timed, reads the times ───────┘

The tracker keeps a queue of free servers for each key ("cpu", "pixel-8") and hands each to one
client at a time. A server gives every session a process of its own, which is gone after it. All of
it is TVM's RPC, the same in both TVMs; `python -m tvm_practice.farm` runs it across machines.

Two questions decide whether a farm is worth it, and the lab measures both:

- What happens to a trial whose worker is lost? By itself: it counts as failed, its candidate is
  taken for infinitely slow, and is not tried again. Or the tuner waits for ever.
- How many workers pay? More of them shorten only the part of a trial that runs on them. Search
  and compilation stay where the tuner is, the tracker and the network are shared.

The worked example, `measure_tracker`, is the first piece of that model. Write the functions below
it, then run

    python -m tvm_practice.labs.tuning_farm
    pytest -m lab5
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tvm_practice.course.phase import phase_command
from tvm_practice.farm.stages import Stages

if TYPE_CHECKING:
    import numpy as np

    from tvm_practice.farm.local import LocalFarm


def measure_tracker(farm: "LocalFarm", requests: int) -> float:
    """Worked example: how long the tracker is busy with one trial.

    For a trial, a client connects, asks for a worker and is told one; the worker then says that
    it is free again. The tracker is one thread, so its processor time is what one trial keeps the
    others waiting. The worker here is not a real one: it only says that it is free.

    Args:
        farm: its tracker is measured.
        requests: how often.

    Returns:
        Seconds of processor time.
    """
    import psutil
    from tvm import rpc
    from tvm.rpc import base

    from tvm_practice.farm.local import SilentServer

    process = psutil.Process(farm.tracker_pid)
    with SilentServer(farm.host, farm.port, "tracker-only") as worker:
        before = process.cpu_times()
        for _ in range(requests):
            worker.offer()
            client = rpc.connect_tracker(farm.host, farm.port)
            base.sendjson(client._sock, [base.TrackerCode.REQUEST, "tracker-only", "", 1])
            base.recvjson(client._sock)
            client.close()
        after = process.cpu_times()
    return float(after.user + after.system - before.user - before.system) / requests


def request_worker(
    host: str, port: int, key: str, *, wait_seconds: float, session_seconds: float
) -> Any:  # a tvm.rpc.RPCSession
    """Ask a tracker for a free worker, and do not wait for ever.

    tvm.rpc.connect_tracker gives a connection whose `request` asks for a session. Both are
    patient: without a tracker the first tries again for a minute, and the second waits until a
    worker is free, for ever if none comes. A connection of your own to host and port shows at once
    whether anybody listens; the connection's socket, `_sock`, takes a time limit, and a request
    with max_retry=1 gives up when it is over. Close the connection in any case: the tracker would
    give the next free worker to a request whose connection is still open.

    Args:
        host: of the tracker.
        port: of the tracker.
        key: of the workers.
        wait_seconds: to wait for a free worker.
        session_seconds: after which the worker ends the session, whatever it is doing.

    Returns:
        The tvm.rpc.RPCSession.

    Raises:
        ConnectionError: nobody listens on that port.
        TimeoutError: no worker was free in time; the text names the key.
    """
    raise NotImplementedError("rpc.connect_tracker, a time limit on its socket, then request")


def measure_remotely(
    session: Any,
    library: str,
    inputs: Sequence["np.ndarray"],
    shape: tuple[int, ...],
    *,
    number: int,
    repeats: int,
) -> tuple["np.ndarray", "np.ndarray"]:
    """Run a compiled function on a worker: its output, and how long it takes there.

    Upload the file (it arrives under its own name, without the folders), load it there, put the
    inputs on the session's device, call "main" once for the output, and have time_evaluator time
    it. Its loop runs on the worker: a clock here would time the network too.

    Args:
        session: a tvm.rpc.RPCSession.
        library: path of a shared library whose function is "main"(inputs..., output).
        inputs: float32 arrays.
        shape: of the output, float32.
        number: calls that one sample is the mean of.
        repeats: samples.

    Returns:
        The output, and the seconds of a call, of shape (repeats,).
    """
    raise NotImplementedError("session.upload, load_module, tensors on session.cpu(), then time it")


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
    raise NotImplementedError("RPCConfig, EvaluatorConfig, RPCRunner, and a pool with a time limit")


def survive_lost_worker(runner: Any, inputs: Sequence[Any], *, attempts: int) -> list[Any]:
    """Run trials so that a lost worker costs time and no trial.

    A runner's `run` takes a list of trials, sends them out and returns a future for each, whose
    `result()` waits and has `run_secs` and `error_msg`, one of them None. Send them all out before
    waiting for any, or the workers idle. Where tvm_practice.farm.is_lost says of an error_msg that
    the worker failed and not the candidate, run the trial again, together with the others that
    were lost. Not for ever: a candidate that crashes every worker it is sent to looks the same.

    Args:
        runner: a meta_schedule runner.
        inputs: the trials, RunnerInputs.
        attempts: how often a trial is run at most.

    Returns:
        The RunnerResult of each trial, in the order of `inputs`: that of its last run.
    """
    raise NotImplementedError("run all, collect, and run again those that is_lost speaks of")


def throughput(stages: Stages, workers: int) -> float:
    """Trials per second of a search that goes round by round, as MetaSchedule's does on one task.

    A round chooses its candidates, then builds them all, then runs them all:

    - search takes its seconds, whatever else there is;
    - builders compile candidates at the same time, each in `build` seconds: the builders are
      always busy but for the last few, so take batch · build / builders;
    - the workers take the trials in waves, each worker one in each wave, each wave `run` seconds.
      The last wave may be a part of one and lasts as long. Meanwhile tracker and network serve one
      trial after the other: where that takes longer than the waves, it is what counts.

    Args:
        stages: what the stages take.
        workers: servers of the farm.

    Returns:
        Trials of a round over its seconds.
    """
    raise NotImplementedError("the seconds of search, of building and of running a round")


def predict(stages: Stages, counts: Sequence[int]) -> list[tuple[int, float, str]]:
    """What bounds a farm of each size.

    Were everything overlapped, as with many tasks at a time, every resource could be kept busy,
    and the slowest would set the pace. Trials per second of each alone:

    - "search": a round's trials over its seconds;
    - "build": builders over the seconds of a candidate;
    - "tracker" and "upload": one over the seconds of a trial;
    - "workers": those that have a trial over the seconds of one; a round has no more than `batch`.

    Args:
        stages: what the stages take.
        counts: numbers of workers.

    Returns:
        For each count: the count, the trials per second of the slowest resource, and its name.
    """
    raise NotImplementedError("the rate of each resource; the lowest is the bound")


main = phase_command("labs.tuning_farm", "Lab 5: a tuning farm.")

if __name__ == "__main__":
    main()
