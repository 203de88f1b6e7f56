"""Elementwise operators, comparisons, choices, and casts."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from fuzz.drawing import Drawn, Unsuitable, Value

# `{}` is the value. What is exact rounds nothing; what jumps takes exact values only, because
# numbers that rounding sets apart end on either side.
_EXACT = {
    "neg": "-{}",
    "abs": "{}.abs()",
    "relu": "F.relu({})",
    "clamp": "{}.clamp(-0.75, 1.25)",
    "hardtanh": "F.hardtanh({})",
    "threshold": "F.threshold({}, 0.5, -1.0)",
}
_ROUNDED = {
    "gelu": "F.gelu({})",
    "gelu tanh": 'F.gelu({}, approximate="tanh")',
    "sigmoid": "torch.sigmoid({})",
    "tanh": "torch.tanh({})",
    "silu": "F.silu({})",
    "exp": "torch.exp({}.clamp(max=4))",
    "log": "torch.log({}.abs() + 0.5)",
    "log1p": "torch.log1p({}.abs())",
    "expm1": "torch.expm1({}.clamp(max=4))",
    "sqrt": "torch.sqrt({}.abs() + 0.25)",
    "rsqrt": "torch.rsqrt({}.abs() + 0.25)",
    "reciprocal": "torch.reciprocal({}.abs() + 0.5)",
    "erf": "torch.erf({})",
    "sin": "torch.sin({})",
    "cos": "torch.cos({})",
    "atan": "torch.atan({})",
    "leaky_relu": "F.leaky_relu({}, 0.1)",
    "elu": "F.elu({})",
    "selu": "F.selu({})",
    "celu": "F.celu({}, 1.5)",
    "softplus": "F.softplus({})",
    "softsign": "F.softsign({})",
    "mish": "F.mish({})",
    "hardswish": "F.hardswish({})",
    "hardsigmoid": "F.hardsigmoid({})",
    "log_sigmoid": "F.logsigmoid({})",
    "square": "torch.square({})",
    "pow": "{}.abs() ** 1.5",
    "glu": "F.glu({}, -1)",
}
_JUMPS = {
    "floor": "torch.floor({})",
    "ceil": "torch.ceil({})",
    "round": "torch.round({})",
    "trunc": "torch.trunc({})",
    "sign": "torch.sign({})",
    "frac": "torch.frac({})",
}


def _unary(drawn: Drawn, name: str, code: str, *, exact: bool, jumps: bool) -> None:
    given = drawn.value(lambda it: it.is_real and (it.exact or not jumps))
    drawn.take(name, code.format(given.name), of=[given], exact=exact)


def _other(drawn: Drawn, given: Value, suits: Callable[[Value], bool]) -> tuple[str, list[Value]]:
    """A second operand that broadcasts: a value, a constant, or a number."""
    how = drawn.among(("value", "constant", "number"))
    if how == "value":

        def broadcasts(value: Value) -> bool:
            try:
                np.broadcast_shapes(value.shape, given.shape)
            except ValueError:
                return False
            return suits(value)

        found = drawn.value(broadcasts)
        return found.name, [found]
    if how == "number" and not given.is_bool:
        return drawn.among(("2", "0.5", "-3") if given.is_real else ("2", "-3", "7")), []
    axes = drawn.integer(0, given.rank)
    shape = tuple(1 if drawn.integer(0, 3) == 3 else each for each in given.shape[axes:])
    dtype = given.dtype if not given.is_real or drawn.chance() else "float32"
    return drawn.weight(shape, dtype, 0.5), []


def _arithmetic(drawn: Drawn, name: str, code: str) -> None:
    given = drawn.value(lambda it: not it.is_bool)
    other, more = _other(drawn, given, lambda it: not it.is_bool)
    exact = name in ("maximum", "minimum") or given.is_integer
    exact = exact and all(each.is_integer or name in ("maximum", "minimum") for each in more)
    if "torch.m" in code and not other[0].isalpha():
        other = f"torch.tensor({other})"
    if given.is_integer and not more and "." in other and "self" not in other:
        exact = False
    alpha = drawn.among((2, -3) if given.is_integer else (2, -3, 0.5))
    code = code.format(given.name, other, alpha=alpha)
    drawn.take(name, code, of=[given, *more], exact=exact)


def _division(drawn: Drawn, name: str) -> None:
    given = drawn.value(lambda it: not it.is_bool)
    other, more = _other(drawn, given, lambda it: not it.is_bool)
    if not other[0].isalpha():
        drawn.take(name, f"{given.name} / {other}", of=[given, *more], exact=False)
    else:
        drawn.take(name, f"{given.name} / ({other}.abs() + 1)", of=[given, *more], exact=False)


def _comparison(drawn: Drawn, name: str, code: str) -> None:
    given = drawn.value(lambda it: it.exact)
    other, more = _other(drawn, given, lambda it: it.exact)
    drawn.take(name, code.format(given.name, other), of=[given, *more], exact=True)


def _logic(drawn: Drawn, name: str, code: str) -> None:
    given = drawn.value(lambda it: it.is_bool)
    other, more = _other(drawn, given, lambda it: it.is_bool)
    drawn.take(name, code.format(given.name, other), of=[given, *more], exact=True)


def _where(drawn: Drawn, name: str) -> None:
    given = drawn.value(lambda it: not it.is_bool)
    other, more = _other(drawn, given, lambda it: it.dtype == given.dtype)
    try:
        condition = drawn.value(lambda it: it.is_bool and it.shape == given.shape)
        test = condition.name
    except Unsuitable:
        condition = drawn.value(lambda it: it.exact and it.shape == given.shape)
        test = f"({condition.name} > 0)"
    code = f"torch.where({test}, {given.name}, {other})"
    drawn.take(name, code, of=[condition, given, *more], exact=True)


def _masked_fill(drawn: Drawn, name: str) -> None:
    given = drawn.real(1)
    mask = drawn.weight(given.shape[-1:], "bool")
    drawn.take(name, f"{given.name}.masked_fill({mask}, -2.5)", of=[given], exact=True)


def _cast(drawn: Drawn, name: str) -> None:
    """To a type that holds the value, up to rounding; from rounded ones to real types only."""
    given = drawn.value()
    real = ("float32", "float16", "bfloat16", "float64")
    kinds = [*real, "int32", "int64", "bool", "uint8"] if given.exact else [*real]
    if given.rare:  # of NaN as an integer nothing is said
        kinds = [each for each in kinds if "int" not in each]
    wanted = drawn.among(kinds)
    if wanted == "uint8":  # of negative numbers nothing is said
        code = f"({given.name}.to(torch.int32) & 63).to(torch.uint8)"
        drawn.take(name, code, of=[given], exact=True)
        return
    exact = given.exact and wanted not in real[1:3]
    drawn.take(name, f"{given.name}.to(torch.{wanted})", of=[given], exact=exact)


def _integer_only(drawn: Drawn, name: str, code: str) -> None:
    given = drawn.value(lambda it: it.is_integer)
    drawn.take(name, code.format(given.name), of=[given], exact=True)


def _all_of(maker: Callable[..., None], codes: dict[str, str], **more: Any) -> dict[str, Any]:
    return {name: partial(maker, code=code, **more) for name, code in codes.items()}


MAKERS: dict[str, Any] = {
    **_all_of(_unary, _EXACT, exact=True, jumps=False),
    **_all_of(_unary, _ROUNDED, exact=False, jumps=False),
    **_all_of(_unary, _JUMPS, exact=True, jumps=True),
    **_all_of(
        _arithmetic,
        {
            "add": "{} + {}",
            "sub": "{} - {}",
            "mul": "{} * {}",
            "rsub": "{1} - {0}",
            "add a multiple": "torch.add({}, {}, alpha={alpha})",
            "sub a multiple": "torch.sub({}, {}, alpha={alpha})",
            "rsub a multiple": "torch.rsub({}, {}, alpha={alpha})",
            "maximum": "torch.maximum({}, {})",
            "minimum": "torch.minimum({}, {})",
        },
    ),
    **_all_of(
        _comparison,
        {
            "gt": "{} > {}",
            "lt": "{} < {}",
            "ge": "{} >= {}",
            "le": "{} <= {}",
            "eq": "{} == {}",
            "ne": "{} != {}",
        },
    ),
    **_all_of(
        _logic,
        {
            "logical_and": "torch.logical_and({}, {})",
            "logical_or": "{} | {}",
            "logical_xor": "{} ^ {}",
            "logical_not": "~{}",
        },
    ),
    **_all_of(
        _integer_only,
        {
            "bitwise_and": "{} & 5",
            "bitwise_or": "{} | 3",
            "floor_divide": "{} // 3",
            "divide to the floor by a negative": "torch.div({}, -2, rounding_mode='floor')",
            "divide toward zero": "torch.div({}, 3, rounding_mode='trunc')",
            "remainder": "{} % 5",
            "remainder of a negative": "torch.remainder({}, -3)",
            "fmod": "torch.fmod({}, 3)",
            "shift": "{} >> 1",
        },
    ),
    "div": _division,
    "where": _where,
    "masked_fill": _masked_fill,
    "cast": _cast,
}
