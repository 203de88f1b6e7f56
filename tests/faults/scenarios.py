"""The runs that faults are put in, and what must hold after each fault."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.tracing import ERRORS, Fault, appended, is_injected, options, points
from tests.test_kill import measured
from tvm_practice.engines.temporary import remove_abandoned
from tvm_practice.measure import ACCEPT_LOAD
from tvm_practice.tvm_export.artifacts import read_metadata, require_free, require_whole
from tvm_practice.tvm_export.tuners.metaschedule import recover
from tvm_practice.tvm_export.writing import write_whole

ROOT = Path(__file__).parents[2]
_SITE = Path(__file__).with_name("site")
_CHILD = "tvm_practice.engines.child"
_JOURNAL = "journal.jsonl"
_LIMIT_SECONDS = 600
_LATER_SECONDS = 120
_MODEL = """
import os, torch

def factory():
    torch.manual_seed(int(os.environ.get("FAULTS_WEIGHTS", "1")))
    return torch.nn.Linear(8, 4), torch.ones(2, 8)
"""
_EXPORT = ("run_autotvm", "odd:factory", "--measure-repeats", "1", "--measure-warmup", "0")
_TUNE = (*_EXPORT, "--tuner", "metaschedule", "--seed", "0", "--tuning-log", "log")
_CONFIGURATION = {
    "model": {"loader": "odd:factory"},
    "measure": {"warmup": 1, "repeats": 2, "tvm_repeats": 1, "tvm_warmup": 0},
}


@dataclass(frozen=True)
class Scenario:
    """A command.

    Attributes:
        name: in the table.
        before: arguments of the run whose results are there when the fault comes.
        command: arguments of the run that has the fault.
        traced: a word of the command line of the process that has it.
        signals: what else may happen at a call.
    """

    name: str
    before: tuple[str, ...]
    command: tuple[str, ...]
    traced: str = _CHILD
    signals: tuple[str, ...] = ("SIGKILL",)


SCENARIOS = {
    each.name: each
    for each in (
        Scenario("export", (*_EXPORT, "--artifacts", "made"), (*_EXPORT, "--artifacts", "made")),
        Scenario(
            "tuning",
            (*_TUNE, "--artifacts", "made", "--tuning-trials", "2"),
            (*_TUNE, "--artifacts", "made", "--tuning-trials", "4"),
        ),
        Scenario(
            "icd",
            ("icd", "run", "-c", "icd.json", "--out", "made"),
            ("icd", "run", "-c", "icd.json", "--out", "made"),
            traced="tvm_practice.icd",
            signals=("SIGKILL", "SIGTERM", "SIGHUP"),
        ),
        Scenario(
            "command",
            (*_EXPORT, "--artifacts", "made"),
            (*_EXPORT, "--artifacts", "made"),
            traced="tvm_practice.run_autotvm",
            signals=("SIGKILL", "SIGTERM", "SIGHUP"),
        ),
    )
}


@dataclass
class Case:
    """A run with one fault.

    Attributes:
        scenario: which command.
        fault: what happens.
        injected: whether it did; a run may take other ways than the recorded one.
        violations: what should hold after it and does not.
    """

    scenario: Scenario
    fault: Fault
    injected: bool = False
    violations: list[str] = field(default_factory=list)


class Place:
    """A folder in which a scenario runs, put back to what its first run left."""

    def __init__(self, scenario: Scenario, folder: Path):
        self.scenario = scenario
        self.folder = folder
        self._base = folder.with_name(f"{folder.name}-base")
        self._base.mkdir(parents=True)
        (self._base / "tmp").mkdir()
        (self._base / "odd.py").write_text(_MODEL)
        (self._base / "icd.json").write_text(json.dumps(_CONFIGURATION))
        self._folder_of_base()
        done = self._run(scenario.before, weights=1)
        if done.returncode != 0:
            raise ChildProcessError(f"{scenario.name}: {done.stdout}{done.stderr}")
        shutil.rmtree(self._base)
        shutil.copytree(self.folder, self._base, symlinks=True)
        self._temporary = {each.name for each in (self.folder / "tmp").iterdir()}

    def _folder_of_base(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self._base, self.folder, symlinks=True)

    def _run(
        self,
        command: tuple[str, ...],
        *,
        weights: int,
        fault: Fault | None = None,
        trace: bool = False,
    ) -> "subprocess.CompletedProcess[str]":
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(_SITE), str(ROOT)]),
            "TMPDIR": str(self.folder / "tmp"),
            "FAULTS_NAMES": "the same in each run",
            "FAULTS_WEIGHTS": str(weights),
            ACCEPT_LOAD: "1",
        }
        if trace:
            environment |= {
                "FAULTS_TRACED": self.scenario.traced,
                "FAULTS_TAKEN": str(self.folder / "taken"),
                "FAULTS_STRACE": json.dumps(options(self.trace, fault)),
            }
        return subprocess.run(
            [sys.executable, "-m", f"tvm_practice.{command[0]}", *command[1:]],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=_LIMIT_SECONDS,
        )

    @property
    def trace(self) -> Path:
        """What strace writes."""
        return self.folder.with_name(f"{self.folder.name}.strace")

    def faults(self) -> Iterator[Fault]:
        """Every fault at every call with which a run changes files."""
        self._folder_of_base()
        done = self._run(self.scenario.command, weights=2, trace=True)
        if done.returncode != 0:
            raise ChildProcessError(f"{self.scenario.name}: {done.stdout}{done.stderr}")
        journal = self.folder / "log" / _JOURNAL
        for point in points(self._lines(), self.folder, [journal]):
            for how in (*ERRORS[point.name], *self.scenario.signals):
                yield Fault(point, how)

    def _lines(self) -> list[str]:
        return self.trace.read_text(errors="replace").splitlines() if self.trace.exists() else []

    def try_fault(self, fault: Fault, *, again: bool) -> Case:
        """Run with a fault and check what must hold, then, and when a later run begins.

        Args:
            fault: what happens.
            again: whether the whole command is run once more, and must succeed.
        """
        case = Case(self.scenario, fault)
        self._folder_of_base()
        self.trace.unlink(missing_ok=True)
        before = measured("metaschedule", self.folder / "log")
        done = self._run(self.scenario.command, weights=2, fault=fault, trace=True)
        lines = self._lines()
        case.injected = is_injected(lines, fault)
        say = case.violations.append
        for text in _misbehaviour(done, fault, self.scenario):
            say(text)
        if fault.how != "SIGKILL":  # which may come between two moves: the next run mends it
            for text in self._broken():
                say(f"after the fault, {text}")
        after = measured("metaschedule", self.folder / "log")
        if not before <= after or len(after) < len(before) + appended(lines, _JOURNAL):
            say(f"{len(before)} trials, then more were measured, {len(after)} are left")
        if again:
            next_one = self._run(self.scenario.command, weights=2)
            if next_one.returncode != 0:
                say(f"the next run ended with {next_one.returncode}: {_last(next_one)}")
        self._begin_another()
        if not after <= measured("metaschedule", self.folder / "log"):
            say("the next run lost trials")
        for text in self._left():
            say(text)
        return case

    def _begin_another(self) -> None:
        """What a later run does before anything else, a minute and more after this one."""
        for each in self.folder.rglob("*"):
            os.utime(each, (time.time() - _LATER_SECONDS,) * 2, follow_symlinks=False)
        remove_abandoned(self.folder / "tmp")
        made = self.folder / "made"
        if self.scenario.command[0] == "icd":
            write_whole(made / "metrics.json", (made / "metrics.json").read_text())
        else:
            require_free(made, None, force=True)
        if (self.folder / "log").exists():
            recover(self.folder / "log")

    def _left(self) -> Iterator[str]:
        """What is wrong with the folder when a later run has begun."""
        temporary = {each.name for each in (self.folder / "tmp").iterdir()} - self._temporary
        if temporary:
            yield f"left in the temporary folder: {', '.join(sorted(temporary))}"
        made = self.folder / "made"
        if hidden := [each.name for each in made.rglob(".*")]:
            yield f"left beside the results: {', '.join(sorted(hidden))}"
        yield from self._broken()

    def _broken(self) -> Iterator[str]:
        """What of the results is neither the former run's nor this one's, whole."""
        made = self.folder / "made"
        try:
            if self.scenario.command[0] == "icd":
                json.loads((made / "metrics.json").read_text())
            else:
                require_whole(made, read_metadata(made))
        except (OSError, ValueError) as error:
            yield f"the result is not whole: {error}"


def _misbehaviour(
    done: "subprocess.CompletedProcess[str]", fault: Fault, scenario: Scenario
) -> Iterator[str]:
    """How the command that had the fault ended otherwise than documented."""
    allowed = {0, 1, 2}
    if fault.how.startswith("SIG") and scenario.traced != _CHILD:
        number = signal.Signals[fault.how]
        allowed = {0, -number if fault.how == "SIGKILL" else 128 + number}
    if done.returncode not in allowed:
        yield f"exit code {done.returncode}: {_last(done)}"
    if done.returncode in (1, 2) and not done.stderr.strip():
        yield f"exit code {done.returncode} without a word"
    if "Traceback (most recent call last)" in done.stderr:
        yield f"a traceback: {done.stderr.strip().splitlines()[-1][:200]}"


def _last(done: "subprocess.CompletedProcess[str]") -> str:
    return done.stderr.strip()[-200:]
