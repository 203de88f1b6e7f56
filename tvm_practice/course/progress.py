"""What is remembered between two commands: how exercises were graded, which hints were shown.

It is one JSON file in the folder `.tvm-practice` beside the learner's package, or in the folder
that TVM_PRACTICE_HOME names. It holds nothing that grading anew does not bring back: a file that
cannot be read is set aside, a folder that cannot be written is done without.
"""

import hashlib
import inspect
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Literal

from filelock import FileLock
from pydantic import BaseModel, ConfigDict, ValidationError

from tvm_practice.course.catalog import MINE, Exercise, exercises
from tvm_practice.course.editing import reach
from tvm_practice.course.grading import (
    Grader,
    Status,
    Verdict,
    grade_unrun,
    learners_folder,
    source_file,
)

_LOCK_SECONDS = 10.0
# A check that took longer is not followed by a look at what the function gives.
_PATIENCE_SECONDS = 20.0


class Record(BaseModel):
    """What is kept of one exercise.

    Attributes:
        fingerprint: of the learner's function and of the check, as they were graded; None while
            it was not graded.
        status: what grading found, and `message` why.
        graded: when, in ISO 8601.
        passed: when it first passed.
        hint: the last level shown, 0 for none.
    """

    model_config = ConfigDict(extra="allow")  # a newer course's keys survive an older one

    fingerprint: str | None = None
    status: Status | None = None
    message: str = ""
    graded: str | None = None
    passed: str | None = None
    hint: int = 0


class _File(BaseModel):
    model_config = ConfigDict(extra="allow")

    schema_version: Literal[1] = 1
    exercises: dict[str, Record] = {}
    # Numbers said before a run, and whether the last answer to a review's question was right.
    predictions: dict[str, float] = {}
    answers: dict[str, bool] = {}


def home() -> Path:
    """The folder of the progress file and of the texts that `reset` replaced."""
    if named := os.environ.get("TVM_PRACTICE_HOME"):
        return Path(named).absolute()
    return learners_folder().parent / ".tvm-practice"


def fingerprint(exercise: Exercise) -> str | None:
    """Of all that a grade depends on in the learner's file and in the check's, less comments.

    Hints, titles and other exercises do not count: changing them leaves a grade standing. None if
    the file cannot be read or has no such function.
    """
    try:
        mine = reach(source_file(exercise.phase, MINE).read_text(encoding="utf-8"), exercise.name)
    except (OSError, SyntaxError, ValueError, KeyError):
        return None
    # The file that holds it, and not where it is decorated.
    check = inspect.unwrap(exercise.check)
    graded_by = reach(Path(inspect.getfile(check)).read_text(), check.__name__)
    return hashlib.sha256("\0".join([exercise.engine, graded_by, mine]).encode()).hexdigest()


class Progress:
    """The progress file.

    `say` takes a line for the person: that the file was set aside, or that nothing is kept.
    """

    def __init__(self, say: Callable[[str], None], folder: Path | None = None):
        self.folder = folder or home()
        self.file = self.folder / "progress.json"
        self._say = say
        self._kept = True
        self._content = self._read()

    def record(self, exercise: Exercise) -> Record:
        """What is kept of the exercise, as a copy."""
        return self._content.exercises.get(exercise.id, Record()).model_copy()

    def update(self, exercise: Exercise, **changes: object) -> None:
        """Change these attributes of the exercise's record, in the file as it is by now."""
        self._write(lambda: self._change(exercise, changes))

    @property
    def predictions(self) -> Mapping[str, float]:
        """Numbers said before a run, by phase and name."""
        return self._content.predictions

    def predict(self, name: str, number: float) -> None:
        """Keep a prediction; one that is there stays."""
        self._write(lambda: self._content.predictions.setdefault(name, number))

    @property
    def answers(self) -> Mapping[str, bool]:
        """Whether the last answer to each question of a review was right."""
        return self._content.answers

    def answer(self, question: str, right: bool) -> None:
        """Keep whether a question was answered rightly."""
        self._write(lambda: self._content.answers.update({question: right}))

    def _write(self, change: Callable[[], object]) -> None:
        """Change the content, in the file as it is by now."""
        if self._kept:
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                with FileLock(self.folder / "progress.lock", timeout=_LOCK_SECONDS):
                    self._content = self._read()
                    change()
                    writing = self.file.with_name(f".progress.{os.getpid()}.writing")
                    writing.write_text(self._content.model_dump_json(indent=2, exclude_none=True))
                    writing.replace(self.file)
                return
            except OSError as error:
                self._kept = False
                self._say(f"Progress is not kept: {error}")
        change()

    def _change(self, exercise: Exercise, changes: dict[str, object]) -> None:
        self._content.exercises[exercise.id] = self.record(exercise).model_copy(update=changes)

    def _read(self) -> _File:
        try:
            return _File.model_validate_json(self.file.read_bytes())
        except FileNotFoundError:
            return _File()
        except OSError as error:
            self._kept = False
            self._say(f"Progress is not kept: {error}")
        except ValidationError:
            self._set_aside()
        return _File()

    def _set_aside(self) -> None:
        aside = self.file.with_name(f"progress.{_stamp()}.unreadable.json")
        try:
            self.file.replace(aside)
        except OSError as error:
            self._kept = False
            self._say(f"Progress is not kept: {self.file} is unreadable, and {error}")
        else:
            self._say(f"{self.file} was unreadable; it is now {aside.name}, and a new one begins")

    def back_up(self, exercise: Exercise, text: str) -> Path:
        """Keep a text of the learner's function; returns the file. Raises OSError."""
        folder = self.folder / "backups"
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / f"{exercise.id}.{_stamp()}.py"
        with file.open("x", encoding="utf-8") as opened:
            opened.write(text + "\n")
        return file


