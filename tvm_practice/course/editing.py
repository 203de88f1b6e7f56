"""Functions as text: taking one out of a file, putting one in, making a stub of one."""

import ast
import functools
import json
import warnings
from collections.abc import Iterator


@functools.lru_cache(maxsize=16)
def parse(text: str) -> ast.Module:
    """The syntax tree of `text`, without warnings. Raises SyntaxError or ValueError."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of an odd escape, say, which is not asked here
        compile(text, "<text>", "exec", dont_inherit=True)  # a return outside a function parses
        return ast.parse(text)


def _definition(text: str, name: str) -> ast.FunctionDef:
    for node in parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise KeyError(f"no function {name} at the top level")


def line_of(text: str, name: str) -> int:
    """The line of function `name`'s `def`, counted from 1."""
    return _definition(text, name).lineno


def _lines(node: ast.FunctionDef) -> slice:
    """Lines of a definition, from its `def` (after decorators) to its end."""
    return slice(node.lineno - 1, node.end_lineno)


def imported_from(text: str, name: str) -> str | None:
    """The module that `text` imports `name` from at the top level; None if it does not."""
    for node in parse(text).body:
        if isinstance(node, ast.ImportFrom) and any(each.name == name for each in node.names):
            return node.module
    return None


def function_source(text: str, name: str, *, rename: str | None = None) -> str:
    """The text of function `name` without its decorators, its name changed to `rename`."""
    lines = text.split("\n")[_lines(_definition(text, name))]
    if rename:
        lines[0] = lines[0].replace(f"def {name}(", f"def {rename}(", 1)
    return "\n".join(lines)


def replace_function(text: str, name: str, source: str) -> str:
    """`text` with function `name` replaced by `source`, all else as it was."""
    lines = text.split("\n")
    lines[_lines(_definition(text, name))] = source.split("\n")
    return "\n".join(lines)


def signature(text: str, name: str) -> str:
    """Arguments, defaults, annotations and docstring of function `name`, comparable as text."""
    node = _definition(text, name)
    returns = ast.unparse(node.returns) if node.returns else ""
    return f"({ast.unparse(node.args)}) -> {returns}\n{ast.get_docstring(node)}"


@functools.lru_cache(maxsize=256)  # every exercise's, of the learner's files and of the answers
def reach(text: str, name: str) -> str:
    """Function `name` without its decorators, then all of `text` that it uses, directly or not.

    Comments and layout are left out: two files with the same reach of a function make it do the
    same.
    """
    homes: dict[str, list[ast.stmt]] = {}
    for statement in parse(text).body:
        for part, defined in _definitions(statement):
            homes.setdefault(defined, []).append(part)
    start = parse(function_source(text, name)).body[0]
    pending: list[ast.stmt] = [start]
    parts = []
    found = {name}
    while pending:
        part = pending.pop()
        parts.append(ast.unparse(part))
        for node in ast.walk(part):
            if isinstance(node, ast.Name) and node.id in homes and node.id not in found:
                found.add(node.id)
                pending += homes[node.id]
    return "\n".join([parts[0], *sorted(set(parts[1:]))])


def _definitions(statement: ast.stmt) -> Iterator[tuple[ast.stmt, str]]:
    """The names that a top-level statement defines, each with the part of it that does."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield statement, statement.name
    elif isinstance(statement, ast.Import | ast.ImportFrom):
        # One name at a time: another name imported beside it changes nothing.
        for alias in statement.names:
            defined = (alias.asname or alias.name).partition(".")[0]
            if isinstance(statement, ast.Import):
                yield ast.Import([alias]), defined
            else:
                yield ast.ImportFrom(statement.module, [alias], statement.level), defined
    else:
        for node in ast.walk(statement):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield statement, node.id
            elif node is not statement and isinstance(node, ast.stmt):
                for _, defined in _definitions(node):
                    yield statement, defined


def stub_message(text: str, name: str) -> str | None:
    """What function `name` says if all it does is raise NotImplementedError, else None."""
    node = _definition(text, name)
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if len(body) != 1 or not isinstance(body[0], ast.Raise):
        return None
    match body[0].exc:
        case ast.Call(ast.Name("NotImplementedError"), [ast.Constant(str(message))]):
            return message
        case ast.Call(ast.Name("NotImplementedError")) | ast.Name("NotImplementedError"):
            return ""
    return None


def is_stub(text: str, name: str) -> bool:
    """Whether function `name` only raises NotImplementedError."""
    return stub_message(text, name) is not None


def stubbed(text: str, name: str, message: str | None = None) -> str:
    """`text` with function `name` reduced to its docstring and a NotImplementedError.

    The error says `message`, or that `name` is to do.
    """
    node = _definition(text, name)
    docstring = node.body[0]
    kept = text.split("\n")[node.lineno - 1 : docstring.end_lineno]
    said = json.dumps(message or f"{name} is to do", ensure_ascii=False)
    return replace_function(
        text, name, "\n".join([*kept, f"    raise NotImplementedError({said})"])
    )
