"""PyTorch module in; tuned, verified, measured TVM artifact out.

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    config = ExportConfig(example_input=torch.randn(1, 3, 224, 224), tuner="metaschedule",
                          tuning_trials=64)
    graph_module = compile_pytorch_module(model, config)
    graph_module.benchmark()

An export goes through the stages of `pipeline`; those in `steps` can be replaced by a person's own.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tvm_practice.tvm_export.adapter import compile_pytorch_module
    from tvm_practice.tvm_export.artifacts import export_artifacts, load_artifacts
    from tvm_practice.tvm_export.config import ExportConfig
    from tvm_practice.tvm_export.graph_module import GraphModule
    from tvm_practice.tvm_export.verification import verify_runtime

__all__ = [
    "ExportConfig",
    "GraphModule",
    "compile_pytorch_module",
    "export_artifacts",
    "load_artifacts",
    "verify_runtime",
]

# Imported when first asked for: the command lines use small parts of this package, and their
# --help must not wait for numpy.
_HOMES = {
    "ExportConfig": "config",
    "GraphModule": "graph_module",
    "compile_pytorch_module": "adapter",
    "export_artifacts": "artifacts",
    "load_artifacts": "artifacts",
    "verify_runtime": "verification",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
