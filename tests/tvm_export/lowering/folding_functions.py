"""Differences and comparisons of rounded numbers, called in a process of the current engine."""

import itertools
import math

import numpy as np
import torch
from torch import nn

_FORMS = {
    "x - x, of a sum": "(x + 1) - (x + 1)",
    "x - x, times y": "(x - x) * y",
    "x - x, rounded": "torch.floor(x) - torch.floor(x)",
    "x - x, of views": "x.reshape(7, 7).reshape(49) - x",
    "choices": "torch.where(x < y, x, y) - torch.where(x < y, y.abs(), y)",
    "x + y - y": "(x + y) - y",
    "x + y - x": "(x + y) - x",
    "rounded by a large number": "(x + large) - large",
    "x == x, chosen by": "torch.where(x == x, x, y)",
    "x == x, as a number": "(x == x).to(x.dtype) * 2",
    "x == x, of a sum": "torch.where((x + 1) == (x + 1), x, y)",
    "not x == x": "torch.where(torch.logical_not(x == x), y, x)",
    "not x < y": "torch.logical_not(x < y)",
    "not (x < y and y < 1)": "torch.logical_not(torch.logical_and(x < y, y < 1))",
    "x < y or x >= y": "torch.logical_or(x < y, x >= y)",
    "isnan": "torch.where(torch.isnan(x), y, x)",
    "floor_divide": "torch.floor_divide(x, y)",
    "divided to the floor": "torch.div(x, y, rounding_mode='floor')",
    "remainder": "torch.remainder(x, y)",
    "fmod by a tenth": "torch.fmod(x, 0.1)",
}
_VALUES = (math.inf, -math.inf, math.nan, 0.0, -0.5, 1.5, -2.0)
# TVM keeps sums of bfloat16 in float32 on the way through a function.
_LARGE = {torch.float32: 1e8, torch.float64: 1e16, torch.float16: 3000.0, torch.bfloat16: 0.0}


class Forms(nn.Module):
    """Each of the forms, of x and y."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.large = _LARGE[dtype]

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> list[torch.Tensor]:
        names = {"torch": torch, "x": x, "y": y, "large": self.large}
        return [eval(each, names) for each in _FORMS.values()]


def differing(dtype: str) -> list[str]:
    """The forms that are not as in PyTorch, of numbers, infinities and NaN of a type."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.calling import as_array

    kind = getattr(torch, dtype)
    pairs = zip(*itertools.product(_VALUES, _VALUES), strict=True)
    inputs = tuple(torch.tensor(each, dtype=kind) for each in pairs)
    model = Forms(kind)
    compiled = compile_pytorch_module(model, ExportConfig(example_input=inputs), verify=False)
    expected = [as_array(each) for each in model(*inputs)]

    def same(ours: np.ndarray, theirs: np.ndarray) -> bool:
        wide = ours.astype("float64"), theirs.astype("float64")
        return ours.dtype == theirs.dtype and np.array_equal(wide[0], wide[1], equal_nan=True)

    pairs_of_outputs = zip(_FORMS, compiled(*inputs), expected, strict=True)
    return [name for name, ours, theirs in pairs_of_outputs if not same(ours, theirs)]
