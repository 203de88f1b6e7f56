"""Checks of the indices that a model is given or computes, as part of the compiled model.

    module = with_index_checks(module, ["input_ids"])

TVM's gathers and scatters read and write wherever an index points. Before each of them a function
is inserted that looks at the indices, ends the run with an IndexError if one is out of bounds, and
hands them on. So every caller of the model is safe: Python, C++, and TVM's virtual machine alone.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.errors import CannotImport

INDEX_CHECK = "check_indices"
OPAQUE = 8  # TVM's number for a function that is not fused with others
# Operators that hand on all of an integer tensor's values, and those that hand on some of them.
_ALL_VALUES = ("relax.astype", "relax.reshape")
_SOME_VALUES = (
    *_ALL_VALUES,
    "relax.broadcast_to",
    "relax.expand_dims",
    "relax.flatten",
    "relax.permute_dims",
    "relax.squeeze",
    "relax.strided_slice",
)


@dataclass(frozen=True)
class _Use:
    """A tensor of indices that an operator takes.

    Attributes:
        argument: which of the operator's arguments.
        field: which field of it, where the argument is a tuple of tensors.
        extents: what each value must be below; several where the last axis holds coordinates, one
            for each of its places.
        negative: whether the operator takes -extent to -1 too.
        ignored: a value that the operator passes over.
    """

    argument: int
    extents: tuple[Any, ...]
    field: int | None = None
    negative: bool = False
    ignored: int | None = None


def with_index_checks(module: Any, names: Sequence[str]) -> Any:
    """A Relax module that refuses indices out of bounds at run time.

    Args:
        module: as imported, its main of Relax's operators; it is left as it was.
        names: what main's inputs are called in messages, in their order.

    Returns:
        A new module. Each gather, scatter and the like of main has its indices from a call of a
        scheduled PrimFunc that raises IndexError at run time. The message says which input's
        indices, or which operator's if the model computed them, and what is allowed.

    Raises:
        CannotImport: indices that are constants of the model and out of bounds.
    """
    from tvm.ir import Call
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Checking(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Call) -> Any:
            call = self.visit_expr_post_order(call)
            uses = _uses(call)
            if not uses:
                return call
            arguments = list(call.args)
            for use in uses:
                _replace(arguments, use, self.lookup_binding, checks.checked(self, call, use))
            return Call(call.op, arguments, call.attrs, call.ty_args)

    main = module["main"]
    found = [(call, use) for call in _calls(main) for use in _uses(call)]
    if not found:
        return module
    for call, use in found:  # not in the mutator: TVM would make a RuntimeError of the error
        _require_within(call, use)
    checks = _Checks(dict(zip(main.params, names, strict=True)))
    checking = Checking(module)
    checking.builder_.update_func(module.get_global_var("main"), checking.visit_expr(main))
    return checking.builder_.get()


def names_of(module: Any, check: str) -> list[str]:
    """The names of the checks of a kind, INDEX_CHECK for one, among a module's functions."""
    names = (str(each.name_hint) for each in module.get_global_vars())
    return sorted(each for each in names if each.startswith(check))


def index_bounds(module: Any, names: Sequence[str]) -> dict[str, int]:
    """What every value of an input must be below, for inputs whose values index something.

    Args:
        module: as imported, its main of Relax's operators.
        names: of main's inputs, in their order.

    Returns:
        The smallest of the extents that are numbers, by the input's name.
    """
    main = module["main"]
    named = dict(zip(main.params, names, strict=True))
    bindings: dict[Any, Any] = {}
    for block in getattr(main.body, "blocks", ()):
        for each in block.bindings:
            bindings[each.var] = each.value
    found: dict[str, int] = {}
    for call in _calls(main):
        for use in _uses(call):
            given = call.args[use.argument]
            if use.field is not None:
                given = _fields(given, bindings.get)[use.field]
            name, _ = _source(given, bindings.get, named)
            extent = plain_extent(use.extents[0])
            if name and len(use.extents) == 1 and isinstance(extent, int):
                found[name] = min(extent, found.get(name, extent))
    return found


