"""Numbers that are rounded to bfloat16 on the way, within one function without 16-bit memory."""

import math
from typing import Any

import torch
from torch import nn

from tests.conftest import Processes
from tvm_practice import engines


class _Rounded(nn.Module):
    """The larger of a product and itself, which is a named value where NaN is to be kept."""

    def __init__(self) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(0.3), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        product = x.to(torch.bfloat16) * self.factor
        return torch.maximum(product, product)


class _Widened(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.to(torch.bfloat16).to(torch.float32)


def test_numbers_are_rounded_as_pytorch_rounds(process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(f"{__name__}:unlike_pytorch") == []


def unlike_pytorch() -> list[float]:
    """The inputs for which the model's output is another one than PyTorch's."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    numbers = [0.0, -0.0, 1.5, 1.00390625, 1.01171875, -3.3e38, 3.4e38, 1e-40, float("inf")]
    numbers += [float("nan"), *torch.randn(200).tolist()]
    whole = torch.tensor(numbers)
    given: list[tuple[Any, list[torch.Tensor]]] = [
        (_Rounded(), list(whole)),  # without axes, its factor stays in float32
        (_Widened(), [whole, whole[:3], whole[3]]),
    ]
    wrong = []
    for model, tensors in given:
        for x in tensors:
            if x is tensors[0] or x.shape != tensors[0].shape:
                config = ExportConfig(example_input=(x,))
                compiled = compile_pytorch_module(model.eval(), config)
            [output] = compiled(x.numpy())
            same = torch.as_tensor(output).nan_to_num(7) == model(x).nan_to_num(7)
            wrong += x[~same].reshape(-1).tolist()
    return wrong


class _Chain(nn.Module):
    """Numbers in bfloat16 that are made of others, in one function."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.celu(nn.functional.hardswish(torch.sqrt(x.abs() + 0.25)), 1.5)


def test_numbers_made_of_others_compile(process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(f"{__name__}:error_of_a_chain") < 0.02


def error_of_a_chain() -> float:
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model, x = _Chain().eval(), torch.randn(11).to(torch.bfloat16)
    config = ExportConfig(example_input=(x,), input_shapes={"x": ("n",)})
    [output] = compile_pytorch_module(model, config)(x)
    made = torch.as_tensor(output.astype("float32"))
    return float((made - model(x.float())).abs().max())


class _Twice(nn.Module):
    """Functions whose result is rounded, of numbers that are rounded on the way."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        number = x.to(torch.bfloat16)
        moved = (x + 0.25).to(torch.bfloat16)
        return [torch.atan(number), torch.atan2(number, moved), torch.fmod(moved, number)]


def test_results_of_rounded_numbers_compile(process_of: Processes) -> None:
    """TVM's vectorizer refused the name of a rounded number where it was met again."""
    assert process_of(engines.CURRENT).call(f"{__name__}:error_of_results") == [0.0, 0.0, 0.0]


def error_of_results() -> list[float]:
    """The largest differences from PyTorch."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model, x = _Twice().eval(), torch.linspace(0.1, 0.9, 35).to(torch.float16)
    outputs = compile_pytorch_module(model, ExportConfig(example_input=(x,)))(x)
    made = [torch.as_tensor(each.astype("float32")) for each in outputs]
    return [
        float((own - want.float()).abs().max()) for own, want in zip(made, model(x), strict=True)
    ]


class _BetweenCasts(nn.Module):
    """Operators that a fused function computes between the cast and the wider type."""

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        functional, half = nn.functional, torch.bfloat16
        number, other = x.to(half), (x * 1.1).to(half)
        results = [
            functional.pad(number, (0, 1), value=-math.inf),
            torch.where(x > 0, number, torch.zeros((), dtype=half)),
            functional.relu(number),
            torch.maximum(number, other),
            number.clamp(-1, 1),
            -number.abs(),
            number.tril(),
            number.masked_fill(x < 0, 0.0),
            number.amax(1),
        ]
        return [each.to(torch.float32) for each in results]


def test_numbers_are_rounded_between_other_operators(process_of: Processes) -> None:
    """TVM left such numbers as they were, and failed at the maximum of two."""
    assert process_of(engines.CURRENT).call(f"{__name__}:results_unlike_pytorchs") == []


def results_unlike_pytorchs() -> list[str]:
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model, x = _BetweenCasts().eval(), torch.randn(17, 33)
    wrong: list[str] = []
    opened: Any = {"x": ("h", "w")}
    for shapes in (None, opened):
        config = ExportConfig(example_input=(x,), input_shapes=shapes)
        made = compile_pytorch_module(model, config)(x)
        pairs = enumerate(zip(made, model(x), strict=True))
        wrong += [f"{i}, {shapes}" for i, (own, want) in pairs if not (own == want.numpy()).all()]
    return wrong
