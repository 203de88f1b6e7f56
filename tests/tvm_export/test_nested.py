"""Nested inputs: opened, rebuilt in their kind, and refused where a tensor would be hidden."""

from collections import OrderedDict, UserDict, namedtuple
from dataclasses import dataclass, field
from types import MappingProxyType, SimpleNamespace
from typing import Any

import pytest
import torch

from tvm_practice.tvm_export import nested
from tvm_practice.tvm_export.calling import as_call
from tvm_practice.tvm_export.errors import BadInput

Pair = namedtuple("Pair", "x y")


@dataclass(frozen=True)
class Box:
    x: Any
    note: str = "kept"


@dataclass
class Derived:
    x: torch.Tensor
    double: torch.Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.double = self.x * 2


class Plain:
    def __init__(self, x: Any):
        self.x = x


class Slotted:
    __slots__ = ("x",)

    def __init__(self, x: Any):
        self.x = x


def ones(*shape: int) -> torch.Tensor:
    return torch.ones(shape or (2,))


@pytest.mark.parametrize(
    "given",
    [
        [ones()],
        (ones(),),
        Pair(ones(), [ones()]),
        {"a": ones()},
        OrderedDict(a=ones()),
        UserDict(a=ones()),
        Box(ones()),
        Box([Pair(Box(ones()), 3)]),
        Derived(ones()),
    ],
    ids=lambda given: type(given).__name__,
)
def test_containers_are_opened_and_keep_their_kind(given: Any) -> None:
    replaced = nested.mapped(lambda tensor: tensor * 5, given)
    assert type(replaced) is type(given)
    assert len(nested.flattened(replaced)) == len(nested.flattened(given)) > 0
    for before, after in zip(nested.flattened(given), nested.flattened(replaced), strict=True):
        assert torch.equal(after, before * 5)
    nested.require_open("input 0", given)


def test_copies_share_no_memory() -> None:
    given = {"pair": Pair(ones(), [ones()]), "box": Box(ones()), "text": "kept"}
    made = nested.copied(given)
    assert isinstance(made["pair"], Pair) and isinstance(made["pair"].y, list)
    assert made["text"] == "kept" and made["box"].note == "kept"
    for tensor in nested.flattened(made):
        tensor.zero_()
    assert all(bool((each == 1).all()) for each in nested.flattened(given))


def test_a_view_of_a_mapping_becomes_a_dictionary() -> None:
    assert nested.copied(MappingProxyType({"a": 3})) == {"a": 3}


def test_outputs_of_a_model_library_are_opened() -> None:
    outputs = pytest.importorskip("transformers.modeling_outputs")
    made = outputs.BaseModelOutput(last_hidden_state=ones(1, 2), hidden_states=(ones(), ones()))
    assert [tuple(each.shape) for each in nested.flattened(made)] == [(1, 2), (2,), (2,)]
    assert type(nested.copied(made)) is outputs.BaseModelOutput


class TakesBox(torch.nn.Module):
    def forward(self, b: Any) -> Any:
        return b.x * 2


def test_a_dataclass_is_an_input_and_no_constant() -> None:
    call = as_call(TakesBox(), (Box(ones()),))
    assert len(call.tensors) == 1
    assert call.module(torch.full((2,), 5.0))[0].tolist() == [10, 10]


def test_lists_and_named_tuples_reach_the_model_as_such() -> None:
    class Takes(torch.nn.Module):
        def forward(self, pair: Any, many: Any) -> Any:
            assert isinstance(many, list)
            return pair.x + pair.y + many[0]

    call = as_call(Takes(), (Pair(ones(), ones()),), {"many": [ones()]}, copies=True)
    assert call.names == ("input_0", "input_1", "many")
    assert call.module(*call.tensors)[0].tolist() == [3, 3]


def beside_its_fields() -> Box:
    box = Box(ones())
    object.__setattr__(box, "cache", ones())
    return box


@pytest.mark.parametrize(
    "hidden",
    [
        Plain(ones()),
        Plain([{"deep": Plain(ones())}]),
        Slotted(ones()),
        SimpleNamespace(x=ones()),
        [Plain(ones())],
        Box(Plain(ones())),
        beside_its_fields(),
    ],
    ids=["plain", "deep", "slots", "namespace", "in-a-list", "in-a-dataclass", "beside-fields"],
)
def test_a_hidden_tensor_is_refused(hidden: Any) -> None:
    with pytest.raises(BadInput, match="input 0 holds tensors within an object of type") as raised:
        as_call(TakesBox(), (hidden,))
    assert "\n" not in str(raised.value)
    with pytest.raises(BadInput, match="input b holds tensors"):
        as_call(TakesBox(), (), {"b": hidden})


def test_what_holds_no_tensor_or_is_a_module_is_fixed() -> None:
    itself = Plain(None)
    itself.x = [itself]
    for given in (Plain(3), itself, "text", None, torch.nn.Linear(2, 2), torch.float32):
        nested.require_open("input 0", given)
