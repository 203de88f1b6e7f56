"""Models with flex_attention, in a process that has the current engine."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

_ROWS, _TOKENS = 37, 29
_SHAPES: list[tuple[int, ...]] = [(2, 4, _ROWS, 16), (2, 4, _TOKENS, 16), (2, 4, _TOKENS, 24)]


class _Model(nn.Module):
    def __init__(self, attention: Callable[..., Any]):
        super().__init__()
        self._attention = attention
        self.bias = nn.Parameter(torch.randn(4))
        self.register_buffer("document", torch.arange(_ROWS) // 10)

    def forward(self, *tensors: torch.Tensor) -> Any:
        return self._attention(self, *tensors)


def _biased(model: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    return flex_attention(q, k, v, lambda s, b, h, i, j: s + model.bias[h] * (i - j))


def _capped(_: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    def capped(s: Any, b: Any, h: Any, i: Any, j: Any) -> Any:
        return torch.where(j % 5 == 0, -torch.inf, 3 * torch.tanh(s / 3))

    return flex_attention(q, k, v, capped, scale=0.5)


def _documents(model: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    def sees(b: Any, h: Any, i: Any, j: Any) -> Any:  # the first rows see nothing
        return (model.document[i] == model.document[j]) & (i > j + b)

    mask = create_block_mask(sees, q.shape[0], None, _ROWS, _TOKENS, device="cpu")
    output, total = flex_attention(q, k, v, block_mask=mask, return_lse=True)
    return output, total


def _shared(_: Any, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> Any:
    return flex_attention(q, k, v, enable_gqa=True)


_FORMS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "a bias by head": (_biased, _SHAPES),
    "scores of infinity": (_capped, _SHAPES),
    "documents": (_documents, _SHAPES),
    "keys of several heads": (_shared, [_SHAPES[0], (2, 2, _TOKENS, 16), (2, 2, _TOKENS, 24)]),
}


def errors() -> dict[str, float]:
    """By form, the largest difference to PyTorch; infinities must be the same."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    found = {}
    for name, (attention, shapes) in _FORMS.items():
        torch.manual_seed(0)
        example, model = tuple(torch.randn(each) for each in shapes), _Model(attention).eval()
        built = compile_pytorch_module(model, ExportConfig(example_input=example), verify=False)
        outputs = [torch.as_tensor(each) for each in built(*(each.numpy() for each in example))]
        with torch.no_grad():
            expected = model(*example)
        expected = expected if isinstance(expected, tuple) else (expected,)
        differences = [
            torch.where(output == one, 0, (output - one).abs()).max()
            for output, one in zip(outputs, expected, strict=True)
        ]
        found[name] = max(map(float, differences))
    return found
