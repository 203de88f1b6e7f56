"""Export of a model with open extents, for as many of their values as PyTorch can promise.

program = exported_open(call)    # its range constraints say from which extent on

torch.export makes a program for the example's way through a model and lists what has to hold of
an open extent for that way to be taken: a window of 5 wants 5 elements, a result of extent 1 would
be broadcast. It refuses the model unless that holds in all of the range given. Where it holds from
some extent on, the model is exported again for that range.
"""

import operator
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tvm_practice.tvm_export.calling import Call
from tvm_practice.tvm_export.importers.refusals import Refused

# Ranges that are tried: a narrower one may have conditions of its own.
_ATTEMPTS = 8
# What holds from some extent below this on is taken to hold for all that follow.
_FAR = 1 << 12
_CONDITION = re.compile(
    r"Not all values of (\w+) = (L\[.*?\](?:\[\d+\])*\.size\(\)\[\d+\]) in the specified range "
    r"satisfy the generated guard (.*?)\.?$",
    re.MULTILINE,
)
_CONSTANT = re.compile(
    r"You marked (\w+) as dynamic but your code specialized it to be a constant \((\d+)\)"
)
# What torch.export writes in conditions besides Python's operators.
_FUNCTIONS = {
    "Eq": operator.eq,
    "Ne": operator.ne,
    "Mod": operator.mod,
    "Max": max,
    "Min": min,
    "FloorDiv": operator.floordiv,
    "PythonMod": operator.mod,
    "IntInfinity": lambda: float("inf"),
}


def exported_open(call: Call, *, any_least: bool) -> Any:
    """The model's exported program for any value of the extents that have names, or from some on.

    Args:
        call: the model; an example of extent 1 is given to PyTorch twice as large.
        any_least: whether the values may begin above 1.

    Raises:
        Refused: the model is for one extent alone, or for some of another kind; in a line.
    """
    import torch

    least = {name: 1 for axes in call.dynamic for name in axes.values()}
    tensors = _without_ones(call)
    for _ in range(_ATTEMPTS):
        dimensions = {name: torch.export.Dim(name, min=each) for name, each in least.items()}
        shapes = [{axis: dimensions[name] for axis, name in axes.items()} for axes in call.dynamic]
        try:
            # The module takes its tensors as *arguments: one argument, a tuple, to PyTorch.
            return torch.export.export(call.module, tensors, dynamic_shapes=(tuple(shapes),))
        except torch._dynamo.exc.UserError as error:
            narrower = _narrower(str(error), least) if any_least else least
            if narrower == least:
                if told := _told(str(error)):
                    raise Refused(told) from error
                raise
            least = narrower
    raise Refused(
        f"no range of {', '.join(sorted(least))} was found for which the model is the same"
    )


def _without_ones(call: Call) -> tuple[Any, ...]:
    """The example, its open axes of extent 1 repeated: PyTorch would take those for constants."""
    tensors = list(call.tensors)
    for index, axes in enumerate(call.dynamic):
        for axis in axes:
            if tensors[index].shape[axis] == 1:
                tensors[index] = tensors[index].repeat_interleave(2, dim=axis)
    return tuple(tensors)


def _narrower(said: str, least: Mapping[str, int]) -> dict[str, int]:
    """The least extents from which on all conditions hold that torch.export lists; else `least`."""
    found = dict(least)
    for name, source, condition in _CONDITION.findall(said):
        if name not in least:
            return dict(least)
        from_here = _holds_from(condition.replace(source, "extent"), found[name])
        if from_here is None:
            return dict(least)
        found[name] = from_here
    return found


def _holds_from(condition: str, least: int) -> int | None:
    """The extent from which on a condition holds, `least` or above; None if from none known."""
    names = set(re.findall(r"[A-Za-z_]\w*", condition)) - {"extent", "and", "or", "not"}
    if names - _FUNCTIONS.keys():
        return None
    code = compile(condition.strip(), "<condition>", "eval")
    fails = [
        extent
        for extent in range(least, _FAR)
        if not eval(code, {"__builtins__": {}, **_FUNCTIONS, "extent": extent})
    ]
    if not fails:
        return least
    return None if fails[-1] >= _FAR // 2 else fails[-1] + 1


def _told(said: str) -> str:
    """What torch.export found out about extents, in a line; empty for something else."""
    if constant := _CONSTANT.search(said):
        name, value = constant.groups()
        return f"the model is for {name} = {value} alone: give the number in place of the name"
    conditions: Sequence[tuple[str, str, str]] = _CONDITION.findall(said)
    if conditions:
        name, source, condition = conditions[0]
        where = condition.replace(source, name)
        return f"the model is not the same for all {name}: only where {where}"
    return ""
