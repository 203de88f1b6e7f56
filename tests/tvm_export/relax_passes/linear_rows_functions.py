"""Functions that the tests of linear rows call in a child process, on the current engine."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

_LAYER = nn.Linear(24, 32)
_BACK = nn.Linear(32, 24)
_SHAPE = (3, 5, 24)
_PER_SEQUENCE = torch.randn(3, 1, 1)
_PER_ROW = torch.randn(5, 1)
_PER_COLUMN = torch.randn(1, 1, 32)

_FORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "activation": lambda x: nn.functional.gelu(_LAYER(x)).transpose(0, 1),
    "residual": lambda x: (x + _BACK(x.repeat(1, 1, 2)[..., :32])).transpose(0, 1),
    "constant first": lambda x: (2 - _LAYER(x)).transpose(0, 1),
    "scale per column": lambda x: (_LAYER(x) * _PER_COLUMN).transpose(0, 1),
    "scale per sequence": lambda x: (_LAYER(x) * _PER_SEQUENCE).transpose(0, 1),
    "scale per row": lambda x: (_LAYER(x) * _PER_ROW).transpose(0, 1),
    "two layers": lambda x: (_LAYER(x) * torch.sigmoid(_LAYER(x + 1))).transpose(0, 1),
    "next layer": lambda x: _BACK(torch.tanh(_LAYER(x))),
    "more axes than the layer": lambda x: _LAYER(x) + torch.ones(2, 3, 5, 32),
    "both forms read": lambda x: torch.relu(_LAYER(x)).flatten(1) + _LAYER(x).flatten(1),
}


class _Model(nn.Module):
    def __init__(self, forward: Callable[[torch.Tensor], torch.Tensor]):
        super().__init__()
        self.layers = nn.ModuleList([_LAYER, _BACK])
        self._forward = forward

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self._forward(x)


def forms() -> dict[str, Any]:
    """By form: the names of the model's functions, and its largest error."""
    import numpy as np
    import tvm

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    found = {}
    for name, forward in _FORMS.items():
        x = torch.randn(_SHAPE)
        model = _Model(forward).eval()
        built = compile_pytorch_module(model, ExportConfig(example_input=(x,)), verify=False)
        [output] = built(x.numpy())
        with torch.inference_mode():
            expected = model(x).numpy()
        found[name] = {
            "functions": [
                str(each.name_hint)
                for each, function in built.scheduled.functions_items()
                if isinstance(function, tvm.tirx.PrimFunc)
            ],
            "error": float(np.abs(output - expected).max()),
            "shape": list(output.shape) == list(expected.shape),
        }
    return found
