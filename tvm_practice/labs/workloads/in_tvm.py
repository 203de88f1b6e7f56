"""The workloads in TVM, from PyTorch's own functions: imported, fused and scheduled by tvm_export.

With `trials`, MetaSchedule searches for schedules; without, the exporter's default rules make them.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from tvm_practice import engines
from tvm_practice.labs.workloads.in_torch import (
    attention,
    layer_norm,
    matmul,
    mlp,
    softmax,
)
from tvm_practice.labs.workloads.loaded import Loaded
from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

__all__ = ["attention", "layer_norm", "load", "matmul", "mlp", "softmax"]


class _Model(nn.Module):
    """A workload's function as a module, which is what is exported."""

    def __init__(self, workload: str):
        super().__init__()
        self._function = globals()[workload]

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self._function(*inputs)
        return result


def load(workload: str, inputs: Sequence[np.ndarray], *, trials: int = 0) -> Loaded:
    torch.set_num_threads(engines.thread_count())
    tensors = tuple(torch.from_numpy(each) for each in inputs)
    config = ExportConfig(example_input=tensors, engine="current", tuning_trials=trials)
    built = compile_pytorch_module(_Model(workload).eval(), config)

    def result() -> np.ndarray:
        built.run()
        return built.get_output()

    return Loaded(built.run, result)
