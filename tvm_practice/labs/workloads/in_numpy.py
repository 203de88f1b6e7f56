"""The workloads in numpy. In float64 they are the reference for all others."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import erf

from tvm_practice.labs.workloads.loaded import Loaded
from tvm_practice.labs.workloads.problems import EPSILON

Array = np.ndarray


def matmul(a: Array, b: Array) -> Any:
    return a @ b


def softmax(x: Array) -> Any:
    exponent = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponent / exponent.sum(axis=-1, keepdims=True)


def layer_norm(x: Array, gain: Array, bias: Array) -> Any:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + EPSILON) * gain + bias


def gelu(x: Array) -> Any:
    return x * 0.5 * (1 + erf(x * 0.5**0.5))


def mlp(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Any:
    return gelu(x @ w1 + b1) @ w2 + b2


def attention(q: Array, k: Array, v: Array) -> Any:
    return softmax(q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5) @ v


def load(workload: str, inputs: Sequence[Array]) -> Loaded:
    function = globals()[workload]
    return Loaded(lambda: function(*inputs), lambda: np.asarray(function(*inputs)))
