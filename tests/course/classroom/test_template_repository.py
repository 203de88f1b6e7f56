"""`tvm-practice classroom`: the repository that GitHub Classroom copies for each student."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner

from tests.pages import environment
from tvm_practice.course.__main__ import main
from tvm_practice.course.catalog import find, phase
from tvm_practice.course.classroom.marking import worth
from tvm_practice.course.classroom.submissions import find_submissions
from tvm_practice.course.editing import replace_function
from tvm_practice.course.telling import reference


def _make(folder: Path, *arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(main, ["classroom", str(folder), *arguments])
    assert result.exit_code == code, result.output
    return result.output


def _job(folder: Path) -> dict[str, Any]:
    text = (folder / ".github/workflows/classroom.yml").read_text(encoding="utf-8")
    job: dict[str, Any] = yaml.safe_load(text)["jobs"]["run-autograding-tests"]
    return job


def test_each_exercise_is_graded_once_and_reported(tmp_path: Path) -> None:
    folder = tmp_path / "template"
    assert "3 exercises" in _make(folder, "--install", "tvm-practice==0.1.0")
    names = [each.name for each in phase("te_basics").exercises]
    steps = {each["id"]: each for each in _job(folder)["steps"] if "id" in each}
    assert list(steps) == names
    for name, step in steps.items():
        assert step["with"]["max-score"] == worth(find(name))
    reporter = _job(folder)["steps"][-1]
    assert reporter["with"]["runners"] == ",".join(names)
    for name in names:
        expected = "${{ steps." + name + ".outputs.result }}"
        assert reporter["env"][f"{name.upper()}_RESULTS"] == expected
    tests = json.loads((folder / ".github/classroom/autograding.json").read_text())["tests"]
    assert [each["name"] for each in tests] == names
    assert [each["points"] for each in tests] == [worth(find(name)) for name in names]
    assert (folder / "requirements.txt").read_text() == "tvm-practice==0.1.0\n"
    assert not (folder / "requirements-classic.txt").exists()
    everything = "".join(
        each.read_text() for each in folder.rglob("*") if each.suffix in (".yml", ".json", ".md")
    )
    assert "secrets" not in everything and "<<" not in everything and "<%" not in everything


def test_the_workflow_is_one_by_githubs_schema(tmp_path: Path) -> None:
    """As check-jsonschema has it; it can fail."""
    pytest.importorskip("check_jsonschema")
    folder = tmp_path / "template"
    _make(folder, "--only", "2")
    file = folder / ".github/workflows/classroom.yml"
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    command += ["vendor.github-workflows", str(file)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    file.write_text(file.read_text().replace("runs-on:", "runs-at:"))
    assert subprocess.run(command, capture_output=True).returncode == 1


def test_pages_pictures_and_classic_tvm_come_along(tmp_path: Path) -> None:
    folder = tmp_path / "template"
    _make(folder, "--only", "tile_classic", "--only", "matmul", "--only", "lab4")
    page = (folder / "docs/phases/2-manual_schedule.md").read_text()
    assert "](../pictures/" in page and list((folder / "docs/pictures").glob("*.svg"))
    assert ".md)" not in page
    assert "bitblas" in (folder / "requirements-classic.txt").read_text()
    install = next(each for each in _job(folder)["steps"] if each.get("name") == "Install")
    assert "--no-deps -r requirements-classic.txt" in install["run"]
    # A student's repository is what `tvm-practice grade` reads.
    wanted = [phase(each) for each in ("te_basics", "manual_schedule", "labs.dynamic_shapes")]
    (student,) = find_submissions(tmp_path, wanted)
    assert set(student.chapters) == {each.module for each in wanted}


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("kept")
    assert "is not empty" in _make(tmp_path, code=2)
    assert [each.name for each in tmp_path.iterdir()] == ["mine"]
    assert "did you mean matmul" in _make(tmp_path / "new", "--only", "matmull", code=2)
    assert not (tmp_path / "new").exists()


@pytest.mark.pages
@pytest.mark.slow
def test_the_workflows_commands_grade_a_students_repository(tmp_path: Path) -> None:
    folder = tmp_path / "ada"
    _make(folder)
    chapter = folder / "chapters/te_basics.py"
    chapter.write_text(replace_function(chapter.read_text(), "matmul", reference(find("matmul"))))
    job = _job(folder)
    given = {
        name: value.replace("${{ github.workspace }}", str(folder))
        for name, value in job["env"].items()
    }
    codes = {}
    for step in job["steps"]:
        if "command" in step.get("with", {}):
            done = subprocess.run(
                ["bash", "-ec", step["with"]["command"]],
                cwd=folder,
                env={**environment(), **given},
                capture_output=True,
                text=True,
            )
            codes[step["id"]] = done.returncode, done.stdout
    assert codes["matmul"][0] == 0 and "te_basics.matmul passes" in codes["matmul"][1]
    assert codes["softmax"][0] == 1 and "te_basics.softmax is to do" in codes["softmax"][1]
    tests = json.loads((folder / ".github/classroom/autograding.json").read_text())["tests"]
    for test in tests:
        graded = subprocess.call(
            ["bash", "-ec", test["run"]], cwd=folder, env=environment(), stdout=subprocess.DEVNULL
        )
        assert graded == codes[test["name"]][0]
