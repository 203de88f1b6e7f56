"""The workloads in PyTorch: each operator is a call into a library."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from tvm_practice import engines
from tvm_practice.labs.workloads.loaded import Loaded
from tvm_practice.labs.workloads.problems import EPSILON


def matmul(a: Tensor, b: Tensor) -> Tensor:
    return a @ b


def softmax(x: Tensor) -> Tensor:
    return torch.softmax(x, -1)


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    return F.layer_norm(x, x.shape[-1:], gain, bias, EPSILON)


def mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return torch.addmm(b2, F.gelu(torch.addmm(b1, x, w1)), w2)


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return F.scaled_dot_product_attention(q[None], k[None], v[None])[0]


def load(workload: str, inputs: Sequence[np.ndarray]) -> Loaded:
    return loaded(globals()[workload], inputs)


def loaded(function: Callable[..., Any], inputs: Sequence[np.ndarray]) -> Loaded:
    """`function` of PyTorch tensors, called without gradients."""
    torch.set_num_threads(engines.thread_count())
    tensors = [torch.from_numpy(each) for each in inputs]

    def call() -> Any:
        with torch.inference_mode():
            return function(*tensors)

    return Loaded(call, lambda: call().numpy())
