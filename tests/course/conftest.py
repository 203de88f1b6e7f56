"""A learner's tree in a temporary folder, so that no test touches the working tree's files."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tvm_practice.course.__main__ import main
from tvm_practice.course.catalog import MODULES, Exercise, find, phase
from tvm_practice.course.editing import function_source, replace_function
from tvm_practice.course.grading import Grader, Verdict, grade_unrun, source_file
from tvm_practice.course.resetting import stub
from tvm_practice.course.telling import reference

ROOT = Path(__file__).parent.parent.parent


@dataclass
class Tree:
    """A course of which nothing is done yet.

    Attributes:
        folder: has `tvm_practice`, with the phases' files, and `docs`.
        graded: ids of the exercises whose checks ran, where the grader is a fake.
    """

    folder: Path
    graded: list[str]

    def file(self, module: str) -> Path:
        return self.folder / "tvm_practice" / f"{module.replace('.', '/')}.py"

    @property
    def progress(self) -> Path:
        return self.folder / ".tvm-practice" / "progress.json"

    def write(self, name: str, source: str) -> None:
        """Write the exercise of that name as a learner would."""
        file = self.file(find(name).phase)
        file.write_text(replace_function(file.read_text(), find(name).name, source))

    def solve(self, *names: str) -> None:
        for name in names:
            self.write(name, reference(find(name)))

    def botch(self, name: str) -> None:
        self.write(name, reference(find(name)) + "\n    # and wrong\n    undefined")

    def source(self, name: str) -> str:
        return function_source(self.file(find(name).phase).read_text(), find(name).name)

    def run(self, *arguments: str, code: int = 0) -> Result:
        """Run `tvm-practice` with these arguments; it ends with that exit code."""
        result = CliRunner().invoke(main, arguments)
        assert result.exit_code == code, (arguments, result.exit_code, result.output)
        return result


@pytest.fixture(scope="session")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tree, to be copied; made once."""
    folder = tmp_path_factory.mktemp("fresh")
    (folder / "tvm_practice").mkdir()
    for module in MODULES:
        page = phase(module).page
        (folder / page).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / page, folder / page)
        text = (ROOT / "tvm_practice" / f"{module.replace('.', '/')}.py").read_text()
        for exercise in phase(module).exercises:
            text = replace_function(text, exercise.name, stub(exercise))
        file = folder / "tvm_practice" / f"{module.replace('.', '/')}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    return folder


@pytest.fixture
def tree(fresh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tree:
    folder = tmp_path / "tree"
    shutil.copytree(fresh, folder)
    monkeypatch.setenv("TVM_PRACTICE_FILES", str(folder / "tvm_practice"))
    monkeypatch.chdir(folder)
    monkeypatch.delenv("TVM_PRACTICE_HOME", raising=False)
    monkeypatch.delenv("TVM_PRACTICE_PLAIN", raising=False)
    return Tree(folder, [])


@pytest.fixture
def cheap(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> Tree:
    """The same, where a function passes if and only if it is the reference, without an engine."""

    def grade(_: Grader, exercise: Exercise, source: str = "tvm_practice") -> Verdict:
        if (unrun := grade_unrun(exercise, source)) is not None:
            return unrun
        tree.graded.append(exercise.id)
        text = source_file(exercise.phase, source).read_text()
        # A file may be read between being emptied and being written.
        there = f"def {exercise.name}(" in text
        if there and function_source(text, exercise.name) == reference(exercise):
            return Verdict(exercise, "passed")
        return Verdict(exercise, "failed", "expected: x\nseen:     y\nlook at:  z", output="told\n")

    monkeypatch.setattr(Grader, "grade", grade)
    monkeypatch.setattr(Grader, "compare_results", lambda *_: "- mine\n+ right")
    monkeypatch.setattr(Grader, "sketch", lambda *_, **__: {})
    # Whatever engines are here.
    monkeypatch.setattr("tvm_practice.engines.unavailable_reason", _none)
    return tree


_none: Callable[[object], None] = lambda _: None
