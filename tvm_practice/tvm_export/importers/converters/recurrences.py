"""Functions whose number of steps depends on the data, on current TVM.

Orthogonal polynomials follow their three-term recurrences (Abramowitz and Stegun, Handbook of
Mathematical Functions, table 22.7); Hurwitz' zeta function is a sum and the Euler-Maclaurin formula
(Moshier, Cephes Mathematical Library, zeta.c), of as many terms as PyTorch takes.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.importers.converters.kernels import called, float_type

_HEAD = """@T.prim_func(private=True, s_tir=True)
def kernel(
    X: T.Buffer(({size},), "{dtype}"),
    N: T.Buffer(({size},), "{dtype}"),
    Y: T.Buffer(({size},), "{dtype}"),
):
    T.func_attr({attributes})
    r = T.sblock_alloc_buffer((6,), "{within}")
    with T.sblock("kernel"):
        T.reads(X[0:{size}], N[0:{size}])
        T.writes(Y[0:{size}])
        for i in range({size}):
"""

_POLYNOMIAL = (
    _HEAD
    + """            r[0] = {argument}
            r[1] = T.{dtype}(1)
            r[2] = {first}
            for k in range(T.Cast("int64", N[i]) - T.int64(1)):
                r[4] = T.Cast("{dtype}", k + T.int64(1))
                r[3] = {step}
                r[1] = r[2]
                r[2] = r[3]
            r[2] = T.if_then_else(T.Cast("int64", N[i]) == T.int64(0), T.{dtype}(1), r[2])
            r[2] = T.if_then_else(T.Cast("int64", N[i]) < T.int64(0), T.{dtype}(0), r[2])
            r[2] = T.if_then_else(T.Cast("int64", N[i]) > T.int64({most}), T.{dtype}("nan"), r[2])
            Y[i] = T.Cast("{dtype}", r[2])
"""
)

_ZETA = (
    _HEAD
    + """            r[0] = -T.Cast("float64", X[i])
            r[1] = T.Cast("float64", N[i])
            r[2] = T.pow(r[1], r[0])
            for k in range(T.max(T.int64(9), T.Cast("int64", T.floor(T.float64(10) - r[1])))):
                r[1] = r[1] + T.float64(1)
                r[3] = T.pow(r[1], r[0])
                r[2] = r[2] + r[3]
            if r[3] != T.float64(0):
                r[2] = r[2] - r[3] * r[1] / (r[0] + T.float64(1)) - T.float64(0.5) * r[3]
                r[3] = r[3] / r[1]
                r[4] = -r[0]
{terms}
            if T.Cast("float64", N[i]) <= T.float64(0):
                if -r[0] != T.floor(-r[0]):
                    r[2] = T.float64("nan")
                if T.Cast("float64", N[i]) == T.floor(T.Cast("float64", N[i])):
                    r[2] = T.float64("inf")
            if r[0] == T.float64("-inf") and r[2] == T.float64(0):
                r[2] = T.float64("nan")
            if T.Cast("float64", N[i]) == T.float64("inf"):
                r[2] = T.float64("nan")
            if r[0] == T.float64(-1):
                r[2] = T.float64("inf")
            if r[0] > T.float64(-1):
                r[2] = T.float64("nan")
            Y[i] = T.Cast("{dtype}", r[2])
