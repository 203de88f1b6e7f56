"""Functions that end in a padding: the rule writes into the padded output itself.

A convolution that wants its input padded gets it from the function before, which writes what it
computes to the middle of its output, and the constant around it: nothing is copied. A rule
schedules the function as if it ended before the padding.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.rules.cpu.loops import (
    SPATIAL,
    Cpu,
    constant,
    kind_of,
    loads,
    nest,
    only_block,
    stages,
    with_stages,
)

Rule = Callable[[Any, Cpu], Any]


@dataclass(frozen=True)
class _Padding:
    """The last stage of a function: `inner` in the middle of `output`, `value` around it.

    Attributes:
        inner, output: buffers.
        before: by axis, how many elements of the output lie before the first of `inner`.
        value: the constant.
    """

    inner: Any
    output: Any
    before: Sequence[int]
    value: Any


def padded(rule: Rule) -> Rule:
    """A rule that takes a function without the padding it ends in, and puts that back."""

    def scheduled(func: Any, cpu: Cpu) -> Any:
        import tvm

        padding = _find_padding(func)
        if padding is None:
            return rule(func, cpu)
        schedule = rule(_without(func, padding), cpu)
        return tvm.s_tir.Schedule(_put_back(schedule.mod["main"], func, padding))

    return scheduled


def _find_padding(func: Any) -> _Padding | None:
    """The padding that a function ends in; None if it ends in anything else."""
    import tvm
    from tvm import tirx

    *earlier, last = stages(func)
    block = only_block(last)
    if not earlier or block is None or not isinstance(block.body, tirx.BufferStore):
        return None
    store, variables = block.body, [each.var for each in block.iter_vars]
    if str(getattr(getattr(store.value, "op", None), "name", "")) != "prim.if_then_else":
        return None
    inside, load, value = store.value.args
    known = isinstance(value, tirx.FloatImm | tirx.IntImm)
    if not known or [load] != loads(load) or loads(inside) or store.buffer not in func.params:
        return None
    if any(kind_of(each) != SPATIAL for each in block.iter_vars):
        return None
    inner, written = load.source, list(store.indices)
    local = any(inner.same_as(each) for each in func.body.block.alloc_buffers)
    plain = len(written) == len(variables) == len(load.indices)
    if not (local and plain) or any(
        not a.same_as(b) for a, b in zip(written, variables, strict=True)
    ):
        return None
    if any(inner.same_as(each.source) for stage in earlier for each in _read_after(stage, inner)):
        return None
    analyzer = tvm.sym.Analyzer()
    moved = [
        constant(analyzer.simplify(var - index))
        for var, index in zip(variables, load.indices, strict=True)
    ]
    padding = _Padding(inner, store.buffer, [each or 0 for each in moved], value)
    return padding if None not in moved and _is_around(inside, variables, padding) else None


def _read_after(stage: Any, buffer: Any) -> list[Any]:
    """The loads of a buffer in a stage that does not write it."""
    block = only_block(stage)
    if block is not None and any(each.source.same_as(buffer) for each in block.writes):
        return []
    return [each for each in loads(stage) if each.source.same_as(buffer)]


def _is_around(inside: Any, variables: list[Any], padding: _Padding) -> bool:
    """Whether `inside` holds for the elements of the inner buffer, and for no other element."""
    import tvm
    from tvm import tirx

    inner = [constant(each) for each in padding.inner.shape]
    outer = [constant(each) for each in padding.output.shape]
    if None in inner or None in outer:
        return False
    middle = [(low, low + (size or 0)) for low, size in zip(padding.before, inner, strict=True)]
    whole = [(0, size or 0) for size in outer]
    if any(low < 0 or high > end for (low, high), (_, end) in zip(middle, whole, strict=True)):
        return False

    def always(condition: Any, ranges: Sequence[tuple[int, int]]) -> bool:
        analyzer = tvm.sym.Analyzer()
        for var, (low, high) in zip(variables, ranges, strict=True):
            dtype = str(var.ty.dtype)
            start, extent = tirx.const(low, dtype), tirx.const(high - low, dtype)
            analyzer.bind(var, tvm.ir.Range.from_min_extent(start, extent))
        return bool(analyzer.can_prove(condition))

    if not always(inside, middle):
        return False
    for axis, ((low, high), (_, end)) in enumerate(zip(middle, whole, strict=True)):
        for span in ((0, low), (high, end)):
            around = [*whole[:axis], span, *whole[axis + 1 :]]
            if span[0] < span[1] and not always(tirx.Not(inside), around):
                return False
    return True


def _without(func: Any, padding: _Padding) -> Any:
    """The function that writes the inner buffer, without the padding."""
    import tvm

    root = func.body.block
    kept = [each for each in root.alloc_buffers if not each.same_as(padding.inner)]
    body = with_stages(func, stages(func)[:-1], kept).body
    params = [padding.inner if each.same_as(padding.output) else each for each in func.params]
    return tvm.tirx.PrimFunc(params, body, func.ret_type, func.attrs)


def _put_back(scheduled: Any, func: Any, padding: _Padding) -> Any:
    """A scheduled function that writes the padded output in place of the inner buffer."""
    position = next(
        number for number, each in enumerate(func.params) if each.same_as(padding.output)
    )
    inner = scheduled.params[position]

    def at(indices: Sequence[Any]) -> list[Any]:
        return [
            each + low if low else each for each, low in zip(indices, padding.before, strict=True)
        ]

    made = written_to(scheduled, inner, padding.output, at)
    statements = [*stages(made), *_edges(padding, [constant(each) for each in inner.shape])]
    return with_stages(made, statements, made.body.block.alloc_buffers)


def written_to(
    scheduled: Any, inner: Any, output: Any, at: Callable[[Sequence[Any]], list[Any]]
) -> Any:
    """A scheduled function that writes `output` in place of `inner`, which is a parameter.

    Args:
        scheduled: a PrimFunc.
        inner, output: buffers.
        at: the indices in `output` of an element of `inner`. Where the two have as many axes it
            moves indices by constants.
    """
    import tvm
    import tvm_ffi
    from tvm import tirx
    from tvm.ir.expr import TensorLoad, TensorRegion

    def load(each: Any) -> Any:
        return tirx.BufferLoad(output, at(each.indices)) if each.source.same_as(inner) else each

    def store(each: Any) -> Any:
        if not each.buffer.same_as(inner):
            return each
        return tirx.BufferStore(output, each.value, at(each.indices))

    def region(each: Any) -> Any:
        if not each.source.same_as(inner):
            return each
        if len(inner.shape) != len(output.shape):  # a box of elements is no box there
            zero = tirx.const(0, str(output.shape[0].ty))
            return tirx.BufferRegion(
                output, [tvm.ir.Range.from_min_extent(zero, extent) for extent in output.shape]
            )
        starts = at([span.min for span in each.region])
        spans = [
            tvm.ir.Range.from_min_extent(start, span.extent)
            for start, span in zip(starts, each.region, strict=True)
        ]
        return tirx.BufferRegion(output, spans)

    body = scheduled.body
    for change in ((TensorLoad, load), (tirx.BufferStore, store), (TensorRegion, region)):
        body = tvm_ffi.structural_map(body, change, order="post")
    params = [output if each.same_as(inner) else each for each in scheduled.params]
    return tirx.PrimFunc(params, body, scheduled.ret_type, scheduled.attrs)


def _edges(padding: _Padding, inner: Sequence[int | None]) -> list[Any]:
    """Stages that write the constant around the inner buffer."""
    from tvm import tirx

    made = []
    for axis, (low, size) in enumerate(zip(padding.before, inner, strict=True)):
        outer = constant(padding.output.shape[axis]) or 0
        for start, end in ((0, low), (low + (size or 0), outer)):
            if start == end:
                continue
            axes = [(key, extent, SPATIAL) for key, extent in enumerate(padding.output.shape)]
            dtype = str(padding.output.shape[axis].ty)
            axes[axis] = (axis, tirx.const(end - start, dtype), SPATIAL)

            def store(values: dict[Any, Any], axis: int = axis, start: int = start) -> Any:
                at = [values[key] + (start if key == axis else 0) for key in range(len(values))]
                return tirx.BufferStore(padding.output, padding.value, at)

            made.append(nest(f"edge_{axis}_{start}", axes, store))
    return made
