"""The rooms' order, as pyproject.toml has it: `make lint` keeps it, and it can fail."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LAYOUT = ROOT / "docs" / "layout.md"
PACKAGES = ("tvm_practice", "solutions")


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the packages in `folder`."""
    return subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The packages' Python files and the contracts."""
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_no_import_is_excepted() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout
    assert "ignore_imports" not in (ROOT / "pyproject.toml").read_text()


@pytest.mark.parametrize(
    ("module", "line", "broken"),
    [
        ("tvm_export/errors.py", "import tvm_practice.course.expect", "stands without the course"),
        ("bench.py", "def late():\n    import solutions.te_basics", "stands without the course"),
        ("tvm_export/errors.py", "from tvm_practice.viz import drawing", "point one way"),
        ("measure/threads.py", "from tvm_practice import models", "imports nothing"),
        ("tvm_export/errors.py", "from tvm_practice.tvm_export import loading", "No circle"),
        ("somewhere_new.py", "", "not listed as layers"),
    ],
)
def test_a_wrong_import_is_refused(copy: Path, module: str, line: str, broken: str) -> None:
    file = copy / "tvm_practice" / module
    file.write_text((file.read_text() if file.exists() else "") + f"\n{line}\n")
    done = lint_imports(copy)
    assert done.returncode == 1
    contracts = done.stdout.partition("Broken contracts")[2]
    assert broken in contracts, done.stdout


def test_the_picture_is_of_these_contracts() -> None:
    draw = [sys.executable, str(ROOT / "scripts" / "draw-layout"), "--check"]
    done = subprocess.run(draw, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_page_names_files_that_are_there() -> None:
    named = set(re.findall(r"`((?:tvm_practice|tests|benchmarks)/[\w/.]*)`", LAYOUT.read_text()))
    assert len(named) > 10
    assert {each for each in named if not (ROOT / each).exists()} == set()
