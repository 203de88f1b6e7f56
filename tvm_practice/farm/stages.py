"""What the stages of a trial on a farm take, each measured by itself, on current TVM."""

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from tvm_practice.farm.local import LocalFarm

_SESSION_SECONDS = 60
_BUILD_SECONDS = 60
_UPLOAD_SAMPLES = 5


class Stages(NamedTuple):
    """The stages of a trial. Times are in seconds.

    Attributes:
        search: time per round to choose its candidates and to learn from their times. Nothing else
            runs meanwhile.
        batch: trials per round.
        build: time to compile one candidate on one core.
        builders: candidates compiled at a time.
        request: time for which one trial keeps the tracker busy; it serves one at a time.
        upload: time for which one candidate keeps the tuner's network busy; one at a time.
        run: time for which one trial keeps a worker busy, from the request until it is free again.
    """

    search: float
    batch: int
    build: float
    builders: int
    request: float
    upload: float
    run: float


def search_seconds(
    size: int, trials: int, per_round: int, target: Any
) -> tuple[float, list[tuple[Any, Any]]]:
    """Seconds that MetaSchedule searches in a round of a matmul, and what it would have built.

    A search of which nothing is built and all times are made up: what is left is the search.

    Args:
        size: rows and columns of A, B and C.
        trials: candidates to choose.
        per_round: of them.
        target: a `tvm.target.Target`.

    Returns:
        The seconds, and (module, arguments' information) of each candidate.
    """
    import numpy as np
    from tvm import te
    from tvm.ir.utils import derived_object
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
    from tvm.s_tir.meta_schedule.runner import RunnerResult

    from tvm_practice.farm.tuning import matmul
    from tvm_practice.tvm_export.tuners import metaschedule

    rng = np.random.default_rng()
    modules: list[Any] = []
    arguments: list[Any] = []

    @derived_object
    class NoBuilder(PyBuilder):  # type: ignore[misc]
        def build(self, build_inputs: Sequence[Any]) -> list[Any]:
            modules.extend(each.mod for each in build_inputs)
            return [BuilderResult("none", None) for _ in build_inputs]

    def make_up(inputs: Sequence[Any]) -> list[Any]:
        arguments.extend(each.args_info for each in inputs)
        return [RunnerResult([float(each)], None) for each in rng.lognormal(-4, 1, len(inputs))]

    context = metaschedule.make_context(te.create_prim_func(matmul(size, size, size)), target)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        ms.tune.tune_tasks(
            tasks=[context],
            task_weights=[1.0],
            work_dir=folder,
            max_trials_global=trials,
            num_trials_per_iter=per_round,
            builder=NoBuilder(),
            runner=metaschedule.runner_of(make_up),
            cost_model=metaschedule.cost_model(),
            measure_callbacks=[
                ms.measure_callback.AddToDatabase(),
                ms.measure_callback.UpdateCostModel(),
            ],
        )
        seconds = time.perf_counter() - started
    rounds = -(-trials // per_round)
    return seconds / rounds, list(zip(modules, arguments, strict=True))


def build_seconds(
    candidates: Sequence[tuple[Any, Any]], target: Any, cores: int, folder: str
) -> tuple[float, list[Any]]:
    """Seconds that a core takes to build a candidate while all cores build, and what was built.

    Args:
        candidates: as `search_seconds` returns them.
        target: a `tvm.target.Target`.
        cores: candidates to build at a time.
        folder: for the files.

    Returns:
        The seconds, and a `RunnerInput` of each candidate that builds. Raises RuntimeError if
        none does.
    """
    from tvm.s_tir.meta_schedule.runner import RunnerInput
    from tvm.support.popen_pool import PopenPoolExecutor, StatusKind

    from tvm_practice.engines.orphans import end_with_parent
    from tvm_practice.tvm_export.tuners import metaschedule
    from tvm_practice.tvm_export.tuners.workers import variable

    inputs = [(module, target, False) for module, _ in candidates]
    pool = PopenPoolExecutor(cores, timeout=_BUILD_SECONDS, initializer=end_with_parent)
    try:
        with variable("TMPDIR", folder):
            # A worker starts with its first, which also imports what it builds with.
            first = [pool.submit(metaschedule.build_candidate, inputs[0]) for _ in range(cores)]
            for each in first:
                each.result()
        started = time.perf_counter()
        answers = list(pool.map_with_error_catching(metaschedule.build_candidate, inputs))
        seconds = time.perf_counter() - started
    finally:
        pool.shutdown(wait=False)
    built = [
        RunnerInput(answer.value, "cpu", arguments)
        for answer, (_, arguments) in zip(answers, candidates, strict=True)
        if answer.status == StatusKind.COMPLETE
    ]
    if not built:
        raise RuntimeError(f"no candidate builds: {answers[0].value}")
    return seconds * cores / len(candidates), built


def run_parts(farm: "LocalFarm", trials: Sequence[Any]) -> dict[str, float]:
    """Median seconds of a trial's parts on its worker, one call after the other.

    Args:
        farm: with a free server.
        trials: `RunnerInput`s.

    Returns:
        By name: "session" (asked for, and open), "upload", "load", "arguments" and "timing".
    """
    from tvm.s_tir.meta_schedule.runner.utils import alloc_argument_common

    samples: dict[str, list[float]] = {}

    def timed(name: str, function: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        value = function()
        samples.setdefault(name, []).append(time.perf_counter() - started)
        return value

    for trial in trials:
        session = timed("session", lambda: _session(farm))
        _measure(session, trial, timed, alloc_argument_common)
        del session  # else the worker would be waited for while it is held here
    return {name: statistics.median(each) for name, each in samples.items()}


def _session(farm: "LocalFarm") -> Any:
    """A session of a free server that has answered."""
    from tvm import rpc

    tracker = rpc.connect_tracker(farm.host, farm.port)
    session = tracker.request(farm.key, session_timeout=_SESSION_SECONDS)
    session.get_function("tvm.rpc.server.upload")
    return session


def _measure(
    session: Any,
    trial: Any,
    timed: Callable[[str, Callable[[], Any]], Any],
    allocate: Callable[..., Any],
) -> None:
    """Do with a session what MetaSchedule's runner does, each part `timed`."""
    name = "candidate.so"
    timed("upload", lambda: session.upload(str(trial.artifact_path), name))
    module = timed("load", lambda: session.load_module(name))
    device = session.cpu()
    fill = session.get_function("tvm.contrib.random.random_fill_for_measure")
    infos = [each.as_json() for each in trial.args_info]
    [arguments] = timed("arguments", lambda: allocate(fill, device, infos, 1))
    timer = module.time_evaluator("main", device, number=1, repeat=3, min_repeat_ms=20)
    timed("timing", lambda: timer(*arguments))


def upload_seconds(farm: "LocalFarm", sizes: Sequence[int]) -> dict[int, float]:
    """Median seconds to upload a file to a worker, by its size in bytes."""
    session = _session(farm)
    taken: dict[int, float] = {}
    for size in sizes:
        blob = bytearray(size)
        samples = []
        for _ in range(_UPLOAD_SAMPLES):
            started = time.perf_counter()
            session.upload(blob, "blob")
            samples.append(time.perf_counter() - started)
        taken[size] = statistics.median(samples)
    return taken
