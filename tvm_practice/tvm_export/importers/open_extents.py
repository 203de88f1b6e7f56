"""Export of a model with open extents, for as many of their values as it is valid for.

opened = exported_open(call, checked=True)
opened.program       # its range constraints say for which extents
opened.conditions    # and these, which of them

torch.export makes a program for the example's way through a model and lists what has to hold of
an open extent for that way to be taken: a window of 5 wants 5 elements, a result of extent 1 would
be broadcast, a table of 512 positions ends. It refuses the model unless it can prove that this
holds in all of the range given. So each condition is tried on numbers, and the model exported again
for the range around the example in which all hold. One that no range tells, such as that an extent
is even or below another one, is left to be checked in each call. Conditions of several extents, and
those that decompositions ask for, PyTorch notes and does not heed: they are treated alike.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from unittest import mock

from tvm_practice.tvm_export.calling import Call
from tvm_practice.tvm_export.importers.refusals import Refused
from tvm_practice.tvm_export.run_time_checks.extent_conditions import ExtentCondition
from tvm_practice.tvm_export.run_time_checks.extents import CONDITIONS

# Ranges that are tried: a narrower one may have conditions of its own.
_ATTEMPTS = 8
# What holds up to this extent is taken to hold for all.
_FAR = 1 << 15
_CONDITION = re.compile(
    r"Not all values of (\w+) = (L\[.*?\](?:\[\d+\])*\.size\(\)\[\d+\]) in the specified range "
    r"(?:.*? )?satisfy the generated guard (.*?)\.?$",
    re.MULTILINE,
)
_CONSTANT = re.compile(
    r"You marked (\w+) as dynamic but your code specialized it to be a constant \((\d+)\)"
)
_RELATED = re.compile(r"must always be related to the values of .* by (\w+ = .*)\.$", re.MULTILINE)
_LEAST_SEEN = 2  # of an open extent: PyTorch takes 1 for a constant
_MOST_EXTENTS = 4  # of one condition that is tried on numbers
# Above the least extent, where a condition of several is tried.
_STEPS = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 64, 100, 1023, 1024)
Range = tuple[int, int | None]
"""The least extent, and the largest; None for any."""


@dataclass(frozen=True)
class _Allowed:
    """The extents that a model is for: the range of each, and conditions that no range tells."""

    ranges: Mapping[str, Range]
    conditions: tuple[ExtentCondition, ...] = ()


@dataclass(frozen=True)
class Opened:
    """A model's decomposed program, and what must hold of a call's extents beside its ranges."""

    program: Any
    conditions: tuple[ExtentCondition, ...]


def exported_open(call: Call, *, checked: bool) -> Opened:
    """The model for any value of the extents that have names, or for some.

    Args:
        call: the model; an example of extent 1 is given to PyTorch twice as large.
        checked: whether a call's extents are checked, so that the values may begin above 1, or
            end, or have conditions.

    Raises:
        Refused: the model is for one extent alone, or, unchecked, for some; in a line.
    """
    import torch

    tensors = _plain(call)
    examples = {
        name: int(tensor.shape[axis])
        for tensor, axes in zip(tensors, call.dynamic, strict=False)
        for axis, name in axes.items()
    }
    known = _Allowed(dict.fromkeys(examples, (1, None)))
    is_proved = True
    for _ in range(_ATTEMPTS):
        dimensions = {
            name: torch.export.Dim(name, min=least, max=most)
            for name, (least, most) in known.ranges.items()
        }
        shapes = [{axis: dimensions[name] for axis, name in axes.items()} for axes in call.dynamic]
        try:
            with mock.patch.object(torch, "max_pool1d", _max_pool1d):
                program = torch.export.export(
                    call.module,
                    tensors,
                    # The module takes its tensors as *arguments: one argument, a tuple, to PyTorch.
                    dynamic_shapes=(tuple(shapes),),
                    prefer_deferred_runtime_asserts_over_guards=not is_proved,
                )
        except torch._dynamo.exc.UserError as error:
            said = _conditions_told(str(error))
            narrower = _narrowed(said, known, examples) if said and checked else None
            is_same = narrower is not None and narrower.ranges == known.ranges
            if narrower is None or (is_same and not is_proved):
                if told := _told(str(error)):
                    raise Refused(told) from error
                raise
            # Else all conditions hold or are checked, and PyTorch cannot prove them.
            is_proved = not is_same
            known = narrower
            continue
        program, conditions = _decomposed(program, call)
        narrower = _narrowed(conditions, known, examples)
        if narrower is None or (narrower != known and not checked):
            raise Refused(_only_where(_unmet(conditions, known, examples)))
        if narrower.ranges == known.ranges:
            return Opened(program, narrower.conditions)
        known = narrower
    names = ", ".join(sorted(known.ranges))
    raise Refused(f"no range of {names} was found for which the model is the same")


def _max_pool1d(
    x: Any,
    kernel_size: Any,
    stride: Any = None,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Any:
    """`torch.max_pool1d` by two axes: PyTorch's own takes the example's extent for a constant."""
    import torch

    def pair(other: int, given: Any) -> tuple[int, int]:
        return (other, given[0] if isinstance(given, (tuple, list)) else given)

    window, steps = pair(1, kernel_size), pair(1, stride or kernel_size)
    edges, gaps = pair(0, padding), pair(1, dilation)
    return torch.max_pool2d(x.unsqueeze(-2), window, steps, edges, gaps, ceil_mode).squeeze(-2)


def _plain(call: Call) -> tuple[Any, ...]:
    """The example as PyTorch takes no part of it for constant.

    Open axes of extent 1 are repeated. Inputs that have open axes lie in a row: the artifact takes
    them so, and a view's strides would be conditions of the extents.
    """
    tensors = list(call.tensors)
    for index, axes in enumerate(call.dynamic):
        for axis in axes:
            if tensors[index].shape[axis] == 1:
                tensors[index] = tensors[index].repeat_interleave(2, dim=axis)
        if axes:
            tensors[index] = tensors[index].contiguous()
    return tuple(tensors)


def _decomposed(program: Any, call: Call) -> tuple[Any, list[ExtentCondition]]:
    """A program of decomposed operators, and what PyTorch took for granted of extents.

    PyTorch itself sees to conditions of one extent, but not to those of decompositions.

    Raises Refused where a decomposition is for one extent alone, or for one made of another.
    """
    from torch._guards import detect_fake_mode

    inputs = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
    mode: Any = detect_fake_mode(inputs)
    environment = mode.shape_env
    count = len(environment.guards)
    decomposed = program.run_decompositions()
    symbols = _symbols(inputs[-len(call.dynamic) :], call.dynamic)
    asserted = environment.deferred_runtime_asserts.values()
    guards, put_off = (
        [_condition(environment.replace(each.expr), symbols) for each in some]
        for some in (environment.guards, itertools.chain.from_iterable(asserted))
    )
    own, added = guards[:count] + put_off, guards[count:]
    added += [_condition(each, symbols) for each in _extents_known(decomposed.graph)]
    of_several = [each for each in own if len(each.names) > 1 and each.is_known]
    said = [each for each in of_several + added if each.text != "True"]
    return decomposed, list(dict.fromkeys(said))


def _extents_known(graph: Any) -> Iterator[Any]:
    """That an extent made of open ones is the number that it is for all but the extent 1.

    PyTorch takes min(n, 2) for 2 without a note, as it takes 1 for a constant.
    """
    import sympy  # type: ignore[import-untyped]  # which PyTorch needs
    import torch
    from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

    for node in graph.nodes:
        value = node.meta.get("val")
        for extent in value.shape if isinstance(value, torch.Tensor) else ():
            if isinstance(extent, int) or free_unbacked_symbols(extent):
                continue
            number = known_extent(extent)
            if number is not None:
                yield sympy.Eq(extent.node.expr, number)


def known_extent(extent: Any) -> int | None:
    """What PyTorch's ranges leave of an extent; None if that is more than one number."""
    if isinstance(extent, int):
        return extent
    if (number := extent.node.maybe_as_int()) is not None:
        return int(number)
    bounds = extent.node.shape_env.bound_sympy(extent.node.expr)
    return int(bounds.lower) if bounds.is_singleton() else None


