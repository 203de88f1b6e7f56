"""Called in a process that holds current TVM."""

import torch
from torch import nn


class _Chosen(nn.Module):
    """Indices of some operators that leave the order of equal elements open."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        number = x.float()
        return (
            torch.sort(x).indices,
            torch.argsort(number, dim=0, descending=True),
            torch.sort(x > 1).indices,
            torch.topk(number, 5).indices,
            torch.kthvalue(number, 3).indices,
            torch.mode(number).indices,
        )


def refused() -> dict[str, str]:
    """What verification refuses of a model's outputs."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    x = torch.randint(0, 4, (64, 64), generator=torch.Generator().manual_seed(0))
    try:
        compile_pytorch_module(_Chosen().eval(), ExportConfig(example_input=x, engine="current"))
    except ValueError as wrong:
        return {"all": str(wrong)}
    return {}
