"""Models that are valid from some extent on: what they take, what they refuse, and what is told."""

from typing import Any

import pytest
import torch
from torch import nn

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.tvm_export.importers.open_extents import _holds_from, _told


@pytest.mark.parametrize(
    ("condition", "least"),
    [
        ("((-4) + extent) != 1", 6),
        ("5 <= extent and extent <= IntInfinity()", 5),
        ("(1 + (((-1) + extent) // 16)) != 1", 17),
        ("(extent // 4) != 1", 8),
        ("extent < 100", None),
        ("Eq(Mod(extent, 2), 0)", None),
        ("extent > other", None),
        ("extent > 0", 1),
    ],
)
def test_from_where_on_a_condition_holds(condition: str, least: int | None) -> None:
    assert _holds_from(condition, 1) == least


def test_what_pytorch_says_is_told_in_a_line() -> None:
    assert _told("something else") == ""
    assert "n = 7 alone" in _told(
        "- You marked n as dynamic but your code specialized it to be a constant (7). If"
    )
    assert "only where n < 100" in _told(
        "- Not all values of n = L['args'][0].size()[2] in the specified range satisfy the "
        "generated guard L['args'][0].size()[2] < 100."
    )


class _Both(nn.Module):
    """Two inputs of one open length, of which the larger one decides what is valid."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv1d(3, 4, 5)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        convolved: torch.Tensor = self.convolution(x)
        return convolved + y[:, :, 4:].sum()


_MODELS: dict[str, tuple[nn.Module, dict[str, tuple[int | str, ...]]]] = {
    "a window": (nn.Conv1d(3, 4, 5), {"x": (1, 3, "n")}),
    "a pool": (nn.AvgPool1d(4), {"x": (1, 3, "n")}),
    "strides": (
        nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, 2)),
        {"x": (1, 3, "n", 20)},
    ),
    "two inputs": (_Both(), {"x": (2, 3, "n"), "y": (1, 1, "n")}),
}
_LEAST = {"a window": 6, "a pool": 8, "strides": 9, "two inputs": 6}


def test_extents_from_the_least_on(process_of: Processes) -> None:
    found = process_of(engines.CURRENT).call(f"{__name__}:at_extents")
    assert found.keys() == _LEAST.keys()
    for name, least in _LEAST.items():
        assert found[name]["differs"] < 1e-5, name
        told = f"axis 2 is too short, the model takes {least} or more"
        assert told in found[name]["below"], (name, found[name])


def at_extents() -> dict[str, dict[str, Any]]:
    """Of each model the largest error at three extents, and the error below the least one."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(0)
    found: dict[str, dict[str, Any]] = {}
    for name, (model, shapes) in _MODELS.items():

        def inputs(extent: int, shapes: Any = shapes) -> tuple[torch.Tensor, ...]:
            return tuple(
                torch.randn([extent if isinstance(each, str) else each for each in shape])
                for shape in shapes.values()
            )

        model = model.eval()
        config = ExportConfig(example_input=inputs(20), input_shapes=shapes)
        compiled = compile_pytorch_module(model, config)
        differs = 0.0
        for extent in (_LEAST[name], 20, 33):
            given = inputs(extent)
            with torch.inference_mode():
                right = model(*given)
            [output] = compiled(*(each.numpy() for each in given))
            assert tuple(output.shape) == tuple(right.shape)
            differs = max(differs, float((torch.as_tensor(output) - right).abs().max()))
        try:
            compiled(*(each.numpy() for each in inputs(_LEAST[name] - 1)))
            below = "no error"
        except ValueError as error:
            below = str(error)
        found[name] = {"differs": differs, "below": below}
    return found


def test_one_extent_alone_is_refused_in_a_line(process_of: Processes) -> None:
    told = process_of(engines.CURRENT).call(f"{__name__}:refused")
    assert told["fixed"].count("\n") == 0 and "the model is for n = 7 alone" in told["fixed"]
    assert told["on a GPU"].count("\n") == 0 and "not the same for all n" in told["on a GPU"]


class _Fixed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(7)


def refused() -> dict[str, str]:
    """What is told of a model for one extent, and of a limit where code cannot raise errors."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.errors import BadInput

    found = {}
    given = {
        "fixed": (_Fixed(), "llvm", (7,)),
        "on a GPU": (nn.Conv1d(3, 4, 5), "cuda -arch=sm_80", (1, 3, 9)),
    }
    for name, (model, target, shape) in given.items():
        shapes: dict[str, tuple[int | str, ...]] = {"x": (*shape[:-1], "n")}
        config = ExportConfig(example_input=torch.randn(shape), target=target, input_shapes=shapes)
        try:
            compile_pytorch_module(model.eval(), config)
            found[name] = "no error"
        except BadInput as error:
            found[name] = str(error)
    return found