def _symbols(inputs: Sequence[Any], dynamic: Sequence[Mapping[int, str]]) -> dict[str, str]:
    """The name of each open extent by PyTorch's symbol; Refused if it has none of its own left."""
    symbols: dict[str, str] = {}
    for tensor, axes in zip(inputs, dynamic, strict=True):
        for axis, name in axes.items():
            extent = str(tensor.shape[axis])
            if extent.isdecimal():
                raise Refused(_for_one(name, extent))
            if not extent.isidentifier():
                raise Refused(f"the model is only for a {name} that is made of other extents")
            if symbols.setdefault(extent, name) != name:
                raise Refused(f"the model is only for {name} = {symbols[extent]}")
    return symbols


def _condition(guard: Any, symbols: Mapping[str, str]) -> ExtentCondition:
    """A condition of PyTorch's symbols as one of extents."""
    from torch.utils._sympy.printers import PythonPrinter

    text = PythonPrinter().doprint(guard)
    named = {symbol: name for symbol, name in symbols.items() if re.search(rf"\b{symbol}\b", text)}
    return ExtentCondition(tuple(named), text).renamed(named)


def _conditions_told(said: str) -> list[ExtentCondition]:
    """The conditions that torch.export's refusal names; empty if it says anything else."""
    if "but your code specialized" in said or "must always be related" in said:
        return []
    return [
        ExtentCondition((name,), condition.replace(source, name))
        for name, source, condition in _CONDITION.findall(said)
    ]


