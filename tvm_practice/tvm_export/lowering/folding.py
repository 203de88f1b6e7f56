"""Floating-point expressions kept from TVM's algebra, which holds for real numbers.

On the way to machine code TVM takes `(x + y) - y` for x, though the sum was rounded, `x - x` for 0,
`x == x` for true, and `not x < y` for `y <= x`, which of NaN are not. Here they get forms of the
same values that it leaves alone.

    module = kept_from_folding(module)  # scheduled
"""

from typing import Any

from tvm_practice.tvm_export.extremes import FLOATS
from tvm_practice.tvm_export.rules.cpu.loops import variables


def kept_from_folding(module: Any) -> Any:
    """A module whose differences and comparisons of floating-point numbers are those written.

    Args:
        module: an IRModule of scheduled functions; rules and tuners know the plain forms.
    """
    import tvm_ffi
    from tvm import tirx

    changes = {
        tirx.Sub: _difference,
        tirx.EQ: _equality,
        tirx.Not: _negation,
        tirx.And: _both,
        tirx.Or: _either,
    }

    def written(node: Any) -> Any:
        return changes[type(node)](node)

    changed = module.clone()
    for name, func in module.functions_items():
        if isinstance(func, tirx.PrimFunc):
            body = tvm_ffi.structural_map(func.body, (tuple(changes), written), order="post")
            if not body.same_as(func.body):
                changed[name] = func.with_body(body)
    return changed


def _difference(node: Any) -> Any:
    """a - b as a + -1 * b, which rounds the same, if something in a may cancel b."""
    from tvm import tirx

    dtype = str(node.ty)
    choices = isinstance(node.a, tirx.Select) and isinstance(node.b, tirx.Select)
    if dtype not in FLOATS or not (choices or _share(node.a, node.b) or _holds(node.a, node.b)):
        return node
    return node.a + node.b * tirx.const(-1, dtype)


def _equality(node: Any) -> Any:
    """a == b as a <= b and b <= a, if it may be taken for true."""
    from tvm import tirx

    if str(node.a.ty) not in FLOATS or not _share(node.a, node.b):
        return node
    return tirx.bitwise_and(node.a <= node.b, node.b <= node.a)


def _negation(node: Any) -> Any:
    from tvm import tirx

    return tirx.bitwise_xor(node.a, tirx.const(True)) if _compares(node.a) else node


def _both(node: Any) -> Any:
    from tvm import tirx

    return tirx.bitwise_and(node.a, node.b) if _compares(node.a, node.b) else node


def _either(node: Any) -> Any:
    from tvm import tirx

    return tirx.bitwise_or(node.a, node.b) if _compares(node.a, node.b) else node


def _share(one: Any, other: Any) -> bool:
    """Whether two expressions are of the same buffer or named value."""
    shared = variables(one) & variables(other)
    return any(str(each.ty.dtype) in FLOATS for each in shared)


def _holds(expression: Any, part: Any) -> bool:
    import tvm_ffi

    found: list[Any] = []

    def look(node: Any) -> None:
        if tvm_ffi.structural_equal(node, part):
            found.append(node)

    tvm_ffi.structural_walk(expression, (type(part), look))
    return bool(found)


def _compares(*conditions: Any) -> bool:
    """Whether each condition compares floating-point numbers, and nothing that may guard a load."""
    import tvm_ffi
    from tvm import tirx

    kinds = (tirx.EQ, tirx.NE, tirx.LT, tirx.LE, tirx.GT, tirx.GE)
    for each in conditions:
        found: list[str] = []
        tvm_ffi.structural_walk(
            each, (kinds, lambda node, found=found: found.append(str(node.a.ty)))
        )
        if not found or not set(found) <= {*FLOATS}:
            return False
    return True
