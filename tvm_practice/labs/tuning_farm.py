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

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.phase import phase_command
from tvm_practice.farm_stages import Stages

if TYPE_CHECKING:
    import numpy as np

    from tvm_practice.course import Steps
    from tvm_practice.local_farm import LocalFarm

_ATTEMPTS = 3
_UPLOADS = (2**14, 2**18, 2**22, 2**24)  # bytes
_GIGABIT = 117  # MB/s of payload that a gigabit network carries
_COUNTS = (1, 2, 4, 10, 30, 100)  # of workers, to predict for


# Taken for the model as long as `rpc_runner` is to do; not measured.
_EXAMPLE = Stages(
    search=1.0, batch=16, build=0.5, builders=2, request=0.0005, upload=0.002, run=0.5
)


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

    from tvm_practice.local_farm import SilentServer

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


def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """A farm on loopback: measured stage by stage, modelled, tuned on, and with a worker lost."""
    import tempfile

    from tvm_practice import engines
    from tvm_practice.local_farm import LocalFarm
    from tvm_practice.measure import environment

    cores = engines.thread_count()
    figures: dict[str, Any] = {"environment": environment(), "cores": cores}
    with tempfile.TemporaryDirectory() as folder, LocalFarm(max(2, cores)) as farm:
        lab = _Lab(steps, farm, cores, size=256 if quick else 512, trials=16 if quick else 64)
        figures["tracker_seconds"] = lab.show_tracker(200 if quick else 1000)
        lab.show_one_trial()
        figures["stages"] = lab.stages(folder)._asdict()
        figures["parts"], figures["uploads"] = lab.parts, lab.uploads
        figures["predicted"] = lab.show_model()
        figures["seen"] = lab.tune(repeats=1 if quick else 2)
        figures["lost"] = lab.lose_workers()
    return figures


