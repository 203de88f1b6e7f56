"""Powers on current TVM, whose own are of floating-point numbers alone."""

import math
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
    kernel = "integer_power"
    (found,) = called(importer, _KERNEL, kernel, wide, [(size,)], dtype, n=size, **names)
    return emit(relax.op.reshape(found, shape))
