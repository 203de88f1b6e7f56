"""Numbers that are cast to bfloat16 and widened again, which TVM does not round.

It computes bfloat16 in float32 and rounds what is stored. A number that goes through bfloat16 in
one fused loop, without memory of 16 bits, stays as it was, and in the value of a `Let` LLVM fails
at the cast. Here it is rounded by its bits, unless it is made of others in bfloat16, of which TVM
makes float32 outside a `Let` alone. Then a result in bfloat16 is rounded here too: TVM would write
its value twice, and its vectorizer refuses a name that it meets again.

    module = with_casts_by_bits(module)  # scheduled
"""

import math
from typing import Any

from tvm_practice.tvm_export.rules.cpu.bfloat16 import in_float32, is_bfloat16

_LOW, _HALF = 0xFFFF, 0x7FFF


def with_casts_by_bits(module: Any) -> Any:
    """A module whose functions round what they cast to bfloat16 and widen.

    Args:
        module: an IRModule of scheduled functions.
    """
    import tvm_ffi
    from tvm import tirx

    changed = module.clone()
    for name, func in module.functions_items():
        if isinstance(func, tirx.PrimFunc):
            body = tvm_ffi.structural_map(func.body, (tirx.Cast, _by_bits), order="post")
            if not body.same_as(func.body):
                body = tvm_ffi.structural_map(body, (tirx.BufferStore, _written_once))
                changed[name] = func.with_body(body)
    return changed


def _by_bits(cast: Any) -> Any:
    """A cast of what is cast to bfloat16: of the nearest one; of two, of the even one."""
    from tvm import tirx

    inner = cast.value
    if not isinstance(inner, tirx.Cast) or str(inner.ty) != "bfloat16":
        return cast
    if _is_of_bfloat16(inner.value):
        return cast
    given = inner.value if str(inner.value.ty) == "float32" else tirx.Cast("float32", inner.value)
    number = tirx.Var("number", "float32")
    bits = tirx.reinterpret("uint32", number)

    def constant(value: int) -> Any:
        return tirx.const(value, "uint32")

    odd = (bits >> constant(16)) & constant(1)
    rounded = (bits + constant(_HALF) + odd) & constant(0xFFFFFFFF - _LOW)
    is_known = number >= tirx.const(-math.inf, "float32")  # TVM takes `number == number` for true
    known = tirx.Select(is_known, tirx.reinterpret("float32", rounded), number)
    wide = tirx.Let(number, given, known)
    return wide if str(cast.ty) == "float32" else tirx.Cast(str(cast.ty), wide)


def _written_once(store: Any) -> Any:
    """A store of bfloat16 whose value has a name in it, rounded."""
    import tvm_ffi
    from tvm import tirx

    value = store.value
    while isinstance(value, tirx.Let):
        value = value.body
    if str(getattr(getattr(value, "op", None), "name", "")) == "tirx.reinterpret":
        return store  # a rule has rounded it; of bits that are cast, TVM makes a number
    names: list[Any] = []
    tvm_ffi.structural_walk(store.value, (tirx.Let, names.append))
    return in_float32(store) if names and is_bfloat16(store.buffer.dtype) else store


def _is_of_bfloat16(expression: Any) -> bool:
    import tvm_ffi
    from tvm import tirx
    from tvm.ir.expr import TensorLoad

    found: list[Any] = []
    tvm_ffi.structural_walk(expression, ((TensorLoad, tirx.Cast), found.append))
    return any(str(each.ty) == "bfloat16" for each in found)
