"""exp, log, erf, tanh and sigmoid in float32 as polynomials that vectorize.

LLVM leaves these functions to the C library, one element a call. Here they become arithmetic, a
vector register at a time. Against float64 they are right to a few units in the last place (the
tests hold them to it); NaN stays NaN, exp overflows to infinity, and results of exp below the
smallest normal number become 0. log takes those numbers as they are.
"""

import functools
import math
import struct
from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.rules.cpu.bfloat16 import (
    in_float32,
    is_bfloat16,
    loads_what_is_given,
    named,
)
from tvm_practice.tvm_export.rules.cpu.loops import loads, variables

FUNCTIONS = ("exp", "log", "erf", "tanh", "sigmoid")

# TVM takes no vectors through these: a store of one is computed an element at a time, by the C
# library. Where it names values as well, TVM may fail ("Let cannot bind the same var to two
# different values"), as with gelu(atan(atan(x))).
_BY_ELEMENT = {
    *("acos", "asin", "atan", "atan2", "copysign"),
    *("fmod", "hypot", "ldexp", "log1p", "nextafter"),
}
# The same of these, but it fails only where they are of a value that the vector shares.
_BY_ELEMENT_IF_SHARED = {
    *("acosh", "asinh", "atanh", "isfinite", "isinf", "isnan", "nearbyint", "round"),
}

# Below the former bound exp is 0, above the latter infinity. At the former n is -127: 2^n is 0.
_EXP_LOW, _EXP_HIGH = -88.0, 88.8
_MANTISSA_BITS, _EXPONENT_BIAS = 23, 127
# The smallest normal float32.
_NORMAL = 2.0**-126
# Below these magnitudes erf and tanh are x times a polynomial of x², above by way of exp.
_ERF_SMALL, _TANH_SMALL = 1.0, 0.625
# erf is 1 to float32 beyond this.
_ERF_ONE = 4.0
# A float32 of this size has units as its last bit: what is added to it is rounded to them, and the
# sum's bits are its own and as many more.
_UNITS = 1.5 * 2.0**23


def vectorizable_math(func: Any) -> Any:
    """`func` with its float32 exp, log, erf, tanh, sigmoid and small powers as arithmetic.

    Where a store has to be computed an element at a time anyway, it stays as it is.
    """
    import tvm
    import tvm_ffi

    expand = dict(zip(FUNCTIONS, (_exp, _log, _erf, _tanh, _sigmoid), strict=True))

    def replace(call: Any) -> Any:
        name = called(call)
        if str(call.ty) != "float32":
            return call
        if name in expand:
            return named(call.args[0], expand[name])
        if name == "rsqrt":  # which LLVM makes of it, too; TVM takes no vectors through its own
            return tvm.tirx.const(1.0, "float32") / tvm.tirx.sqrt(call.args[0])
        if name == "pow" and (power := _small_power(call.args[1])):
            return named(call.args[0], lambda x: functools.reduce(lambda a, b: a * b, [x] * power))
        return call

    def expanded(store: Any) -> Any:
        store = tvm_ffi.structural_map(store, (tvm.tirx.Cast, _rounded_to_a_byte), order="post")
        if _is_by_element(store):
            return store
        if _mentions_bfloat16(store):
            if not _is_expandable(store, func):
                return store
            store = in_float32(store, func)
        return tvm_ffi.structural_map(store, (tvm.ir.Call, replace), order="post")

    return func.with_body(tvm_ffi.structural_map(func.body, (tvm.tirx.BufferStore, expanded)))


def _rounded_to_a_byte(cast: Any) -> Any:
    """A cast of max(min(round(x) + zero, high), low) to a byte, without the rounding.

    The bounds are moved to x, and what is left is rounded where it is added to `_UNITS`, whose sum
    has the byte as its last.
    """
    from tvm import tirx

    inside = cast.value
    if isinstance(inside, tirx.Cast) and str(inside.ty) == "int32":
        inside = inside.value
    if str(cast.ty) not in ("int8", "uint8") or str(inside.ty) != "float32":
        return cast
    limited, low = _with_constant(inside, tirx.Max)
    limited, high = _with_constant(limited, tirx.Min)
    added, zero = _with_constant(limited, tirx.Add)
    rounded = limited if zero is None else added
    if low is None or high is None or called(rounded) != "nearbyint":
        return cast
    shift = zero or 0.0
    if not all(each.is_integer() and abs(each) < 1 << 20 for each in (low, high, shift)):
        return cast
    x = tirx.max(tirx.min(rounded.args[0], _float(high - shift)), _float(low - shift))
    bits = tirx.reinterpret("int32", x + _float(_UNITS))
    return tirx.Cast(str(cast.ty), bits + int(shift) if shift else bits)


