"""Constants computed without TVM's FoldConstant.

    folded = folded_constants()(module)

FoldConstant legalizes every operator of a model before it looks at its arguments, and compiles a
kernel for each that it computes. Numpy computes operators of which it makes the same bits: those
that move elements, and arithmetic whose single results IEEE 754 defines. The others that depend on
constants alone are legalized in a module of their own, and its functions compiled together.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tvm_practice.tvm_export.rewriting import rewritten

_FLOATS = ("float32", "float64")
_MOVED = (*_FLOATS, "float16", "int8", "int16", "int32", "int64", "uint8", "bool")
_ARITHMETIC: Mapping[str, Callable[..., Any]] = {
    "relax.add": np.add,
    "relax.subtract": np.subtract,
    "relax.multiply": np.multiply,
    "relax.divide": np.divide,
    "relax.sqrt": np.sqrt,
    "relax.negative": np.negative,
}
# Of whole numbers and of truths alone: of floats, NaN would be another question.
_COMPARING: Mapping[str, Callable[..., Any]] = {
    "relax.less": np.less,
    "relax.less_equal": np.less_equal,
    "relax.greater": np.greater,
    "relax.greater_equal": np.greater_equal,
    "relax.equal": np.equal,
    "relax.not_equal": np.not_equal,
    "relax.bitwise_and": np.bitwise_and,
    "relax.bitwise_or": np.bitwise_or,
    "relax.bitwise_xor": np.bitwise_xor,
}
_LOGIC: Mapping[str, Callable[..., Any]] = {
    "relax.logical_and": np.logical_and,
    "relax.logical_or": np.logical_or,
    "relax.logical_xor": np.logical_xor,
    "relax.logical_not": np.logical_not,
}
_WHOLE = ("int8", "int16", "int32", "int64", "uint8")
_WRAPPING = ("relax.add", "relax.subtract", "relax.multiply", "relax.negative")
_SPREAD = 1 << 12  # elements that one constant is repeated to at most


def known_constants() -> Any:
    """A pass that binds results of constants alone to constants, as far as numpy computes them."""
    import tvm

    made: Any = tvm.transform.module_pass(
        lambda module, _: _with_constants_known(module), opt_level=0, name="KnownConstants"
    )
    return made


def _with_constants_known(module: Any) -> Any:
    import tvm
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Folding(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            visited = self.visit_expr_post_order(call)
            name = str(getattr(visited.op, "name", ""))
            if not _is_known(name):
                return visited
            values = []
            for each in _operands(visited):
                if (value := self._value(each)) is None:
                    return visited
                values.append(value)
            shape = constant_extents(call)
            if shape is None or not _suits(name, values):
                return visited
            found = _computed(visited, values)
            if found is None or found.size != math.prod(shape):
                return visited
            found = np.ascontiguousarray(found).reshape(shape)
            return relax.const(found, str(found.dtype))

        def _value(self, expression: Any) -> np.ndarray | None:
            if isinstance(expression, relax.Var):
                expression = self.builder_.lookup_binding(expression)
            if isinstance(getattr(expression, "value", None), float):  # as an epsilon is given
                return np.asarray(expression.value, str(expression.ty))
            if not isinstance(expression, tvm.ir.GenericConst):
                return None
            value: np.ndarray = expression.value.numpy()
            return value

    return rewritten(module, Folding(module))


def folded_constants() -> Any:
    """A pass that binds the results of constants alone to constants, as FoldConstant would."""
    import tvm

    made: Any = tvm.transform.module_pass(
        lambda module, _: _with_rest_folded(_with_constants_known(module)),
        opt_level=0,
        name="FoldedConstants",
    )
    return made


def _with_rest_folded(module: Any) -> Any:
    """The module with what numpy does not compute.

    TVM's pass sees to graphs with branches, and to operators with several results.
    """
    import tvm
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    functions = [each for _, each in module.functions_items() if isinstance(each, relax.Function)]
    if len(functions) != 1 or _has_branches(functions[0]):
        return relax.transform.FoldConstant()(module)
    bindings = _of_constants(functions[0])
    known = {}
    for binding, value in zip(bindings, _values_of(bindings), strict=True):
        if value is not None:
            known[binding.value] = relax.const(value)

    @mutator
    class Replacing(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            return known[call] if call in known else self.visit_expr_post_order(call)

        def visit_dataflow_var_(self, var: Any) -> Any:
            """The constant that a variable is bound to, in its place."""
            var = super().visit_dataflow_var_(var)
            bound = self.builder_.lookup_binding(var)
            return bound if isinstance(bound, tvm.ir.GenericConst) else var

    folded = rewritten(module, Replacing(module))
    return folded if len(known) == len(bindings) else relax.transform.FoldConstant()(folded)


def _values_of(bindings: Sequence[Any]) -> list[Any]:
    """The tensor of each of the bindings of `_of_constants`; None where TVM has no loops for it."""
    import tvm
    from tvm import relax

    if not bindings:
        return []
    module = relax.transform.LegalizeOps()(_module_of(bindings))
    functions = {
        str(name.name_hint): function.with_attr("global_symbol", str(name.name_hint))
        for name, function in module.functions_items()
        if isinstance(function, tvm.tirx.PrimFunc)
    }
    compiled = tvm.compile(tvm.IRModule(functions), "llvm") if functions else {}
    values: dict[Any, Any] = {}
    for block in module["main"].body.blocks:
        for binding in block.bindings:
            if (called := _function_call(binding.value)) is None:
                continue
            name, given = called
            known = [getattr(each, "value", values.get(each)) for each in given]
            if all(each is not None for each in known):
                values[binding.var] = _result(compiled[name], known, binding.value)
    return [values.get(each) for each in binding.value.fields]  # of the last, which is a tuple


def _has_branches(function: Any) -> bool:
    from tvm import relax

    found = []
    relax.analysis.post_order_visit(
        function, lambda each: found.append(each) if isinstance(each, relax.If) else None
    )
    return bool(found)


def _of_constants(function: Any) -> list[Any]:
    """A function's bindings of calls of operators whose tensors depend on constants alone."""
    import tvm
    from tvm import relax

    found: dict[Any, Any] = {}

    def tensors(expression: Any) -> list[Any]:
        if isinstance(expression, relax.Tuple):
            return [each for field in expression.fields for each in tensors(field)]
        return [expression] if isinstance(expression, (relax.Var, tvm.ir.GenericConst)) else []

    for block in function.body.blocks:
        for binding in block.bindings:
            call = getattr(binding, "value", None)
            if not isinstance(call, relax.Call) or not isinstance(call.op, tvm.ir.Op):
                continue
            given = [each for argument in call.args for each in tensors(argument)]
            if given and all(not isinstance(each, relax.Var) or each in found for each in given):
                found[binding.var] = binding
    return list(found.values())


