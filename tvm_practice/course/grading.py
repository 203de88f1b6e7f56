"""Grading: an exercise's check, run on its engine in a process of its own."""

import difflib
import importlib
import importlib.util
import inspect
import os
import re
import sys
import tempfile
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from tvm_practice import engines
from tvm_practice.course.catalog import MINE, SOLUTIONS, Exercise, find
from tvm_practice.course.common_errors import explained
from tvm_practice.course.editing import imported_from, parse, stub_message
from tvm_practice.course.expect import CheckFailed, draw_from, fail, new_seed
from tvm_practice.course.guarding import Guard

# A correct answer's takes less than a second.
_DEMONSTRATION_SECONDS = 20
# How many times as long a check may take on an overloaded machine.
_MOST_PATIENCE = 4.0

Status = Literal["passed", "failed", "todo", "unavailable"]


@dataclass(frozen=True)
class Verdict:
    """What grading an exercise found.

    Attributes:
        status: passed, failed, todo (it raises NotImplementedError) or unavailable (no engine).
        message: why not passed; for `todo` the text of the stub's error. Where a check failed, its
            last line is the command that runs the check again with the same inputs.
        seconds: what the check took.
        output: what the function printed meanwhile.
        gives: where it is wrong, the lines of the function's result ("- ") and of a correct
            answer's ("+ "), common ones ("  ") between them; "" if that is not known.
    """

    exercise: Exercise
    status: Status
    message: str = ""
    seconds: float = 0.0
    output: str = ""
    gives: str = ""


def load_source(phase: str, source: str) -> ModuleType:
    """The module with a phase's functions.

    `source` is MINE (the learner's file), SOLUTIONS, or the path of a Python file.
    """
    if not source.endswith(".py"):
        return importlib.import_module(f"{source}.{phase}")
    import cloudpickle

    spec = importlib.util.spec_from_file_location(f"graded_{phase}", source)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # A class is looked for in the module that it names: by TVMScript's decorator, by dataclass.
    sys.modules[spec.name] = module
    cloudpickle.register_pickle_by_value(module)  # other processes cannot import it
    # Not by the loader: its cached bytecode is taken for fresh when a file was saved twice within
    # a second and kept its length.
    exec(compile(Path(source).read_bytes(), source, "exec", dont_inherit=True), module.__dict__)
    return module


def source_file(phase: str, source: str) -> Path:
    """The file that `load_source` reads, found without importing it."""
    if source.endswith(".py"):
        return Path(source)
    if source == MINE:
        return (learners_folder() / phase.replace(".", "/")).with_suffix(".py")
    spec = importlib.util.find_spec(f"{source}.{phase}")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin)


def reference_file(exercise: Exercise) -> Path:
    """The file with the `def` of the reference solution, found without importing an engine."""
    file = source_file(exercise.phase, SOLUTIONS)
    home = imported_from(file.read_text(encoding="utf-8"), exercise.name)
    if home is None:
        return file
    spec = importlib.util.find_spec(home)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin)


def learners_folder() -> Path:
    """The folder of the phases' files that the learner edits.

    It is the package's, unless TVM_PRACTICE_FILES names another one, a copy say.
    """
    if named := os.environ.get("TVM_PRACTICE_FILES"):
        return Path(named).absolute()
    spec = importlib.util.find_spec(MINE)
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent


def grade_unrun(exercise: Exercise, source: str = MINE) -> "Verdict | None":
    """The verdict where none needs an engine: it is missing, the file is broken, or a stub."""
    if missing := engines.unavailable_reason(exercise.engine):
        return Verdict(exercise, "unavailable", missing)
    file = source_file(exercise.phase, source)
    if problem := file_problem(file):
        return Verdict(exercise, "failed", problem)
    try:
        message = stub_message(file.read_text(encoding="utf-8"), exercise.name)
    except KeyError:  # it may be defined in another way than by `def`
        return None
    return None if message is None else Verdict(exercise, "todo", message or "it is a stub")


