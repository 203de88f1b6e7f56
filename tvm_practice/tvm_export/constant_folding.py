"""Constants computed before TVM's FoldConstant, which compiles a kernel for each by itself.

    passes = tvm.ir.transform.Sequential([known_constants(), relax.transform.FoldConstant()])

Numpy computes operators of which it makes the same bits: those that move elements, and arithmetic
whose single results IEEE 754 defines. Functions are compiled together.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

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
            shape = _extents(call)
            call = self.visit_expr_post_order(call)
            name = str(getattr(call.op, "name", ""))
            if shape is None or name not in (*_ARITHMETIC, *_MOVING):
                return call
            values = [self._value(each) for each in _operands(call)]
            known = _FLOATS if name in _ARITHMETIC else _MOVED
            if any(each is None or str(each.dtype) not in known for each in values):
                return call
            found = _computed(call, values)
            if found is None or found.size != math.prod(shape):
                return call
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

    folding = Folding(module)
    for name, function in module.functions_items():
        if isinstance(function, relax.Function):
            folding.builder_.update_func(name, folding.visit_expr(function))
    return folding.builder_.get()


def _extents(call: Any) -> list[int] | None:
    """The shape of a call's result, if it is one tensor and all of its extents are known."""
    shape = getattr(getattr(call, "ty", None), "shape", None)
    extents = [None] if shape is None else [getattr(each, "value", None) for each in shape]
    return None if None in extents else [int(each) for each in extents if each is not None]


def _operands(call: Any) -> list[Any]:
    """The tensors that a call of a known operator takes."""
    name = str(call.op.name)
    if name in _OF_SEVERAL:
        return list(getattr(call.args[0], "fields", [call.args[0]]))
    return list(call.args[: 2 if name in (*_ARITHMETIC, "relax.take") else 1])


def _computed(call: Any, values: list[Any]) -> Any | None:
    """What a call makes of its operands, perhaps in another shape; None where that is not sure."""
    name = str(call.op.name)
    if name in _ARITHMETIC:
        with np.errstate(all="ignore"):
            return _ARITHMETIC[name](*values)
    return _MOVING[name](call, values)


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


_MOVING: Mapping[str, Callable[[Any, list[Any]], Any | None]] = {
    "relax.permute_dims": _permuted,
    **dict.fromkeys(("relax.reshape", "relax.expand_dims", "relax.squeeze"), _as_it_is),
    "relax.strided_slice": _sliced,
    "relax.take": _taken,
    "relax.concat": _joined,
    "relax.stack": _stacked,
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
            name, kind = _runs_on_constants(call), call.ty
            if name is None:
                return self.visit_expr_post_order(call)
            result = tvm.runtime.empty([each.value for each in kind.shape], str(kind.dtype))
            compiled[name](*(each.value for each in call.args[1].fields), result)
            return relax.const(result)

    running = Running(module)
    for name, function in module.functions_items():
        if isinstance(function, relax.Function):
            running.builder_.update_func(name, running.visit_expr(function))
    return running.builder_.get()


def _runs_on_constants(expression: Any) -> str | None:
    """The name of the function that a call gives nothing but constants, and that makes a tensor."""
    import tvm
    from tvm import relax

    if not isinstance(expression, relax.Call) or len(expression.args) != 2:
        return None
    if str(getattr(expression.op, "name", "")) != "relax.call_tir":
        return None
    given = getattr(expression.args[1], "fields", ())
    if not given or not all(isinstance(each, tvm.ir.GenericConst) for each in given):
        return None
    return str(expression.args[0].name_hint) if _extents(expression) is not None else None
