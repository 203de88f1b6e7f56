"""CONTRIBUTING.md, followed to the letter in a copy of what it touches."""

import importlib
import re
import shutil
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from tests.pages import ROOT, Block, blocks, page_file, run

PAGE = "CONTRIBUTING.md"


def _section(title: str) -> list[Block]:
    """The blocks that are the steps of the section `title`."""
    text = page_file(PAGE).read_text()
    part = text.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    return [each for each in blocks(PAGE) if each.language != "text" and each.text in part]


def _apply(block: Block, copy: Path) -> None:
    """Put a block where the page says: above `main =`, else at the end of its file."""
    file = copy / block.title
    text = file.read_text() if file.exists() else ""
    before, main, after = text.partition("\nmain =")
    file.write_text(f"{before}{block.text}{main}{after}")


def _follow(title: str, copy: Path) -> list[str]:
    printed = []
    for block in _section(title):
        if block.title:
            _apply(block, copy)
        else:
            assert block.not_run is None
            printed.append(run(["bash", "-euo", "pipefail", "-c", block.text], copy, root=copy))
    return printed


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The repository's files that a contribution touches, with every exercise to do."""
    folder = tmp_path_factory.mktemp("repository")
    ignore = shutil.ignore_patterns("__pycache__")
    for name in ("tvm_practice", "solutions", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", folder)
    yield folder


@pytest.mark.pages
@pytest.mark.slow
def test_an_exercise_is_added(copy: Path) -> None:
    [said] = _follow("An exercise", copy)
    assert "row_sum passes" in said and "failed" not in said, said
    assert re.search(r"\b([5-9]|\d\d+) passed, 1 skipped", said), said  # the learner's own is to do
    assert "te.sum(X[i, j], axis=j)" in said


@pytest.mark.pages
@pytest.mark.slow
def test_a_phase_is_added(copy: Path) -> None:
    said = _follow("A phase", copy)[-1]
    assert "Which reductions may be split?" in said and "failed" not in said, said
    assert re.search(r"\b([5-9]|\d\d+) passed, 1 skipped", said), said
    collect = [sys.executable, "-m", "pytest", "-q", "--collect-only", "-m", "phase6"]
    assert "reductions.largest" in run([*collect, "tests/test_course.py"], copy, root=copy)


@pytest.mark.pages
@pytest.mark.slow
def test_a_model_is_added(copy: Path) -> None:
    [said] = _follow("A model", copy)
    assert re.search(r"verified  on \d+ inputs, largest error", said), said
    text = (copy / "tvm_practice" / "models" / "__init__.py").read_text()
    assert text.count("load_autoencoder") == 2


def test_a_tuners_places_exist() -> None:
    """Each `module:name` of the page is there."""
    places = re.findall(r"`(tvm_practice[\w.]+):(\w+)`", page_file(PAGE).read_text())
    assert len(places) >= 8
    for module, names in groupby(sorted(places), key=lambda place: place[0]):
        found = importlib.import_module(module)
        for _, name in names:
            assert hasattr(found, name), f"{module}:{name}"
    assert (ROOT / "tests" / "test_kill.py").exists()


def test_every_titled_block_names_a_file_of_the_project() -> None:
    folders = {Path(each.title).parts[0] for each in blocks(PAGE) if each.title}
    assert folders <= {"tvm_practice", "solutions", "tests"} and folders
