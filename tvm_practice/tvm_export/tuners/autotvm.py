"""AutoTVM on the classic engine: tasks from templates, measuring that works, reading its log."""

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_practice.engines import thread_count
from tvm_practice.tvm_export.tuners.budget import plan_size
from tvm_practice.tvm_export.tuners.classic import (
    ERRORS,
    RPC_SECONDS,
    TIMING,
    builders,
    limits,
    row,
)
from tvm_practice.tvm_export.tuners.classic import recover as recover
from tvm_practice.tvm_export.tuners.history import (
    Trial,
    json_lines,
    mean_seconds,
    number_trials,
)
from tvm_practice.tvm_export.tuners.journal import Journal
from tvm_practice.tvm_export.tuners.progress import Outcome, Progress
from tvm_practice.tvm_export.tuners.search import going
from tvm_practice.tvm_export.tuners.workers import patient, unbound_threads
from tvm_practice.tvm_export.writing import naming

_BUILD_SECONDS = 30

Template = Callable[..., tuple[Any, list[Any]]]


def make_task(
    template: Template, arguments: Sequence[int], target: Any, *, name: str = "tvm_practice.matmul"
) -> Any:
    """A tuning task whose design space is what `template` declares.

    Args:
        template: a function of whole numbers that reads its knobs from `autotvm.get_config()` and
            returns (schedule, tensors). It replaces what was registered under `name` before.
        arguments: what the template is called with.
        target: a `tvm.target.Target`.
        name: of the template in the log.

    Returns:
        An `autotvm.task.Task`.
    """
    from tvm import autotvm

    autotvm.task.task.TASK_TABLE.pop(name, None)
    autotvm.template(name, template)
    return autotvm.task.create(name, args=tuple(arguments), target=target)


@dataclass(frozen=True)
class Measuring:
    """What `Tuner.tune` needs to measure: `option`, and `callback` (progress)."""

    option: Any
    callback: Any


@contextmanager
def measuring(task: Any, trials: int, log: str | Path) -> Iterator[Measuring]:
    """A measure option and a progress callback for tuning `task`.

    Leaving the block raises NothingMeasured if every trial failed.

    Args:
        task: what will be tuned.
        trials: how many will be measured, for the progress display.
        log: where records will be appended; its folder is created if missing.
    """
    from tvm import autotvm

    journal = recover(log)
    running, display = _runner(journal, task.target), Progress("AutoTVM", trials)
    with unbound_threads(), running as runner, display as progress:
        # More than one process at a time needs do_fork=True.
        limit = patient(_BUILD_SECONDS)
        builder = autotvm.LocalBuilder(limit, n_parallel=thread_count(), do_fork=True)
        builder.executor = builders(task.target, timeout=limit)
        if (tracker := going().search.tracker) is not None:
            runner = _runner_on_farm(journal, going().search.rpc_key, *tracker)

        def callback(_: Any, inputs: Sequence[Any], results: Sequence[Any]) -> None:
            journal.settle()
            progress.add(
                _outcome(measured, result) for measured, result in zip(inputs, results, strict=True)
            )

        with naming(Path(log)):  # AutoTVM's own callback writes it
            yield Measuring(autotvm.measure_option(builder=builder, runner=runner), callback)


def tune(task: Any, *, trials: int, log: str) -> None:
    """Phase 5's step `tune_autotvm` with the policy of `search.going()`."""
    from tvm import autotvm

    policies = {
        "ga": lambda: autotvm.tuner.GATuner(task, pop_size=plan_size(trials)),
        "random": lambda: autotvm.tuner.RandomTuner(task),
        "grid": lambda: autotvm.tuner.GridSearchTuner(task),
        "xgb": lambda: autotvm.tuner.XGBTuner(
            task, plan_size=plan_size(trials), feature_type="knob", loss_type="reg", num_threads=1
        ),
    }
    with measuring(task, trials, log) as measure:
        tuner = policies[going().search.policy or "xgb"]()
        if isinstance(tuner, autotvm.tuner.XGBTuner):  # the others cannot be told of trials
            learn_from(tuner, log)
        tuner.tune(
            n_trial=trials,
            measure_option=measure.option,
            callbacks=[autotvm.callback.log_to_file(log), measure.callback],
        )


def _runner_on_farm(journal: Journal, key: str, host: str, port: int) -> Any:
    """AutoTVM's own runner on servers, whose results are written down as soon as they are there."""
    from tvm import autotvm
    from tvm.autotvm.record import encode

    class Journalled(autotvm.RPCRunner):  # type: ignore[misc]
        def run(self, measure_inputs: Sequence[Any], build_results: Sequence[Any]) -> list[Any]:
            results: list[Any] = []
            for first in range(0, len(measure_inputs), self.n_parallel):
                part = slice(first, first + self.n_parallel)
                results += super().run(measure_inputs[part], build_results[part])
                for each in zip(measure_inputs[part], results[part], strict=True):
                    journal.append(json.loads(encode(*each)))
            return results

    return Journalled(key, host, port, timeout=RPC_SECONDS, **TIMING)


