"""Which layers int8 harms: the outputs with all layers quantized but one, layer by layer.

The layers are those that `quantization` takes. Their arithmetic is computed in PyTorch, on numbers
rounded to the same 256 steps, so that nothing is compiled and a layer costs a run of the model.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tvm_practice.tvm_export.accuracy import accuracy, together
from tvm_practice.tvm_export.calibration import Range, calibrated, split
from tvm_practice.tvm_export.calling import Call, as_array
from tvm_practice.tvm_export.config import CalibrationMethod
from tvm_practice.tvm_export.draws import DRAWN, Trial, read_data, trials
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.relax_passes.integer_operators import LARGEST, STEPS, gains
from tvm_practice.tvm_export.relax_passes.requantization import SMALLEST_SCALE
from tvm_practice.tvm_export.verification import in_float64


@dataclass(frozen=True)
class Harm:
    """What a layer's quantization costs.

    Attributes:
        layer: its name.
        kind: "linear" or "convolution".
        cosine: the outputs' with all other layers quantized.
        share: of the outputs' distance, 1 - cosine, with all layers quantized, the part that goes
            if this one stays float32. Below 0 if it makes them worse.
    """

    layer: str
    kind: str
    cosine: float
    share: float


@dataclass(frozen=True)
class Sensitivity:
    """What `sensitivity` finds.

    Attributes:
        cosine: the least between an output and float64's with all layers quantized.
        layers: the most harmful first.
        inputs: the names of those it was measured on.
    """

    cosine: float
    layers: list[Harm]
    inputs: list[str]


def sensitivity(
    call: Call,
    *,
    calibration: Path | None = None,
    method: CalibrationMethod = "minmax",
    track: Callable[[list[str]], Iterable[str]] = iter,
) -> Sensitivity:
    """Leave one layer after the other in float32, with all others in 8 bits.

    Args:
        call: the model, whose example is measured on, and two drawn inputs.
        calibration: a file of inputs, see `draws.read_data`: with it, convolutions are quantized
            too. Those that it holds out are measured on in place of drawn ones.
        method: how the file's values make a range, see `calibration.calibrated`.
        track: is given the names of the layers and yields them, and may show how far it is.

    Raises:
        BadInput: the file, or a model without a layer to quantize.
    """
    ranges: list[Range] | None = None
    held_out: list[Trial] = []
    if calibration is not None:
        ranges = calibrated(call, calibration, method)
        _, held_out = split(read_data(calibration, call))
    model = _Model(call, ranges)
    used = [Trial("the example", call.tensors), *(held_out or _drawn(model))]
    exact = [_exact(call, trial) for trial in used]
    seen: dict[str, str] = {}

    def cosine(keep: str | None) -> float:
        found = [
            accuracy([as_array(each) for each in model.outputs(trial, keep, seen)], wanted)
            for trial, wanted in zip(used, exact, strict=True)
        ]
        return float(together(found)["cosine"])

    everywhere = cosine(None)
    if not seen:
        raise BadInput("the model has no layer to quantize")
    lost = max(1 - everywhere, 1e-12)
    layers = []
    for name in track(list(seen)):
        without = cosine(name)
        layers.append(Harm(name, seen[name], without, (without - everywhere) / lost))
    layers.sort(key=lambda each: -each.share)
    return Sensitivity(everywhere, layers, [trial.name for trial in used])


class _Model:
    """A model that can be run with its layers in 8 bits."""

    def __init__(self, call: Call, ranges: Sequence[Range] | None):
        self.call = call
        self.ranges = ranges
        self.names: dict[int, str] = {}
        self.rounded: dict[int, torch.Tensor] = {}  # weights, once they were needed
        for name, weight in call.module.named_parameters(remove_duplicate=False):
            layer = name.removeprefix("module.").rpartition(".")[0]
            self.names.setdefault(weight.data_ptr(), layer)

    def outputs(self, trial: Trial, keep: str | None, seen: dict[str, str]) -> list[torch.Tensor]:
        """Its outputs with all layers but `keep` in 8 bits; adds the layers to `seen`."""
        with torch.no_grad(), _Rounding(self, keep, seen):
            return list(self.call.module(*(each.clone() for each in trial.tensors)))


_Dispatching: Any = TorchDispatchMode  # which has no types


class _Rounding(_Dispatching):  # type: ignore[misc]
    """Rounds the operands of layers as the integers of the compiled model are."""

    def __init__(self, model: _Model, keep: str | None, seen: dict[str, str]):
        super().__init__()
        self._model, self._keep, self._seen = model, keep, seen
        self._ranges = None if model.ranges is None else iter(model.ranges)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        aten = torch.ops.aten
        packet, kwargs = func.overloadpacket, kwargs or {}
        if packet in (aten.mm, aten.addmm):
            *bias, x, weight = args
            if self._takes(weight, "linear"):
                args = (*bias, _rows(x), self._rounded(weight, weight))
        elif packet is aten.convolution and args[1].ndim == 4 and self._ranges is not None:
            seen = next(self._ranges)
            x, weight, *rest = args
            plain = not rest[4] and gains(weight.shape, rest[6])  # not transposed
            if plain and self._takes(weight, "convolution"):
                rounded = self._rounded(weight, weight.flatten(1).T)
                args = (_between(x, seen), rounded.T.reshape(weight.shape), *rest)
        return func(*args, **kwargs)

    def _takes(self, weight: torch.Tensor, kind: str) -> bool:
        name = self._model.names.get(weight.data_ptr())
        if name is None or weight.dtype != torch.float32:
            return False
        self._seen[name] = kind
        return name != self._keep

    def _rounded(self, weight: torch.Tensor, matrix: torch.Tensor) -> torch.Tensor:
        known = self._model.rounded
        if weight.data_ptr() not in known:
            known[weight.data_ptr()] = _weight(matrix)
        return known[weight.data_ptr()]


def _steps(x: torch.Tensor, low: torch.Tensor | float, high: torch.Tensor | float) -> torch.Tensor:
    """Numbers at the nearest of 256 steps from low to high, which hold 0."""
    scale = torch.clamp(torch.as_tensor(high - low) / STEPS, min=SMALLEST_SCALE)
    zero = torch.round(-torch.as_tensor(low) / scale)
    return (torch.clamp(torch.round(x / scale) + zero, 0, STEPS) - zero) * scale


def _rows(x: torch.Tensor) -> torch.Tensor:
    return _steps(x, x.amin(-1, keepdim=True).clamp(max=0), x.amax(-1, keepdim=True).clamp(min=0))


def _between(x: torch.Tensor, seen: Range) -> torch.Tensor:
    return _steps(x, min(seen.smallest, 0.0), max(seen.largest, 0.0))


def _weight(weight: torch.Tensor) -> torch.Tensor:
    """(terms, channels), rounded per channel."""
    scale = weight.abs().amax(0) / LARGEST
    scale = torch.where(scale > 0, scale, torch.ones_like(scale))
    return torch.clamp(torch.round(weight / scale), -LARGEST, LARGEST) * scale


def _drawn(model: _Model) -> list[Trial]:
    """Drawn inputs that the model takes."""

    def runs(trial: Trial) -> bool:
        try:
            outputs = model.call.module(*(each.clone() for each in trial.tensors))
        except Exception:  # whatever a person's model has against it
            return False
        return all(bool(torch.isfinite(each).all()) for each in outputs)

    with torch.no_grad():
        return list(islice(filter(runs, trials(model.call, bounds={})), DRAWN))


def _exact(call: Call, trial: Trial) -> list[Any]:
    """Float64's outputs, or PyTorch's where it has none."""
    with torch.no_grad():
        outputs = [as_array(each) for each in call.module(*(t.clone() for t in trial.tensors))]
    exact = in_float64(outputs, replace(call, tensors=trial.tensors))
    return outputs if exact is None else exact
