"""The comparison: lines, first result, time to load, speed, for each framework and workload.

with Processes(log) as processes:
    row = measure("softmax", processes, size="full", trials=32, ...)

A framework has a process of its own, which stays while the workloads are compared; they take
their samples in turns. The first result is timed in processes that are new each time.
"""

import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from tvm_practice import engines
from tvm_practice.labs.workloads.counting import implementation
from tvm_practice.labs.workloads.frameworks import BASELINE, FRAMEWORKS, Framework, missing
from tvm_practice.labs.workloads.process import set_threads, with_empty_caches
from tvm_practice.measure import compare_samples

_HERE = f"{__package__}.process"
_WARMUP = 2


class Processes:
    """A process for each framework, started when it is first needed.

    Until it is closed, this process's environment is theirs: it sets their threads and caches.

    Args:
        log: file that what they print goes to.
    """

    def __init__(self, log: Path):
        self._caches = tempfile.TemporaryDirectory()
        self._environment = dict(os.environ)
        set_threads()  # they get this process's environment
        with_empty_caches(self._caches.name)
        self._log: IO[str] = log.open("w")
        self._open: dict[str, engines.Session] = {}

    def call(self, framework: str, function: str, arguments: Mapping[str, Any]) -> Any:
        """Call a function of `process` in the framework's process.

        Raises engines.EngineError; a process that ended is started anew by the next call.
        """
        if framework not in self._open:
            self._open[framework] = engines.Session("current", output=self._log)
        try:
            return self._open[framework].call(f"{_HERE}:{function}", arguments, activate=False)
        except (engines.EngineDied, engines.EngineTimeout):
            self._open.pop(framework).close(grace=0)
            raise

    def __enter__(self) -> "Processes":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for session in self._open.values():
            session.close(grace=1)
        self._open.clear()
        self._log.close()
        self._caches.cleanup()
        os.environ.clear()
        os.environ.update(self._environment)


def first_result_command(
    framework: Framework, workload: str, *, size: str, trials: int
) -> list[str]:
    """The command whose first line of output is a verified result."""
    command = [sys.executable, "-m", f"{__package__}.first_result", framework.name, workload]
    if framework.tuned:
        command += ["--trials", str(trials)]
    return [*command, *(["--quick"] if size == "quick" else [])]


def measure(
    workload: str,
    processes: Processes,
    *,
    size: str,
    trials: int,
    runs: int,
    rounds: int,
    seconds: float,
    count_lines: Callable[[str], int | None] | None,
    time_to_first_result: Callable[..., float | None] | None,
    frameworks: Sequence[str] = tuple(FRAMEWORKS),
    say: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """One workload in every framework.

    Args:
        workload: its name in `problems.PROBLEMS`.
        processes: the frameworks'.
        size: "full" or "quick".
        trials: schedules that a tuner may measure.
        runs: new processes of which the time to the first result is the median; a framework
            that tunes or is interpreted has one.
        rounds: samples of each, at most.
        seconds: for sampling, after which no new round begins.
        count_lines: from source to logical lines; None leaves that out.
        time_to_first_result: from a command, and `runs`, to seconds; None leaves that out.
        frameworks: which.
        say: is told what is done next.

    Returns:
        By framework its "lines"; "missing" or "failed", a reason, where there is one; else
        "first_seconds", "load_seconds", "error", "interpreted" and, unless it is that, "busy"
        (processors), "latency" and "ratio" as `measure.Comparison.to_dict` has them.
    """
    cells: dict[str, dict[str, Any]] = {}
    takers: dict[str, Callable[[], float]] = {}
    for name in frameworks:
        framework = FRAMEWORKS[name]
        cell = cells[name] = {}
        if count_lines is not None:
            cell["lines"] = count_lines(implementation(framework.module, workload))
        if reason := missing(framework):
            cell["missing"] = reason
            continue
        say(framework.label)
        arguments = {
            "framework": name, "workload": workload, "size": size, "trials": trials,
        }  # fmt: skip
        try:
            prepared = processes.call(name, "prepare", arguments)
            cell["load_seconds"] = prepared["seconds"]["load"]
            cell |= {"error": prepared["error"], "interpreted": prepared["interpreted"]}
            if not cell["interpreted"]:
                cell["busy"] = processes.call(name, "busy", {"workload": workload})
            if time_to_first_result is not None:
                command = first_result_command(framework, workload, size=size, trials=trials)
                cell["first_seconds"] = time_to_first_result(
                    command, runs=1 if framework.tuned or cell["interpreted"] else runs
                )
        except (engines.EngineError, RuntimeError) as error:
            cell["failed"] = (str(error).splitlines() or [type(error).__name__])[0]
            continue
        if not cell["interpreted"]:
            takers[name] = partial(processes.call, name, "sample", {"workload": workload})
    if BASELINE in takers:
        say("in turns")
        compared = compare_samples(
            takers, baseline=BASELINE, rounds=rounds, warmup=_WARMUP, time_limit=seconds
        )
        for name in takers:
            cells[name]["latency"] = compared.latency[name].to_dict()
            cells[name]["ratio"] = compared.ratio[name].to_dict()
    return cells
