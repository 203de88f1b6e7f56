"""The workloads in TVM, from PyTorch's own functions: imported, fused and scheduled by tvm_export.

With `trials` MetaSchedule searches for schedules; without, the default rules give them.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path

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
from tvm_practice.tvm_export.calling import as_call
from tvm_practice.tvm_export.lane import open_lane

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
    call = as_call(_Model(workload).eval(), tensors)
    lane = open_lane("current", call, target="llvm", steps="solutions")
    if trials:
        with tempfile.TemporaryDirectory() as folder:
            built = lane.tuned("metaschedule", trials=trials, log=Path(folder) / "records")
    else:
        built = lane.untuned()

    def result() -> np.ndarray:
        built.run()
        return built.get_output()

    for position, each in enumerate(inputs):
        built.set_input(position, each)
    return Loaded(built.run, result)