@contextmanager
def _runner(journal: Journal, target: Any) -> Iterator[Any]:
    """A runner that measures in one worker process.

    AutoTVM's own starts an RPC tracker and a server on local ports for every task, which takes
    seconds, and leaves both behind when its process is killed.
    """
    from tvm.autotvm.measure.measure import MeasureErrorNo, MeasureResult, Runner
    from tvm.autotvm.record import encode
    from tvm.contrib.popen_pool import PopenWorker

    timeout = patient(10)
    kind = str(target.kind.name)
    worker = PopenWorker()

    # Nested, so that it is sent to the process whole: it need not import this project.
    def time_library(path: str, kind: str, arguments: Sequence[tuple[Any, str]]) -> list[float]:
        import tvm

        device = tvm.device(kind, 0)
        if not device.exist:
            raise RuntimeError(f"no {kind} device here")
        library = tvm.runtime.load_module(path)
        fill = tvm.get_global_func("tvm.contrib.random.random_fill")
        tensors = [tvm.nd.empty(shape, dtype, device) for shape, dtype in arguments]
        for tensor in tensors:
            fill(tensor)
        timer = library.time_evaluator(library.entry_name, device, **TIMING)
        return [float(seconds) for seconds in timer(*tensors).results]

    def measure(built: Any) -> Any:
        if isinstance(built, MeasureResult):  # it did not build
            return built
        started = time.time()
        error = MeasureErrorNo.NO_ERROR
        try:
            worker.send(time_library, (built.filename, kind, built.arg_info), timeout=timeout)
            costs = tuple(worker.recv())
        except TimeoutError as late:
            costs, error = (str(late), late), MeasureErrorNo.RUN_TIMEOUT
        except Exception as failure:  # the child's, whatever it is
            costs, error = (str(failure), failure), MeasureErrorNo.RUNTIME_DEVICE
        ended = time.time()
        return MeasureResult(costs, error, built.time_cost + ended - started, ended)

    class LocalRunner(Runner):  # type: ignore[misc]
        def get_build_kwargs(self) -> dict[str, Any]:
            return {"checks": {"gpu": limits(target)}}

        def run(self, measure_inputs: Sequence[Any], build_results: Sequence[Any]) -> list[Any]:
            results = []
            for measured, built in zip(measure_inputs, build_results, strict=True):
                results.append(measure(built))
                journal.append(json.loads(encode(measured, results[-1])))
            return results

    try:
        yield LocalRunner(timeout, n_parallel=1)
    finally:
        worker.kill()


def _outcome(measured: Any, result: Any) -> Outcome:
    flop = float(measured.task.flop)
    if result.error_no == 0:
        return Outcome(mean_seconds(result.costs), flop)
    # In place of times a failed trial has its traceback and exception.
    text = str(result.costs[-1]).strip() or ERRORS[int(result.error_no)]
    return Outcome(None, flop, text)


def learn_from(tuner: Any, log: str | Path) -> None:
    """Tell `tuner` of the trials of its task that `log` holds, so that it repeats none."""
    from tvm import autotvm

    if not Path(log).exists():
        return
    task = tuner.task
    known = [
        (autotvm.MeasureInput(task.target, task, measured.config), result)
        for measured, result in autotvm.record.load_from_file(str(log))
        if measured.task.workload == task.workload and str(measured.target) == str(task.target)
    ]
    if known:
        tuner.update(*zip(*known, strict=True))


def count_trials(tasks: Sequence[Any], log: str | Path) -> list[int]:
    """How many records of each task `log` holds."""
    from tvm import autotvm

    if not Path(log).exists():
        return [0 for _ in tasks]
    held = Counter(
        measured.task.workload for measured, _ in autotvm.record.load_from_file(str(log))
    )
    return [held[task.workload] for task in tasks]


def history(log: str | Path, *, started: float | None = None) -> list[Trial]:
    """The trials in `log`, oldest first; no TVM is needed to read them.

    Args:
        log: the file given to the tuner.
        started: when tuning began, `time.time()`; None counts from the first result.
    """
    rows = []
    for record in json_lines(Path(log)):
        _, name, arguments, _ = record["input"]
        task = f"{name}({', '.join(str(each) for each in arguments)})"
        rows.append(row(record["result"], task))
    return number_trials(rows, started)


def best_code(task: Any, log: str | Path) -> str | None:
    """The best configuration of `task` in `log` as Python; None if there is none."""
    from tvm import autotvm

    with task.target:
        config = autotvm.apply_history_best(str(log)).query(task.target, task.workload)
    if config is None or config.is_fallback:
        return None
    knobs = config.to_json_dict()["entity"]
    return "\n".join(f"cfg[{name!r}] = {value!r}" for name, _, value in knobs)
