"""The regularized incomplete gamma functions P and Q on current TVM, in float64.

See Abramowitz and Stegun: the series is 6.5.29, the continued fraction 6.5.31, by Lentz's method.
Of a above 10⁷, where both are long: Temme's uniform expansion, in DLMF 8.12, to its second term.
"""

import math
from typing import Any

from tvm_practice.tvm_export.importers.converters.arguments import settings_of
from tvm_practice.tvm_export.importers.converters.kernels import called, float_type

# The numbers of an element: a, x, P, Q, then a loop's own. A NaN ends each loop. The limits are
# PyTorch's, also beside a NaN.
_KERNEL = """@T.prim_func(private=True, s_tir=True)
def incomplete_gamma(
    A: T.Buffer(({n},), "{dtype}"), X: T.Buffer(({n},), "{dtype}"), Y: T.Buffer(({n},), "{dtype}")
):
    T.func_attr({attributes})
    r = T.sblock_alloc_buffer((10,), "float64")
    with T.sblock("incomplete_gamma"):
        T.reads(A[0:{n}], X[0:{n}])
        T.writes(Y[0:{n}])
        for i in range({n}):
            r[0] = T.Cast("float64", A[i])
            r[1] = T.Cast("float64", X[i])
            if r[0] > T.float64(1e7) and r[1] > T.float64(0) and r[1] < r[0] * T.float64(4):
                r[4] = (r[1] - r[0]) / r[0]
                r[5] = r[4] - T.call_pure_extern("float64", "log1p", r[4])
                r[6] = T.sqrt(T.if_then_else(r[5] > T.float64(0), r[5], T.float64(0)))
                r[6] = T.if_then_else(r[4] < T.float64(0), -r[6], r[6])
                r[7] = r[6] * T.float64({root}) / T.float64(12) - T.float64(1) / T.float64(3)
                r[7] = r[7] * T.exp(-r[0] * r[5]) / T.sqrt(r[0] * T.float64({turn}))
                r[8] = T.call_pure_extern("float64", "erfc", r[6] * T.sqrt(r[0]))
                r[3] = T.float64(0.5) * r[8] + r[7]
                r[8] = T.call_pure_extern("float64", "erfc", -r[6] * T.sqrt(r[0]))
                r[2] = T.float64(0.5) * r[8] - r[7]
            else:
                r[4] = T.call_pure_extern("float64", "lgamma", r[0])
                r[4] = T.exp(r[0] * T.log(r[1]) - r[1] - r[4])
                if r[1] < r[0] + T.float64(1):
                    r[5] = T.float64(1) / r[0]
                    r[6] = r[5]
                    r[7] = r[0]
                    while r[5] > r[6] * T.float64(1e-17):
                        r[7] = r[7] + T.float64(1)
                        r[5] = r[5] * r[1] / r[7]
                        r[6] = r[6] + r[5]
                    r[2] = r[4] * r[6]
                    r[3] = T.float64(1) - r[2]
                else:
                    r[5] = r[1] + T.float64(1) - r[0]
                    r[6] = T.float64(1e30)
                    r[7] = T.float64(1) / r[5]
                    r[3] = r[7]
                    r[8] = T.float64(0)
                    r[9] = T.float64(2)
                    while T.fabs(r[9] - T.float64(1)) > T.float64(1e-15) and r[8] < T.float64(1e5):
                        r[8] = r[8] + T.float64(1)
                        r[5] = r[5] + T.float64(2)
                        r[9] = -r[8] * (r[8] - r[0])
                        r[7] = r[9] * r[7] + r[5]
                        r[7] = T.if_then_else(r[7] == T.float64(0), T.float64(1e-30), r[7])
                        r[6] = r[5] + r[9] / r[6]
                        r[6] = T.if_then_else(r[6] == T.float64(0), T.float64(1e-30), r[6])
                        r[7] = T.float64(1) / r[7]
                        r[9] = r[7] * r[6]
                        r[3] = r[3] * r[9]
                    r[3] = r[3] * r[4]
                    r[2] = T.float64(1) - r[3]
            r[4] = r[{place}]
            if r[1] == T.float64({infinity}):
                r[4] = T.float64({full})
            if r[0] == T.float64({infinity}):
                r[4] = T.float64({none})
            if r[0] == T.float64({infinity}) and r[1] == T.float64({infinity}):
                r[4] = T.float64({nan})
            if r[1] == T.float64(0):
                r[4] = T.float64({none})
            if r[0] == T.float64(0):
                r[4] = T.if_then_else(r[1] > T.float64(0), T.float64({full}), T.float64({nan}))
            if r[0] < T.float64(0) or r[1] < T.float64(0):
                r[4] = T.float64({nan})
            Y[i] = T.Cast("{dtype}", r[4])
"""


def incomplete_gamma(is_upper: bool, node: Any, importer: Any) -> Any:
    """P(a, x) or, upper, Q(a, x), element by element.

    Raises NotImplementedError for shapes that are open, and types other than float32 and float64.
    """
    from tvm import relax

    given, emit = settings_of(node), importer.block_builder.emit
    shape = list(node.meta["val"].shape)
    if not all(isinstance(each, int) for each in shape):
        raise NotImplementedError("for an open shape")
    dtype, size = float_type(importer, given["self"]), math.prod(shape)
    wide = [
        emit(relax.op.reshape(relax.op.broadcast_to(importer.env[given[name]], shape), (size,)))
        for name in ("self", "other")
    ]
    numbers = {"root": math.sqrt(2), "turn": 2 * math.pi, "infinity": "'inf'", "nan": "'nan'"}
    limits = {"place": 3, "full": 0, "none": 1} if is_upper else {"place": 2, "full": 1, "none": 0}
    (found,) = called(
        importer, _KERNEL, "incomplete_gamma", wide, [(size,)], dtype, n=size, **numbers, **limits
    )
    return emit(relax.op.reshape(found, shape))
