"""Functions that TVM lacks, from those that it has."""

import functools
import math
from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.importers.decompositions.precise import in_floats

Rule = Callable[..., Any]

_PAIRS = (
    "zeta",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    *(f"{shift}chebyshev_polynomial_{kind}" for shift in ("", "shifted_") for kind in "tuvw"),
)

# What is converted to calls of the C library, of float32 and float64.
_OF_THE_C_LIBRARY = ("lgamma", *(f"special_bessel_{name}" for name in ("j0", "j1", "y0", "y1")))

# Bernoulli numbers B2, B4, …
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)


def rules() -> dict[Any, Rule]:
    """The rules by operator."""
    import torch

    aten = torch.ops.aten
    found: dict[Any, Rule] = {
        aten.signbit.default: _signbit,
        aten.copysign.Tensor: _copysign,
        aten.copysign.Scalar: _copysign,
        aten.fmax.default: functools.partial(_ignoring_nan, torch.maximum),
        aten.fmin.default: functools.partial(_ignoring_nan, torch.minimum),
        aten.polygamma.default: _polygamma,
    }
    for name in (*(f"special_{each}" for each in _PAIRS), "igamma", "igammac"):
        operator = getattr(aten, name).default
        found[operator] = functools.partial(_as_floats, operator)
    for name in _OF_THE_C_LIBRARY:
        operator = getattr(aten, name).default
        found[operator] = functools.partial(_in_its_floats, operator)
    return found | formulas()


def formulas() -> dict[Any, Rule]:
    """The rules that compute a function of one number by a series or a formula, by operator."""
    import torch

    return {
        getattr(torch.ops.aten, name).default: functools.partial(in_floats, rule)
        for name, rule in _UNARY.items()
    }


def _in_its_floats(operator: Any, x: Any) -> Any:
    import torch

    if x.dtype in (torch.float32, torch.float64):
        return NotImplemented
    return in_floats(operator, x)


def _as_floats(operator: Any, x: Any, y: Any) -> Any:
    """A function of two tensors, of the type that PyTorch computes it in."""
    import torch

    dtype = torch.result_type(x, y)
    dtype = dtype if dtype.is_floating_point else torch.get_default_dtype()
    if x.dtype == y.dtype == dtype and dtype in (torch.float32, torch.float64):
        return NotImplemented
    wide = torch.float64 if dtype == torch.float64 else torch.float32
    return operator(x.to(wide), y.to(wide)).to(dtype)


def _signbit(x: Any) -> Any:
    if not x.is_floating_point():
        return x < 0
    return (x < 0) | ((x == 0) & (1 / x < 0))


def _copysign(x: Any, y: Any) -> Any:
    import torch

    if not isinstance(y, torch.Tensor):
        y = torch.scalar_tensor(y, dtype=torch.get_default_dtype(), device=x.device)
    dtype = torch.result_type(x, y)
    size = torch.abs(x.to(dtype if dtype.is_floating_point else torch.get_default_dtype()))
    return torch.where(torch.signbit(y), -size, size)


def _ignoring_nan(operator: Any, x: Any, y: Any) -> Any:
    import torch

    return torch.where(torch.isnan(x), y, torch.where(torch.isnan(y), x, operator(x, y)))


def _digamma(x: Any) -> Any:
    """The reflection below 0, eight steps up, and the asymptotic series."""
    import torch

    negative = x < 0
    y = torch.where(negative, 1 - x, x)
    steps = sum((1 / (y + n) for n in range(1, 8)), 1 / y)
    high = y + 8
    inverse = 1 / (high * high)
    series: Any = 0.0
    for n in reversed(range(len(_BERNOULLI))):
        series = (series + _BERNOULLI[n] / (2 * (n + 1))) * inverse
    value = torch.log(high) - 0.5 / high - series - steps
    turn = math.pi * (x - torch.round(x))  # small near a pole, where it matters
    reflected = value - math.pi / torch.tan(turn)
    whole = negative & (x == torch.trunc(x))
    found = torch.where(whole, math.nan, torch.where(negative, reflected, value))
    return torch.where(x == 0, torch.where(_signbit(x), math.inf, -math.inf), found)


def _trigamma(x: Any) -> Any:
    """As `_digamma`, differentiated."""
    import torch

    negative = x < 0.5
    y = torch.where(negative, 1 - x, x)
    steps = sum((1 / ((y + n) * (y + n)) for n in range(1, 8)), 1 / (y * y))
    high = y + 8
    inverse = 1 / (high * high)
    series: Any = 0.0
    for number in reversed(_BERNOULLI):
        series = (series + number) * inverse
    value = steps + 1 / high + 0.5 * inverse + series / high
    sine = torch.sin(math.pi * x)  # as in PyTorch, which is finite at the poles but 0
    return torch.where(negative, (math.pi * math.pi) / (sine * sine) - value, value)


