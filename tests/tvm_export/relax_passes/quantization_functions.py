"""Exports of layers in 8-bit integers, called in a process that has the current engine."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn

_SHAPES = (37, 29), (37, 16), (29, 5)  # terms and channels of Layers


class Layers(nn.Module):
    """Linear layers, two of which read one input, a product of activations, and convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(*_SHAPES[0])
        self.beside = nn.Linear(*_SHAPES[1], bias=False)
        self.behind = nn.ModuleDict({"last": nn.Linear(*_SHAPES[2])})
        self.strided = nn.Conv2d(8, 16, 3, padding=(1, 2), stride=(2, 1), bias=False)
        self.grouped = nn.Conv2d(16, 16, 3, groups=4)
        self.signed = nn.Conv2d(16, 18, 3, padding=1)
        self.depthwise = nn.Conv2d(16, 16, 3, groups=16, padding=1)
        self.three = nn.Conv2d(3, 6, 3, padding=(0, 1))

    def forward(self, x: torch.Tensor, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        first, beside = self.first(x), self.beside(x)
        last = self.behind["last"](torch.relu(first))
        strided = self.strided(torch.relu(image))
        convolved = [each(strided) for each in (self.signed, self.grouped, self.depthwise)]
        convolved = [strided, *convolved, self.three(image[:, :3])]
        return first, beside, last, *convolved, beside @ beside.mT


def _example() -> tuple[torch.Tensor, torch.Tensor]:
    """Rows of both signs, of one, of large and small values, and of zeros; an image."""
    x = torch.randn(2, 4, _SHAPES[0][0])
    x[0, 1] = x[0, 1].abs() + 3
    x[0, 2] = -x[0, 2].abs()
    x[1, 0] *= 1e4
    x[1, 1] *= 1e-6
    x[1, 2] = 0
    return x, torch.randn(1, 8, 9, 11)


def compiled(keep: list[str], folder: str) -> dict[str, Any]:
    """Of Layers, quantized but for `keep`, how far each output is from what it should be.

    An error is relative to the largest element of its output, in its row for linear layers.
    """
    from tvm_practice.tvm_export.calibration import calibrated
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import build, import_model, schedule

    torch.manual_seed(0)
    model, (x, image) = Layers().eval(), _example()
    data = Path(folder) / "data.npz"
    # Two inputs, beyond whose ranges some of the image's values are.
    seen = torch.randn(2, *x.shape), torch.randn(2, *image.shape) / 2
    np.savez(data, input_0=seen[0].numpy(), input_1=seen[1].numpy())
    settings = ExportSettings.model_validate(
        {"engine": "current", "quantize": "int8", "keep_float": keep, "calibration": data}
    )
    call = as_call(model, (x, image))
    ranges = {each.name: (each.smallest, each.largest) for each in calibrated(call, data)}
    export = import_model(Export.of(call, settings, engine="current"))
    export = build(schedule(export))
    found = [np.asarray(each) for each in export.result(x.numpy(), image.numpy())]
    linear = {"first": model.first, "beside": model.beside, "last": model.behind["last"]}
    behind = torch.relu(torch.from_numpy(found[0]))
    given = {"first": x, "beside": x, "last": behind}
    errors = {}
    for (name, layer), got in zip(linear.items(), found, strict=False):
        for way, wanted in (("int8", _quantized), ("float32", _exact)):
            exact = wanted(layer, given[name].numpy().astype("float64"))
            size = np.abs(exact).max(-1, keepdims=True).clip(min=1e-30)
            errors[f"{name} {way}"] = float((np.abs(got - exact) / size).max())
    read = {"strided": torch.relu(image), "signed": found[3], "grouped": found[3]}
    read |= {"depthwise": found[3], "three": image[:, :3]}
    for (name, values), got in zip(read.items(), found[3:], strict=False):
        for way, limits in (("int8", ranges[name]), ("float32", None)):
            exact = _convolved(getattr(model, name), np.asarray(values), limits)
            errors[f"{name} {way}"] = float(np.abs(got - exact).max() / np.abs(exact).max())
    text = export.stages["optimized"]["main"].script(show_meta=False)
    rows = text.count('(2, 4, 37), dtype="uint8"') + text.count('(8, 37), dtype="uint8"')
    return {"errors": errors, "told": list(export.notes), "rows": rows}


def _exact(layer: Any, x: np.ndarray) -> np.ndarray:
    weight, bias = _parameters(layer)
    return np.asarray(x @ weight + bias)


def _quantized(layer: Any, x: np.ndarray) -> np.ndarray:
    """The layer by the definition: both operands rounded to steps, their product exact."""
    weight, bias = _parameters(layer)
    per_channel = np.abs(weight).max(0) / 127
    smallest, largest = x.min(-1, keepdims=True).clip(max=0), x.max(-1, keepdims=True).clip(min=0)
    scale = np.maximum((largest - smallest) / 255, 2.0**-100)
    zero = np.rint(-smallest / scale)
    steps = (np.rint(x / scale) + zero).clip(0, 255) - zero
    product = (steps * scale) @ (np.rint(weight / per_channel) * per_channel)
    return np.asarray(product + bias)


def _convolved(layer: nn.Conv2d, x: np.ndarray, limits: tuple[float, float] | None) -> np.ndarray:
    """A convolution by the definition, its operands rounded to steps if its input has limits."""
    weight, values = layer.weight.detach().double(), torch.from_numpy(x).double()
    if limits is not None:
        values = torch.from_numpy(_rounded(x, limits))
        steps = weight.abs().amax((1, 2, 3), keepdim=True).clamp(min=1e-30) / 127
        weight = torch.round(weight / steps) * steps
    bias = None if layer.bias is None else layer.bias.detach().double()
    found = torch.nn.functional.conv2d(
        values, weight, bias, layer.stride, layer.padding, layer.dilation, layer.groups
    )
    return np.asarray(found)


def _layers(
    model: nn.Module, ranges: Mapping[str, tuple[float, float]]
) -> Callable[[str, np.ndarray], np.ndarray]:
    """A function of a convolution's name and its input: `_convolved`, in its range."""
    return lambda name, values: _convolved(getattr(model, name), values, ranges[name])


def _rounded(x: np.ndarray, limits: tuple[float, float]) -> np.ndarray:
    """The float64 values of the bytes that stand for x, in a range."""
    smallest, largest = min(limits[0], 0.0), max(limits[1], 0.0)
    scale = (largest - smallest) / 255
    zero = round(-smallest / scale)
    return np.asarray((np.clip(np.rint(x.astype("float64") / scale) + zero, 0, 255) - zero) * scale)


def _parameters(layer: Any) -> tuple[np.ndarray, np.ndarray]:
    weight = layer.weight.detach().numpy().astype("float64").T
    bias = np.zeros(weight.shape[1]) if layer.bias is None else layer.bias.detach().numpy()
    return weight, bias


def refusal(keep: list[str], target: str = "llvm") -> str:
    """The line that an export which keeps these layers is refused with."""
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import import_model

    settings = ExportSettings.model_validate(
        {"engine": "current", "quantize": "int8", "keep_float": keep, "target": target}
    )
    try:
        import_model(Export.of(as_call(Layers(), _example()), settings, engine="current"))
    except BadInput as error:
        return str(error)
    return ""


class Chain(nn.Module):
    """Convolutions of which each reads the bytes that the one before makes, by an activation."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 16, 3, stride=2, padding=1, bias=False)
        self.second = nn.Conv2d(16, 16, 3, padding=(0, 1), groups=16)
        self.third = nn.Conv2d(16, 24, 1)
        self.fourth = nn.Conv2d(24, 8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.pad(torch.clamp(self.first(x), -0.5, 0.7), (1, 0, 0, 2))
        return torch.as_tensor(
            self.fourth(torch.relu(self.third(nn.functional.relu6(self.second(x)))))
        )


def chained(folder: str) -> dict[str, Any]:
    """Of Chain: its error, the rule of each function, and how images lie.

    Returns:
        {"error": from what is computed by hand of numbers rounded alike, "of bytes": that from the
        exact result, both relative to the largest element; "rules": by function; "layouts";
        "results": extents and type of what each function of the module makes}.
    """
    torch.manual_seed(3)
    model, x = Chain().eval(), torch.randn(1, 3, 15, 17)
    activations: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "first": lambda y: np.pad(np.clip(y, -0.5, 0.7), [(0, 0), (0, 0), (0, 2), (1, 0)]),
        "second": lambda y: np.clip(y, 0, 6),
        "third": lambda y: np.maximum(y, 0),
        "fourth": lambda y: y,
    }

    def by_hand(ranges: Ranges) -> np.ndarray:
        values = x.numpy()
        for name, activation in activations.items():
            values = activation(_convolved(getattr(model, name), values, ranges[name]))
        return values

    return _exported(model, x, by_hand, folder)


class Residual(nn.Module):
    """A maximum over windows, and additions to what a convolution reads too."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.first, self.second = (nn.Conv2d(16, 16, 3, padding=1) for _ in range(2))
        self.last = nn.Conv2d(16, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(torch.relu(self.stem(x)), 3, stride=2, padding=1)
        x = self.first(x) + x
        return torch.as_tensor(self.last(x + torch.relu(self.second(x))))


def residual(folder: str) -> dict[str, Any]:
    """Of Residual, what `chained` returns."""
    torch.manual_seed(4)
    model, x = Residual().eval(), torch.randn(1, 3, 14, 18)

    def by_hand(ranges: Ranges) -> np.ndarray:
        of = _layers(model, ranges)
        stem = torch.from_numpy(np.maximum(of("stem", x.numpy()), 0))
        pooled = nn.functional.max_pool2d(stem, 3, stride=2, padding=1).numpy()
        summed = of("first", pooled) + _rounded(pooled, ranges["first"])
        both = _rounded(summed, ranges["second"]) + np.maximum(of("second", summed), 0)
        return of("last", both)

    return _exported(model, x, by_hand, folder)


class Shortcut(nn.Module):
    """An addition of two convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1)
        self.first = nn.Conv2d(16, 16, 3, stride=2, padding=1)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.beside = nn.Conv2d(16, 16, 1, stride=2)
        self.last = nn.Conv2d(16, 8, 1)
        with torch.no_grad():
            self.beside.weight[3] = 0.0  # a channel of one value
            self.beside.weight[5] *= 10.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.stem(x))
        inner = self.second(torch.relu(self.first(x)))
        return torch.as_tensor(self.last(torch.relu(inner + self.beside(x))))


def shortcut(folder: str) -> dict[str, Any]:
    """Of Shortcut, what `chained` returns."""
    torch.manual_seed(6)
    model, x = Shortcut().eval(), torch.randn(1, 3, 14, 18)

    def by_hand(ranges: Ranges) -> np.ndarray:
        of = _layers(model, ranges)
        stem = np.maximum(of("stem", x.numpy()), 0)
        inner = of("second", np.maximum(of("first", stem), 0))
        return of("last", np.maximum(inner + of("beside", stem), 0))

    return _exported(model, x, by_hand, folder)


Ranges = dict[str, tuple[float, float]]


def _exported(
    model: nn.Module, x: torch.Tensor, by_hand: Callable[[Ranges], np.ndarray], folder: str
) -> dict[str, Any]:
    """The export of a model of convolutions, beside what is computed by hand in its ranges."""
    from tvm_practice.tvm_export.calibration import calibrated
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import build, import_model, schedule
    from tvm_practice.tvm_export.relax_passes import channels_last

    data = Path(folder) / "data.npz"
    np.savez(data, input_0=torch.randn(2, *x.shape).numpy())
    settings = ExportSettings.model_validate(
        {"engine": "current", "quantize": "int8", "calibration": data}
    )
    call = as_call(model, (x,))
    ranges = {each.name: (each.smallest, each.largest) for each in calibrated(call, data)}
    with mock.patch.object(channels_last, "_MOST_MOVED", 9.0):  # the model is small
        export = build(schedule(import_model(Export.of(call, settings, engine="current"))))
    [found] = export.result(x.numpy())
    values = by_hand(ranges)
    wide: Any = model.double()
    exact = wide(x.double()).detach().numpy()
    text = export.stages["optimized"].script(show_meta=False)
    return {
        "error": float(np.abs(found - values).max() / np.abs(values).max()),
        "of bytes": float(np.abs(values - exact).max() / np.abs(exact).max()),
        "layouts": sorted(set(re.findall(r"conv2d_(n[chw]+)", text))),
        "rules": export.result.rules,
        "results": re.findall(r'out_ty=R\.Tensor\(\(([^)]*)\), dtype="(\w+)"', text),
    }


class Uneven(nn.Module):
    """Three layers, the second with a weight per channel that dwarfs the others, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.rough, self.last = (nn.Linear(24, 24) for _ in range(3))
        with torch.no_grad():
            self.rough.weight[:, 0] = 60.0
            self.first.weight[0] = 0.0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.last(torch.relu(self.rough(torch.relu(self.first(x))))))


def sensitivities() -> dict[str, Any]:
    """Of Uneven: what `sensitivity` finds, and the cosine of its artifact."""
    from dataclasses import asdict

    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import build, import_model, judged, schedule
    from tvm_practice.tvm_export.sensitivity import sensitivity

    torch.manual_seed(0)
    call = as_call(Uneven().eval(), (torch.randn(16, 24),))
    settings = ExportSettings.model_validate(
        {"engine": "current", "quantize": "int8", "min_cosine": 0.0}
    )
    built = build(schedule(import_model(Export.of(call, settings, engine="current"))))
    return {"found": asdict(sensitivity(call)), "artifact": judged(built)}
