"""Statements in bfloat16, computed in float32: with functions of `vector_math`, or rounded numbers.

TVM does so itself, for whole functions, and has two faults where an expression names a value (Let):
what is named stays in bfloat16, and its bits are then read as an integer; and a result that is
rounded is written twice, and the vectorizer refuses a name that it meets again.
"""

import math
from collections.abc import Callable
from typing import Any

from tvm_practice.tvm_export.rules.cpu.loops import loads

# Bits of bfloat16 are the upper half of float32's.
_HALF = 16
_NOT_A_NUMBER = 0x7FC0


def named(value: Any, body: Callable[[Any], Any]) -> Any:
    """`body` of a variable that holds `value`, so that what is used twice is computed once."""
    from tvm import tirx

    name = tirx.Var("x", str(value.ty))
    return tirx.Let(name, value, body(name))


def loads_what_is_given(store: Any, func: Any) -> bool:
    """Whether every bfloat16 buffer that a statement loads from is a parameter of its PrimFunc.

    The function's own such buffers TVM makes float32 later, except in a value that has a name.
    """
    own = [each for each in loads(store.value) if is_bfloat16(each.ty)]
    return all(_is_given(each.source, func) for each in own)


def in_float32(store: Any, func: Any) -> Any:
    """A tirx.BufferStore whose value is computed in float32 wherever it was in bfloat16.

    A number that is cast to bfloat16 on the way is rounded there.

    Args:
        store: a statement of `func`, which `loads_what_is_given`.
        func: a PrimFunc.
    """
    from tvm import tirx

    value = store.value
    if is_bfloat16(store.buffer.dtype):
        if isinstance(value, tirx.Cast) and is_bfloat16(value.ty):
            value = value.value
        value = _real(_promoted(value))
        if _is_given(store.buffer, func):
            value = named(value, lambda real: tirx.reinterpret("bfloat16", rounded_bits(real)))
        else:
            value = _rounded(value).astype("bfloat16")
    else:
        value = _promoted(value)
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
    real_of: dict[Any, Any] = {}

    def replace(node: Any) -> Any:
        if isinstance(node, TensorLoad):
            return _of_bits(node) if is_bfloat16(node.ty) else node
        if isinstance(node, tirx.Var):
            if not is_bfloat16(node.ty):
                return node
            return real_of.setdefault(node, tirx.Var(node.name, "float32"))
        if isinstance(node, tirx.FloatImm):
            return tirx.const(node.value, "float32") if is_bfloat16(node.ty) else node
        if isinstance(node, tirx.Cast):
            if not is_bfloat16(node.ty):
                return node.value.astype(str(node.ty))
            real = _real(node.value)
            return real if str(node.value.ty) == "bool" else _rounded(real)  # 1 and 0 are exact
        if isinstance(node, tirx.Select):
            return tirx.Select(node.condition, node.true_value, node.false_value)
        if isinstance(node, tirx.Let):
            return tirx.Let(node.var, node.value, node.body)
        if isinstance(node, tvm.ir.Call):
            if str(node.op.name).endswith("reinterpret"):
                return _reinterpreted(node)
            return (
                tirx.call_intrin("float32", node.op, *node.args) if is_bfloat16(node.ty) else node
            )
        return type(node)(node.a, node.b)

    kinds = (
        *(TensorLoad, tirx.Var, tirx.FloatImm, tirx.Cast, tirx.Select, tirx.Let, tvm.ir.Call),
        *pairs,
    )
    return tvm_ffi.structural_map(expression, (kinds, replace), order="post")


def _reinterpreted(call: Any) -> Any:
    """A reinterpretation between bfloat16 and its bits, whose operand is float32 by now if any."""
    from tvm import tirx

    [given] = call.args
    if is_bfloat16(call.ty):
        return _of_bits(given)
    if str(given.ty) == "float32" and str(call.ty) in ("int16", "uint16"):
        return tirx.reinterpret(str(call.ty), named(given, rounded_bits))
    return call


def _real(value: Any) -> Any:
    return value if str(value.ty) == "float32" else value.astype("float32")


def _is_given(buffer: Any, func: Any) -> bool:
    return any(buffer.same_as(each) for each in func.params)


def _of_bits(bits: Any) -> Any:
    """A bfloat16, or its 16 bits of any type, as float32."""
    from tvm import tirx

    whole = tirx.reinterpret("uint16", bits).astype("uint32")
    return tirx.reinterpret("float32", whole << tirx.const(_HALF, "uint32"))


def _rounded(value: Any) -> Any:
    """A float32 as the nearest bfloat16, in float32."""
    return named(value, lambda real: _of_bits(rounded_bits(real)))


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
    is_known = value >= tirx.const(-math.inf, "float32")  # TVM takes `value == value` for true
    kept = tirx.Select(is_known, rounded, bits(_NOT_A_NUMBER))
    return kept.astype("uint16")
