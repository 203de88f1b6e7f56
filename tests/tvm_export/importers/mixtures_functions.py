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


class Sorted(nn.Module):
    """Rows sorted by expert, split by how many each has, multiplied, and joined again."""

    def __init__(self) -> None:
        super().__init__()
        self.matrices = nn.Parameter(torch.randn(3, 20, 12))
        self.bias = nn.Parameter(torch.randn(20))

    def forward(self, rows: torch.Tensor, expert: torch.Tensor) -> torch.Tensor:
        counted = torch.nn.functional.one_hot(expert, 3).sum(0).tolist()
        parts = torch.split(rows[torch.argsort(expert, stable=True)], counted)
        made = [
            torch.nn.functional.linear(each, matrix, self.bias if index else None)
            for index, (each, matrix) in enumerate(zip(parts, self.matrices, strict=True))
        ]
        return torch.cat(made).relu()


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


def split_error() -> float:
    """The largest difference to PyTorch, of inputs other than those that it is compiled with."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(0)
    model, rows = Sorted().eval(), torch.randn(7, 12)
    first, second = torch.tensor([0, 1, 1, 2, 0, 1, 2]), torch.tensor([2, 0, 2, 0, 2, 0, 0])
    config = ExportConfig(example_input=(rows, first))
    compiled = compile_pytorch_module(model, config, verify=False)
    with torch.inference_mode():
        return max(
            float(abs(compiled(rows, each)[0] - model(rows, each).numpy()).max())
            for each in (first, second)
        )
