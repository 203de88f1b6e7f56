"""Calls of an operator that differ in nothing that matters, legalized once.

    legalize_once()                    # before a module is optimized

TVM makes loops of every call of an operator, in Python, to find that the module has the same ones
from the call before. An unrolled scan has thousands of such calls, and FoldConstant makes the loops
of each once more. Here the loops of the first call serve the others.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

# Of these the loops follow from the arguments' shapes and types, from scalars, and from attributes
# that are whole numbers: TVM does not write all digits of others.
_OPERATORS = (
    *("add", "subtract", "multiply", "divide", "power", "maximum", "minimum"),
    *("less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "where"),
    *("logical_and", "logical_or", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor"),
    *("exp", "log", "sqrt", "rsqrt", "negative", "abs", "sigmoid", "tanh", "sin", "cos", "erf"),
    *("nn.relu", "nn.silu", "nn.gelu", "nn.gelu_tanh", "clip", "astype"),
    *("reshape", "permute_dims", "expand_dims", "squeeze", "broadcast_to", "strided_slice"),
    *("take", "sum", "mean", "max", "min", "matmul", "nn.softmax"),
)
_MOST = 4096  # of an operator's loops that are kept


class _Loops(NamedTuple):
    """What an operator became.

    Attributes:
        function: its loops, a PrimFunc.
        name: of the function, before a module makes it unlike others.
        places: the positions, in the operator's arguments, of the tensors that it takes.
        types: of what it makes.
    """

    function: Any
    name: str
    places: Sequence[int]
    types: Any


@functools.cache
def legalize_once() -> None:
    """From now on LegalizeOps and FoldConstant make the loops of equal calls once.

    An operator whose legalization is registered later, below level 12, keeps this one's.
    """
    import tvm

    for each in _OPERATORS:
        usual = tvm.ir.Op.get(f"relax.{each}").get_attr("FLegalize")
        made = functools.partial(_legalized, usual, {})
        tvm.ir.register_op_attr(f"relax.{each}", "FLegalize", made, level=12)


def _legalized(
    usual: Callable[[Any, Any], Any], known: dict[Any, _Loops], builder: Any, call: Any
) -> Any:
    from tvm import relax

    key = _key(call)
    if key is None:
        return usual(builder, call)
    if (loops := known.get(key)) is not None:
        function = builder.add_func(loops.function, loops.name)
        return relax.call_tir(function, [call.args[at] for at in loops.places], loops.types)
    made = usual(builder, call)
    if len(known) < _MOST and (loops := _loops_of(builder, call, made)) is not None:
        known[key] = loops
    return made


def _key(call: Any) -> tuple[Any, ...] | None:
    """Equal for calls that become the same loops; None where that is not sure."""
    described = [_described(each) for each in call.args]
    if None in described:
        return None
    # A tensor that is given twice may be one argument of the loops.
    firsts = [next(at for at, e in enumerate(call.args) if e.same_as(each)) for each in call.args]
    attributes = None if call.attrs is None else str(call.attrs)
    return (tuple(described), tuple(firsts), attributes, str(call.ty))


def _described(argument: Any) -> tuple[Any, ...] | None:
    """What of an argument its operator's loops follow from; None if its extents are open."""
    import tvm
    from tvm import relax

    kind = argument.ty
    if isinstance(argument, tvm.ir.GenericConst) and not argument.value.shape:
        # 0.0 and -0.0 are equal as numbers.
        return str(argument.value.dtype), argument.value.numpy().tobytes()
    if isinstance(kind, relax.TensorType):
        extents = [getattr(each, "value", None) for each in getattr(kind.shape, "values", (None,))]
        return None if None in extents else (*extents, str(kind.dtype))
    if isinstance(argument, (relax.ShapeExpr, relax.Tuple)):
        is_shape = isinstance(argument, relax.ShapeExpr)
        numbers = argument.values if is_shape else argument.fields
        found = [(getattr(each, "value", None), str(each.ty)) for each in numbers]
        return None if any(value is None for value, _ in found) else tuple(found)
    value = getattr(argument, "value", None)
    return None if not isinstance(value, (int, float)) else (repr(value), str(kind))


def _loops_of(builder: Any, call: Any, made: Any) -> _Loops | None:
    """What a call became, if that takes nothing but the call's own tensors."""
    from tvm import relax

    if not isinstance(made, relax.Call) or str(getattr(made.op, "name", "")) != "relax.call_tir":
        return None
    if len(made.args) != 2 or not isinstance(made.args[1], relax.Tuple):
        return None
    places = []
    for tensor in made.args[1].fields:
        found = [at for at, each in enumerate(call.args) if each.same_as(tensor)]
        if not found:
            return None
        places.append(found[0])
    name = made.args[0]
    function = builder.get()[name]
    return _Loops(function, str(name.name_hint).rstrip("0123456789"), places, list(made.ty_args))
