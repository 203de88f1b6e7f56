"""The three tracks: shapes, inputs, the result in float64, PyTorch's way, sizes, thresholds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Size = tuple[int, ...]
Arrays = list[np.ndarray]

HEAD = 64
"""Elements of a query, a key and a value in the attention track."""

_MOST = 2e-5  # of the sum of the terms' magnitudes: float32 sums in any order stay below
# A score is known to this much of its terms' magnitudes, and a weight is its exponential, which is
# known to 5e-5; no weight is further off than 1e-3.
_SCORE, _EXPONENTIAL, _WEIGHT = 4e-6, 5e-5, 1e-3


@dataclass(frozen=True)
class Track:
    """One open problem.

    Attributes:
        name: of the function that the learner writes.
        parameters: of that function, in order.
        buffers: shapes of the inputs by name, and of the output "Y", which is last.
        draw: inputs of a size; wild ones have values that overflow a careless formula.
        truth: the result in float64, and how far each element may be from it.
        in_torch: a function that computes the result with PyTorch.
        operations: floating-point operations that the result needs.
        classes: the published size of each class, and how another one of it is drawn.
        edges: sizes of the gate: 1, below a vector, primes.
        thresholds: scores from which on an answer has the tier, in the order of `scoring.TIERS`.
    """

    name: str
    parameters: tuple[str, ...]
    buffers: Callable[[Size], dict[str, Size]]
    draw: Callable[[Size, np.random.Generator, bool], Arrays]
    truth: Callable[[Size, Arrays], tuple[np.ndarray, np.ndarray]]
    in_torch: Callable[[Size, Sequence[Any]], Callable[[], Any]]
    operations: Callable[[Size], int]
    classes: Mapping[str, tuple[Size, Callable[[np.random.Generator], Size]]]
    edges: tuple[Size, ...]
    thresholds: tuple[float, float, float, float]

    def compulsory_bytes(self, size: Size) -> int:
        """Bytes of the inputs and of the output, each moved once."""
        return 4 * sum(int(np.prod(shape)) for shape in self.buffers(size).values())

    def cases(self, seed: int) -> list[dict[str, Any]]:
        """The sizes of a score: of each class the published one, and one drawn by the seed."""
        rng = np.random.default_rng([seed, *self.name.encode()])
        found = []
        for name, (published, draw) in self.classes.items():
            found.append({"class": name, "size": list(published), "drawn": False})
            found.append({"class": name, "size": list(draw(rng)), "drawn": True})
        return found


def shown(track: Track, size: Sequence[int]) -> str:
    """The call, as in `product(7, 1, 13)`."""
    return f"{track.name}({', '.join(map(str, size))})"


def _odd(rng: np.random.Generator, low: int, high: int) -> int:
    """An odd number: no vector divides it."""
    return int(rng.integers(low // 2, high // 2)) * 2 + 1


# product: Y = gelu(X W + bias) + R


def _product_buffers(size: Size) -> dict[str, Size]:
    m, n, k = size
    return {"X": (m, k), "W": (k, n), "bias": (n,), "R": (m, n), "Y": (m, n)}


def _draw_product(size: Size, rng: np.random.Generator, wild: bool) -> Arrays:
    *inputs, _ = _product_buffers(size).values()
    x, w, bias, r = (rng.standard_normal(shape, dtype="float32") for shape in inputs)
    if wild:  # exp(2u) of tanh's formula overflows from u = 44 on
        x *= rng.choice(np.array([0.01, 1, 40], "float32"), (len(x), 1))
    return [x, w, bias, r]


def _gelu(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return result


def _product_truth(_: Size, inputs: Arrays) -> tuple[np.ndarray, np.ndarray]:
    x, w, bias, r = (each.astype("float64") for each in inputs)
    magnitude = np.abs(x) @ np.abs(w) + np.abs(bias) + np.abs(r)
    return _gelu(x @ w + bias) + r, _MOST * magnitude + 1e-6


def _product_in_torch(_: Size, inputs: Sequence[Any]) -> Callable[[], Any]:
    import torch

    x, w, bias, r = inputs
    gelu = torch.nn.functional.gelu
    return lambda: gelu(torch.addmm(bias, x, w), approximate="tanh").add_(r)


_PRODUCT = Track(
    "product",
    ("m", "n", "k"),
    _product_buffers,
    _draw_product,
    _product_truth,
    _product_in_torch,
    lambda size: 2 * size[0] * size[1] * size[2],
    {
        "square": (
            (509, 517, 251),
            lambda rng: (_odd(rng, 300, 700), _odd(rng, 300, 700), _odd(rng, 200, 500)),
        ),
        "one row": ((1, 3001, 1021), lambda rng: (1, _odd(rng, 2500, 3500), _odd(rng, 900, 1100))),
        "narrow": (
            (2003, 67, 331),
            lambda rng: (_odd(rng, 1500, 2500), _odd(rng, 33, 99), _odd(rng, 250, 450)),
        ),
    },
    ((1, 1, 1), (1, 17, 3), (7, 1, 13), (5, 3, 1), (31, 67, 37)),
    (5.0, 10.0, 18.0, 26.0),
)


# depthwise: each channel convolved with a filter of its own


def _output(size: Size) -> tuple[int, int]:
    """Height and width of the output; kernel // 2 zeros on each side."""
    _, _, height, width, kernel, stride = size
    pad = 2 * (kernel // 2)
    return (height + pad - kernel) // stride + 1, (width + pad - kernel) // stride + 1


def _depthwise_buffers(size: Size) -> dict[str, Size]:
    batch, channels, height, width, kernel, _ = size
    return {
        "X": (batch, channels, height, width),
        "W": (channels, kernel, kernel),
        "Y": (batch, channels, *_output(size)),
    }


def _draw_depthwise(size: Size, rng: np.random.Generator, wild: bool) -> Arrays:
    shapes = _depthwise_buffers(size)
    x, w = (rng.standard_normal(shapes[each], dtype="float32") for each in "XW")
    if wild:  # a pixel of a neighbouring channel would stand out
        x *= rng.choice(np.array([1e-8, 1, 1e8], "float32"), (1, size[1], 1, 1))
    return [x, w]


def _depthwise_truth(size: Size, inputs: Arrays) -> tuple[np.ndarray, np.ndarray]:
    x, w = (each.astype("float64") for each in inputs)
    *_, kernel, stride = size
    high, wide = _output(size)
    pad = kernel // 2
    x = np.pad(x, ((0, 0), (0, 0), (pad, pad), (pad, pad)))
    total = np.zeros(_depthwise_buffers(size)["Y"])
    magnitude = np.zeros_like(total)
    for i in range(kernel):
        for j in range(kernel):
            rows = slice(i, i + (high - 1) * stride + 1, stride)
            columns = slice(j, j + (wide - 1) * stride + 1, stride)
            term = x[:, :, rows, columns] * w[:, i, j][:, None, None]
            total += term
            magnitude += np.abs(term)
    return total, _MOST * magnitude + 1e-30


def _depthwise_in_torch(size: Size, inputs: Sequence[Any]) -> Callable[[], Any]:
    import torch

    x, w = inputs
    *_, kernel, stride = size
    weight = w[:, None]
    convolve = torch.nn.functional.conv2d
    return lambda: convolve(x, weight, stride=stride, padding=kernel // 2, groups=size[1])


def _depthwise_operations(size: Size) -> int:
    batch, channels, _, _, kernel, _ = size
    high, wide = _output(size)
    return 2 * batch * channels * high * wide * kernel * kernel


_DEPTHWISE = Track(
    "depthwise",
    ("batch", "channels", "height", "width", "kernel", "stride"),
    _depthwise_buffers,
    _draw_depthwise,
    _depthwise_truth,
    _depthwise_in_torch,
    _depthwise_operations,
    {
        "3x3": (
            (1, 97, 113, 113, 3, 1),
            lambda rng: (1, _odd(rng, 64, 160), *(_odd(rng, 80, 130) for _ in "hw"), 3, 1),
        ),
        "3x3, stride 2": (
            (1, 97, 113, 113, 3, 2),
            lambda rng: (1, _odd(rng, 64, 160), *(_odd(rng, 80, 130) for _ in "hw"), 3, 2),
        ),
        "5x5": (
            (1, 241, 57, 57, 5, 1),
            lambda rng: (1, _odd(rng, 160, 300), *(_odd(rng, 45, 75) for _ in "hw"), 5, 1),
        ),
    },
    (
        (1, 1, 1, 1, 3, 1),
        (2, 3, 5, 7, 3, 1),
        (1, 2, 2, 1, 5, 2),
        (2, 3, 13, 37, 3, 2),
        (1, 5, 11, 19, 5, 1),
    ),
    (15.0, 35.0, 55.0, 65.0),
)


# attention: Y = softmax(Q K' / 8) V


def _attention_buffers(size: Size) -> dict[str, Size]:
    queries, keys = size
    return {"Q": (queries, HEAD), "K": (keys, HEAD), "V": (keys, HEAD), "Y": (queries, HEAD)}


def _draw_attention(size: Size, rng: np.random.Generator, wild: bool) -> Arrays:
    *inputs, _ = _attention_buffers(size).values()
    q, k, v = (rng.standard_normal(shape, dtype="float32") for shape in inputs)
    if wild:  # scores of several hundred, of either sign: exp overflows from 88 on
        k += 3 * rng.standard_normal(HEAD, dtype="float32")
        q *= rng.choice(np.array([0.1, 1, 30], "float32"), (len(q), 1))
        # One key alone decides what exp overflows from; the first and the last are as large.
        k[list({0, int(rng.integers(len(k))), len(k) - 1})] *= 10
    return [q, k, v]


def _attention_truth(_: Size, inputs: Arrays) -> tuple[np.ndarray, np.ndarray]:
    q, k, v = (each.astype("float64") for each in inputs)
    scores = q @ k.T / np.sqrt(HEAD)
    terms = (np.abs(q) @ np.abs(k).T).max(axis=1, keepdims=True) / np.sqrt(HEAD)
    known = np.minimum(_EXPONENTIAL + _SCORE * terms, _WEIGHT)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return weights @ v, known * (weights @ np.abs(v)) + 1e-6


def _attention_in_torch(_: Size, inputs: Sequence[Any]) -> Callable[[], Any]:
    import torch

    q, k, v = (each[None, None] for each in inputs)
    attend = torch.nn.functional.scaled_dot_product_attention
    return lambda: attend(q, k, v)


_ATTENTION = Track(
    "attention",
    ("queries", "keys"),
    _attention_buffers,
    _draw_attention,
    _attention_truth,
    _attention_in_torch,
    lambda size: 4 * size[0] * size[1] * HEAD,
    {
        "square": ((509, 509), lambda rng: (length := _odd(rng, 400, 900), length)),
        "long": ((131, 2003), lambda rng: (_odd(rng, 100, 200), _odd(rng, 1500, 2500))),
    },
    ((1, 1), (1, 17), (7, 1), (3, 5), (37, 131)),
    (5.0, 12.0, 22.0, 32.0),
)

_ALL = {each.name: each for each in (_PRODUCT, _DEPTHWISE, _ATTENTION)}


def find_track(name: str) -> Track:
    """The track of that name. Raises KeyError."""
    return _ALL[name]
