"""Indices that fall where their loop's variable rises, divided as TVM divides them right.

TVM simplifies indices on the way to machine code. Of `(20 - i) // 3` it makes `i // -3 + 6`, which
is another number, and of `(20 - i) % 7` `i % -7 * -1`, which may lie before the buffer. Quotients
and remainders of rising numbers stay right, and those of falling ones can be written by them.

    module = with_rising_dividends(module)  # scheduled
"""

from typing import Any

from tvm_practice.tvm_export.rules.cpu.loops import constant, variables


def with_rising_dividends(module: Any) -> Any:
    """A module whose indices divide nothing that a variable is taken away from.

    Args:
        module: an IRModule of scheduled functions.
    """
    import tvm_ffi
    from tvm import tirx
    from tvm.ir.expr import TensorLoad

    def rising(expression: Any) -> Any:
        return tvm_ffi.structural_map(
            expression, ((tirx.FloorDiv, tirx.FloorMod), _of_what_rises), order="post"
        )

    def accessed(node: Any) -> Any:
        indices = [rising(each) for each in node.indices]
        if all(one.same_as(other) for one, other in zip(indices, node.indices, strict=True)):
            return node
        if isinstance(node, TensorLoad):
            return tirx.BufferLoad(node.source, indices)
        return tirx.BufferStore(node.buffer, node.value, indices)

    changed = module.clone()
    for name, func in module.functions_items():
        if isinstance(func, tirx.PrimFunc):
            kinds = (TensorLoad, tirx.BufferStore)
            body = tvm_ffi.structural_map(func.body, (kinds, accessed), order="post")
            if not body.same_as(func.body):
                changed[name] = func.with_body(body)
    return changed


def _of_what_rises(node: Any) -> Any:
    """a // n as -((n - 1 - a) // n), a % n as n - 1 - (n - 1 - a) % n, where a falls."""
    from tvm import tirx

    divisor = constant(node.b) or 0
    if divisor <= 0 or not _falls(node.a):
        return node
    last = tirx.const(divisor - 1, str(node.ty))
    if isinstance(node, tirx.FloorMod):
        return last - tirx.floormod(last - node.a, node.b)
    return tirx.const(0, str(node.ty)) - tirx.floordiv(last - node.a, node.b)


def _falls(dividend: Any) -> bool:
    """Whether something with a variable is taken away in it."""
    import tvm_ffi
    from tvm import tirx

    found: list[bool] = []

    def look(node: Any) -> None:
        if isinstance(node, tirx.Sub):
            found.append(bool(variables(node.b)))
        else:
            negative = any((constant(each) or 0) < 0 for each in (node.a, node.b))
            found.append(negative and bool(variables(node)))

    tvm_ffi.structural_walk(dividend, ((tirx.Sub, tirx.Mul), look))
    return any(found)