def _polygamma(n: int, x: Any) -> Any:
    import torch

    if n > 1:  # by Hurwitz' zeta function
        sign = 1 if n % 2 else -1
        order = functools.partial(torch.full_like, fill_value=n + 1.0)
        return in_floats(lambda y: torch.special.zeta(order(y), y) * (sign * math.factorial(n)), x)
    return in_floats(_trigamma if n else _digamma, x)


def _erfinv(y: Any) -> Any:
    """Giles' approximation, and two steps of Newton's method."""
    import torch

    w = -torch.log((1 - y) * (1 + y))
    near = w < 5
    a = torch.where(near, w - 2.5, torch.sqrt(torch.where(near, 9, w)) - 3)
    central = (
        2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
        -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
    )  # fmt: skip
    tail = (
        -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
        -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
    )  # fmt: skip
    p = torch.zeros_like(y)
    for one, other in zip(central, tail, strict=True):
        p = p * a + torch.where(near, one, other)
    x = p * y
    for _ in range(2):
        x = x - (torch.erf(x) - y) * (math.sqrt(math.pi) / 2) * torch.exp(x * x)
    edge = torch.where(y > 0, math.inf, -math.inf)
    return torch.where(torch.abs(y) < 1, x, torch.where(torch.abs(y) == 1, edge, math.nan))


def _ndtri(p: Any) -> Any:
    return math.sqrt(2) * _erfinv(2 * p - 1)


def _erfcx(x: Any) -> Any:
    """exp(x²) erfc(x): a Chebyshev fit in 1 / (2 + x) for positive x, reflected otherwise."""
    import torch

    size = torch.abs(x)
    found = _fitted("erfcx", 2 / (2 + size))
    return torch.where(x < 0, 2 * torch.exp(x * x) - found, found)


def _log_ndtr(x: Any) -> Any:
    import torch

    t = x * math.sqrt(0.5)
    low = torch.log(_erfcx(-t) * 0.5) - t * t
    high = torch.log1p(-0.5 * torch.special.erfc(torch.where(x < 1, 1, t)))
    return torch.where(x < 1, low, high)


def _far(t: Any) -> Any:
    return 2 * t ** (-2 / 3)


def _roots(t: Any) -> Any:
    return math.sqrt(math.pi) * _far(t) ** 0.25


def _phases(t: Any) -> tuple[Any, Any]:
    """The factors of sine and cosine in Airy's function, x = -(2 / t^(2/3))."""
    import numpy as np
    from scipy import special

    x = _far(t)
    ai, _, bi, _ = special.airy(-x)
    angle = 2 / 3 * x**1.5 + math.pi / 4
    sine, cosine = np.sin(angle), np.cos(angle)
    return _roots(t) * (sine * ai + cosine * bi), _roots(t) * (sine * bi - cosine * ai)


@functools.cache
def _coefficients(name: str) -> tuple[tuple[float, ...], float, float]:
    """Coefficients of the Chebyshev interpolant of one of the functions below, and its domain."""
    import numpy as np
    from numpy.polynomial import Chebyshev
    from scipy import special

    fits: dict[str, tuple[Any, float, float, int]] = {
        # over 2 / (2 + x) for x from 0 to infinity
        "erfcx": (lambda t: special.erfcx(2 / np.maximum(t, 1e-12) - 2) / t, 1e-9, 1.0, 24),
        "i0": (special.i0e, 0.0, 8.0, 24),
        "i1": (lambda x: special.i1e(x) / np.maximum(x, 1e-12), 1e-9, 8.0, 24),
        # times the root of x, over 8 / x
        "i0 far": (lambda t: special.i0e(8 / t) * np.sqrt(8 / t), 1e-9, 1.0, 16),
        "i1 far": (lambda t: special.i1e(8 / t) * np.sqrt(8 / t), 1e-9, 1.0, 16),
        # less the logarithm's part, which Abramowitz and Stegun's 9.6.13 and 9.6.11 begin with
        "k0": (lambda x: special.k0(x) + np.log(x / 2) * special.i0(x), 1e-3, 2.0, 24),
        "k1": (lambda x: x * (special.k1(x) - np.log(x / 2) * special.i1(x)), 1e-3, 2.0, 24),
        # times the root of x, over 2 / x
        "k0 far": (lambda t: special.k0e(2 / t) * np.sqrt(2 / t), 1e-9, 1.0, 24),
        "k1 far": (lambda t: special.k1e(2 / t) * np.sqrt(2 / t), 1e-9, 1.0, 24),
        "airy": (lambda x: special.airy(x)[0], -2.0, 2.0, 24),
        # of the form 10.4.59, over (2 / x)^1.5; of 10.4.60, over (-2 / x)^1.5
        "airy far": (lambda t: special.airye(_far(t))[0] * _roots(t) * 2, 1e-6, 1.0, 24),
        "airy sine": (lambda t: _phases(t)[0], 1e-6, 1.0, 24),
        "airy cosine": (lambda t: _phases(t)[1], 1e-6, 1.0, 24),
    }
    function, low, high, degree = fits[name]
    series = Chebyshev.interpolate(function, degree, domain=[low, high])
    return tuple(float(each) for each in series.coef), low, high


