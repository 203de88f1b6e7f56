"""Marks as files: one table for the class, and one file for each student in Gradescope's form."""

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm_practice.course.classroom.likeness import Likeness
from tvm_practice.course.classroom.marking import Mark, Marked, Rules
from tvm_practice.course.classroom.submissions import Submission
from tvm_practice.tvm_export.writing import write_json, write_whole

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_gradescope(marked: Marked, rules: Rules) -> dict[str, Any]:
    """The contents of Gradescope's results.json.

    Its form: https://gradescope-autograders.readthedocs.io/en/latest/specs/
    """
    return {
        "score": marked.points,
        "execution_time": round(marked.seconds),
        "output": marked.remark or f"{marked.points} of {marked.worth} points",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "extra_data": {
            "student": marked.submission.name,
            "digest": digest(marked.submission, rules),
            "remark": marked.remark,
        },
        "tests": [_to_test(number, each) for number, each in enumerate(marked.marks, 1)],
    }


def _to_test(number: int, mark: Mark) -> dict[str, Any]:
    output = "\n\n".join(text for text in (mark.message, mark.output) if text)
    return {
        "number": str(number),
        "name": mark.exercise.id,
        "score": mark.points,
        "max_score": mark.worth,
        "status": "passed" if mark.status == "passed" else "failed",
        "output": output,
        "output_format": "text",
        "extra_data": {"status": mark.status, "seconds": round(mark.seconds, 3)},
    }


def digest(submission: Submission, rules: Rules) -> str:
    """The same where grading again would say the same."""
    asked = " ".join(each.id for each in rules.exercises)
    return f"{submission.digest[:16]} seed {rules.seed} {asked}"


def from_gradescope(submission: Submission, rules: Rules, file: Path) -> Marked | None:
    """What `file` says of a submission, if it was graded under these rules and did not change."""
    try:
        results = json.loads(file.read_text(encoding="utf-8"))
        if results["extra_data"]["digest"] != digest(submission, rules):
            return None
        marks = [
            Mark(
                exercise,
                test["extra_data"]["status"],
                message=test["output"],
                seconds=test["extra_data"]["seconds"],
            )
            for exercise, test in zip(rules.exercises, results["tests"], strict=True)
        ]
        return Marked(
            submission, marks, results["execution_time"], remark=results["extra_data"]["remark"]
        )
    except (OSError, ValueError, KeyError, TypeError):  # none, or one that something else wrote
        return None


def write_results(marked: Marked, rules: Rules, file: Path) -> None:
    """Write Gradescope's file. Raises OSError."""
    write_json(file, to_gradescope(marked, rules))


def write_table(all_marked: Sequence[Marked], rules: Rules, file: Path) -> None:
    """Write a line for each student: points, then the points of each exercise. Raises OSError."""
    lines = [["student", "points", "of", *(each.id for each in rules.exercises), "remark"]]
    for each in all_marked:
        points = [str(mark.points) for mark in each.marks]
        name, remark = each.submission.name, each.remark
        lines.append([name, str(each.points), str(each.worth), *points, remark])
    write_whole(file, to_csv(lines))


def write_likeness(pairs: Sequence[Likeness], file: Path) -> None:
    """Write a line for each pair, the most alike first. Raises OSError."""
    lines = [["first", "second", "of first in second", "of second in first", "exercises"]]
    for each in pairs:
        shares = [f"{each.of_first:.2f}", f"{each.of_second:.2f}"]
        lines.append([each.first, each.second, *shares, " ".join(each.exercises)])
    write_whole(file, to_csv(lines))


def to_csv(lines: Sequence[Sequence[str]]) -> str:
    """A table as text. No cell begins as a formula does."""
    table = io.StringIO()
    rows = [[_as_text(cell) for cell in line] for line in lines]
    csv.writer(table, lineterminator="\n").writerows(rows)
    return table.getvalue()


def _as_text(field: str) -> str:
    """So that a spreadsheet does not take what a student named for a formula."""
    return f"'{field}" if field.startswith(_FORMULA) else field
