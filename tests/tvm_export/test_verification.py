"""What verification refuses, and what it does not: by element, by type, on several inputs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tvm_practice.tvm_export.calling import as_array, as_call, evaluate
from tvm_practice.tvm_export.draws import read_data, trials
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.graph_module import GraphModule
from tvm_practice.tvm_export.steps.comparing import verify
from tvm_practice.tvm_export.verification import verify_against_pytorch, verify_model

Change = Callable[[list[np.ndarray]], list[np.ndarray]]


class InPyTorch:
    """Runs a module in PyTorch, and changes its outputs."""

    def __init__(self, module: torch.nn.Module, change: Change):
        self._module, self._change = module, change

    def set_inputs(self, inputs: Sequence[np.ndarray]) -> None:
        self._given = [torch.from_numpy(each) for each in inputs]

    def run(self) -> None:
        with torch.inference_mode():
            self._outputs = self._change([as_array(each).copy() for each in self._run()])

    def _run(self) -> tuple[torch.Tensor, ...]:
        given: tuple[torch.Tensor, ...] = self._module(*self._given)
        return given

    def outputs(self) -> list[np.ndarray]:
        return self._outputs


def judged(
    module: torch.nn.Module,
    *example: torch.Tensor,
    change: Change = lambda outputs: outputs,
    shapes: dict[str, Any] | None = None,
    **settings: Any,
) -> dict[str, Any]:
    """`verify_model` on a module compiled by nothing, its outputs changed."""
    call = as_call(evaluate(module), example, shapes=shapes)
    runner = InPyTorch(call.module, change)
    built = GraphModule("current", None, runner, None, "", "llvm", call.inputs)
    return verify_model(built, call, verify, **settings)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_nan_is_right_only_where_pytorch_has_it(dtype: torch.dtype) -> None:
    class Padded(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.pad(x, (1, 2), value=float("nan"))

    def put(value: float, at: int) -> Change:
        def change(outputs: list[np.ndarray]) -> list[np.ndarray]:
            outputs[0][1, at] = value
            return outputs

        return change

    x = torch.ones(3, 4, dtype=dtype)
    assert judged(Padded(), x)["verified"]
    with pytest.raises(ValueError, match="elements are wrong"):  # nothing was compared
        judged(Padded(), x * torch.nan)
    for value, at in ((np.nan, 2), (1.0, 0), (np.inf, 0)):
        with pytest.raises(ValueError, match="elements are wrong"):
            judged(Padded(), x, change=put(value, at))


class Large(torch.nn.Module):
    """Four logits beside sums of a million, for which float32 has no digits to spare."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        long = (x[:, None] * torch.linspace(1, 2, 1000) * 1e3).cumsum(1)[:, -1]
        return torch.cat([x[:4], long])


def test_a_few_wrong_logits_beside_large_values() -> None:
    x = torch.linspace(0.1, 1, 512)
    call = as_call(Large(), (x,))
    reference = [as_array(each) for each in call.module(x)]
    twin = [as_array(each.double()) for each in call.module(x.double())]
    far = np.abs(reference[0] - twin[0]).max()
    assert far > 0.02  # what made the largest error of the whole output a bad judge
    wrong = [reference[0].copy()]
    wrong[0][:4] += 3 * far
    with pytest.raises(ValueError, match="output 0: "):
        verify_against_pytorch(wrong, reference, call, verify, atol=1e-3, rtol=1e-9)
    other = [twin[0].astype("float32")]  # another order of sums
    told = verify_against_pytorch(other, reference, call, verify, atol=1e-3, rtol=1e-9)
    assert told["reference"] == "pytorch in float64" and told["pytorch_error"] == far


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_roundings_to_sixteen_bits_are_right(dtype: torch.dtype) -> None:
    call = as_call(torch.nn.Softmax(-1), (torch.randn(4, 33).to(dtype) * 8,))
    reference = [as_array(each) for each in call.module(*call.tensors)]
    above = [np.nextafter(each, np.array(2, each.dtype)) for each in reference]
    told = verify_against_pytorch(above, reference, call, verify, atol=1e-6, rtol=1e-4)
    assert told["reference"] == "pytorch in float64"
    doubled = [each * np.array(1.1, each.dtype) for each in reference]
    with pytest.raises(ValueError, match="output 0"):
        verify_against_pytorch(doubled, reference, call, verify, atol=1e-6, rtol=1e-4)


