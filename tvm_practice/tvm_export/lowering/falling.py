"""Indices that fall where their loop's variable rises, divided as TVM divides them right.

TVM simplifies indices on the way to machine code. Of `(20 - i) // 3` it makes `i // -3 + 6`, which
is another number, and of `(20 - i) % 7` `i % -7 * -1`, which may lie before the buffer. Quotients
and remainders of rising numbers stay right, and those of falling ones can be written by them. Of
`i // 16 * 128 + (i % 16 - 1) // 4 * 32 + 32` it makes `(i + 3) // 4 * 32 - 128`: what is divided
may not begin below 0 either.

    module = with_rising_dividends(module)  # scheduled
"""

import functools
from typing import Any

from tvm_practice.tvm_export.rules.cpu.loops import constant


def with_rising_dividends(module: Any) -> Any:
    """A module whose indices divide nothing that a variable is taken away from.

    Args:
        module: an IRModule of scheduled functions.
    """
    import tvm_ffi
    from tvm import tirx
    from tvm.ir.expr import TensorLoad

    def rising(bound: dict[Any, Any], expression: Any) -> Any:
        divided = functools.partial(_of_what_rises, bound)
        return tvm_ffi.structural_map(
            expression, ((tirx.FloorDiv, tirx.FloorMod), divided), order="post"
        )

    def accessed(bound: dict[Any, Any], node: Any) -> Any:
        indices = [rising(bound, each) for each in node.indices]
        if all(one.same_as(other) for one, other in zip(indices, node.indices, strict=True)):
            return node
        if isinstance(node, TensorLoad):
            return tirx.BufferLoad(node.source, indices)
        return tirx.BufferStore(node.buffer, node.value, indices)

    changed = module.clone()
    for name, func in module.functions_items():
        if isinstance(func, tirx.PrimFunc):
            kinds = (TensorLoad, tirx.BufferStore)
            written = functools.partial(accessed, _bound(func.body))
            body = tvm_ffi.structural_map(func.body, (kinds, written), order="post")
            if not body.same_as(func.body):
                changed[name] = func.with_body(body)
    return changed


def _bound(body: Any) -> dict[Any, Any]:
    """What the iterators of blocks stand for: expressions of loops' variables."""
    import tvm_ffi
    from tvm.s_tir import SBlockRealize

    found: dict[Any, Any] = {}

    def look(realize: Any) -> None:
        iterators = [each.var for each in realize.block.iter_vars]
        found.update(zip(iterators, realize.iter_values, strict=True))

    tvm_ffi.structural_walk(body, (SBlockRealize, look))
    return found


def _of_what_rises(bound: dict[Any, Any], node: Any) -> Any:
    """a // n as -((n - 1 - a) // n), a % n as n - 1 - (n - 1 - a) % n, where a falls."""
    from tvm import tirx

    divisor = constant(node.b) or 0
    if divisor <= 0:
        return node
    if not _falls(node.a, bound):
        return _of_what_is_positive(node, divisor)
    last = tirx.const(divisor - 1, str(node.ty))
    if isinstance(node, tirx.FloorMod):
        return last - tirx.floormod(last - node.a, node.b)
    return tirx.const(0, str(node.ty)) - tirx.floordiv(last - node.a, node.b)


def _of_what_is_positive(node: Any, divisor: int) -> Any:
    """A quotient or remainder of a sum that a number is taken from, by one that is never negative.

    It is TVM's truncating kind, whose operands TVM leaves as they are, unless nothing is left that
    is taken away. Of `i % 8` where `i < 8`, and the truncating remainder of `i` by 8 elsewhere,
    LLVM makes one load, at `i`.
    """
    import tvm
    from tvm import tirx

    taken = _taken_away(node.a)
    times = -(-taken // divisor)
    if times <= 0:
        return node
    shifted = node.a + tirx.const(times * divisor, str(node.ty))
    if times * divisor == taken:
        whole = tvm.sym.Analyzer().simplify(shifted)
        if isinstance(node, tirx.FloorMod):
            return tirx.floormod(whole, node.b)
        return tirx.floordiv(whole, node.b) - tirx.const(times, str(node.ty))
    if isinstance(node, tirx.FloorMod):
        return tirx.truncmod(shifted, node.b)
    return tirx.truncdiv(shifted, node.b) - tirx.const(times, str(node.ty))


def _taken_away(expression: Any) -> int:
    """The constant part of a sum, with its sign changed."""
    from tvm import tirx

    if isinstance(expression, tirx.Add):
        return _taken_away(expression.a) + _taken_away(expression.b)
    if isinstance(expression, tirx.Sub):
        return _taken_away(expression.a) - _taken_away(expression.b)
    return -(constant(expression) or 0)


def _falls(expression: Any, bound: dict[Any, Any], *, sign: int = 1) -> bool:
    """Whether it falls where some variable rises; with a negative `sign`, whether it rises."""
    from tvm import tirx

    falls = functools.partial(_falls, bound=bound)
    if isinstance(expression, tirx.Var):
        return falls(bound[expression], sign=sign) if expression in bound else sign < 0
    if isinstance(expression, tirx.Add | tirx.Max | tirx.Min):
        return falls(expression.a, sign=sign) or falls(expression.b, sign=sign)
    if isinstance(expression, tirx.Sub):
        return falls(expression.a, sign=sign) or falls(expression.b, sign=-sign)
    if isinstance(expression, tirx.Mul):
        one, other = expression.a, expression.b
        if constant(one) is not None:
            one, other = other, one
        factor = constant(other)
        if factor is None:  # of open extents and loops' variables, which are not negative
            return falls(one, sign=sign) or falls(other, sign=sign)
        return falls(one, sign=sign if factor > 0 else -sign)
    if isinstance(expression, tirx.FloorDiv | tirx.FloorMod):
        return falls(expression.a, sign=sign)
    if isinstance(expression, tirx.Cast):
        return falls(expression.value, sign=sign)
    return False