def source_name(given: Any, binding: Callable[[Any], Any], names: Mapping[Any, str]) -> str | None:
    """Which of the named inputs a tensor's values come from; None if from none."""
    return _source(given, binding, names)[0]


def _source(
    given: Any, binding: Callable[[Any], Any], names: Mapping[Any, str]
) -> tuple[str | None, bool]:
    """Which input indices come from, None if from none, and whether negative ones were mended."""
    from tvm import relax

    negative = False
    while isinstance(given, relax.Var) and given not in names:
        source, name = binding(given), _operator(given, binding)
        if name in _SOME_VALUES:
            given = source.args[0]
        elif name == "relax.where" and _operator(source.args[0], binding) == "relax.less":
            given, negative = source.args[2], True  # those below 0 have had the extent added
        else:
            return None, negative
    return (names[given] if isinstance(given, relax.Var) else None), negative


def _operator(given: Any, binding: Callable[[Any], Any]) -> str:
    """The operator whose result a variable is; nothing of other expressions."""
    from tvm import relax

    source = binding(given) if isinstance(given, relax.Var) else given
    return str(getattr(getattr(source, "op", None), "name", ""))


def _calls(function: Any) -> list[Any]:
    from tvm import relax
    from tvm.ir import Call

    found: list[Any] = []
    relax.analysis.post_order_visit(
        function, lambda each: found.append(each) if isinstance(each, Call) else None
    )
    return found


def _uses(call: Any) -> list[_Use]:
    """The tensors of indices that a call takes; none for most operators."""
    find = _OPERATORS.get(str(getattr(call.op, "name", "")))
    return find(call) if find else []


def _shape(tensor: Any) -> list[Any]:
    return list(tensor.ty.shape.values)


def _take(call: Any) -> list[_Use]:
    shape, axis = _shape(call.args[0]), call.attrs.axis
    if call.attrs.mode != "fast" or not hasattr(call.args[1].ty, "ndim"):
        return []
    if axis is not None:
        return [_Use(1, (shape[int(axis)],))]
    elements = shape[0] if shape else 1
    for extent in shape[1:]:
        elements = elements * extent
    return [_Use(1, (elements,))]


def _along_axis(call: Any) -> list[_Use]:
    return [_Use(1, (_shape(call.args[0])[int(call.attrs.axis)],))]


def _coordinates(call: Any) -> list[_Use]:
    first = int(getattr(call.attrs, "batch_dims", 0))
    count = int(_shape(call.args[1])[-1])
    return [_Use(1, tuple(_shape(call.args[0])[first : first + count]))]


def _one_an_axis(call: Any) -> list[_Use]:
    extents = _shape(call.args[0])
    count = len(call.args[1].ty.fields) if hasattr(call.args[1].ty, "fields") else None
    # index_put adds the extent to negative ones itself, index_tensor does not.
    negative = call.op.name == "relax.index_put"
    if count is None:
        return [_Use(1, (extents[0],), negative=negative)]
    return [_Use(1, (extents[i],), field=i, negative=negative) for i in range(count)]


def _classes(call: Any) -> list[_Use]:
    shape = _shape(call.args[0])
    count = shape[1] if len(shape) > 1 else shape[0]
    return [_Use(1, (count,), ignored=int(call.attrs.ignore_index))]


def _lengths(call: Any) -> list[_Use]:
    return [_Use(1, (_shape(call.args[0])[int(call.attrs.seq_axis)] + 1,))]


_OPERATORS: dict[str, Callable[[Any], list[_Use]]] = {
    "relax.take": _take,
    "relax.gather_elements": _along_axis,
    "relax.scatter_elements": _along_axis,
    "relax.gather_nd": _coordinates,
    "relax.scatter_nd": _coordinates,
    "relax.index_tensor": _one_an_axis,
    "relax.index_put": _one_an_axis,
    "relax.nn.nll_loss": _classes,
    "relax.reverse_sequence": _lengths,
}


def _replace(arguments: list[Any], use: _Use, binding: Callable[[Any], Any], checked: Any) -> None:
    """Put checked indices in their place among a call's arguments."""
    from tvm import relax

    if use.field is None:
        arguments[use.argument] = checked
        return
    fields = _fields(arguments[use.argument], binding)
    fields[use.field] = checked
    arguments[use.argument] = relax.Tuple(fields)


