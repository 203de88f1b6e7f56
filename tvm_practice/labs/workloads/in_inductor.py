"""The workloads in torch.compile: PyTorch's own functions, which Inductor compiles to C++."""

from collections.abc import Sequence

import numpy as np
import torch

from tvm_practice.labs.workloads.in_torch import (
    attention,
    layer_norm,
    loaded,
    matmul,
    mlp,
    softmax,
)
from tvm_practice.labs.workloads.loaded import Loaded

__all__ = ["attention", "layer_norm", "load", "matmul", "mlp", "softmax"]


def load(workload: str, inputs: Sequence[np.ndarray]) -> Loaded:
    ready = loaded(torch.compile(globals()[workload]), inputs)
    ready.call()  # the first call compiles
    return ready
