"""The trees of exceptions in docstrings are those of the classes."""

import inspect
import re
from types import ModuleType

import pytest

from tvm_practice.engines import errors as engines_errors
from tvm_practice.tvm_export import errors as export_errors

# What stands before a name in a tree: three or four characters a level.
_ENTRY = re.compile(r"^(?P<lead>(?:[│ ]   )*(?:[├└]── )?)(?P<name>(?:engines\.)?[A-Z]\w+)  ")


def drawn(module: ModuleType) -> dict[str, str | None]:
    """Of each name in a module's tree, the name that it hangs on."""
    path: list[str] = []
    found: dict[str, str | None] = {}
    for line in inspect.cleandoc(module.__doc__ or "").splitlines():
        if entry := _ENTRY.match(f"{line}  "):
            depth, name = len(entry["lead"]) // 4, entry["name"].removeprefix("engines.")
            path[depth:] = [name]
            found[name] = path[depth - 1] if depth else None
    return found


def defined(module: ModuleType) -> dict[str, str | None]:
    """Of each exception that a module defines, the first base that is in the tree."""
    classes = {
        name: each
        for name, each in vars(module).items()
        if inspect.isclass(each) and issubclass(each, Exception)
    }
    return {
        name: next((b.__name__ for b in each.__bases__ if b.__name__ in classes), None)
        for name, each in classes.items()
    }


@pytest.mark.parametrize("module", [engines_errors, export_errors], ids=["engines", "tvm_export"])
def test_the_tree_is_the_classes(module: ModuleType) -> None:
    assert drawn(module) == defined(module)
    assert len(defined(module)) > 5


def test_a_tree_that_has_drifted_is_noticed() -> None:
    module = ModuleType(
        "drifted", "Base  the base\n├── One  first\n│   └── Two  second\n└── Three  x\n"
    )
    assert drawn(module) == {"Base": None, "One": "Base", "Two": "One", "Three": "Base"}


def test_the_message_of_an_exit_code_2_is_the_persons_mistake() -> None:
    plain = engines_errors.PlainError("a line")
    assert (plain.line, plain.exit_code) == ("a line", 1)
    assert export_errors.BadInput("a mistake").exit_code == 2
