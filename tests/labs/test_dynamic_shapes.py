"""Lab 4: its pictures, and what its page says of BERT."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tvm_practice import engines
from tvm_practice.course.catalog import SOLUTIONS
from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.labs.dynamic_shapes import _part, report

FUNCTIONS = "tests.labs.dynamic_shapes_functions"


def _results(**encoder: Any) -> dict[str, Any]:
    return {"current": {"figures": {"encoder": encoder}, "todo": [], "failed": {}}}


def test_the_report_draws_what_was_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ratio = {"value": 1.5, "ci95": [1.4, 1.6], "verdict": "slower"}
    report(
        _results(
            memory={"held": {"bounds": [4096, 8192]}, "shape": [4, 64]},
            cost=[{"shape": "1x16", "baseline": "static", "ratio": {"symbolic": ratio}}],
        ),
        tmp_path,
    )
    assert {each.name for each in tmp_path.iterdir()} == {"memory.png", "cost.png"}
    assert "memory.png" in capsys.readouterr().out


@pytest.mark.parametrize(
    "results", [{}, {"current": {"unavailable": "not here"}}, _results(), _results(cost=[])]
)
def test_the_report_of_an_unfinished_lab_draws_nothing(
    results: dict[str, Any], tmp_path: Path
) -> None:
    report(results, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_part_that_fails_is_said_and_the_rest_goes_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    steps = Steps("labs.dynamic_shapes", SOLUTIONS)
    steps.todo.append("import_dynamic")

    def fails() -> None:
        raise ValueError("no storage\nat all")

    assert _part(steps, ("import_dynamic", "plan_memory"), fails) is None
    assert steps.failed == {"plan_memory": "ValueError: no storage"}
    assert "pytest -m lab4" in " ".join(capsys.readouterr().out.split())
    assert _part(steps, ("plan_memory",), lambda: 3) == 3
    with pytest.raises(ValueError, match="no storage"):  # nothing of the learner's is in it
        _part(steps, ("import_dynamic",), fails)


@pytest.fixture(scope="module")
def session() -> Iterator[engines.Session]:
    pytest.importorskip("transformers", reason="pip install 'tvm-practice[models]'")
    with engines.Session(engines.CURRENT) as opened:
        yield opened


@pytest.mark.pages
@pytest.mark.slow
def test_bert_with_positions_given_serves_every_shape(session: engines.Session) -> None:
    found = session.call(f"{FUNCTIONS}:bert", {"given_positions": True}, timeout=500)
    assert not found["slices"] and max(found["errors"].values()) < 1e-5


@pytest.mark.pages
@pytest.mark.slow
def test_bert_that_cuts_its_positions_is_refused(session: engines.Session) -> None:
    """Where this fails, TVM has learned to use the bound: the page says that it has not."""
    found = session.call(f"{FUNCTIONS}:bert", {"given_positions": False}, timeout=500)
    assert any("T.min" in each for each in found["slices"])
    assert "ShapeExpr" in found["error"]
