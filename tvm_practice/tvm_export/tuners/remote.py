"""Functions and models timed in turns on the machine that measures: a server of a farm.

What a search on a farm's servers found is judged on one of them, not here: this machine may be
another, or unable to run the code at all.
"""

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tvm_practice import engines
from tvm_practice.measure import Ratio, paired_ratio
from tvm_practice.tvm_export.compiling import ALONE, compiling
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.targets import resolve_target
from tvm_practice.tvm_export.tuners.search import Search

_SESSION_SECONDS = 600
_ROUNDS, _SAMPLE_SECONDS, _MOST_CALLS = 11, 0.01, 1000
# Written between two calls of a function with weights: in a model other layers' weights pass.
_PASSING_BYTES = 64 << 20
_MOST_CALLS_PASSING = 5  # writing these bytes takes ten milliseconds or more


@contextmanager
def session(search: Search) -> Iterator[Any]:
    """A session of one of the servers that measure for a search.

    Raises BadInput: the tracker does not answer, or has no such server.
    """
    with _told(search):
        opened = _tracker(search).request(search.rpc_key, session_timeout=_SESSION_SECONDS)
    yield opened


def require_server(search: Search) -> None:
    """Raise BadInput unless the tracker answers and has a server of the search's key."""
    with _told(search):
        _tracker(search)


def _tracker(search: Search) -> Any:
    """A connection to the tracker, which has a server of the key."""
    from tvm import rpc

    assert search.tracker is not None
    tracker = rpc.connect_tracker(*search.tracker)
    if search.rpc_key not in tracker.summary()["queue_info"]:
        raise BadInput(f"the tracker {search.rpc_tracker} has no server {search.rpc_key!r}")
    return tracker


@contextmanager
def _told(search: Search) -> Iterator[None]:
    """TVM's and the network's errors as one line."""
    try:
        yield
    except (RuntimeError, OSError) as error:
        reason = (str(error).strip().splitlines() or ["no message"])[-1]
        raise BadInput(
            f"no session of a server {search.rpc_key!r} of the tracker {search.rpc_tracker}: "
            f"{reason}"
        ) from None


def function_times(
    modules: Sequence[Any], constants: set[int], target: Any, *, search: Search
) -> list[float]:
    """The seconds of a call of each module's "main" on a server, timed in turns.

    Args:
        modules: of one PrimFunc each, scheduled.
        constants: which of its parameters are weights; these are not in the cache at a call.
        target: to compile for.
        search: whose servers measure.

    Raises BadInput, see `session`.
    """
    import tvm

    from tvm_practice.tvm_export.tuners.finals import values_for

    with session(search) as remote:
        device, samples = device_on(remote, target), []
        for number, module in enumerate(modules):
            with compiling(target, ALONE):
                built = tvm.compile(module, target=target)
            run = sent(remote, built, f"function{number}.tar")
            values = values_for(module["main"])
            arguments = [tvm.runtime.tensor(each, device) for each in values]
            samples.append(_sampler(run, device, arguments, passing=bool(constants)))
        return [float(each) for each in np.median(_in_turns(samples), axis=0)]


def model_ratio(one: Any, other: Any, inputs: Sequence[Any], *, search: Search) -> Ratio:
    """The time of a call of one compiled model over another's on a server, timed in turns.

    Args:
        one: a `GraphModule`.
        other: another, of the same engine and target.
        inputs: arrays, in the models' order.
        search: whose servers measure.

    Raises BadInput, see `session`.
    """
    with session(search) as remote:
        device = device_on(remote, resolve_target(one.target))
        samples = [
            _model_sampler(sent(remote, model.compiled, f"model{number}.tar"), device, inputs)
            for number, model in enumerate((one, other))
        ]
        first, second = _in_turns(samples).T
    return paired_ratio(first, second)


def _model_sampler(library: Any, device: Any, inputs: Sequence[Any]) -> Callable[[], float]:
    """A function that takes one sample of a model on the server, in seconds."""
    import tvm

    if engines.active() == engines.CLASSIC:
        from tvm.contrib import graph_executor

        executor = graph_executor.GraphModule(library["default"](device))
        for position, value in enumerate(inputs):
            if executor.get_input_index(f"input_{position}") >= 0:  # else nothing reads it
                executor.set_input(f"input_{position}", value)
        timed = executor.module.time_evaluator("run", device, number=1, repeat=1)
        return lambda: float(timed().mean)
    from tvm import relax

    machine = relax.VirtualMachine(library, device)
    machine.set_input("main", *(tvm.runtime.tensor(each, device) for each in inputs))
    timer = machine.time_evaluator("invoke_stateful", device, number=1, repeat=1)
    return lambda: float(timer("main").mean)


def device_on(remote: Any, target: Any) -> Any:
    """The server's device that runs code for a target."""
    return remote.device(str(target.kind.name), 0) if "gpu" in target.keys else remote.cpu(0)


def sent(remote: Any, built: Any, name: str) -> Any:
    """A compiled module on the server, which links it there."""
    with tempfile.TemporaryDirectory() as made:
        file = Path(made) / name
        built.export_library(str(file))
        remote.upload(str(file))
    return remote.load_module(name)


def _sampler(
    run: Any, device: Any, arguments: Sequence[Any], *, passing: bool
) -> Callable[[], float]:
    """A function that takes one sample, the mean of calls on the server, in seconds."""

    def timer(calls: int) -> Any:
        if not passing:
            return run.time_evaluator("main", device, number=calls, repeat=1)
        return run.time_evaluator(
            "main", device, number=1, repeat=calls, cache_flush_bytes=_PASSING_BYTES
        )

    most = _MOST_CALLS_PASSING if passing else _MOST_CALLS
    once = float(timer(1)(*arguments).mean)
    timed = timer(min(most, max(1, math.ceil(_SAMPLE_SECONDS / once))))
    return lambda: float(timed(*arguments).mean)


def _in_turns(samples: Sequence[Callable[[], float]]) -> np.ndarray:
    """Samples taken in turns: a row per round, a column per function that takes them."""
    return np.array([[sample() for sample in samples] for _ in range(_ROUNDS)])
