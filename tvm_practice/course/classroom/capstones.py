"""A class's capstones: each digest computed again, each answer gated and scored in a sandbox."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tvm_practice.course.capstone import TRACKS
from tvm_practice.course.capstone.running import Result, Roofs, machine_roofs
from tvm_practice.course.capstone.scoring import ROUNDS, TIERS
from tvm_practice.course.capstone.submission import (
    BadSubmission,
    Submission,
    make_submission,
    read_submission,
)
from tvm_practice.course.classroom import sandbox
from tvm_practice.course.classroom.marking import Rules
from tvm_practice.course.classroom.records import to_csv
from tvm_practice.course.screen import Screen
from tvm_practice.measure import environment
from tvm_practice.tvm_export.writing import write_json, write_whole

TABLE, GRADED, RESULTS = "capstone.csv", "capstone", "results"
TAMPERED = "its digest does not match: code, score or machine were changed after `submit`"
_INSIDE = "tvm_practice.course.classroom.inside_capstone"


@dataclass(frozen=True)
class Capstone:
    """One student's file, and its content; None with a `problem` where it cannot be read."""

    name: str
    submission: Submission | None
    problem: str = ""


@dataclass(frozen=True)
class Graded:
    """A capstone as this machine scores it."""

    capstone: Capstone
    results: list[Result]
    remark: str

    @property
    def points(self) -> int:
        """1 for bronze to 4 for platinum, of each track."""
        return sum(tier_points(each) for each in self.results)


def tier_points(result: Result) -> int:
    """1 for bronze, 2 for silver, 3 for gold, 4 for platinum, else 0."""
    return 1 + TIERS.index(result.tier) if result.tier in TIERS else 0


def find_capstones(folder: Path) -> list[Capstone]:
    """The .json files in a folder, sorted by name. Raises OSError where it cannot be read."""
    found = []
    for file in sorted(folder.glob("*.json")):
        try:
            found.append(Capstone(file.stem, read_submission(file)))
        except BadSubmission as problem:
            found.append(Capstone(file.stem, None, str(problem)))
    return found


def grade_capstones(
    screen: Screen,
    capstones: Sequence[Capstone],
    rules: Rules,
    out: Path,
    *,
    anew: bool = False,
    roofs: Roofs | None = None,
    sizes: list[list[int]] | None = None,
    rounds: int = ROUNDS,
) -> bool:
    """Grade capstones, tell each, and write their files into `out`.

    Written are `capstone.csv`; for each student `capstone/NAME.json`, a submission with the score
    of this machine, as `tvm-practice leaderboard` reads them; and `results/NAME.json` in
    Gradescope's form. What was graded with this seed, and has not changed, is not graded again.

    Args:
        rules: seed, limits and sandbox.
        anew: grade all of them.
        roofs: this machine's limits; they are measured without.
        sizes: of the gate, in place of its own.
        rounds: samples of each size.

    Returns:
        Whether all could be read, with digests that match.
    """
    (out / GRADED).mkdir(parents=True, exist_ok=True)
    (out / RESULTS).mkdir(exist_ok=True)
    finished = []
    try:
        for each in capstones:
            graded = None if anew else _kept(each, rules, out)
            if graded is None:
                if roofs is None and each.submission is not None:
                    with screen.busy("this machine's limits"):
                        roofs = machine_roofs()
                graded = _grade(each, rules, roofs or {}, sizes, rounds)
                _write(graded, rules, roofs or {}, out)
            finished.append(graded)
            scores = "  ".join(f"{r.track} {r.score:.1f} {r.tier}" for r in graded.results)
            screen.say(f"{each.name:<24} {scores}  {graded.remark}".rstrip())
    finally:
        write_whole(out / TABLE, to_csv(_lines(finished)))
    screen.say(f"capstones are in {TABLE} and {GRADED}/")
    return not any(each.remark.startswith((TAMPERED, _no_file(each))) for each in finished)


def _no_file(graded: Graded) -> str:
    return graded.capstone.problem or TAMPERED


