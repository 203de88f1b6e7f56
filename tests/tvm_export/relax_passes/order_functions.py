"""Models that each pass over the graph changes; run in a process of the current engine."""

from typing import Any

import torch
from torch.nn.functional import scaled_dot_product_attention


class _Recurrent(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.LSTM(8, 16, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.layer(x)[0]
        return result


class _Shared(torch.nn.Module):
    """A product of a batch by copies of one matrix, as `batched_products` has it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(8, 16))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.bmm(x, self.weight.expand(3, 8, 16))


class _Attention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return scaled_dot_product_attention(q, k, v)


def _model(name: str) -> tuple[torch.nn.Module, tuple[torch.Tensor, ...]]:
    if name == "recurrence":
        return _Recurrent(), (torch.randn(1, 5, 8),)
    if name == "shared-operands":
        return _Shared(), (torch.randn(3, 4, 8),)
    if name == "attention":
        return _Attention(), tuple(torch.randn(1, 2, 64, 32) for _ in range(3))
    layers: list[torch.nn.Module] = []
    if name == "tiles-on-stack":
        return torch.nn.Linear(256, 512), (torch.randn(128, 256),)
    if name == "rows-together":
        layers += [torch.nn.Linear(16, 32), torch.nn.ReLU()]
        return torch.nn.Sequential(*layers), (torch.randn(2, 8, 16),)
    if name == "one-at-a-time":  # as MobileNetV2: little work per number, large tensors
        layers += [torch.nn.Conv2d(16, 16, 3, padding=1, groups=16) for _ in range(2)]
        return torch.nn.Sequential(*layers), (torch.randn(8, 16, 224, 224),)
    for before, after in ((3, 32), (32, 32), (32, 32)):
        layers += [torch.nn.Conv2d(before, after, 3, padding=1, bias=False)]
        layers += [torch.nn.BatchNorm2d(after), torch.nn.ReLU()]
    layers += [torch.nn.AdaptiveAvgPool2d(1)]
    return torch.nn.Sequential(*layers), (torch.randn(1, 3, 32, 32),)


def without(name: str) -> dict[str, Any]:
    """A model that a pass changes, exported whole and without it.

    Returns {"same": whether the two graphs are equal, and the code claims iterations and takes
    memory in as many places, "errors": by "whole" and "without", the largest difference from
    PyTorch, "bytes": of the processor's vector registers}.
    """
    import tvm_ffi

    from tvm_practice.tvm_export.calling import as_array, as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.lowering.tiles_on_stack import most_bytes
    from tvm_practice.tvm_export.pipeline import build, import_model, schedule

    torch.manual_seed(0)
    model, inputs = _model(name)
    call = as_call(model.eval(), inputs, {})
    exports, errors, calls = {}, {}, []
    with torch.no_grad():
        expected = model(*inputs).numpy()
    for title, left in (("whole", ()), ("without", (name,))):
        settings = ExportSettings.model_validate({"engine": "current", "without": left})
        exports[title] = import_model(Export.of(call, settings))
        built = build(schedule(exports[title])).result
        [output] = built(*map(as_array, inputs))
        errors[title] = float(abs(output - expected).max())
        code = built.compiled.mod.imports[0].inspect_source("ll")
        calls.append([code.count(each) for each in ("atomicrmw", "AllocWorkspace")])
    modules = [each.module for each in exports.values()]
    same = bool(tvm_ffi.structural_equal(*modules)) and calls[0] == calls[1]
    return {"same": same, "errors": errors, "bytes": most_bytes(exports["whole"].target)}
