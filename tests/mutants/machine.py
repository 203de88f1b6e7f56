"""Wrong answers made by machine: the reference with one thing in it changed.

What is changed is what people get wrong: an operator, a constant, the order of two arguments, one
loop for another, a call left out, `vectorize` for `unroll`.
"""

import ast
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tvm_practice.course.catalog import Exercise
from tvm_practice.course.telling import reference

_OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Add, ast.FloorDiv),
    ast.Div: (ast.Mult,), ast.FloorDiv: (ast.Mult, ast.Mod), ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,), ast.BitOr: (ast.BitAnd,), ast.BitAnd: (ast.BitOr,),
    ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt,), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt,),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip
# One name for another that takes the same arguments.
_NAMES = {
    "vectorize": ("unroll",), "unroll": ("vectorize", "parallel"), "parallel": ("unroll",),
    "compute_at": ("reverse_compute_at",), "reverse_compute_at": ("compute_at",),
    "cache_write": ("cache_read",), "cache_read": ("cache_write",),
    "max": ("min",), "min": ("max",), "sum": ("max",), "median": ("mean",), "mean": ("median",),
    "abs": ("float",), "argmax": ("argmin",), "floor": ("ceil",), "ceil": ("floor",),
    "add": ("subtract",), "multiply": ("add",), "all": ("any",), "any": ("all",),
    "append": ("extend",), "sorted": ("list",), "isfinite": ("isnan",), "float32": ("float64",),
    "perf_counter": ("process_time",), "startswith": ("endswith",),
}  # fmt: skip


@dataclass(frozen=True)
class Variant:
    """The reference of `exercise` with one change.

    Attributes:
        source: the text of the function.
        change: the statement as it was and as it is: `a + b -> a - b`.
    """

    exercise: str
    source: str
    change: str


def variants(exercise: Exercise, limit: int, seed: int = 0) -> list[Variant]:
    """At most `limit` different variants of the reference; the same ones for the same seed."""
    tree = ast.parse(reference(exercise))
    [function] = tree.body
    assert isinstance(function, ast.FunctionDef)
    docstring = function.body.pop(0)
    before = ast.unparse(tree)
    found: dict[str, Variant] = {}
    for change in list(_changes(tree)):
        with change.made():
            after = ast.unparse(tree)
            if after == before or after in found:
                continue
            function.body.insert(0, docstring)
            found[after] = Variant(exercise.id, ast.unparse(tree), _difference(before, after))
            function.body.pop(0)
    every = list(found.values())
    random.Random(f"{exercise.id}{seed}").shuffle(every)
    return every[:limit]


def _difference(before: str, after: str) -> str:
    """The lines that differ, on one line."""
    old, new = before.split("\n"), after.split("\n")
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), 0)
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    told = (" ".join(line.strip() for line in each[start : len(each) - end]) for each in (old, new))
    return " -> ".join(each or "(nothing)" for each in told)


def _changes(tree: ast.Module) -> Iterator["_Change"]:
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    [function] = tree.body
    assert isinstance(function, ast.FunctionDef)
    names = _locals(function)
    typed = {inner for node in ast.walk(tree) for each in _annotations(node)
             for inner in ast.walk(each)}  # fmt: skip
    for node in ast.walk(tree):
        if node in typed or _is_said(node, parents):
            continue
        yield from _of_operators(node)
        yield from _of_constants(node)
        yield from _of_calls(node)
        yield from _of_names(node, names, parents)
        yield from _of_statements(node)


class _Change:
    """Another value for a field of a node."""

    def __init__(self, node: ast.AST, field: str, value: object) -> None:
        self._node, self._field, self._value = node, field, value

    @contextmanager
    def made(self) -> Iterator[None]:
        """The field has the value within it."""
        kept = getattr(self._node, self._field)
        setattr(self._node, self._field, self._value)
        try:
            yield
        finally:
            setattr(self._node, self._field, kept)


