"""A chapter's text with the functions that a notebook defines in the place of the stubs."""

import ast
import inspect
import textwrap
import types
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tvm_practice.course.editing import parse, replace_function

_LITERALS = (bool, int, float, str, bytes, tuple, list, dict, set)


@dataclass(frozen=True)
class Cell:
    """Lines of a text that come from a notebook's cell.

    Attributes:
        start: the first of them in the text, counted from 1.
        count: of lines.
        in_cell: the line of the cell that the first one is.
    """

    start: int
    count: int
    in_cell: int


def chapter_of(text: str, namespace: Mapping[str, Any]) -> tuple[str, list[Cell]]:
    """The chapter `text` with the notebook's functions, and where these are in it.

    What they use of the notebook comes along: functions, imports, and constants that are written
    as literals. Names of the chapter itself stay the chapter's, unless they are functions.
    """
    functions = [node.name for node in parse(text).body if isinstance(node, ast.FunctionDef)]
    mine = {name: source for name in functions if (source := source_of(namespace.get(name)))}
    for name, source in mine.items():
        text = replace_function(text, name, source)
    further = _further(list(mine.values()), namespace, functions)
    first = next(node for node in parse(text).body if isinstance(node, ast.FunctionDef))
    lines = text.split("\n")
    above = min([first.lineno, *(each.lineno for each in first.decorator_list)]) - 1
    text = "\n".join([*lines[:above], *further.values(), "", *lines[above:]])
    sources = {**mine, **{name: source_of(namespace[name]) for name in further}}
    cells = [
        Cell(
            text[: text.index(source)].count("\n") + 1,
            source.count("\n") + 1,
            inspect.unwrap(namespace[name]).__code__.co_firstlineno,
        )
        for name, source in sources.items()
        if source
    ]
    return text, cells


def source_of(value: Any) -> str:
    """The text of a function that a notebook's cell defines; "" for anything else."""
    function = inspect.unwrap(value) if callable(value) else None
    if not isinstance(function, types.FunctionType) or function.__module__ != "__main__":
        return ""
    try:
        source = textwrap.dedent(inspect.getsource(function)).rstrip()
        parse(source)
    except (OSError, SyntaxError):  # it was made by exec, or is a lambda amid a call
        return ""
    return source if source.startswith(("def ", "@")) else ""


def _further(
    pending: list[str], namespace: Mapping[str, Any], functions: list[str]
) -> dict[str, str]:
    """What the texts of `pending` use of the notebook, beside `functions`: names and statements."""
    found: dict[str, str] = {}
    while pending:
        for node in ast.walk(parse(pending.pop())):
            if not isinstance(node, ast.Name) or node.id not in namespace:
                continue
            if node.id in functions or node.id in found:
                continue
            value = namespace[node.id]
            source = source_of(value)
            if statement := source or _statement(node.id, value):
                found[node.id] = statement
                pending.append(source)
    return found


def _statement(name: str, value: Any) -> str:
    """The line that defines `name` as an import or a literal; "" if there is none."""
    if isinstance(value, types.ModuleType):
        return f"import {value.__name__} as {name}"
    if isinstance(value, _LITERALS):
        try:
            is_literal = ast.literal_eval(repr(value)) == value
        except (ValueError, SyntaxError):
            return ""
        return f"{name} = {value!r}" if is_literal else ""
    home, inner = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if home in (None, "__main__") or not inner.isidentifier():
        return ""
    return f"from {home} import {inner} as {name}"
