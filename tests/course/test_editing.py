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


def test_a_stub_has_a_message() -> None:
    stub = editing.stubbed(TEXT, "first", 'say "no"')
    assert editing.stub_message(stub, "first") == 'say "no"'
    assert editing.stub_message(editing.stubbed(TEXT, "first"), "first") == "first is to do"
    bare = "def f():\n    raise NotImplementedError"
    assert editing.stub_message(bare, "f") == ""
    for body in ("raise ValueError", "x = 1\n    raise NotImplementedError", "return 1"):
        assert editing.stub_message(f"def f():\n    {body}\n", "f") is None


def test_reach_is_what_a_function_uses() -> None:
    text = (
        "from math import pi, tau\nimport os.path\nif True:\n    SIDE = 2\nA, B = 1, 2\n"
        "def area():\n    return side() * pi  # of a square\n\n"
        "def side():\n    return SIDE * A\n\ndef other():\n    return os.path\n"
    )
    reached = editing.reach(text, "area")
    assert reached.startswith("def area():") and "# of" not in reached
    for part in ("def side():", "SIDE = 2", "= (1, 2)", "from math import pi"):
        assert part in reached
    for part in ("other", "tau", "os"):
        assert part not in reached
    assert "import os.path" in editing.reach(text, "other")


def test_a_line_break_is_only_what_python_takes_for_one() -> None:
    text = 'X = "\x0c\x0b"  # \u2028\n' + TEXT
    assert editing.function_source(text, "first") == editing.function_source(TEXT, "first")
    replaced = editing.replace_function(text, "first", editing.function_source(text, "first"))
    assert replaced == text
    assert editing.line_of(text, "first") == editing.line_of(TEXT, "first") + 1


def test_an_unknown_function_is_a_key_error() -> None:
    with pytest.raises(KeyError, match="no function absent"):
        editing.function_source(TEXT, "absent")
