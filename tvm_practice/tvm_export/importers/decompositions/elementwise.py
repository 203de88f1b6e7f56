"""Elementwise operators: types promoted as PyTorch does, and functions that TVM lacks."""

import functools
import math
from collections.abc import Callable
from typing import Any

Rule = Callable[..., Any]

_DEFAULT = [
    "add.Tensor",
    "add.Scalar",
    "sub.Tensor",
    "sub.Scalar",
    "mul.Tensor",
    "mul.Scalar",
    "maximum.default",
    "minimum.default",
    "remainder.Tensor",
    "remainder.Scalar",
    "remainder.Scalar_Tensor",
    "fmod.Tensor",
    "fmod.Scalar",
    "floor_divide.default",
    "pow.Tensor_Tensor",
    "pow.Tensor_Scalar",
    "pow.Scalar",
    "where.self",
    "clamp.default",
    "clamp.Tensor",
    "bitwise_and.Tensor",
    "bitwise_or.Tensor",
    "bitwise_xor.Tensor",
    "bitwise_and.Scalar",
    "bitwise_or.Scalar",
    "bitwise_xor.Scalar",
    "bitwise_left_shift.Tensor",
    "bitwise_right_shift.Tensor",
]
_TO_FLOAT = [
    "div.Tensor",
    "div.Scalar",
    "atan2.default",
    "acos.default",
    "acosh.default",
    "asin.default",
    "asinh.default",
    "atan.default",
    "cos.default",
    "erf.default",
    "exp.default",
    "log.default",
    "log10.default",
    "log2.default",
    "reciprocal.default",
    "rsqrt.default",
    "sigmoid.default",
    "sin.default",
    "sqrt.default",
    "tan.default",
    "tanh.default",
]
# What TVM compiles for float32 and float64 alone, and logarithms that it divides by a rounded one.
_IN_FLOAT32 = {"acos", "acosh", "asin", "asinh", "atan", "atan2", "log10", "log2"}
# What TVM computes in float16 in several steps, each of which rounds; PyTorch rounds the result.
_IN_STEPS = {"rsqrt", "sigmoid", "tan", "tanh"}
_TO_BOOL = [
    f"{name}.{overload}"
    for name in ("eq", "ne", "lt", "le", "gt", "ge")
    for overload in ("Tensor", "Scalar")
]


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch
    from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KIND

    aten = torch.ops.aten
    found: dict[Any, Rule] = {}
    for names, kind in (
        (_DEFAULT, KIND.DEFAULT),
        (_TO_FLOAT, KIND.INT_TO_FLOAT),
        (_TO_BOOL, KIND.DEFAULT),
    ):
        for name in names:
            operator = operator_of(name)
            found[operator] = _promoted(operator, kind)
    return found | {
        aten.full.default: _full,
        aten.full_like.default: _full_like,
        aten.linspace.default: _linspace,
        aten.linspace.Tensor_Tensor: _linspace,
        aten.linspace.Tensor_Scalar: _linspace,
        aten.linspace.Scalar_Tensor: _linspace,
        aten.div.Tensor_mode: _divided,
        aten.div.Scalar_mode: _divided,
        **{
            getattr(getattr(aten, operator), overload): functools.partial(
                _shifted, getattr(torch, f"bitwise_{name}_shift")
            )
            for name in ("left", "right")
            for operator, overloads in (
                (f"__{name[0]}shift__", ("Scalar", "Tensor")),
                (f"bitwise_{name}_shift", ("Tensor_Scalar", "Scalar_Tensor")),
            )
            for overload in overloads
        },
        **{
            operator_of(f"bitwise_{name}.Scalar_Tensor"): _exchanged(f"bitwise_{name}")
            for name in ("and", "or", "xor")
        },
        aten.abs.default: _abs,
        aten.neg.default: _neg,
        aten.sign.default: _sign,
        aten.cat.default: _cat,
        aten.rrelu_with_noise_functional.default: _rrelu,
        aten.isnan.default: _isnan,
        aten.isinf.default: _isinf,
        aten.isfinite.default: _isfinite,
        aten.lcm.default: _common_multiple,
        aten.trunc.default: _whole(aten.trunc.default),
        aten.floor.default: _whole(aten.floor.default),
        aten.ceil.default: _whole(aten.ceil.default),
        aten.round.default: _whole(aten.round.default),
    }


