"""Converters for classic TVM of operators whose result's type depends on their operands'.

TVM's own drop an argument (the type to cast to, the rounding of a quotient, decimals), compute in
another type than PyTorch, or round halves away from zero.
"""

from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.converters.relay import computed_before
from tvm_practice.tvm_export.importers.refusals import Refused

Converter = Callable[[Sequence[Any], Sequence[str]], Any]


def converters() -> dict[str, Converter]:
    """By operator's name, for `import_relay`."""
    bits = {
        name: _of_bits(each)
        for each in ("and", "or", "xor")
        for name in (f"aten::bitwise_{each}", f"aten::__{each}__", f"aten::__i{each}__")
    }
    return bits | {
        "aten::bitwise_not": bitwise_not,
        "aten::to": to,
        "aten::type_as": type_as,
        "aten::round": round_half_to_even,
        "aten::div": div,
        "aten::divide": div,
        "aten::true_divide": div,
        "aten::floor_divide": floor_divide,
        "aten::fmod": fmod,
        "aten::remainder": remainder,
        "aten::clamp": clamp,
        "aten::clamp_min": clamp,
        "aten::clamp_max": lambda inputs, types: clamp(
            [inputs[0], None, inputs[1]], [types[0], types[0], types[1]]
        ),
        "aten::hardtanh": clamp,
        "aten::threshold": threshold,
        "aten::sum": _over_axes("sum"),
        "aten::prod": _over_axes("prod"),
        "aten::cumsum": _running("cumsum"),
        "aten::cumprod": _running("cumprod"),
    }


