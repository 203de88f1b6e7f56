"""Powers and common divisors of whole numbers on current TVM, which has none.

Its own powers are of floating-point numbers alone.
"""

import math
from collections.abc import Sequence
from typing import Any

from tvm_practice.tvm_export.importers.converters.arguments import settings_of
from tvm_practice.tvm_export.importers.converters.kernels import called

# By squaring, in unsigned numbers, which wrap around as PyTorch's products do. A whole number to a
# negative power is its reciprocal rounded to 0.
_KERNEL = """@T.prim_func(private=True, s_tir=True)
def integer_power(
    A: T.Buffer(({n},), "{dtype}"), B: T.Buffer(({n},), "{dtype}"), C: T.Buffer(({n},), "{dtype}")
):
    T.func_attr({attributes})
    r = T.sblock_alloc_buffer((3,), "{unsigned}")
    with T.sblock("integer_power"):
        T.reads(A[0:{n}], B[0:{n}])
        T.writes(C[0:{n}])
        for i in range({n}):
            r[0] = T.Cast("{unsigned}", A[i])
            r[1] = T.Cast("{unsigned}", B[i])
            r[2] = T.Cast("{unsigned}", 1)
            if B[i] < T.Cast("{dtype}", 0):
                if A[i] != T.Cast("{dtype}", 1):
                    if A[i] != T.Cast("{dtype}", {minus_one}):
                        r[2] = T.Cast("{unsigned}", 0)
                    else:
                        if r[1] % T.Cast("{unsigned}", 2) == T.Cast("{unsigned}", 1):
                            r[2] = r[0]
            else:
                while r[1] > T.Cast("{unsigned}", 0):
                    if r[1] % T.Cast("{unsigned}", 2) == T.Cast("{unsigned}", 1):
                        r[2] = r[2] * r[0]
                    r[0] = r[0] * r[0]
                    r[1] = r[1] // T.Cast("{unsigned}", 2)
            C[i] = T.Cast("{dtype}", r[2])
"""

# Euclid's, of magnitudes. TVM takes an unsigned number from 0 for 0.
_DIVISOR = """@T.prim_func(private=True, s_tir=True)
def common_divisor(
    A: T.Buffer(({n},), "{dtype}"), B: T.Buffer(({n},), "{dtype}"), C: T.Buffer(({n},), "{dtype}")
):
    T.func_attr({attributes})
    r = T.sblock_alloc_buffer((3,), "{unsigned}")
    with T.sblock("common_divisor"):
        T.reads(A[0:{n}], B[0:{n}])
        T.writes(C[0:{n}])
        for i in range({n}):
            r[0] = T.Cast("{unsigned}", A[i])
            r[1] = T.Cast("{unsigned}", B[i])
            if A[i] < T.Cast("{dtype}", 0):
                r[0] = T.Cast("{unsigned}", T.Cast("{dtype}", 0) - A[i])
            if B[i] < T.Cast("{dtype}", 0):
                r[1] = T.Cast("{unsigned}", T.Cast("{dtype}", 0) - B[i])
            while r[1] > T.Cast("{unsigned}", 0):
                r[2] = r[0] % r[1]
                r[0] = r[1]
                r[1] = r[2]
            C[i] = T.Cast("{dtype}", r[0])
"""


def common_divisor(node: Any, importer: Any) -> Any:
    """The greatest one of two tensors of whole numbers, on processors.

    Raises NotImplementedError for an open shape.
    """
    given = settings_of(node)
    operands = [importer.env[given[each]] for each in ("self", "other")]
    return _of_whole_numbers(node, importer, _DIVISOR, "common_divisor", operands)


def power(node: Any, importer: Any) -> Any:
    """Of two tensors of one type, whole numbers too; those on processors alone.

    Raises NotImplementedError for whole numbers of an open shape.
    """
    from tvm import relax

    given, emit = settings_of(node), importer.block_builder.emit
    operands = [importer.env[given[each]] for each in ("self", "exponent")]
    dtype = str(operands[0].ty.dtype)
    if "int" not in dtype:
        return emit(relax.op.power(*operands))
    return _of_whole_numbers(node, importer, _KERNEL, "integer_power", operands)


def _of_whole_numbers(
    node: Any, importer: Any, kernel: str, name: str, operands: Sequence[Any]
) -> Any:
    """A kernel of two tensors of one type, brought to one shape.

    Raises NotImplementedError for an open shape.
    """
    from tvm import relax

    emit, dtype = importer.block_builder.emit, str(operands[0].ty.dtype)
    shape = list(node.meta["val"].shape)
    if not all(isinstance(each, int) for each in shape):
        raise NotImplementedError("for an open shape")
    size = math.prod(shape)
    wide = [
        emit(relax.op.reshape(emit(relax.op.broadcast_to(each, shape)), (size,)))
        for each in operands
    ]
    is_unsigned = dtype.startswith("uint")
    names = {
        "unsigned": dtype if is_unsigned else f"u{dtype}",
        "minus_one": 1 if is_unsigned else -1,  # no number is below 0 there
    }
    (found,) = called(importer, kernel, name, wide, [(size,)], dtype, n=size, **names)
    return emit(relax.op.reshape(found, shape))
