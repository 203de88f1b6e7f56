"""Models that are valid for a range of extents: what they take, refuse, and what is told."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.tvm_export.calling import as_call
from tvm_practice.tvm_export.importers.open_extents import _narrowed, _told, exported_open


@pytest.mark.parametrize(
    ("condition", "within"),
    [
        ("((-4) + extent) != 1", (6, None)),
        ("5 <= extent and extent <= IntInfinity()", (5, None)),
        ("(1 + (((-1) + extent) // 16)) != 1", (17, None)),
        ("(extent // 4) != 1", (8, None)),
        ("extent < 100", (1, 99)),
        ("2 <= extent and extent <= 512", (2, 512)),
        ("Eq(Mod(extent, 2), 0)", None),
        ("extent > other", None),
        ("extent > 20", None),  # not for the example
        ("extent > 0", (1, None)),
        ("extent <= 1000000", (1, 1000000)),
        ("(FloatTrueDiv(1.0, FloatPow(ToFloat(extent), 0.5))) >= 0.0", (1, None)),
        ("math.trunc(0.7*torch.sym_float(extent)) != 1", (3, None)),
        ("Eq(TruncToInt(1.5*ToFloat(extent)), 30)", None),
    ],
)
def test_where_a_condition_holds(condition: str, within: tuple[int, int | None] | None) -> None:
    found = _narrowed([(("n",), condition)], {"n": (1, None)}, {"n": 20})
    assert found == (within and {"n": within})


@pytest.mark.parametrize(
    ("condition", "holds"),
    [("Ne(16*extent_2*(4*((extent//2)) - 4), 0)", True), ("extent != extent_2", False)],
)
def test_a_condition_of_two_extents(condition: str, holds: bool) -> None:
    ranges: dict[str, tuple[int, int | None]] = {"n": (6, None), "m": (1, 512)}
    found = _narrowed([(("n", "m"), condition)], ranges, {"n": 20, "m": 3})
    assert found == (ranges if holds else None)


class _Selected(nn.Module):
    """Seven of the last axis's places, which do not depend on its extent."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        chosen = torch.index_select(x, -1, torch.arange(7) % 2)
        return torch.einsum("...ij,oi->...jo", chosen, torch.ones(2, 11))


def test_strides_of_the_example_are_no_conditions(process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(f"{__name__}:largest_extent_of_a_view") > 1 << 40


def largest_extent_of_a_view() -> int:
    """The largest extent of the last axis for which a model is valid; the example is a view."""
    view = torch.randn(7, 17, 11, 2)[1::2]
    call = as_call(_Selected(), (view,), shapes={"x": (3, 17, 11, "n")})
    [taken] = exported_open(call, any_range=True).range_constraints.values()
    return int(min(taken.upper, 1 << 50))


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


class _Positions(nn.Module):
    """A table of 40 positions, added to a sequence."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(40, 16), requires_grad=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.table[: x.shape[1]]


class _Half(nn.Module):
    """A slice whose extent PyTorch cannot prove to be within its tensor."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, : x.shape[1] // 2] * 2


_MODELS: dict[str, tuple[nn.Module, dict[str, tuple[int | str, ...]]]] = {
    "a window": (nn.Conv1d(3, 4, 5), {"x": (1, 3, "n")}),
    "a pool": (nn.AvgPool1d(4), {"x": (1, 3, "n")}),
    "largest": (nn.MaxPool1d(4, stride=2, ceil_mode=True), {"x": (1, 3, "n")}),
    "strides": (
        nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, 2)),
        {"x": (1, 3, "n", 20)},
    ),
    "two inputs": (_Both(), {"x": (2, 3, "n"), "y": (1, 1, "n")}),
    "positions": (_Positions(), {"x": (2, "n", 16)}),
    "a half": (_Half(), {"x": (2, "n", 16)}),
}
_RANGES = {
    "a window": (6, None),
    "a pool": (8, None),
    "largest": (5, None),
    "strides": (9, None),
    "two inputs": (6, None),
    "positions": (2, 40),
    "a half": (4, None),
}


def test_extents_within_the_range(process_of: Processes) -> None:
    found = process_of(engines.CURRENT).call(f"{__name__}:at_extents")
    assert found.keys() == _RANGES.keys()
    for name, (least, most) in _RANGES.items():
        assert found[name]["differs"] < 1e-5, name
        allowed = f"{least} or more" if most is None else f"{least} to {most}"
        for said in found[name]["beyond"]:
            assert f"is out of range, the model takes {allowed}" in said, (name, said)


