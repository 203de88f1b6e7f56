"""Converters of single PyTorch operators that the engines lack or convert badly, and a person's.

find_converters("mymodule:converters")
"""

from collections.abc import Callable, Mapping
from typing import Any

Converters = Mapping[str, Callable[..., Any]]


def find_converters(given: str | Converters | None) -> dict[str, Callable[..., Any]]:
    """A person's own converters, for the engine that is active.

    Args:
        given: "module:function" of their factory, called without arguments; or themselves, by
            operator's name: "rms_norm.default" on the current engine, which calls a converter with
            (node, importer), "mylibrary::rms_norm" on the classic one, which calls it with
            (inputs, types). One dictionary may have both.

    Raises:
        BadInput: there is no such function, or it raises, or returns something else; one line.
    """
    from tvm_practice.tvm_export.errors import BadInput
    from tvm_practice.tvm_export.loading import describe, find_factory

    if given is None:
        return {}
    made: Any = given
    if isinstance(given, str):
        factory = find_factory(given)
        try:
            made = factory()
        except Exception as error:
            raise BadInput(f"{given} raised {describe(error)}") from error
    if not isinstance(made, Mapping) or not all(map(callable, made.values())):
        raise BadInput(f"{given}: not a dictionary of converters by operator's name")
    return {str(name): each for name, each in made.items()}