def _with_constant(value: Any, kind: Any) -> tuple[Any, float | None]:
    """The other operand of an operation with a constant, and that; else the value and None."""
    from tvm import tirx

    for one, other in ((value.a, value.b), (value.b, value.a)) if isinstance(value, kind) else ():
        if isinstance(other, tirx.FloatImm):
            return one, float(other.value)
    return value, None


def _is_by_element(store: Any) -> bool:
    """Whether a function in what is stored keeps TVM from making vectors of it."""
    import tvm
    import tvm_ffi

    calls: list[Any] = []
    tvm_ffi.structural_walk(store.value, (tvm.ir.Call, calls.append))
    axes = {axis for index in store.indices for axis in variables(index)}
    return any(
        called(call) in _BY_ELEMENT
        or (called(call) in _BY_ELEMENT_IF_SHARED and not axes <= variables(call))
        for call in calls
    )


def _mentions_bfloat16(store: Any) -> bool:
    """Whether a value of that type is loaded, stored, or made on the way."""
    import tvm_ffi
    from tvm import tirx

    types = [store.buffer.dtype, *(each.ty for each in loads(store.value))]
    tvm_ffi.structural_walk(store.value, (tirx.Cast, lambda cast: types.append(cast.ty)))
    return any(map(is_bfloat16, types))


def _is_expandable(store: Any, func: Any) -> bool:
    """Whether a store that mentions bfloat16 calls a function in float32, and may name values."""
    import tvm
    import tvm_ffi

    found: list[Any] = []

    def look(call: Any) -> None:
        if str(call.ty) == "float32" and called(call) in (*FUNCTIONS, "pow"):
            found.append(call)

    tvm_ffi.structural_walk(store.value, (tvm.ir.Call, look))
    return bool(found) and loads_what_is_given(store, func)


def called(call: Any) -> str:
    """The function that an expression calls, without its dialect: "exp", "if_then_else"; or ""."""
    return str(getattr(getattr(call, "op", None), "name", "")).rpartition(".")[2]


def _small_power(exponent: Any) -> int:
    value = getattr(exponent, "value", None)
    return int(value) if value in (2.0, 3.0, 4.0) else 0


def _named_bits(bits: Any, body: Callable[[Any], Any]) -> Any:
    """`named` for 32 bits that are an integer, whose name is a float32's.

    TVM bounds an integer's name with and without its value where the whole becomes an integer,
    and fails because the bounds differ.
    """
    from tvm import tirx

    own = tirx.reinterpret("float32", bits)
    return named(own, lambda x: body(tirx.reinterpret("int32", x)))


def _float(value: float) -> Any:
    from tvm import tirx

    return tirx.const(value, "float32")


