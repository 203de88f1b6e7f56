"""Lab 7, and what its checks need of the operator: values, tensors, models with it."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import expect, fresh_rng, seed_torch
from tvm_practice.engines import CLASSIC, CURRENT

PHASE = Phase(
    number=7,
    module="labs.custom_operator",
    title="an operator of your own",
    lanes=(CURRENT, CLASSIC),
    builds_on=(
        "relay_import.import_relax",
        "relay_import.optimize_relax",
        "relay_import.build_relax",
        "relay_import.verify",
        "relay_import.import_relay",
        "relay_import.optimize_relay",
        "relay_import.build_relay",
    ),
    question=(
        "You can give the compiler an operator as a tensor expression, as a scheduled kernel, or "
        "as a library call. What does the compiler know in each case, and what can it no longer "
        "do?"
    ),
)

LANES = 16
fresh_numbers = itertools.count()


def right_values(
    x: np.ndarray, z: np.ndarray, weight: np.ndarray, eps: float, **wrong: bool
) -> np.ndarray:
    """The operator in float64; `wrong` switches the usual mistakes on."""
    x, z, weight = (each.astype("float64") for each in (x, z, weight))
    h = x / (1 + np.exp(-z)) if wrong.get("sigmoid") else x * z / (1 + np.exp(-z))
    squares = (h * h).sum(-1, keepdims=True)
    if not wrong.get("sum"):
        squares = squares / x.shape[-1]
    with np.errstate(divide="ignore", invalid="ignore"):  # a row of zeros with eps 0
        if wrong.get("outside"):
            scale = 1 / (np.sqrt(squares) + eps)
        else:
            scale = 1 / np.sqrt(squares + (0 if wrong.get("no_eps") else eps))
        result: np.ndarray = h * scale * (1 if wrong.get("no_weight") else weight)
    return result


MISTAKES = {
    "sigmoid": "H is x · z · sigmoid(z): silu is sigmoid times its argument",
    "sum": "divide the sum of squares by the number of columns: it is a mean",
    "outside": "eps is added to the mean, inside the root",
    "no_eps": "eps is not added",
    "no_weight": "each column is multiplied by its weight W",
}


def draw_inputs(shape: tuple[int, ...]) -> list[np.ndarray]:
    """New x, z and weight."""
    rng = fresh_rng()
    return [rng.standard_normal(each, dtype="float32") for each in (shape, shape, shape[-1:])]


def _placeholders(shape: tuple[int, ...]) -> list[Any]:
    from tvm import te

    shapes = {"X": shape, "Z": shape, "W": shape[-1:]}
    return [te.placeholder(each, name=name) for name, each in shapes.items()]


def declared_by_reference(shape: tuple[int, ...], eps: float = 1e-5) -> list[Any]:
    """The operator's tensors by the reference function."""
    from solutions.labs.custom_operator import rms_norm_gate

    inputs = _placeholders(shape)
    return [*inputs, rms_norm_gate(*inputs, eps=eps)]


def declared_by(function: Callable[..., Any], shape: tuple[int, ...], eps: float) -> list[Any]:
    inputs = _placeholders(shape)
    return [*inputs, function(*inputs, eps=eps)]


def model_of(
    eps: Sequence[float], columns: int, *, cut: bool = False, all_told: bool = False
) -> Any:
    """Calls of the operator, each on the ReLU of the one before; called with x and z.

    Each call has a weight of its own. With `cut`, the last is of the first row of x and z alone.
    With `all_told`, the last but one is of one tensor as x and as z, and the model returns the sum
    of all results, because the next norm would undo a wrong scale.
    """
    import torch

    from tvm_practice.labs.gated_layer import rms_norm_gate

    seed_torch()

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            drawn = (torch.nn.Parameter(torch.randn(columns)) for _ in eps)
            self.weights = torch.nn.ParameterList(drawn)

        def forward(self, x: torch.Tensor, z: torch.Tensor) -> torch.Tensor:
            results = []
            for at, (each, weight) in enumerate(zip(eps, self.weights, strict=True)):
                if cut and at == len(eps) - 1:
                    x, z = x[:1], z[:1]
                gate = x if all_told and at == len(eps) - 2 else z
                x = torch.relu(rms_norm_gate(x, gate, weight, each))
                results.append(x)
            return sum(results[:-1], x) if all_told else x

    return Model().eval()


def drawn_model(
    eps: Sequence[float], shape: tuple[int, ...], *, cut: bool = False, all_told: bool = False
) -> tuple[Any, tuple[Any, ...], np.ndarray]:
    """A model as `model_of` makes it, inputs, and what it should return."""
    import torch

    model = model_of(eps, shape[-1], cut=cut, all_told=all_told)
    given = x, z = draw_inputs(shape)[:2]
    # The first column stays positive: the ReLUs leave no row of zeros, where an eps of 0 gives NaN.
    for tensor in given:
        tensor[..., 0] = np.abs(tensor[..., 0]) + np.float32(0.1)
    results: list[np.ndarray] = []
    for at, (each, parameter) in enumerate(zip(eps, model.weights, strict=True)):
        weight = draw_inputs(shape)[-1]
        weight[0] = np.abs(weight[0]) + np.float32(0.1)
        with torch.no_grad():
            parameter.copy_(torch.from_numpy(weight))
        if cut and at == len(eps) - 1:
            x, z = x[:1], z[:1]
        gate = x if all_told and at == len(eps) - 2 else z
        x = np.maximum(right_values(x, gate, weight, each), 0)
        results.append(x)
    want = sum(results[:-1], x) if all_told else x
    return model, tuple(map(torch.from_numpy, given)), want


def expect_map(converters: Any, key: str) -> None:
    expect(
        isinstance(converters, dict) and list(converters) == [key],
        expected=f"{{{key!r}: the converter}}",
        seen=repr(list(converters)) if isinstance(converters, dict) else type(converters).__name__,
        look="the key, which is what the frontend calls the operator",
    )
