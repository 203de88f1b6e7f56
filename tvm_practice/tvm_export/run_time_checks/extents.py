"""Checks of open extents of which a model does not take all, as part of the compiled model.

    module = with_extent_checks(module, ["audio"])

A convolution without padding has no output for an input below its window, and a table of positions
has an end; TVM's loops would compute their extents all the same, and read what lies beyond. So an
input with such an axis goes through a function that ends the run with a ValueError if it is too
short or too long, and hands it on. So does one whose extents have a condition, such as an even
height or a length below another input's. Every caller is safe, as with `run_time_checks`.
"""

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from tvm_practice.tvm_export.run_time_checks.extent_conditions import ExtentCondition
from tvm_practice.tvm_export.run_time_checks.indices import OPAQUE, parameter_shape, plain_extent

EXTENT_CHECK = "check_extents"
# What TVM's importer writes into main of the ranges that torch.export gives.
_LEAST, _MOST = "tir_var_lower_bound", "tir_var_upper_bound"
# What `importers.open_extents` writes into it: of each condition its variables, names and text.
CONDITIONS = "open_extent_conditions"
Range = tuple[int, int | None]
"""The least extent, and the largest; None for any."""


@dataclass(frozen=True)
class OpenExtents:
    """The extents that a model takes, of the open axes that it does not take all of.

    Attributes:
        ranges: by an input's name and axis.
        conditions: with the extents' names as a person gave them.
        places: of an extent's name, an input and an axis that have it.
    """

    ranges: Mapping[str, Mapping[int, Range]] = field(default_factory=dict)
    conditions: Sequence[ExtentCondition] = ()
    places: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.ranges or self.conditions)

    def allow(self, shapes: Mapping[str, Sequence[int]]) -> bool:
        """Whether the model takes inputs of these shapes, by name."""
        within = all(
            least <= shapes[name][axis] <= (shapes[name][axis] if most is None else most)
            for name, axes in self.ranges.items()
            for axis, (least, most) in axes.items()
        )
        return within and all(
            each.holds(
                *(shapes[name][axis] for name, axis in map(self.places.__getitem__, each.names))
            )
            for each in self.conditions
        )


def open_extents(module: Any, names: Sequence[str]) -> OpenExtents:
    """The extents that a model takes, of the open axes that it does not take all of.

    Args:
        module: as imported by way of torch.export.
        names: of main's inputs, in their order.
    """
    main = module["main"]
    least, most = (
        {str(name): int(each) for name, each in ((main.attrs or {}).get(key) or {}).items()}
        for key in (_LEAST, _MOST)
    )
    ranges: dict[str, dict[int, Range]] = {}
    places: dict[str, tuple[str, int]] = {}
    for name, param in zip(names, main.params, strict=False):
        for axis, extent in enumerate(getattr(param.ty.shape, "values", ())):
            symbol = str(getattr(extent, "name", ""))
            places[symbol] = (name, axis)
            if least.get(symbol, 1) > 1 or symbol in most:
                ranges.setdefault(name, {})[axis] = (least.get(symbol, 1), most.get(symbol))
    written = json.loads(str((main.attrs or {}).get(CONDITIONS) or "[]"))
    conditions = [
        ExtentCondition(tuple(name for _, name in extents), text) for *extents, text in written
    ]
    named = {name: places[symbol] for *extents, _ in written for symbol, name in extents}
    return OpenExtents(ranges, conditions, named)


def with_extent_checks(module: Any, names: Sequence[str]) -> Any:
    """A Relax module that refuses inputs at run time whose extents it was not made for.

    Args:
        module: as imported, its main of Relax's operators; it is left as it was.
        names: what main's inputs are called in messages, in their order.
    """
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    allowed = open_extents(module, names)
    if not allowed:
        return module
    main = module["main"]
    inputs = dict(zip(names, main.params, strict=False))
    pending = _checks(inputs, allowed)

    @mutator
    class Checking(PyExprMutator):  # type: ignore[misc]
        def visit_dataflow_block_(self, block: Any) -> Any:
            self.builder_._begin_dataflow_block()
            for name, check in pending.items():  # before all else that reads an extent
                kernel = _kernel(name, check, inputs, allowed.places)
                params = [inputs[each] for each in (name, *check.others)]
                call = relax.call_tir(
                    self.builder_.add_func(kernel, EXTENT_CHECK), params, out_ty=params[0].ty
                )
                self.set_var_remap(params[0], self.builder_.emit(call))
            pending.clear()
            for binding in block.bindings:
                self.visit_binding(binding)
            return self.builder_._end_block()

    checking = Checking(module)
    # The memory planner would keep the largest extents' memory and give a check no more of it, so
    # that the machine would die of an input beyond it before the check runs.
    checked = checking.visit_expr(main).without_attr(_MOST)
    if CONDITIONS in (main.attrs or {}):
        checked = checked.without_attr(CONDITIONS)
    checking.builder_.update_func(module.get_global_var("main"), checked)
    return checking.builder_.get()


