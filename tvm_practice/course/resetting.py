"""Putting an exercise's stub back."""

import os
import shutil
from pathlib import Path

from tvm_practice.course.catalog import MINE, Exercise
from tvm_practice.course.editing import function_source, is_stub, replace_function, stubbed
from tvm_practice.course.grading import file_problem, reference_file, source_file
from tvm_practice.course.progress import Progress


def stub(exercise: Exercise) -> str:
    """The exercise's stub: the reference's signature and docstring, and the title as its error."""
    text = reference_file(exercise).read_text(encoding="utf-8")
    return function_source(stubbed(text, exercise.name, exercise.title), exercise.name)


def reset_exercise(progress: Progress, exercise: Exercise) -> Path | None:
    """Replace the learner's function by its stub, and forget the hints shown.

    Returns the backup of the learner's text; None if it is a stub already. Raises ValueError if
    the function cannot be found in its file, and OSError, before anything is changed, if the
    backup or the file cannot be written.
    """
    file = source_file(exercise.phase, MINE).resolve()
    if problem := file_problem(file):
        raise ValueError(problem)
    text = file.read_text(encoding="utf-8")
    try:
        if is_stub(text, exercise.name):
            return None
        replaced = replace_function(text, exercise.name, stub(exercise))
        backup = progress.back_up(exercise, function_source(text, exercise.name))
    except KeyError:
        raise ValueError(
            f"{file.name} has no function {exercise.name}; put its `def` line back"
        ) from None
    writing = file.with_name(f".{file.name}.{os.getpid()}.writing")
    try:
        writing.write_text(replaced, encoding="utf-8")
        shutil.copymode(file, writing)
        writing.replace(file)
    finally:
        writing.unlink(missing_ok=True)
    progress.update(exercise, hint=0)
    return backup
