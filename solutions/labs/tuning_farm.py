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
    import socket

    from tvm import rpc

    # TVM's own connection tries again and again; this one fails at once where there is no tracker.
    socket.create_connection((host, port), timeout=wait_seconds).close()
    tracker = rpc.connect_tracker(host, port)
    # request() itself waits for ever where no worker is free.
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
    import math

    building = stages.batch * stages.build / stages.builders
    # Whole waves: the last trials of a round leave the other workers idle.
    waves = math.ceil(stages.batch / workers)
    running = max(waves * stages.run, stages.batch * stages.request, stages.batch * stages.upload)
    return stages.batch / (stages.search + building + running)


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
