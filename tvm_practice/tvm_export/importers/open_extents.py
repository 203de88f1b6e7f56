"""Export of a model with open extents, for as many of their values as it is valid for.

program = exported_open(call, any_range=True)    # its range constraints say for which

torch.export makes a program for the example's way through a model and lists what has to hold of
an open extent for that way to be taken: a window of 5 wants 5 elements, a result of extent 1 would
be broadcast, a table of 512 positions ends. It refuses the model unless it can prove that this
holds in all of the range given. So each condition is tried on numbers, and the model exported again
for the range around the example in which all hold. Decompositions may ask for conditions of their
own, which PyTorch notes and does not heed: those are treated alike.
"""

import itertools
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from unittest import mock

from tvm_practice.tvm_export.calling import Call
from tvm_practice.tvm_export.importers.refusals import Refused

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
_EXTENTS = ("extent", "extent_2", "extent_3", "extent_4")
# Above the least extent, where a condition of several is tried.
_STEPS = (0, 1, 2, 3, 4, 5, 7, 8, 15, 16, 31, 64, 100, 1023, 1024)
# What torch.export writes in conditions besides Python's operators.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "Eq": operator.eq,
    "Ne": operator.ne,
    "Mod": operator.mod,
    "Max": max,
    "Min": min,
    "FloorDiv": operator.floordiv,
    "PythonMod": operator.mod,
    "IntInfinity": lambda: float("inf"),
    "ToFloat": float,
    "TruncToInt": math.trunc,
    "FloorToInt": math.floor,
    "CeilToInt": math.ceil,
    "IntTrueDiv": operator.truediv,
    "FloatTrueDiv": operator.truediv,
    "FloatPow": pow,
    "PowByNatural": pow,
    "CleanDiv": operator.floordiv,
    "Abs": abs,
    "OpaqueUnaryFn_sqrt": math.sqrt,
    "Not": operator.not_,
    "And": lambda *conditions: all(conditions),
    "Or": lambda *conditions: any(conditions),
}


Range = tuple[int, int | None]
"""The least extent, and the largest; None for any."""
Condition = tuple[tuple[str, ...], str]
"""The names of the extents that a condition is of, and its text, where they are `_EXTENTS`."""


