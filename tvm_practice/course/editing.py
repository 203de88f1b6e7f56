"""Functions as text: taking one out of a file, putting one in, making a stub of one."""

import ast


def _definition(text: str, name: str) -> ast.FunctionDef:
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    raise KeyError(f"no function {name} at the top level")


def _lines(node: ast.FunctionDef) -> slice:
    """Lines of a definition, from its `def` (after decorators) to its end."""
    return slice(node.lineno - 1, node.end_lineno)


def function_source(text: str, name: str, *, rename: str | None = None) -> str:
    """The text of function `name` without its decorators, its name changed to `rename`."""
    lines = text.splitlines()[_lines(_definition(text, name))]
    if rename:
        lines[0] = lines[0].replace(f"def {name}(", f"def {rename}(", 1)
    return "\n".join(lines)


def replace_function(text: str, name: str, source: str) -> str:
    """`text` with function `name` replaced by `source`, all else as it was."""
    lines = text.splitlines()
    lines[_lines(_definition(text, name))] = source.splitlines()
    return "\n".join(lines) + "\n"


def signature(text: str, name: str) -> str:
    """Arguments, defaults, annotations and docstring of function `name`, comparable as text."""
    node = _definition(text, name)
    returns = ast.unparse(node.returns) if node.returns else ""
    return f"({ast.unparse(node.args)}) -> {returns}\n{ast.get_docstring(node)}"


def is_stub(text: str, name: str) -> bool:
    """Whether function `name` only raises NotImplementedError."""
    body = _definition(text, name).body[1:]  # after the docstring
    return len(body) == 1 and isinstance(body[0], ast.Raise)


def stubbed(text: str, name: str) -> str:
    """`text` with function `name` reduced to its docstring and a NotImplementedError."""
    node = _definition(text, name)
    docstring = node.body[0]
    kept = text.splitlines()[node.lineno - 1 : docstring.end_lineno]
    return replace_function(
        text, name, "\n".join([*kept, f'    raise NotImplementedError("{name} is to do")'])
    )
