"""The built wheel in an environment of its own: the product needs neither this tree nor the course.

The folder it is used in has a `solutions/` and a `tests/` of the person's, which raise when they
are imported, and their model.
"""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = [pytest.mark.pages, pytest.mark.slow]

_MODEL = """
import torch
from torch import nn


def load():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4)), torch.randn(2, 16)
"""
_ONNX = """
import sys

import torch
from models import load

model, example = load()
torch.onnx.export(model.eval(), (example,), sys.argv[1], dynamo=True, verbose=False)
"""


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the wheel; other packages are read from this one's."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"  # a copy: setuptools leaves a build folder behind
    source.mkdir()
    for package in ("tvm_practice", "solutions"):
        shutil.copytree(
            ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__")
        )
    for file in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / file, source)
    pip = [sys.executable, "-m", "pip", "--quiet"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder)]
    subprocess.run([*build, str(source)], check=True, timeout=300)
    [wheel] = folder.glob("*.whl")
    environment = folder / "environment"
    venv.create(environment, with_pip=False)
    found = environment / "bin" / "python"
    install = [*pip, "--python", str(found), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(install, check=True, timeout=300)
    # As a plain folder: its .pth files, an editable install of this tree among them, are not read.
    [packages] = environment.glob("lib/python*/site-packages")
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A person's folder."""
    made = tmp_path_factory.mktemp("persons")
    (made / "models.py").write_text(_MODEL)
    (made / "to_onnx.py").write_text(_ONNX)
    for package in ("solutions", "tests"):
        (made / package).mkdir()
        (made / package / "__init__.py").write_text(f"raise RuntimeError('my own {package}')\n")
    return made


def run(python: Path, folder: Path, *words: str) -> str:
    """What a command prints; it must succeed."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(python), *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_is_the_wheel_that_runs(python: Path, folder: Path) -> None:
    where = run(python, folder, "-c", "import tvm_practice; print(tvm_practice.__file__)")
    assert Path(where.strip()).is_relative_to(python.parent.parent)


def test_a_model_is_exported(python: Path, folder: Path) -> None:
    words = ["-m", "tvm_practice.run_autotvm", "models:load", "--artifacts", "out"]
    [result] = json.loads(run(python, folder, *words, "--measure-repeats", "20", "--json"))
    assert result["status"] == "ok" and result["verification"]["verified"]


def test_a_model_is_compared(python: Path, folder: Path) -> None:
    words = ["-m", "tvm_practice.bench", "models:load", "--only", "relax", "--only", "onnx"]
    report: dict[str, Any] = json.loads(run(python, folder, *words, "--json"))
    assert {row["name"]: row["status"] for row in report["rows"]} == {
        "eager": "ok", "onnx": "ok", "relax": "ok"
    }  # fmt: skip


def test_an_onnx_file_is_compiled(python: Path, folder: Path) -> None:
    run(python, folder, "to_onnx.py", "model.onnx")
    words = ["-m", "tvm_practice.compile_onnx", "model.onnx", "--out", "compiled", "--json"]
    assert json.loads(run(python, folder, *words))["check"]["status"] == "ok"