def file_problem(file: Path) -> str | None:
    """One line saying why no function can be taken out of `file`; None if they can."""
    try:
        text = file.read_text(encoding="utf-8")
        parse(text)
    except SyntaxError as error:
        number = error.lineno or 1
        line = [*text.split("\n"), ""][number - 1].strip()
        return f"{file.name}, line {number}: {type(error).__name__}: {error.msg}" + (
            f": {line}" if line else ""
        )
    except (OSError, ValueError) as error:
        return f"{file} cannot be read: {error}"
    return None


def check_here(exercise: str, path: str, seed: int) -> dict[str, Any]:
    """Grade in this process, whose engine is active; called through engines.Session.

    The same seed draws the same inputs.
    """
    found = find(exercise)
    draw_from(seed)
    started = time.perf_counter()
    status, message, cheated = _run(found, path)
    seconds = time.perf_counter() - started
    global _found_last
    _found_last = {"status": status, "message": message, "seconds": seconds, "cheated": cheated}
    return _found_last


_found_last: dict[str, Any] = {}


def found_here(exercise: str) -> dict[str, Any]:
    """What `check_here` found last: it is asked where no answer is running any more."""
    find(exercise)
    return _found_last


def ready_here(exercise: str) -> None:
    """Nothing but what every check needs: an engine and the checks, loaded."""
    find(exercise)


def demonstrate_here(exercise: str, path: str) -> str:
    """What the function of `path` gives where `exercise.looks_like` says what it should."""
    found = find(exercise)
    return found.demonstrate(getattr(load_source(found.phase, path), found.name)).strip()


def _run(exercise: Exercise, path: str) -> tuple[Status, str, bool]:
    """Status, message, and whether the answer did what it may not."""
    if Path(path).resolve() == source_file(exercise.phase, SOLUTIONS).resolve():
        return *_checked(exercise, path), False  # it may be imported from where it is needed
    guard = Guard(exercise.phase, exercise.name, path)
    try:
        # Whatever else went wrong, or right, that the answer cheated is what it is told.
        with guard.active(), guard.unchanged():
            status, message = _checked(exercise, path, guard)
        guard.verdict()
    except CheckFailed as wrong:
        return "failed", str(wrong), True
    except BaseException as error:  # between two lines of the grader
        sys.settrace(None)
        sys.setprofile(None)
        return "failed", str(_interrupted(exercise.name, error)), True
    return status, message, False


def _interrupted(name: str, error: BaseException) -> CheckFailed:
    """The answer's code ran outside of its calls and raised `error` there."""
    return fail(
        f"{name} to end with its return statement",
        f"{type(error).__name__}, raised while the grader itself was running",
        "a trace function, a handler, or an exception with __str__ of its own: the grader runs it",
    )


def _checked(exercise: Exercise, path: str, guard: Guard | None = None) -> tuple[Status, str]:
    try:
        # From its file each time, not from sys.modules: the learner edits it between two runs.
        function: Any = getattr(load_source(exercise.phase, path), exercise.name, None)
        if not inspect.isfunction(inspect.unwrap(function)):  # it may be decorated
            return "failed", f"{path} has no function {exercise.name}; put its `def` line back"
        exercise.check(guard.watched(function) if guard else function)
    except CheckFailed as wrong:
        return "failed", str(wrong)
    except NotImplementedError as todo:
        return "todo", str(todo)
    except BaseException as error:  # SystemExit as well: the grading goes on
        return "failed", describe(error, exercise.name, path)
    return "passed", ""


