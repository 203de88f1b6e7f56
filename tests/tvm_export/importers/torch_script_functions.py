"""TorchScript models, in a process that has an engine."""

import warnings
from typing import Any

import torch
from torch import nn


class _Branches(nn.Module):
    """A branch and a loop that do not depend on values."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(x).mean((2, 3))
        if y.shape[1] > 1:
            y = y * 2
        for step in range(3):
            y = y + step
        return y


class _Pair(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(8, 16, batch_first=True)

    def forward(self, x: torch.Tensor, shift: torch.Tensor) -> Any:
        outputs, (state, _) = self.layer(x + shift)
        return outputs, state


class _Outer(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.again = inner  # another name for it
        self.layer = nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.layer(self.inner(x) + self.again(-x))
        return y


class _Twice(nn.Module):
    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.first = part
        self.second = part

    def forward(self, x: torch.Tensor) -> Any:
        return self.first(x), self.second(x * 2)


def _models() -> dict[str, tuple[nn.Module, Any]]:
    torch.manual_seed(0)
    image, rows, shift = torch.randn(2, 3, 8, 8), torch.randn(1, 5, 8), torch.randn(1, 5, 8)
    branches, pair = _Branches().eval(), _Pair().eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that TorchScript is old
        scripted: Any = torch.jit.script(branches)
        return {
            "traced": (torch.jit.trace(branches, image), image),  # type: ignore[no-untyped-call]
            "traced, one tensor for two inputs": (
                torch.jit.trace(pair, (rows, shift)),  # type: ignore[no-untyped-call]
                (rows, rows),
            ),
            "scripted": (scripted, image),
            "in another model, twice": (_Outer(scripted).eval(), image),
            "in a part with two names": (_Twice(_Outer(scripted)).eval(), image),
        }


def verified(engine: Any) -> list[str]:
    """The models that were exported; a difference to PyTorch raises NotVerified."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    found = []
    for name, (model, example) in _models().items():
        children = dict(model.named_children())
        compile_pytorch_module(model, ExportConfig(example_input=example, engine=engine))
        assert dict(model.named_children()) == children, "the model is as it was"
        found.append(name)
    return found


def refused() -> str:
    """What is said of a branch that the converter does not know."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.errors import BadInput

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: Any = torch.jit.script(_Pair())
    example = torch.ones(1, 5, 8), torch.ones(1, 5, 8)
    try:
        compile_pytorch_module(model, ExportConfig(example_input=example))
    except BadInput as error:
        return str(error)
    return "nothing"
