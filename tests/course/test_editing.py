"""Functions as text: the paste that grading and the tests rely on."""

import pytest

from tvm_practice.course import editing

TEXT = '''"""A file."""

import os


def first(a: int, b: int = 2) -> int:
    """Add."""
    return a + b


@some.decorator
def second(x):
    """Second."""
    import numpy

    return x


LAST = 1
'''


def test_function_source_leaves_decorators_out_and_renames() -> None:
    source = editing.function_source(TEXT, "second", rename="third")
    assert source.splitlines()[0] == "def third(x):" and source.endswith("return x")


def test_replace_function_changes_nothing_else() -> None:
    replaced = editing.replace_function(TEXT, "first", "def first():\n    pass")
    assert replaced.startswith('"""A file."""\n\nimport os\n\n\ndef first():\n    pass\n\n\n@some')
    assert replaced.endswith("LAST = 1\n")


def test_signature_sees_defaults_annotations_and_docstring() -> None:
    same = editing.signature(TEXT, "first")
    assert same == editing.signature(TEXT.replace("return a + b", "return b"), "first")
    for old, new in (("b: int = 2", "b: int = 3"), ("a: int", "a: str"), ("Add.", "Sum.")):
        assert same != editing.signature(TEXT.replace(old, new), "first")


def test_a_stub_is_a_docstring_and_a_raise() -> None:
    assert not editing.is_stub(TEXT, "first")
    stub = editing.stubbed(TEXT, "first")
    assert editing.is_stub(stub, "first")
    assert editing.signature(stub, "first") == editing.signature(TEXT, "first")


def test_an_unknown_function_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="no function absent"):
        editing.function_source(TEXT, "absent")
