"""MetaSchedule on the current engine: tasks, quick measuring, and reading its database."""

import importlib
import importlib.util
import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_practice.engines import thread_count
from tvm_practice.engines.orphans import end_with_parent
from tvm_practice.tvm_export.loading import find_factory
from tvm_practice.tvm_export.tuners.history import (
    Row,
    Trial,
    json_lines,
    number_trials,
    prepare_log,
)
from tvm_practice.tvm_export.tuners.journal import Journal, append_missing
from tvm_practice.tvm_export.tuners.progress import Outcome, Progress, last_line
from tvm_practice.tvm_export.tuners.search import going
from tvm_practice.tvm_export.tuners.tile_space import ranked_choices, tile_search, tile_space
from tvm_practice.tvm_export.tuners.trials import time_candidate
from tvm_practice.tvm_export.tuners.workers import unbound_threads, without_torch

_WORKLOADS = "database_workload.json"
_RECORDS = "database_tuning_record.json"
_TIMES = "trial_times.jsonl"
_JOURNAL = "journal.jsonl"
# In the Python text of a trace: arguments that repeat the default, names of the positional ones.
_DEFAULTS = re.compile(
    r", (?:preserve_unit_iters=True|disable_predication=False|index=-1|func_name=\"main\")(?=[,)])"
)
_POSITIONAL = re.compile(
    r"(?<=[(, ])(?:name|block|loop|block_or_loop|write_buffer_index|storage_scope|factors|"
    r"ann_key|ann_val|candidates|probs)=(?!=)"
)
# What the database holds in place of times for a trial that failed.
_FAILED_SECONDS = 1e9
# A candidate that takes longer is given up.
_TRIAL_SECONDS = 10
# A server ends a session after this; a trial is given up a little later.
_SESSION_SECONDS = 60


@contextmanager
def _intrinsics_of(target: Any) -> Iterator[None]:
    """Let TVM import the tensor intrinsics that `target` can use, and no others.

    A tuning context imports all of them, most for GPUs, which parses scripts for tens of
    seconds. For a CPU target an empty package stands in for them meanwhile, with those of its
    family loaded: the default design space looks them up.
    """
    package = "tvm.s_tir.tensor_intrin"
    if str(target.kind.name) != "llvm" or package in sys.modules:
        yield
        return
    spec = importlib.util.find_spec(package)
    assert spec is not None
    sys.modules[package] = importlib.util.module_from_spec(spec)
    try:
        for family in ("arm_cpu",) if "arm_cpu" in target.keys else ("x86", "riscv_cpu"):
            importlib.import_module(f"{package}.{family}")
        yield
    finally:
        del sys.modules[package]  # a later import is the real one


def make_context(
    function: Any,
    target: Any,
    *,
    space: Any = None,
    name: str = "main",
) -> Any:
    """A tuning task with a search small enough for tens of trials.

    Args:
        function: the workload, a PrimFunc or an IRModule with one.
        target: a `tvm.target.Target`; it needs "num-cores".
        space: a function that takes a `Schedule` and makes sampling decisions on it, or
            "post-order-apply", MetaSchedule's own space, or "register-tiles", see `tile_space`;
            None: what `search.going()` says, else "post-order-apply".
        name: what the log calls it.

    Returns:
        A `meta_schedule.TuneContext`.
    """
    from tvm.s_tir import meta_schedule as ms

    search = going().search
    # Half of the default, 512. On a product of 1024 three searches of 64 trials took 42 to 44 s;
    # with 64 they took 33 to 42 and found slower schedules.
    strategy = ms.search_strategy.EvolutionarySearch(population_size=256)
    if search.policy == "replay-trace":
        strategy = ms.search_strategy.ReplayTrace(max_fail_count=100)
    if space is None:
        space = search.space or "post-order-apply"
    if space == "register-tiles":
        space = ms.space_generator.ScheduleFn(tile_space(target), postprocs=[])
        if search.policy is None:
            strategy = tile_search(target)
    elif isinstance(space, str) and ":" in space:
        space = find_factory(space)
    with _intrinsics_of(target):
        return ms.TuneContext(
            function,
            target=target,
            space_generator=space,
            search_strategy=_remembered(strategy),
            task_name=name,
            rand_state=-1 if search.seed is None else search.seed,
            # Threads share the random numbers as chance has it.
            num_threads=thread_count() if search.seed is None else 1,
        )


