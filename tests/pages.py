"""Running the commands and programs of a documentation page."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from tests import forks

ROOT = Path(__file__).parent.parent

_BLOCK = re.compile(
    r"(?:^<!-- not run here: (?P<reason>.+?) -->\n\n?)?"
    r"^```(?P<language>\w+)(?P<options>[^\n]*)\n(?P<text>.*?)^```$",
    flags=re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        language: what stands after the fence, `bash` or `python` say.
        title: the file or the side that it is of; empty without one.
        text: its lines.
        not_run: the reason given in the comment above it; None where there is none.
    """

    language: str
    title: str
    text: str
    not_run: str | None


def page_file(page: str) -> Path:
    """The file of `page`: one of docs/, or README.md and its neighbours."""
    return next(each for each in (ROOT / "docs" / page, ROOT / page) if each.exists())


def blocks(page: str) -> Iterator[Block]:
    """Every fenced block of `page`, from top to bottom."""
    for found in _BLOCK.finditer(page_file(page).read_text()):
        title = re.search(r'title="(.+?)"', found["options"])
        yield Block(found["language"], title[1] if title else "", found["text"], found["reason"])


def run_blocks(
    page: str,
    folder: Path,
    *,
    smaller: Callable[[str], str] = lambda text: text,
    language: str = "bash",
) -> list[str]:
    """Run every block of `page` in `folder`, one after the other; what each printed.

    Args:
        page: a file of docs/, or README.md.
        folder: the working directory of them all.
        smaller: turns a block into one that takes less time.
        language: bash or python, each block a program of its own.

    A block that fails is an AssertionError with what it said.
    """
    programs = {"bash": ["bash", "-euo", "pipefail", "-c"], "python": [sys.executable, "-c"]}
    printed = []
    for block in blocks(page):
        if block.language == language and block.not_run is None:
            printed.append(run([*programs[language], smaller(block.text)], folder))
    return printed


@dataclass(frozen=True)
class Ran:
    """What the blocks of a page left in `folder`, and what each `printed`."""

    folder: Path
    printed: list[str]


def run_once(page: str, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """As `run_blocks`, in one folder for all test processes: the first that asks runs the page."""
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    folder = base / Path(page).stem
    printed = folder / "printed.json"
    with FileLock(f"{folder}.lock"):
        if not printed.exists():
            folder.mkdir(exist_ok=True)
            printed.write_text(json.dumps(run_blocks(page, folder)))
    return Ran(folder, json.loads(printed.read_text()))


def environment(root: Path = ROOT) -> dict[str, str]:
    """Variables by which a shell's `python` is the tests' own, and is forked if it can be."""
    path = [str(forks.BIN), str(Path(sys.executable).parent), os.environ["PATH"]]
    return {
        **os.environ,
        "PYTHONPATH": f"{forks.SITE}{os.pathsep}{root}",
        "PATH": os.pathsep.join(path),
        forks.PYTHON: sys.executable,
    }


def run(command: list[str], folder: Path, *, root: Path = ROOT) -> str:
    """What `command` printed, run in `folder` with the project at `root`."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(root),
        capture_output=True,
        text=True,
        timeout=570,
    )
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
    return done.stdout