def _stamp() -> str:
    return datetime.now().strftime("%Y%m%d-%H%M%S-%f")


class Standing:
    """Where the learner stands: what is remembered where nothing changed, else graded anew."""

    def __init__(self, progress: Progress, grader: Grader):
        self.progress = progress
        self.grader = grader

    def known(self, exercise: Exercise) -> Verdict | None:
        """The verdict, if it takes no grading to know it."""
        if (unrun := grade_unrun(exercise)) is not None:
            return unrun
        record = self.progress.record(exercise)
        if record.status is None or record.fingerprint != fingerprint(exercise):
            return None
        return Verdict(exercise, record.status, record.message)

    def grade(self, exercise: Exercise) -> Verdict:
        """Grade the exercise anew, and remember the verdict."""
        before = fingerprint(exercise)
        verdict = self.grader.grade(exercise)
        if verdict.status == "failed" and verdict.seconds < _PATIENCE_SECONDS:
            verdict = replace(verdict, gives=self.grader.compare_results(exercise))
        # A file that was saved meanwhile may not be the one that was graded.
        if verdict.status in ("passed", "failed") and before and before == fingerprint(exercise):
            now = datetime.now(timezone.utc).isoformat()
            changes = {
                "fingerprint": before,
                "status": verdict.status,
                "message": verdict.message,
                "graded": now,
            }
            if verdict.status == "passed" and not self.progress.record(exercise).passed:
                changes["passed"] = now
            self.progress.update(exercise, **changes)
        return verdict

    def verdict(self, exercise: Exercise) -> Verdict:
        """What is known, else what grading finds."""
        return self.known(exercise) or self.grade(exercise)

    def passed(self, exercise: Exercise) -> bool:
        """Whether the exercise is passed, or was once."""
        return bool(self.progress.record(exercise).passed) or (
            self.verdict(exercise).status == "passed"
        )

    def last_passed(self) -> Exercise | None:
        """Of the exercises that are known to pass, the one that was graded last."""
        passing = [
            (self.progress.record(exercise).graded or "", exercise.id, exercise)
            for exercise in exercises()
            if (known := self.known(exercise)) is not None and known.status == "passed"
        ]
        return max(passing)[2] if passing else None

    def is_done(self, exercise: Exercise) -> bool:
        """Whether it is known to pass, or cannot be graded here."""
        known = self.known(exercise)
        return known is not None and known.status in ("passed", "unavailable")

    def next(self, after: Exercise | None = None, *, surely: bool = False) -> Exercise | None:
        """The next exercise that is not done, None if all are.

        From the course's beginning, or from behind `after` and round to it. One that was never
        graded may pass; with `surely` it is graded to see, and passed over if it does.
        """
        order = exercises()
        start = 0 if after is None else order.index(after) + 1
        for exercise in order[start:] + order[:start]:
            if surely and self.progress.record(exercise).status is None:
                self.verdict(exercise)
            if not self.is_done(exercise):
                return exercise
        return None
