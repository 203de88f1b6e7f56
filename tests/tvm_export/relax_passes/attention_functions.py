"""Functions that the tests of attention call in a child process, on the current engine."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention

_ROWS, _TOKENS = 70, 45
_Q, _K, _V = (2, 4, _ROWS, 24), (2, 4, _TOKENS, 24), (2, 4, _TOKENS, 32)
_MASK = torch.where(torch.randn(_ROWS, _TOKENS) > 1, -math.inf, torch.randn(_ROWS, _TOKENS))
_MASK[3] = -math.inf
_HUGE = torch.full((24,), 1e26)
_THIRD = torch.full((1, 1, 1), 1 / 3)

_Forward = Callable[..., torch.Tensor]


def _by_hand(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return torch.softmax(q @ k.mT / 4, -1) @ v


def _masked_by_hand(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor
) -> torch.Tensor:
    scores = torch.where(mask, q @ k.mT * 0.2, torch.tensor(-1e9))
    return torch.softmax(scores, -1) @ v


def _heads_last(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    q, k, v = (each.reshape(*each.shape[:2], 4, -1).transpose(1, 2) for each in (q, k, v))
    return scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)


def _few_keys(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    return scaled_dot_product_attention(q, k, v, enable_gqa=True)


def _weights_too(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    weights = torch.softmax(q @ k.mT, -1)
    return torch.cat([weights @ v, weights], -1)


def _scores_too(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
    scores = q @ k.mT / 8 + 1
    return torch.cat([torch.softmax(scores, -1) @ v, scores], -1)


FORMS: dict[str, tuple[_Forward, list[tuple[int, ...]]]] = {
    "plain": (scaled_dot_product_attention, [_Q, _K, _V]),
    "mask per row": (lambda q, k, v: scaled_dot_product_attention(q, k, v, _MASK), [_Q, _K, _V]),
    "mask that is given": (
        scaled_dot_product_attention,
        [_Q, _K, _V, (2, 1, _ROWS, _TOKENS)],
    ),
    "mask per token": (
        scaled_dot_product_attention,
        [_Q, _K, _V, (2, 1, 1, _TOKENS)],
    ),
    "mask of truths": (
        lambda q, k, v, m: scaled_dot_product_attention(q, k, v, m > 0.3),
        [_Q, _K, _V, (_ROWS, _TOKENS)],
    ),
    "masked by hand": (
        lambda q, k, v, m: _masked_by_hand(q, k, v, m > 0),
        [_Q, _K, _V, (2, 1, _ROWS, _TOKENS)],
    ),
    "causal": (
        lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True),
        [_Q, (2, 4, _ROWS, 24), (2, 4, _ROWS, 32)],
    ),
    "by hand": (_by_hand, [_Q, _K, _V]),
    "three axes": (_by_hand, [(5, 33, 8), (5, 16, 8), (5, 16, 16)]),
    "two axes": (_by_hand, [(64, 8), (64, 8), (64, 48)]),
    "heads last": (_heads_last, [(3, 41, 64), (3, 23, 64), (3, 23, 128)]),
    "few keys": (_few_keys, [(1, 6, 48, 16), (1, 2, 64, 16), (1, 2, 64, 80)]),
    "a single element per key": (_by_hand, [(3, 64, 1), (3, 40, 1), (3, 40, 16)]),
    "shifted scores": (
        lambda q, k, v: torch.softmax(1 - (q @ k.mT - 2) / 3, -1) @ v,
        [_Q, _K, _V],
    ),
    "values scaled": (lambda q, k, v: _by_hand(q, k / 3, v.mT.mul(-2).mT), [_Q, _K, _V]),
    "scores that overflow the exponential": (
        lambda q, k, v: torch.softmax((q @ k.mT + 1e-9) * 1e20, -1) @ v,
        [_Q, _K, _V],
    ),
    "scaled by a number of more axes": (
        lambda q, k, v: _by_hand((q * _THIRD).mT.mT, k, v),
        [(64, 8), (1, 64, 8), (1, 64, 48)],
    ),
}
# Left to the operators' own rules.
APART: dict[str, tuple[_Forward, list[tuple[int, ...]]]] = {
    "one row": (_by_hand, [(2, 4, 1, 24), _K, _V]),
    "values of odd width": (_by_hand, [_Q, _K, (2, 4, _TOKENS, 9)]),
    "weights read elsewhere": (_weights_too, [_Q, _K, _V]),
    "scores read elsewhere": (_scores_too, [_Q, _K, _V]),
    "a vector": (lambda q, k, v: torch.softmax(k @ q, -1) @ v, [(24,), (45, 24), (45, 32)]),
    "a value each": (lambda q, k, v: torch.softmax(q @ k.mT, -1) @ v, [(40, 8), (45, 8), (45,)]),
    "values repeated": (_by_hand, [(4, 40, 8), (4, 45, 8), (45, 16)]),
    "softmax over rows": (lambda q, k, v: torch.softmax(q @ k.mT, -2) @ v, [_Q, _K, _V]),
    "scores times 0": (lambda q, k, v: torch.softmax(q @ k.mT * 0, -1) @ v, [_Q, _K, _V]),
    "scores over 0": (lambda q, k, v: torch.softmax(q @ k.mT / 0, -1) @ v, [_Q, _K, _V]),
    "factors beyond float32": (
        lambda q, k, v: _by_hand(q * _HUGE * 1e-26, k * _HUGE * 1e-26, v),
        [_Q, _K, _V],
    ),
    "no key": (_by_hand, [_Q, (2, 4, 0, 24), (2, 4, 0, 32)]),
}


class _Model(nn.Module):
    def __init__(self, forward: _Forward):
        super().__init__()
        self._forward = forward

    def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
        return self._forward(*tensors)


def judged(target: str = "llvm") -> dict[str, Any]:
    """By form: the largest error relative to the largest value, and the rules that were used."""
    return {
        name: _judged(forward, [torch.randn(each) for each in shapes], target)
        for name, (forward, shapes) in (FORMS | APART).items()
    }


def extremes() -> dict[str, Any]:
    """As `judged`, of operands with NaN, infinities and numbers that overflow the exponential."""
    found = {}
    for value in (math.nan, math.inf, -math.inf, 1e4, -1e4, 1e38):
        for position, operand in enumerate(("query", "key", "value")):
            drawn = [torch.randn(each) for each in (_Q, _K, _V)]
            drawn[position][0, 1, 5, 3] = value
            found[f"{operand} with {value}"] = _judged(scaled_dot_product_attention, drawn, "llvm")
    # Of a row's scores some are NaN, and the others are masked.
    drawn = [torch.randn(each) for each in (_Q, _K, _V)]
    drawn[1][0, 1, 5] = math.nan
    mask = torch.full((_ROWS, _TOKENS), -math.inf)
    mask[:, 5] = 0
    mask[:9, :3] = 0
    found["a row of NaN and minus infinities"] = _judged(
        scaled_dot_product_attention, [*drawn, mask], "llvm"
    )
    return found


class _Open(_Model):
    def forward(  # type: ignore[override]
        self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor
    ) -> torch.Tensor:
        return self._forward(q, k, v)


def open_extents() -> float:
    """The largest error at several numbers of rows and tokens, which are known at run time only."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    def drawn(rows: int, tokens: int) -> list[torch.Tensor]:
        shapes = [(2, 3, rows, 16), (2, 3, tokens, 16), (2, 3, tokens, 24)]
        return [torch.randn(each) for each in shapes]

    names: dict[str, tuple[int | str, ...]]
    names = {"q": (2, 3, "rows", 16), "k": (2, 3, "tokens", 16), "v": (2, 3, "tokens", 24)}
    config = ExportConfig(example_input=tuple(drawn(_ROWS, _TOKENS)), input_shapes=names)
    built = compile_pytorch_module(_Open(scaled_dot_product_attention), config, verify=False)
    worst = 0.0
    for rows, tokens in ((_ROWS, _TOKENS), (1, 1), (64, 3)):
        tensors = drawn(rows, tokens)
        [output] = built(*(each.numpy() for each in tensors))
        query, key, value = tensors
        error = torch.as_tensor(output) - scaled_dot_product_attention(query, key, value)
        worst = max(worst, float(error.abs().nan_to_num(math.inf).max()))
    return worst


