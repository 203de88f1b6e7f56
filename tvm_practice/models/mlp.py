"""A multilayer perceptron."""

import itertools

import torch
from torch import nn

from tvm_practice.models.seeding import SEED, Loaded, seeded


class MLP(nn.Module):
    """Linear layers with ReLU between them: (batch, sizes[0]) to (batch, sizes[-1])."""

    def __init__(self, sizes: tuple[int, ...]):
        super().__init__()
        layers: list[nn.Module] = []
        for inputs, outputs in itertools.pairwise(sizes):
            layers += [nn.Linear(inputs, outputs), nn.ReLU()]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layers(x)
        return logits


def load_mlp(*, batch: int = 32, seed: int = SEED) -> Loaded:
    """MLP 784-512-256-10 (0.54 M parameters) and an input of shape (batch, 784)."""
    with seeded(seed):
        return MLP((784, 512, 256, 10)).eval(), (torch.randn(batch, 784),)