# (module of the task, candidate) of the round that is being built and measured, in its order.
# A process tunes one task at a time.
_candidates: list[tuple[Any, Any]] = []


def _remembered(strategy: Any) -> Any:
    """`strategy`, its candidates kept in `_candidates` while they are measured.

    Builders and runners are given modules and files, not the schedules they are of, which a
    record needs.
    """
    from tvm.ir.utils import derived_object
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.search_strategy import PySearchStrategy

    @derived_object
    class Remembered(PySearchStrategy):  # type: ignore[misc]
        def _initialize_with_tune_context(self, context: Any) -> None:
            self._module = context.mod
            strategy._initialize_with_tune_context(context)

        def pre_tuning(
            self, trials: int, a_round: int, spaces: Any, database: Any = None, model: Any = None
        ) -> None:
            # TuneContext has these defaults too, for the strategies that it knows.
            # An empty database is false.
            database = ms.database.MemoryDatabase() if database is None else database
            model = ms.cost_model.RandomModel() if model is None else model
            strategy.pre_tuning(trials, a_round, spaces, database, model)

        def post_tuning(self) -> None:
            strategy.post_tuning()

        def generate_measure_candidates(self) -> Any:
            found = strategy.generate_measure_candidates()
            _candidates[:] = [(self._module, each) for each in found or ()]
            return found

        def notify_runner_results(self, candidates: Any, results: Any) -> None:
            strategy.notify_runner_results(candidates, results)

        def clone(self) -> Any:
            return _remembered(strategy.clone())

    return Remembered()


def extract_contexts(module: Any, target: Any) -> tuple[list[Any], list[float]]:
    """The tuning tasks of a Relax module whose operators are PrimFuncs, and how often each runs.

    Equal functions share a task; functions that are already scheduled have none. The space of a
    contraction is "register-tiles", that of other functions MetaSchedule's own, unless
    `search.going()` names one for all.
    """
    from tvm.s_tir import meta_schedule as ms

    with _intrinsics_of(target):
        tasks = [
            task
            for task in ms.relax_integration.extract_tasks(module, target)
            if not any(
                "tirx.is_scheduled" in (function.attrs or {})
                for function in task.dispatched[0].functions.values()
            )
        ]
    contexts, weights = [], []
    for task in tasks:
        function = task.dispatched[0]
        wanted = going().search.space
        tiles = wanted in (None, "register-tiles") and ranked_choices(function["main"], target)
        if wanted == "register-tiles" and not tiles:
            continue
        space = "register-tiles" if tiles else None
        contexts.append(make_context(function, target, space=space, name=task.task_name))
        weights.append(float(task.weight))
    return contexts, weights


def cost_model() -> Any:
    """MetaSchedule's XGBoost model, set for tens of trials.

    It predicts at random until it has seen 100 trials, unless told to begin sooner. Its data are
    so few that more than one thread only makes them wait for each other.
    """
    from tvm.s_tir import meta_schedule as ms

    if going().search.cost_model == "random":
        return ms.cost_model.RandomModel()
    return ms.cost_model.XGBModel(num_warmup_samples=8, num_tuning_cores=1)


@dataclass(frozen=True)
class Measuring:
    """What `tune_tasks` needs to measure: `builder`, `runner`, and `callback` (progress)."""

    builder: Any
    runner: Any
    callback: Any


