"""`run_autotvm` on a person's own model, and what it says to mistakes."""

import json
from pathlib import Path

import pytest

from tests.test_command_lines import run

MODULE = """
import torch

def load_convolution():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten())

def load_nan():
    class Nan(torch.nn.Module):
        def forward(self, x):
            return x * float("nan")
    return Nan(), torch.ones(2, 2)

def raises():
    raise RuntimeError("no checkpoint here")

def nothing():
    return None
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mymodule.py").write_text(MODULE)
    return tmp_path


SHORT = ("--measure-repeats", "5", "--measure-warmup", "1")


@pytest.mark.slow
def test_an_own_model_is_exported_and_verified(folder: Path) -> None:
    shape = ("--example-shape", "1", "3", "16", "16")
    done = run("run_autotvm", "mymodule:load_convolution", *shape, *SHORT, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified" in done.stdout
    metadata = json.loads((folder / "runs/tvm/load_convolution/metadata.json").read_text())
    assert metadata["verification"]["verified"] and metadata["latency"]["count"] == 5


@pytest.mark.slow
def test_several_targets_have_a_folder_each(folder: Path) -> None:
    targets = ("--target", "llvm", "--target", "llvm -mcpu=core-avx2")
    done = run(
        "run_autotvm", "tvm_practice.models:load_mlp", *targets, *SHORT, "--json", folder=folder
    )
    assert done.returncode == 0, done.stdout + done.stderr
    first, second = json.loads(done.stdout)
    assert first["artifacts"] != second["artifacts"] and "core-avx2" in second["target"]


@pytest.mark.slow
def test_wrong_outputs_are_said_and_are_a_failure(folder: Path) -> None:
    done = run("run_autotvm", "mymodule:load_nan", *SHORT, folder=folder)
    assert done.returncode == 1 and "WRONG" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["mymodul:load_convolution"], "did you mean mymodule?"),
        (["mymodule:load_convolutions"], "did you mean load_convolution?"),
        (["mymodule:raises"], "no checkpoint here"),
        (["mymodule:nothing"], "returned None"),
        (["mymodule:load_convolution"], "returned no example inputs"),
        (["mymodule:load_convolution", "--example-shape", "1", "4", "16", "16"], "refuses"),
        (["mymodule:load_nan", "--example-shape", "1x"], "'1x'"),
        (["mymodule:load_nan", "--example-shape", "0"], "positive whole numbers"),
        (["mymodule:load_nan", "--example-shape", "2", "2", "--example-dtype", "int3"], "dtype"),
        (["mymodule:load_nan", "--use-ansor", "--tuner", "metaschedule"], "contradicts"),
        (["mymodule:load_nan", "--tuning-trials", "-1"], "--tuning-trials"),
        (["mymodule:load_nan", "--tuner", "grid"], "--tuner"),
    ],
)
def test_a_mistake_is_one_line_and_exit_2(arguments: list[str], message: str, folder: Path) -> None:
    done = run("run_autotvm", *arguments, folder=folder)
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr and "Traceback" not in done.stderr
    assert not (folder / "runs").exists()


def test_an_unknown_target_is_named(folder: Path) -> None:
    done = run("run_autotvm", "mymodule:load_nan", "--target", "llvm -mcpux=1", folder=folder)
    assert done.returncode != 0 and "mcpux" in done.stderr and "Traceback" not in done.stderr
