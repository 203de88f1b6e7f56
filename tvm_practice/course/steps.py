"""The functions of a phase, called by its tour: a stub is "to do", never an error."""

import importlib
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tvm_practice.course.catalog import MINE
from tvm_practice.course.catalog import phase as phase_named


class Steps:
    """A phase's functions, the learner's or the reference ones.

    Attributes:
        chapter: the phase's own module, for its worked examples.
        folder: where the phase's records and plots go.
        todo: names of the functions called so far that are not written yet.
        failed: names of those that raised, with the exception in a line.
    """

    def __init__(self, phase: str, source: str, *, folder: Path = Path("runs")):
        self.phase = phase
        self.source = source
        self.folder = folder
        self.todo: list[str] = []
        self.failed: dict[str, str] = {}
        # By its name: the course does not import chapters, which import the course.
        self.chapter = importlib.import_module(f"{MINE}.{phase}")
        self._module = importlib.import_module(f"{source}.{phase}")
        self._titles = {each.name: each.title for each in phase_named(phase).exercises}
        self._console = Console()

    def ran(self, name: str) -> bool:
        """Whether the function `name`, which was called, is written and did not raise."""
        return name not in self.todo and name not in self.failed

    def function(self, name: str) -> Callable[..., Any]:
        """The function `name` itself, for a tuner to call."""
        function: Callable[..., Any] = getattr(self._module, name)
        return function

    def attempt(self, name: str, *arguments: Any, **options: Any) -> Any:
        """Call the function `name`; None if it is to do or if it raised, which is then said."""
        try:
            return getattr(self._module, name)(*arguments, **options)
        except NotImplementedError:
            if name not in self.todo:
                self.todo.append(name)
                self._say("yellow", "to do", f"{name}: {self._titles[name]}")
        except Exception as error:
            line = next(
                (
                    f" (line {frame.lineno}: {frame.line})"
                    for frame in reversed(traceback.extract_tb(error.__traceback__))
                    if frame.filename == self._module.__file__
                ),
                "",
            )
            text = (str(error).strip().splitlines() or ["(no message)"])[-1]
            self.failed[name] = f"{type(error).__name__}: {text}{line}"
            self._say("red", "fails", f"{name}: {self.failed[name]}")
        return None

    def _say(self, colour: str, word: str, text: str) -> None:
        self._console.print(Text.assemble((word, colour), "  ", text))