@contextmanager
def measuring(contexts: Sequence[Any], trials: int, work_dir: str | Path) -> Iterator[Measuring]:
    """A builder, a runner and a progress callback for tuning `contexts`.

    Inside the block MetaSchedule's tables go to `work_dir`/tuning.log and the time of each trial
    is kept beside the database. Leaving it stops the worker processes, and raises
    NothingMeasured if every trial failed.

    Args:
        contexts: the tasks that will be tuned.
        trials: how many will be measured in total, for the progress display.
        work_dir: folder of the database; created if missing.
    """
    folder = Path(work_dir)
    journal = recover(folder)
    names = [str(context.task_name) for context in contexts]
    log = _log_to(folder / "tuning.log")
    with unbound_threads(), without_torch(), log, Progress("MetaSchedule", trials) as progress:
        built: dict[str, tuple[Any, Any]] = {}
        builder, pool = _builder(built)
        try:
            recorder = _Recorder(journal, contexts, folder)
            runner, worker = _runner(recorder, built, progress)
            try:
                callback = _callback(progress, names, folder / _TIMES, journal, recorder.times)
                yield Measuring(builder, runner, callback)
            finally:
                worker.shutdown(wait=False)
        finally:
            pool.shutdown(wait=False)


def recover(folder: Path) -> Journal:
    """The journal of a database, empty: what a killed run had measured is in the database.

    Every line of the database is whole then; the folder is made if it is missing.
    """
    for name in (_WORKLOADS, _RECORDS, _TIMES):
        prepare_log(folder / name)
    journal = Journal(folder / _JOURNAL)
    entries = journal.entries()
    added = append_missing(
        folder / _RECORDS,
        [each["record"] for each in entries],
        key=lambda record: (record[0], record[1][0]),  # times are not written to the last digit
    )
    first = len(list(json_lines(folder / _RECORDS))) - len(added) if added else 0
    lines = [each["trial"] for each in entries if each["record"] in added]
    append_missing(folder / _TIMES, [{"record": first + i, **each} for i, each in enumerate(lines)])
    journal.clear()
    return journal


class _Recorder:
    """Writes a candidate's record to the journal as soon as it is measured; counts `trials`.

    The workloads are put into the database first: a record names its own by number.
    `times` holds when each candidate of the round that is being measured was.
    """

    def __init__(self, journal: Journal, contexts: Sequence[Any], folder: Path):
        from tvm.s_tir import meta_schedule as ms

        self.trials = 0
        self.times: list[float] = []
        self._journal = journal
        database = ms.database.JSONDatabase(work_dir=str(folder))
        self._workloads = [database.commit_workload(context.mod) for context in contexts]
        self._contexts = contexts
        hashes = [line[0] for line in json_lines(folder / _WORKLOADS)]
        self._numbers = [hashes.index(each.as_json()[0]) for each in self._workloads]

    def task_of(self, module: Any) -> int:
        """The position of an unscheduled module's task."""
        return next(i for i, each in enumerate(self._contexts) if each.mod.same_as(module))

    def add(self, module: Any, candidate: Any, seconds: Any, error: str | None) -> None:
        """Write one trial.

        Args:
            module: the task's, unscheduled.
            candidate: the `MeasureCandidate`.
            seconds: of each run, if it ran.
            error: why it failed, or None.
        """
        from tvm.s_tir import meta_schedule as ms

        self.trials += 1
        index = self.task_of(module)
        context = self._contexts[index]
        record = ms.database.TuningRecord(
            candidate.sch.trace,
            self._workloads[index],
            [10 * _FAILED_SECONDS] if error else [float(each) for each in seconds],
            context.target,
            candidate.args_info,
        )
        self.times.append(time.time())
        trial = {"timestamp": self.times[-1], "task": str(context.task_name), "error": error}
        self._journal.append({"record": [self._numbers[index], _as_json(record)], "trial": trial})


def _as_json(record: Any) -> Any:
    """A tuning record as the database writes it; its own `as_json` knows no layouts of weights."""
    import tvm
    from tvm.s_tir.meta_schedule import _ffi_api

    def plain(value: Any) -> Any:
        if isinstance(value, tvm.tirx.IndexMap):
            return json.dumps(json.loads(tvm.ir.save_json(value)), indent=2)
        if isinstance(value, tvm.ir.Array):
            return [plain(each) for each in value]
        if isinstance(value, tvm.ir.Map):
            return {str(key): plain(each) for key, each in value.items()}
        if isinstance(value, (tvm.tirx.IntImm, tvm.tirx.FloatImm)):
            return value.value
        return value

    return plain(_ffi_api.TuningRecordAsJSON(record))