def _annotations(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.FunctionDef):
        return [node.returns] if node.returns else []
    if isinstance(node, ast.arg | ast.AnnAssign) and node.annotation:
        return [node.annotation]
    return []


def _is_said(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> bool:
    """Whether it is within the text of an error, which people read."""
    inside: ast.AST | None = node
    while inside is not None and not isinstance(inside, ast.stmt):
        inside = parents.get(inside)
    return isinstance(inside, ast.Raise) and inside is not node


def _locals(function: ast.FunctionDef) -> list[str]:
    arguments = [*function.args.args, *function.args.kwonlyargs]
    stored = [
        node.id for node in ast.walk(function)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]  # fmt: skip
    return list(dict.fromkeys([*(each.arg for each in arguments), *stored]))


def _of_operators(node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign):
        for other in _OPERATORS.get(type(node.op), ()):
            yield _Change(node, "op", other())
    elif isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            for other in _OPERATORS.get(type(operator), ()):
                yield _Change(node, "ops", [*node.ops[:i], other(), *node.ops[i + 1 :]])
    elif isinstance(node, ast.UnaryOp):
        yield _Change(node, "op", ast.UAdd() if isinstance(node.op, ast.USub) else ast.USub())
    elif isinstance(node, ast.If | ast.IfExp | ast.While):
        yield _Change(node, "test", ast.Constant(not isinstance(node, ast.While)))
        yield _Change(node, "test", ast.Constant(False))


def _of_constants(node: ast.AST) -> Iterator[_Change]:
    if not isinstance(node, ast.Constant):
        return
    value = node.value
    others: tuple[object, ...] = ()
    if isinstance(value, bool):
        others = (not value,)
    elif isinstance(value, int):
        others = (value + 1, value - 1)
    elif isinstance(value, float):
        others = (value * 2, -value, value / 1000)
    elif isinstance(value, str):
        others = (value + "x", "")
    for other in others:
        yield _Change(node, "value", other)


def _of_calls(node: ast.AST) -> Iterator[_Change]:
    if isinstance(node, ast.Tuple | ast.List) and isinstance(node.ctx, ast.Load):
        for swapped in _swaps(node.elts):
            yield _Change(node, "elts", swapped)
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Store):
        for swapped in _swaps(node.elts):
            yield _Change(node, "elts", swapped)
    if not isinstance(node, ast.Call):
        return
    for swapped in _swaps(node.args):
        yield _Change(node, "args", swapped)
    for i in range(len(node.keywords)):
        yield _Change(node, "keywords", node.keywords[:i] + node.keywords[i + 1 :])
    if len(node.args) > 1:
        yield _Change(node, "args", node.args[:-1])


def _swaps(elements: list[ast.expr]) -> Iterator[list[ast.expr]]:
    for i in range(len(elements) - 1):
        yield [*elements[:i], elements[i + 1], elements[i], *elements[i + 2 :]]


def _of_names(
    node: ast.AST, names: list[str], parents: dict[ast.AST, ast.AST]
) -> Iterator[_Change]:
    if isinstance(node, ast.Attribute):
        for other in _NAMES.get(node.attr, ()):
            yield _Change(node, "attr", other)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for other in _NAMES.get(node.id, ()):
            yield _Change(node, "id", other)
        if node.id in names:
            # Its neighbours: m for n, i_inner for j_inner.
            at = names.index(node.id)
            for other in names[max(0, at - 1) : at + 2]:
                yield _Change(node, "id", other)


def _of_statements(node: ast.AST) -> Iterator[_Change]:
    for field in ("body", "orelse"):
        body = getattr(node, field, None)
        if not isinstance(body, list):
            continue
        for i, statement in enumerate(body):
            if isinstance(statement, ast.Expr | ast.AugAssign | ast.If | ast.Raise | ast.Continue):
                yield _Change(node, field, [*body[:i], ast.Pass(), *body[i + 1 :]])
