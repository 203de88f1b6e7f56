"""Write a notebook a phase into a folder; one that is already there is left as it is."""

import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from tvm_practice.course.catalog import Phase, phases

_SETUP = """\
import os
from pathlib import Path

from IPython.display import Image, display

import tvm_practice

os.chdir(Path(tvm_practice.__file__).parent.parent)  # the course's folder, not the notebook's"""

_PLOTS = """\
for plot in sorted(Path("runs/{module}").glob("*.png")):
    display(Image(plot))"""


def notebook(phase: Phase) -> nbformat.NotebookNode:
    module = phase.module
    cells = [
        new_markdown_cell(
            f"# Phase {phase.number}: {phase.title}\n\n"
            f"Read and edit `tvm_practice/{module}.py` beside this notebook; the cells below run "
            "and grade what is saved there. Each starts a new process, so nothing needs a "
            "restart after an edit."
        ),
        new_code_cell(_SETUP),
        new_markdown_cell("## Run it\n\nWith your functions, on both TVMs, at small sizes."),
        new_code_cell(f"!python -m tvm_practice.{module} --quick"),
        new_code_cell(_PLOTS.format(module=module)),
        new_markdown_cell("## Grade it"),
        new_code_cell(f"!python -m pytest -q -m phase{phase.number} -k test_mine"),
        new_markdown_cell(
            f"## The key question\n\n{phase.question}\n\nThe answer is in `{phase.page}`."
        ),
    ]
    for number, cell in enumerate(cells):
        cell["id"] = f"{module}-{number}".replace(
            "_", "-"
        )  # random ones would differ at each writing
    return new_notebook(cells=cells)


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for phase in phases():
        path = folder / f"{phase.number}-{phase.module}.ipynb"
        if not path.exists():
            nbformat.write(notebook(phase), path)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
