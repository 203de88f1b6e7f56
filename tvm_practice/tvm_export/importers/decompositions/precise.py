"""Functions whose plain formula loses digits near 0, or overflows though the result does not."""

import functools
import math
from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    unary = {
        aten.expm1.default: _expm1,
        aten.log1p.default: _log1p,
        aten.sinh.default: _sinh,
        aten.cosh.default: _cosh,
        aten.atanh.default: _atanh,
        aten.softplus.default: _softplus,
        aten.mish.default: _mish,
        aten.elu.default: _elu,
    }
    return {
        **{operator: functools.partial(in_floats, rule) for operator, rule in unary.items()},
        aten.gelu.default: of_float16(aten.gelu.default),
        aten.leaky_relu.default: of_float16(aten.leaky_relu.default),
        aten.frexp.Tensor: _frexp,
        aten.hypot.default: functools.partial(_of_two, _hypot),
        aten.logaddexp.default: functools.partial(_of_two, _logaddexp),
    }


def in_floats(rule: Rule, x: Any, *settings: Any) -> Any:
    """A function of one tensor, whole numbers as floats, narrow floats as float32."""
    import torch

    dtype = x.dtype if x.is_floating_point() else torch.get_default_dtype()
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    return rule(x.to(wide), *settings).to(dtype)


def of_float16(operator: Any) -> Rule:
    """An operator whose float16 is computed in float32: TVM rounds each of its steps."""

    def rule(x: Any, *settings: Any, **more: Any) -> Any:
        import torch

        if x.dtype != torch.float16:
            return NotImplemented
        return operator(x.to(torch.float32), *settings, **more).to(x.dtype)

    return rule


def _of_two(rule: Rule, x: Any, y: Any) -> Any:
    """A function of two real tensors, in the type that PyTorch gives it, narrow ones as float32."""
    import torch

    dtype = torch.result_type(x, y)
    if not dtype.is_floating_point:
        return NotImplemented
    wide = torch.float32 if dtype in (torch.float16, torch.bfloat16) else dtype
    return rule(x.to(wide), y.to(wide)).to(dtype)


def _hypot(x: Any, y: Any) -> Any:
    """Scaled by the larger one, whose square could be infinite."""
    import torch

    x, y = torch.abs(x), torch.abs(y)
    large = torch.maximum(x, y)
    part = torch.minimum(x, y) / torch.where(large == 0, 1, large)
    found = large * torch.sqrt(1 + part * part)
    return torch.where((x == math.inf) | (y == math.inf), math.inf, found)


def _logaddexp(x: Any, y: Any) -> Any:
    import torch

    found = torch.maximum(x, y) + torch.log1p(torch.exp(-torch.abs(x - y)))
    return torch.where((x == y) & (torch.abs(x) == math.inf), x, found)


def _expm1(x: Any) -> Any:
    """tanh(x/2) (exp(x) + 1): near 0 exp(x) - 1 would lose all digits."""
    import torch

    power = torch.exp(x)
    return torch.where(torch.abs(x) < 1, torch.tanh(x * 0.5) * (power + 1), power - 1)


def _log1p(x: Any) -> Any:
    """Near 0 by the series of 2 atanh(s), where log(1 + x) has lost the digits of x.

    The sum's rounding cannot be put right by what (1 + x) - 1 is: the compiler makes that x.
    """
    import torch

    near = torch.abs(x) < 0.25
    part = torch.where(near, x / (2 + x), 0)
    square = part * part
    series: Any = 0.0
    for n in reversed(range(10 if x.dtype == torch.float64 else 5)):
        series = series * square + 2 / (2 * n + 1)
    return torch.where(near, part * series, torch.log(1 + x))


def _sinh(x: Any) -> Any:
    import torch

    less = _expm1(torch.abs(x))
    size = torch.where(
        torch.abs(x) < 1, 0.5 * (less + less / (less + 1)), 0.5 * torch.exp(torch.abs(x))
    )
    size = torch.where(torch.abs(x) < 1, size, size - 0.5 * torch.exp(-torch.abs(x)))
    return torch.where(x < 0, -size, size)


def _cosh(x: Any) -> Any:
    import torch

    return (torch.exp(x) + torch.exp(-x)) * 0.5


def _atanh(x: Any) -> Any:
    import torch

    size = torch.abs(x)
    found = 0.5 * torch.log1p(2 * size / (1 - size))
    return torch.where(x < 0, -found, torch.where(x == 0, x, found))


def _softplus(x: Any, beta: float = 1, threshold: float = 20) -> Any:
    import torch

    return torch.where(x * beta > threshold, x, torch.log1p(torch.exp(x * beta)) / beta)


def _mish(x: Any) -> Any:
    import torch

    return x * torch.tanh(_softplus(x))


def _elu(x: Any, alpha: float = 1, scale: float = 1, input_scale: float = 1) -> Any:
    """By expm1, for the digits that exp(x) - 1 loses near 0."""
    import torch

    return torch.where(x > 0, x * scale, torch.expm1(x * input_scale) * (alpha * scale))


def _frexp(x: Any) -> tuple[Any, Any]:
    import torch

    wide = x.to(torch.float64)
    size = torch.abs(wide)
    usual = (size > 0) & (size < math.inf)
    guess = torch.floor(torch.log2(torch.where(usual, size, 1))) + 1
    half = torch.floor(guess * 0.5)  # a power of the whole would be too large for the smallest
    part = wide * torch.pow(2.0, -half) * torch.pow(2.0, half - guess)
    high, low = torch.abs(part) >= 1, torch.abs(part) < 0.5
    part = torch.where(high, part * 0.5, torch.where(low, part * 2, part))
    guess = torch.where(high, guess + 1, torch.where(low, guess - 1, guess))
    exponent = torch.where(usual, guess, 0).to(torch.int32)
    return torch.where(usual, part, wide).to(x.dtype), exponent
