"""The runs that faults are put in, and what must hold after each fault."""

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests import forks
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
# A command's process is the second there each time, and all end with it.
CONTAINED = (
    "unshare",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount-proc",
    "sh",
    "-c",
    '"$@"; exit $?',
    "sh",
)
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


@dataclass(frozen=True)
class Condition:
    """What befalls a whole run, without a call that fails.

    Attributes:
        how: CLOCK_FORTH or CLOCK_BACK, the machine's clock steps by a day; TWICE, the same command
            runs a second time in the same folder.
        when: how often a process has read the clock before; seconds until the second run.
    """

    how: str
    when: float

    @property
    def kind(self) -> tuple[str, str]:
        """As a fault's."""
        return "–", self.how

    def __str__(self) -> str:
        after = f"{self.when:g} s" if self.how == TWICE else f"{self.when:g} readings"
        return f"{self.how}, after {after}"


CLOCK_FORTH, CLOCK_BACK, TWICE = "the clock a day on", "the clock a day back", "two runs at once"
_STEPS = {CLOCK_FORTH: 86400, CLOCK_BACK: -86400}
CONDITIONS = (
    *(Condition(how, when) for when in (0, 1, 4, 16) for how in _STEPS),
    *(Condition(TWICE, seconds) for seconds in (0, 0.3, 1, 2)),
)


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
    fault: Fault | Condition
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
        fault: Fault | Condition | None = None,
        trace: bool = False,
    ) -> "subprocess.CompletedProcess[str]":
        more = {}
        if isinstance(fault, Condition) and fault.how in _STEPS:
            more["FAULTS_CLOCK"] = f"{_STEPS[fault.how]} {fault.when:g} {self._stepped}"
        elif trace and not isinstance(fault, Condition):
            more = {
                "FAULTS_TRACED": self.scenario.traced,
                "FAULTS_TAKEN": str(self.folder / "taken"),
                "FAULTS_STRACE": json.dumps(options(self.trace, fault)),
            }
        process = self._start(
            command, weights, more, contained=isinstance(fault, Fault) and fault.restarted
        )
        out, err = process.communicate(timeout=_LIMIT_SECONDS)
        return subprocess.CompletedProcess(command, process.returncode, out, err)

    def _start(
        self,
        command: tuple[str, ...],
        weights: int,
        more: Mapping[str, str] | None = None,
        *,
        contained: bool = False,
    ) -> "subprocess.Popen[str]":
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(_SITE), str(ROOT)]),
            "TMPDIR": str(self.folder / "tmp"),
            "FAULTS_NAMES": "the same in each run",
            "FAULTS_WEIGHTS": str(weights),
            ACCEPT_LOAD: "1",
            **(more or {}),
        }
        if contained:  # a server forks outside
            environment.pop(forks.ADDRESS, None)
        return subprocess.Popen(
            [
                *(CONTAINED if contained else ()),
                *(sys.executable, "-m", f"tvm_practice.{command[0]}", *command[1:]),
            ],
            cwd=self.folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    @property
    def _stepped(self) -> Path:
        """The file that a process makes whose clock steps."""
        return self.folder / "stepped"

    @property
    def trace(self) -> Path:
        """What strace writes."""
        return self.folder.with_name(f"{self.folder.name}.strace")

    def faults(self) -> Iterator[Fault | Condition]:
        """Every fault at every call with which a run changes files, and every condition."""
        self._folder_of_base()
        done = self._run(self.scenario.command, weights=2, trace=True)
        if done.returncode != 0:
            raise ChildProcessError(f"{self.scenario.name}: {done.stdout}{done.stderr}")
        journal = self.folder / "log" / _JOURNAL
        for point in points(self._lines(), self.folder, [journal]):
            for how in (*ERRORS[point.name], *self.scenario.signals):
                yield Fault(point, how)
            if _has_containers():
                yield Fault(point, "SIGKILL", restarted=True)
        yield from CONDITIONS

    def _lines(self) -> list[str]:
        return self.trace.read_text(errors="replace").splitlines() if self.trace.exists() else []

    def try_fault(self, fault: Fault | Condition, *, again: bool) -> Case:
        """Run with a fault and check what must hold, then, and when a later run begins.

        Args:
            fault: what happens.
            again: whether the whole command is run once more, and must succeed.
        """
        case = Case(self.scenario, fault)
        self._folder_of_base()
        self.trace.unlink(missing_ok=True)
        before = measured("metaschedule", self.folder / "log")
        case.violations += self._meet(case)
        after = measured("metaschedule", self.folder / "log")
        if not before <= after or len(after) < len(before) + appended(self._lines(), _JOURNAL):
            case.violations.append(
                f"{len(before)} trials, then more were measured, {len(after)} are left"
            )
        restarted = fault if isinstance(fault, Fault) and fault.restarted else None
        if again or restarted:
            next_one = self._run(self.scenario.command, weights=2, fault=restarted)
            if next_one.returncode != 0:
                case.violations.append(
                    f"the next run ended with {next_one.returncode}: {_last(next_one)}"
                )
        self._begin_another()
        if not after <= measured("metaschedule", self.folder / "log"):
            case.violations.append("the next run lost trials")
        case.violations += self._left()
        return case

    def _meet(self, case: Case) -> Iterator[str]:
        """Have the case's fault come; what does not hold at once."""
        fault = case.fault
        if isinstance(fault, Condition) and fault.how == TWICE:
            first = self._start(self.scenario.command, 2)
            time.sleep(fault.when)
            case.injected = first.poll() is None
            both = (first, self._start(self.scenario.command, 3))
            said = [each.communicate(timeout=_LIMIT_SECONDS) for each in both]
            for process, (out, err) in zip(both, said, strict=True):
                done = subprocess.CompletedProcess((), process.returncode, out, err)
                yield from _misbehaviour(done, {0, 1, 2})
        else:
            done = self._run(self.scenario.command, weights=2, fault=fault, trace=True)
            if isinstance(fault, Fault):
                case.injected = is_injected(self._lines(), fault)
                yield from _misbehaviour(done, _documented(fault, self.scenario))
            else:
                case.injected = self._stepped.exists()
                yield from _misbehaviour(done, {0})
        if not isinstance(fault, Fault) or fault.how != "SIGKILL":
            # A kill may come between two moves: the next run mends it.
            yield from (f"after the fault, {text}" for text in self._broken())

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


def _documented(fault: Fault, scenario: Scenario) -> set[int]:
    """The exit codes that a command with this fault may have."""
    if not fault.how.startswith("SIG") or scenario.traced == _CHILD:
        return {0, 1, 2}
    number = signal.Signals[fault.how]
    # A shell tells of a signal as 128 + its number.
    return {0, -number if fault.how == "SIGKILL" and not fault.restarted else 128 + number}


def _misbehaviour(done: "subprocess.CompletedProcess[str]", documented: set[int]) -> Iterator[str]:
    """How a command ended otherwise than it should."""
    if done.returncode not in documented:
        yield f"exit code {done.returncode}: {_last(done)}"
    if done.returncode in (1, 2) and not done.stderr.strip():
        yield f"exit code {done.returncode} without a word"
    if "Traceback (most recent call last)" in done.stderr:
        yield f"a traceback: {done.stderr.strip().splitlines()[-1][:200]}"


@functools.cache
def _has_containers() -> bool:
    """Whether this user may start processes under numbers of their own."""
    tried = [*CONTAINED, "true"]
    return shutil.which("unshare") is not None and (
        subprocess.run(tried, capture_output=True).returncode == 0
    )


def _last(done: "subprocess.CompletedProcess[str]") -> str:
    return done.stderr.strip()[-200:]
