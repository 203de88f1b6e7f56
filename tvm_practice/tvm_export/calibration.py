"""The ranges of the inputs of a model's convolutions, over a person's data."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tvm_practice.tvm_export.config import CalibrationMethod
from tvm_practice.tvm_export.errors import BadInput

if TYPE_CHECKING:
    from tvm_practice.tvm_export.calling import Call
    from tvm_practice.tvm_export.draws import Trial

_BINS, _LEVELS = 2048, 256  # of a histogram, and of a byte
_OUTSIDE = 1e-4  # the share of values that "percentile" leaves outside a range
_FACTORS = np.linspace(1.0, 0.1, 91)  # of a range, that "entropy" tries
_FEWEST, _HELD_OUT = 4, 4  # inputs of which one in four is held out


@dataclass
class Range:
    """What a convolution reads.

    Attributes:
        name: of the layer; "" for a weight that is no parameter.
        weight: the shape of its weight.
        smallest, largest: elements of its input.
    """

    name: str
    weight: tuple[int, ...]
    smallest: float
    largest: float


def split(trials: Sequence["Trial"]) -> tuple[list["Trial"], list["Trial"]]:
    """Inputs to calibrate on, and those to be held out: every fourth of four or more."""
    if len(trials) < _FEWEST:
        return list(trials), []
    used = [each for index, each in enumerate(trials, 1) if index % _HELD_OUT]
    return used, list(trials[_HELD_OUT - 1 :: _HELD_OUT])


def calibrated(call: "Call", data: Path, method: CalibrationMethod = "minmax") -> list[Range]:
    """The range of each convolution over two axes, in the order of their calls.

    Args:
        call: the model; it runs once per input, twice unless the method is "minmax".
        data: a file of inputs, see `draws.read_data`; those that `split` holds out are not used.
        method: "minmax": all values. "percentile": all but 0.01% of them, half of these at either
            end. "entropy": the range shrunk towards 0 until the distribution of the values in 256
            steps is nearest to that of the values themselves, by Kullback and Leibler's measure
            (Migacz, "8-bit inference with TensorRT", 2017).

    Raises:
        BadInput: the file; a model whose convolutions differ by the input, or read no finite
            numbers.
    """
    from tvm_practice.tvm_export.draws import read_data

    used, _ = split(read_data(data, call))
    found: list[Range] = []
    for trial in used:
        ranges = [
            Range(name, weight, float(x.min()), float(x.max()))
            for name, weight, x in _read(call, trial.tensors)
        ]
        if not found:
            found = ranges
        if [each.weight for each in found] != [each.weight for each in ranges]:
            raise BadInput(f"--calibration: {trial.name} has the model call other convolutions")
        for known, new in zip(found, ranges, strict=True):
            if not np.isfinite([new.smallest, new.largest]).all():
                raise BadInput(f"--calibration: {trial.name} gives no finite input of {new.name}")
            known.smallest = min(known.smallest, new.smallest)
            known.largest = max(known.largest, new.largest)
    if method == "minmax":
        return found
    narrowed = _NARROWED[method]
    for each, counts in zip(found, _histograms(call, used, found), strict=True):
        if each.smallest < each.largest:
            edges = np.linspace(each.smallest, each.largest, _BINS + 1)
            each.smallest, each.largest = narrowed(counts, edges)
    return found


def _read(
    call: "Call", tensors: Sequence[Any]
) -> Iterator[tuple[str, tuple[int, ...], np.ndarray]]:
    """Of each convolution the name, the weight's shape, and what it reads."""
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    names = {
        weight.data_ptr(): name.removeprefix("module.").rpartition(".")[0]
        for name, weight in call.module.named_parameters()
    }
    found: list[tuple[str, tuple[int, ...], np.ndarray]] = []
    base: Any = TorchDispatchMode  # which has no types

    class Watch(base):  # type: ignore[misc]
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func.overloadpacket is torch.ops.aten.convolution and args[1].ndim == 4:
                x, weight = args[:2]
                name = names.get(weight.data_ptr(), "")
                found.append((name, tuple(weight.shape), x.float().numpy()))
            return func(*args, **(kwargs or {}))

    with torch.no_grad(), Watch():
        call.module(*(each.clone() for each in tensors))
    yield from found


def _histograms(
    call: "Call", trials: Sequence["Trial"], ranges: Sequence[Range]
) -> list[np.ndarray]:
    """How often the values of each convolution's input lie in each part of its range."""
    counts = [np.zeros(_BINS) for _ in ranges]
    for trial in trials:
        for total, seen, (_, _, x) in zip(counts, ranges, _read(call, trial.tensors), strict=True):
            total += np.histogram(x, _BINS, (seen.smallest, seen.largest))[0]
    return counts


def _percentile(counts: np.ndarray, edges: np.ndarray) -> tuple[float, float]:
    """The range that leaves as many values outside as `_OUTSIDE` says."""
    below = np.cumsum(counts) / counts.sum()
    first = int(np.searchsorted(below, _OUTSIDE / 2, side="right"))
    last = int(np.searchsorted(below, 1 - _OUTSIDE / 2))
    return float(edges[first]), float(edges[last + 1])


def _entropy(counts: np.ndarray, edges: np.ndarray) -> tuple[float, float]:
    """The range, shrunk, whose distribution in steps is nearest to that of the values."""
    best = min(_FACTORS, key=lambda factor: _divergence(counts, edges, factor))
    return float(edges[0] * best), float(edges[-1] * best)


def _divergence(counts: np.ndarray, edges: np.ndarray, factor: float) -> float:
    """Kullback and Leibler's, of the values from those clipped to a shrunk range and rounded.

    Values beyond the range are counted at its ends, where the rounded ones have only their own.
    """
    low, high = edges[0] * factor, edges[-1] * factor
    middle = (edges[:-1] + edges[1:]) / 2
    inside = (middle >= low) & (middle <= high)
    kept = counts[inside]
    if not kept.any():
        return float("inf")
    true = kept.copy()
    true[0] += counts[middle < low].sum()
    true[-1] += counts[middle > high].sum()
    step = np.clip((middle[inside] - low) / (high - low) * _LEVELS, 0, _LEVELS - 1).astype(int)
    sums = np.bincount(step, kept, _LEVELS)
    filled = np.bincount(step, kept > 0, _LEVELS)
    rounded = np.where(kept > 0, sums[step] / np.maximum(filled[step], 1), 0.0)
    p, q = true / true.sum(), np.maximum(rounded / rounded.sum(), 1e-12)
    some = p > 0
    return float((p[some] * np.log(p[some] / q[some])).sum())


_NARROWED: dict[str, Callable[[np.ndarray, np.ndarray], tuple[float, float]]] = {
    "percentile": _percentile,
    "entropy": _entropy,
}