def _fields(given: Any, binding: Callable[[Any], Any]) -> list[Any]:
    from tvm import relax

    while isinstance(given, relax.Var) and binding(given) is not None:
        given = binding(given)
    if isinstance(given, relax.Tuple):
        return list(given.fields)
    return [relax.TupleGetItem(given, i) for i in range(len(given.ty.fields))]


class _Checks:
    """The checks that were inserted so far, one for the same indices and bounds.

    Args:
        names: of main's parameters.
    """

    def __init__(self, names: dict[Any, str]):
        self._names = names
        self._made: dict[Any, Any] = {}

    def checked(self, mutator: Any, call: Any, use: _Use) -> Any:
        """The indices of one use, as a check inserted before the call hands them on."""
        from tvm.ir import GenericConst

        given = call.args[use.argument]
        if use.field is not None:
            given = _fields(given, mutator.lookup_binding)[use.field]
        if isinstance(given, GenericConst) or not _holds_integers(given):
            return given
        operator = str(call.op.name).removeprefix("relax.")
        return self._guard(mutator, given, use, operator)

    def _guard(self, mutator: Any, given: Any, use: _Use, operator: str) -> Any:
        """The indices checked before they are cast: to 32 bits, 2**32 + 5 would be 5."""
        from tvm import relax

        key = (given, use.extents, use.negative, use.ignored)
        if key in self._made:
            return self._made[key]
        source: Any = mutator.lookup_binding(given) if isinstance(given, relax.Var) else None
        name = str(getattr(getattr(source, "op", None), "name", ""))
        if name in _ALL_VALUES and len(use.extents) == 1 and _holds_integers(source.args[0]):
            inner = self._guard(mutator, source.args[0], use, operator)
            if name == "relax.astype":
                made = mutator.builder_.emit(relax.op.astype(inner, given.ty.dtype))
            else:
                made = mutator.builder_.emit(relax.op.reshape(inner, source.args[1]))
        else:
            who, negative = _source(given, mutator.lookup_binding, self._names)
            who = who or f"indices that the model computes for {operator}"
            allowed = _allowed(use, negative or use.negative, self._names)
            made = _emit(mutator.builder_, given, use, f"{who}: {allowed}")
        self._made[key] = made
        return made


def _allowed(use: _Use, negative: bool, names: dict[Any, str]) -> str:
    """What a message says of indices: their bounds, with a name for each open extent."""
    ranges: list[str] = []
    named: list[str] = []
    for extent in map(plain_extent, use.extents):
        if isinstance(extent, int):
            ranges.append(f"{-extent if negative else 0} to {extent - 1}")
        else:
            name = f"n{len(named) + 1}" if named else "n"
            ranges.append(f"{f'-{name}' if negative else 0} to {name} - 1")
            named.append(f"{name}: {_axis_of(extent, names)}")
    told = f" ({'; '.join(named)})" if named else ""
    if len(ranges) > 1:
        return f"out of bounds, a coordinate may be from {', '.join(ranges)}{told}"
    return f"index out of bounds, {ranges[0]} are allowed{told}"


def _axis_of(extent: Any, names: dict[Any, str]) -> str:
    for parameter, name in names.items():
        for axis, own in enumerate(parameter.ty.shape.values):
            if own.same_as(extent):
                return f"axis {axis} of {name}"
    return "an extent that the model computes"


def plain_extent(extent: Any) -> Any:
    """An extent as a number, if it is one."""
    return int(extent) if isinstance(extent, int) or hasattr(extent, "value") else extent


def parameter_shape(kind: Any) -> list[Any]:
    """The shape of a kernel's parameter of this type: an open extent is a variable of its own."""
    from tvm import tirx

    return [
        each if isinstance(plain_extent(each), int) else tirx.Var("extent", "int64")
        for each in kind.shape.values
    ]


def _holds_integers(tensor: Any) -> bool:
    return str(tensor.ty.dtype).startswith(("int", "uint"))


