"""What the loaders share: seeded weights, and normalizations that are not the identity."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn

Loaded = tuple[nn.Module, tuple[torch.Tensor, ...]]

SEED = 0


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draw from `seed` inside the block, on the CPU; the global state is put back after it."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        yield


def randomize_batch_norms(model: nn.Module) -> None:
    """Give every batch normalization statistics and weights that are not 0 and 1.

    A new layer has mean 0, variance 1, scale 1 and shift 0: a compiler that forgot all four would
    pass verification. The ranges keep a deep network's values of order one.
    """
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            assert module.running_mean is not None and module.running_var is not None
            nn.init.normal_(module.running_mean, std=0.2)
            nn.init.uniform_(module.running_var, 1.0, 3.0)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, std=0.2)


def randomize_convolutions(model: nn.Module) -> None:
    """Draw convolutions so that values keep their size from layer to layer (He et al., 2015)."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