def _runner(
    recorder: _Recorder, built: dict[str, tuple[Any, Any]], progress: Progress
) -> tuple[Any, Any]:
    """A runner of one candidate after the other, and the pool of the one process it keeps.

    MetaSchedule's own goes on to build the next task's candidates while it measures. With an RPC
    tracker it is MetaSchedule's, as many candidates at a time as there are servers.

    Args:
        recorder: is given each result.
        built: the task's module and the candidate by the file it was built to.
        progress: says when it is enough.
    """
    from tvm.s_tir import meta_schedule as ms
    from tvm.support.popen_pool import PopenPoolExecutor

    search = going().search
    if search.tracker is not None:
        from solutions.labs.tuning_farm import rpc_runner

        known = ms.runner.RPCConfig(*search.tracker, search.rpc_key)
        runner = rpc_runner(
            *search.tracker,
            search.rpc_key,
            workers=known.count_num_servers(allow_missing=True) or 1,
            session_seconds=_SESSION_SECONDS,
            trial_seconds=1.5 * _SESSION_SECONDS,  # a server that says nothing costs a trial
        )
        return runner, runner.pool
    pool = PopenPoolExecutor(
        1, timeout=_TRIAL_SECONDS, initializer=end_with_parent, stderr=subprocess.DEVNULL
    )
    pool.submit(abs, 0)  # starts the process

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
            except TimeoutError:
                error = f"running took over {_TRIAL_SECONDS} s"
            except Exception as failure:  # whatever a candidate raises costs that one
                error = last_line(str(failure))
            recorder.add(module, candidate, seconds, error)
            yield ms.runner.RunnerResult(seconds, error)

    return runner_of(one_by_one), pool


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


def build_candidate(candidate: tuple[Any, Any, bool]) -> str:
    """Compile a module for a target, here or remote, in a worker; the file it was written to."""
    import tempfile

    import tvm
    from tvm.support.tar import tar

    from tvm_practice.tvm_export.rules.cpu import schedule_candidate

    module, target, remote = candidate
    library = tvm.tirx.build(schedule_candidate(module["main"], target), target=target)
    artifact = f"{tempfile.mkdtemp()}/candidate." + ("tar" if remote else "so")
    if remote:  # linked where it runs
        library.export_library(artifact, fcompile=tar)
    else:
        library.export_library(artifact)
    return artifact


def _builder(built: dict[str, tuple[Any, Any]]) -> tuple[Any, Any]:
    """A builder, and the pool of processes it keeps.

    Args:
        built: receives the task's module and the candidate by the file it was built to.

    MetaSchedule's own starts new processes for every round, each of which takes seconds to
    import TVM, and its default build function imports the tensor intrinsics as well.
    """
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder
    from tvm.support.popen_pool import PopenPoolExecutor, StatusKind

    timeout = 20
    # Processes that build leak a little memory.
    pool = PopenPoolExecutor(
        thread_count(), timeout=timeout, initializer=end_with_parent, maximum_process_uses=200
    )
    for _ in range(thread_count()):
        pool.submit(abs, 0)  # starts a process, while the runner's starts too

    @derived_object
    class PooledBuilder(PyBuilder):  # type: ignore[misc]
        def build(self, build_inputs: Sequence[Any]) -> list[Any]:
            remote = going().search.tracker is not None
            inputs = [(each.mod, each.target, remote) for each in build_inputs]
            results = []
            answers = pool.map_with_error_catching(build_candidate, inputs)
            for candidate, answer in zip(_candidates, answers, strict=True):
                if answer.status == StatusKind.COMPLETE:
                    results.append(BuilderResult(answer.value, None))
                    built[answer.value] = candidate
                elif answer.status == StatusKind.TIMEOUT:
                    results.append(BuilderResult(None, f"building took over {timeout} s"))
                else:
                    results.append(BuilderResult(None, f"it does not build: {answer.value}"))
            return results

    return PooledBuilder(), pool


