"""A page of scores, made from a folder of submissions; it needs no network."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_practice.course.capstone import TRACKS
from tvm_practice.course.capstone.submission import BadSubmission, Submission, read_submission
from tvm_practice.course.capstone.tracks import find_track
from tvm_practice.tvm_export.writing import write_whole

TAMPERED = "its digest does not match its content"


@dataclass(frozen=True)
class Row:
    """One submission on the page.

    Attributes:
        scores: of each track the score and the tier, empty where it was not handed in.
        by: graded, or own.
        machine: the processor and its cores.
    """

    name: str
    scores: tuple[tuple[str, str], ...]
    total: float
    by: str
    machine: str


def read_rows(folder: Path) -> tuple[list[Row], list[tuple[str, str]]]:
    """The .json files of a folder, the highest total first; and those without a place, with why.

    Raises OSError.
    """
    rows, refused = [], []
    for file in sorted(folder.glob("*.json")):
        try:
            found = read_submission(file)
        except BadSubmission as problem:
            refused.append((file.stem, str(problem)))
            continue
        if not found.is_whole:
            refused.append((file.stem, TAMPERED))
        elif found.graded is not None and found.graded.get("remark"):
            refused.append((file.stem, found.graded["remark"]))
        else:
            rows.append(_row(file.stem, found))
    return sorted(rows, key=lambda row: -row.total), refused


def _row(name: str, submission: Submission) -> Row:
    machine = submission.machine
    cores = machine.get("cores_physical")
    return Row(
        name,
        tuple(_cell(submission, track) for track in TRACKS),
        submission.total,
        "own" if submission.graded is None else "graded",
        f"{machine.get('processor', 'unknown')}, {cores} cores",
    )


def _cell(submission: Submission, track: str) -> tuple[str, str]:
    """The score, and the tier that it has by the thresholds of today."""
    from tvm_practice.course.capstone.scoring import tier

    found = submission.result(track)
    if found is None:
        return "", ""
    scored = submission.score(track)
    reached = tier(find_track(track), scored) if found.status == "scored" else found.status
    return f"{scored:.1f}", reached


def render(
    rows: Sequence[Row], refused: Sequence[tuple[str, str]], *, title: str = "Capstone"
) -> str:
    """The page as HTML."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    values: dict[str, Any] = {
        "title": title,
        "tracks": TRACKS,
        "rows": rows,
        "refused": refused,
        "most": max((row.total for row in rows), default=0.0) or 1.0,
    }
    return environment.get_template("leaderboard.html.j2").render(values)


def write_leaderboard(folder: Path, out: Path, *, title: str) -> tuple[int, int]:
    """Write the page; how many have a place, and how many have none. Raises OSError."""
    rows, refused = read_rows(folder)
    write_whole(out, render(rows, refused, title=title))
    return len(rows), len(refused)
