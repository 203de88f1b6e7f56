"""Functions that the tests of the Relax lane call in a child process, on the current engine."""

from typing import Any

import torch
from torch import nn

_TYPES = (torch.float16, torch.bfloat16, torch.float64)


class _Twice(nn.Module):
    """A convolution's output that is normalized and used as it is as well."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.conv(x)
        out: torch.Tensor = self.norm(y) + y
        return out


def _models() -> dict[str, nn.Module]:
    return {
        "plain": nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU()),
        "bias": nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)),
        "groups": nn.Sequential(
            nn.Conv2d(3, 6, 3, groups=3, stride=2, bias=False), nn.BatchNorm2d(6)
        ),
        "before": nn.Sequential(nn.BatchNorm2d(3), nn.Conv2d(3, 8, 1)),
        "twice": _Twice(),
    }


def folded() -> dict[str, Any]:
    """By model: the operators left after folding, and the largest error of what is then built."""
    import numpy as np
    import tvm

    from solutions.relay_import import build_relax, import_relax, optimize_relax
    from tvm_practice.engines import host_target
    from tvm_practice.tvm_export.relax_passes.batch_normalization import fold_batch_normalization
    from tvm_practice.tvm_export.running import run_relax

    found = {}
    for name, model in _models().items():
        _learn(model)
        example = torch.randn(2, 3, 9, 11)
        with torch.inference_mode():
            want = model.eval()(example).numpy()
        module = fold_batch_normalization(import_relax(model, (example,)))
        text = module.script()
        executable = build_relax(optimize_relax(module), tvm.target.Target(host_target()))
        (output,) = run_relax(executable, [example.numpy()])
        found[name] = {
            "normalizations": text.count("nn.batch_norm("),
            "convolutions": text.count("nn.conv2d("),
            "error": float(np.abs(output - want).max()),
        }
    return found


def in_other_types() -> dict[str, float]:
    """By type: the largest error of a normalized convolution, in the type's units of rounding."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.calling import as_array

    found = {}
    for dtype in _TYPES:
        model = _models()["plain"]
        _learn(model)
        model, example = model.to(dtype).eval(), torch.randn(2, 3, 9, 11).to(dtype)
        compiled = compile_pytorch_module(model, ExportConfig(example_input=example))
        (output,) = compiled(as_array(example))
        with torch.inference_mode():
            want = model(example).double().numpy()
        error = abs(output.astype("float64") - want).max()
        found[str(dtype)] = float(error / abs(want).max() / torch.finfo(dtype).eps)
    return found


class _Factors(nn.Linear):
    """A linear layer whose sum has factors."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.addmm(self.bias, x, self.weight.T, beta=2, alpha=0.5)


def rounded_twice() -> dict[str, float]:
    """By layer of float16, the part of its outputs that are not the exact ones, rounded once.

    The biases leave little of the first outputs.
    """
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    torch.manual_seed(0)
    rows, image = torch.randn(16, 32), torch.randn(2, 8, 9, 9)
    layers: dict[str, tuple[nn.Module, torch.Tensor]] = {
        "linear": (nn.Linear(32, 24), rows),
        "of a batch": (nn.Linear(32, 24), rows.reshape(2, 8, 32)),
        "with factors": (_Factors(32, 24), rows),
        "convolution": (nn.Conv2d(8, 24, 3), image),
        "of sequences": (nn.Conv1d(8, 24, 3), image[:, :, 0]),
        "of volumes": (nn.Conv3d(8, 24, 3), image.reshape(2, 8, 3, 3, 9)),
    }
    found = {}
    for name, (layer, given) in layers.items():
        x = given.half()
        assert isinstance(layer.bias, nn.Parameter)
        layer.half().double().requires_grad_(False)
        nn.init.zeros_(layer.bias)
        axis = -1 if isinstance(layer, nn.Linear) else 1
        first = layer(x.double()).movedim(axis, -1).reshape(-1, 24)[0]
        layer.bias.copy_((first / (-2 if name == "with factors" else -1)).half())
        exact = layer(x.double())
        compiled = compile_pytorch_module(layer.half(), ExportConfig(example_input=(x,)))
        (output,) = compiled(x)
        found[name] = float((torch.as_tensor(output) != exact.half()).double().mean())
    return found


def channels_last_weights() -> dict[str, float]:
    """By type: the error of a convolution whose weights' channels are last in memory."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module
    from tvm_practice.tvm_export.calling import as_array

    found = {}
    for dtype in (*_TYPES, torch.float32):
        model = nn.Conv2d(3, 8, 3).to(dtype).to(memory_format=torch.channels_last).eval()  # type: ignore[call-overload]
        x = torch.randn(2, 3, 9, 11).to(dtype).contiguous(memory_format=torch.channels_last)
        compiled = compile_pytorch_module(model, ExportConfig(example_input=(x,)))
        (output,) = compiled(as_array(x))
        with torch.inference_mode():
            want = model(x).double().numpy()
        error = abs(output.astype("float64") - want).max()
        found[str(dtype)] = float(error / abs(want).max() / torch.finfo(dtype).eps)
    return found


def _learn(model: nn.Module) -> None:
    """Give normalizations the statistics of a network that has learned something."""
    for module in model.modules():
        if isinstance(module, nn.BatchNorm2d):
            for each in (module.weight, module.bias, module.running_mean):
                nn.init.normal_(each)  # type: ignore[arg-type]
            nn.init.uniform_(module.running_var, 0.5, 2.0)  # type: ignore[arg-type]