def _grade(
    capstone: Capstone, rules: Rules, roofs: Roofs, sizes: list[list[int]] | None, rounds: int
) -> Graded:
    if capstone.submission is None:
        return Graded(capstone, [], capstone.problem)
    tracks = [each for each in TRACKS if each in capstone.submission.results]
    heard: dict[str, Result] = {}

    def hear(said: dict[str, Any]) -> None:
        if "result" in said:
            heard[said["result"]["track"]] = Result(**said["result"])

    job = {
        "tracks": tracks,
        "seed": rules.seed,
        "roofs": roofs,
        "sizes": sizes,
        "rounds": rounds,
        # The gate, and the score on one core and on all, are a process each.
        "seconds": rules.limits.seconds / (3 * max(1, len(tracks))),
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)  # another user may run the sandbox
        (folder / "capstone.py").write_text(capstone.submission.code, encoding="utf-8")
        reason = sandbox.run(
            _INSIDE, job, folder, rules.limits, hear,
            stopped=rules.stopped, hidden=rules.hidden, isolated=rules.isolated,
        )  # fmt: skip
    ended = f"the sandbox was ended: {reason or 'its process ended'}"
    results = [heard.get(each) or Result(each, "refused", ended) for each in tracks]
    remarks = [] if capstone.submission.is_whole else [TAMPERED]
    if reason:
        remarks.append(ended)
    return Graded(capstone, results, "; ".join(remarks))


def _kept(capstone: Capstone, rules: Rules, out: Path) -> Graded | None:
    """What was written of this capstone, if it did not change since."""
    try:
        kept = read_submission(out / GRADED / f"{capstone.name}.json")
    except BadSubmission:
        return None
    if capstone.submission is None or kept.graded is None or not kept.is_whole:
        return None
    same = kept.graded["of"] == capstone.submission.computed_digest() and kept.seed == rules.seed
    found = [kept.result(track) for track in TRACKS]
    results = [each for each in found if each is not None]
    return Graded(capstone, results, kept.graded["remark"]) if same else None


def _write(graded: Graded, rules: Rules, roofs: Roofs, out: Path) -> None:
    name, submission = graded.capstone.name, graded.capstone.submission
    write_json(out / RESULTS / f"{name}.json", to_gradescope(graded))
    if submission is not None:
        of = {"of": submission.computed_digest(), "remark": graded.remark}
        made = make_submission(
            submission.code, rules.seed, graded.results, environment(), roofs, graded=of
        )
        write_json(out / GRADED / f"{name}.json", made.model_dump())


def to_gradescope(graded: Graded) -> dict[str, Any]:
    """The contents of Gradescope's results.json, with its leaderboard."""
    return {
        "score": graded.points,
        "output": graded.remark or f"{graded.points} of {4 * len(graded.results)} points",
        "visibility": "visible",
        "stdout_visibility": "hidden",
        "leaderboard": [
            {"name": each.track, "value": round(each.score, 1)} for each in graded.results
        ],
        "tests": [
            {
                "name": each.track,
                "score": tier_points(each),
                "max_score": len(TIERS),
                "status": "passed" if each.status == "scored" else "failed",
                "output": each.message or f"score {each.score:.1f}, {each.tier}",
                "output_format": "text",
            }
            for each in graded.results
        ],
    }


def _lines(graded: Sequence[Graded]) -> list[list[str]]:
    """The table: the score of this machine, and the one that was claimed, of each track."""
    columns = [f"{each} {what}" for each in TRACKS for what in ("score", "tier", "claimed")]
    lines = [["student", "points", *columns, "remark"]]
    for each in graded:
        cells = []
        for track in TRACKS:
            result = next((found for found in each.results if found.track == track), None)
            claimed = each.capstone.submission
            if result is None or claimed is None:
                cells += ["", "", ""]
            else:
                cells += [f"{result.score:.1f}", result.tier, f"{claimed.score(track):.1f}"]
        lines.append([each.capstone.name, str(each.points), *cells, each.remark])
    return lines
