"""Operators of truth values, called in a process that has the current engine."""

import operator
from typing import Any

import torch
from torch import nn

_OPERATORS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "+": operator.add,
    "*": operator.mul,
    "max": torch.maximum,
    "min": torch.minimum,
}


class Every(nn.Module):
    """Each of the operators, one of them within a longer function, a count and a join."""

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> list[torch.Tensor]:
        plain = [each(a, b) for each in _OPERATORS.values()]
        return [*plain, torch.where(a == b[:1], 1.0, 2.0) * 3, a.cumsum(-1), self.joined(a)]

    def joined(self, a: torch.Tensor) -> torch.Tensor:
        """As a language model's cache grows, from a vector of nothing."""
        return torch.cat([torch.tensor([], dtype=a.dtype), a], -2)


def compared() -> dict[str, bool]:
    """Of each operator, whether it gives what PyTorch does for vectors of bool."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(0)
    inputs: Any = tuple(torch.rand(3, 16) > 0.5 for _ in range(2))
    compiled = compile_pytorch_module(Every(), ExportConfig(example_input=inputs))
    return {
        name: torch.equal(torch.as_tensor(ours), theirs)
        for name, ours, theirs in zip(
            [*_OPERATORS, "where", "cumsum", "joined"],
            compiled(*inputs),
            Every()(*inputs),
            strict=True,
        )
    }
