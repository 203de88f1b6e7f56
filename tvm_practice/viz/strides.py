"""How an access moves from one run of its innermost loop to the next."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tvm_practice.viz.access import AccessProgram

_LOOP = re.compile(r"for (\w+) in range\((.*), (.*)\):")
_TOUCH = re.compile(r"touch\((\d+), (.*), ([01])\)")
_BOUND = re.compile(r"(\w+) = (.*)")
_MOST_STEPS = 16
_KNOWN = {"__builtins__": {}, "min": min, "max": max}


@dataclass(frozen=True)
class Touch:
    """One `touch` of a program's source.

    Attributes:
        buffer: its number.
        write: whether it stores.
        stride: elements from one iteration of the innermost loop of more than one iteration to the
            next; None where it differs from step to step, 0 outside of loops.
        line: of the statement, see `AccessProgram.lines`.
    """

    buffer: int
    write: bool
    stride: int | None
    line: int


def touches(program: AccessProgram) -> Iterator[Touch]:
    """The touches of a program, in the order of its source."""
    lines = iter(program.lines)
    around: list[tuple[int, str]] = []
    for text in program.source.splitlines():
        depth = len(text) - len(text.lstrip(" "))
        while around and around[-1][0] >= depth and not _is_bound(around[-1][1]):
            around.pop()
        around = [each for each in around if each[0] <= depth]
        statement = text.strip()
        if found := _TOUCH.fullmatch(statement):
            stride = _stride([each for _, each in around], found[2])
            yield Touch(int(found[1]), found[3] == "1", stride, next(lines, 0))
        elif _LOOP.fullmatch(statement) or _is_bound(statement):
            around.append((depth, statement))


def _is_bound(statement: str) -> bool:
    return _BOUND.fullmatch(statement) is not None


def _stride(around: list[str], element: str) -> int | None:
    """By computing the element at the first iterations, the outer loops at their first."""
    innermost = 0
    steps = 1
    values: dict[str, Any] = {}
    for at, statement in enumerate(around):
        if loop := _LOOP.fullmatch(statement):
            low, stop = (int(eval(each, _KNOWN, values)) for each in loop.groups()[1:])
            values[loop[1]] = low
            if stop - low > 1:
                innermost, steps = at, stop - low
        elif bound := _BOUND.fullmatch(statement):
            values[bound[1]] = eval(bound[2], _KNOWN, values)
    if steps == 1:
        return 0
    elements = [
        _element(around, innermost, step, element) for step in range(min(steps, _MOST_STEPS))
    ]
    moves = {after - before for before, after in pairwise(elements)}
    return moves.pop() if len(moves) == 1 else None


def _element(around: list[str], moving: int, step: int, element: str) -> int:
    values: dict[str, Any] = {}
    for at, statement in enumerate(around):
        if loop := _LOOP.fullmatch(statement):
            values[loop[1]] = int(eval(loop[2], _KNOWN, values)) + (step if at == moving else 0)
        elif bound := _BOUND.fullmatch(statement):
            values[bound[1]] = eval(bound[2], _KNOWN, values)
    return int(eval(element, _KNOWN, values))