"""
)
# B(2k) / (2k)!, the coefficients of the Euler-Maclaurin formula.
_BERNOULLI = (
    1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798,
    -174611 / 330, 854513 / 138, -236364091 / 2730,
)  # fmt: skip

_PLAIN, _SHIFTED = "x", "(x * T.{dtype}(2) - T.{dtype}(1))"
_TWICE = "T.{dtype}(2) * r[0] * r[2] - r[1]"
_FAR = 2**62
# The argument, the polynomial of degree 1, the next one from r[2] and r[1], and the last degree.
_POLYNOMIALS = {
    "hermite_polynomial_h": (
        _PLAIN, "T.{dtype}(2) * r[0]", "T.{dtype}(2) * (r[0] * r[2] - r[4] * r[1])", None,
    ),
    "hermite_polynomial_he": (_PLAIN, "r[0]", "r[0] * r[2] - r[4] * r[1]", None),
    "laguerre_polynomial_l": (
        _PLAIN,
        "T.{dtype}(1) - r[0]",
        "((r[4] * T.{dtype}(2) + T.{dtype}(1) - r[0]) * r[2] - r[4] * r[1])"
        " / (r[4] + T.{dtype}(1))",
        _FAR,
    ),
    "legendre_polynomial_p": (
        _PLAIN,
        "r[0]",
        "((r[4] * T.{dtype}(2) + T.{dtype}(1)) * r[0] * r[2] - r[4] * r[1])"
        " / (r[4] + T.{dtype}(1))",
        _FAR,
    ),
    **{
        f"{prefix}chebyshev_polynomial_{kind}": (argument, first, _TWICE, _FAR)
        for prefix, argument in (("", _PLAIN), ("shifted_", _SHIFTED))
        for kind, first in (
            ("t", "r[0]"),
            ("u", "T.{dtype}(2) * r[0]"),
            ("v", "T.{dtype}(2) * r[0] - T.{dtype}(1)"),
            ("w", "T.{dtype}(2) * r[0] + T.{dtype}(1)"),
        )
    },
}  # fmt: skip


def recurrences() -> dict[str, Callable[[Any, Any], Any]]:
    """Converters (node, importer) by operator's name."""
    found = {
        f"special_{name}.default": functools.partial(_polynomial, name) for name in _POLYNOMIALS
    }
    return {**found, "special_zeta.default": _zeta}


def _polynomial(name: str, node: Any, importer: Any) -> Any:
    argument, first, step, most = _POLYNOMIALS[name]
    dtype = float_type(importer, node.args[0])
    # PyTorch's own bounds of Hermite's, which grow fastest.
    most = most or {"float32": 128, "float64": 512}[dtype]
    # In the tensors' own type, so that what overflows is what overflows in PyTorch.
    given = argument.replace("x", "X[i]")
    settings = {
        "argument": given.format(dtype=dtype),
        "first": first.format(dtype=dtype),
        "step": step.format(dtype=dtype),
    }
    return _elementwise(_POLYNOMIAL, name, node, importer, within=dtype, most=most, **settings)


def _zeta(node: Any, importer: Any) -> Any:
    lines, indent = [], " " * 16
    for number, bernoulli in enumerate(_BERNOULLI):
        coefficient = bernoulli / math.factorial(2 * number + 2)
        lines.append(f"r[2] = r[2] + T.float64({coefficient!r}) * r[4] * r[3]")
        for k in (2 * number + 1, 2 * number + 2):
            lines.append(f"r[4] = r[4] * (T.float64({k}) - r[0])")
            lines.append("r[3] = r[3] / r[1]")
    terms = "\n".join(indent + each for each in lines)
    return _elementwise(_ZETA, "zeta", node, importer, within="float64", terms=terms)


def _elementwise(text: str, name: str, node: Any, importer: Any, **settings: Any) -> Any:
    """A kernel of two tensors of one type, broadcast."""
    from tvm import relax

    shape = list(node.meta["val"].shape)
    if not all(isinstance(each, int) for each in shape):
        raise NotImplementedError("of an open extent")
    dtype, emit, size = (
        float_type(importer, node.args[0]),
        importer.block_builder.emit,
        math.prod(shape),
    )
    flat = []
    for each in node.args:
        if float_type(importer, each) != dtype:
            raise NotImplementedError("of two types")
        wide = emit(relax.op.broadcast_to(importer.env[each], shape))
        flat.append(emit(relax.op.reshape(wide, (size,))))
    if not size:
        return emit(relax.op.zeros(shape, dtype))
    [found] = called(importer, text, name, flat, ((size,),), dtype, size=size, **settings)
    return emit(relax.op.reshape(found, shape))
