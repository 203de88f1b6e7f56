"""A converter's template: what a person fills in for an operator that TVM lacks."""

import keyword
from collections.abc import Sequence
from typing import Any

from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.loading import did_you_mean

_HEAD = '''"""Converters of operators that TVM lacks, for --converters {module}:converters."""

from tvm import relax

from tvm_practice.tvm_export.importers.converters.arguments import settings_of
'''
_ONE = '''

def {function}(node, importer):
    """{schema}"""
    given, emit = settings_of(node), importer.block_builder.emit
{arguments}
    # What it computes, by operators of relax.op, and then: return {result}
    raise NotImplementedError("{name}")
'''
_TAIL = """

def converters():
    return {{{entries}}}
"""


def template(names: Sequence[str], module: str = "my_converters") -> str:
    """The text of a module of converters for the current engine, their bodies left open.

    Args:
        names: of the operators, as a refusal names them: "special_hermite_polynomial_h.default".
        module: that the text is put in.

    Raises:
        BadInput: no such operator is registered; one line.
    """
    schemas = {name: _schema(name) for name in names}
    functions = {name: name.rpartition("::")[2].partition(".")[0] for name in schemas}
    ones = [
        _ONE.format(
            function=functions[name],
            schema=schema,
            name=_key(schema),
            arguments="\n".join(map(_argument, schema.arguments)),
            result=_result(schema.returns),
        )
        for name, schema in schemas.items()
    ]
    entries = ", ".join(f'"{_key(schemas[name])}": {each}' for name, each in functions.items())
    return "".join([_HEAD.format(module=module), *ones, _TAIL.format(entries=entries)])


def _schema(name: str) -> Any:
    """The operator's, whose namespace may be left out, and the overload where it is the default."""
    import torch

    space, _, plain = name.rpartition("::")
    operator, _, overload = plain.partition(".")
    known = torch._C._jit_get_all_schemas()
    found = [
        each
        for each in known
        if each.name.partition("::")[2] == operator
        and space in ("", each.name.partition("::")[0])
        and (each.overload_name or "default") == (overload or "default")
    ]
    if not found:
        operators = {
            f"{each.name.partition('::')[2]}.{each.overload_name or 'default'}" for each in known
        }
        raise BadInput(f"PyTorch has no operator {name!r}{did_you_mean(plain, sorted(operators))}")
    return min(found, key=lambda each: not each.name.startswith("aten::"))


def _key(schema: Any) -> str:
    """The name that converters are found by."""
    return f"{schema.name.partition('::')[2]}.{schema.overload_name or 'default'}"


def _argument(argument: Any) -> str:
    """A line that reads an argument: tensors become the importer's variables."""
    name = f"{argument.name}_" if keyword.iskeyword(argument.name) else argument.name
    value, kind = f'given["{argument.name}"]', str(argument.type)
    if kind == "Tensor":
        value = f"importer.env[{value}]"
    elif kind == "Optional[Tensor]":
        value = f"importer.env.get({value})"
    elif kind == "List[Tensor]":
        value = f"[importer.env[each] for each in {value}]"
    elif kind == "List[Optional[Tensor]]":
        value = f"[importer.env.get(each) for each in {value}]"
    return f"    {name} = {value}"


def _result(returns: Sequence[Any]) -> str:
    if len(returns) == 1:
        return "emit(relax.op.…)"
    return f"emit(relax.Tuple([{', '.join(['emit(relax.op.…)'] * len(returns))}]))"