def _narrowed(
    conditions: Sequence[ExtentCondition], known: _Allowed, examples: Mapping[str, int]
) -> _Allowed | None:
    """What is allowed where conditions hold as well; None if that is not known."""
    ranges, checks = dict(known.ranges), list(known.conditions)
    for condition in conditions:
        names = condition.names
        if not condition.is_known or not ranges.keys() >= set(names):
            return None
        if not condition.holds(*(examples[each] for each in names)):
            return None
        if len(names) == 1:
            [name] = names
            narrower = _holds_within(condition.holds, ranges[name], examples[name])
            least, most = narrower or ranges[name]
            if max(least, _LEAST_SEEN) == most:
                return None  # a model for one extent is no open one
            if narrower:
                ranges[name] = narrower
                continue
        elif len(names) <= _MOST_EXTENTS and _holds_on_grid(
            condition.holds, [ranges[each] for each in names]
        ):
            continue
        checks.append(condition)
    return _Allowed(ranges, tuple(dict.fromkeys(checks)))


def _unmet(
    conditions: Sequence[ExtentCondition], known: _Allowed, examples: Mapping[str, int]
) -> ExtentCondition:
    """The condition of which nothing is known, or the first that does not hold of all allowed."""
    found = [(each, _narrowed([each], known, examples)) for each in conditions]
    unknown = [each for each, narrower in found if narrower is None]
    return unknown[0] if unknown else next(each for each, other in found if other != known)


def _holds_on_grid(holds: Callable[..., bool], ranges: Sequence[Range]) -> bool:
    """Whether a condition of several extents holds for all of some values of each."""
    values = [
        sorted({min(least + step, _FAR if most is None else most) for step in _STEPS})
        for least, most in ranges
    ]
    return all(holds(*each) for each in itertools.product(*values))


def _holds_within(holds: Callable[[int], bool], known: Range, example: int) -> Range | None:
    """The part of a range around an example in which a condition holds.

    None if it fails for the example, or holds above as well, as one for even numbers does.
    """
    least, most = known
    last = _FAR if most is None else most
    below = next((each for each in range(example - 1, least - 1, -1) if not holds(each)), least - 1)
    above = next((each for each in range(example + 1, last + 1) if not holds(each)), None)
    if above is not None and any(map(holds, range(above + 1, last + 1))):
        return None
    if above is None and most is None:
        above = _fails_beyond(holds)
    return below + 1, most if above is None else above - 1


def _fails_beyond(holds: Callable[[int], bool]) -> int | None:
    """Of a condition that holds up to `_FAR`, the first extent where it does not; None if none."""
    low = _FAR
    for high in (1 << bits for bits in range(_FAR.bit_length(), 48)):
        if not holds(high):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if holds(middle) else (low, middle)
            return high
        low = high
    return None


def _told(said: str) -> str:
    """What torch.export found out about extents, in a line; empty for something else."""
    if constant := _CONSTANT.search(said):
        name, value = constant.groups()
        return _for_one(name, value)
    if related := _RELATED.search(said):
        return f"the model is only for {related[1]}"
    for condition in _conditions_told(said):
        return _only_where(condition)
    return ""


def _for_one(name: str, extent: str) -> str:
    return f"the model is for {name} = {extent} alone: give the number in place of the name"


def _only_where(condition: ExtentCondition) -> str:
    names = ", ".join(condition.names)
    return f"the model is not the same for all {names}: only where {condition.text}"


def with_conditions(
    module: Any, conditions: Sequence[ExtentCondition], dynamic: Sequence[Mapping[int, str]]
) -> Any:
    """An imported module that knows what must hold of its open extents; see `run_time_checks`.

    Args:
        module: as imported by way of torch.export; it is left as it was.
        conditions: of extents by a person's names.
        dynamic: of each input the names of its open axes.

    Raises Refused for a condition that TVM has no expression for.
    """
    if not conditions:
        return module
    main = module["main"]
    variables = {
        name: param.ty.shape.values[axis]
        for param, axes in zip(main.params, dynamic, strict=False)
        for axis, name in axes.items()
    }
    written = []
    for each in conditions:
        try:
            each.expression(variables)
        except NotImplementedError as error:
            raise Refused(_only_where(each)) from error
        written.append([[str(variables[name].name), name] for name in each.names] + [each.text])
    changed = module.clone()
    changed["main"] = main.with_attr(CONDITIONS, json.dumps(written))
    return changed