def _module_of(bindings: Sequence[Any]) -> Any:
    """A module whose main has these bindings alone, and returns all of them."""
    from tvm import relax

    builder = relax.BlockBuilder()
    made: dict[Any, Any] = {}

    def renamed(expression: Any) -> Any:
        if isinstance(expression, relax.Tuple):
            return relax.Tuple([renamed(each) for each in expression.fields])
        return made.get(expression, expression) if isinstance(expression, relax.Var) else expression

    with builder.function("main", []):
        with builder.dataflow():
            for binding in bindings:
                call = binding.value
                given = [renamed(each) for each in call.args]
                call = relax.Call(call.op, given, call.attrs, call.ty_args)
                made[binding.var] = builder.emit(call)
            result = builder.emit_output(relax.Tuple(list(made.values())))
        builder.emit_func_output(result)
    return builder.get()


def constant_extents(value: Any) -> list[int] | None:
    """The shape of a Relax value, if it is one tensor and all of its extents are known."""
    shape = getattr(getattr(value, "ty", None), "shape", None)
    extents = [None] if shape is None else [getattr(each, "value", None) for each in shape]
    return None if None in extents else [int(each) for each in extents if each is not None]


def _is_known(name: str) -> bool:
    return any(name in each for each in (_ARITHMETIC, _COMPARING, _LOGIC, _MOVING))


