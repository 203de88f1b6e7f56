"""One submission's marks: its exercises graded in a sandbox, whatever happens in it."""

import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tvm_practice.course.catalog import Exercise
from tvm_practice.course.classroom import sandbox
from tvm_practice.course.classroom.submissions import Submission
from tvm_practice.course.difficulty import stars

_INSIDE = "tvm_practice.course.classroom.inside"


@dataclass(frozen=True)
class Mark:
    """One exercise of one student.

    Attributes:
        status: passed, failed, todo or unavailable, as in Verdict; unread: it could not be graded.
        message: why it did not pass.
        seconds: what the check took.
        output: what the answer printed, its beginning and end.
    """

    exercise: Exercise
    status: str
    message: str = ""
    seconds: float = 0.0
    output: str = ""

    @property
    def worth(self) -> int:
        """Points of the exercise: its stars."""
        return worth(self.exercise)

    @property
    def points(self) -> int:
        return self.worth if self.status == "passed" else 0


@dataclass(frozen=True)
class Marked:
    """A submission with its marks.

    Attributes:
        marks: of every exercise that was asked for, in order.
        seconds: by the clock.
        remark: what the teacher should know, "" for nothing.
    """

    submission: Submission
    marks: list[Mark] = field(default_factory=list)
    seconds: float = 0.0
    remark: str = ""

    @property
    def points(self) -> int:
        return sum(each.points for each in self.marks)

    @property
    def worth(self) -> int:
        return sum(each.worth for each in self.marks)


@dataclass(frozen=True)
class Rules:
    """How a class is graded.

    Attributes:
        exercises: those that count.
        seed: draws the inputs of all checks, the same for each student.
        seconds: for one check.
        limits: for one submission.
        hidden: folders that no answer may see: the submissions, the marks.
        isolated: in a sandbox.
        stopped: when it is set, grading ends.
    """

    exercises: Sequence[Exercise]
    seed: int
    seconds: float
    limits: sandbox.Limits
    hidden: Sequence[Path] = ()
    isolated: bool = True
    stopped: threading.Event = field(default_factory=threading.Event)


def worth(exercise: Exercise) -> int:
    """Points of an exercise: its stars."""
    return len(stars(exercise))


def mark(submission: Submission, rules: Rules) -> Marked:
    """Grade one submission.

    What ends the sandbox costs the exercise that was being graded; a new sandbox goes on with the
    next one, as long as there is time.
    """
    started = time.monotonic()
    if submission.problem:
        unread = [Mark(each, "unread", submission.problem) for each in rules.exercises]
        return Marked(submission, unread, remark=submission.problem)
    graded = _Grading(submission, rules)
    with tempfile.TemporaryDirectory() as name:
        folder = _unpacked(submission, Path(name))
        ends = started + rules.limits.seconds
        while graded.left and (now := time.monotonic()) < ends and not rules.stopped.is_set():
            graded.go_on(folder, ends - now)
    return Marked(
        submission,
        [graded.mark_of(each) for each in rules.exercises],
        seconds=time.monotonic() - started,
        remark=graded.remark,
    )


def _unpacked(submission: Submission, folder: Path) -> Path:
    """The chapters as files, where the learner's files are expected."""
    folder.chmod(0o755)  # another user may run the sandbox
    for module, text in submission.chapters.items():
        file = (folder / module.replace(".", "/")).with_suffix(".py")
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(text)
    return folder


class _Grading:
    """What is known about a submission's exercises while they are graded.

    Attributes:
        left: ids of the exercises that are to be graded, in order.
        remark: what ended a sandbox.
    """

    def __init__(self, submission: Submission, rules: Rules):
        self._rules = rules
        self._marks: dict[str, Mark] = {}
        self._begun = ""
        self.remark = ""
        self.left = [each.id for each in rules.exercises if each.phase in submission.chapters]

    def go_on(self, folder: Path, seconds: float) -> None:
        """Grade what is left in one sandbox, as far as that gets."""
        rules = self._rules
        self._begun = ""
        job = {"exercises": list(self.left), "seed": rules.seed, "seconds": rules.seconds}
        reason = sandbox.run(
            _INSIDE,
            job,
            folder,
            replace(rules.limits, seconds=seconds),
            self._hear,
            stopped=rules.stopped,
            hidden=rules.hidden,
            isolated=rules.isolated,
        )
        if not self.left:
            return
        # The answer that was being graded has ended it; without one the sandbox did not start.
        ended = [self._begun] if self._begun in self.left else list(self.left)
        for name in ended:
            self._note(name, reason or "the process was ended")

    def mark_of(self, exercise: Exercise) -> Mark:
        found = self._marks.get(exercise.id)
        if found is not None:
            return found
        if exercise.id in self.left:
            return Mark(exercise, "unread", "no time was left for it")
        return Mark(exercise, "todo", f"no {exercise.phase.rpartition('.')[2]}.py was handed in")

    def _hear(self, said: dict[str, Any]) -> None:
        if "begins" in said:
            self._begun = str(said["begins"])
            return
        name = str(said.pop("exercise"))
        if name in self.left:
            self.left.remove(name)
            self._marks[name] = Mark(self._exercise(name), **said)

    def _note(self, name: str, reason: str) -> None:
        self.left.remove(name)
        self.remark = self.remark or f"{name}: {reason}"
        exercise = self._exercise(name)
        message = (
            f"expected: {exercise.name} to end, within its limits\n"
            f"seen:     {reason}\nlook at:  what it starts, keeps or prints"
        )
        self._marks[name] = Mark(exercise, "failed", message)

    def _exercise(self, name: str) -> Exercise:
        return next(each for each in self._rules.exercises if each.id == name)
