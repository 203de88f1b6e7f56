"""What the cells of a notebook call: `check`, `hint` and `run` of one phase."""

import atexit
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tvm_practice import engines
from tvm_practice.course.catalog import MINE, Exercise, find
from tvm_practice.course.catalog import phase as phase_named
from tvm_practice.course.grading import Grader, Verdict, source_file
from tvm_practice.course.notebooks.answers import Cell, chapter_of, source_of
from tvm_practice.course.screen import Screen
from tvm_practice.course.telling import show_hint, tell_verdict

# The package that a run takes the notebook's functions from, in a folder of its own.
_ANSWERS = "answers_of_the_notebook"
_TOUR = (
    "import json, sys; from tvm_practice.course.notebooks.session import tour; "
    "sys.exit(tour(**json.loads(sys.argv[1])))"
)
_PICTURES = (".png", ".svg")
# Jupyter wraps lines, and a table is 80 columns wide; an exported page cuts code off.
_STYLE = """<style>
.jp-RenderedText pre, .jp-RenderedMarkdown pre, .jp-RenderedMarkdown pre code { white-space: pre; }
.jp-RenderedText pre, .jp-RenderedMarkdown pre, .jp-InputArea-editor .highlight pre {
  overflow-x: auto;
}
.jp-RenderedSVG img { max-width: 100%; }
</style>"""


class Calls(NamedTuple):
    """The functions that a notebook's first cell names."""

    check: Callable[..., None]
    hint: Callable[..., None]
    run: Callable[..., None]


def begin(module: str, namespace: Mapping[str, Any]) -> Calls:
    """Make current TVM this process's, say which engines are here; returns check, hint and run.

    Args:
        module: the phase, `te_basics` say.
        namespace: the notebook's `globals()`.
    """
    os.environ.pop("FORCE_COLOR", None)  # Jupyter's: progress bars would become lines of codes
    for engine in (engines.CURRENT, engines.CLASSIC):
        print(_standing_of(engine, module))
    if "IPython" in sys.modules:
        from IPython.display import HTML, display

        display(HTML(_STYLE))
    session = Session(module, namespace)
    atexit.register(session.close)
    return Calls(session.check, session.hint, session.run)


def _standing_of(engine: engines.Engine, module: str) -> str:
    """A line: that an engine is here, or that its exercises cannot be graded."""
    missing = engines.unavailable_reason(engine)
    if missing is None and engine == engines.CURRENT:
        try:
            engines.activate(engine)
        except engines.EngineUnavailable as problem:
            missing = str(problem)
    if missing is None:
        return f"{engine} TVM is here"
    names = [each.name for each in phase_named(module).exercises if each.engine == engine]
    without = f". Not graded here: {', '.join(names)}" if names else ""
    return f"{missing}{without}"


