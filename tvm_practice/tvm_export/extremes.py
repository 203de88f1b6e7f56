"""Maxima and minima of NaN and of infinities, as PyTorch has them.

TVM's maximum of a and b is `a > b ? a : b` on a processor, which loses a NaN in `a`. Its reductions
begin with the least finite number, which then is the maximum of minus infinities. And it folds what
is multiplied by a constant 0 to 0, which is NaN of NaN and of infinities, and refuses to divide by
one. The place of a maximum is -1 where all elements are the least number of their type, as zeros of
uint8 are, because the search begins with it. No int32 is the least one to TVM, and to LLVM no
difference overflows that TVM makes of a sum.

    compute_with_zeros()                    # before a module is optimized
    find_places()                           # likewise
    compute_with_least_numbers()            # likewise
    module = with_infinite_edges(module)    # of fused functions, not scheduled yet
    module = keeping_nan(module)            # scheduled, for a processor
    func = keeping_nan_on_gpu(func, …)      # scheduled, for a GPU
"""

import functools
import math
from collections.abc import Callable
from typing import Any

ROW_MAXIMA = "T_softmax_maxelem"
"""The row maxima of TVM's softmax, which is NaN all the same: its sum has the NaN of its row."""
# The NaN that processors make, which stays one when it is rounded to bfloat16.
_NAN = {"int16": 0x7E00, "int32": 0x7FC00000, "int64": 0x7FF8 << 48}
_ON_GPU = ("float16", "float32", "float64")
FLOATS = ("float16", "bfloat16", "float32", "float64")


@functools.cache
def compute_with_zeros() -> None:
    """From now on a constant 0 in a product or a quotient is a tensor to TVM, not a number."""
    import tvm
    from tvm import topi

    functions = {
        "relax.multiply": topi.multiply,
        "relax.divide": topi.divide,
        "relax.floor_divide": topi.floor_divide,
    }
    for name, function in functions.items():
        usual = tvm.ir.Op.get(name).get_attr("FLegalize")

        def legalized(builder: Any, call: Any, usual: Any = usual, function: Any = function) -> Any:
            if not any(map(_is_zero, call.args)):
                return usual(builder, call)
            return builder.call_te(function, *call.args)

        tvm.ir.register_op_attr(name, "FLegalize", legalized, level=11)


@functools.cache
def compute_with_least_numbers() -> None:
    """From now on the least number of a type of integers can be compared with, and taken away."""
    import tvm
    from tvm import tirx, topi

    def is_less(x: Any, least: Any) -> Any:
        return topi.less(x, least + tirx.const(1, str(least.ty)))

    functions = {
        "relax.equal": is_less,
        "relax.less_equal": is_less,
        "relax.subtract": topi.bitwise_xor,  # which is the same for it
    }
    for name, function in functions.items():
        usual = tvm.ir.Op.get(name).get_attr("FLegalize")

        def legalized(builder: Any, call: Any, usual: Any = usual, function: Any = function) -> Any:
            least = _least_number(call.args[1])
            if least is None:
                return usual(builder, call)
            return builder.call_te(lambda x: function(x, least), call.args[0])

        tvm.ir.register_op_attr(name, "FLegalize", legalized, level=11)


def _least_number(expression: Any) -> Any | None:
    """The constant that an expression is, if it is one number, the least of its type with signs."""
    import numpy as np
    import tvm
    from tvm import tirx

    if not isinstance(expression, tvm.ir.GenericConst) or expression.value.shape:
        return None
    dtype, value = str(expression.value.dtype), expression.value.numpy()
    if not dtype.startswith("int") or value != np.iinfo(dtype).min:
        return None
    return tirx.const(int(value), dtype)


@functools.cache
def find_places() -> None:
    """From now on the place of a maximum or minimum is 0 where no element beats another."""
    import tvm

    for name in ("relax.argmax", "relax.argmin"):
        usual = tvm.ir.Op.get(name).get_attr("FLegalize")

        def legalized(builder: Any, call: Any, usual: Any = usual) -> Any:
            place = builder.emit(usual(builder, call))
            return builder.call_te(_at_least_0, place)

        tvm.ir.register_op_attr(name, "FLegalize", legalized, level=11)


def _at_least_0(place: Any) -> Any:
    from tvm import tirx, topi

    return topi.maximum(place, tirx.const(0, str(place.dtype)))


