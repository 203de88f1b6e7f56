"""Functions that the tests of batches taken apart call in a child process of the current engine."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn


class _Block(nn.Module):
    """A pointwise, a depthwise and a pointwise convolution, around them a residual connection."""

    def __init__(self, channels: int):
        super().__init__()
        wide = 3 * channels
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, padding=1, groups=wide, bias=False), nn.BatchNorm2d(wide),
            nn.Hardswish(), nn.Conv2d(wide, channels, 1), nn.BatchNorm2d(channels),
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = x + self.layers(x)
        return y


class _Apart(nn.Module):
    """A small network: blocks, joined branches, squeezed and excited channels, a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, stride=2, padding=1)
        self.blocks = nn.Sequential(_Block(8), nn.MaxPool2d(2), _Block(8))
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 8, 1), nn.Sigmoid())
        self.last = nn.Linear(16, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.blocks(self.first(x))
        joined = torch.cat([y * self.gate(y), torch.tanh(y)], 1)
        classes: torch.Tensor = self.last(joined.mean((2, 3)).flatten(1)).softmax(-1)
        return classes


class _Then(nn.Module):
    """A convolution, and what is made of it."""

    def __init__(self, forward: Callable[[torch.Tensor], Any]):
        super().__init__()
        self.conv, self.then = nn.Conv2d(3, 8, 3), forward

    def forward(self, x: torch.Tensor) -> Any:
        return self.then(self.conv(x))


_TOGETHER: dict[str, Callable[[torch.Tensor], Any]] = {
    "mean of the batch": lambda y: y - y.mean(0),
    "softmax over the batch": lambda y: y.softmax(0),
    "another example": lambda y: y + y.flip(0),
    "batch as channels": lambda y: y.reshape(1, -1, 10, 10),
    "batch as columns": lambda y: y.flatten(1) @ y.flatten(1).T,
    "joined along the batch": lambda y: torch.cat([y, y]),
    "one number for each": lambda y: y * torch.arange(1.0, 4.0).reshape(3, 1, 1, 1),
    "two results": lambda y: (y, y + 1),
    "batch in another place": lambda y: y.transpose(0, 1),
}


def apart() -> dict[str, Any]:
    """How a model that can be taken apart is built, and what it computes."""
    import numpy as np

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.relax_passes import one_at_a_time

    one_at_a_time._LARGE = 0
    torch.manual_seed(0)
    model, x = _Apart(), torch.randn(3, 3, 24, 24)
    model(x)  # batch normalization learns
    model.eval()
    built = compile_pytorch_module(model, ExportConfig(example_input=(x,)))
    [output] = built(x.numpy())
    graph = built.graph_json
    return {
        "error": float(np.abs(output - model(x).detach().numpy()).max()),
        "examples": "example" in graph,
        "weights": built.weight_bytes,
    }


def together() -> dict[str, int]:
    """How many examples at a time are computed of models that mix them."""
    import torch

    from tvm_practice.tvm_export.relax_passes import one_at_a_time
    from tvm_practice.tvm_export.relax_passes.batch_normalization import fold_batch_normalization
    from tvm_practice.tvm_export.steps.relax import import_relax

    one_at_a_time._LARGE, one_at_a_time._FEW = 0, math.inf  # type: ignore[assignment]
    found = {}
    for name, then in {"nothing": lambda y: y, **_TOGETHER}.items():
        module = import_relax(_Then(then).eval(), (torch.randn(3, 3, 12, 12),))
        found[name] = one_at_a_time.apart(fold_batch_normalization(module))
    return found
