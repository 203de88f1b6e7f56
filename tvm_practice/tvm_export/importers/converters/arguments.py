"""What a converter of a PyTorch operator is called with, and which results are used."""

from typing import Any


def settings_of(node: Any) -> dict[str, Any]:
    """All arguments of a node by name, with PyTorch's defaults."""
    schema = node.target._schema.arguments
    given = dict(zip((each.name for each in schema), node.args, strict=False)) | node.kwargs
    return {
        each.name: given.get(each.name, each.default_value if each.has_default_value() else None)
        for each in schema
    }


def uses_more(node: Any) -> bool:
    """Whether more than the first output of a node is used."""
    return any(user.args[1] != 0 and user.users for user in node.users)
