"""`tvm-practice grade` of capstones: digests computed again, scores measured again."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from tests.course.capstone.test_command import ROOF, result
from tests.mutants.capstones import FOLDER
from tvm_practice.course.capstone.running import Result
from tvm_practice.course.capstone.submission import make_submission, read_submission
from tvm_practice.course.catalog import SOLUTIONS
from tvm_practice.course.classroom import sandbox
from tvm_practice.course.classroom.capstones import TAMPERED, find_capstones, grade_capstones
from tvm_practice.course.classroom.marking import Rules
from tvm_practice.course.classroom.sandbox import Limits, NoSandbox
from tvm_practice.course.grading import source_file
from tvm_practice.course.screen import Screen

RULES = Rules((), 7, 60, Limits(300))
FULL_ROOF = {**ROOF, "second_cache_bytes": 2**20, "last_cache_bytes": 2**25}


def hand_in(folder: Path, name: str, code: str, track: str = "product") -> Path:
    content = make_submission(code, 1, [result(track)], {"processor": "x"}, {}).model_dump()
    file = folder / f"{name}.json"
    file.write_text(json.dumps(content))
    return file


def table(out: Path) -> dict[str, dict[str, str]]:
    with (out / "capstone.csv").open() as file:
        return {each["student"]: each for each in csv.DictReader(file)}


def test_the_graders_score_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, out = tmp_path / "class", tmp_path / "marks"
    folder.mkdir()
    hand_in(folder, "ada", "code")
    bob = hand_in(folder, "bob", "code")
    bob.write_text(bob.read_text().replace("83.9", "99.9"))
    (folder / "cy.json").write_text("{")
    hand_in(folder, "dora", "hangs")
    ran = []

    def run(_: str, job: dict[str, Any], place: Path, *arguments: Any, **__: Any) -> str:
        ran.append((place / "capstone.py").read_text())
        if ran[-1] == "hangs":
            return "more than 300 seconds"
        arguments[1]({"begins": "product"})
        arguments[1]({"result": Result("product", "scored", score=85.0, tier="gold").to_dict()})
        return ""

    monkeypatch.setattr(sandbox, "run", run)

    def grade() -> bool:
        screen = Screen(plain=True)
        return grade_capstones(screen, find_capstones(folder), RULES, out, roofs={"1": ROOF})

    assert not grade()
    marks = table(out)
    assert [marks[name]["points"] for name in ("ada", "bob", "cy", "dora")] == ["3", "3", "0", "0"]
    assert marks["bob"]["remark"] == TAMPERED and marks["bob"]["product claimed"] == "99.9"
    assert marks["ada"]["product score"] == "85.0" and not marks["ada"]["remark"]
    assert "is no submission" in marks["cy"]["remark"]
    assert "more than 300 seconds" in marks["dora"]["remark"]
    assert read_submission(out / "capstone" / "ada.json").score("product") == 85
    scores = json.loads((out / "results" / "ada.json").read_text())
    assert scores["leaderboard"] == [{"name": "product", "value": 85.0}] and scores["score"] == 3
    # A second time nothing is graded that did not change.
    assert len(ran) == 3 and not grade() and len(ran) == 3
    assert table(out) == marks


@pytest.mark.pages
@pytest.mark.slow
def test_an_answer_and_a_cheat_in_the_sandbox(tmp_path: Path) -> None:
    try:
        sandbox.check_walls()
    except NoSandbox as missing:
        pytest.skip(str(missing))
    folder, out = tmp_path / "class", tmp_path / "marks"
    folder.mkdir()
    hand_in(folder, "ada", source_file("capstone", SOLUTIONS).read_text(), "attention")
    hand_in(folder, "eve", (FOLDER / "keeps_result.py").read_text())
    grade_capstones(
        Screen(plain=True), find_capstones(folder), RULES, out, roofs={"1": FULL_ROOF}, rounds=1
    )
    marks = table(out)
    assert float(marks["ada"]["attention score"]) > 0
    assert marks["eve"]["product score"] == "0.0"
    told = json.loads((out / "results" / "eve.json").read_text())["tests"][0]["output"]
    assert "this is the last call's result" in told
