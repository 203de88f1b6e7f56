"""How far a right result of a graph may be from PyTorch's, found by rounding PyTorch's own steps.

Verification compares with PyTorch's error. Where that is nothing by luck, as of a mean of equal
numbers, another order of the same sums would fail. So each step that rounds is evaluated in
float64, with errors drawn of the size of its type's; what they do to the outputs is allowed.
"""

import numpy as np
import torch

from fuzz.graphs import Graph, Step

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
    kinds = _kinds(graph)
    drawn = [
        [_array(each) for each in graph.evaluated(exactly=True, watch=_Rounding(kinds, seed))]
        for seed in range(_DRAWS)
    ]
    for number, (output, right) in enumerate(zip(outputs, exact, strict=True)):
        apart = [np.abs(each[number] - right) for each in drawn]
        # One element may be lucky in every draw: errors of an output are of one size.
        spread = max((float(each.max()) for each in apart if each.size), default=0.0)
        narrow = any(torch.finfo(each).bits == 16 for each in kinds.values())
        allowed = (_TIMES_16_BITS if narrow else _TIMES) * spread + 1e-6
        got = _array(torch.as_tensor(output.astype("float64")))
        if output.dtype.kind in "biu" and not np.array_equal(got, right):
            return False
        if not (np.abs(got - right) <= allowed).all():
            return False
    return True


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
    """Adds an error of its type's size to each result that is rounded."""

    def __init__(self, kinds: dict[str, torch.dtype], seed: int):
        self._kinds = kinds
        self._generator = torch.Generator().manual_seed(seed)

    def __call__(self, step: Step, value: torch.Tensor) -> torch.Tensor:
        if step.exact or step.name not in self._kinds or not value.numel():
            return value
        size = torch.finfo(self._kinds[step.name]).eps * value.abs().max().clamp(min=1e-3)
        signs = torch.rand(value.shape, generator=self._generator, dtype=torch.float64) * 2 - 1
        return value + signs * size