def to(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::to` in each of its forms: a tensor or a number, in another type."""
    from tvm import relay

    data, wanted = inputs[0], _wanted(inputs, types)
    if wanted is None:
        return data
    if not isinstance(data, relay.Expr):
        number = float if "float" in wanted else bool if wanted == "bool" else int
        return number(data)
    return _cast(data, types[0], wanted)


def _wanted(inputs: Sequence[Any], types: Sequence[str]) -> str | None:
    """The type that `aten::to` asks for; None for the one there is."""
    from tvm import relay

    if isinstance(inputs[1], relay.Expr):  # to(tensor, other, …)
        return types[1]
    # to(tensor, dtype, layout, device, …), to(tensor, device, dtype, …), to(tensor, dtype, …)
    places = {8: (1,), 6: (2,)}.get(len(inputs), (1, 2))
    found = [inputs[place] for place in places if type(inputs[place]) is int]
    return _named(found[0]) if found else None


def _named(number: int) -> str:
    """TVM's name of a type that PyTorch numbers. Raises NotImplementedError for one TVM lacks."""
    from tvm.relay.frontend.pytorch import _convert_dtype_value

    name: str = _convert_dtype_value(number)
    return name


def _cast(data: Any, dtype: str, wanted: str) -> Any:
    """A tensor of one type in another; each number but 0 is true."""
    from tvm import relay

    if dtype == wanted:
        return data
    if wanted == "bool":
        return relay.not_equal(data, relay.const(0, dtype))
    return relay.cast(data, wanted)


def type_as(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::type_as(input, other)`."""
    return _cast(inputs[0], types[0], types[1])


def round_half_to_even(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::round(input, decimals)`, with the halves that Relay's rounds away from zero."""
    from tvm import relay

    data, dtype = inputs[0], types[0]
    decimals = inputs[1] if len(inputs) > 1 else 0
    if "float" not in dtype:
        return data
    power = relay.const(10.0 ** abs(decimals), dtype)
    if decimals:
        data = data * power if decimals > 0 else data / power
    data = computed_before(data)
    half = relay.const(0.5, dtype)
    is_half = relay.equal(relay.abs(data - relay.trunc(data)), half)
    even = relay.round(data * half) * relay.const(2.0, dtype)
    data = relay.where(is_half, even, relay.round(data))
    if decimals:
        data = data / power if decimals > 0 else data * power
    return data


def promoted(inputs: Sequence[Any], types: Sequence[str]) -> tuple[Any, Any, str]:
    """Two operands, tensors or numbers, in the type that PyTorch computes in; and that type."""
    from tvm import relay
    from tvm.relay.frontend.pytorch import _pytorch_result_type

    pairs = list(zip(inputs, types, strict=False))[:2]
    tensors = [dtype for value, dtype in pairs if isinstance(value, relay.Expr)]
    numbers = [value for value, _ in pairs if not isinstance(value, relay.Expr)]
    common: str = _pytorch_result_type(tensors, numbers)
    one, other = (
        _cast(value, dtype, common) if isinstance(value, relay.Expr) else relay.const(value, common)
        for value, dtype in pairs
    )
    return one, other, common


def div(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::div(input, other, rounding_mode)`; of integers the quotient is a real number."""
    from tvm import relay

    rounding = inputs[2] if len(inputs) > 2 else None
    if rounding == "floor":
        return floor_divide(inputs, types)
    one, other, dtype = promoted(inputs, types)
    if rounding == "trunc":
        return relay.trunc_divide(one, other)
    real = dtype if "float" in dtype else "float32"
    return _cast(one, dtype, real) / _cast(other, dtype, real)


def floor_divide(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::floor_divide(input, other)`."""
    from tvm import relay

    one, other, dtype = promoted(inputs, types)
    if "float" not in dtype:
        one = computed_before(one)
        down = _is_beyond_zero(relay.trunc_mod(one, other), other, dtype)
        return relay.trunc_divide(one, other) - relay.cast(down, dtype)
    one, other = _precisely("floor_divide", one, other, dtype)
    return relay.cast(relay.floor(one / other), dtype)


def fmod(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::fmod(input, other)`: the remainder has the input's sign."""
    from tvm import relay

    one, other, dtype = promoted(inputs, types)
    if "float" not in dtype:
        return relay.trunc_mod(one, other)
    return relay.cast(_left_over(*_precisely("fmod", one, other, dtype)), dtype)


def remainder(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::remainder(input, other)`: the remainder has the divisor's sign."""
    from tvm import relay

    one, other, dtype = promoted(inputs, types)
    if "float" not in dtype:
        left = computed_before(relay.trunc_mod(one, other))
        return relay.where(_is_beyond_zero(left, other, dtype), left + other, left)
    one, other = _precisely("remainder", one, other, dtype)
    left = _left_over(one, other)
    crosses = _is_beyond_zero(left, other, "float64")
    return relay.cast(relay.where(crosses, left + other, left), dtype)


def _is_beyond_zero(left: Any, other: Any, dtype: str) -> Any:
    """Where what a truncated division leaves has another sign than the divisor.

    A floored quotient is one less there. TVM's own floored division adds a number to a sum of
    int32, which then overflows.
    """
    from tvm import relay

    zero = relay.const(0, dtype)
    signs_differ = relay.not_equal(relay.less(left, zero), relay.less(other, zero))
    return relay.logical_and(relay.not_equal(left, zero), signs_differ)


def _precisely(operator: str, one: Any, other: Any, dtype: str) -> tuple[Any, Any]:
    """Operands of a division in float64, whose quotient then is on the right side of an integer.

    That holds for quotients below 2**28. Raises Refused for float64 itself.
    """
    from tvm import relay

    if dtype == "float64":
        raise Refused(f"aten::{operator} of float64, which Relay has not")
    return computed_before(relay.cast(one, "float64")), relay.cast(other, "float64")


def _left_over(one: Any, other: Any) -> Any:
    from tvm import relay

    left = one - relay.trunc(one / other) * other
    return relay.where(relay.isinf(other), one, left)


def clamp(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::clamp(input, min, max)`, of numbers or tensors; NaN stays.

    TVM's own makes the largest finite number of NaN, and of infinity where one bound is missing.
    """
    from tvm import relay

    data, dtype = inputs[0], types[0]
    for place, nearer in ((1, relay.maximum), (2, relay.minimum)):
        if len(inputs) > place and inputs[place] is not None:
            pair, kinds = (data, inputs[place]), (dtype, types[place])
            data, bound, dtype = promoted(pair, kinds)
            # The bound first: of two numbers that do not compare, the second is kept. A `where`
            # would read the data twice, and TVM takes a minute over two clamps in a row.
            data = nearer(bound, data)
    return data


def threshold(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::threshold(input, threshold, value)`; NaN stays."""
    from tvm import relay

    data = computed_before(inputs[0])
    limit, value = (relay.const(each, types[0]) for each in inputs[1:3])
    return relay.where(relay.less_equal(data, limit), value, data)


def _of_bits(name: str) -> Converter:
    """`aten::bitwise_and(input, other)` and its like: of bools the logical operator."""

    def converted(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        from tvm import relay

        one, other, dtype = promoted(inputs, types)
        kind = "logical" if dtype == "bool" else "bitwise"
        return getattr(relay, f"{kind}_{name}")(one, other)

    return converted


def bitwise_not(inputs: Sequence[Any], types: Sequence[str]) -> Any:
    """`aten::bitwise_not(input)`."""
    from tvm import relay

    return relay.logical_not(inputs[0]) if types[0] == "bool" else relay.bitwise_not(inputs[0])


def _over_axes(name: str) -> Converter:
    """`aten::sum(input, dim, keepdim, dtype)` and its like: of integers in int64."""

    def converted(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        from tvm import relay

        data, *middle, dtype = inputs
        axes, kept = middle or (None, False)
        data = _accumulated(data, types[0], dtype)
        return getattr(relay, name)(data, axis=None if axes == [] else axes, keepdims=bool(kept))

    return converted


def _running(name: str) -> Converter:
    """`aten::cumsum(input, dim, dtype)` and its like: of integers in int64."""

    def converted(inputs: Sequence[Any], types: Sequence[str]) -> Any:
        from tvm import relay

        data = _accumulated(inputs[0], types[0], inputs[2])
        return getattr(relay, name)(data, axis=inputs[1])

    return converted


def _accumulated(data: Any, dtype: str, asked: int | None) -> Any:
    """What is summed, in the type of the sum; float16 does not hold one."""
    own = "float32" if dtype == "float16" else dtype if "float" in dtype else "int64"
    return _cast(data, dtype, own if asked is None else _named(asked))