class Session:
    """One notebook's grader, and the hints that it has shown."""

    def __init__(self, module: str, namespace: Mapping[str, Any]) -> None:
        self._phase = phase_named(module)
        self._namespace = namespace
        self._grader = Grader()
        self._screen = Screen(plain=True)
        self._folder = tempfile.TemporaryDirectory()
        self._shown: dict[str, int] = {}

    def check(self, name: str, function: Any, *, seed: int | None = None) -> None:
        """Grade `function` as exercise `name`, on its engine; say what is expected and seen.

        The same seed draws the same inputs.
        """
        exercise = self._find(name)
        if exercise is None:
            return
        if getattr(function, "__name__", "") != name or not source_of(function):
            self._screen.say(
                f"{exercise.id} needs the function itself, defined in a cell by `def {name}`: "
                f'check("{name}", {name})'
            )
            return
        file, cells = self._write({**self._namespace, name: function})
        verdict = self._grader.grade(exercise, str(file), seed=seed)
        gives = ""
        if verdict.status == "failed":
            gives = self._grader.compare_results(exercise, str(file))
        tell_verdict(self._screen, _in_cells(verdict, gives, cells), place="the cell above")
        if verdict.status in ("failed", "todo"):
            self._screen.say(f'A hint: hint("{name}")')

    def hint(self, name: str, level: int | None = None) -> None:
        """Show a hint of exercise `name`, each time one that says more; `level` is 1, 2 or 3."""
        exercise = self._find(name)
        if exercise is None:
            return
        most = len(exercise.hints)
        if level not in (None, *range(1, most + 1)):
            self._screen.say(f"hints have levels 1 to {most}, not {level!r}")
            return
        if level is None:
            level = self._shown[name] = min(self._shown.get(name, 0) + 1, most)
        show_hint(self._screen, exercise, level)

    def run(self, *, quick: bool = True, engine: str | None = None) -> None:
        """Run the phase with the notebook's functions; print its tables, show its pictures.

        Args:
            quick: smaller sizes and fewer trials.
            engine: "classic" or "current", if not both.
        """
        self._write(self._namespace)
        started = time.time()
        out = Path("runs")
        job = {"module": self._phase.module, "quick": quick, "engine": engine, "out": str(out)}
        path = [self._folder.name, *filter(None, [os.environ.get("PYTHONPATH")])]
        with subprocess.Popen(
            [sys.executable, "-c", _TOUR, json.dumps(job)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            assert running.stdout is not None
            for line in running.stdout:
                print(line, end="")
        for file in sorted((out / self._phase.name).glob("*")):
            if file.suffix in _PICTURES and file.stat().st_mtime >= started - 1:
                _show(file)

    def close(self) -> None:
        """End the engines' processes."""
        self._grader.close()
        self._folder.cleanup()

    def _find(self, name: str) -> Exercise | None:
        try:
            return find(f"{self._phase.module}.{name}")
        except KeyError as unknown:
            self._screen.say(str(unknown.args[0]))
            return None

    def _write(self, namespace: Mapping[str, Any]) -> tuple[Path, list[Cell]]:
        """The notebook's functions as a chapter's file, in a package of its own."""
        module = self._phase.module
        text = source_file(module, MINE).read_text(encoding="utf-8")
        text, cells = chapter_of(text, namespace)
        folder = Path(self._folder.name).resolve() / _ANSWERS
        folder.mkdir(exist_ok=True)
        (folder / "__init__.py").touch()
        file = folder / f"{module}.py"
        file.write_text(text, encoding="utf-8")
        return file, cells


def tour(module: str, quick: bool, engine: str | None, out: str) -> int:
    """Run a phase with the functions that a notebook has written; the exit code."""
    from tvm_practice.course.phase import run_phase

    reference = dict.fromkeys(phase_named(module).builds_on, "todo")  # other notebooks' functions
    try:
        run_phase(
            module,
            source=_ANSWERS,
            quick=quick,
            engine=engine,
            out=Path(out),
            known=reference,  # type: ignore[arg-type]
        )
    except (engines.EngineError, OSError) as error:
        print(f"{module} failed: {error}")
        return 1
    return 0


def _in_cells(verdict: Verdict, gives: str, cells: list[Cell]) -> Verdict:
    """The verdict as a notebook says it: lines of cells, and the call that repeats it."""

    def in_its_cell(found: "re.Match[str]") -> str:
        line = int(found[1])
        for cell in cells:
            if cell.start <= line < cell.start + cell.count:
                return f"line {line - cell.start + cell.in_cell} of its cell:"
        return found[0]

    message = re.sub(r"(?m)(?<=^look at:  )line (\d+):", in_its_cell, verdict.message)
    message = re.sub(
        r"(?m)^again with: tvm-practice check (\w+) --seed (\d+)$",
        r'again with: check("\1", \1, seed=\2)',
        message,
    )
    return Verdict(
        verdict.exercise, verdict.status, message, verdict.seconds, verdict.output, gives
    )


def _show(file: Path) -> None:
    """A picture below the cell; without Jupyter, its name."""
    try:
        from IPython.display import SVG, Image, display
    except ImportError:
        print(file)
        return
    display(SVG(filename=str(file)) if file.suffix == ".svg" else Image(filename=str(file)))
