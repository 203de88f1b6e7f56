"""A compiled model says which input is wrong, and how, before anything runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch

from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.graph_module import GraphModule, Place
from tvm_practice.tvm_export.inputs import Input


class Echo:
    """A runner that gives back what it was given."""

    def set_inputs(self, inputs: Sequence[np.ndarray]) -> None:
        self._given = list(inputs)

    def run(self) -> None:
        self._result = [each.copy() for each in self._given]

    def outputs(self) -> list[np.ndarray]:
        return self._result


@pytest.fixture
def model() -> GraphModule:
    image = Input("image", ("batch", 3, "side", "side"), "float32")
    labels = Input("labels", ("batch",), "int64")
    return GraphModule("current", None, Echo(), None, "", "llvm", (image, labels))


def image(*shape: int) -> np.ndarray:
    return np.zeros(shape, "float32")


LABELS = np.array([1, 2])


@pytest.mark.parametrize("sides", [(2, 5), (1, 1), (7, 3)])
def test_any_value_of_an_open_extent(model: GraphModule, sides: tuple[int, int]) -> None:
    batch, side = sides
    given = image(batch, 3, side, side)
    assert model(given, np.arange(batch))[0].shape == given.shape


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            image(2, 4, 5, 5),
            r"image is float32 \[2, 4, 5, 5\], .* float32 \[batch, 3, side, side\]",
        ),
        (image(2, 3, 5), r"image is float32 \[2, 3, 5\]"),
        (image(0, 3, 5, 5), r"image is float32 \[0, 3, 5, 5\]"),
        (image(2, 3, 5, 5).astype("float64"), "image is float64"),
        (image(2, 3, 5, 4), "side is 5 in image and 4 in image"),
        (image(3, 3, 5, 5), "batch is 3 in image and 2 in labels"),
    ],
)
def test_a_wrong_input_is_named(model: GraphModule, given: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        model(given, LABELS)


def test_after_a_refusal_the_model_runs_on_what_it_had(model: GraphModule) -> None:
    model(image(2, 3, 5, 5), LABELS)
    with pytest.raises(BadInput, match="labels is float32"):
        model.set_input("labels", LABELS.astype("float32"))
    model.run()
    assert model.outputs()[1].tolist() == [1, 2]
    model.set_input("labels", np.array([1, 2, 3]))  # another batch, of which the image comes next
    with pytest.raises(BadInput, match="batch is 2 in image and 3 in labels"):
        model.run()
    model.set_input("image", image(3, 3, 5, 5))
    model.run()
    assert model.outputs()[1].tolist() == [1, 2, 3]


def test_inputs_that_are_not_there(model: GraphModule) -> None:
    with pytest.raises(RuntimeError, match="inputs not set: image, labels"):
        model.run()
    with pytest.raises(TypeError, match="1 input given, the model has 2"):
        model(image(2, 3, 5, 5))
    for name in ("picture", 2, -1):
        with pytest.raises(KeyError, match="no input"):
            model.set_input(name, LABELS)


def test_a_tensor_that_requires_a_gradient(model: GraphModule) -> None:
    given = torch.ones(2, 3, 5, 5, requires_grad=True)
    assert model(given, torch.tensor([1, 2]))[0].sum() == given.numel()


def test_arguments_in_containers_are_found_by_key(model: GraphModule) -> None:
    model.arguments = ({"images": [Place(0)], "labels": Place(1), "size": 3},)
    given = image(2, 3, 5, 5)
    found = model({"labels": LABELS, "size": 3, "images": [given]})
    assert [each.dtype for each in found] == [given.dtype, LABELS.dtype]
    assert len(model(given, LABELS)) == 2
    with pytest.raises(TypeError, match="input 0 is no mapping of keys images, labels, size"):
        model({"images": [given], "size": 3})
    with pytest.raises(TypeError, match=r"input 0\['images'\] is no list of 1 items"):
        model({"images": given, "labels": LABELS, "size": 3})
