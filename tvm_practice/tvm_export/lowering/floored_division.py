"""Floored divisions that TVM lowers to others.

It lowers `(x + 2) // 5` of int32 to a truncated division of a sum that is never negative, if that
sum does not overflow; with numbers that a model computes it does. And it computes a quotient ahead
of the branch that needs it: in a branch for the `n % 16` elements left over, a quotient by their
number, which may be 0.

    module = without_division_by_zero(with_wide_division(module))  # scheduled
"""

from typing import Any

from tvm_practice.tvm_export.rules.cpu.loops import constant

_WIDE = "int64"


def with_wide_division(module: Any) -> Any:
    """A module whose functions divide elements of buffers by positive constants in int64.

    Quotients of loops' variables stay: TVM simplifies them.

    Args:
        module: an IRModule of scheduled functions.
    """
    import tvm_ffi
    from tvm import tirx

    changed = module.clone()
    for name, func in module.functions_items():
        if isinstance(func, tirx.PrimFunc):
            kinds = (tirx.FloorDiv, tirx.FloorMod)
            body = tvm_ffi.structural_map(func.body, (kinds, _in_int64), order="post")
            if not body.same_as(func.body):
                changed[name] = func.with_body(body)
    return changed


def _in_int64(node: Any) -> Any:
    """a // n, by way of int64, in which the sum does not overflow.

    A quotient of int64 stays: TVM knows no bounds of its dividend, or small ones, and adds nothing
    that overflows.
    """
    from tvm import tirx

    dtype = str(node.ty)
    if dtype == _WIDE or (constant(node.b) or 0) <= 0 or not _has_load(node.a):
        return node
    wide = type(node)(tirx.Cast(_WIDE, node.a), tirx.const(constant(node.b), _WIDE))
    return tirx.Cast(dtype, wide)


def without_division_by_zero(module: Any) -> Any:
    """A module whose functions divide by 1 where an expression of open extents is 0.

    What is divided by it then is for no element. An open extent itself is 1 at least.

    Args:
        module: an IRModule of scheduled functions.
    """
    import tvm_ffi
    from tvm import tirx

    changed = module.clone()
    for name, func in module.functions_items():
        if not isinstance(func, tirx.PrimFunc) or not (extents := _open_extents(func)):
            continue

        def by_one_at_least(node: Any, extents: Any = extents) -> Any:
            if isinstance(node.b, tirx.Var) or not _is_of(node.b, extents):
                return node
            return type(node)(node.a, tirx.max(node.b, tirx.const(1, str(node.b.ty))))

        kinds = (tirx.FloorDiv, tirx.FloorMod)
        changed[name] = func.with_body(
            tvm_ffi.structural_map(func.body, (kinds, by_one_at_least), order="post")
        )
    return changed


def _open_extents(func: Any) -> set[Any]:
    """The variables that stand for extents of a function's buffers."""
    import tvm_ffi
    from tvm import tirx

    found: set[Any] = set()
    for param in func.params:
        for extent in getattr(param, "shape", ()):
            tvm_ffi.structural_walk(extent, (tirx.Var, found.add))
    return found


def _is_of(expression: Any, extents: set[Any]) -> bool:
    """Whether it has variables, and these are open extents; neither loops' nor elements."""
    import tvm_ffi
    from tvm import tirx

    variables: list[Any] = []
    tvm_ffi.structural_walk(expression, (tirx.Var, variables.append))
    return bool(variables) and not _has_load(expression) and extents.issuperset(variables)


def _has_load(expression: Any) -> bool:
    import tvm_ffi
    from tvm.ir.expr import TensorLoad

    found: list[Any] = []
    tvm_ffi.structural_walk(expression, (TensorLoad, found.append))
    return bool(found)
