"""The workloads: their shapes and their inputs.

matmul        a · b
softmax       of each row
layer_norm    of each row, with a gain and a bias for each column
mlp           GELU(x · w1 + b1) · w2 + b2, the GELU with erf
attention     softmax(q · kᵀ / √width) · v for each head

All in float32, every operand an argument of the call, weights too.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from tvm_practice.wording import number_of

Size: TypeAlias = Literal["full", "quick"]
EPSILON = 1e-5  # of layer_norm, added to the variance


@dataclass(frozen=True)
class Problem:
    """A workload of one size.

    Attributes:
        shapes: of its arguments, by name, in their order.
        result: the shape of its result.
        text: the sizes as a person writes them.
    """

    shapes: dict[str, tuple[int, ...]]
    result: tuple[int, ...]
    text: str


def _matmul(m: int, n: int, k: int) -> Problem:
    return Problem({"a": (m, k), "b": (k, n)}, (m, n), f"{m}×{k} · {k}×{n}")


def _softmax(rows: int, columns: int) -> Problem:
    return Problem({"x": (rows, columns)}, (rows, columns), f"{rows}×{columns}")


def _layer_norm(rows: int, columns: int) -> Problem:
    shapes = {"x": (rows, columns), "gain": (columns,), "bias": (columns,)}
    return Problem(shapes, (rows, columns), f"{rows}×{columns}")


def _mlp(rows: int, width: int, hidden: int) -> Problem:
    shapes = {
        "x": (rows, width),
        "w1": (width, hidden),
        "b1": (hidden,),
        "w2": (hidden, width),
        "b2": (width,),
    }
    return Problem(shapes, (rows, width), f"{number_of(rows, 'row')}, {width}→{hidden}→{width}")


def _attention(heads: int, tokens: int, width: int) -> Problem:
    shape = (heads, tokens, width)
    return Problem(
        {"q": shape, "k": shape, "v": shape}, shape, f"{heads} heads × {tokens} tokens × {width}"
    )


# The full sizes of mlp and attention are those of BERT-base at 128 tokens.
PROBLEMS: dict[str, dict[Size, Problem]] = {
    "matmul": {"full": _matmul(1024, 1024, 1024), "quick": _matmul(256, 256, 256)},
    "softmax": {"full": _softmax(4096, 1024), "quick": _softmax(256, 512)},
    "layer_norm": {"full": _layer_norm(4096, 768), "quick": _layer_norm(256, 768)},
    "mlp": {"full": _mlp(128, 768, 3072), "quick": _mlp(64, 128, 512)},
    "attention": {"full": _attention(12, 128, 64), "quick": _attention(4, 64, 32)},
}


def draw(workload: str, size: Size, seed: int = 0) -> list[np.ndarray]:
    """Arguments in their order, float32.

    Weights are scaled so that results are near 1. The logits of a softmax reach past 88, where
    exp overflows, and its rows are apart by more than that.
    """
    rng = np.random.default_rng(seed)
    shapes = PROBLEMS[workload][size].shapes
    drawn = {name: rng.standard_normal(shape, "float32") for name, shape in shapes.items()}
    for name in drawn.keys() & {"b", "w1", "w2"}:
        drawn[name] *= np.float32(shapes[name][0] ** -0.5)
    if workload == "softmax":
        drawn["x"] = 3 * drawn["x"] + rng.uniform(-100, 100, (shapes["x"][0], 1)).astype("float32")
    return list(drawn.values())
