"""Lab 5: a tuning farm.

A tuner spends its time on trials, and trials do not depend on each other. A farm runs many at a
time, on the kind of machine that will run the model:

    tuner ── asks for a worker ──> tracker <── "I am free" ── server (one per device)
      └──────── uploads the candidate, has it timed, reads the times ───────┘

The tracker keeps a queue of free servers for each key ("cpu", "pixel-8") and hands each to one
client at a time. A *worker* is a server and its machine. A *session* is a client's connection to a
server, which runs it in a process of its own; the process ends with the session.
All of this is TVM's RPC (remote procedure calls), the same in both TVMs. Across machines,
`python -m tvm_practice.farm` runs it. The pieces:

    tracker = tvm.rpc.connect_tracker(host, port)
    tracker._sock.settimeout(seconds)       limits how long its socket waits for an answer
    tracker.request(key, session_timeout=seconds, max_retry=1)
                                            asks once for a free worker; returns a session, which
                                            the worker ends after session_timeout
    session.upload(path), session.load_module(name), session.cpu()
                                            sends a file; loads it there; the worker's processor
    tvm.runtime.tensor(array, device), tvm.runtime.empty(shape, "float32", device)
                                            tensors on a device; .numpy() copies one back

Of MetaSchedule, `from tvm.s_tir import meta_schedule as ms`:

    ms.runner.RPCConfig(host, port, key, session_timeout_sec=…)
                                            where the tracker is, and how long a session may last
    ms.runner.EvaluatorConfig(number=…, repeat=…, min_repeat_ms=…)
                                            how to time, as time_evaluator does
    ms.runner.RPCRunner(rpc_config, evaluator_config, max_workers=…, initializer=…)
    runner.pool.shutdown()                  ends the processes that send trials
    tvm.support.popen_pool.PopenPoolExecutor(max_workers, timeout=…, initializer=…)
                                            a pool of such processes

Two questions decide whether a farm is worth it, and the lab measures both:

- What happens to a trial whose worker is lost? By default it counts as failed: its candidate is
  taken for infinitely slow and is not tried again. Or the tuner waits forever.
- How many workers pay off? More workers divide only the part of a trial that runs on them.
  Search and compilation stay on the tuner's machine; all share the tracker and the network.

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

    For each trial, a client connects, asks for a worker and is assigned one; the worker then
    reports that it is free again. The tracker has one thread, so one trial delays the others by
    the tracker's processor time. The worker here is not real: it only reports that it is free.

    Args:
        farm: the farm whose tracker is measured.
        requests: number of requests to average over.

    Returns:
        Seconds of processor time per request.
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
            # What client.request sends: the key, a user (none) and a priority.
            base.sendjson(client._sock, [base.TrackerCode.REQUEST, "tracker-only", "", 1])
            base.recvjson(client._sock)
            client.close()
        after = process.cpu_times()
    return float(after.user + after.system - before.user - before.system) / requests


def request_worker(
    host: str, port: int, key: str, *, wait_seconds: float, session_seconds: float
) -> Any:  # a tvm.rpc.RPCSession
    """Ask a tracker for a free worker, and do not wait forever.

    tvm.rpc.connect_tracker gives a connection whose `request` asks for a session. Both are
    patient: without a tracker the first retries for a minute, and the second waits until a worker
    is free, forever if none comes.

    A connection of your own to host and port shows at once whether anybody listens. The socket of
    TVM's connection, `_sock`, takes a time limit, and a request with max_retry=1 gives up
    when it expires, by a RuntimeError. Close both connections in any case: the tracker would give
    the next free worker to a request whose connection is still open.

    Args:
        host: the tracker's host.
        port: the tracker's port.
        key: the workers' key.
        wait_seconds: how long to wait for a free worker.
        session_seconds: time after which the worker ends the session, whatever it is doing.

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
    """Run a compiled function on a worker; return its output and its time there.

    Upload the file (it arrives under its own name, without the folders), load it there, and put the
    inputs on the worker's processor, session.cpu(). Call "main" once and read the output; then time
    it with time_evaluator, whose loop runs on the worker. A clock here would time the network too.

    Args:
        session: a tvm.rpc.RPCSession.
        library: path of a shared library whose function is "main"(inputs..., output).
        inputs: float32 arrays.
        shape: the output's shape; it is float32.
        number: calls per sample, which is their mean.
        repeats: samples, which the timer takes in one call.

    Returns:
        The output of that one call, and the seconds per call, of shape (repeats,).
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
    raise NotImplementedError("RPCConfig, EvaluatorConfig, RPCRunner, and a pool with a time limit")


def survive_lost_worker(runner: Any, inputs: Sequence[Any], *, attempts: int) -> list[Any]:
    """Run trials so that a lost worker costs time and no trial.

    A runner's `run` takes a list of trials, sends them out and returns a future per trial. The
    future's `result()` waits and returns a RunnerResult, whose `run_secs` or `error_msg` is None.
    Send them all out before waiting for any, or the workers idle.

    If tvm_practice.farm.is_lost(error_msg) says that the worker failed and not the candidate, run
    the trial again, together with the other lost trials. Limit the attempts: a candidate that
    crashes every worker looks the same.

    Args:
        runner: a meta_schedule runner.
        inputs: the trials, RunnerInputs.
        attempts: the most runs of one trial.

    Returns:
        The RunnerResult of each trial, in the order of `inputs`: that of its last run.
    """
    raise NotImplementedError("run all, collect, and run the lost ones again")


def throughput(stages: Stages, workers: int) -> float:
    """Trials per second of a search that goes round by round, as MetaSchedule's does on one task.

    A round chooses its candidates, then builds them all, then runs them all:

    - search takes `search` seconds per round;
    - builders compile in parallel, each candidate in `build` seconds; they are all busy until the
      last few candidates, so take batch · build / builders;
    - the workers run the trials in waves of `run` seconds, one trial per worker; a partial last
      wave takes as long. Meanwhile the tracker and the network each serve one trial at a time,
      batch · request and batch · upload seconds. The longest of the three counts.

    Args:
        stages: times and sizes of the stages: `search`, `batch` (trials per round), `build`,
            `builders`, `run`, and per trial `request` (tracker) and `upload` (network).
        workers: servers of the farm.

    Returns:
        Trials per round, divided by the seconds per round.
    """
    raise NotImplementedError("the seconds of search, of building and of running a round")


def predict(stages: Stages, counts: Sequence[int]) -> list[tuple[int, float, str]]:
    """Name the bottleneck of a farm of each size.

    With full overlap, as with many tasks at a time, every resource is busy and the slowest sets
    the pace. Each resource alone allows, in trials per second:

    - "search": trials per round, over the search seconds per round;
    - "build": builders, over the build seconds per candidate;
    - "tracker" and "upload": 1, over their seconds per trial;
    - "workers": busy workers (at most `batch`), over the run seconds per trial.

    Args:
        stages: times and sizes of the stages, as for `throughput`.
        counts: numbers of workers.

    Returns:
        For each count: the count, the trials per second of the slowest resource, and its name.
    """
    raise NotImplementedError("the rate of each resource; the lowest is the bound")


main = phase_command("labs.tuning_farm", "Lab 5: a tuning farm.")

if __name__ == "__main__":
    main()
