"""The workloads in Triton: kernels over tiles of an array, for a GPU.

Without a GPU, Triton's interpreter runs them in numpy, tile after tile: the values are right, the
times mean nothing. TRITON_INTERPRET is read when a kernel is defined, so it is set before.
"""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

INTERPRETED = not torch.cuda.is_available()
if INTERPRETED:
    os.environ.setdefault("TRITON_INTERPRET", "1")

import triton  # noqa: E402
import triton.language as tl  # noqa: E402

from tvm_practice.labs.workloads.loaded import Loaded  # noqa: E402
from tvm_practice.labs.workloads.problems import EPSILON  # noqa: E402

Tensor = torch.Tensor
_BLOCK, _STEP = 64, 32  # rows and columns of a tile of a product, and steps of its sum


@triton.jit
def matmul_kernel(
    a, b, bias, c, n, k,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, STEP: tl.constexpr,
    BIAS: tl.constexpr, GELU: tl.constexpr,
):  # fmt: skip
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    tile = tl.zeros((ROWS, COLUMNS), dtype=tl.float32)
    for start in range(0, k, STEP):
        steps = start + tl.arange(0, STEP)
        left = tl.load(a + rows[:, None] * k + steps[None, :])
        right = tl.load(b + steps[:, None] * n + columns[None, :])
        tile += tl.dot(left, right, input_precision="ieee")
    if BIAS:
        tile += tl.load(bias + columns)[None, :]
    if GELU:
        tile = tile * 0.5 * (1 + tl.erf(tile * 0.7071067811865476))
    tl.store(c + rows[:, None] * n + columns[None, :], tile)


def product(a: Tensor, b: Tensor, bias: Tensor | None = None, gelu: bool = False) -> Tensor:
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty((m, n), device=a.device)
    matmul_kernel[(m // _BLOCK, n // _BLOCK)](
        a, b, a if bias is None else bias, c, n, k,
        ROWS=_BLOCK, COLUMNS=_BLOCK, STEP=_STEP, BIAS=bias is not None, GELU=gelu,
    )  # fmt: skip
    return c


def matmul(a: Tensor, b: Tensor) -> Tensor:
    return product(a, b)


@triton.jit
def softmax_kernel(x, y, columns, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    start = tl.program_id(0) * columns
    row = tl.load(x + start + at, mask=at < columns, other=float("-inf"))
    exponent = tl.exp(row - tl.max(row, axis=0))
    tl.store(y + start + at, exponent / tl.sum(exponent, axis=0), mask=at < columns)


def softmax(x: Tensor) -> Tensor:
    y = torch.empty_like(x)
    softmax_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


@triton.jit
def layer_norm_kernel(x, gain, bias, y, columns, EPSILON: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    inside = at < columns
    start = tl.program_id(0) * columns
    row = tl.load(x + start + at, mask=inside, other=0.0)
    centred = tl.where(inside, row - tl.sum(row, axis=0) / columns, 0.0)
    scale = 1 / tl.sqrt(tl.sum(centred * centred, axis=0) / columns + EPSILON)
    weight = tl.load(gain + at, mask=inside, other=0.0)
    shift = tl.load(bias + at, mask=inside, other=0.0)
    tl.store(y + start + at, centred * scale * weight + shift, mask=inside)


def layer_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    y = torch.empty_like(x)
    layer_norm_kernel[(x.shape[0],)](
        x, gain, bias, y, x.shape[1], EPSILON=EPSILON, BLOCK=triton.next_power_of_2(x.shape[1])
    )
    return y


def mlp(x: Tensor, w1: Tensor, b1: Tensor, w2: Tensor, b2: Tensor) -> Tensor:
    return product(product(x, w1, b1, gelu=True), w2, b2)


@triton.jit
def attention_kernel(
    q, k, v, y, tokens, scale, WIDTH: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    head = tl.program_id(0) * tokens * WIDTH
    rows = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    width = tl.arange(0, WIDTH)
    query = tl.load(q + head + rows[:, None] * WIDTH + width[None, :]) * scale
    largest = tl.full((ROWS,), float("-inf"), dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    result = tl.zeros((ROWS, WIDTH), dtype=tl.float32)
    for start in range(0, tokens, ROWS):
        others = start + tl.arange(0, ROWS)
        key = tl.load(k + head + others[None, :] * WIDTH + width[:, None])
        value = tl.load(v + head + others[:, None] * WIDTH + width[None, :])
        scores = tl.dot(query, key, input_precision="ieee")
        larger = tl.maximum(largest, tl.max(scores, axis=1))
        shrink = tl.exp(largest - larger)
        weights = tl.exp(scores - larger[:, None])
        total = total * shrink + tl.sum(weights, axis=1)
        result = result * shrink[:, None] + tl.dot(weights, value, input_precision="ieee")
        largest = larger
    tl.store(y + head + rows[:, None] * WIDTH + width[None, :], result / total[:, None])


def attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    heads, tokens, width = q.shape
    y = torch.empty_like(q)
    attention_kernel[(heads, tokens // _STEP)](
        q, k, v, y, tokens, width**-0.5, WIDTH=width, ROWS=_STEP
    )
    return y


def load(workload: str, inputs: Sequence[np.ndarray]) -> Loaded:
    function = globals()[workload]
    device = "cpu" if INTERPRETED else "cuda"
    tensors = [torch.from_numpy(each).to(device) for each in inputs]

    def call() -> Any:
        result = function(*tensors)
        if not INTERPRETED:
            torch.cuda.synchronize()
        return result

    return Loaded(call, lambda: call().cpu().numpy())
