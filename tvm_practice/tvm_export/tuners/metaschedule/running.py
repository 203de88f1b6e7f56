"""Candidates run: one after the other here, or on a farm's servers."""

import subprocess
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvm_practice import engines
from tvm_practice.tvm_export.peak import peak_gflops
from tvm_practice.tvm_export.tuners.metaschedule.recording import Recorder
from tvm_practice.tvm_export.tuners.progress import Progress, last_line
from tvm_practice.tvm_export.tuners.rpc import rpc_runner
from tvm_practice.tvm_export.tuners.search import going
from tvm_practice.tvm_export.tuners.speed_limit import SpeedLimit
from tvm_practice.tvm_export.tuners.trials import time_candidate
from tvm_practice.tvm_export.tuners.workers import patient, processes

# A candidate that takes longer is given up, on an idle machine.
_TRIAL_SECONDS = 10
# A server ends a session after this; a trial is given up a little later.
_SESSION_SECONDS = 60


@contextmanager
def open_runner(
    recorder: Recorder, built: dict[str, tuple[Any, Any]], progress: Progress
) -> Iterator[Any]:
    """A runner whose processes are kept until the block ends.

    With an RPC tracker it is MetaSchedule's own, which runs as many candidates at a time as there
    are servers.

    Args:
        recorder: is given each result.
        built: the task's module and the candidate by the file it was built to.
        progress: says when it is enough.
    """
    search = going().search
    if search.tracker is None:
        most = patient(_TRIAL_SECONDS)
        with processes(1, timeout=most, stderr=subprocess.DEVNULL) as pool:
            yield _runner_here(pool, most, recorder, built, progress)
        return
    runner = _runner_on_farm(*search.tracker, search.rpc_key)
    try:
        yield _recorded(runner, recorder, built)
    finally:
        runner.pool.shutdown(wait=False)


def _runner_on_farm(host: str, port: int, key: str) -> Any:
    from tvm.s_tir import meta_schedule as ms

    known = ms.runner.RPCConfig(host, port, key)
    return rpc_runner(
        host,
        port,
        key,
        workers=known.count_num_servers(allow_missing=True) or 1,
        session_seconds=_SESSION_SECONDS,
        trial_seconds=1.5 * _SESSION_SECONDS,  # a server that says nothing costs a trial
    )


def _recorded(runner: Any, recorder: Recorder, built: dict[str, tuple[Any, Any]]) -> Any:
    """`runner`, whose results are written down as soon as they are asked for.

    MetaSchedule asks whether they are there each time that it is done with another task.
    """
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.runner import PyRunner
    from tvm.s_tir.meta_schedule.runner.runner import PyRunnerFuture

    @derived_object
    class Recorded(PyRunnerFuture):  # type: ignore[misc]
        def __init__(self, future: Any, module: Any, candidate: Any):
            super().__init__()
            self._future, self._of = future, (module, candidate)
            self._result: Any = None

        def done(self) -> bool:
            if not self._future.done():
                return False
            self.result()
            return True

        def result(self) -> Any:
            if self._result is None:
                self._result = found = self._future.result()
                error = last_line(str(found.error_msg)) if found.error_msg else None
                recorder.add(*self._of, found.run_secs, error)
                recorder.times.clear()  # several tasks are measured at a time: no round is one's
            return self._result

    @derived_object
    class Recording(PyRunner):  # type: ignore[misc]
        def run(self, runner_inputs: Sequence[Any]) -> list[Any]:
            of = [built.pop(str(each.artifact_path)) for each in runner_inputs]
            futures = runner.run(runner_inputs)
            return [Recorded(each, *its) for each, its in zip(futures, of, strict=True)]

    return Recording()


def _runner_here(
    pool: Any,
    most_seconds: float,
    recorder: Recorder,
    built: dict[str, tuple[Any, Any]],
    progress: Progress,
) -> Any:
    """A runner of one candidate after the other in the process of `pool`, see `open_runner`.

    MetaSchedule's own goes on to build the next task's candidates while it measures.

    Args:
        most_seconds: after which the pool gives a trial up, by the clock.
    """
    from tvm.s_tir import meta_schedule as ms

    target = str(engines.host_target())
    # Beside other programs all threads seldom run at once: a peak needs one such millisecond.
    limit = SpeedLimit(lambda: float(pool.submit(peak_gflops, target, repeats=60).result()))

    def one_by_one(inputs: Sequence[Any]) -> Iterator[Any]:
        for each in inputs:
            progress.measure_more(recorder.trials)
            artifact = str(each.artifact_path)
            module, candidate = built.pop(artifact)
            infos = [info.as_json() for info in each.args_info]
            trial = pool.submit(
                time_candidate, recorder.task_of(module), artifact, str(each.device_type), infos
            )
            seconds = error = None
            try:
                seconds = trial.result()
                if str(each.device_type) == "cpu":
                    error = limit.why_not(recorder.gflops(module, seconds))
            except TimeoutError:
                error = f"running took over {most_seconds:.0f} s"
            except Exception as failure:  # whatever a candidate raises costs that one
                error = last_line(str(failure))
            if error is not None:
                seconds = None
            recorder.add(module, candidate, seconds, error)
            yield ms.runner.RunnerResult(seconds, error)

    return runner_of(one_by_one)


def runner_of(measure: Callable[[Sequence[Any]], Iterable[Any]]) -> Any:
    """A `meta_schedule` runner that waits for its results.

    Args:
        measure: takes a list of `RunnerInput`, returns as many `RunnerResult`, in their order.
    """
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.runner import PyRunner
    from tvm.s_tir.meta_schedule.runner.runner import PyRunnerFuture

    @derived_object
    class Measured(PyRunnerFuture):  # type: ignore[misc]
        def __init__(self, result: Any):
            super().__init__()
            self._result = result

        def done(self) -> bool:
            return True

        def result(self) -> Any:
            return self._result

    @derived_object
    class Waiting(PyRunner):  # type: ignore[misc]
        def run(self, runner_inputs: Sequence[Any]) -> list[Any]:
            return [Measured(each) for each in measure(runner_inputs)]

    return Waiting()