def _horner(coefficients: tuple[float, ...], x: Any) -> Any:
    total = _float(coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        total = total * x + _float(coefficient)
    return total


@functools.cache
def _coefficients(name: str) -> tuple[float, ...]:
    """Coefficients, constant first, of the Chebyshev interpolant of one of the functions below."""
    import numpy as np
    from numpy.polynomial import Chebyshev, Polynomial
    from scipy import special

    half = math.log(2) / 2
    fits: dict[str, tuple[Any, float, float, int]] = {
        "exp": (np.exp, -half, half, 6),
        "log": (lambda f: np.log1p(f) / f, math.sqrt(0.5) - 1, math.sqrt(2) - 1, 9),
        "erf": (lambda t: special.erf(np.sqrt(t)) / np.sqrt(t), 0.0, _ERF_SMALL**2, 6),
        # erfc(x) exp(x²) over t = 2 / (2 + x)
        "erfc": (lambda t: special.erfcx(2 / t - 2), 2 / (2 + _ERF_ONE), 2 / (2 + _ERF_SMALL), 5),
        "tanh": (lambda t: np.tanh(np.sqrt(t)) / np.sqrt(t), 0.0, _TANH_SMALL**2, 5),
    }
    function, low, high, degree = fits[name]
    series = Chebyshev.interpolate(function, degree, domain=[low, high])
    return tuple(float(each) for each in series.convert(kind=Polynomial).coef)


def _exp(x: Any) -> Any:
    """2^n times a polynomial of what is left, n being x / ln 2 rounded."""
    from tvm import tirx

    def of(x: Any, n: Any) -> Any:
        def scaled(value: Any) -> Any:
            # 2^128 in two factors: a float32's exponent reaches 127. What is too large overflows.
            largest = value * _float(2.0**127) * _float(2.0)
            return tirx.Select(n > _float(127.0), largest, value * _two_to(n))

        return named(_exp_left(x, n), scaled)

    def from_low(x: Any) -> Any:
        return named(_twos(tirx.min(x, _float(_EXP_HIGH))), lambda n: of(x, n))

    return named(tirx.Select(x < _float(_EXP_LOW), _float(_EXP_LOW), x), from_low)  # NaN stays


def _exp_bounded(x: Any) -> Any:
    """As `_exp`, of an x that is known to be a number between -88 and 88."""
    return named(_twos(x), lambda n: _exp_left(x, n) * _two_to(n))


def _twos(x: Any) -> Any:
    """x / ln 2, rounded."""
    from tvm import tirx

    return tirx.floor(x * _float(1 / math.log(2)) + _float(0.5))


def _exp_left(x: Any, n: Any) -> Any:
    """e^(x - n ln 2)."""
    high = math.floor(math.log(2) * 512) / 512  # few bits, so that n * high is exact
    rest = x - n * _float(high) - n * _float(math.log(2) - high)
    return named(rest, lambda r: _horner(_coefficients("exp"), r))


def _two_to(n: Any) -> Any:
    """2^n for whole n from -126 to 127, 0 for -127."""
    from tvm import tirx

    return tirx.reinterpret("float32", (n.astype("int32") + _EXPONENT_BIAS) << _MANTISSA_BITS)


def _log(x: Any) -> Any:
    """The exponent times ln 2, and a polynomial of the mantissa, taken between √½ and √2."""
    from tvm import tirx

    half = struct.unpack("i", struct.pack("f", math.sqrt(0.5)))[0]
    # The exponent stays where a float32 has it: as an integer it is this many times itself.
    unit = 1 << _MANTISSA_BITS

    def of(bits: Any) -> Any:
        return _named_bits((bits - half) & -unit, lambda n: parts(bits, n))

    def parts(bits: Any, n: Any) -> Any:
        rest = tirx.reinterpret("float32", bits - n) - _float(1.0)
        return named(rest, lambda f: joined(f, n.astype("float32")))

    def joined(rest: Any, exponent: Any) -> Any:
        # One factor: ln 2 happens to lie within a twentieth of a unit of its float32.
        return rest * _horner(_coefficients("log"), rest) + exponent * _float(math.log(2) / unit)

    bits = tirx.reinterpret("int32", x)
    # Below the smallest normal number a float32 is its bits times 2^-149, with no exponent.
    counted = tirx.reinterpret("int32", bits.astype("float32"))
    small = counted - (_EXPONENT_BIAS - 1 + _MANTISSA_BITS) * unit
    value = _named_bits(tirx.Select(x < _float(_NORMAL), small, bits), of)
    value = tirx.Select(x < tirx.infinity("float32"), value, x)  # infinity and NaN stay
    least = tirx.Select(x < _float(0.0), _float(math.nan), _float(-math.inf))
    return tirx.Select(x <= _float(0.0), least, value)


def _erf(x: Any) -> Any:
    from tvm import tirx

    def of(size: Any) -> Any:
        square = size * size
        small = size * named(square, lambda t: _horner(_coefficients("erf"), t))
        t = _float(2.0) / (_float(2.0) + size)
        scaled = named(t, lambda t: _horner(_coefficients("erfc"), t))
        # The tail is not used beyond the bound. Where x is NaN so is t, and with it the tail.
        bounded = tirx.max(-square, _float(-(_ERF_ONE**2)))
        tail = scaled * named(bounded, _exp_bounded)
        large = tirx.Select(size > _float(_ERF_ONE), _float(1.0), _float(1.0) - tail)
        return _with_sign(x, tirx.Select(size < _float(_ERF_SMALL), small, large))

    return named(tirx.abs(x), of)


def _tanh(x: Any) -> Any:
    from tvm import tirx

    def of(size: Any) -> Any:
        small = size * named(size * size, lambda t: _horner(_coefficients("tanh"), t))
        large = _float(1.0) - _float(2.0) / (named(size * _float(2.0), _exp) + _float(1.0))
        return _with_sign(x, tirx.Select(size < _float(_TANH_SMALL), small, large))

    return named(tirx.abs(x), of)


def _sigmoid(x: Any) -> Any:
    return _float(1.0) / (_float(1.0) + named(_float(0.0) - x, _exp))


def _with_sign(x: Any, size: Any) -> Any:
    from tvm import tirx

    return named(size, lambda y: tirx.Select(x < _float(0.0), _float(0.0) - y, y))
