"""Grading: an exercise's check, run on its engine in a process of its own."""

import importlib
import importlib.util
import inspect
import re
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from tvm_practice import engines
from tvm_practice.course.catalog import MINE, SOLUTIONS, Exercise, find
from tvm_practice.course.expect import CheckFailed

Status = Literal["passed", "failed", "todo", "unavailable"]


@dataclass(frozen=True)
class Verdict:
    """What grading an exercise found.

    Attributes:
        status: passed, failed, todo (it raises NotImplementedError) or unavailable (no engine).
        message: why not passed; for `todo` the text of the stub's error.
        seconds: what the check took.
        output: what the function printed meanwhile.
    """

    exercise: Exercise
    status: Status
    message: str = ""
    seconds: float = 0.0
    output: str = ""


def load_source(phase: str, source: str) -> ModuleType:
    """The module with a phase's functions.

    `source` is MINE (the learner's file), SOLUTIONS, or the path of a Python file.
    """
    if not source.endswith(".py"):
        return importlib.import_module(f"{source}.{phase}")
    spec = importlib.util.spec_from_file_location(f"graded_{phase}", source)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def source_file(phase: str, source: str) -> Path:
    """The file that `load_source` reads, found without importing it."""
    if source.endswith(".py"):
        return Path(source)
    spec = importlib.util.find_spec(f"{source}.{phase}")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin)


def check_here(exercise: str, path: str) -> dict[str, Any]:
    """Grade in this process, whose engine is active; called through engines.Session."""
    found = find(exercise)
    started = time.perf_counter()
    status, message = _run(found, path)
    return {"status": status, "message": message, "seconds": time.perf_counter() - started}


def demonstrate_here(exercise: str, path: str) -> str:
    """What the function of `path` gives where `exercise.looks_like` says what it should."""
    found = find(exercise)
    return found.demonstrate(getattr(load_source(found.phase, path), found.name)).strip()


def _run(exercise: Exercise, path: str) -> tuple[Status, str]:
    try:
        # From its file each time, not from sys.modules: the learner edits it between two runs.
        function = getattr(load_source(exercise.phase, path), exercise.name, None)
        if not inspect.isfunction(function):
            return "failed", f"{path} has no function {exercise.name}; put its `def` line back"
        exercise.check(function)
    except CheckFailed as wrong:
        return "failed", str(wrong)
    except NotImplementedError as todo:
        return "todo", str(todo)
    except Exception as error:
        return "failed", _describe(error, exercise.name, path)
    return "passed", ""


def _describe(error: Exception, name: str, path: str) -> str:
    """One line for an exception in the learner's code, with the line it came from."""
    kind = type(error).__name__
    last = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == path]
    where = f"\nlook at:  line {last[-1].lineno}: {last[-1].line}" if last else ""
    text = _essence(str(error)) or "(no message)"
    return f"expected: {name} to run\nseen:     {kind}: {text}{where}"


def _essence(message: str) -> str:
    """The telling lines of TVM's errors, which carry a C++ stack and the whole module."""
    described = re.search(
        r"Error message: (.*?)(?:\n\s*(?:The (?:IR|error)|#)|\Z)", message, re.DOTALL
    )
    if described:
        return " ".join(described[1].split())
    lines = [line.strip() for line in message.splitlines()]
    lines = [
        line for line in lines if line and not re.match(r"(\d+: |at |File |Stack trace)", line)
    ]
    return " ".join(lines[:1] if len(lines) == 1 else lines[-1:] if lines else [])[:600]


class Grader:
    """Grades exercises, keeping one process an engine between them.

    with Grader() as grader:
        verdict = grader.grade(find("te_basics.matmul"), SOLUTIONS)
    """

    def __init__(self) -> None:
        self._sessions: dict[str, engines.Session] = {}
        self._output = tempfile.TemporaryFile("w+b")  # noqa: SIM115  # closed by close()

    def grade(self, exercise: Exercise, source: str = MINE, *, timeout: float = 180) -> Verdict:
        """Run the exercise's check on the function of that name in `source`."""
        before = self._output.seek(0, 2)
        started = time.perf_counter()
        try:
            answer = self._call("check_here", exercise, source, timeout)
            status: Status = answer["status"]
            message, seconds = answer["message"], answer["seconds"]
        except engines.EngineUnavailable as missing:
            status, message, seconds = "unavailable", str(missing), 0.0
        except (engines.EngineDied, engines.EngineTimeout) as broken:
            self._forget(exercise)
            seconds = time.perf_counter() - started
            status = "failed"
            message = (
                f"expected: {exercise.name} to end\nseen:     {broken}\n"
                "look at:  an endless loop, or a call that crashes TVM"
            )
        self._output.seek(before)
        output = self._output.read().decode(errors="replace")
        return Verdict(exercise, status, message, seconds, output)

    def demonstrate(self, exercise: Exercise, source: str = SOLUTIONS) -> str:
        """What a correct answer gives; equal to `exercise.looks_like`."""
        return str(self._call("demonstrate_here", exercise, source, timeout=180))

    def _call(self, function: str, exercise: Exercise, source: str, timeout: float) -> Any:
        return self._session(exercise).call(
            f"tvm_practice.course.grading:{function}",
            {"exercise": exercise.id, "path": str(source_file(exercise.phase, source))},
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
