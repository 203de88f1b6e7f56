"""Exports with 16-bit products, called in a process that has the current engine."""

from pathlib import Path
from typing import Any

import torch
from torch import nn


class Mixed(nn.Module):
    """Convolutions with and without groups, a normalization, a softmax, products, a mean."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.grouped = nn.Conv2d(16, 16, 3, groups=4)
        self.norm = nn.LayerNorm(24)
        self.dense = nn.Linear(24, 32)
        self.alone = nn.Conv1d(16, 8, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.grouped(torch.relu(self.conv(x))).mean(-2)
        weights = torch.softmax(y @ y.transpose(1, 2), -1)
        result: torch.Tensor = self.alone(self.dense(self.norm(weights @ y)))
        return result


def _model(name: str) -> tuple[nn.Module, tuple[Any, ...]]:
    from tvm_practice.models import load_mlp, load_resnet18

    torch.manual_seed(0)
    if name == "mixed":
        return Mixed().eval(), (torch.randn(2, 3, 12, 26),)
    if name == "bert":
        from tests.tvm_export.models_export_functions import tiny_bert

        return tiny_bert()
    return load_mlp() if name == "mlp" else load_resnet18()


def operands(precision: str) -> list[tuple[str, str, str]]:
    """Of each product and sum of Mixed, as imported and rounded: its operator and types."""
    import tvm
    from tvm import relax

    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import import_model
    from tvm_practice.tvm_export.relax_passes.precision import with_products_in

    module, example = _model("mixed")
    settings = ExportSettings(engine="current")
    export = import_model(Export.of(as_call(module, example), settings, engine="current"))
    found = set()

    def look(call: Any) -> None:
        if isinstance(call, tvm.ir.Call) and hasattr(call.op, "name"):
            name = str(call.op.name).removeprefix("relax.").removeprefix("nn.")
            if name in ("matmul", "conv1d", "conv2d", "layer_norm", "softmax", "mean"):
                found.add((name, str(call.args[0].ty.dtype), str(call.ty.dtype)))

    rounded = with_products_in(export.stages["imported"], precision)
    relax.analysis.post_order_visit(rounded["main"], look)
    return sorted(found)


def exported(name: str, precision: str) -> dict[str, Any]:
    """What verification says of a model, and the rules that scheduled its functions."""
    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import build, import_model, judged, schedule

    module, example = _model(name)
    settings = ExportSettings.model_validate({"engine": "current", "precision": precision})
    export = Export.of(as_call(module, example), settings, engine="current")
    export = build(schedule(import_model(export)))
    return {"verification": judged(export), "rules": export.result.rules}


def written(
    folder: str,
    min_cosine: float | None,
    precision: str = "float32",
    quantize: str | None = None,
) -> dict[str, Any]:
    """An MLP's metadata and the bytes of its parameters, as an export of a process writes them."""
    import json

    from tvm_practice.tvm_export.pipeline import export_model

    request = {
        "model": "tvm_practice.models:load_mlp",
        "artifacts": folder,
        "engine": "current",
        "precision": precision,
        "quantize": quantize,
        "min_cosine": min_cosine,
        "repeats": 6,
        "warmup": 1,
    }
    told = export_model(request)
    metadata = Path(folder) / "metadata.json"
    made = json.loads(metadata.read_text()) if metadata.exists() else {}
    return {"told": told["verification"], "metadata": made}
