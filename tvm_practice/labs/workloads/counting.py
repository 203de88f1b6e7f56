"""Which functions of a framework's file a workload needs, read from the source."""

import ast
import importlib.util
from pathlib import Path

# Functions of these packages are the implementation's own; of any other, a library's.
_OWN = ("tvm_practice.labs.workloads.", "solutions.")


def implementation(module: str, function: str) -> str:
    """The source of a function, and of the functions that it calls, each once.

    Followed are functions of the same file and those that it imports from this package and from
    the phases' solutions. `load`, constants and imports, which are the same for every workload,
    are not part of it.

    Args:
        module: dotted, found without importing it.
        function: defined or imported at its top.
    """
    found: dict[tuple[str, str], str] = {}
    pending = [(module, function)]
    while pending:
        where, name = pending.pop()
        text, tree = _parsed(where)
        imported = {
            alias.asname or alias.name: (str(each.module), alias.name)
            for each in tree.body
            if isinstance(each, ast.ImportFrom) and str(each.module).startswith(_OWN)
            for alias in each.names
        }
        defined = {each.name: each for each in tree.body if isinstance(each, ast.FunctionDef)}
        if name not in defined:
            if name in imported:
                pending.append(imported[name])
            continue
        if (where, name) in found:
            continue
        node = defined[name]
        first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
        lines = text.splitlines()[first - 1 : node.end_lineno]
        found[where, name] = "\n".join(lines)
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        pending += [(where, each) for each in sorted(names & (defined.keys() | imported.keys()))]
    if not found:
        raise KeyError(f"{module} has no function {function}")
    return "\n\n".join(found.values()) + "\n"


def _parsed(module: str) -> tuple[str, ast.Module]:
    spec = importlib.util.find_spec(module)
    assert spec is not None and spec.origin is not None, module
    text = Path(spec.origin).read_text(encoding="utf-8")
    return text, ast.parse(text)
