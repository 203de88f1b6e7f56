"""A part of a graph as the exporter takes a model: tensors in, tensors out, weights its own."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import fx, nn
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis

from tvm_practice.tvm_export.calling import Call
from tvm_practice.tvm_export.errors import NotApplicable


class Closed(nn.Module):
    """A graph some of whose arguments are fixed, as a function of the other tensors.

    Args:
        graph: its arguments are tensors and whole numbers; left as it is.
        fixed: arguments by position: weights, and numbers where they are not open.
        sizes: of other numbers, an expression of the names in `names`.
        names: where a symbol's value is read: the number of a tensor and its axis.
    """

    def __init__(
        self,
        graph: fx.GraphModule,
        fixed: Mapping[int, Any],
        sizes: Mapping[int, Any] | None = None,
        names: Mapping[Any, tuple[int, int]] | None = None,
    ):
        super().__init__()
        self._graph = graph
        self._numbers = {}
        self._weights = {}
        for position, value in fixed.items():
            if isinstance(value, torch.Tensor):
                self._weights[position] = f"weight_{position}"
                self.register_buffer(self._weights[position], value.detach())
            else:
                self._numbers[position] = value
        self._sizes = sizes or {}
        self._names = names or {}
        # All that it is beside its graph and its weights' values, the same in every process.
        self.facts = [str(sorted(each.items())) for each in (self._numbers, self._sizes)]
        self._count = len(graph.graph.find_nodes(op="placeholder"))
        self.eval()

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        known = {name: tensors[index].shape[axis] for name, (index, axis) in self._names.items()}
        given = iter(tensors)
        arguments = []
        for position in range(self._count):
            if position in self._weights:
                arguments.append(getattr(self, self._weights[position]))
            elif position in self._numbers:
                arguments.append(self._numbers[position])
            elif position in self._sizes:
                size = self._sizes[position]
                arguments.append(sympy_interp(PythonReferenceAnalysis, known, size))
            else:
                arguments.append(next(given))
        made = self._graph(*arguments)
        return tuple(made) if isinstance(made, tuple | list) else (made,)


def closed(
    graph: fx.GraphModule, arguments: Sequence[Any], weights: frozenset[int], *, opened: bool
) -> Call:
    """A graph and its arguments as a model and its example inputs.

    Args:
        graph: as traced, its placeholders' values symbolic where extents are open.
        arguments: of one call.
        weights: positions of the arguments that become constants.
        opened: keep extents open that were traced so; else they are those of the arguments.

    Raises NotApplicable where `opened` and an extent is no plain symbol, or is no tensor's.
    """
    places = [
        place
        for place, value in enumerate(arguments)
        if isinstance(value, torch.Tensor) and place not in weights
    ]
    fixed = {place: value for place, value in enumerate(arguments) if place not in places}
    tensors = tuple(arguments[place].detach() for place in places)
    labels = tuple(f"input_{index}" for index in range(len(places)))
    if not opened:
        return Call(Closed(graph, fixed), tensors, labels)
    values = [each.meta["val"] for each in graph.graph.find_nodes(op="placeholder")]
    names: dict[Any, tuple[int, int]] = {}
    dynamic: list[dict[int, str]] = []
    for index, place in enumerate(places):
        dynamic.append({})
        for axis, extent in enumerate(values[place].shape):
            if not isinstance(extent, torch.SymInt):
                continue
            symbol = extent.node.expr
            if not symbol.is_symbol:
                raise NotApplicable(f"an extent of input {index} is {symbol}, not a symbol")
            names.setdefault(symbol, (index, axis))
            dynamic[-1][axis] = str(symbol)
    sizes = {
        place: value.node.expr
        for place, value in enumerate(values)
        if isinstance(value, torch.SymInt)
    }
    for size in sizes.values():
        if unknown := size.free_symbols - names.keys():
            raise NotApplicable(f"{unknown.pop()} is no input's extent")
    for place in sizes:
        fixed.pop(place, None)
    return Call(Closed(graph, fixed, sizes, names), tensors, labels, tuple(dynamic))


def has_open_extents(graph: fx.GraphModule) -> bool:
    """Whether an argument of the graph was traced as or with a symbol."""
    values = [each.meta.get("val") for each in graph.graph.find_nodes(op="placeholder")]
    return any(
        isinstance(value, torch.SymInt)
        or (
            isinstance(value, torch.Tensor)
            and any(isinstance(extent, torch.SymInt) for extent in value.shape)
        )
        for value in values
    )


def output_orders(graph: fx.GraphModule) -> list[list[int] | None]:
    """Of each output, the order of its axes by stride; None where it is contiguous.

    One whose elements overlap, as those of `expand` do, counts as contiguous: PyTorch may do
    the same with it.
    """
    [output] = graph.graph.find_nodes(op="output")
    made = output.args[0]
    nodes = made if isinstance(made, tuple | list) else [made]
    return [_order(each.meta["val"]) for each in nodes]


def _order(value: torch.Tensor) -> list[int] | None:
    shape, strides = (_hints(each) for each in (value.shape, value.stride()))
    axes = [axis for axis, extent in enumerate(shape) if extent != 1]
    order = sorted(axes, key=lambda axis: strides[axis], reverse=True)
    dense = 1
    for axis in reversed(order):
        if strides[axis] != dense:
            return None
        dense *= shape[axis]
    if order == axes:
        return None
    rest = [axis for axis in range(len(shape)) if axis not in axes]
    return rest + order


def _hints(sizes: Sequence[Any]) -> list[int]:
    return [each.node.hint if isinstance(each, torch.SymInt) else each for each in sizes]
