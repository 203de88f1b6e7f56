"""Models in files that PyTorch wrote."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch

from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.example_inputs import ExampleTensor
from tvm_practice.tvm_export.loading import load


@pytest.fixture
def model() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU()).eval()


def test_an_exported_program_brings_its_inputs(model: torch.nn.Module, tmp_path: Path) -> None:
    example = torch.randn(2, 4)
    torch.export.save(torch.export.export(model, (example,)), tmp_path / "model.pt2")
    loaded = load(str(tmp_path / "model.pt2"), example=None, seed=0)
    assert torch.equal(loaded.args[0], example)
    torch.testing.assert_close(loaded.outputs[0], model(example))


def test_torch_script_takes_a_shape(model: torch.nn.Module, tmp_path: Path) -> None:
    file = tmp_path / "model.pt"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that TorchScript is old
        script: Any = torch.jit.script(model)
    script.save(str(file))
    with pytest.raises(BadInput, match="has no example inputs; give --example-shape"):
        load(str(file), example=None, seed=0)
    loaded = load(str(file), example=[ExampleTensor(shape=[5, 4])], seed=0)
    torch.testing.assert_close(loaded.outputs[0], model(*loaded.args))


@pytest.mark.parametrize(
    ("name", "message"),
    [("weights.pt", "holds no TorchScript; weights need"), ("weights.pt2", "holds no program of")],
)
def test_weights_are_no_program(
    model: torch.nn.Module, tmp_path: Path, name: str, message: str
) -> None:
    torch.save(model.state_dict(), tmp_path / name)
    with pytest.raises(BadInput, match=message):
        load(str(tmp_path / name), example=None, seed=0)
