"""`tvm-practice grade`: marks of a class, some of whom mean harm."""

import csv
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.course.classroom.made import chapter, harm
from tests.pages import run_blocks
from tvm_practice.course.__main__ import main
from tvm_practice.course.catalog import find, phase
from tvm_practice.course.classroom import marking, sandbox
from tvm_practice.course.classroom.likeness import REFERENCE, compare
from tvm_practice.course.classroom.marking import Rules, mark
from tvm_practice.course.classroom.sandbox import Limits, NoSandbox
from tvm_practice.course.classroom.submissions import Submission, find_submissions
from tvm_practice.course.telling import reference

_RIGHT = {name: reference(find(name)) for name in ("matmul", "dense_bias_relu", "softmax")}


def _need_walls() -> None:
    try:
        sandbox.check_walls()
    except NoSandbox as missing:
        pytest.skip(str(missing))


@pytest.mark.pages
@pytest.mark.slow
def test_a_class_with_some_who_mean_harm(classroom: Path, tmp_path: Path) -> None:
    _need_walls()
    home = tmp_path / "home"
    home.mkdir()
    (home / "thesis").write_text("kept")

    def means(kind: str, exercise: str) -> str:
        return harm(kind, home).replace("def matmul(", f"def {exercise}(")

    texts = {
        "ada": chapter("te_basics", **_RIGHT),
        "bob": chapter(
            "te_basics",
            matmul=means("forks", "matmul"),
            dense_bias_relu=means("hangs", "dense_bias_relu"),
            softmax=means("hoards", "softmax").replace("m, n, k", "m, n"),
        ),
        "cy": chapter(
            "te_basics",
            matmul=means("deletes", "matmul"),
            dense_bias_relu=means("prints", "dense_bias_relu"),
            softmax=_RIGHT["softmax"],
        ),
    }
    for name, text in texts.items():
        (classroom / name).mkdir()
        (classroom / name / "te_basics.py").write_text(text)
    (classroom / "dora.zip").write_bytes(b"PK")
    out = tmp_path / "marks"
    limits = ["--seconds", "40", "--memory", "3"]  # filling more takes as long, under load
    options = ["--only", "1", *limits, "--seed", "7", "--out", str(out)]
    result = CliRunner().invoke(main, ["grade", str(classroom), *options])
    assert result.exit_code == 1, result.output
    with (out / "marks.csv").open() as file:
        marks = {each["student"]: each for each in csv.DictReader(file)}
    assert [marks[name]["points"] for name in ("ada", "bob", "cy", "dora")] == ["5", "0", "2", "0"]
    assert "File is not a zip file" in marks["dora"]["remark"]
    assert (home / "thesis").read_text() == "kept"
    bob = json.loads((out / "results" / "bob.json").read_text())
    seen = [each["output"].splitlines()[1] for each in bob["tests"]]
    # On a busy machine hundreds of processes may keep the count from being taken in time.
    late = r"no answer from the current engine in \d+ s"  # 40, or up to four times as many there
    assert re.search(f"64 processes|GiB of memory|{late}", seen[0])
    # What ends it: the grader's time limit, or the sandbox's end (of a process of its own, say).
    assert re.search(f"{late}|exit code", seen[1])
    assert re.search("MemoryError|GiB of memory", seen[2])
    assert (out / "results" / "cy.json").stat().st_size < 20_000
    # A second time nothing is graded that did not change; the seed is that of the marks.
    again = CliRunner().invoke(main, ["grade", str(classroom), *options[:6], *options[8:]])
    assert again.exit_code == 1 and "seed 7" in again.output
    assert json.loads((out / "results" / "bob.json").read_text()) == bob


@pytest.mark.pages
@pytest.mark.slow
def test_the_teachers_page_from_the_first_command_to_the_marks(tmp_path: Path) -> None:
    _need_walls()
    graded, written, notebooks, slides, template = run_blocks("teaching.md", tmp_path)
    assert re.search(r"ada +5 of 5\nbob +0 of 5\n", graded)
    assert "ada,5,5,1,2,2,\nbob,0,5,0,0,0,\n" in written
    assert '"max_score": 2' in written and "ada,(reference),1.00,1.00," in written
    assert "for-students/1-te_basics.ipynb" in notebooks
    assert "slides/1-te_basics.html" in slides
    assert "te_basics.py" in template and "classroom.yml" in template


