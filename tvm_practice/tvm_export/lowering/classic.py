"""Classic TVM's algebra of real numbers, kept from floating-point ones while it makes loops.

Its maximum of a and b is `a > b ? a : b`, which loses a NaN in `a`; its maxima of windows begin
with the least finite number, and have it around; and `x - x` is 0. It tells LLVM that no number is
NaN, so what must see one compares bits: in loops that are not vectorized, and in 16 bits always,
comparisons with NaN come out true, and NaN itself comes out false. `extremes` and `folding` do the
same for current TVM, and say more.
"""

import math
from typing import Any

# The bits of infinity, above which only those of NaN are.
_INFINITY = {"float16": 0x7C00, "float32": 0x7F800000, "float64": 0x7FF << 52}
# The row maxima of TVM's softmax, which is NaN all the same: its sum has the NaN of its row.
_PLAIN = "T_softmax_maxelem"
_COMPARED = ("EQ", "NE", "LT", "LE", "GT", "GE")
_CHANGED = ("Max", "Min", "Sub", "Cast", *_COMPARED)
_ROUNDINGS = tuple(f"tir.{each}" for each in ("floor", "ceil", "trunc", "round", "nearbyint"))
# Before TVM simplifies anything.
_FIRST = 0


def keeping_floats() -> dict[str, Any]:
    """The settings of a pass context in which floating-point expressions are what is written.

    For processors: a GPU's maximum is an instruction that leaves NaN out.
    """
    from tvm import tir

    def keep(func: Any, _module: Any, _context: Any) -> Any:
        return func.with_body(_kept(func.body))

    keeping = tir.transform.prim_func_pass(keep, opt_level=0, name="tvm_practice.keeping_floats")
    return {"tir.add_lower_pass": [(_FIRST, keeping)]}


def _kept(body: Any) -> Any:
    """The loops of a function, which are not simplified yet, with other expressions."""
    from tvm import tir

    gathered = _gathered(body)

    def stored(store: Any) -> Any:
        if str(store.buffer.name).startswith(_PLAIN):
            return store
        value = _transformed(store.value, _kept_value, [f"tir.{each}" for each in _CHANGED])
        if kind := gathered.get(store.buffer):
            value = _from_infinity(value, kind)
        return tir.BufferStore(store.buffer, value, store.indices)

    return tir.stmt_functor.ir_transform(body, None, stored, ["tir.BufferStore"])


def _transformed(value: Any, change: Any, kinds: list[str]) -> Any:
    """An expression, whose parts of these kinds are changed, inner ones first."""
    from tvm import tir

    return tir.stmt_functor.ir_transform(tir.Evaluate(value), None, change, kinds).value


def _gathered(body: Any) -> dict[Any, Any]:
    """The buffers that maxima or minima gather in: which of the two each has."""
    from tvm import tir

    found = {}

    def look(node: Any) -> None:
        if not isinstance(node, tir.BufferStore):
            return
        value = node.value
        if isinstance(value, tir.Max | tir.Min) and str(value.dtype) in _INFINITY:
            operands = [each for each in (value.a, value.b) if isinstance(each, tir.BufferLoad)]
            if any(each.buffer.same_as(node.buffer) for each in operands):
                found[node.buffer] = type(value)

    tir.stmt_functor.post_order_visit(body, look)
    return found


def _from_infinity(value: Any, kind: Any) -> Any:
    """What is gathered, or that begins it, with an infinity for the last finite number."""
    from tvm import tir

    dtype = str(value.dtype)
    finite, infinity = tir.min_value(dtype), -math.inf
    if kind is tir.Min:
        finite, infinity = tir.max_value(dtype), math.inf

    def replaced(number: Any) -> Any:
        return tir.const(infinity, dtype) if number.value == finite.value else number

    return _transformed(value, replaced, ["FloatImm"])


def _kept_value(node: Any) -> Any:
    """An expression as TVM is to see it, of the value that it has in floating-point numbers."""
    from tvm import tir

    dtype = str(node.dtype)
    if isinstance(node, tir.Cast):
        is_truth = dtype == "bool" and str(node.value.dtype) in _INFINITY
        return _size(node.value) != 0 if is_truth else node
    kind, one, other = type(node), node.a, node.b
    if kind.__name__ in _COMPARED:
        return _compared(node) if str(one.dtype) in _INFINITY else node
    if dtype not in _INFINITY:
        return node
    if isinstance(node, tir.Sub):
        return _difference(node)
    if isinstance(other, tir.FloatImm):
        one, other = other, one
    if isinstance(one, tir.FloatImm):  # the second operand is chosen where it is NaN
        return kind(one, other)
    return tir.Select(_size(one) <= _infinity(dtype), kind(one, other), one)


def _compared(node: Any) -> Any:
    """A comparison, which NaN is in none of but "not equal"."""
    from tvm import tir

    unknown = [
        _size(each) > _infinity(str(each.dtype))
        for each in (node.a, node.b)
        if not (isinstance(each, tir.FloatImm) and each.value == each.value)
    ]
    is_unequal = isinstance(node, tir.NE)
    for each in unknown:
        node = tir.any(node, each) if is_unequal else tir.all(node, tir.Not(each))
    return node


def _difference(node: Any) -> Any:
    """a - b, of which neither TVM nor LLVM takes anything for 0."""
    from tvm import tir

    one, other, dtype = node.a, node.b, str(node.dtype)
    bits = _bits(dtype)
    if _are_equal(one, other):
        nan = tir.reinterpret(dtype, tir.max_value(bits))
        return tir.Select(_size(one) < _infinity(dtype), tir.const(0.0, dtype), nan)
    if _loaded(one) & _loaded(other):
        return one - tir.reinterpret(dtype, tir.reinterpret(bits, other))
    return node


def _are_equal(one: Any, other: Any) -> bool:
    """Whether two expressions are the same one, of the same buffers, to LLVM.

    TVM takes two buffers of the same shape for the same one. LLVM rounds a number once.
    """
    import tvm
    from tvm import tir

    names: dict[Any, Any] = {}

    def named(load: Any) -> Any:
        name = names.setdefault(load.buffer, tir.Var(load.buffer.name, "handle"))
        return tir.call_extern(load.dtype, "load", name, *load.indices)

    def once(call: Any) -> Any:
        return call.args[0] if all(map(_is_rounded, (call, *call.args[:1]))) else call

    one, other = (
        _transformed(_transformed(each, named, ["tir.BufferLoad"]), once, ["tir.Call"])
        for each in (one, other)
    )
    return bool(tvm.ir.structural_equal(one, other))


def _is_rounded(value: Any) -> bool:
    """Whether an expression is a whole number, or not finite."""
    from tvm import tir

    return isinstance(value, tir.Call) and str(getattr(value.op, "name", "")) in _ROUNDINGS


def _size(number: Any) -> Any:
    """The bits of a number without its sign's, as an integer: infinity's, or more of NaN."""
    from tvm import tir

    bits = _bits(str(number.dtype))
    return tir.reinterpret(bits, number) & tir.max_value(bits)


def _infinity(dtype: str) -> Any:
    from tvm import tir

    return tir.const(_INFINITY[dtype], _bits(dtype))


def _bits(dtype: str) -> str:
    return dtype.replace("float", "int")


def _loaded(value: Any) -> set[Any]:
    """The buffers that an expression reads."""
    from tvm import tir

    found: set[Any] = set()

    def look(node: Any) -> None:
        if isinstance(node, tir.BufferLoad):
            found.add(node.buffer)

    tir.stmt_functor.post_order_visit(value, look)
    return found