@dataclass
class _Check:
    """What is asserted where an input goes through a check.

    Attributes:
        axes: the input's own, and their ranges.
        conditions: of its extents and the other inputs'.
        others: names of those.
    """

    axes: dict[int, Range] = field(default_factory=dict)
    conditions: list[ExtentCondition] = field(default_factory=list)
    others: list[str] = field(default_factory=list)


def _checks(inputs: Mapping[str, Any], allowed: OpenExtents) -> dict[str, _Check]:
    """By input what is asserted: the smallest of those that have an extent, for it is copied."""

    def size(name: str) -> int:
        known = [plain_extent(each) for each in inputs[name].ty.shape.values]
        return math.prod(each for each in known if isinstance(each, int))

    found: dict[str, _Check] = {}
    checked: set[str] = set()
    for name in sorted(allowed.ranges, key=size):
        for axis, allowed_range in allowed.ranges[name].items():
            symbol = str(inputs[name].ty.shape.values[axis].name)
            if symbol not in checked:
                found.setdefault(name, _Check()).axes[axis] = allowed_range
            checked.add(symbol)
    for condition in allowed.conditions:
        given = dict.fromkeys(allowed.places[each][0] for each in condition.names)
        first, *others = sorted(given, key=size)
        check = found.setdefault(first, _Check())
        check.conditions.append(condition)
        check.others += [each for each in others if each not in check.others]
    return found


def _kernel(
    name: str, check: _Check, inputs: Mapping[str, Any], places: Mapping[str, tuple[str, int]]
) -> Any:
    """A PrimFunc that copies an input and asserts what a check says.

    Args:
        name: of the input. The kernel takes it, the check's other inputs, and the copy.
        check: what is asserted.
        inputs: the model's, by name.
        places: an input and an axis of each extent that a condition is of.
    """
    from tvm import tirx
    from tvm.script.ir_builder import IRBuilder
    from tvm.script.ir_builder import tirx as T

    kind = inputs[name].ty
    shapes = {each: parameter_shape(inputs[each].ty) for each in (name, *check.others)}
    shape = shapes[name]
    region = tuple(slice(0, each) for each in shape)
    attributes = {"tirx.noalias": True, "tirx.is_scheduled": True, "op_pattern": OPAQUE}
    with IRBuilder() as builder, T.prim_func(private=True, s_tir=True):
        T.func_attr(attributes)
        given = T.arg("given", T.buffer(shape, str(kind.dtype), layout=None))
        for each in check.others:
            T.arg(each, T.buffer(shapes[each], str(inputs[each].ty.dtype), layout=None))
        checked = T.arg("checked", T.buffer(shape, str(kind.dtype), layout=None))
        with T.sblock("root"), T.sblock("check"):
            T.reads(given[region])
            T.writes(checked[region])
            with T.grid(*shape) if shape else nullcontext([]) as variables:
                place = [variables] if len(shape) == 1 else list(variables)
                T.buffer_store(checked, given[tuple(place)], place)
            for axis, (least, most) in check.axes.items():
                allowed = f"{least} or more" if most is None else f"{least} to {most}"
                message = f"{name}: axis {axis} is out of range, the model takes {allowed}"
                within = shape[axis] >= least
                if most is not None:
                    within = tirx.And(within, shape[axis] <= most)
                with T.Assert(within, message, "ValueError"):
                    T.evaluate(0)
            for condition in check.conditions:
                at = {each: places[each] for each in condition.names}
                extents = {each: shapes[own][axis] for each, (own, axis) in at.items()}
                told = "; ".join(
                    f"{each}: axis {axis} of {own}" for each, (own, axis) in at.items()
                )
                message = f"the model is only for extents where {condition.text} ({told})"
                with T.Assert(condition.expression(extents), message, "ValueError"):
                    T.evaluate(0)
    return builder.get()