class CumulativeSum(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.cumsum(0)


def test_types_are_compared() -> None:
    x = torch.arange(5, dtype=torch.int32)
    assert judged(CumulativeSum(), x)["verified"]
    with pytest.raises(ValueError, match="output 0 is of type int32, PyTorch's of int64"):
        judged(CumulativeSum(), x, change=lambda outputs: [outputs[0].astype("int32")])


def test_the_number_of_outputs_is_compared() -> None:
    with pytest.raises(ValueError, match="2 outputs to compare with 1"):
        judged(torch.nn.ReLU(), torch.randn(3), change=lambda outputs: outputs * 2)


def test_a_constant_in_place_of_the_output() -> None:
    """Right for the example, and for nothing else: drawn inputs find it."""
    x = torch.linspace(-1, 1, 7)
    constant = [torch.nn.functional.relu(x).numpy()]
    with pytest.raises(ValueError, match="on random inputs of seed 1"):
        judged(torch.nn.ReLU(), x, change=lambda _: constant)
    told = judged(torch.nn.ReLU(), x)
    assert told["trials"] == ["the example", *(f"random inputs of seed {i}" for i in (1, 2))]


class Scaled(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if x.shape[0] == 1:
            raise ValueError("no single row")
        return x * x.shape[0] + y.shape[1]


def test_open_extents_are_verified_at_three() -> None:
    """Of which PyTorch may refuse one; the next is taken."""
    x, y = torch.ones(4, 3), torch.ones(4, 3)
    shapes: dict[str, Any] = {"x": ("rows", 3), "y": ("rows", 3)}
    told = judged(Scaled(), x, y, shapes=shapes)
    assert [each.partition(", ")[2] for each in told["trials"]] == ["", "rows = 5", "rows = 8"]

    def at_the_example_only(outputs: list[np.ndarray]) -> list[np.ndarray]:
        return [each - len(each) + 4 for each in outputs]

    with pytest.raises(ValueError, match="rows = 5"):
        judged(Scaled(), x, y, shapes=shapes, change=at_the_example_only)


def test_a_model_that_writes_into_its_input() -> None:
    class Writes(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.add_(1)

    x = torch.zeros(3)
    call = as_call(Writes(), (x,), copies=True)
    runner = InPyTorch(call.module, lambda outputs: outputs)
    built = GraphModule("current", None, runner, None, "", "llvm", call.inputs)
    assert verify_model(built, call, verify)["max_error"] == 0
    assert not x.any() and built.outputs()[0].tolist() == [1, 1, 1]  # the example's, at the end


def test_draws_stay_within_what_the_model_takes() -> None:
    ids, mask = torch.tensor([3, 5]), torch.tensor([[0.0, -torch.inf], [0, 0]])
    positive, flags = torch.tensor([0.5, 2.0]), torch.tensor([True, True])
    lengths, zeros = torch.tensor([7, 9], dtype=torch.int32), torch.zeros(3, 4)
    example = (ids, mask, positive, flags, lengths, zeros, torch.ones(0, 2))
    call = as_call(torch.nn.Identity(), example)
    drawn = list(trials(call, bounds={"input_0": 1000}))
    assert len(drawn) == 2
    for trial in drawn:
        new_ids, new_mask, new_positive, new_flags, new_lengths, new_zeros, _ = trial.tensors
        assert int(new_ids.min()) >= 0 and int(new_ids.max()) < 1000
        assert set(new_mask.flatten().tolist()) <= {0, -torch.inf}
        assert bool((new_positive >= 0.25).all()) and bool((new_positive <= 3).all())
        assert bool(new_flags.all()) and set(new_lengths.tolist()) <= {7, 9}
        assert new_zeros.std() > 0
        pairs = zip(example, trial.tensors, strict=True)
        assert all(a.shape == b.shape and a.dtype == b.dtype for a, b in pairs)
    assert not torch.equal(drawn[0].tensors[0], drawn[1].tensors[0])


def test_a_persons_own_data(tmp_path: Path) -> None:
    file, x = tmp_path / "x.npz", torch.randn(2, 3)
    np.savez(file, input_0=np.zeros((2, 3)))  # float64, of which float32 is made
    told = judged(torch.nn.Sigmoid(), x, data=file)
    assert told["trials"] == ["the example", str(file)]

    def wrong_at_zero(outputs: list[np.ndarray]) -> list[np.ndarray]:
        return [np.where(each == 0.5, 0.6, each).astype("float32") for each in outputs]

    assert judged(torch.nn.Sigmoid(), x, change=wrong_at_zero)["verified"]
    several = np.concatenate([np.ones((2, 2, 3)), np.zeros((1, 2, 3))])
    np.savez(file, input_0=several.astype("float32"))
    assert len(judged(torch.nn.Sigmoid(), x, data=file)["trials"]) == 4
    with pytest.raises(ValueError, match=r"x.npz, input 2"):
        judged(torch.nn.Sigmoid(), x, change=wrong_at_zero, data=file)


@pytest.mark.parametrize(
    ("arrays", "said"),
    [
        ({"image": np.zeros((2, 3))}, "holds image; the model's inputs are input_0, input_1"),
        ({}, "holds nothing"),
        ({"input_0": np.zeros((2, 4)), "input_1": np.zeros(2)}, r"input_0 is float32 \[2, 4\]"),
        ({"input_0": np.zeros((2, 3), int), "input_1": np.zeros(2)}, "input_0 is int64"),
        ({"input_0": np.full((2, 3), "a"), "input_1": np.zeros(2)}, "input_0 is of type <U1"),
        ({"input_0": np.zeros((5, 2, 3)), "input_1": np.zeros((4, 2))}, r"\[4, 5\] inputs"),
    ],
)
def test_data_that_does_not_fit(arrays: dict[str, Any], said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    np.savez(file, **arrays)
    call = as_call(torch.nn.Identity(), (torch.zeros(2, 3), torch.zeros(2)))
    with pytest.raises(BadInput, match=said):
        read_data(file, call)


def test_a_file_that_is_none(tmp_path: Path) -> None:
    call = as_call(torch.nn.Identity(), (torch.zeros(2),))
    with pytest.raises(BadInput, match=r"cannot read .*none.npz: No such file"):
        read_data(tmp_path / "none.npz", call)
    for name, content in {"text": b"words", "zip": b"PK\x03\x04"}.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(BadInput, match=f"{name} is not an .npz file"):
            read_data(tmp_path / name, call)


def rounded(outputs: list[np.ndarray]) -> list[np.ndarray]:
    """As float16 would give them."""
    return [each.astype("float16").astype("float32") for each in outputs]


def test_a_cosine_decides_in_place_of_the_tolerances() -> None:
    model, x = torch.nn.Linear(40, 10), torch.randn(8, 40)
    with pytest.raises(ValueError, match="output 0"):
        judged(model, x, change=rounded, atol=1e-7, rtol=1e-7)
    made = judged(model, x, change=rounded, atol=1e-7, rtol=1e-7, min_cosine=0.999)
    assert made["verified"] and made["reference"] == "pytorch in float64"
    assert 0.999 < made["cosine"] < 1 and 0 < made["max_error"] < 1e-2
    assert made["top1"] > 0.9 and len(made["trials"]) == 3
    with pytest.raises(ValueError, match=r"less than --min-cosine 0\.999.*; on "):
        judged(model, x, change=lambda y: [-each for each in y], min_cosine=0.999)


def test_a_cosine_does_not_excuse_another_type_or_a_missing_number() -> None:
    model, x = torch.nn.Linear(40, 10), torch.randn(8, 40)
    with pytest.raises(ValueError, match="float16"):
        judged(model, x, change=lambda y: [y[0].astype("float16")], min_cosine=0.0)
    with pytest.raises(ValueError, match=r"cosine .* is -1\.0"):
        judged(model, x, change=lambda y: [np.full_like(y[0], np.nan)], min_cosine=0.0)


class Stepped(torch.nn.Module):
    """A quantized input."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        import torch.ao.quantization.fx._decomposed

        ops = torch.ops.quantized_decomposed
        steps: torch.Tensor = ops.quantize_per_tensor(x, 0.02, 128, 0, 255, torch.uint8)
        return steps.float()


def one_step(outputs: list[np.ndarray]) -> list[np.ndarray]:
    """A value on the other side of an edge between two steps."""
    outputs[0][3, 3] += 1
    return outputs


def test_a_program_that_came_quantized_may_be_a_step_off() -> None:
    x = torch.randn(8, 40)
    program = torch.export.export(Stepped(), (x,)).module()
    exact = judged(program, x)
    assert exact["max_error"] == 0.0 and exact.get("cosine") is None
    made = judged(program, x, change=one_step)
    assert made["verified"] and made["reference"] == "pytorch" and made["max_error"] == 1.0
    assert 0.999 < made["cosine"] < 1 and made["min_cosine"] == 0.999
    with pytest.raises(ValueError, match=r"less than --min-cosine 0\.999.*; on "):
        judged(program, x, change=lambda y: [255 - each for each in y])
    with pytest.raises(ValueError, match="output 0"):
        judged(torch.nn.Identity(), x, change=one_step)
