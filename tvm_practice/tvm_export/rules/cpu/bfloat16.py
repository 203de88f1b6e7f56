"""bfloat16 taken for float32 where a function of `vector_math` is computed.

TVM does so itself, for whole functions, and has two faults where an expression names a value (Let):
what is named stays in bfloat16, and its bits are then read as an integer; and a result that is
rounded is written twice, and the vectorizer refuses a name that it meets again.
"""

from collections.abc import Callable
from typing import Any

# Bits of bfloat16 are the upper half of float32's.
_HALF = 16
_NOT_A_NUMBER = 0x7FC0


def named(value: Any, body: Callable[[Any], Any]) -> Any:
    """`body` of a variable that holds `value`, so that what is used twice is computed once."""
    from tvm import tirx

    name = tirx.Var("x", str(value.ty))
    return tirx.Let(name, value, body(name))


def in_float32(store: Any) -> Any:
    """A tirx.BufferStore whose value is computed in float32 wherever it was in bfloat16."""
    from tvm import tirx

    value = _promoted(store.value)
    if is_bfloat16(store.buffer.dtype):
        value = named(_real(value), _rounded)
    if value.same_as(store.value):
        return store
    return tirx.BufferStore(store.buffer, value, store.indices)


def is_bfloat16(dtype: Any) -> bool:
    """Whether a type, or its name, is bfloat16."""
    return str(dtype) == "bfloat16"


def _promoted(expression: Any) -> Any:
    """An expression in which nothing is bfloat16 but what is loaded from memory."""
    import tvm
    import tvm_ffi
    from tvm import tirx
    from tvm.ir.expr import TensorLoad

    pairs = (
        *(tirx.Add, tirx.Sub, tirx.Mul, tirx.Div, tirx.Min, tirx.Max),
        *(tirx.LT, tirx.LE, tirx.GT, tirx.GE, tirx.EQ, tirx.NE),
    )

    def replace(node: Any) -> Any:
        if isinstance(node, TensorLoad):
            return _loaded(node) if is_bfloat16(node.ty) else node
        if isinstance(node, tirx.FloatImm):
            return tirx.const(node.value, "float32") if is_bfloat16(node.ty) else node
        if isinstance(node, tirx.Cast):
            return _real(node.value) if is_bfloat16(node.ty) else node.value.astype(str(node.ty))
        if isinstance(node, tirx.Select):
            return tirx.Select(node.condition, node.true_value, node.false_value)
        if isinstance(node, tvm.ir.Call):
            return tirx.call_intrin("float32", node.op, *node.args) if _computes(node) else node
        return type(node)(node.a, node.b)

    kinds = (TensorLoad, tirx.FloatImm, tirx.Cast, tirx.Select, tvm.ir.Call, *pairs)
    return tvm_ffi.structural_map(expression, (kinds, replace), order="post")


def _computes(call: Any) -> bool:
    return is_bfloat16(call.ty) and not str(call.op.name).endswith("reinterpret")


def _real(value: Any) -> Any:
    return value if str(value.ty) == "float32" else value.astype("float32")


def _loaded(load: Any) -> Any:
    """What lies in memory as bfloat16, as float32."""
    from tvm import tirx

    bits = tirx.reinterpret("uint16", load).astype("uint32")
    return tirx.reinterpret("float32", bits << tirx.const(_HALF, "uint32"))


def _rounded(value: Any) -> Any:
    """A float32 as the nearest bfloat16."""
    from tvm import tirx

    return tirx.reinterpret("bfloat16", rounded_bits(value))


def rounded_bits(value: Any) -> Any:
    """The bits of a float32 rounded to the nearest bfloat16, to the even one of two equally near.

    `value` is written three times.
    """
    from tvm import tirx

    def bits(number: int) -> Any:
        return tirx.const(number, "uint32")

    own = tirx.reinterpret("uint32", value)
    even = (own >> bits(_HALF)) & bits(1)
    rounded = (own + bits((1 << (_HALF - 1)) - 1) + even) >> bits(_HALF)
    kept = tirx.Select(value == value, rounded, bits(_NOT_A_NUMBER))
    return kept.astype("uint16")