def at_extents() -> dict[str, dict[str, Any]]:
    """Of each model the largest error at extents of its range, and the errors beyond it."""
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
        least, most = _RANGES[name]
        differs = 0.0
        for extent in (least, 20, most or 45):
            given = inputs(extent)
            with torch.inference_mode():
                right = model(*given)
            [output] = compiled(*(each.numpy() for each in given))
            assert tuple(output.shape) == tuple(right.shape)
            differs = max(differs, float((torch.as_tensor(output) - right).abs().max()))
        beyond = []
        for extent in (least - 1, *([most + 1, 20 * most] if most else [])):
            try:
                compiled(*(each.numpy() for each in inputs(extent)))
                beyond.append("no error")
            except ValueError as error:
                beyond.append(str(error))
        found[name] = {"differs": differs, "beyond": beyond}
    return found


def test_one_extent_alone_is_refused_in_a_line(process_of: Processes) -> None:
    told = process_of(engines.CURRENT).call(f"{__name__}:refused")
    assert told["fixed"].count("\n") == 0 and "the model is for n = 7 alone" in told["fixed"]
    assert told["features"].count("\n") == 0 and "the model is for n = 4 alone" in told["features"]
    assert told["on a GPU"].count("\n") == 0 and "not the same for all n" in told["on a GPU"]


class _Fixed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(7)


class _Recurrent(nn.Module):
    """A layer whose weights fix the number of features; torch.lstm itself does not ask for it."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        state = (x.new_zeros(1, x.shape[1], 8),) * 2
        weights: Any = self.layer._flat_weights
        found: torch.Tensor = torch._VF.lstm(x, state, weights, True, 1, 0.0, False, False, False)[
            0
        ]
        return found


def refused() -> dict[str, str]:
    """What is told of a model for one extent, and of a limit where code cannot raise errors."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.errors import BadInput

    found = {}
    given = {
        "fixed": (_Fixed(), "llvm", (7,)),
        "features": (_Recurrent(), "llvm", (3, 5, 4)),
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


def test_a_language_model_of_any_batch_and_length(process_of: Processes) -> None:
    pytest.importorskip("transformers")
    found = process_of(engines.CURRENT).call(f"{__name__}:of_a_language_model")
    assert all(each < 1e-5 for each in found), found


def of_a_language_model() -> list[float]:
    """The largest errors of a small Llama at three batches and lengths."""
    import transformers

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 64, "vocab_size": 100}
    depths = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    config: Any = transformers.LlamaConfig(**sizes, **depths, use_cache=False)
    model = transformers.LlamaModel(config).eval()

    class Tokens(nn.Module):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            hidden: torch.Tensor = model(tokens).last_hidden_state
            return hidden

    export = ExportConfig(
        example_input=(torch.randint(0, 100, (2, 24)),), input_shapes={"tokens": ("b", "n")}
    )
    compiled = compile_pytorch_module(Tokens(), export)
    errors = []
    for shape in ((2, 24), (1, 7), (3, 40)):
        tokens = torch.randint(0, 100, shape)
        with torch.inference_mode():
            right = model(tokens).last_hidden_state
        errors.append(float(np.abs(compiled(tokens.numpy())[0] - right.numpy()).max()))
    return errors


def test_sums_over_two_axes_leave_nothing_over_at_times(process_of: Processes) -> None:
    assert max(process_of(engines.CURRENT).call(f"{__name__}:errors_of_sums")) < 1e-4


def errors_of_sums() -> list[float]:
    """Errors of a sum over an open axis and another one, at multiples of a register's lanes too."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    class Summed(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return nn.functional.selu(x).sum((0, 2), keepdim=True)

    model, given = Summed().eval(), torch.randn(2, 8, 11)
    config = ExportConfig(example_input=(given,), engine="current", input_shapes={"x": (2, 8, "n")})
    compiled = compile_pytorch_module(model, config)
    errors = []
    for extent in (1, 15, 16, 17, 32, 160):
        x = torch.randn(2, 8, extent)
        errors.append(float(abs(compiled(x)[0] - model(x).numpy()).max()))
    return errors
