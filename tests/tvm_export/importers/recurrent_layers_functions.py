"""Recurrent layers exported whole, in a process that has the current engine."""

from typing import Any

import numpy as np
import torch
from torch import nn

from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module, pipeline
from tvm_practice.tvm_export.calling import as_call
from tvm_practice.tvm_export.export import Export
from tvm_practice.tvm_export.nested import flattened


class _Layer(nn.Module):
    def __init__(self, kind: str, *sizes: int, **settings: Any):
        super().__init__()
        self.layer = getattr(nn, kind)(*sizes, **settings)

    def forward(self, x: torch.Tensor, states: Any = None) -> Any:
        return self.layer(x, states)


def _cases() -> dict[str, tuple[nn.Module, tuple[Any, ...]]]:
    x, alone = torch.randn(6, 4, 5), torch.randn(6, 5)
    return {
        "LSTM": (_Layer("LSTM", 5, 7), (x,)),
        "LSTM, layers, directions": (
            _Layer("LSTM", 5, 70, num_layers=2, bidirectional=True, batch_first=True),
            (x,),
        ),
        "LSTM, many units, 14 rows": (_Layer("LSTM", 5, 400, bias=False), (torch.randn(9, 14, 5),)),
        "LSTM with states": (
            _Layer("LSTM", 5, 7, num_layers=2),
            (x, (torch.randn(2, 4, 7), torch.randn(2, 4, 7))),
        ),
        "LSTM, one sequence": (_Layer("LSTM", 5, 7), (alone,)),
        "LSTM with a projection": (_Layer("LSTM", 5, 7, proj_size=3), (x,)),
        "LSTM in float64": (_Layer("LSTM", 5, 7).double(), (x.double(),)),
        "GRU": (_Layer("GRU", 5, 33, num_layers=2, bidirectional=True), (x[:, :3],)),
        "GRU without biases": (_Layer("GRU", 5, 16, bias=False), (alone,)),
        "GRU with a state": (_Layer("GRU", 5, 250), (x[:, :1], torch.randn(1, 1, 250))),
        "RNN": (_Layer("RNN", 5, 20), (x,)),
        "RNN of relu": (_Layer("RNN", 5, 200, nonlinearity="relu"), (x[:, :2],)),
        "a step": (_Layer("LSTM", 5, 7), (x[:1],)),
    }


def errors(target: str) -> dict[str, float]:
    """By case, the largest difference to PyTorch's outputs and states."""
    torch.manual_seed(0)
    found = {}
    for name, (model, given) in _cases().items():
        config = ExportConfig(example_input=given, engine="current", target=target)
        compiled = compile_pytorch_module(model.eval(), config, verify=False)
        found[name] = _difference(model, compiled, given)
    return found


def _difference(model: nn.Module, compiled: Any, given: tuple[Any, ...]) -> float:
    with torch.inference_mode():
        expected = flattened(model(*given))
    got = compiled(*[each.numpy() for each in flattened(given)])
    assert [each.dtype for each in got] == [each.numpy().dtype for each in expected]
    pairs = zip(got, expected, strict=True)
    return max(float(np.abs(each - theirs.numpy()).max()) for each, theirs in pairs)


def with_open_extents() -> dict[str, float]:
    """By layer and shape, the largest difference to PyTorch's outputs and states."""
    torch.manual_seed(0)
    found = {}
    layers: list[tuple[str, tuple[str | int, ...], dict[str, Any]]] = [
        ("LSTM", ("steps", 4, 5), {"num_layers": 2, "bidirectional": True}),
        ("GRU", ("examples", 6, 5), {"batch_first": True}),
        ("RNN", ("steps", "examples", 5), {}),
    ]
    for kind, shape, settings in layers:
        model = _Layer(kind, 5, 33, **settings).eval()
        example = torch.randn([each if isinstance(each, int) else 3 for each in shape])
        config = ExportConfig(
            example_input=(example,), engine="current", input_shapes={"input0": shape}
        )
        compiled = compile_pytorch_module(model, config)
        for extent in (1, 3, 40):
            x = torch.randn([each if isinstance(each, int) else extent for each in shape])
            found[f"{kind} {tuple(x.shape)}"] = _difference(model, compiled, (x,))
    return found


def operators_of(steps: int) -> int:
    """How many functions and calls an LSTM over so many steps becomes."""
    x = torch.randn(1, steps, 8)
    call = as_call(_Layer("LSTM", 8, 8, batch_first=True).eval(), (x,))
    settings = ExportConfig(example_input=(x,), engine="current")
    module = pipeline.import_model(Export.of(call, settings, engine="current")).module
    bindings = sum(len(block.bindings) for block in module["main"].body.blocks)
    return bindings + len(list(module.functions_items()))
