"""Numbers that are cast to bfloat16 on the way, which TVM does not round.

It computes bfloat16 in float32 and rounds what is stored. A number that goes through bfloat16 in
one fused loop, without memory of 16 bits, stays as it was, and in the value of a `Let` LLVM fails
at the cast. Here a statement with such a number, or with one of bfloat16 that has a name, is
computed in float32, and the number is rounded by its bits.

    module = with_casts_by_bits(module)  # scheduled
"""

from typing import Any

from tvm_practice.tvm_export.rules.cpu.bfloat16 import (
    in_float32,
    is_bfloat16,
    loads_what_is_given,
)
from tvm_practice.tvm_export.rules.cpu.vector_math import called


def with_casts_by_bits(module: Any) -> Any:
    """A module whose functions round what they cast to bfloat16.

    Args:
        module: an IRModule of scheduled functions.
    """
    import tvm_ffi
    from tvm import tirx

    changed = module.clone()
    for name, func in module.functions_items():
        if isinstance(func, tirx.PrimFunc):

            def rounded(store: Any, func: Any = func) -> Any:
                if _is_rounded_within(store) and loads_what_is_given(store, func):
                    return in_float32(store, func)
                return store

            body = tvm_ffi.structural_map(func.body, (tirx.BufferStore, rounded))
            if not body.same_as(func.body):
                changed[name] = func.with_body(body)
    return changed


def _is_rounded_within(store: Any) -> bool:
    """Whether a store rounds a number before its last operation, or names one of bfloat16."""
    import tvm_ffi
    from tvm import tirx

    is_stored_rounded = is_bfloat16(store.buffer.dtype)
    value = store.value
    while isinstance(value, tirx.Let):
        value = value.body
    if is_stored_rounded and called(value) == "reinterpret":
        return False  # a rule has rounded it
    found: list[bool] = []

    def look(node: Any) -> None:
        if isinstance(node, tirx.Let):
            found.append(is_stored_rounded or is_bfloat16(node.var.ty))
        elif is_bfloat16(node.ty):
            found.append(not (is_stored_rounded and node.same_as(store.value)))

    tvm_ffi.structural_walk(store.value, ((tirx.Cast, tirx.Let), look))
    return any(found)
