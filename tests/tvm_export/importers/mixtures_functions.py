"""Parts of mixtures of experts, in a process that has the current engine."""

import torch
from torch import library, nn


@library.custom_op("tvm_practice_mixtures::grouped_mm_fallback", mutates_args=())
def grouped_mm_fallback(
    rows: torch.Tensor, matrices: torch.Tensor, ends: torch.Tensor
) -> torch.Tensor:
    """Each group of rows times its matrix, as transformers defines its operator."""
    out, start = rows.new_zeros(len(rows), matrices.shape[2]), 0
    for matrix, end in zip(matrices, ends.tolist(), strict=True):
        out[start:end] = rows[start:end] @ matrix
        start = end
    return out


@grouped_mm_fallback.register_fake
def _(rows: torch.Tensor, matrices: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return rows.new_empty(len(rows), matrices.shape[2])


class Experts(nn.Module):
    """Rows go to the expert that each names; further rows, of no expert, are zero."""

    def __init__(self) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.randn(4, 12, 20))

    def forward(self, rows: torch.Tensor, expert: torch.Tensor) -> list[torch.Tensor]:
        counted = torch.histc(expert.float(), bins=4, min=0, max=3)
        ends = torch.cumsum(counted, 0, dtype=torch.int32)
        spread = torch.histc(rows, bins=5, min=-1.0, max=1.5)
        return [counted, spread, grouped_mm_fallback(rows, self.matrices, ends), rows.select(1, -2)]


def errors() -> list[float]:
    """Of each output, the largest difference to PyTorch: expert 1 has no row, 4 is none."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(0)
    model = Experts().eval()
    inputs = torch.randn(7, 12), torch.tensor([0, 0, 0, 2, 3, 3, 4])
    inputs[0][0, :3] = torch.tensor([-1.0, 1.5, 1.0])  # on the bounds of parts
    compiled = compile_pytorch_module(model, ExportConfig(example_input=inputs), verify=False)
    with torch.inference_mode():
        expected = model(*inputs)
    return [
        float(abs(got - want.numpy()).max())
        for got, want in zip(compiled(*inputs), expected, strict=True)
    ]
