"""Checks of open extents of which a model takes a range, as part of the compiled model.

    module = with_extent_checks(module, ["audio"])

A convolution without padding has no output for an input below its window, and a table of positions
has an end; TVM's loops would compute their extents all the same, and read what lies beyond. So an
input with such an axis goes through a function that ends the run with a ValueError if it is too
short or too long, and hands it on. Every caller is safe, as with `index_checks`.
"""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

from tvm_practice.tvm_export.index_checks import OPAQUE, parameter_shape, plain_extent

EXTENT_CHECK = "check_extents"
# What TVM's importer writes into main of the ranges that torch.export gives.
_LEAST, _MOST = "tir_var_lower_bound", "tir_var_upper_bound"
Ranges = Mapping[str, Mapping[int, tuple[int, int | None]]]
"""By an input's name and axis the least extent, and the largest; None for any."""


def extent_ranges(module: Any, names: Sequence[str]) -> Ranges:
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
    found: dict[str, dict[int, tuple[int, int | None]]] = {}
    for name, param in zip(names, main.params, strict=False):
        for axis, extent in enumerate(getattr(param.ty.shape, "values", ())):
            symbol = str(getattr(extent, "name", ""))
            if least.get(symbol, 1) > 1 or symbol in most:
                found.setdefault(name, {})[axis] = (least.get(symbol, 1), most.get(symbol))
    return found


def with_extent_checks(module: Any, names: Sequence[str]) -> Any:
    """A Relax module that refuses inputs that are too short or too long at run time.

    Args:
        module: as imported, its main of Relax's operators; it is left as it was.
        names: what main's inputs are called in messages, in their order.
    """
    from tvm import relax
    from tvm.relax.expr_functor import PyExprMutator, mutator

    ranges = extent_ranges(module, names)
    if not ranges:
        return module
    main = module["main"]
    inputs = dict(zip(names, main.params, strict=False))
    pending = _smallest(inputs, ranges)

    @mutator
    class Checking(PyExprMutator):  # type: ignore[misc]
        def visit_dataflow_block_(self, block: Any) -> Any:
            self.builder_._begin_dataflow_block()
            for name, axes in pending.items():  # before all else that reads an extent
                kernel = self.builder_.add_func(_check(inputs[name].ty, name, axes), EXTENT_CHECK)
                call = relax.call_tir(kernel, [inputs[name]], out_ty=inputs[name].ty)
                self.set_var_remap(inputs[name], self.builder_.emit(call))
            pending.clear()
            for binding in block.bindings:
                self.visit_binding(binding)
            return self.builder_._end_block()

    checking = Checking(module)
    # The memory planner would keep the largest extents' memory and give a check no more of it, so
    # that the machine would die of an input beyond it before the check runs.
    checked = checking.visit_expr(main).without_attr(_MOST)
    checking.builder_.update_func(module.get_global_var("main"), checked)
    return checking.builder_.get()


def _smallest(
    inputs: Mapping[str, Any], ranges: Ranges
) -> dict[str, dict[int, tuple[int, int | None]]]:
    """Of each open extent one input that has it, with the fewest elements: a check copies it."""

    def size(name: str) -> int:
        known = [plain_extent(each) for each in inputs[name].ty.shape.values]
        product = 1
        for each in known:
            product *= each if isinstance(each, int) else 1
        return product

    chosen: dict[str, tuple[str, int]] = {}
    for name in sorted(ranges, key=size):
        for axis in ranges[name]:
            chosen.setdefault(str(inputs[name].ty.shape.values[axis].name), (name, axis))
    found: dict[str, dict[int, tuple[int, int | None]]] = {}
    for name, axis in chosen.values():
        found.setdefault(name, {})[axis] = ranges[name][axis]
    return found


def _check(kind: Any, name: str, axes: Mapping[int, tuple[int, int | None]]) -> Any:
    """A PrimFunc that copies an input and asserts that its axes are within their ranges.

    Args:
        kind: the tensor's type.
        name: of the input.
        axes: their ranges.
    """
    from tvm import tirx
    from tvm.script.ir_builder import IRBuilder
    from tvm.script.ir_builder import tirx as T

    shape = parameter_shape(kind)
    region = tuple(slice(0, each) for each in shape)
    attributes = {"tirx.noalias": True, "tirx.is_scheduled": True, "op_pattern": OPAQUE}
    with IRBuilder() as builder, T.prim_func(private=True, s_tir=True):
        T.func_attr(attributes)
        given = T.arg("given", T.buffer(shape, str(kind.dtype), layout=None))
        checked = T.arg("checked", T.buffer(shape, str(kind.dtype), layout=None))
        with T.sblock("root"), T.sblock("check"):
            T.reads(given[region])
            T.writes(checked[region])
            with T.grid(*shape) if shape else nullcontext([]) as variables:
                place = [variables] if len(shape) == 1 else list(variables)
                T.buffer_store(checked, given[tuple(place)], place)
            for axis, (least, most) in axes.items():
                allowed = f"{least} or more" if most is None else f"{least} to {most}"
                message = f"{name}: axis {axis} is out of range, the model takes {allowed}"
                within = shape[axis] >= least
                if most is not None:
                    within = tirx.And(within, shape[axis] <= most)
                with T.Assert(within, message, "ValueError"):
                    T.evaluate(0)
    return builder.get()