def _callback(
    progress: Progress, names: list[str], times: Path, journal: Journal, measured: list[float]
) -> Any:
    """A measure callback that feeds `progress` and appends each trial's time to `times`.

    The database has no times of day and no error texts; a line here names the record it is of.
    `measured` holds the times of those candidates of the round that were built, and is emptied.
    """
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.measure_callback import PyMeasureCallback

    @derived_object
    class Watch(PyMeasureCallback):  # type: ignore[misc]
        def apply(
            self,
            task_scheduler: Any,
            task_id: int,
            measure_candidates: Any,
            builder_results: Any,
            runner_results: Any,
        ) -> None:
            first = len(task_scheduler.database_) - len(runner_results)
            now, flop = time.time(), float(task_scheduler.tasks_[task_id].flop)
            outcomes, lines = [], []
            for index, (built, ran) in enumerate(zip(builder_results, runner_results, strict=True)):
                error = built.error_msg or ran.error_msg
                error = last_line(str(error)) if error else None
                seconds = None if error else _mean(ran.run_secs)
                outcomes.append(Outcome(seconds, flop, error, names[task_id]))
                line = {
                    "record": first + index,
                    "timestamp": measured.pop(0) if measured and not built.error_msg else now,
                    "task": names[task_id],
                    "error": error,
                }
                lines.append(json.dumps(line) + "\n")
            with times.open("a") as file:
                file.write("".join(lines))
            measured.clear()
            journal.clear()
            progress.add(outcomes)

    return Watch()


def _mean(seconds: Sequence[Any]) -> float:
    return sum(float(each) for each in seconds) / len(seconds)


@contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """Send what MetaSchedule logs (a table after every round) to a file instead of the screen."""
    logger = logging.getLogger("tvm.s_tir.meta_schedule")
    before = logger.handlers, logger.level, logger.propagate
    handler = logging.FileHandler(path)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
    logger.handlers, logger.propagate = [handler], False
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.handlers, logger.propagate = before[0], before[2]
        logger.setLevel(before[1])
        handler.close()


def open_database(work_dir: str | Path) -> Any:
    """The database that tuning left in `work_dir`."""
    from tvm.s_tir import meta_schedule as ms

    return ms.database.JSONDatabase(work_dir=str(work_dir), allow_missing=False)


def has_records(work_dir: str | Path) -> bool:
    """Whether a tuner has measured something into `work_dir`."""
    return (Path(work_dir) / _RECORDS).exists()


def history(work_dir: str | Path, *, started: float | None = None) -> list[Trial]:
    """The trials in `work_dir`, oldest first; no TVM is needed to read them.

    Args:
        work_dir: the folder given to the tuner.
        started: when tuning began, `time.time()`; None counts from the first result.
    """
    folder = Path(work_dir)
    times = {}
    if (folder / _TIMES).exists():
        for line in json_lines(folder / _TIMES):
            times[line["record"]] = line
    rows = []
    for index, (workload, (_, run_seconds, *_rest)) in enumerate(json_lines(folder / _RECORDS)):
        known = times.get(index, {})
        failed = not run_seconds or min(run_seconds) > _FAILED_SECONDS
        error = (known.get("error") or "it failed to build or to run") if failed else None
        seconds = None if failed else _mean(run_seconds)
        task = known.get("task") or f"workload {workload}"
        rows.append(Row(seconds, error, known.get("timestamp"), task))
    return number_trials(rows, started)


def best_code(database: Any, module: Any, target: Any) -> str | None:
    """The best schedule of a workload as Python calls on `sch`; None if it has no record.

    Args:
        database: of the tuner.
        module: an IRModule with the workload as its "main".
        target: what it was tuned for.
    """
    record = database.query_tuning_record(module, target, "main")
    if record is None:
        return None
    code = str(record.trace.simplified(remove_postproc=True)).partition("\n")[2]  # no import
    for noise in (_DEFAULTS, _POSITIONAL):
        code = noise.sub("", code)
    return code.strip()