def tuned() -> dict[str, Any]:
    """What a tuner says of a model of attention alone, and the rules of its export."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    example = tuple(torch.randn(1, 2, 64, 16) for _ in range(3))
    config = ExportConfig(example_input=example, tuner="metaschedule", tuning_trials=8)
    built = compile_pytorch_module(_Model(scaled_dot_product_attention), config)
    return {"note": built.tuning["note"], "rules": sorted(set(built.rules.values()))}


def _judged(forward: _Forward, tensors: list[torch.Tensor], target: str) -> dict[str, Any]:
    import numpy as np

    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    model = _Model(forward)
    config = ExportConfig(example_input=tuple(tensors), target=target)
    built = compile_pytorch_module(model, config, verify=False)
    [output] = built(*(each.numpy() for each in tensors))
    expected = model(*(each.double() for each in tensors)).numpy()
    same = np.isnan(output) == np.isnan(expected)
    known = np.isfinite(expected) & np.isfinite(output)
    scale = max(float(np.abs(expected[known]).max(initial=0)), 1e-30)
    return {
        "error": float(np.abs(output - expected)[known].max(initial=0)) / scale,
        "same": bool(same.all()) and bool((known == np.isfinite(expected)).all()),
        "rules": sorted(set(built.rules.values())),
    }