def _require_within(call: Any, use: _Use) -> None:
    """Raise CannotImport if the indices are constants and out of bounds."""
    import numpy as np
    from tvm import relax
    from tvm.ir import GenericConst

    given = call.args[use.argument]
    if use.field is not None and isinstance(given, relax.Tuple):
        given = given.fields[use.field]
    if not isinstance(given, GenericConst) or not _holds_integers(given):
        return
    values = given.value.numpy()
    columns = [values] if len(use.extents) == 1 else np.moveaxis(values, -1, 0)
    for column, extent in zip(columns, map(plain_extent, use.extents), strict=True):
        if not isinstance(extent, int):
            continue
        low = -extent if use.negative else 0
        wrong = column[((column < low) | (column >= extent)) & (column != use.ignored)]
        if wrong.size:
            operator = str(call.op.name).removeprefix("relax.")
            raise CannotImport(
                f"{operator} with a constant index {wrong[0]}, {low} to {extent - 1} are allowed"
            )


def _emit(builder: Any, indices: Any, use: _Use, message: str) -> Any:
    """A call of a check on the indices, and its result, which is equal to them."""
    from tvm import relax

    check = builder.add_func(_check(indices.ty, use, message), INDEX_CHECK)
    numbers = [each for each in map(plain_extent, use.extents) if not isinstance(each, int)]
    arguments = [indices, *map(relax.prim_value, numbers)]
    return builder.emit(relax.call_tir(check, arguments, out_ty=indices.ty))


def _check(kind: Any, use: _Use, message: str) -> Any:
    """A PrimFunc that copies indices and asserts that all are within bounds.

    It keeps the smallest and the largest, which vectorizes, and asserts once for each extent.

    Args:
        kind: the tensor's type.
        use: its bounds. An extent that is no number is one more parameter.
        message: of the error.
    """
    from tvm import tirx
    from tvm.script.ir_builder import IRBuilder
    from tvm.script.ir_builder import tirx as T

    dtype = str(kind.dtype)
    shape = parameter_shape(kind)
    attributes = {"tirx.noalias": True, "tirx.is_scheduled": True, "op_pattern": OPAQUE}
    with IRBuilder() as builder, T.prim_func(private=True, s_tir=True):
        T.func_attr(attributes)
        given = T.arg("indices", T.buffer(shape, dtype, layout=None))
        extents = [
            each if isinstance(each, int) else T.arg("extent", tirx.Var("extent", "int64"))
            for each in map(plain_extent, use.extents)
        ]
        checked = T.arg("checked", T.buffer(shape, dtype, layout=None))
        with T.sblock("root"):
            for place, extent in enumerate(extents):
                last = [place] if len(extents) > 1 else []
                with T.sblock("check"):
                    _assert_within(given, checked, shape, last, extent, use, message)
    return builder.get()


def _assert_within(
    given: Any,
    checked: Any,
    shape: list[Any],
    last: list[int],
    extent: Any,
    use: _Use,
    message: str,
) -> None:
    """The body of a check for the values with a fixed index, `last`, on the last axis, or all."""
    from tvm import tirx
    from tvm.script.ir_builder import tirx as T

    outer = shape[: len(shape) - len(last)]
    region = tuple(slice(0, each) for each in outer) + tuple(last)
    if region:
        T.reads(given[region])
        T.writes(checked[region])
    low = tirx.IntImm("int64", 0)
    if use.negative:
        low = low - extent
    ends = T.sblock_alloc_buffer([2], "int64", scope="local", layout=None)
    T.buffer_store(ends, low, [0])
    T.buffer_store(ends, low - 1, [1])
    with T.grid(*outer) if outer else nullcontext([]) as variables:
        loops = [variables] if len(outer) == 1 else list(variables)  # TVM unpacks a single one
        place = [*loops, *last]
        value = given[tuple(place)]
        T.buffer_store(checked, value, place)
        wide = value.astype("int64")
        if use.ignored is not None:
            wide = tirx.Select(wide == use.ignored, low, wide)
        T.buffer_store(ends, T.min(ends[0], wide), [0])
        T.buffer_store(ends, T.max(ends[1], wide), [1])
    with T.Assert(tirx.And(ends[0] >= low, ends[1] < extent), message, "IndexError"):
        T.evaluate(0)
