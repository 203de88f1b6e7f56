"""Values that everything reads as bytes once a convolution does.

A residual connection adds float32, and a pooling compares it, before the next convolution makes
bytes of it. Float32 is four times as much to move, and the bytes take a function of their own. Here

- a maximum over windows is taken of bytes. Scaling, rounding and clipping keep the order, so they
  are the same bytes, and the convolution before makes them in its own epilogue;
- an addition reads (byte - zero) * scale, as the convolution does. That is within half a step of
  the float32 number, if calibration saw its range.
"""

from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.relax_passes.fused_padding import read_once
from tvm_practice.tvm_export.relax_passes.requantization import BYTE, operator_name


@dataclass(frozen=True)
class _Bytes:
    """How a variable of float32 is made bytes.

    Attributes:
        steps: the variables on the way, the bytes last.
        inverse, zero: bytes are clip(round(inverse * x) + zero, 0, 255).
        added: whether additions read the variable too.
    """

    steps: tuple[Any, ...]
    inverse: float
    zero: float
    added: bool


def with_bytes_kept(module: Any, *, additions: bool = True) -> Any:
    """A Relax module in which additions and maxima read the bytes that a convolution reads.

    Args:
        module: of integer layers, each value made bytes once; it is left as it was.
        additions: whether additions do, which changes values; else maxima alone.
    """
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    @mutator
    class Keeping(PyExprMutator):  # type: ignore[misc]
        def __init__(self, module: Any):
            super().__init__(module)
            self.found: dict[Any, _Bytes] = {}
            self.once: set[Any] = set()
            self.steps: set[Any] = set()
            self.floats: dict[Any, Any] = {}  # what additions read, by what they read before

        def keep(self, function: Any) -> Any:
            self.once = read_once(function)
            found = _found(function, self.once)
            self.found = {x: each for x, each in found.items() if additions or not each.added}
            self.steps = {step for each in self.found.values() for step in each.steps}
            return self.visit_expr(function)

        def visit_var_binding_(self, binding: Any) -> None:
            if binding.var in self.steps:
                return  # made where the value is
            known = self.found.get(binding.var)
            if known is None:
                super().visit_var_binding_(binding)
                return
            value, emit = binding.value, self.builder_.emit
            if operator_name(value) == "nn.max_pool2d" and value.args[0] in self.once:
                image = _in_bytes(emit, self.visit_expr(value.args[0]), known)
                made = emit(relax.Call(value.op, [image], value.attrs))
            else:
                whole = emit(self.visit_expr(value))
                self.set_var_remap(binding.var, whole)
                made = _in_bytes(emit, whole, known)
            self.set_var_remap(known.steps[-1], made)
            if known.added:
                self.floats[binding.var] = emit(
                    in_float32(emit, made, 1 / known.inverse, known.zero)
                )

        def visit_call_(self, call: Any) -> Any:
            if operator_name(call) != "add" or not any(each in self.floats for each in call.args):
                return super().visit_call_(call)
            floats = self.floats
            return relax.op.add(
                *(floats[each] if each in floats else self.visit_expr(each) for each in call.args)
            )

    keeping = Keeping(module)
    for name, function in module.functions_items():
        if isinstance(function, relax.Function):
            keeping.builder_.update_func(name, keeping.keep(function))
    return relax.transform.DeadCodeElimination()(keeping.builder_.get())


def _found(function: Any, once: set[Any]) -> dict[Any, _Bytes]:
    """The variables that are made bytes and otherwise only added, or maxima."""
    from tvm import relax

    bound = {each.var: each.value for block in function.body.blocks for each in block.bindings}
    readers: dict[Any, list[Any]] = {}
    for block in function.body.blocks:
        if isinstance(block, relax.DataflowBlock):
            for var, users in relax.analysis.udchain(block).items():
                if isinstance(var, relax.DataflowVar):
                    readers[var] = list(users)
    found = {}
    for var, value in bound.items():
        if operator_name(value) != "astype" or str(value.ty.dtype) != "uint8":
            continue
        way = _way(var, bound, once)
        if way is None:
            continue
        x, known = way
        others = [each for each in readers.get(x, ()) if not each.same_as(known.steps[0])]
        if x not in bound or len(readers.get(x, ())) != len(others) + 1:
            continue
        is_maximum = operator_name(bound[x]) == "nn.max_pool2d" and bound[x].args[0] in once
        if (others or is_maximum) and all(
            operator_name(bound.get(each)) == "add" for each in others
        ):
            found[x] = _Bytes(known.steps, known.inverse, known.zero, bool(others))
    return found


def _way(var: Any, bound: dict[Any, Any], once: set[Any]) -> tuple[Any, _Bytes] | None:
    """The variable that bytes are made of, and how; None where they are made otherwise."""
    steps = [var]
    numbers = []
    for name in ("astype", "astype", "clip", "add", "round", "multiply"):
        value = bound.get(steps[-1])
        if value is None or operator_name(value) != name:
            return None
        if name == "clip" and tuple(float(each.value) for each in value.args[1:]) != BYTE:
            return None
        if name in ("add", "multiply"):
            number = _number(value.args[1])
            if number is None:
                return None
            numbers.append(number)
        steps.append(value.args[0])
    x = steps.pop()
    if not all(each in once for each in steps[1:]):
        return None
    zero, inverse = numbers
    return x, _Bytes(tuple(reversed(steps)), inverse, zero, added=False)


def steps_of(
    emit: Any, x: Any, inverse: float, zero: float, limits: tuple[float, float] = BYTE
) -> Any:
    """The variable, of int32, of clip(round(inverse * x) + zero), within limits."""
    from tvm import relax
    from tvm.relax import op

    scaled = emit(op.multiply(x, relax.const(inverse, "float32")))
    moved = emit(op.add(emit(op.round(scaled)), relax.const(zero, "float32")))
    return emit(op.astype(emit(op.clip(moved, *limits)), "int32"))


def _in_bytes(emit: Any, x: Any, known: _Bytes) -> Any:
    from tvm.relax import op

    return emit(op.astype(steps_of(emit, x, known.inverse, known.zero), "uint8"))


def in_float32(emit: Any, made: Any, scale: float, zero: float) -> Any:
    """The numbers that bytes stand for."""
    from tvm import relax
    from tvm.relax import op

    moved = op.subtract(emit(op.astype(made, "float32")), relax.const(zero, "float32"))
    return op.multiply(emit(moved), relax.const(scale, "float32"))


def _number(expression: Any) -> float | None:
    """The value of a constant without axes; None for anything else."""
    import tvm

    if not isinstance(expression, tvm.ir.GenericConst) or expression.value.shape:
        return None
    return float(expression.value.numpy())
