"""The file that is handed in: the code, its score, the machine, and a digest over them."""

import hashlib
import json
from pathlib import Path
from typing import Any, Literal

import pydantic

from tvm_practice.course.capstone import TRACKS
from tvm_practice.course.capstone.running import Result, Roofs
from tvm_practice.engines import PlainError

_MOST_BYTES = 2**20


class BadSubmission(PlainError):
    """A file that is no submission; the message says why."""


class Submission(pydantic.BaseModel):
    """One learner's capstone.

    Attributes:
        code: of the file, whole.
        seed: drew the sizes and the inputs.
        results: of each track that is handed in, as `running.Result` has it.
        machine: as `measure.environment` describes it.
        roofs: its limits, by threads.
        graded: the digest of the file that a grader read, and the grader's remark; None in a
            learner's own.
        digest: over all of these.
    """

    model_config = pydantic.ConfigDict(extra="forbid", strict=True)

    format: Literal["tvm-practice capstone 1"] = "tvm-practice capstone 1"
    code: str
    seed: int
    results: dict[Literal["product", "depthwise", "attention"], dict[str, Any]]
    machine: dict[str, Any]
    roofs: dict[str, dict[str, Any]]
    graded: dict[str, str] | None = None
    digest: str = ""

    def computed_digest(self) -> str:
        """SHA-256 of everything else in it."""
        content = self.model_dump(exclude={"digest"})
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    @property
    def is_whole(self) -> bool:
        return self.digest == self.computed_digest()

    def result(self, track: str) -> Result | None:
        """What it says of a track; None where that was not handed in, or says nothing."""
        found = self.results.get(track)  # type: ignore[call-overload]
        try:
            return None if found is None else Result(**found)
        except TypeError:
            return None

    def score(self, track: str) -> float:
        """The score of a track, 0 without one."""
        found = self.result(track)
        scored = found.score if found is not None and found.status == "scored" else 0.0
        return float(scored) if isinstance(scored, int | float) else 0.0

    @property
    def total(self) -> float:
        """The sum of the tracks' scores."""
        return sum(self.score(track) for track in TRACKS)


def make_submission(
    code: str,
    seed: int,
    results: list[Result],
    machine: dict[str, Any],
    roofs: Roofs,
    *,
    graded: dict[str, str] | None = None,
) -> Submission:
    """A submission with its digest. The arguments are `Submission`'s."""
    content = {
        "code": code,
        "seed": seed,
        "results": {each.track: each.to_dict() for each in results},
        "machine": machine,
        "roofs": roofs,
        "graded": graded,
    }
    # Through JSON, so that it is the same once it is read.
    found = Submission.model_validate_json(json.dumps(content))
    return found.model_copy(update={"digest": found.computed_digest()})


def read_submission(file: Path) -> Submission:
    """Read a submission. Raises BadSubmission."""
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise BadSubmission(f"{file.name} is longer than {_MOST_BYTES // 1024} KiB")
        return Submission.model_validate_json(file.read_bytes())
    except OSError as error:
        raise BadSubmission(f"{file.name} cannot be read: {error.strerror}") from None
    except pydantic.ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"])) or "its text"
        raise BadSubmission(f"{file.name} is no submission: {at}: {first['msg']}") from None