def describe(error: BaseException, name: str, path: str) -> str:
    """An exception in the learner's code: its message, its line, and its cause if that is known."""
    kind = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)
    last = [frame for frame in frames if frame.filename == path]
    where = f"\nlook at:  line {last[-1].lineno}: {last[-1].line}" if last else ""
    raised = frames[-1].line if frames else None  # an assertion of TVM has no other words
    text = _essence(str(error)) or (f"(no message) {raised}" if raised else "(no message)")
    common = explained(error)
    why = f"\nbecause:  {common.cause}\ninstead:  {common.instead}" if common else ""
    return f"expected: {name} to run\nseen:     {kind}: {text}{where}{why}"


# Before the reason that TVM gives: names of the error, and the condition in C++ that was not met.
_CHECKED = re.compile(r"^(\w*Error: )*Check failed: .*? is false: (?=\S)|^(\w*Error: )+(?=\S)")

# Lines of a stack in C++ or Python.
_OF_A_STACK = re.compile(r"(\d+: |at /|File |Stack trace)")


def _essence(message: str) -> str:
    """The telling lines of TVM's errors, which carry a C++ stack and the whole module."""
    described = re.search(
        r"Error message: (.*?)(?:\n\s*(?:The (?:IR|error)|#)|\Z)", message, re.DOTALL
    )
    if described:
        # Of an instruction that does not match, TVM prints both programs.
        return " ".join(described[1].split()).partition(" The pattern attempting")[0]
    lines = [line.strip() for line in message.splitlines()]
    if failed := [line for line in lines if "Check failed: " in line]:
        return _CHECKED.sub("", failed[-1])[:600]
    told = [line for line in lines if line and not re.match(_OF_A_STACK, line)]
    return _CHECKED.sub("", (told or lines or [""])[-1])[:600]


def _again(exercise: Exercise, source: str, seed: int) -> str:
    """The line that says how to repeat a check with the inputs that it drew."""
    solutions = " --solutions" if source == SOLUTIONS else ""
    return f"again with: tvm-practice check {exercise.name}{solutions} --seed {seed}"


class GradingCancelled(Exception):
    """Grader.cancel() stopped the check."""