def exported_open(call: Call, *, any_range: bool) -> Any:
    """The model's decomposed program for any value of the extents that have names, or for a range.

    Args:
        call: the model; an example of extent 1 is given to PyTorch twice as large.
        any_range: whether the values may begin above 1, or end.

    Raises:
        Refused: the model is for one extent alone, or for some that are no range; in a line.
    """
    import torch

    tensors = _plain(call)
    examples = {
        name: int(tensor.shape[axis])
        for tensor, axes in zip(tensors, call.dynamic, strict=False)
        for axis, name in axes.items()
    }
    ranges: dict[str, Range] = dict.fromkeys(examples, (1, None))
    is_proved = True
    for _ in range(_ATTEMPTS):
        dimensions = {
            name: torch.export.Dim(name, min=least, max=most)
            for name, (least, most) in ranges.items()
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
            narrower = _narrower(str(error), ranges, examples) if any_range else None
            if narrower is None or (narrower == ranges and not is_proved):
                if told := _told(str(error)):
                    raise Refused(told) from error
                raise
            is_proved = narrower != ranges  # else all conditions hold, and PyTorch cannot prove it
            ranges = narrower
            continue
        program, conditions = _decomposed(program, call)
        narrower = _narrowed(conditions, ranges, examples)
        if narrower == ranges:
            return program
        if narrower is None or not any_range:
            raise Refused(_only_where(_unmet(conditions, ranges, examples)))
        ranges = narrower
    names = ", ".join(sorted(ranges))
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


def _decomposed(program: Any, call: Call) -> tuple[Any, list[Condition]]:
    """A program of decomposed operators, and what decompositions took for granted of extents."""
    from torch._guards import detect_fake_mode

    inputs = [node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"]
    mode: Any = detect_fake_mode(inputs)
    known = len(mode.shape_env.guards)
    decomposed = program.run_decompositions()
    symbols = {
        str(tensor.shape[axis]): name
        for tensor, axes in zip(inputs[-len(call.dynamic) :], call.dynamic, strict=True)
        for axis, name in axes.items()
    }
    return decomposed, [
        _condition(str(guard.expr), symbols) for guard in mode.shape_env.guards[known:]
    ]


def _condition(text: str, symbols: Mapping[str, str]) -> Condition:
    """A condition of PyTorch's symbols as one of extents."""
    names: list[str] = []
    for symbol, name in symbols.items():
        if re.search(rf"\b{symbol}\b", text):
            text = re.sub(rf"\b{symbol}\b", _EXTENTS[len(names)], text)
            names.append(name)
    return tuple(names), text


def _narrower(
    said: str, ranges: Mapping[str, Range], examples: Mapping[str, int]
) -> dict[str, Range] | None:
    """The ranges in which all conditions of torch.export hold; None if that is not known."""
    conditions = [
        ((name,), condition.replace(source, _EXTENTS[0]))
        for name, source, condition in _CONDITION.findall(said)
    ]
    if not conditions or "but your code specialized" in said:
        return None
    return _narrowed(conditions, ranges, examples)


def _narrowed(
    conditions: Sequence[Condition],
    ranges: Mapping[str, Range],
    examples: Mapping[str, int],
) -> dict[str, Range] | None:
    """The ranges in which conditions hold; None if that is not known."""
    found = dict(ranges)
    for names, text in conditions:
        if (holds := _function(text, len(names))) is None or not found.keys() >= set(names):
            return None
        if len(names) == 1:
            [name] = names
            narrower = _holds_within(holds, found[name], examples[name])
            if narrower is None:
                return None
            found[name] = narrower
        elif not _holds_on_grid(holds, [found[each] for each in names]):
            return None
    return found


def _unmet(
    conditions: Sequence[Condition], ranges: Mapping[str, Range], examples: Mapping[str, int]
) -> Condition:
    """The condition for which no range is known, or the first that does not hold in all of one."""
    found = [(each, _narrowed([each], ranges, examples)) for each in conditions]
    unknown = [each for each, narrower in found if narrower is None]
    return unknown[0] if unknown else next(each for each, other in found if other != ranges)


def _function(condition: str, count: int) -> Callable[..., bool] | None:
    """A condition as a function of so many extents; None if there is another name in it."""
    for python, name in (("torch.sym_float(", "ToFloat("), ("math.trunc(", "TruncToInt(")):
        condition = condition.replace(python, name)
    own = _EXTENTS[:count]
    names = set(re.findall(r"[A-Za-z_]\w*", condition)) - {*own, "and", "or", "not"}
    if count > len(_EXTENTS) or names - _FUNCTIONS.keys():
        return None
    code = compile(condition.strip(), "<condition>", "eval")

    def holds(*extents: int) -> bool:
        given = dict(zip(own, extents, strict=True))
        return bool(eval(code, {"__builtins__": {}, **_FUNCTIONS, **given}))

    return holds


def _holds_on_grid(holds: Callable[..., bool], ranges: Sequence[Range]) -> bool:
    """Whether a condition of several extents holds for all of some values of each."""
    values = [
        sorted({min(least + step, _FAR if most is None else most) for step in _STEPS})
        for least, most in ranges
    ]
    return all(holds(*each) for each in itertools.product(*values))


def _holds_within(holds: Callable[[int], bool], known: Range, example: int) -> Range | None:
    """The part of a range around an example in which a condition holds.

    None if it fails for the example, or for both neighbours of it, as one for even numbers does.
    """
    least, most = known
    last = _FAR if most is None else most
    if not least <= example <= last or not holds(example):
        return None
    below = next((each for each in range(example - 1, least - 1, -1) if not holds(each)), least - 1)
    above = next((each for each in range(example + 1, last + 1) if not holds(each)), None)
    if above == example + 1 and below == example - 1:
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
        return f"the model is for {name} = {value} alone: give the number in place of the name"
    for name, source, condition in _CONDITION.findall(said):
        return _only_where(((name,), condition.replace(source, _EXTENTS[0])))
    return ""


def _only_where(condition: Condition) -> str:
    names, text = condition
    for name, extent in zip(names, _EXTENTS, strict=False):
        text = re.sub(rf"\b{extent}\b", name, text)
    return f"the model is not the same for all {', '.join(names)}: only where {text}"
