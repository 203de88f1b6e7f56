"""Functions that the tests of division checks call in a child process, on the current engine."""

from pathlib import Path
from typing import Any

import torch

DTYPES = ("int64", "int32", "int8", "uint8")


class Divisions(torch.nn.Module):
    """Every division of whole numbers that PyTorch has."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return (
            torch.div(x, y, rounding_mode="floor"),
            torch.remainder(x, y),
            torch.fmod(x, y),
            7 // y,
            torch.remainder(x, y * 2 + 1),
        )


class Truncated(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.div(x, y.abs(), rounding_mode="trunc")


def divided(folder: str) -> dict[str, Any]:
    """By type: whether values are PyTorch's, and the errors of a divisor that is 0."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module, export_artifacts
    from tvm_practice.tvm_export.artifacts import load_artifacts

    found: dict[str, Any] = {}
    for name in DTYPES:
        dtype = getattr(torch, name)
        least, most = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        x = torch.tensor([[least, most, 5, 0], [least, 7, 100, 3]], dtype=dtype)
        y = torch.tensor([[-1 if least else 3, 1, 2, most], [3, 4, 5, 6]], dtype=dtype)
        shapes: dict[str, tuple[int | str, ...]] = {"x": ("n", 4), "y": ("n", 4)}
        config = ExportConfig(example_input=(x, y), input_shapes=shapes)
        built = compile_pytorch_module(Divisions(), config)
        path = export_artifacts(built, Path(folder) / name)
        again = load_artifacts(path)
        want = Divisions()(x, y)
        same = all(
            torch.equal(torch.from_numpy(got), right)
            for got, right in zip(again(x, y), want, strict=True)
        )
        zero = y.clone()
        zero[1, 2] = 0
        found[name] = {"same": same, "error": _error(again, x[1:], zero[1:])}
        found[name]["after"] = bool((again(x, y)[0] == want[0].numpy()).all())
    x = torch.tensor([5, -7, 9])
    built = compile_pytorch_module(
        Truncated(), ExportConfig(example_input=(x, torch.tensor([2, -3, 4])))
    )
    found["computed"] = _error(built, x, torch.tensor([2, 0, 4]))
    return found


def _error(model: Any, *inputs: torch.Tensor) -> str:
    try:
        model(*inputs)
    except ZeroDivisionError as error:
        assert isinstance(error, RuntimeError)  # PyTorch's
        return f"{type(error).__name__}: {error}"
    return ""