def _fitted(name: str, x: Any) -> Any:
    """One of the functions of `_coefficients`, by Clenshaw's recurrence."""
    coefficients, low, high = _coefficients(name)
    t = (2 * x - (low + high)) / (high - low)
    one, two = 0.0 * t, 0.0 * t
    for each in coefficients[:0:-1]:
        one, two = 2 * t * one - two + each, one
    found = t * one - two + coefficients[0]
    return found * x if name == "erfcx" else found


def _bessel(order: int, scaled: bool, x: Any) -> Any:
    """The modified Bessel function I0 or I1: near by a fit, far by one of its asymptotic form."""
    import torch

    size = torch.abs(x)
    near = torch.where(size < 8, size, 8)
    value = _fitted(f"i{order}", near)
    value = value * near if order else value
    far = torch.where(size < 8, 8, size)
    value = torch.where(size < 8, value, _fitted(f"i{order} far", 8 / far) / torch.sqrt(far))
    value = value if scaled else value * torch.exp(size)
    return torch.where(x < 0, -value, value) if order else value


def _bessel_k(order: int, scaled: bool, x: Any) -> Any:
    """The modified Bessel function K0 or K1: near by a fit, far by one of its asymptotic form."""
    import torch

    near = torch.where((x > 0) & (x < 2), x, 1)
    logarithm = torch.log(near * 0.5) * _bessel(order, False, near)
    value = _fitted("k1", near) / near + logarithm if order else _fitted("k0", near) - logarithm
    far = torch.where(x < 2, 2, x)
    rest = _fitted(f"k{order} far", 2 / far) / torch.sqrt(far)
    if scaled:
        value = value * torch.exp(near)
    else:
        rest = rest * torch.exp(-far)
    found = torch.where(x < 2, value, rest)
    found = torch.where(x == 0, math.inf, found)
    return torch.where(x < 0, math.nan, torch.where(torch.isnan(x), x, found))


def _airy(x: Any) -> Any:
    """Airy's function Ai. See Abramowitz and Stegun, 10.4.59 and 10.4.60; NaN at infinity."""
    import torch

    size = torch.abs(x)
    near = torch.where(size < 2, x, 0.0)
    far = torch.where((size > 2) & torch.isfinite(x), size, 2.0)
    power = far * torch.sqrt(far)
    t, zeta = 2 * math.sqrt(2) / power, 2 / 3 * power
    factor = 1 / (math.sqrt(math.pi) * torch.sqrt(torch.sqrt(far)))
    falling = 0.5 * factor * torch.exp(-zeta) * _fitted("airy far", t)
    angle = zeta + math.pi / 4
    waves = torch.sin(angle) * _fitted("airy sine", t)
    waves = factor * (waves - torch.cos(angle) * _fitted("airy cosine", t))
    found = torch.where(size < 2, _fitted("airy", near), torch.where(x < 0, waves, falling))
    return torch.where(torch.isfinite(x), found, math.nan)


def _angle(x: Any) -> Any:
    import torch

    return torch.where(torch.isnan(x), x, torch.where(x < 0, math.pi, 0.0))


def _spherical_j0(x: Any) -> Any:
    import torch

    small = torch.abs(x) < 0.5
    y = x * x
    series = 1 - y / 6 * (1 - y / 20 * (1 - y / 42))
    safe = torch.where(small, 1, x)
    found = torch.where(small, series, torch.sin(safe) / safe)
    return torch.where(torch.isinf(x), 0.0, found)


def _exp2(x: Any) -> Any:
    import torch

    return torch.exp(x * math.log(2))


def _erfc(x: Any) -> Any:
    """Through erfcx, for the digits that 1 - erf(x) would lose."""
    import torch

    return torch.where(x < 0.5, 1 - torch.erf(x), _erfcx(torch.abs(x)) * torch.exp(-x * x))


_UNARY: dict[str, Rule] = {
    "digamma": _digamma,
    "erfinv": _erfinv,
    "erfc": _erfc,
    "exp2": _exp2,
    "i0": functools.partial(_bessel, 0, False),
    "special_i0e": functools.partial(_bessel, 0, True),
    "special_i1": functools.partial(_bessel, 1, False),
    "special_i1e": functools.partial(_bessel, 1, True),
    "special_modified_bessel_i0": functools.partial(_bessel, 0, False),
    "special_modified_bessel_i1": functools.partial(_bessel, 1, False),
    "angle": _angle,
    "special_modified_bessel_k0": functools.partial(_bessel_k, 0, False),
    "special_modified_bessel_k1": functools.partial(_bessel_k, 1, False),
    "special_scaled_modified_bessel_k0": functools.partial(_bessel_k, 0, True),
    "special_scaled_modified_bessel_k1": functools.partial(_bessel_k, 1, True),
    "special_spherical_bessel_j0": _spherical_j0,
    "special_ndtri": _ndtri,
    "special_erfcx": _erfcx,
    "special_airy_ai": _airy,
    "special_log_ndtr": _log_ndtr,
}
