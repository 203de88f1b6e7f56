"""Reference answers of lab 5."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tvm_practice.farm.stages import Stages
from tvm_practice.tvm_export.tuners.rpc import rpc_runner as rpc_runner

if TYPE_CHECKING:
    import numpy as np


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
    import socket

    from tvm import rpc

    # TVM's own connection retries; this one fails at once if there is no tracker.
    socket.create_connection((host, port), timeout=wait_seconds).close()
    tracker = rpc.connect_tracker(host, port)
    # request() itself waits forever if no worker is free.
    tracker._sock.settimeout(wait_seconds)
    try:
        return tracker.request(key, session_timeout=session_seconds, max_retry=1)
    except RuntimeError as error:
        raise TimeoutError(
            f"no worker of key {key!r} was free for {wait_seconds:g} s: {error}"
        ) from error
    finally:
        tracker.close()


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
    from pathlib import Path

    import numpy as np
    import tvm

    session.upload(library)
    module = session.load_module(Path(library).name)
    device = session.cpu()
    arguments = [tvm.runtime.tensor(each, device) for each in inputs]
    output = tvm.runtime.empty(shape, "float32", device)
    module["main"](*arguments, output)
    result = output.numpy()
    timer = module.time_evaluator("main", device, number=number, repeat=repeats)
    return result, np.array(timer(*arguments, output).results)


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
    from tvm_practice.farm import is_lost

    results: list[Any] = [None] * len(inputs)
    left = list(range(len(inputs)))
    for _ in range(attempts):
        futures = runner.run([inputs[index] for index in left])
        for index, future in zip(left, futures, strict=True):
            results[index] = future.result()
        left = [index for index in left if is_lost(results[index].error_msg)]
        if not left:
            break
    return results


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
    import math

    building = stages.batch * stages.build / stages.builders
    # Whole waves: the last trials of a round leave the other workers idle.
    waves = math.ceil(stages.batch / workers)
    running = max(waves * stages.run, stages.batch * stages.request, stages.batch * stages.upload)
    return stages.batch / (stages.search + building + running)


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
    rows = []
    for count in counts:
        rates = {
            "search": stages.batch / stages.search,
            "build": stages.builders / stages.build,
            "tracker": 1 / stages.request,
            "upload": 1 / stages.upload,
            "workers": min(count, stages.batch) / stages.run,
        }
        bound = min(rates, key=lambda name: rates[name])
        rows.append((count, rates[bound], bound))
    return rows
