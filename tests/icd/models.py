"""Factories that the tests of the runner name, good and bad."""

import sys
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

Loaded = tuple[nn.Module, Any]


class ConvNet(nn.Module):
    """A convolution, its batch normalization, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.norm = nn.BatchNorm2d(8)
        self.fc = nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.norm(self.conv(x)))
        logits: torch.Tensor = self.fc(y.mean((2, 3)))
        return logits


def small() -> Loaded:
    return nn.Linear(6, 4), torch.randn(3, 6)


def without_inputs() -> nn.Module:
    return nn.Linear(6, 4)


def conv() -> Loaded:
    model = ConvNet()
    nn.init.normal_(model.norm.weight, 1.0, 0.2)
    assert model.norm.running_mean is not None
    nn.init.normal_(model.norm.running_mean, std=0.5)
    return model, (torch.randn(2, 3, 9, 11),)


class Branching(ConvNet):
    """Python control flow on a value, which torch.fx cannot trace."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x if x.sum() > 0 else -x)


def branching() -> Loaded:
    return Branching(), torch.randn(1, 3, 7, 7)


class Named(nn.Module):
    """Inputs by name; outputs in a dataclass, a dictionary and a tuple."""

    @dataclass
    class Result:
        scores: torch.Tensor
        parts: dict[str, tuple[torch.Tensor, ...]]
        label: str = "a text is no tensor"

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(2, 4)

    def forward(self, ids: torch.Tensor, scale: torch.Tensor) -> "Named.Result":
        rows = self.table(ids) * scale
        return self.Result(rows.sum(-1), {"first": (rows[0], rows[1])})


def named() -> Loaded:
    return Named(), {"ids": torch.tensor([0, 1, 1]), "scale": torch.tensor(2.0)}


class InPlace(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.add_(1)


def in_place() -> Loaded:
    return InPlace(), torch.zeros(4)


class NotFinite(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.log(x)


def not_finite() -> Loaded:
    return NotFinite(), torch.tensor([-1.0, 1.0])


class Forgetful(nn.Module):
    def forward(self, x: torch.Tensor) -> None:
        return None


def returns_none_from_forward() -> Loaded:
    return Forgetful(), torch.randn(2)


def on_meta() -> Loaded:
    return nn.Linear(6, 4, device="meta"), torch.randn(3, 6)


def drops_out() -> Loaded:
    return nn.Sequential(nn.Linear(6, 4), nn.Dropout(0.9)).train(), torch.randn(3, 6)


def wrong_shape() -> Loaded:
    return nn.Linear(6, 4), torch.randn(3, 7)


def returns_none() -> None:
    return None


def returns_text() -> str:
    return "resnet18"


def returns_three() -> tuple[Any, ...]:
    return nn.Linear(6, 4), torch.randn(3, 6), 3


def sparse() -> Loaded:
    return nn.Linear(8, 4), torch.eye(8).to_sparse()


def lazy() -> Loaded:
    return nn.Sequential(nn.LazyLinear(4)), torch.ones(2, 8)


def writes_on_the_terminal() -> nn.Module:
    raise ValueError("\x1b[31mred\x1b[0m")


def raises() -> nn.Module:
    raise RuntimeError("no checkpoint.pth here\nand a second line")


def exits() -> nn.Module:
    sys.exit(0)


def needs_an_argument(path: str) -> nn.Module:
    return nn.Linear(len(path), 1)


not_a_function = 3


def unrepeatable() -> Loaded:
    """Another model at each call, whatever the seed."""
    generator = torch.Generator()
    generator.seed()
    layer = nn.Linear(6, 4)
    nn.init.normal_(layer.weight, generator=generator)
    return layer, torch.randn(3, 6, generator=generator)


def within_a_function() -> Loaded:
    """A model of a class that cannot be pickled."""

    class Inner(nn.Linear):
        pass

    return Inner(6, 4), torch.randn(3, 6)
