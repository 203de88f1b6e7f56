"""Functions that the tests of batched products call in a child process, on the current engine."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

_WEIGHT = torch.randn(24, 32)
_OTHERS = torch.randn(5, 1, 24, 32)

_Form = tuple[Callable[..., torch.Tensor], tuple[int, ...]]
_FORMS: dict[str, _Form] = {
    "linear layer": (lambda x: nn.functional.linear(x.mT, _WEIGHT.mT), (5, 24, 7)),
    "four axes": (lambda x: x.transpose(1, 2) @ _WEIGHT, (3, 7, 5, 24)),
    "first operand": (lambda x: torch.bmm(_WEIGHT.T.expand(5, 32, 24), x), (5, 24, 7)),
    "both repeated": (
        lambda x: torch.bmm(x.expand(5, 7, 24), _WEIGHT.expand(5, 24, 32)),
        (7, 24),
    ),
    "a matrix each of some": (
        lambda x: torch.bmm(x, _OTHERS.expand(5, 2, 24, 32).reshape(10, 24, 32)),
        (10, 7, 24),
    ),
    "one row repeated": (lambda x: torch.bmm(x, _WEIGHT[:1].expand(5, 24, 32)), (5, 7, 24)),
}


class _Product(nn.Module):
    def __init__(self, forward: Callable[..., torch.Tensor]):
        super().__init__()
        self._forward = forward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._forward(x)


def forms() -> dict[str, Any]:
    """By form of product: the bytes of the constants, and its largest error."""
    import numpy as np

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    found = {}
    for name, (forward, shape) in _FORMS.items():
        x = torch.randn(shape)
        model = _Product(forward)
        built = compile_pytorch_module(model, ExportConfig(example_input=(x,)), verify=False)
        [output] = built(x.numpy())
        found[name] = {
            "weights": built.weight_bytes,
            "error": float(np.abs(output - model(x).numpy()).max()),
        }
    return found