class _Lab:
    """The farm, and the learner's functions on it.

    Attributes:
        parts: seconds of what a trial does on its worker, by name.
        uploads: seconds of an upload, by bytes.
    """

    def __init__(self, steps: "Steps", farm: "LocalFarm", cores: int, *, size: int, trials: int):
        from tvm_practice.tvm_export.tuners import trials_per_round

        self.steps = steps
        self.farm = farm
        self.cores = cores
        self.size = size
        self.trials = trials
        self.batch = trials_per_round(trials)
        self.parts: dict[str, float] = {}
        self.uploads: dict[int, float] = {}
        self._stages = _EXAMPLE
        self._artifacts: list[Any] = []  # RunnerInputs
        self._request_seconds = _EXAMPLE.request

    def _step(self, name: str, *arguments: Any, read: Callable[[Any], Any], **options: Any) -> Any:
        """Call a function and `read` what it returns; None if either fails, which is said once."""
        if name in self.steps.failed:
            return None
        value = self.steps.attempt(name, *arguments, **options)
        if value is None:
            return None
        try:
            return read(value)
        except (AttributeError, TypeError, ValueError):
            self.steps.failed[name] = f"returned {value!r}"[:60]
            _say(f"fails  {name}: {self.steps.failed[name]}")
            return None

    def show_tracker(self, requests: int) -> float:
        """Print what the tracker knows, and how long it is busy with a request."""
        print(
            f"A tracker on {self.farm.host}:{self.farm.port}, and what it knows as "
            f"{self.farm.key!r}:\n  {', '.join(sorted(self.farm.servers))}"
        )
        self._request_seconds = measure_tracker(self.farm, requests)
        _say(
            f"Worked example: a trial keeps the tracker busy for "
            f"{self._request_seconds * 1e3:.2f} ms. One tracker serves at most "
            f"{1 / self._request_seconds:.0f} trials a second."
        )
        return self._request_seconds

    def show_one_trial(self) -> None:
        """One session: a product uploaded, verified and timed on a worker."""
        import tempfile

        import numpy as np
        from tvm import rpc

        where = (self.farm.host, self.farm.port)
        session = self.steps.attempt(
            "request_worker", *where, self.farm.key, wait_seconds=10, session_seconds=60
        )
        if session is None:
            session = rpc.connect_tracker(*where).request(self.farm.key)
        with tempfile.TemporaryDirectory() as folder:
            library = _packed(self.size, Path(folder))
            a, b = np.random.default_rng().random((2, self.size, self.size), dtype="float32")
            measured = self._step(
                "measure_remotely",
                session,
                str(library),
                [a, b],
                a.shape,
                number=3,
                repeats=5,
                read=lambda pair: (np.reshape(pair[0], a.shape), np.array(pair[1], dtype=float)),
            )
        if measured is None:
            return
        output, seconds = measured
        error = float(np.abs(output - a @ b).max())
        _say(
            f"\nPhase 2's packed product at {self.size}, sent to a worker of one thread: "
            f"{statistics.median(seconds) * 1e3:.2f} ms there, largest error {error:.1e}."
        )

    # Stages, each measured by itself.

    def stages(self, folder: str) -> Stages:
        """What the stages take here; the example's as long as there is no runner.

        Candidates are kept in `folder`.
        """
        from tvm_practice.farm_stages import (
            build_seconds,
            run_parts,
            search_seconds,
            upload_seconds,
        )

        target = _one_thread()
        with self._runner(1) as runner:
            if runner is None:
                return self._stages
            search, found = search_seconds(self.size, self.trials, self.batch, target)
            some = found[:: max(1, len(found) // self.batch)][: self.batch]
            build, self._artifacts = build_seconds(some, target, self.cores, folder)
            self.parts = run_parts(self.farm, self._artifacts[:8])
            self.uploads = upload_seconds(self.farm, _UPLOADS)
            run = _seconds_of(lambda: _results(runner.run(self._artifacts)))
        self._stages = Stages(
            search=search,
            batch=self.batch,
            build=build,
            builders=self.cores,
            request=self._request_seconds,
            upload=self.parts["upload"],
            run=run / len(self._artifacts),
        )
        self._show_stages()
        return self._stages

    @contextmanager
    def _runner(self, workers: int, *, trial_seconds: float = 60) -> Iterator[Any]:
        """The learner's runner with its processes started; None while it is to do."""
        from tvm_practice.tvm_export.tuners.workers import unbound_threads, without_torch

        with unbound_threads(), without_torch():
            runner = self._step(
                "rpc_runner",
                self.farm.host,
                self.farm.port,
                self.farm.key,
                workers=workers,
                session_seconds=trial_seconds / 2,
                trial_seconds=trial_seconds,
                read=lambda runner: runner.pool and runner,
            )
            if runner is None:
                yield None
                return
            try:
                for each in [runner.pool.submit(time.sleep, 0.1) for _ in range(workers)]:
                    each.result()
                yield runner
            finally:
                runner.pool.shutdown(wait=False)

    def _show_stages(self) -> None:
        stages, parts = self._stages, self.parts
        size = statistics.median(
            Path(str(each.artifact_path)).stat().st_size for each in self._artifacts
        )
        rows = [
            ("search, a round", stages.search, "tuner", f"{stages.batch} candidates chosen"),
            ("build, one", stages.build, "tuner", f"{stages.builders} at a time"),
            ("tracker, one request", stages.request, "tracker", "one at a time"),
            ("upload, one", stages.upload, "network", f"{size / 1024:.0f} KiB"),
            ("run, one trial", stages.run, "worker", "with what follows:"),
            ("  session", parts["session"], "worker", "asked for, a process forked"),
            ("  load", parts["load"], "worker", ""),
            ("  arguments", parts["arguments"], "worker", "allocated and filled"),
            ("  timing", parts["timing"], "worker", "3 samples of 20 ms or a call"),
        ]
        _say(f"\nA trial of a {self.size}³ product, stage by stage, each measured alone:")
        _table(
            ("stage", "ms", "keeps busy", ""),
            [(name, _milliseconds(taken), who, note) for name, taken, who, note in rows],
        )
        by_size = ", ".join(
            f"{count // 1024} KiB {_milliseconds(taken)} ms"
            for count, taken in self.uploads.items()
        )
        rate = _UPLOADS[-1] / self.uploads[_UPLOADS[-1]] / 1e6
        limit = "RPC itself is" if rate < _GIGABIT else "such a network would be"
        _say(
            f"Uploads by size: {by_size}, that is {rate:.0f} MB/s on loopback. A gigabit network "
            f"carries {_GIGABIT} MB/s: {limit} the limit."
        )

    # The model.

    def show_model(self) -> list[dict[str, Any]]:
        """Print what the model says of farms of 1 to 100 workers."""
        counts = sorted({*_COUNTS, self.cores})
        rounds = [self._throughput(count) for count in counts]
        bounds = self._step(
            "predict",
            self._stages,
            counts,
            read=lambda rows: [(int(count), float(rate), str(name)) for count, rate, name in rows],
        )
        if bounds is None or None in rounds:
            return []
        rows = [
            {"workers": count, "rounds": each, "overlapped": rate, "bound": bound}
            for each, (count, rate, bound) in zip(rounds, bounds, strict=True)
        ]
        whose = "made up, for want of a runner" if self._stages is _EXAMPLE else "measured here"
        _say(f"\nThe model, of stages {whose}, in trials per second:")
        _table(
            ("workers", "round by round", "overlapped", "bound by"),
            [
                (
                    str(row["workers"]),
                    f"{row['rounds']:.2f}",
                    f"{row['overlapped']:.2f}",
                    row["bound"],
                )
                for row in rows
            ],
        )
        return rows

    def _throughput(self, workers: int) -> float | None:
        rate: float | None = self._step("throughput", self._stages, workers, read=float)
        return rate

    def _survive(self, runner: Any, trials: Sequence[Any]) -> list[Any] | None:
        """The results of trials whose lost ones were run again; None while that is to do."""
        results: list[Any] | None = self._step(
            "survive_lost_worker",
            runner,
            trials,
            attempts=_ATTEMPTS,
            read=lambda found: [found[index] for index, _ in enumerate(trials)],
        )
        return results

    # Tuning.

    def tune(self, *, repeats: int) -> dict[str, list[float]]:
        """Tune with one worker and with all, in turns; trials per second by workers."""
        if self._stages is _EXAMPLE:
            return {}
        seen: dict[str, list[float]] = {}
        counts = (1, len(self.farm))
        for turn in range(repeats):
            for workers in counts:
                _say(f"\nTuning with {workers} worker{'s' * (workers > 1)}:")
                rate = self._tune(workers, self.steps.folder / f"records-{workers}-{turn}")
                seen.setdefault(str(workers), []).append(rate)
        rows = []
        for workers in counts:
            predicted = self._throughput(workers)
            rates = seen[str(workers)]
            cells = (
                ("", "")
                if predicted is None
                else (
                    f"{predicted:.2f}",
                    f"{statistics.mean(rates) / predicted:.2f}",
                )
            )
            rows.append((str(workers), cells[0], ", ".join(f"{x:.2f}" for x in rates), cells[1]))
        _say("\nTrials per second, predicted and seen:")
        _table(("workers", "predicted", "seen", "seen/predicted"), rows)
        if counts[1] > self.cores:
            _say("(More workers than cores: they took time from each other.)")
        return seen

    def _tune(self, workers: int, folder: Path) -> float:
        """Trials per second of a search on that many workers."""
        import shutil

        from tvm_practice.farm import tune_matmul

        shutil.rmtree(folder, ignore_errors=True)
        seconds = tune_matmul(
            self._surviving(workers), self.trials, self.size, folder, target=_one_thread()
        )
        return self.trials / seconds

    @contextmanager
    def _surviving(self, workers: int) -> Iterator[Any]:
        from tvm_practice.tvm_export.tuners.metaschedule import runner_of

        with self._runner(workers) as runner:

            def measure(inputs: Sequence[Any]) -> list[Any]:
                return self._survive(runner, inputs) or _results(runner.run(inputs))

            yield runner_of(measure)

    # Lost workers.

    def lose_workers(self) -> dict[str, Any]:
        """Kill a worker in the middle of a round, without and with `survive_lost_worker`."""
        if not self._artifacts:
            self._survive(None, [])
            return {}
        from tvm_practice.local_farm import SilentServer

        trials = self._artifacts
        _say(f"\nOf {len(self.farm)} workers one is killed in the middle of {len(trials)} trials:")
        figures: dict[str, Any] = {}

        def survive(runner: Any) -> list[Any] | None:
            return self._survive(runner, trials)

        figures["killed"] = self._losing("killed", lambda runner: _results(runner.run(trials)))
        if "survive_lost_worker" in (*self.steps.todo, *self.steps.failed):
            return figures
        figures["killed, survived"] = self._losing("killed, survived", survive)
        limit = 10.0
        _say(f"A worker takes a trial and falls silent; trials are given up after {limit:.0f} s:")
        with SilentServer(self.farm.host, self.farm.port, self.farm.key) as silent:
            figures["silent, survived"] = self._losing(
                "silent, survived", survive, lose=silent.offer, trial_seconds=limit
            )
        return figures

    def _losing(
        self,
        name: str,
        measure: Callable[[Any], list[Any] | None],
        *,
        lose: Callable[[], None] | None = None,
        trial_seconds: float = 60,
    ) -> dict[str, Any]:
        """Measure while a worker is lost; prints and returns what came of the trials."""
        from threading import Timer

        from tvm_practice.tvm_export.tuners.progress import last_line

        def kill() -> None:
            self.farm.lose(serving=True)

        workers = len(self.farm)
        with self._runner(workers, trial_seconds=trial_seconds) as runner:
            timer = Timer(2 * self._stages.run, lose or kill)
            timer.start()
            started = time.perf_counter()
            results = measure(runner)
            seconds = time.perf_counter() - started
            timer.join()
        self.farm.add(workers - len(self.farm))
        if results is None:
            return {}
        errors = [str(each.error_msg) for each in results if each.error_msg]
        text = f"  {name}: {len(results) - len(errors)} measured, {len(errors)} failed"
        print(f"{text} in {seconds:.1f} s")
        for each in errors:
            _say(f"    {last_line(each)}")
        return {"measured": len(results) - len(errors), "errors": errors, "seconds": seconds}


def _one_thread() -> Any:
    """This machine as a target with one thread, which the farm's workers have."""
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.tuners.workers import variable

    with variable("TVM_NUM_THREADS", "1"):
        return host_target()


def _packed(size: int, folder: Path) -> Path:
    """Phase 2's packed product as a shared library."""
    import tvm

    from solutions.manual_schedule import packed_matmul
    from tvm_practice.manual_schedule import packed_blocking

    schedule = packed_matmul(size, size, size, **packed_blocking(size))
    file = folder / "packed.so"
    tvm.compile(schedule.mod, target=_one_thread()).mod.export_library(str(file))
    return file


def _results(futures: Sequence[Any]) -> list[Any]:
    return [each.result() for each in futures]


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1e3:.0f}" if seconds > 0.1 else f"{seconds * 1e3:.2g}"


def _seconds_of(function: Callable[[], Any]) -> float:
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def _say(text: str) -> None:
    """Print a paragraph, wrapped to the terminal."""
    from rich.console import Console

    Console().print(text, markup=False, highlight=False)


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose columns of numbers are flush right."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(box=box.SIMPLE)
    for number, heading in enumerate(headings):
        is_number = all(row[number][:1].isdigit() for row in rows)
        table.add_column(heading, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def report(results: dict[str, Any], folder: Path) -> None:
    """Save the figures, and draw trials per second over workers with their bounds."""
    import json

    from tvm_practice.viz.throughput import plot_throughput

    figures = results.get("current", {}).get("figures")
    if not figures:
        return
    record = folder / "figures.json"
    record.write_text(json.dumps(figures, indent=2))
    saved = [record]
    if rows := figures["predicted"]:
        stages = Stages(**figures["stages"])
        saved.append(
            plot_throughput(
                folder / "throughput.png",
                [(row["workers"], row["rounds"], row["overlapped"]) for row in rows],
                workers_alone=[min(row["workers"], stages.batch) / stages.run for row in rows],
                bounds={
                    f"search, rounds of {stages.batch}": stages.batch / stages.search,
                    f"{stages.builders} builders": stages.builders / stages.build,
                    "upload": 1 / stages.upload,
                    "tracker": 1 / stages.request,
                },
                seen={int(workers): rates for workers, rates in figures["seen"].items()},
            )
        )
    print()
    for path in saved:
        print(f"saved {path}")


main = phase_command("labs.tuning_farm", "Lab 5: a tuning farm.")

if __name__ == "__main__":
    main()