def _operands(call: Any) -> list[Any]:
    """The tensors that a call of a known operator takes."""
    name = str(call.op.name)
    if name in _OF_SEVERAL:
        return list(getattr(call.args[0], "fields", [call.args[0]]))
    if name == "relax.full":
        return [call.args[1]]
    counts = {"relax.take": 2, "relax.gather_elements": 2, "relax.where": 3, "relax.arange": 0}
    return list(call.args[: counts.get(name, 1 if name in _MOVING else 2)])


def _suits(name: str, values: list[np.ndarray]) -> bool:
    """Whether numpy and TVM make the same of operands of these types."""
    kinds = {str(each.dtype) for each in values}
    if name in _LOGIC:
        return kinds == {"bool"}
    if name in _COMPARING:
        return len(kinds) == 1 and kinds <= {*_WHOLE, "bool"}
    if name in _ARITHMETIC:
        whole = len(kinds) == 1 and kinds <= {*_WHOLE} and name in _WRAPPING
        return whole or kinds <= {*_FLOATS}
    return kinds <= {*_MOVED}


def _computed(call: Any, values: list[Any]) -> Any | None:
    """What a call makes of its operands, perhaps in another shape; None where that is not sure."""
    name = str(call.op.name)
    if name in _MOVING:
        return _MOVING[name](call, values)
    compute = {**_ARITHMETIC, **_COMPARING, **_LOGIC}[name]
    with np.errstate(all="ignore"):
        return compute(*values)


def _as_it_is(_: Any, values: list[Any]) -> Any:
    return values[0]


def _permuted(call: Any, values: list[Any]) -> Any:
    axes = call.attrs.axes
    return values[0].transpose(None if axes is None else [int(each) for each in axes])


def _sliced(call: Any, values: list[Any]) -> Any | None:
    """A slice, from begin to end of each axis as numpy has them."""
    numbers = [each for each in map(_numbers, call.args[1:]) if each is not None]
    if len(numbers) != len(call.args) - 1 or len(numbers) not in (3, 4):
        return None
    axes, begin, end, *rest = numbers
    steps = rest[0] if rest else [1] * len(axes)
    taken = [slice(None)] * values[0].ndim
    for axis, first, last, step in zip(axes, begin, end, steps, strict=True):
        if step < 1:
            return None
        taken[axis] = slice(first, last, step)
    return values[0][tuple(taken)]


def _numbers(expression: Any) -> list[int] | None:
    """The whole numbers of a tuple; None for anything else."""
    fields = getattr(expression, "fields", None)
    if fields is None:
        return None
    values = [getattr(each, "value", None) for each in fields]
    found = [int(each) for each in values if isinstance(each, int)]
    return found if len(found) == len(values) else None


def _taken(call: Any, values: list[Any]) -> Any | None:
    """Elements at indices, none of which is beyond the ends or counts from the last."""
    data, indices = values
    axis = call.attrs.axis
    size = data.size if axis is None else data.shape[int(axis)]
    if indices.dtype.kind not in "iu" or not ((indices >= 0) & (indices < size)).all():
        return None
    return np.take(data, indices, None if axis is None else int(axis))


def _joined(call: Any, values: list[Any]) -> Any:
    axis = call.attrs.axis
    flat = [each.reshape(-1) for each in values]
    return np.concatenate(flat if axis is None else values, 0 if axis is None else int(axis))


def _stacked(call: Any, values: list[Any]) -> Any:
    return np.stack(values, 0 if call.attrs.axis is None else int(call.attrs.axis))


def _chosen(_: Any, values: list[Any]) -> Any | None:
    condition, one, other = values
    if str(condition.dtype) != "bool" or one.dtype != other.dtype:
        return None
    return np.where(condition, one, other)


def _repeated(call: Any, values: list[Any]) -> Any | None:
    extents = constant_extents(call)
    if extents is None or math.prod(extents) > _SPREAD:
        return None
    return np.broadcast_to(values[0], extents)


def _converted(call: Any, values: list[Any]) -> Any | None:
    """Another type, where it holds every number as it is."""
    kind = str(call.ty.dtype)
    if kind not in _MOVED:
        return None
    with np.errstate(all="ignore"):
        found = values[0].astype(kind)
        return found if (found.astype(values[0].dtype) == values[0]).all() else None


