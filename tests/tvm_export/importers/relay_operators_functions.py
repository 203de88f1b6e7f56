"""Functions that test_relay_operators.py calls in a child process, on the classic engine."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

X = torch.arange(8.0).reshape(2, 4) - 3


def _slices(x: torch.Tensor) -> torch.Tensor:
    made = torch.ones(2, 4)
    made[:, 2:] = 0
    made[:, 0] += x[:, 1]
    return made * x


def _columns(x: torch.Tensor) -> torch.Tensor:
    made = x.clone()
    made[:, 0] = x[:, 1] * 2
    made.view(-1)[3] = 7
    return made


def _through_a_view(x: torch.Tensor) -> torch.Tensor:
    made = x * 2
    F.relu(made.view(-1), inplace=True)
    return made


def _under_a_view(x: torch.Tensor) -> torch.Tensor:
    made = x * 2
    flat = made.view(-1)
    made.add_(1)
    return flat


def _through_rows(x: torch.Tensor) -> torch.Tensor:
    made = x * 1
    first, _ = made.unbind(0)
    first.mul_(3)
    return made


def _under_a_view_that_is_done(x: torch.Tensor) -> torch.Tensor:
    made = x * 2
    total = made.view(-1).sum()
    return made.add_(1) * total


MODELS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "slices": _slices,
    "columns": _columns,
    "through a view": _through_a_view,
    "under a view": _under_a_view,
    "through rows": _through_rows,
    "under a view that is done": _under_a_view_that_is_done,
    "hypot": lambda x: torch.hypot(x, x + 1),
    "addr": lambda x: torch.addr(x, x[:, 0], x[0], beta=2, alpha=3),
    "tensordot": lambda x: torch.tensordot(x, x, dims=([1], [1])),
    "acosh": lambda x: torch.acosh(x + 5),
    "whole numbers": lambda x: torch.asinh(x.long()),
    "hinge": lambda x: F.hinge_embedding_loss(x, torch.sign(x)),
    "scattered": lambda x: x.masked_scatter(x > 0, -x),
    "sampled": lambda x: F.grid_sample(
        x.reshape(1, 1, 2, 4), x.reshape(1, 2, 2, 2) / 3, align_corners=True
    ),
    "zeta": lambda x: torch.special.zeta(x, x),
    "erfinv": lambda x: torch.erfinv(x / 8),
    "second output": lambda x: F.adaptive_max_pool1d(x, 2, return_indices=True)[1],
    "dropout": lambda x: F.dropout(x, 0.5, training=True),
    "dropout in place": lambda x: F.dropout(x + 1, 0.5, training=True, inplace=True),
    "no dropout in place": lambda x: F.dropout(x.flatten(), 0.5, training=False, inplace=True),
    "no dropout": lambda x: F.dropout(x, 0.0, training=True) + F.dropout(x, training=False),
    "empty part": lambda x: torch.split(x, [1, 3, 0], 1),  # type: ignore[dict-item,return-value]
}


def compiled(name: str) -> dict[str, object]:
    """A model compiled and verified against PyTorch; what refuses it, in a line, if it is."""
    from tvm_practice.engines import PlainError
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return MODELS[name](x)

    try:
        config = ExportConfig(example_input=(X,), engine="classic")
        [got] = compile_pytorch_module(Model(), config)(X)
    except PlainError as error:
        return {"refused": str(error)}
    return {"refused": "", "far": float((torch.as_tensor(got) - MODELS[name](X)).abs().max())}


def refused_by_a_converter() -> str:
    """The line that tells of a converter that fails."""
    from tvm_practice.engines import PlainError
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.sin(x)

    def failing(inputs: Any, types: Any) -> Any:
        raise ValueError("no sine")

    try:
        converters = {"aten::sin": failing}
        config = ExportConfig(example_input=(X,), engine="classic", converters=converters)
        compile_pytorch_module(Model(), config)
    except PlainError as error:
        return str(error)
    return ""
