"""results.json is of the form that Gradescope publishes."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tests.course.classroom.gradescope import Results
from tvm_practice.course.catalog import phase
from tvm_practice.course.classroom.marking import Mark, Marked, Rules
from tvm_practice.course.classroom.records import write_results
from tvm_practice.course.classroom.sandbox import Limits
from tvm_practice.course.classroom.submissions import Submission

_EXERCISES = phase("te_basics").exercises
# As otter-grader 7.0.0 and gradescope-utils 0.5.0 write it.
_OTTER = {
    "tests": [
        {
            "name": "Public Tests",
            "visibility": "visible",
            "output": "q1 results: All test cases passed!",
            "status": "passed",
        },
        {"name": "q1", "score": 1.0, "max_score": 1.0, "visibility": "hidden", "output": "passed"},
    ],
    "score": 1.0,
    "stdout_visibility": "hidden",
}
_UTILS = {
    "tests": [
        {
            "name": "test_sum (Tests)",
            "score": 0.0,
            "max_score": 2,
            "status": "failed",
            "number": "1.1",
            "output": "Test Failed: 1 != 2",
            "tags": ["sums"],
            "visibility": "after_due_date",
        }
    ],
    "leaderboard": [{"name": "time", "value": 0.5, "order": "asc"}],
    "visibility": "visible",
    "score": 0.0,
}


def _written(folder: Path) -> dict[str, Any]:
    statuses = ("passed", "failed", "unread")
    marks = [
        Mark(each, status, message="why", seconds=0.5, output="printed")
        for each, status in zip(_EXERCISES, statuses, strict=True)
    ]
    marked = Marked(Submission("ada", {"te_basics": b""}), marks, 3.2, remark="look at it")
    file = folder / "results.json"
    write_results(marked, Rules(_EXERCISES, 1, 5, Limits(60)), file)
    results: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return results


def test_what_is_written_is_of_the_form(tmp_path: Path) -> None:
    results = Results.model_validate(_written(tmp_path))
    assert results.tests is not None
    assert results.score == sum(each.score or 0 for each in results.tests)
    assert [each.status for each in results.tests] == ["passed", "failed", "failed"]
    assert all((each.score or 0) <= (each.max_score or 0) for each in results.tests)


@pytest.mark.parametrize("results", [_OTTER, _UTILS], ids=["otter-grader", "gradescope-utils"])
def test_the_form_takes_what_others_write(results: dict[str, Any]) -> None:
    Results.model_validate(results)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"score": "5"}, "score"),
        ({"execution_time": -1}, "execution_time"),
        ({"visibility": "secret"}, "visibility"),
        ({"marks": []}, "marks"),
        ({"tests": [{"score": 1.0, "status": "done"}]}, "status"),
        ({"tests": [{"number": 1}]}, "number"),
        ({"score": None, "tests": [{"name": "a"}]}, "neither the file nor each"),
    ],
)
def test_the_form_refuses_what_is_not(change: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=says):
        Results.model_validate({**_written(tmp_path), **change})
