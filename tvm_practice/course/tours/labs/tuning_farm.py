"""What lab 5 shows: a farm on loopback, measured, modelled, tuned on, and with a worker lost."""

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.printing import say, show
from tvm_practice.farm.stages import Stages
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tvm_practice.farm.local import LocalFarm

_ATTEMPTS = 3
_UPLOADS = (2**14, 2**18, 2**22, 2**24)  # bytes
_GIGABIT = 117  # MB/s of payload that a gigabit network carries
_COUNTS = (1, 2, 4, 10, 30, 100)  # of workers, to predict for

# Taken for the model as long as `rpc_runner` is to do; not measured.
_EXAMPLE = Stages(
    search=1.0, batch=16, build=0.5, builders=2, request=0.0005, upload=0.002, run=0.5
)


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """A farm on loopback: measured stage by stage, modelled, tuned on, and with a worker lost."""
    from tvm_practice import engines
    from tvm_practice.farm.local import LocalFarm
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
        parts: seconds of a trial's parts on its worker, by name.
        uploads: seconds of an upload, by bytes.
    """

    def __init__(self, steps: Steps, farm: "LocalFarm", cores: int, *, size: int, trials: int):
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
            self.steps.fail(name, f"returned {value!r}"[:60])
            return None

    def show_tracker(self, requests: int) -> float:
        """Print what the tracker knows, and how long it is busy with a request."""
        print(
            f"A tracker on {self.farm.host}:{self.farm.port}, and its servers for key "
            f"{self.farm.key!r}:\n  {', '.join(sorted(self.farm.servers))}"
        )
        self._request_seconds = self.steps.chapter.measure_tracker(self.farm, requests)
        say(
            f"Worked example: a trial keeps the tracker busy for "
            f"{self._request_seconds * 1e3:.2f} ms. One tracker serves at most "
            f"{1 / self._request_seconds:.0f} trials per second."
        )
        return self._request_seconds

    def show_one_trial(self) -> None:
        """One session: a product uploaded, verified and timed on a worker."""
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
        say(
            f"\nPhase 2's packed product at {self.size}, sent to a worker of one thread: "
            f"{statistics.median(seconds) * 1e3:.2f} ms there, largest error {error:.1e}."
        )

    # Stages, each measured by itself.

    def stages(self, folder: str) -> Stages:
        """What the stages take here; the example's as long as there is no runner.

        Candidates are kept in `folder`.
        """
        from tvm_practice.farm.stages import (
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
            ("run, one trial", stages.run, "worker", "includes the parts below:"),
            ("  session", parts["session"], "worker", "requested, process forked"),
            ("  load", parts["load"], "worker", ""),
            ("  arguments", parts["arguments"], "worker", "allocated and filled"),
            ("  timing", parts["timing"], "worker", "3 samples of 20 ms or a call"),
        ]
        say(f"\nA trial of a {self.size}³ product, stage by stage, each measured alone:")
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
        say(
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
        whose = (
            "made up, because there is no runner" if self._stages is _EXAMPLE else "measured here"
        )
        say(f"\nThe model's trials per second, from stages {whose}:")
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
                say(f"\nTuning with {workers} worker{'s' * (workers > 1)}:")
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
        say("\nTrials per second, predicted and seen:")
        _table(("workers", "predicted", "seen", "seen/predicted"), rows)
        if counts[1] > self.cores:
            say("(More workers than cores: they took time from each other.)")
        return seen

    def _tune(self, workers: int, folder: Path) -> float:
        """Trials per second of a search on that many workers."""
        from tvm_practice.farm.tuning import tune_matmul

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
        from tvm_practice.farm.local import SilentServer

        trials = self._artifacts
        say(
            f"\nOne of {number_of(len(self.farm), 'worker')} is killed in the middle of "
            f"{number_of(len(trials), 'trial')}:"
        )
        figures: dict[str, Any] = {}

        def survive(runner: Any) -> list[Any] | None:
            return self._survive(runner, trials)

        figures["killed"] = self._losing("killed", lambda runner: _results(runner.run(trials)))
        if not self.steps.ran("survive_lost_worker"):
            return figures
        figures["killed, survived"] = self._losing("killed, survived", survive)
        limit = 10.0
        say(f"A worker takes a trial and falls silent; trials are given up after {limit:.0f} s:")
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
            say(f"    {last_line(each)}")
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

    from tvm_practice.course.stack import earlier
    from tvm_practice.engines.blocking import packed_blocking

    packed_matmul = earlier("manual_schedule.packed_matmul")
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


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table whose columns of numbers are flush right."""
    table = Table(box=box.SIMPLE)
    for number, heading in enumerate(headings):
        is_number = all(row[number][:1].isdigit() for row in rows)
        table.add_column(heading, justify="right" if is_number else "left")
    for row in rows:
        table.add_row(*row)
    show(table)


def report(results: dict[str, Any], folder: Path) -> None:
    """Save the figures, and draw trials per second over workers with their bounds."""
    figures = results.get("current", {}).get("figures")
    if not figures:
        return
    record = folder / "figures.json"
    record.write_text(json.dumps(figures, indent=2))
    saved = [record]
    if rows := figures["predicted"]:
        seen = {int(workers): rates for workers, rates in figures["seen"].items()}
        saved.append(folder / "throughput.png")
        figure = farm_figure(Stages(**figures["stages"]), rows, seen)
        figure.savefig(saved[-1], dpi=120, facecolor="white")
    print()
    for path in saved:
        print(f"saved {path}")


def farm_figure(
    stages: Stages, rows: Sequence[Mapping[str, Any]], seen: Mapping[int, Sequence[float]]
) -> "Figure":
    """Trials per second over workers, with the bounds that the stages set.

    Args:
        stages: times and sizes of the stages.
        rows: by number of "workers", the trials per second of "rounds" and "overlapped".
        seen: trials per second measured, by number of workers.
    """
    from tvm_practice.viz.throughput import throughput_figure

    return throughput_figure(
        [(row["workers"], row["rounds"], row["overlapped"]) for row in rows],
        workers_alone=[min(row["workers"], stages.batch) / stages.run for row in rows],
        bounds={
            f"search, rounds of {stages.batch}": stages.batch / stages.search,
            f"{stages.builders} builders": stages.builders / stages.build,
            "upload": 1 / stages.upload,
            "tracker": 1 / stages.request,
        },
        seen=seen,
    )