def _patience() -> float:
    """How many times as long a check may take: one process's share of a busy machine is small."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    return min(max(waiting, 1.0), _MOST_PATIENCE)


class Grader:
    """Grades exercises, keeping one process an engine between them.

    with Grader() as grader:
        verdict = grader.grade(find("te_basics.matmul"), SOLUTIONS)

    Each check draws its inputs from `seed`; without one, from a new seed for each check.
    """

    def __init__(self, seed: int | None = None) -> None:
        self._seed = seed
        self._sessions: dict[str, engines.Session] = {}
        self._cancelled = threading.Event()
        self._output = tempfile.TemporaryFile("w+b")  # noqa: SIM115  # closed by close()

    def grade(
        self,
        exercise: Exercise,
        source: str = MINE,
        *,
        timeout: float = 180,
        seed: int | None = None,
    ) -> Verdict:
        """Run the exercise's check on the function of that name in `source`.

        `seed` is for a grader that has none. A stub, or a file that does not parse, starts no
        engine. After `timeout` seconds, or as many more as the machine is overloaded, the check is
        ended. Raises GradingCancelled after `cancel`.
        """
        if (verdict := grade_unrun(exercise, source)) is not None:
            return verdict
        self._cancelled.clear()
        if self._seed is not None:
            seed = self._seed
        elif seed is None:
            seed = new_seed()
        timeout *= _patience()
        before = self._output.seek(0, 2)
        started = time.perf_counter()
        try:
            answer = self._call("check_here", exercise, source, timeout, seed=seed)
            if answer["status"] == "passed":  # or the answer itself has written so, and goes on
                answer = self._session(exercise).call(
                    f"{__name__}:found_here", {"exercise": exercise.id}, timeout=timeout
                )
            status: Status = answer["status"]
            message, seconds = answer["message"], answer["seconds"]
            if answer["cheated"]:  # a thread or a signal of it may go on
                self._forget(exercise)
        except engines.EngineUnavailable as missing:
            status, message, seconds = "unavailable", str(missing), 0.0
        except (engines.EngineDied, engines.EngineTimeout) as broken:
            self._forget(exercise)
            if self._cancelled.is_set():
                raise GradingCancelled from None
            seconds = time.perf_counter() - started
            status = "failed"
            message = (
                f"expected: {exercise.name} to end\nseen:     {broken}\n"
                "look at:  an endless loop, a call that crashes TVM, or a write past an array's end"
            )
        self._output.seek(before)
        output = self._output.read().decode(errors="replace")
        if status == "failed":
            message = f"{message}\n{_again(exercise, source, seed)}"
        return Verdict(exercise, status, message, seconds, output)

    def make_ready(self, exercise: Exercise) -> None:
        """Start the exercise's engine, so that grading it takes no longer than its check."""
        try:
            self._session(exercise).call(f"{__name__}:ready_here", {"exercise": exercise.id})
        except engines.EngineError:  # grading will meet it again, and say it
            self._forget(exercise)

    def cancel(self) -> None:
        """Stop the check that another thread is in, and the engines' processes with it."""
        self._cancelled.set()
        sessions = list(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            session.close(grace=0)

    def demonstrate(
        self, exercise: Exercise, source: str = SOLUTIONS, *, timeout: float = 180
    ) -> str:
        """What the answer in `source` gives; of a correct one it is `exercise.looks_like`.

        Raises engines.EngineError where it raises or does not end.
        """
        try:
            return str(self._call("demonstrate_here", exercise, source, timeout=timeout))
        except (engines.EngineDied, engines.EngineTimeout):
            self._forget(exercise)
            raise

    def compare_results(self, exercise: Exercise, source: str = MINE) -> str:
        """The result of the function in `source` beside a correct answer's; see Verdict.gives.

        Empty where both give the same, or the function does not run.
        """
        try:
            mine = self.demonstrate(exercise, source, timeout=_DEMONSTRATION_SECONDS)
        except engines.EngineError:
            return ""
        right = exercise.looks_like
        if mine == right:
            return ""
        lines = difflib.ndiff(mine.splitlines(), right.splitlines())
        return "\n".join(line for line in lines if not line.startswith("?"))

    def sketch(self, exercise: Exercise, *, drawn: bool = False) -> dict[str, Any]:
        """What the learner's answer and a correct one do to memory; see sketch.sketch_here.

        {} where the learner's cannot be followed: it fails, or it has no loops of current TVM.
        """
        if exercise.engine != engines.CURRENT or grade_unrun(exercise) is not None:
            return {}
        paths = {
            "yours": str(source_file(exercise.phase, MINE)),
            "correct": str(reference_file(exercise)),
        }
        try:
            found: dict[str, Any] = self._session(exercise).call(
                "tvm_practice.course.sketch:sketch_here",
                {"exercise": exercise.id, "paths": paths, "drawn": drawn},
                timeout=_DEMONSTRATION_SECONDS,
            )
        except engines.EngineError:  # the loops have no end, say, or the check was stopped
            self._forget(exercise)
            return {}
        return found if "yours" in found["answers"] else {}

    def _call(
        self, function: str, exercise: Exercise, source: str, timeout: float, **more: int
    ) -> Any:
        path = str(source_file(exercise.phase, source))
        return self._session(exercise).call(
            f"{__name__}:{function}",
            {"exercise": exercise.id, "path": path, **more},
            timeout=timeout,
        )

    def _session(self, exercise: Exercise) -> engines.Session:
        if exercise.engine not in self._sessions:
            self._sessions[exercise.engine] = engines.Session(exercise.engine, output=self._output)
        return self._sessions[exercise.engine]

    def _forget(self, exercise: Exercise) -> None:
        session = self._sessions.pop(exercise.engine, None)
        if session is not None:
            session.close(grace=0)

    def close(self) -> None:
        for session in self._sessions.values():
            session.close(grace=1)
        self._sessions.clear()
        self._output.close()

    def __enter__(self) -> "Grader":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