def _counted(call: Any, _: list[Any]) -> Any | None:
    """Whole numbers from a start to an end."""
    bounds = [getattr(each, "value", None) for each in call.args]
    found = [int(each) for each in bounds if isinstance(each, int)]
    kind = str(call.ty.dtype)
    if kind not in _WHOLE or len(found) < len(bounds):
        return None
    start, end, step = found
    return np.arange(start, end, step, dtype=kind)


def _filled(call: Any, values: list[Any]) -> Any | None:
    extents = constant_extents(call)
    small = extents is not None and math.prod(extents) <= _SPREAD
    return np.full(extents, values[0], values[0].dtype) if small else None


def _gathered(call: Any, values: list[Any]) -> Any | None:
    """Elements along an axis, none of which is beyond the ends."""
    data, indices = values
    axis = int(call.attrs.axis)
    others = [
        one == other
        for number, (one, other) in enumerate(zip(data.shape, indices.shape, strict=True))
        if number != axis % data.ndim
    ]
    inside = ((indices >= 0) & (indices < data.shape[axis])).all()
    return np.take_along_axis(data, indices, axis) if inside and all(others) else None


_MOVING: Mapping[str, Callable[[Any, list[Any]], Any | None]] = {
    "relax.permute_dims": _permuted,
    **dict.fromkeys(("relax.reshape", "relax.expand_dims", "relax.squeeze"), _as_it_is),
    "relax.strided_slice": _sliced,
    "relax.take": _taken,
    "relax.concat": _joined,
    "relax.stack": _stacked,
    "relax.where": _chosen,
    "relax.broadcast_to": _repeated,
    "relax.astype": _converted,
    "relax.arange": _counted,
    "relax.full": _filled,
    "relax.gather_elements": _gathered,
}
_OF_SEVERAL = ("relax.concat", "relax.stack")


def computed_constants() -> Any:
    """A pass that runs the functions whose arguments are constants: all compiled at once.

    They are not optimized, because each runs once.
    """
    import tvm

    made: Any = tvm.transform.module_pass(
        lambda module, _: _with_functions_run(module), opt_level=0, name="ComputedConstants"
    )
    return made


def _with_functions_run(module: Any) -> Any:
    import tvm
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    called: dict[str, Any] = {}

    def look(each: Any) -> None:
        if (name := _runs_on_constants(each)) is not None:
            called[name] = module[name].with_attr("global_symbol", name)

    for _, function in module.functions_items():
        if isinstance(function, relax.Function):
            relax.analysis.post_order_visit(function, look)
    if not called:
        return module
    target = tvm.target.Target({"kind": "llvm", "opt-level": 0})
    compiled = tvm.compile(tvm.IRModule(called), target)

    @mutator
    class Running(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Any) -> Any:
            name = _runs_on_constants(call)
            if name is None:
                return self.visit_expr_post_order(call)
            given = [each.value for each in call.args[1].fields]
            return relax.const(_result(compiled[name], given, call))

    return rewritten(module, Running(module))


def _result(function: Any, given: Sequence[Any], call: Any) -> Any:
    """The tensor that a compiled function makes in place of a call of it."""
    import tvm

    made = tvm.runtime.empty([each.value for each in call.ty.shape], str(call.ty.dtype))
    function(*given, made)
    return made


def _runs_on_constants(expression: Any) -> str | None:
    """The name of the function that a call gives nothing but constants, and that makes a tensor."""
    import tvm

    name, given = _function_call(expression) or (None, ())
    are_constants = all(isinstance(each, tvm.ir.GenericConst) for each in given)
    return name if given and are_constants else None


def _function_call(expression: Any) -> tuple[str, Sequence[Any]] | None:
    """The name and tensors of a call of a function that makes one tensor; None if it is another."""
    from tvm import relax

    if not isinstance(expression, relax.Call) or len(expression.args) != 2:
        return None
    if str(getattr(expression.op, "name", "")) != "relax.call_tir":
        return None
    if constant_extents(expression) is None:
        return None
    return str(expression.args[0].name_hint), getattr(expression.args[1], "fields", ())
