"""Models that are valid for a range of extents: what they take, refuse, and what is told."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.tvm_export import ExportConfig
from tvm_practice.tvm_export.calling import as_call
from tvm_practice.tvm_export.importers.open_extents import (
    _Allowed,
    _narrowed,
    _told,
    exported_open,
)
from tvm_practice.tvm_export.run_time_checks.extent_conditions import ExtentCondition


def test_a_name_that_is_no_identifier_is_refused() -> None:
    with pytest.raises(ValueError, match=r"2\*n is no name of an open extent"):
        ExportConfig(example_input=torch.ones(2, 3), input_shapes={"x": ("2*n", 3)})


@pytest.mark.parametrize(
    ("condition", "within"),
    [
        ("((-4) + n) != 1", (6, None)),
        ("5 <= n and n <= IntInfinity()", (5, None)),
        ("(1 + (((-1) + n) // 16)) != 1", (17, None)),
        ("(n // 4) != 1", (8, None)),
        ("n < 100", (1, 99)),
        ("2 <= n and n <= 512", (2, 512)),
        ("n > other", None),
        ("n > 20", None),  # not for the example
        ("n > 0", (1, None)),
        ("n <= 1000000", (1, 1000000)),
        ("(FloatTrueDiv(1.0, FloatPow(ToFloat(n), 0.5))) >= 0.0", (1, None)),
        ("math.trunc(0.7*torch.sym_float(n)) != 1", (3, None)),
        ("Eq(TruncToInt(1.5*ToFloat(n)), 30)", None),
    ],
)
def test_where_a_condition_holds(condition: str, within: tuple[int, int | None] | None) -> None:
    whole = _Allowed({"n": (1, None)})
    found = _narrowed([ExtentCondition(("n",), condition)], whole, {"n": 20})
    assert found == (None if within is None else _Allowed({"n": within}))


@pytest.mark.parametrize("condition", ["Eq(Mod(extent, 2), 0)", "(extent % 3) != 0"])
def test_a_condition_that_is_no_range_is_checked(condition: str) -> None:
    told = ExtentCondition(("extent",), condition)
    whole = _Allowed({"extent": (1, None)})
    assert _narrowed([told], whole, {"extent": 20}) == _Allowed(whole.ranges, (told,))
    assert _narrowed([told], whole, {"extent": 21}) is None  # not so in the example


@pytest.mark.parametrize(
    ("condition", "holds"), [("Ne(16*m*(4*((n//2)) - 4), 0)", True), ("n != m", False)]
)
def test_a_condition_of_two_extents(condition: str, holds: bool) -> None:
    known = _Allowed({"n": (6, None), "m": (1, 512)})
    told = ExtentCondition(("n", "m"), condition)
    found = _narrowed([told], known, {"n": 20, "m": 3})
    assert found == (known if holds else _Allowed(known.ranges, (told,)))


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
    [taken] = exported_open(call, checked=True).program.range_constraints.values()
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


@pytest.mark.parametrize(
    ("text", "true", "false"),
    [
        ("(n % 2) == 0", (4, 6), (5, 6)),
        ("Eq(Mod(n, 2), 0)", (4, 6), (5, 6)),
        ("n < m", (4, 6), (6, 4)),
        ("Ne(n*8, m*n)", (4, 6), (4, 8)),
        ("3 <= n and n <= m", (4, 6), (2, 6)),
        ("(((-1) + n + ((2 + n) // 3)) // ((2 + n) // 3)) == 3", (7, 1), (4, 1)),
        ("Or(Eq(n, 1), n > m)", (1, 6), (2, 6)),
        ("math.trunc(1.5*torch.sym_float(n)) != 30", (4, 1), (20, 1)),
        ("Max(n, m) - Min(n, m) < 3", (4, 6), (4, 8)),
    ],
)
def test_conditions_hold_of_numbers(
    text: str, true: tuple[int, int], false: tuple[int, int]
) -> None:
    condition = ExtentCondition(("n", "m"), text)
    assert condition.is_known and condition.holds(*true) and not condition.holds(*false)
    renamed = condition.renamed({"n": "s1", "m": "max"})
    assert renamed.names == ("s1", "max") and renamed.holds(*true) and not renamed.holds(*false)


class _Skipped(nn.Module):
    """Halved and doubled, and added to what it was, as in a U-Net."""

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        small = nn.functional.max_pool2d(image, 4)
        return image + nn.functional.interpolate(small, scale_factor=4, mode="nearest")


class _Branching(nn.Module):
    """Another result where one extent is below another."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.sum() + y if x.shape[0] < y.shape[0] else x.sum() - y


class _Unlike(nn.Module):
    """Another result where one extent is twice the other, and PyTorch's range is all."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] * 2 != x.shape[1] else x - 1


class _Joined(nn.Module):
    """As `_Skipped`, by concatenation, after strided convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.Conv2d(3, 4, 3, 2, 1)
        self.up = nn.ConvTranspose2d(4, 4, 2, 2)
        self.last = nn.Conv2d(7, 2, 3, padding=1)

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(torch.cat([self.up(self.down(image)), image], 1))
        return found


