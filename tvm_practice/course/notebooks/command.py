"""What `tvm-practice notebooks` does, and what it prints."""

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import click

from tvm_practice.course.catalog import Phase, phases
from tvm_practice.course.notebooks.making import notebook_name, write_notebook
from tvm_practice.course.screen import Screen, near


def write_notebooks(
    screen: Screen,
    chosen: Sequence[Phase],
    out: Path,
    *,
    solutions: bool,
    install: str,
    force: bool,
) -> int:
    """Write the notebooks of these phases, without any of all five; the exit code."""
    for phase in chosen:
        if phase.is_lab or phase.is_practice:
            raise click.UsageError(f"{phase.label} has no notebook; phases 1 to 5 have one")
    if importlib.util.find_spec("jupytext") is None:
        raise click.UsageError("jupytext is not installed: pip install 'tvm-practice[notebooks]'")
    out.mkdir(parents=True, exist_ok=True)
    for phase in chosen or phases():
        file = out / notebook_name(phase)
        if file.exists() and not force:
            screen.say(f"{near(file)} is there, and stays as it is (--force)")
            continue
        try:
            write_notebook(phase, file, solutions=solutions, requirement=install)
        except OSError as error:
            screen.note(f"{near(file)} is not written: {error}")
            return 1
        screen.say(f"{near(file)}: {phase.title}")
    return 0
