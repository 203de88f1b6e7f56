"""A template repository for GitHub Classroom: chapters, pages, a workflow that grades."""

import json
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tvm_practice.course.catalog import MINE, Exercise, Phase, phase, phases
from tvm_practice.course.classroom.marking import worth
from tvm_practice.course.editing import replace_function
from tvm_practice.course.grading import source_file
from tvm_practice.course.resetting import stub
from tvm_practice.course.screen import Screen, near
from tvm_practice.course.telling import page_of
from tvm_practice.engines import CLASSIC

_TEMPLATE = Path(__file__).with_name("template")
_CLASSIC = "requirements-classic.txt"
_MINUTES = 10


@dataclass(frozen=True)
class Task:
    """One exercise, as the template's files say it."""

    name: str
    file: str
    heading: str
    page: str
    points: int
    command: str


def write_template(
    screen: Screen, folder: Path, chosen: Sequence[Exercise], *, install: str
) -> int:
    """Write the repository into `folder`, whole or not at all; the exit code.

    Args:
        chosen: the exercises; without any, those of phase 1.
        install: what pip installs as the course.
    """
    if folder.exists() and any(folder.iterdir()):
        raise click.UsageError(f"{folder} is not empty")
    exercises = list(dict.fromkeys(chosen)) or phases()[0].exercises
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        with tempfile.TemporaryDirectory(dir=folder.parent) as made:
            _write(Path(made) / folder.name, exercises, install)
            (Path(made) / folder.name).replace(folder)
    except OSError as error:
        screen.note(f"{near(folder)} is not written: {error}")
        return 1
    count = "1 exercise" if len(exercises) == 1 else f"{len(exercises)} exercises"
    screen.say(f"{near(folder)}: a template repository with {count}")
    return 0


def _write(folder: Path, exercises: Sequence[Exercise], install: str) -> None:
    chapters = [phase(module) for module in dict.fromkeys(each.phase for each in exercises)]
    for chapter in chapters:
        file = folder / _file_of(chapter)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(_stubs(chapter), encoding="utf-8")
        _copy_page(chapter, folder)
    (folder / "requirements.txt").write_text(f"{install}\n", encoding="utf-8")
    has_classic = any(each.engine == CLASSIC for each in exercises)
    if has_classic:  # it lies beside the pages
        shutil.copy(page_of(chapters[0]).parents[2] / _CLASSIC, folder)
    (folder / ".gitignore").write_text(".tvm-practice/\nruns/\n__pycache__/\n", encoding="utf-8")
    tasks = [_task(each) for each in exercises]
    title = ", ".join(f"{each.heading}: {each.title}" for each in chapters)
    values = {"title": title, "exercises": tasks, "classic": has_classic}
    (folder / "README.md").write_text(_filled("README.md.j2", values), encoding="utf-8")
    workflow = folder / ".github" / "workflows" / "classroom.yml"
    workflow.parent.mkdir(parents=True)
    workflow.write_text(_filled("classroom.yml.j2", values), encoding="utf-8")
    tests = folder / ".github" / "classroom" / "autograding.json"
    tests.parent.mkdir(parents=True)
    tests.write_text(json.dumps(_autograding(tasks), indent=2) + "\n", encoding="utf-8")


def _file_of(chapter: Phase) -> str:
    return f"chapters/{chapter.module.replace('.', '/')}.py"


def _task(exercise: Exercise) -> Task:
    chapter = phase(exercise.phase)
    return Task(
        exercise.name,
        _file_of(chapter),
        chapter.heading,
        chapter.page,
        worth(exercise),
        f"tvm-practice check {exercise.name}",
    )


def _stubs(chapter: Phase) -> str:
    """The chapter as nobody has edited it, even if somebody has."""
    text = source_file(chapter.module, MINE).read_text(encoding="utf-8")
    for exercise in chapter.exercises:
        text = replace_function(text, exercise.name, stub(exercise))
    return text


def _copy_page(chapter: Phase, folder: Path) -> None:
    """The chapter's page with its pictures; links to other pages become plain text."""
    page = page_of(chapter)
    text = page.read_text(encoding="utf-8")
    text = re.sub(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)
    copy = folder / chapter.page
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(text, encoding="utf-8")
    for picture in re.findall(r"!\[[^\]]*\]\((?!https?:)([^)]+)\)", text):
        (copy.parent / picture).resolve().parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page.parent / picture, (copy.parent / picture).resolve())


def _filled(name: str, values: dict[str, Any]) -> str:
    """A template; its marks are not those of GitHub's expressions."""
    import jinja2

    environment = jinja2.Environment(
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.from_string((_TEMPLATE / name).read_text(encoding="utf-8")).render(values)


def _autograding(tasks: Sequence[Task]) -> dict[str, Any]:
    """The same commands in the form that GitHub Classroom's own page reads."""
    return {
        "tests": [
            {
                "name": each.name,
                "setup": "",
                "run": f"TVM_PRACTICE_FILES=chapters {each.command}",
                "input": "",
                "output": "",
                "comparison": "included",
                "timeout": _MINUTES,
                "points": each.points,
            }
            for each in tasks
        ]
    }
