"""The file that is handed in, and its digest."""

import json
from pathlib import Path
from typing import Any

import pytest

from tvm_practice.course.capstone.running import Result
from tvm_practice.course.capstone.submission import (
    BadSubmission,
    Submission,
    make_submission,
    read_submission,
)


def made(score: float = 50.0) -> Submission:
    result = Result("product", "scored", score=score, tier="gold")
    return make_submission("def product(): ...", 7, [result], {"processor": "x"}, {})


def written(folder: Path, **changes: Any) -> Path:
    file = folder / "ada.json"
    file.write_text(json.dumps({**made().model_dump(), **changes}))
    return file


def test_it_is_read_as_it_was_written(tmp_path: Path) -> None:
    found = read_submission(written(tmp_path))
    assert found.is_whole
    assert found.score("product") == 50 and found.score("attention") == 0
    assert found.total == 50


@pytest.mark.parametrize(
    "changes",
    [
        {"code": "def product(): pass"},
        {"seed": 8},
        {"machine": {"processor": "y"}},
        {"results": {"product": Result("product", "scored", score=99.0).to_dict()}},
    ],
)
def test_a_change_is_seen(tmp_path: Path, changes: dict[str, Any]) -> None:
    assert not read_submission(written(tmp_path, **changes)).is_whole


@pytest.mark.parametrize(
    "changes", [{"code": 1}, {"more": 1}, {"results": {"sorting": {}}}, {"format": "2"}]
)
def test_what_is_no_submission_says_why(tmp_path: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(BadSubmission, match=f"is no submission: {next(iter(changes))}"):
        read_submission(written(tmp_path, **changes))


def test_a_result_of_another_form_has_no_score(tmp_path: Path) -> None:
    found = read_submission(written(tmp_path, results={"product": {"score": "high"}}))
    assert found.result("product") is None and found.total == 0
