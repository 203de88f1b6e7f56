"""How far a right result of a graph may be from PyTorch's, found by rounding PyTorch's own steps.

Verification compares with PyTorch's error. Where that is nothing by luck, as of a mean of equal
numbers, another order of the same sums would fail. So each step that rounds is evaluated in
float64, with errors drawn of the size of its type's; what they do to the outputs is allowed.

An element is NaN, an infinity, or finite. That is as in PyTorch where PyTorch in float64 agrees
with it; where it does not, an intermediate result is near the end of the type's range. Products
beyond that range are infinite, but not where a processor multiplies and adds in one step: after
sums of such products only finite elements are compared.
"""

import re

import numpy as np
import torch

from fuzz.graphs import Graph, Step, made
from fuzz.operators.contracting import MAKERS as SUMS_OF_PRODUCTS

_DRAWS = 6
# Of the largest error drawn: right results are further apart by chance, a sum's error grows with
# its length, and TVM rounds each part of what is one step in PyTorch.
_TIMES, _TIMES_16_BITS = 16.0, 24.0


def is_rounding(graph: Graph, outputs: list[np.ndarray]) -> bool:
    """Whether outputs differ from float64's by no more than rounding explains.

    Args:
        graph: the model.
        outputs: the compiled model's, of the right number, types and shapes.
    """
    exact = [_array(each) for each in graph.evaluated(exactly=True)]
    own = [_array(each) for each in graph.evaluated()] if graph.is_rare else exact
    kinds = _kinds(graph)
    drawn = [
        [
            _array(each)
            for each in graph.evaluated(exactly=True, watch=_Rounding(graph, kinds, seed))
        ]
        for seed in range(_DRAWS)
    ]
    narrow = any(torch.finfo(each).bits == 16 for each in kinds.values())
    overflows = graph.is_rare and _overflows(graph, kinds)
    for number, (output, right) in enumerate(zip(outputs, exact, strict=True)):
        got = _array(torch.as_tensor(output.astype("float64")))
        others = [each[number] for each in drawn]
        if output.dtype.kind in "biu":
            if not np.array_equal(got, right):
                return False
            continue
        known = np.logical_and.reduce([_class(right) == _class(e) for e in (own[number], *others)])
        if overflows:
            known &= np.isfinite(own[number])
        if (known & (_class(got) != _class(right))).any():
            return False
        known &= np.isfinite(right)
        # One element may be lucky in every draw: errors of an output are of one size.
        spread = max(
            (float(np.abs(e[known] - right[known]).max(initial=0)) for e in others), default=0.0
        )
        allowed = (_TIMES_16_BITS if narrow else _TIMES) * spread + 1e-6
        if not (np.abs(got[known] - right[known]) <= allowed).all():
            return False
    return True


def _overflows(graph: Graph, kinds: dict[str, torch.dtype]) -> bool:
    """Whether a step sums products of two numbers that it reads, beyond its type's range."""
    sizes = {name: _size(made(code)) for name, code in graph.inputs.items()}
    found: list[bool] = []

    def look(step: Step, value: torch.Tensor) -> torch.Tensor:
        sizes[step.name] = _size(value)
        if step.operator in SUMS_OF_PRODUCTS and step.name in kinds:
            largest = max((sizes.get(name, 0.0) for name in _read(step)), default=0.0)
            found.append(largest**2 > torch.finfo(kinds[step.name]).max)
        return value

    graph.evaluated(exactly=True, watch=look)
    return any(found)


def _read(step: Step) -> list[str]:
    """The inputs and earlier results that a step reads."""
    return re.findall(r"\b[vx]\d+\b", step.code)


def _class(values: np.ndarray) -> np.ndarray:
    """Of each value 0 if it is finite, 1 or -1 of an infinity, 2 of NaN."""
    return np.where(np.isnan(values), 2, np.where(np.isinf(values), np.sign(values), 0))


def _array(tensor: torch.Tensor) -> np.ndarray:
    found: np.ndarray = tensor.double().numpy()
    return found


def _kinds(graph: Graph) -> dict[str, torch.dtype]:
    """The type of each step's result, as far as it is a floating-point one."""
    kinds: dict[str, torch.dtype] = {}

    def note(step: Step, value: torch.Tensor) -> torch.Tensor:
        if value.is_floating_point():
            kinds[step.name] = value.dtype
        return value

    graph.evaluated(watch=note)
    return kinds


class _Rounding:
    """Adds an error of its type's size to each result that is rounded.

    The terms of a sum that cancels are larger than the sum: in a graph of rare values by far, so
    there the error is of the size of what a step reads.
    """

    def __init__(self, graph: Graph, kinds: dict[str, torch.dtype], seed: int):
        self._kinds = kinds
        self._generator = torch.Generator().manual_seed(seed)
        self._sizes: dict[str, float] = {}
        if graph.is_rare:
            self._sizes = {name: _size(made(code)) for name, code in graph.inputs.items()}

    def __call__(self, step: Step, value: torch.Tensor) -> torch.Tensor:
        if self._sizes:
            self._sizes[step.name] = _size(value)
        if step.exact or step.name not in self._kinds or not value.numel():
            return value
        read = [self._sizes.get(name, 0.0) for name in _read(step)]
        largest = max(_size(value), 1e-3, *read)
        size = torch.finfo(self._kinds[step.name]).eps * largest
        signs = torch.rand(value.shape, generator=self._generator, dtype=torch.float64) * 2 - 1
        return value + signs * size


def _size(value: torch.Tensor) -> float:
    """The magnitude of a tensor's largest finite value; 0 of one without any."""
    finite = value[torch.isfinite(value)]
    return float(finite.double().abs().max()) if finite.numel() else 0.0
