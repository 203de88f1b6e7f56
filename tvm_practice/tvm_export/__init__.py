"""PyTorch module in; tuned, verified, measured TVM artifact out.

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    config = ExportConfig(example_input=torch.randn(1, 3, 224, 224), tuner="metaschedule",
                          tuning_trials=64)
    graph_module = compile_pytorch_module(model, config)
    graph_module.benchmark()

The adapter is made of the course's functions (the reference ones unless told otherwise): import,
optimize, tune, build, verify.
"""

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