class _Gathered(nn.Module):
    """Blocks of four columns as rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.pixel_unshuffle(x, 4)


# The model, the open extents, an example, extents that it takes, and those that it refuses.
_CONDITIONED: dict[str, tuple[nn.Module, dict[str, tuple[int | str, ...]], Any, Any, Any]] = {
    "skipped": (_Skipped(), {"image": (1, 3, "h", "w")}, (16, 24), [(8, 12), (20, 12)], [(16, 22)]),
    "branching": (_Branching(), {"x": ("n",), "y": ("m",)}, (5, 9), [(5, 8)], [(8, 5), (7, 7)]),
    "unlike": (_Unlike(), {"x": ("n", "m")}, (4, 6), [(4, 9), (9, 3)], [(4, 8), (1, 2)]),
    "joined": (_Joined(), {"image": (1, 3, "h", "w")}, (8, 6), [(12, 10), (4, 14)], [(9, 10)]),
    "gathered": (_Gathered(), {"x": (1, 2, 8, "n")}, (12,), [(8,), (40,)], [(6,), (13,)]),
}


def test_extents_with_a_condition(process_of: Processes) -> None:
    found = process_of(engines.CURRENT).call(f"{__name__}:conditioned")
    for name, (_, _, _, taken, refused) in _CONDITIONED.items():
        assert found[name][: len(taken)] == ["right"] * len(taken), (name, found[name])
        for said in found[name][-len(refused) :]:
            assert "ValueError" in said and "\n" not in said, (name, said)
            assert "the model is only for extents where" in said or "out of range" in said


def conditioned() -> dict[str, list[str]]:
    """Of each model what it does at the extents of the table, those that it takes first."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    found: dict[str, list[str]] = {}
    for name, (model, shapes, example, taken, refused) in _CONDITIONED.items():
        names = list(dict.fromkeys(n for each in shapes.values() for n in each if type(n) is str))

        def inputs(extents: Any, names: Any = names, shapes: Any = shapes) -> tuple[Any, ...]:
            known = dict(zip(names, extents, strict=True))
            return tuple(torch.randn([known.get(n, n) for n in each]) for each in shapes.values())

        config = ExportConfig(example_input=inputs(example), input_shapes=shapes)
        compiled = compile_pytorch_module(model.eval(), config)
        found[name] = []
        for extents in (*taken, *refused):
            given = inputs(extents)
            try:
                [output] = compiled(*(each.numpy() for each in given))
                same = torch.allclose(torch.as_tensor(output), model(*given), atol=1e-5)
                found[name].append("right" if same else f"wrong at {extents}")
            except ValueError as error:
                found[name].append(f"ValueError: {error}")
    return found


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


class _Pairs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.pdist(x)


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
    "pairs": (_Pairs(), {"x": ("n", 5)}),
}
_RANGES = {
    "a window": (6, None),
    "a pool": (8, None),
    "largest": (5, None),
    "strides": (9, None),
    "two inputs": (6, None),
    "positions": (2, 40),
    "a half": (4, None),
    "pairs": (3, None),
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
    assert "the model is not the same for all n: only where " in told["distances"]
    assert told["on a GPU"].count("\n") == 0 and "not the same for all n" in told["on a GPU"]


class _Fixed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.arange(7)


class _Distances(nn.Module):
    """The example's two columns are one pair, and PyTorch takes an extent of 1 for a constant."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.pdist(x.mT)


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
        "distances": (_Distances(), "llvm", (3, 2)),
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


class _Flattened(nn.Module):
    """Views between a number and an open extent, and of a shape that stays."""

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        row = x.reshape(1, -1)
        columns = x.shape[1]
        return row.view(-1, columns) + 1, torch.cat([row, row], 1).view(x.shape[0], -1), row * 2


class _Indexed(nn.Module):
    """Rows added at known places, of which a negative one would be the extent less a number."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.index_add(0, torch.tensor([0, 2]), x[:2])


@pytest.mark.parametrize("model", [_Flattened, _Indexed])
def test_shapes_and_places_made_of_open_extents(
    process_of: Processes, model: type[nn.Module]
) -> None:
    found = process_of(engines.CURRENT).call(
        f"{__name__}:error_at_others", {"name": model.__name__}
    )
    assert found < 1e-6


def error_at_others(name: str) -> float:
    """The largest error of a model of one tensor, both extents open, at two further shapes."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.nested import flattened

    model = globals()[name]()
    config = ExportConfig(
        example_input=torch.randn(5, 3), engine="current", input_shapes={"x": ("n", "m")}
    )
    compiled = compile_pytorch_module(model, config)
    return max(
        float(abs(ours - theirs.numpy()).max())
        for x in (torch.randn(8, 4), torch.randn(3, 7))
        for ours, theirs in zip(compiled(x), flattened(model(x)), strict=True)
    )