def test_a_sandbox_that_ends_costs_one_exercise(monkeypatch: pytest.MonkeyPatch) -> None:
    """And one that does not start costs all; both say why."""
    exercises = phase("te_basics").exercises
    text = chapter("te_basics").encode()
    rules = Rules(exercises, 1, 5, Limits(60))
    asked: list[list[str]] = []

    def ends_at_matmul(_module: str, job: dict, _folder: Path, _limits: Limits, heard, **_) -> str:  # type: ignore[no-untyped-def, type-arg]
        asked.append(job["exercises"])
        for name in job["exercises"]:
            heard({"begins": name})
            if name == "te_basics.matmul":
                return "more than 1 GiB of memory"
            heard({"exercise": name, "status": "passed", "message": "", "seconds": 1, "output": ""})
        return ""

    monkeypatch.setattr(sandbox, "run", ends_at_matmul)
    marked = mark(Submission("ada", {"te_basics": text}), rules)
    assert [each.status for each in marked.marks] == ["failed", "passed", "passed"]
    assert marked.remark == "te_basics.matmul: more than 1 GiB of memory"
    assert len(asked) == 2 and asked[1] == [each.id for each in exercises[1:]]
    monkeypatch.setattr(sandbox, "run", lambda *_, **__: "exit code 1: no such module")
    marked = mark(Submission("ada", {"te_basics": text}), rules)
    assert marked.points == 0 and "no such module" in marked.marks[2].message


def test_what_was_not_handed_in_has_no_points(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = Rules([find("matmul")], 1, 5, Limits(60))
    monkeypatch.setattr(sandbox, "run", lambda *_, **__: pytest.fail("nothing is to be graded"))
    (marked,) = mark(Submission("ada"), rules).marks
    assert (marked.status, marked.points) == ("todo", 0)
    assert marked.message == "no te_basics.py was handed in"


def test_answers_that_are_alike_are_found(classroom: Path) -> None:
    """Other names and another layout do not hide a copy; the stubs are not taken for one."""
    pytest.importorskip("copydetect")
    own = """def softmax(m, n):
    from tvm import te
    X = te.placeholder((m, n), name="X")
    best = te.reduce_axis((0, n), name="best")
    top = te.compute([m], lambda row: te.max(X[row, best], axis=best), name="top")
    powers = te.compute([m, n], lambda *at: te.exp(X[at] - top[at[0]]), name="powers")
    again = te.reduce_axis((0, n), name="again")
    whole = te.compute([m], lambda row: te.sum(powers[row, again], axis=again), name="whole")
    return [X, te.compute([m, n], lambda *at: powers[at] / whole[at[0]], name="softmax")]
"""
    renamed = own.replace("best", "b").replace("powers", "p").replace("again", "z")
    head, _, body = own.partition("\n")
    twice = "\n".join([head, body.replace("return", "unused ="), body])
    answers = {"abe": twice, "ada": own, "bob": renamed, "cy": _RIGHT["softmax"]}
    for name, source in answers.items():
        (classroom / f"{name}.py").write_text(chapter("te_basics", softmax=source))
    (classroom / "dora.py").write_text(chapter("te_basics"))
    exercises = phase("te_basics").exercises
    submissions = find_submissions(classroom, [phase("te_basics")])
    pairs = {
        (each.first, each.second): each for each in compare(submissions, exercises, at_least=0.8)
    }
    assert ("ada", "bob") in pairs and ("cy", REFERENCE) in pairs
    assert pairs["ada", "bob"].exercises == ("te_basics.softmax",)
    assert not [pair for pair in pairs if "dora" in pair or set(pair) == {"ada", "cy"}]
    assert all(
        0 < share <= 1 for each in pairs.values() for share in (each.of_first, each.of_second)
    )


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "does not exist"),
        (["."], "has no submission"),
        ([".", "--only", "matmull"], "did you mean matmul"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["grade", *arguments])
    assert result.exit_code == 2 and says in result.output
    assert not list(tmp_path.iterdir())


def test_points_are_stars() -> None:
    assert marking.worth(find("matmul")) == 1
    assert marking.worth(find("packed_matmul")) > 1
