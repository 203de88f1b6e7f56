"""Divisors that are whole numbers, checked as part of the compiled model.

    module = with_division_checks(module, ["x", "y"])

A processor ends the process where a whole number is divided by 0, or the least number of a type by
-1. Before each such division a function is inserted that looks at the divisors, ends the run with a
ZeroDivisionError if one is 0, and hands them on; the least number over -1 is itself, as in PyTorch.
"""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from tvm_practice.tvm_export.run_time_checks.indices import OPAQUE, parameter_shape, source_name

DIVISION_CHECK = "check_divisors"
ERROR = "ZeroDivisionError"  # what TVM calls it


class DividedByZero(ZeroDivisionError, RuntimeError):
    """As Python says it, and as PyTorch does."""


_DIVISIONS = {"relax.divide", "relax.floor_divide", "relax.floor_mod", "relax.mod"}


def with_division_checks(module: Any, names: Sequence[str]) -> Any:
    """A Relax module that refuses to divide whole numbers by 0 at run time.

    Args:
        module: as imported, its main of Relax's operators; it is left as it was.
        names: what main's inputs are called in messages, in their order.
    """
    from tvm import relax
    from tvm.ir import Call
    from tvm.relax.expr_functor import PyExprMutator, mutator

    main = module["main"]
    found: list[Any] = []
    relax.analysis.post_order_visit(
        main, lambda each: found.append(each) if _divides(each) else None
    )
    if not found:
        return module
    inputs = dict(zip(main.params, names, strict=True))
    checked: dict[Any, Any] = {}

    @mutator
    class Checking(PyExprMutator):  # type: ignore[misc]
        def visit_call_(self, call: Call) -> Any:
            divides = _divides(call)
            call = self.visit_expr_post_order(call)
            if not divides:
                return call
            dividend, divisor = call.args
            if divisor not in checked:
                name = source_name(divisor, self.lookup_binding, inputs)
                who = name or "divisors that the model computes"
                kernel = _check(divisor.ty, f"{who}: a whole number is divided by 0")
                check = self.builder_.add_func(kernel, DIVISION_CHECK)
                checked[divisor] = self.builder_.emit(
                    relax.call_tir(check, [divisor], out_ty=divisor.ty)
                )
            safe = _but_for_overflow(self.builder_, dividend, checked[divisor])
            return Call(call.op, [dividend, safe], call.attrs, call.ty_args)

    checking = Checking(module)
    checking.builder_.update_func(module.get_global_var("main"), checking.visit_expr(main))
    return checking.builder_.get()


def _divides(call: Any) -> bool:
    """Whether an expression divides by whole numbers that are not known yet."""
    from tvm.ir import GenericConst

    if str(getattr(getattr(call, "op", None), "name", "")) not in _DIVISIONS:
        return False
    divisor = call.args[1]
    kind = str(getattr(divisor.ty, "dtype", ""))
    return kind.startswith(("int", "uint")) and not isinstance(divisor, GenericConst)


def _but_for_overflow(builder: Any, dividend: Any, divisor: Any) -> Any:
    """The divisor, 1 instead of -1 where the dividend is the least number."""
    import numpy as np
    from tvm import relax

    dtype = str(divisor.ty.dtype)
    if dtype.startswith("uint") or str(dividend.ty.dtype) != dtype:
        return divisor

    def number(value: int) -> Any:
        return relax.const(value, dtype)

    # By bits: TVM takes it for impossible that an int32 is the least one.
    least = builder.emit(relax.op.bitwise_xor(dividend, number(int(np.iinfo(dtype).min))))
    minus_1 = builder.emit(relax.op.bitwise_xor(divisor, number(-1)))
    bits = builder.emit(relax.op.bitwise_or(least, minus_1))
    overflows = builder.emit(relax.op.equal(bits, number(0)))
    return builder.emit(relax.op.where(overflows, number(1), divisor))


def _check(kind: Any, message: str) -> Any:
    """A PrimFunc that copies divisors and asserts that none is 0.

    Args:
        kind: the tensor's type.
        message: of the error.
    """
    from tvm import tirx
    from tvm.script.ir_builder import IRBuilder
    from tvm.script.ir_builder import tirx as T

    dtype = str(kind.dtype)
    shape = parameter_shape(kind)
    region = tuple(slice(0, each) for each in shape)
    attributes = {"tirx.noalias": True, "tirx.is_scheduled": True, "op_pattern": OPAQUE}
    with IRBuilder() as builder, T.prim_func(private=True, s_tir=True):
        T.func_attr(attributes)
        given = T.arg("divisors", T.buffer(shape, dtype, layout=None))
        checked = T.arg("checked", T.buffer(shape, dtype, layout=None))
        with T.sblock("root"), T.sblock("check"):
            if region:
                T.reads(given[region])
                T.writes(checked[region])
            zeros = T.sblock_alloc_buffer([1], "int64", scope="local", layout=None)
            T.buffer_store(zeros, tirx.IntImm("int64", 0), [0])
            with T.grid(*shape) if shape else nullcontext([]) as variables:
                place = [variables] if len(shape) == 1 else list(variables)
                value = given[tuple(place)]
                T.buffer_store(checked, value, place)
                is_zero = (value == tirx.const(0, dtype)).astype("int64")
                T.buffer_store(zeros, T.max(zeros[0], is_zero), [0])
            with T.Assert(zeros[0] == 0, message, ERROR):
                T.evaluate(0)
    return builder.get()
