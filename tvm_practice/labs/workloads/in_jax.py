"""The workloads in JAX, which XLA compiles.

XLA's threads cannot be set by an option: it makes one for each processor that the process may
run on, or as many as PJRT_NPROC says, which `process` sets before JAX is imported.
"""

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from tvm_practice.labs.workloads.loaded import Loaded
from tvm_practice.labs.workloads.problems import EPSILON


def matmul(a: Array, b: Array) -> Array:
    return a @ b


def softmax(x: Array) -> Array:
    return jax.nn.softmax(x)


def layer_norm(x: Array, gain: Array, bias: Array) -> Array:
    return jax.nn.standardize(x, epsilon=EPSILON) * gain + bias


def mlp(x: Array, w1: Array, b1: Array, w2: Array, b2: Array) -> Array:
    return jax.nn.gelu(x @ w1 + b1, approximate=False) @ w2 + b2


def attention(q: Array, k: Array, v: Array) -> Array:
    scores = jnp.einsum("hqd,hkd->hqk", q, k) * q.shape[-1] ** -0.5
    return jax.nn.softmax(scores) @ v


def load(workload: str, inputs: Sequence[np.ndarray]) -> Loaded:
    arrays = [jax.device_put(each) for each in inputs]
    compiled = jax.jit(globals()[workload]).lower(*arrays).compile()
    return Loaded(
        lambda: compiled(*arrays).block_until_ready(), lambda: np.asarray(compiled(*arrays))
    )
