"""Makes a phase's notebook from its chapter: words, worked examples, an exercise a cell."""

import ast
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tvm_practice.course.catalog import MINE, Exercise, Phase
from tvm_practice.course.difficulty import stars
from tvm_practice.course.editing import parse
from tvm_practice.course.explaining import key_question
from tvm_practice.course.grading import source_file
from tvm_practice.course.notebooks.examples import EXAMPLES, SHOWS
from tvm_practice.course.pieces import by_place, new_pieces
from tvm_practice.course.resetting import stub
from tvm_practice.course.telling import reference
from tvm_practice.engines import CLASSIC
from tvm_practice.tvm_export.writing import write_whole

# How a chapter says that its file is run and graded, which a notebook does in its cells.
_COMMANDS = re.compile(
    r", then run(?:\s+`python -m [^`]+`\s+and\s+`pytest -m \w+`\.|\n\n(?:    \S.*\n)+)"
)
_IN_CELLS = ". The cell below a function\nchecks it, and the last cell with code uses them.\n"
_SETUP = """\
import importlib.util
import subprocess
import sys

if importlib.util.find_spec("tvm_practice") is None:  # in Colab, say
    install = [sys.executable, "-m", "pip", "install", "--quiet", {requirement}]
    subprocess.run(install, check=True)
    importlib.invalidate_caches()

from tvm_practice.course.notebooks import begin

check, hint, run = begin({module}, globals())
"""
_HOW = """\
## Exercises

Write each function in its cell, run the cell, and run the check below it. A check grades what the
cell defines now, in a separate process. `hint("{first}")` gives the next of three hints."""
_SHOW = """\
## What your functions give

`run()` in a cell of its own runs the phase with them on the TVMs that are here, at small sizes, and
prints its tables; after phase 1 that takes minutes. `run(quick=False)` measures more.
`run(engine="current")` leaves classic TVM out."""


def notebook_name(phase: Phase) -> str:
    return f"{phase.number}-{phase.name}.ipynb"


def write_notebook(phase: Phase, file: Path, *, solutions: bool, requirement: str) -> None:
    """Write the phase's notebook, whole or not at all. Raises OSError.

    Args:
        solutions: with the reference answers in place of the stubs.
        requirement: what pip installs where the course is missing.
    """
    import jupytext
    import nbformat

    text = to_percent(phase, solutions=solutions, requirement=requirement)
    notebook = jupytext.reads(text, fmt="py:percent")
    for number, cell in enumerate(notebook.cells):
        # Random ones would differ at each writing.
        cell["id"] = f"{phase.name}-{number}".replace("_", "-")
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    write_whole(file, nbformat.writes(notebook, version=4) + "\n")


def to_percent(phase: Phase, *, solutions: bool, requirement: str) -> str:
    """The notebook as a Python file whose comments `# %%` begin its cells."""
    file = source_file(phase.module, MINE)
    cells = [*_head(phase, requirement), *_chapter(phase, file, solutions), *_end(phase, solutions)]
    return "\n".join(cells)


def _markdown(text: str) -> str:
    return "# %% [markdown]\n" + "\n".join(f"# {line}".rstrip() for line in text.split("\n")) + "\n"


def _code(text: str) -> str:
    return f"# %%\n{text.strip()}\n"


def _head(phase: Phase, requirement: str) -> Iterator[str]:
    text = source_file(phase.module, MINE).read_text(encoding="utf-8")
    title, _, words = (ast.get_docstring(parse(text)) or "").partition("\n")
    yield _markdown(f"# {title.rstrip('.')}")
    yield _code(_SETUP.format(module=json.dumps(phase.module), requirement=json.dumps(requirement)))
    yield _markdown(_COMMANDS.sub(_IN_CELLS, f"{words.strip()}\n").strip())


def _chapter(phase: Phase, file: Path, solutions: bool) -> Iterator[str]:
    """The chapter's statements in order; exercises with their checks."""
    text = file.read_text(encoding="utf-8")
    exercises = {each.name: each for each in phase.exercises}
    above: list[str] = []
    has_begun = False
    for node, source in _statements(text):
        name = node.name if isinstance(node, ast.FunctionDef) else ""
        if name in exercises and not has_begun:
            has_begun = True
            yield from _worked(phase, above)
            yield _markdown(_HOW.format(first=phase.exercises[0].name))
        if name in exercises:
            yield from _exercise(exercises[name], solutions)
        elif "phase_command" not in source and "__name__" not in source:
            above.append(source)


def _statements(text: str) -> Iterator[tuple[ast.stmt, str]]:
    """The statements below the docstring, each with the comments above it; imports as one."""
    lines = text.split("\n")
    body = parse(text).body[1:]
    start = parse(text).body[0].end_lineno or 0
    for node in body:
        yield node, "\n".join(lines[start : node.end_lineno]).strip()
        start = node.end_lineno or start


def _worked(phase: Phase, sources: Sequence[str]) -> Iterator[str]:
    """Imports in one cell, and each worked example in one; then a cell that runs them."""
    imports = [each for each in sources if not each.startswith(("def ", "class "))]
    yield _code("\n\n".join(imports))
    yield _markdown("## Worked example")
    for each in sources:
        if each not in imports:
            yield _code(each)
    yield _code(EXAMPLES[phase.module])


def _exercise(exercise: Exercise, solutions: bool) -> Iterator[str]:
    """Title and what is new, the function, its check."""
    parts = [f"### `{exercise.name}` {stars(exercise)}"]
    if exercise.engine == CLASSIC:
        parts.append("For classic TVM.")
    shown = by_place(exercise, new_pieces(exercise))
    parts += [
        f"New, from {place}: {', '.join(f'`{each}`' for each in pieces)}."
        for place, pieces in shown.items()
    ]
    yield _markdown("\n\n".join(parts))
    yield _code(reference(exercise) if solutions else stub(exercise))
    yield _code(f'check("{exercise.name}", {exercise.name})')


def _end(phase: Phase, solutions: bool) -> Iterator[str]:
    yield _markdown(_SHOW)
    yield _code(SHOWS[phase.module])
    if solutions:
        yield _markdown(key_question(phase))
    else:
        yield _markdown(
            f"## Key question\n\n{phase.question} `tvm-practice explain {phase.key}` answers."
        )
