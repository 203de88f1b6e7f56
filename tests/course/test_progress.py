"""The progress file, and which grades stand."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.course.conftest import Tree
from tvm_practice.course.catalog import exercises, find
from tvm_practice.course.grading import Grader
from tvm_practice.course.progress import Progress, Standing, fingerprint

MATMUL = "te_basics.matmul"


def test_a_grade_stands_until_what_it_depends_on_changes(cheap: Tree, grader: Grader) -> None:
    def standing() -> Standing:
        return Standing(Progress(pytest.fail), grader)

    def stands() -> bool:
        return standing().known(find(MATMUL)) is not None

    cheap.solve("matmul")
    file = cheap.file("te_basics")
    assert standing().known(find(MATMUL)) is None
    standing().grade(find(MATMUL))

    assert stands()
    cheap.solve("softmax")
    file.write_text(file.read_text().replace(" [A, B, C]\n", " [A,  B, C]  # all\n"))
    assert stands(), "another exercise, a comment and layout change nothing"
    text = file.read_text()
    file.write_text(text.replace("Any]:", "Any]:\n    SIZE", 1) + "\nSIZE = 1\n")
    cheap.write("matmul", cheap.source("matmul") + "\n    SIZE")
    standing().grade(find(MATMUL))
    assert stands()
    file.write_text(file.read_text().replace("SIZE = 1", "SIZE = 2"))
    assert not stands(), "what the function uses is part of it"


def test_a_changed_check_is_graded_again_and_a_changed_hint_is_not(cheap: Tree) -> None:
    cheap.solve("matmul")
    matmul = find(MATMUL)
    reworded = dataclasses.replace(matmul, title="new", hints=("a", "b", "c"), looks_like="new")
    assert fingerprint(reworded) == fingerprint(matmul)
    changed = dataclasses.replace(matmul, check=find("te_basics.softmax").check)
    assert fingerprint(changed) != fingerprint(matmul)


def test_a_file_saved_while_it_is_graded_is_not_remembered(
    cheap: Tree, grader: Grader, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheap.solve("matmul")
    grade = Grader.grade

    def save_and_grade(grader: Grader, *arguments: object) -> object:
        verdict = grade(grader, *arguments)  # type: ignore[arg-type]
        cheap.botch("matmul")
        return verdict

    monkeypatch.setattr(Grader, "grade", save_and_grade)
    standing = Standing(Progress(pytest.fail), grader)
    assert standing.grade(find(MATMUL)).status == "passed"
    assert not cheap.progress.exists()


@pytest.mark.parametrize("content", ['{"exerc', "[]", '{"schema_version": 7}', "\0"])
def test_an_unreadable_file_is_set_aside(cheap: Tree, content: str) -> None:
    cheap.progress.parent.mkdir()
    cheap.progress.write_text(content)
    said = cheap.run("list").stderr
    assert len(said.splitlines()) == 1 and "was unreadable" in said
    (aside,) = cheap.progress.parent.glob("progress.*.unreadable.json")
    assert aside.read_text() == content
    assert cheap.run("list").stderr == ""


def test_a_folder_that_cannot_be_written_is_done_without(
    cheap: Tree, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TVM_PRACTICE_HOME", str(tmp_path / "file" / "home"))
    cheap.solve("matmul", "softmax")
    done = cheap.run("list")
    assert "2 done" in done.stdout
    assert len(done.stderr.splitlines()) == 1 and "Progress is not kept" in done.stderr
    assert "Next: te_basics.dense_bias_relu" in cheap.run("check", "matmul").stdout
    assert "Hint 1 of 3" in cheap.run("hint", "matmul").stdout
    cheap.run("reset", "matmul", code=1)  # without a backup nothing is replaced
    assert "te.compute" in cheap.source("matmul")


def test_keys_of_a_newer_course_survive(cheap: Tree) -> None:
    cheap.progress.parent.mkdir()
    cheap.progress.write_text('{"later": 1, "exercises": {"gone.away": {"hint": 2, "more": 3}}}')
    cheap.run("hint", "matmul")
    kept = json.loads(cheap.progress.read_text())
    assert kept["later"] == 1 and kept["exercises"]["gone.away"]["more"] == 3
    assert kept["exercises"][MATMUL]["hint"] == 1 and kept["schema_version"] == 1


def test_two_processes_at_once_lose_nothing(cheap: Tree) -> None:
    code = (
        "import sys\n"
        "from tvm_practice.course.catalog import exercises\n"
        "from tvm_practice.course.progress import Progress\n"
        "progress = Progress(sys.exit)\n"
        "for exercise in exercises()[int(sys.argv[1]) :: 2]:\n"
        "    progress.update(exercise, hint=3)\n"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, start]) for start in "01"]
    assert [each.wait(60) for each in running] == [0, 0]
    kept = json.loads(cheap.progress.read_text())["exercises"]
    assert len(kept) == len(exercises()) and {each["hint"] for each in kept.values()} == {3}
    assert not list(cheap.progress.parent.glob("*.writing"))
