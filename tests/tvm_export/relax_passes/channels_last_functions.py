"""Models of convolutions, called in a process that has the current engine."""

import random
from typing import Any, Literal
from unittest import mock

import numpy as np
import torch
from torch import nn

from tvm_practice.tvm_export.relax_passes import channels_last

_ACTIVATIONS = (nn.ReLU, nn.ReLU6, nn.Sigmoid, nn.Hardswish, nn.SiLU, nn.Identity)


class _Block(nn.Module):
    """An expansion, a depthwise window and a projection, scaled by channel, added to the input."""

    def __init__(self, channels: int, drawn: random.Random) -> None:
        super().__init__()
        inner, size = channels * drawn.choice((1, 2, 4)), drawn.choice((3, 5))
        spread = drawn.choice((1, 2))
        around = spread * (size - 1) // 2
        self.expand = nn.Conv2d(channels, inner, 1)
        self.window = nn.Conv2d(inner, inner, size, padding=around, dilation=spread, groups=inner)
        self.project = nn.Conv2d(inner, channels, 1)
        self.scale = nn.Conv2d(inner, inner, 1)
        self.activation = drawn.choice(_ACTIVATIONS)()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = self.activation(self.window(self.activation(self.expand(x))))
        scale = torch.sigmoid(self.scale(inner.mean((2, 3), keepdim=True)))
        out: torch.Tensor = x + self.project(inner * scale)
        return out


def _model(seed: int) -> nn.Module:
    drawn = random.Random(seed)
    torch.manual_seed(seed)
    groups = drawn.choice((1, 2, 3))
    channels = groups * drawn.randint(5, 14)
    window = (drawn.randint(1, 4), drawn.randint(1, 4))
    stride = (drawn.randint(1, 2), drawn.randint(1, 3))
    pool = drawn.choice((nn.MaxPool2d, nn.AvgPool2d))
    ends = [nn.Flatten(), nn.AdaptiveAvgPool2d(1), nn.Identity()]
    return nn.Sequential(
        nn.Conv2d(3, groups * 4, window, stride=stride, padding=(drawn.randint(0, 2), 1)),
        drawn.choice(_ACTIVATIONS)(),
        nn.ZeroPad2d(tuple(drawn.randint(0, 2) for _ in range(4))),  # type: ignore[arg-type]
        nn.Conv2d(groups * 4, channels, drawn.choice((1, 3)), groups=groups, padding=1),
        nn.BatchNorm2d(channels),
        pool(3, stride=drawn.choice((1, 2)), padding=1),
        _Block(channels, drawn),
        nn.BatchNorm2d(channels),
        _Block(channels, drawn),
        drawn.choice(ends),
    )


def compared(seed: int, precision: Literal["float32", "bfloat16"] = "float32") -> dict[str, Any]:
    """A random model: its error, its rules, and how its convolutions lie.

    Args:
        seed: of the model and its input.
        precision: of its products.

    Returns:
        {"error", "rules": by function, "first", "last": convolutions with their channels there}.
    """
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model = _model(seed).eval()
    x = torch.randn(random.Random(seed).choice((1, 2)), 3, 19, 23)
    config = ExportConfig(example_input=(x,), precision=precision)
    with mock.patch.object(channels_last, "_MOST_MOVED", 9.0):
        compiled = compile_pytorch_module(model, config)
    (output,) = compiled(x.numpy())
    with torch.inference_mode():
        want = model(x).numpy()
    error = float(np.abs(output - want).max()) if output.shape == want.shape else float("inf")
    if precision != "float32":
        error /= float(np.abs(want).max())
    text = compiled.graph_json
    return {
        "error": error,
        "rules": compiled.rules,
        "first": text.count("conv2d_nchw"),
        "last": text.count("conv2d_nhwc"),
    }


def order_of(name: str) -> str:
    """Where the channels are in the convolutions of a model: "first" or "last"."""
    import tvm
    from tvm import relax

    made = relax.BlockBuilder()
    channels = {"1x1": 64, "3x3": 64, "open": 64, "half": 64, "input": 1}[name]
    dtype = "float16" if name == "half" else "float32"
    height: Any = tvm.tirx.Var("h", "int64") if name == "open" else 32
    x = relax.Var("x", relax.TensorType((1, channels, height, 32), dtype))
    size = 3 if name == "3x3" else 1
    weights = [
        np.ones((64, channels, size, size), dtype),
        *[np.ones((64, 64, size, size), dtype)] * 20,
    ]
    with made.function("main", [x]):
        with made.dataflow():
            y: Any = x
            for each in weights:
                y = made.emit(relax.op.nn.conv2d(y, relax.const(each), padding=size // 2))
            y = made.emit_output(y)
        made.emit_func_output(y)
    text = channels_last.with_channels_last(made.get()).script()
    return "last" if 'data_layout="NHWC"' in text else "first"
