"""Operators taken apart once each: the program that `run_decompositions` makes of the whole."""

import operator
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from tvm_practice.tvm_export.importers.distinct_operators import taken_apart_once

pytestmark = pytest.mark.filterwarnings("ignore:.*LeafSpec:FutureWarning")  # of PyTorch's own use


class _Block(nn.Module):
    """Writes to its own sums, and to nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 8)
        self.norm = nn.LayerNorm(8)
        self.drop = nn.Dropout(0.1, inplace=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.second(nn.functional.gelu(self.first(self.norm(x))))
        y += x
        left, right = (self.drop(y.relu_()) * 3).chunk(2, -1)
        return torch.cat([right, left * 2], -1)


class _Convolutions(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Conv2d(4, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU6(inplace=True))
            for _ in range(6)
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        for each in self.layers:
            x = x + each(x)
        return x, nn.functional.dropout(x, training=False), x.flatten(1)


class _WeightFirst(nn.Module):
    """How PyTorch multiplies a matrix by a batch depends on whether it may take gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterList(torch.randn(8, 8) for _ in range(6))
        self.register_buffer("kept", torch.randn(8, 8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for each in self.weights:
            x = (each @ x) + (self.get_buffer("kept") @ x)
        return x


class _Given(nn.Module):
    def __init__(self, function: Callable[..., Any], **buffers: torch.Tensor) -> None:
        super().__init__()
        self._function = function
        for name, value in buffers.items():
            self.register_buffer(name, value)

    def forward(self, x: torch.Tensor) -> Any:
        return self._function(self, x)


def _exported(model: nn.Module, x: torch.Tensor, **settings: Any) -> Any:
    return torch.export.export(model.eval(), (x,), **settings)


def _steps(program: Any) -> list[tuple[Any, ...]]:
    """What a program computes: its calls, each with numbers in place of nodes."""
    program.graph.eliminate_dead_code()
    numbers: dict[Any, int] = {}
    found = []
    for node in program.graph.nodes:
        numbers[node] = len(numbers)
        args, kwargs = (
            torch.fx.node.map_arg(given, lambda each: f"node {numbers[each]}")
            for given in (node.args, node.kwargs)
        )
        target = node.target if node.op == "call_function" else node.op
        value = node.meta.get("val")
        kind = (value.dtype, value.shape) if isinstance(value, torch.Tensor) else None
        found.append((target, repr(args), repr(kwargs), kind))
    return found


def _whole(program: Any) -> Any:
    return program.run_decompositions()


@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (nn.Sequential(*(_Block() for _ in range(6))), (3, 8)),
        (_Convolutions(), (1, 4, 8, 8)),
        (_WeightFirst(), (2, 8, 5)),
    ],
)
def test_the_program_is_that_of_the_whole(model: nn.Module, shape: tuple[int, ...]) -> None:
    x = torch.randn(shape)
    program, counted = _exported(model, x), []
    wanted = _exported(model, x).run_decompositions()

    def take_apart(each: Any) -> Any:
        counted.append(sum(node.op == "call_function" for node in each.graph.nodes))
        return each.run_decompositions()

    calls = sum(node.op == "call_function" for node in program.graph.nodes)
    assert taken_apart_once(program, take_apart)
    assert len(counted) == 1 and counted[0] <= calls / 4
    assert _steps(program) == _steps(wanted)
    results = program.graph.output_node().args[0]
    assert [each.arg.name for each in program.graph_signature.output_specs] == [
        each.name for each in results
    ]
    torch.testing.assert_close(program.module()(x), model(x))


def _writes_to_a_view(_: Any, x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    for at in range(4):
        y[at].add_(1)
    return y


def _reads_through_a_view(_: Any, x: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        y = x * 2
        seen = y.view(-1)
        y.add_(1)
        x = seen.view_as(y)
    return x


def _writes_after_a_dropout_that_writes_nothing(_: Any, x: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        y = x * 2
        z = nn.functional.dropout(y.view(-1), training=False, inplace=True)
        x = y + z.relu_().view_as(y)
    return x


def _counts(model: Any, x: torch.Tensor) -> Any:
    for _ in range(4):
        model.calls.add_(1)
    return x + model.calls


def _branches(_: Any, x: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,))
    return x


def _turns(_: Any, x: torch.Tensor) -> torch.Tensor:
    for _ in range(4):
        x = torch.view_as_real(torch.view_as_complex(x) * 1j)
    return x


def _once_each(_: Any, x: torch.Tensor) -> torch.Tensor:
    return x.sin().cos().exp().tanh()


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (_writes_to_a_view, (4, 3)),
        (_reads_through_a_view, (4, 3)),
        (_writes_after_a_dropout_that_writes_nothing, (4, 3)),
        (_counts, (4, 3)),
        (_branches, (4, 3)),
        (_turns, (4, 2)),
        (_once_each, (4, 3)),
    ],
)
def test_other_programs_stay_as_they_are(
    function: Callable[..., Any], shape: tuple[int, ...]
) -> None:
    model = _Given(function, calls=torch.zeros(3))
    program = _exported(model, torch.randn(shape))
    before = str(program.graph)
    assert not taken_apart_once(program, _whole)
    assert str(program.graph) == before


def test_a_program_of_open_extents_stays_as_it_is() -> None:
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(6)))
    rows = torch.export.Dim("rows")
    program = _exported(model, torch.randn(3, 8), dynamic_shapes=({0: rows},))
    assert not taken_apart_once(program, _whole)


def test_a_decomposition_that_makes_a_constant_is_left_to_the_whole() -> None:
    model = _Given(lambda _, x: x.sin().sin().sin().sin())
    program = _exported(model, torch.randn(3))
    table = {torch.ops.aten.sin.default: lambda x: x * torch.tensor([1.0, 2.0, 3.0])}
    assert not taken_apart_once(program, lambda each: each.run_decompositions(table))


def test_one_node_for_two_arguments_and_two_for_two() -> None:
    """An operator of a tensor and itself, and one of two that become the same."""

    def sums(_: Any, x: torch.Tensor) -> torch.Tensor:
        for _ in range(4):
            x = (x + x) * (x + x.contiguous())
        return x

    program = _exported(_Given(sums), torch.randn(3))
    assert taken_apart_once(program, _whole)
    adds = [node for node in program.graph.nodes if node.target == torch.ops.aten.add.Tensor]
    assert len(adds) == 8 and all(each.args[0] is each.args[1] for each in adds)
    assert operator.getitem not in [node.target for node in program.graph.nodes]
