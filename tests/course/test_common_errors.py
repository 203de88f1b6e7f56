"""TVM's common errors: each is raised by its example, recognized, and explained where it is met."""

from pathlib import Path

import pytest

from tests.course.conftest import ROOT, Tree
from tvm_practice import engines
from tvm_practice.course.catalog import find
from tvm_practice.course.common_errors import COMMON, recognized
from tvm_practice.course.glossary import chosen, to_markdown
from tvm_practice.course.grading import Grader


@pytest.mark.parametrize("engine", engines.ENGINES)
def test_every_example_raises_its_error_and_its_correction_none(engine: engines.Engine) -> None:
    if missing := engines.unavailable_reason(engine):
        pytest.skip(missing)
    outcomes = engines.call(
        engine, "tests.course.common_errors_functions:outcomes", {"engine": engine}
    )
    assert outcomes
    for each in outcomes:
        assert each["seen"] == each["title"], each
        assert each["right"] is None, each


def test_every_error_has_an_example_and_its_own_title() -> None:
    assert all(each.examples for each in COMMON)
    assert len({each.title for each in COMMON}) == len(COMMON) > 20


@pytest.mark.parametrize(
    "message",
    [
        "KeyError: 'C'",
        "TypeError: 'int' object cannot be interpreted as an integer",
        "ValueError: invalid literal for int() with base 10: 'x'",
        "AttributeError: module 'numpy' has no attribute 'relu'",
        "TypeError: must be real number, not str",
    ],
)
def test_an_error_of_another_kind_is_not_explained(message: str) -> None:
    assert recognized(message) is None


def test_a_check_adds_the_cause(grader: Grader, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "def matmul(m, n, k):\n"
        "    from tvm import te\n"
        '    A = te.placeholder((m, k), name="A")\n'
        '    B = te.placeholder((k, n), name="B")\n'
        "    r = te.reduce_axis((0, k))\n"
        "    C = te.compute((m, n), lambda i, j: sum(A[i, r] * B[r, j]))\n"
        "    return [A, B, C]\n"
    )
    verdict = grader.grade(find("te_basics.matmul"), str(file))
    assert verdict.status == "failed"
    lines = verdict.message.split("\n")
    assert "look at:  line 6" in verdict.message
    assert any(line.startswith("because:  ") for line in lines), verdict.message
    assert any(line.startswith("instead:  ") and "te.sum" in line for line in lines)


def test_a_run_adds_the_cause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tvm_practice.course.steps import Steps

    steps = Steps("te_basics", "solutions", folder=tmp_path)

    def matmul(*_: int) -> None:
        raise ValueError("Need to provide 2 index in tensor but 3 was provided")

    monkeypatch.setattr("solutions.te_basics.matmul", matmul)
    steps.attempt("matmul", 4, 4, 4)
    printed = capsys.readouterr().out
    assert "fails  matmul: ValueError: Need to provide" in printed
    assert "because" in printed and "te.sum" in printed and not steps.ran("matmul")


def test_the_command_finds_an_error_by_its_message_and_by_a_word(cheap: Tree) -> None:
    (found,) = chosen("ValueError: The loop no longer exists in the IRModule")
    shown = cheap.run("errors", "The", "loop", "no", "longer", "exists", "in", "the", "IRModule")
    assert found.title in shown.output and shown.output.count("instead") == 1
    assert cheap.run("errors", "scope").output.count("because") < len(COMMON)
    assert cheap.run("errors").output.count("because  ") == len(COMMON)
    assert "no common error" in cheap.run("errors", "qwerty", code=1).output


def test_the_page_is_what_the_command_prints() -> None:
    written = (ROOT / "docs" / "errors.md").read_text()
    assert written == to_markdown(), "write it anew: tvm-practice errors --page > docs/errors.md"
