"""The prose linter finds what it should, in the line where it is, and nothing in code."""

from pathlib import Path

import pytest

from tests.docs.prose import Finding, check

LONG = " ".join([a + b for a in "bcdfghj" for b in "aeiouy"][:41])


def found(tmp_path: Path, text: str, name: str = "page.md") -> list[Finding]:
    file = tmp_path / name
    file.write_text(text)
    return check(file)


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("The exporter is powerful.", "'powerful' praises"),
        ("It prints a list of what passes.", "'of what'"),
        ("What passes is printed.", "'What' begins"),
        ("It has a loop, the body of which is long.", "'the body of which'"),
        ("It runs on the the host.", "'the the' is repeated"),
        (f"The {LONG}.", "42 words without a stop"),
        ("It waits for ever.", "'for ever' is archaic"),
        ("Sizes are drawn anew.", "'anew' is stilted"),
        ("It takes a number (a size, say).", "', say': such as"),
    ],
)
def test_each_rule_finds_its_sentence(tmp_path: Path, sentence: str, message: str) -> None:
    (one,) = found(tmp_path, f"# Title\n\nA page about loops. It\nis short. {sentence}\n")
    assert message in one.message
    assert one.line == 4


@pytest.mark.parametrize(
    "text",
    [
        "At what size do threads pay?",
        "What does the run print? Three lines.",
        f"`{LONG} simply of what`",
        f"```text\n{LONG} simply\n```",
        f"<!-- {LONG} simply -->",
        f"[a link](simply-of-what-{LONG.replace(' ', '-')})",
        f"| {LONG} | {LONG} |\n|---|---|",
        f"- {LONG[:60]}\n- {LONG[:60]}\n- {LONG[:60]}\n- {LONG[:60]}",
        "It had had that that.",
        "The pages, say the authors, are short; a comment says so.",
    ],
)
def test_questions_code_tables_and_lists_are_left_alone(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, text) == []


MODULE = '''"""A module.

    python simply.py

It ends here.
"""


def public(a):
    """Return a simply.

    Args:
        a: a list of what
            passes.
    """
    # simply


def _private():
    """Simply nothing."""
'''


def test_docstrings_of_what_is_public_are_read_and_their_examples_are_not(tmp_path: Path) -> None:
    findings = found(tmp_path, MODULE, "module.py")
    assert [(each.line, each.message.split(" ")[0]) for each in findings] == [
        (10, "'simply'"),
        (13, "'of"),
    ]
