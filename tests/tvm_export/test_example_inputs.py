"""A factory's inputs in other shapes: what stays, what is refused."""

import pytest
import torch

from tvm_practice import engines
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.example_inputs import ExampleTensor, completed, resized


class _Any(torch.nn.Module):
    def forward(self, *args: torch.Tensor, **kwargs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return args


_MODEL = _Any()


def _shaped(*shapes: list[int]) -> list[ExampleTensor]:
    return [ExampleTensor(shape=each) for each in shapes]


@pytest.fixture
def sentence() -> dict[str, torch.Tensor]:
    """What a language model's factory gives."""
    return {
        "input_ids": torch.arange(128).reshape(1, 128),
        "attention_mask": torch.ones((1, 128), dtype=torch.bool),
        "image": torch.rand(1, 3, 8, 8),
    }


def test_one_shape_is_every_input_s_of_that_shape_and_the_batch_of_all(
    sentence: dict[str, torch.Tensor],
) -> None:
    made = resized(sentence, _shaped([4, 200]))
    assert {name: tuple(each.shape) for name, each in made.items()} == {
        "input_ids": (4, 200),
        "attention_mask": (4, 200),
        "image": (4, 3, 8, 8),
    }
    assert {name: each.dtype for name, each in made.items()} == {
        name: each.dtype for name, each in sentence.items()
    }
    assert int(made["input_ids"].max()) == 127 and bool(made["attention_mask"].all())


def test_the_same_shape_changes_nothing(sentence: dict[str, torch.Tensor]) -> None:
    made = resized(sentence, _shaped([1, 128]))
    assert all(torch.equal(made[name], sentence[name]) for name in sentence)


def test_a_shape_for_each_and_a_type() -> None:
    given = ((torch.zeros(2, 3), [torch.ones(4)]), torch.tensor(5))
    shapes = [
        ExampleTensor(shape=[3, 3], dtype="float16"),
        ExampleTensor(shape=[6]),
        ExampleTensor(shape=[]),
    ]
    (first, (second,)), scalar = resized(given, shapes)
    assert (first.shape, first.dtype) == ((3, 3), torch.float16)
    assert second.tolist() == [1.0] * 6 and int(scalar) == 5


@pytest.mark.parametrize("shapes", [([4],), ([1, 128], [1, 128]), ([1, 128, 1],)])
def test_what_does_not_fit_is_told_with_the_inputs(
    sentence: dict[str, torch.Tensor], shapes: tuple[list[int], ...]
) -> None:
    with pytest.raises(BadInput) as told:
        resized(sentence, _shaped(*shapes))
    assert "input_ids int64 [1, 128], attention_mask bool [1, 128]" in str(told.value)
    assert "\n" not in str(told.value)


def test_inputs_that_only_have_a_name_are_made() -> None:
    ids = torch.arange(8).reshape(1, 8)
    shapes = {"input_ids": (1, 8), "attention_mask": (1, 8), "scale": (3,)}
    made = completed(_MODEL, (ids,), {}, shapes)
    assert list(made) == ["attention_mask", "scale"]
    assert made["attention_mask"].dtype == torch.int64 and bool((made["attention_mask"] == 1).all())
    assert (made["scale"].dtype, made["scale"].shape) == (torch.float32, (3,))
    assert completed(_MODEL, (), {"input_ids": ids}, {"input_ids": (1, 8)}) == {"input_ids": ids}
    assert completed(_MODEL, (ids,), {}, None) == {}
    with pytest.raises(BadInput, match="no tensor for mask, and length is no number"):
        completed(_MODEL, (ids,), {}, {"input_ids": (1, "length"), "mask": (1, "length")})
    with pytest.raises(BadInput, match="the example has 1, and the model takes no mask"):
        completed(torch.nn.ReLU(), (ids,), {}, {"input_ids": (1, 8), "mask": (1, 8)})


def test_they_are_inputs_of_the_compiled_model() -> None:
    given = engines.call(engines.CURRENT, "tests.tvm_export.functions:masked_by_a_made_input", {})
    assert given == {"names": ["input_ids", "attention_mask"], "right": True}