def _is_zero(expression: Any) -> bool:
    """Whether an expression is a floating-point constant 0, without axes."""
    import tvm

    return (
        isinstance(expression, tvm.ir.GenericConst)
        and not expression.value.shape
        and str(expression.value.dtype) in FLOATS
        and not expression.value.numpy().any()
    )


def with_infinite_edges(module: Any) -> Any:
    """A module whose maxima of windows are padded with minus infinity, not a finite number."""
    import tvm
    import tvm_ffi
    from tvm import tirx

    def edge(call: Any) -> Any:
        dtype = str(call.ty)
        if str(getattr(call.op, "name", "")) != "prim.if_then_else" or dtype not in FLOATS:
            return call
        inside, value, beside = call.args
        if not _is(beside, tirx.min_value(dtype)):
            return call
        return tirx.if_then_else(inside, value, tirx.const(-math.inf, dtype))

    def padded(store: Any) -> Any:
        if not str(store.buffer.name).startswith("pad_temp"):  # as TVM's pooling names it
            return store
        return tvm_ffi.structural_map(store, (tvm.ir.Call, edge))

    return _changed(module, lambda body: tvm_ffi.structural_map(body, (tirx.BufferStore, padded)))


def keeping_nan(module: Any) -> Any:
    """A module whose maxima and minima are NaN where an operand is, and begin with infinities.

    It is for scheduled functions: rules and tuners know a reduction by its plain maximum. A
    constant operand, as relu's, costs nothing: the operands change places.
    """
    import tvm_ffi
    from tvm import tirx

    def kept(store: Any) -> Any:
        if str(store.buffer.name).startswith(ROW_MAXIMA):
            return store
        replace = functools.partial(_with_nan, _mentions_bfloat16(store))
        store = tvm_ffi.structural_map(store, ((tirx.Max, tirx.Min), replace), order="post")
        return tvm_ffi.structural_map(store, (tirx.NE, _differs), order="post")

    def changed(body: Any) -> Any:
        begun = tvm_ffi.structural_map(body, (tirx.BufferStore, _begin(_gathered(body))))
        return tvm_ffi.structural_map(begun, (tirx.BufferStore, kept))

    return _changed(module, changed)


def keeping_nan_on_gpu(func: Any, *, shares_sums: bool) -> Any:
    """A GPU's function whose maxima and minima are NaN where an operand is.

    A GPU's own leave NaN out, whichever operand it is.

    Args:
        func: a PrimFunc, its loops bound to threads.
        shares_sums: whether threads may gather one maximum together: TVM knows such by its plain
            form, so that it still leaves NaN out.
    """
    import tvm_ffi
    from tvm import tirx

    gathered = _gathered(func.body)

    def kept(store: Any) -> Any:
        is_shared = shares_sums and store.buffer in gathered
        if is_shared or str(store.buffer.name).startswith(ROW_MAXIMA):
            return store
        return tvm_ffi.structural_map(
            store, ((tirx.Max, tirx.Min), _with_nan_of_either), order="post"
        )

    body = func.body
    if not shares_sums:
        body = tvm_ffi.structural_map(body, (tirx.BufferStore, _begin(gathered)))
    return func.with_body(tvm_ffi.structural_map(body, (tirx.BufferStore, kept)))


def _with_nan_of_either(operation: Any) -> Any:
    """A maximum or minimum that is NaN where an operand is, of operators that are it of neither."""
    from tvm import tirx

    dtype = str(operation.ty)
    if dtype not in _ON_GPU:
        return operation

    def chosen(chosen_of: list[Any], given: list[Any]) -> Any:
        if not given:
            return type(operation)(*chosen_of)
        first, *rest = given
        if isinstance(first, tirx.FloatImm):
            return chosen([*chosen_of, first], rest)

        def of(one: Any) -> Any:
            known = one >= tirx.const(-math.inf, dtype)
            return tirx.Select(known, chosen([*chosen_of, one], rest), one)

        if _is_short(first):
            return of(first)
        name = tirx.Var("x", dtype)
        return tirx.Let(name, first, of(name))

    return chosen([], [operation.a, operation.b])


def _changed(module: Any, change: Callable[[Any], Any]) -> Any:
    """A module whose functions have other bodies."""
    from tvm import tirx

    changed = module.clone()
    for name, func in module.functions_items():
        if isinstance(func, tirx.PrimFunc):
            body = change(func.body)
            if not body.same_as(func.body):
                changed[name] = func.with_body(body)
    return changed