def _exchanged(name: str) -> Rule:
    """An operator of a number and a tensor, by that of the tensor and the number."""

    def rule(number: Any, x: Any) -> Any:
        import torch

        return getattr(torch, name)(x, number)

    return rule


def _linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, **_: Any) -> Any:
    """Whole numbers between whole numbers: PyTorch drops the fractions of both ends first.

    Its own decomposition drops them at the end, which gives other numbers.
    """
    import torch

    if dtype is None or dtype.is_floating_point or dtype.is_complex:
        return NotImplemented
    low, high = (
        each.to(torch.int64) if isinstance(each, torch.Tensor) else int(each)
        for each in (start, end)
    )
    place = torch.arange(steps)
    step = (high - low) * torch.ones((), dtype=torch.float64) / max(steps - 1, 1)
    upwards = place < max(steps // 2, 1)  # from either end
    found = torch.where(upwards, low + step * place, high - step * (steps - 1 - place))
    return found.to(dtype)


def _full(size: Any, value: Any, *, dtype: Any = None, **settings: Any) -> Any:
    """Infinities, NaN and what is known at run time, broadcast: TVM fills with numbers only."""
    import torch

    is_number = isinstance(value, (bool, int)) or (
        isinstance(value, float) and math.isfinite(value)
    )
    if is_number:
        return NotImplemented
    usual = torch.int64 if isinstance(value, torch.SymInt) else torch.get_default_dtype()
    return torch.scalar_tensor(value, dtype=dtype or usual).expand(size)


def _full_like(x: Any, value: Any, *, dtype: Any = None, **settings: Any) -> Any:
    import torch

    return torch.ops.aten.full.default(x.shape, value, dtype=dtype or x.dtype, device=x.device)


def _shifted(shift: Any, x: Any, by: Any) -> Any:
    """`x << by` and `x >> by` of whole numbers; one of them may be a number."""
    import torch

    dtype = (x if is_tensor(x) else by).dtype
    if dtype.is_floating_point:
        return NotImplemented
    return shift(*(e if is_tensor(e) else torch.scalar_tensor(e, dtype=dtype) for e in (x, by)))


def _divided(x: Any, y: Any, *, rounding_mode: str | None) -> Any:
    """Quotients rounded, of tensors of one type: the frontend takes a number for an int32."""
    import torch

    if rounding_mode is None:
        return x / y
    dtype = torch.result_type(x, y)
    real = dtype.is_floating_point
    typed = all(is_tensor(each) and each.dtype == dtype for each in (x, y))
    if typed and rounding_mode == "floor" and not real:
        return NotImplemented
    x = x.to(dtype) if is_tensor(x) else torch.scalar_tensor(x, dtype=dtype)
    y = y.to(dtype) if is_tensor(y) else torch.scalar_tensor(y, dtype=dtype, device=x.device)
    if rounding_mode == "floor" and real:
        return _in_float32(_floor_divided, x, y)
    if rounding_mode == "floor":
        return torch.div(x, y, rounding_mode="floor")
    if dtype.is_floating_point:
        return torch.trunc(x / y)
    if dtype == torch.uint8:
        return torch.div(x, y, rounding_mode="floor")
    # The least number has no magnitude in its type: what is left is taken away, and y divides.
    return torch.div(x - torch.fmod(x, y), y, rounding_mode="floor")


def _common_multiple(x: Any, y: Any) -> Any:
    """The least one of whole numbers; 0 where one of them is 0."""
    import torch

    dtype = torch.result_type(x, y)
    x, y = x.to(dtype), y.to(dtype)
    divisor = torch.gcd(x, y)
    divisor = torch.where(divisor == 0, torch.ones_like(divisor), divisor)
    return torch.abs(torch.div(x, divisor, rounding_mode="floor") * y)


def _remainder(x: Any, y: Any) -> Any:
    """As PyTorch computes it: what is left has the divisor's sign, and x is left of an infinity."""
    import torch

    left = torch.fmod(x, y)
    return torch.where((left != 0) & ((y < 0) != (left < 0)), left + y, left)


def _negative_remainder(x: Any, y: int) -> Any:
    """Of whole numbers by a negative one, which TVM takes for positive where it is divided."""
    import torch

    left = torch.fmod(x, -y)
    return torch.where(left > 0, left + y, left)


def _floor_divided(x: Any, y: Any) -> Any:
    """As PyTorch computes it: from the remainder, so that the two fit each other."""
    import torch

    left = torch.fmod(x, y)
    down = (left != 0) & ((y < 0) != (left < 0))
    quotient = torch.where(down, (x - left) / y - 1, (x - left) / y)
    floor = torch.floor(quotient)
    floor = torch.where(quotient - floor > 0.5, floor + 1, floor)
    return torch.where(y == 0, x / y, torch.where(quotient == 0, quotient, floor))


def _in_float32(function: Callable[[Any, Any], Any], x: Any, y: Any) -> Any:
    """A function of two tensors of one type; of 16-bit numbers in float32, as PyTorch computes."""
    import torch

    if x.dtype not in (torch.float16, torch.bfloat16):
        return function(x, y)
    return function(x.to(torch.float32), y.to(torch.float32)).to(x.dtype)


def _abs(x: Any) -> Any:
    """Of bytes: TVM's own compares them with 0 as if they had signs, as in `_neg` and `_sign`."""
    import torch

    return x.clone() if x.dtype == torch.uint8 else NotImplemented


def _neg(x: Any) -> Any:
    import torch

    return torch.zeros_like(x) - x if x.dtype == torch.uint8 else NotImplemented


def _sign(x: Any) -> Any:
    import torch

    return (x > 0).to(x.dtype) if x.dtype == torch.uint8 else NotImplemented


def _cat(tensors: Any, dim: int = 0) -> Any:
    """Of tensors of several types: of their common one."""
    import torch

    common = functools.reduce(torch.promote_types, (each.dtype for each in tensors))
    if all(each.dtype == common for each in tensors):
        return NotImplemented
    return torch.ops.aten.cat.default([each.to(common) for each in tensors], dim)


def _rrelu(
    x: Any,
    noise: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> Any:
    """Without training, of the slope in the middle."""
    import torch

    if training:
        return NotImplemented
    return torch.nn.functional.leaky_relu(x, (lower + upper) / 2), noise.clone()


def _isnan(x: Any) -> Any:
    import torch

    if x.dtype == torch.bfloat16:  # TVM has no isnan of it
        return torch.isnan(x.to(torch.float32))
    if x.is_floating_point():
        return NotImplemented
    return torch.full_like(x, False, dtype=torch.bool)


def _isinf(x: Any) -> Any:
    import torch

    return _isnan(x) if not x.is_floating_point() else torch.abs(x) == math.inf


def _isfinite(x: Any) -> Any:
    import torch

    if not x.is_floating_point():
        return torch.full_like(x, True, dtype=torch.bool)
    return torch.abs(x) < math.inf


def _whole(operator: Any) -> Rule:
    """Roundings of whole numbers are those numbers."""

    def rule(x: Any) -> Any:
        return NotImplemented if x.is_floating_point() else x.clone()

    return rule


_OF_TRUTH = {
    "add": "logical_or",
    "mul": "logical_and",
    "maximum": "logical_or",
    "minimum": "logical_and",
    "ne": "logical_xor",
}
"""What arithmetic on truth values is."""


_DIVIDING = {"remainder": _remainder, "floor_divide": _floor_divided}


def _root(name: str, args: tuple[Any, ...]) -> str | None:
    """What PyTorch computes instead of a power, of which -inf and -0 are others; None: itself."""
    plain = name == "pow" and is_tensor(args[0]) and isinstance(args[1], float)
    return {0.5: "sqrt", -0.5: "rsqrt"}.get(args[1]) if plain else None


def _integer_power(dtype: Any, x: Any, exponent: Any) -> Any:
    """Of two tensors, for which there is a converter; of a tensor to a small number, TVM's."""
    import torch

    if is_tensor(x) and isinstance(exponent, int) and 0 <= exponent <= 3:
        return NotImplemented if x.dtype == dtype else torch.pow(x.to(dtype), exponent)
    one, other = (
        each.to(dtype) if is_tensor(each) else torch.scalar_tensor(each, dtype=dtype)
        for each in (x, exponent)
    )
    if is_tensor(x) and is_tensor(exponent) and x.dtype == exponent.dtype == dtype:
        return NotImplemented
    return torch.pow(one, other)


def operator_of(name: str) -> Any:
    """The operator "add.Tensor" of PyTorch."""
    import torch

    packet, _, overload = name.partition(".")
    return getattr(getattr(torch.ops.aten, packet), overload)


def _promoted(operator: Any, kind: Any) -> Rule:
    """A rule that gives an operator's tensors the type that PyTorch computes it in."""

    def rule(*args: Any, **kwargs: Any) -> Any:
        import torch
        from torch._prims_common import elementwise_dtypes

        operands = [each for each in args if is_operand(each)]
        if operator.__name__ == "where.self":
            operands = operands[1:]
        _, dtype = elementwise_dtypes(*operands, type_promotion_kind=kind)
        if any(map(_is_symbol, args)):
            is_number = is_operand if operator is torch.ops.aten.clamp.default else _is_symbol
            known = [
                torch.scalar_tensor(each, dtype=dtype)
                if is_number(each) and not is_tensor(each)
                else each
                for each in args
            ]
            return operator.overloadpacket(*known, **kwargs)
        tensors = [each for each in operands if isinstance(each, torch.Tensor)]
        name = operator.__name__.partition(".")[0]
        if operator.__name__ == "remainder.Scalar_Tensor":
            return torch.remainder(torch.scalar_tensor(args[0], dtype=dtype), args[1].to(dtype))
        if name != "pow" and (wrapped := _wrapped(args, dtype)) != args:
            return operator(*wrapped, **kwargs)
        if dtype in (torch.float32, torch.float64) and (root := _root(name, args)):
            return getattr(torch, root)(args[0].to(dtype))
        if name == "pow" and not (dtype.is_floating_point or dtype.is_complex):
            return _integer_power(dtype, *args)
        if dtype == torch.bool and name != "where":
            return _of_truth(operator, name, tensors, args)
        if name == "clamp" and _cross(*args[1:3]):
            return operator(args[0], args[2], args[2])  # the upper, where TVM takes the lower
        if name == "clamp" and not dtype.is_floating_point:
            return _clamped(*(each.to(dtype) if is_tensor(each) else each for each in args))
        if name == "clamp" and any(each.shape != args[0].shape for each in tensors):
            return _between(*(each.to(dtype) if is_tensor(each) else each for each in args))
        lacks = {
            torch.bfloat16: {"pow", *_IN_FLOAT32},
            torch.float16: {*_IN_FLOAT32, *_IN_STEPS},
        }
        alpha = kwargs.get("alpha", 1)
        if name in lacks.get(dtype, ()) or _rounds(name, args, alpha, dtype):
            real = [each.to(torch.float32) if is_tensor(each) else each for each in args]
            return operator(*real, **kwargs).to(dtype)
        kwargs.pop("alpha", None)
        narrow = dtype in (torch.float16, torch.bfloat16)
        if (name in _DIVIDING and dtype.is_floating_point) or (name == "fmod" and narrow):
            x, y = (
                each.to(dtype) if is_tensor(each) else torch.scalar_tensor(each, dtype=dtype)
                for each in args
            )
            return _in_float32(_DIVIDING.get(name, torch.fmod), x, y)
        if name == "remainder" and isinstance(args[1], int) and args[1] < 0:
            return _negative_remainder(args[0].to(dtype), args[1])
        if all(each.dtype == dtype for each in tensors) and alpha == 1:
            return NotImplemented
        cast = [
            each.to(dtype)
            if isinstance(each, torch.Tensor) and any(each is other for other in tensors)
            else each
            for each in args
        ]
        if alpha != 1:
            cast[1] = cast[1] * alpha
        return operator(*cast, **kwargs)

    return rule


def _rounds(name: str, args: tuple[Any, ...], alpha: Any, dtype: Any) -> bool:
    """Whether a sum or product of 16-bit numbers would round on the way, where PyTorch does not.

    It takes a factor of a sum, and a number that 16 bits do not hold, in float32.
    """
    import torch

    if dtype not in (torch.float16, torch.bfloat16):
        return False
    numbers = [each for each in args if isinstance(each, float) and math.isfinite(each)]
    return alpha != 1 or (
        name in ("mul", "div") and not all(_is_held(each, dtype) for each in numbers)
    )


def _is_held(number: float, dtype: Any) -> bool:
    """Whether a type of 16 bits has a number, and not only one near it."""
    import torch

    limits = torch.finfo(dtype)
    fraction, _ = math.frexp(number)  # of 0.5 to 1
    in_range = limits.smallest_normal <= abs(number) <= limits.max
    return number == 0 or (in_range and (2 * fraction / limits.eps).is_integer())


def _wrapped(args: tuple[Any, ...], dtype: Any) -> tuple[Any, ...]:
    """Arguments whose whole numbers wrap around where an integer type cannot hold them."""
    import torch

    if dtype.is_floating_point or dtype.is_complex or dtype == torch.bool:
        return args
    limits = torch.iinfo(dtype)
    return tuple(
        (each - limits.min) % (1 << limits.bits) + limits.min
        if type(each) is int and not limits.min <= each <= limits.max
        else each
        for each in args
    )


def is_operand(value: Any) -> bool:
    """Whether an argument takes part in the promotion of types."""
    import torch

    return isinstance(value, (torch.Tensor, int, float, bool, torch.SymInt, torch.SymFloat))


def _is_symbol(value: Any) -> bool:
    """Whether an argument is a number that is known at run time only."""
    import torch

    return isinstance(value, (torch.SymInt, torch.SymFloat))


def is_tensor(value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor)


def _of_truth(operator: Any, name: str, tensors: list[Any], args: tuple[Any, ...]) -> Any:
    import torch

    if name.startswith("bitwise") and all(each.dtype == torch.bool for each in tensors):
        return NotImplemented
    if all(map(is_tensor, args)) and name in _OF_TRUTH:
        return getattr(torch, _OF_TRUTH[name])(*args)
    wide = [
        each.to(torch.int8) if is_tensor(each) else each if each is None else int(each)
        for each in args
    ]
    found = operator(*wide)
    is_truth = name in _OF_TRUTH or name == "clamp"
    return found.to(torch.bool) if is_truth else found


def _cross(low: Any = None, high: Any = None) -> bool:
    """Whether bounds are numbers, the lower one above the upper."""
    return all(isinstance(each, int | float) for each in (low, high)) and low > high


def _between(x: Any, low: Any = None, high: Any = None) -> Any:
    """Real numbers between bounds, all broadcast: the frontend broadcasts the bounds alone."""
    import torch

    x = x if low is None else torch.maximum(x, low)
    return x if high is None else torch.minimum(x, high)


def _clamped(x: Any, low: Any = None, high: Any = None) -> Any:
    """Whole numbers between bounds: the frontend takes infinity for a bound that is not given."""
    import torch

    if low is not None:
        x = torch.where(x < low, low, x)
    return x if high is None else torch.where(x > high, high, x)
