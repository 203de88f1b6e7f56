"""The functions of a phase, called by its tour: a stub is "to do", never an error."""

import importlib
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from tvm_practice.course.catalog import MINE
from tvm_practice.course.catalog import phase as phase_named
from tvm_practice.course.common_errors import explained


class Steps:
    """A phase's functions, the learner's or the reference ones.

    Attributes:
        chapter: the phase's own module, for its worked examples.
        folder: where the phase's records and plots go.
        todo: names of the functions called so far that are not written yet.
        failed: names of those that raised, with the exception in a line.
        returned: names of those that returned, the last one last.
    """

    def __init__(self, phase: str, source: str, *, folder: Path = Path("runs")):
        self.phase = phase
        self.source = source
        self.folder = folder
        self.todo: list[str] = []
        self.failed: dict[str, str] = {}
        self.returned: list[str] = []
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
            result = getattr(self._module, name)(*arguments, **options)
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
            self.fail(name, f"{_in_a_line(error)}{line}")
            self._explain(error)
        else:
            if name in self.returned:
                self.returned.remove(name)
            self.returned.append(name)
            return result
        return None

    def stop(self, error: Exception) -> None:
        """Say that the lane ends with this exception, and name the functions that it used.

        The last one that returned is taken for the wrong one.
        """
        with self.blaming(self.returned[-1]):
            raise error
        used = ", ".join(self.returned)
        marker = phase_named(self.phase).marker
        self._console.print(
            f"The run on this engine stops here. It used {used}; grade them: pytest -m {marker}",
            highlight=False,
        )

    def fail(self, name: str, reason: str) -> None:
        """Record, and say, that the function `name` is wrong, though it returned."""
        self.failed[name] = reason
        self._say("red", "fails", f"{name}: {reason}")

    @contextmanager
    def blaming(self, name: str) -> Iterator[None]:
        """A context in which an exception is recorded as a failure of the function `name`."""
        try:
            yield
        except Exception as error:  # whatever TVM finds wrong with what the person made
            self.fail(name, _in_a_line(error))
            self._explain(error)

    def _explain(self, error: Exception) -> None:
        """Add the cause and the way out where the error is one that many meet."""
        if common := explained(error):
            self._say("", "  because", common.cause)
            self._say("", "  instead", common.instead)

    def _say(self, colour: str, word: str, text: str) -> None:
        self._console.print(Text.assemble((word, colour), "  ", text))


def _in_a_line(error: Exception) -> str:
    """The exception's type, and the last line of its message."""
    return f"{type(error).__name__}: {(str(error).strip().splitlines() or ['(no message)'])[-1]}"
