"""How much an exercise asks for, worked out from its reference answer: one to three stars."""

import ast
import functools
import re
from collections.abc import Sequence

from tvm_practice.course.catalog import Exercise
from tvm_practice.course.editing import function_source, parse
from tvm_practice.course.grading import reference_file
from tvm_practice.course.pieces import pieces_of

# The least weight of two stars, and of three.
_TWO, _THREE = 12, 24
_NO_CODE = r"\s*(#|$)"


@functools.cache
def weight(exercise: Exercise) -> int:
    """Lines of the reference answer, its lines that no hint names, and the names of TVM in it.

    A line is counted below the docstring, comments aside. Options of a call are no names.
    """
    lines = [line for line in answer(exercise) if not re.match(_NO_CODE, line)]
    names = [piece for piece in pieces_of(exercise) if piece.kind != "option"]
    return len(lines) + len(unnamed(lines, exercise.hints)) + len(names)


def stars(exercise: Exercise) -> str:
    """`★` for a weight below 12, `★★` below 24, else `★★★`."""
    found = weight(exercise)
    return "★" * (1 + (found >= _TWO) + (found >= _THREE))


def answer(exercise: Exercise) -> list[str]:
    """The lines of the reference answer below its docstring."""
    source = function_source(reference_file(exercise).read_text(encoding="utf-8"), exercise.name)
    (function,) = parse(source).body
    assert isinstance(function, ast.FunctionDef)
    return source.split("\n")[function.body[0].end_lineno :]


def unnamed(lines: Sequence[str], hints: tuple[str, ...]) -> list[str]:
    """The lines of which no hint has a name that they call, or any word where they call none."""
    said = set(re.findall(r"\w+", " ".join(hints)))
    found = []
    for line in lines:
        if re.match(rf"{_NO_CODE}|\s*(import |from .* import|return\b)", line):
            continue
        called = re.findall(r"(\w+)\(", line) + re.findall(r"\.([a-zA-Z_]\w+)", line)
        words = called or re.findall(r"[A-Za-z_]\w{2,}", line)
        if words and not said & set(words):
            found.append(line)
    return found