def _gathered(body: Any) -> dict[Any, Any]:
    """The buffers that maxima or minima gather in: which of the two each has."""
    import tvm_ffi
    from tvm import tirx

    found = {}

    def look(store: Any) -> None:
        value = store.value
        if isinstance(value, tirx.Max | tirx.Min) and str(value.ty) in FLOATS:
            operands = (value.a, value.b)
            if any(_is_load(each) and each.source.same_as(store.buffer) for each in operands):
                found[store.buffer] = type(value)

    tvm_ffi.structural_walk(body, (tirx.BufferStore, look))
    return found


def _begin(gathered: dict[Any, Any]) -> Callable[[Any], Any]:
    """What a store becomes: one of the least finite number, of an infinity."""
    from tvm import tirx

    def begun(store: Any) -> Any:
        kind, dtype = gathered.get(store.buffer), str(store.buffer.dtype)
        if kind is None:
            return store
        known, infinity = tirx.min_value(dtype), -math.inf
        if kind is tirx.Min:
            known, infinity = tirx.max_value(dtype), math.inf
        if not _is(store.value, known):
            return store
        return tirx.BufferStore(store.buffer, tirx.const(infinity, dtype), store.indices)

    return begun


def _with_nan(unnamed: bool, operation: Any) -> Any:
    """A maximum or minimum that is NaN where an operand is.

    Args:
        unnamed: whether operands must not get names; see `rules.cpu.bfloat16`.
    """
    import tvm
    from tvm import tirx

    kind, first, second = type(operation), operation.a, operation.b
    if str(operation.ty) not in FLOATS:
        return operation
    if isinstance(second, tirx.FloatImm) or (_is_short(second) and not _is_short(first)):
        first, second = second, first

    if isinstance(first, tirx.FloatImm):
        return operation if first.same_as(operation.a) else kind(first, second)

    def of(one: Any) -> Any:
        known = one >= tirx.const(-math.inf, str(one.ty))  # isnan is a call for each element
        if unnamed:
            return tirx.Select(known, kind(one, second), one)
        # Chosen by its bits: TVM makes a branch of a choice between operands in memory.
        bits = f"int{tvm.DataType(str(one.ty)).bits}"
        mask = tirx.Select(known, tirx.const(-1, bits), tirx.const(0, bits))
        unknown = tirx.Select(known, tirx.const(0, bits), tirx.const(_NAN[bits], bits))
        chosen = (tirx.reinterpret(bits, kind(one, second)) & mask) | unknown
        return tirx.reinterpret(str(one.ty), chosen)

    if unnamed or _is_short(first):
        return of(first)
    name = tirx.Var("x", str(first.ty))
    return tirx.Let(name, first, of(name))


def _differs(comparison: Any) -> Any:
    """Whether numbers differ, which NaN does from all, in TVM from none."""
    from tvm import tirx

    operands = (comparison.a, comparison.b)
    if str(operands[0].ty) not in FLOATS:
        return comparison
    if str(operands[0].ty) == "bfloat16":  # of which TVM has no isnan
        operands = tuple(each.astype("float32") for each in operands)
    unknown = [tirx.isnan(each) for each in operands if not isinstance(each, tirx.FloatImm)]
    return tirx.any(comparison, *unknown)


def _mentions_bfloat16(store: Any) -> bool:
    """Whether a store loads, stores or rounds to a bfloat16."""
    import tvm_ffi
    from tvm import tirx
    from tvm.ir.expr import TensorLoad

    kinds = [str(store.buffer.dtype)]
    tvm_ffi.structural_walk(
        store.value, ((TensorLoad, tirx.Cast), lambda each: kinds.append(str(each.ty)))
    )
    return "bfloat16" in kinds


def _is_short(expression: Any) -> bool:
    """Whether an expression costs nothing to write twice."""
    from tvm import tirx

    return _is_load(expression) or isinstance(expression, tirx.Var | tirx.FloatImm)


def _is_load(expression: Any) -> bool:
    from tvm.ir.expr import TensorLoad

    return isinstance(expression, TensorLoad)


def _is(expression: Any, number: Any) -> bool:
    """Whether an expression is this constant."""
    from tvm import tirx

    return isinstance(expression, tirx.FloatImm) and float(expression.value) == float(number.value)
