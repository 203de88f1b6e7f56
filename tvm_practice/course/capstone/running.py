"""An answer through the gate and to its score, in processes that may crash or hang.

The answer's file runs in processes of its own, one for each count of threads, since it may ask for
that. What it returns is compiled and called in others.
"""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from tvm_practice import engines
from tvm_practice.course.capstone.answers import source_problem
from tvm_practice.course.capstone.gate import gate_sizes
from tvm_practice.course.capstone.scoring import ROUNDS, Case, score, tier
from tvm_practice.course.capstone.tracks import find_track

_ANSWER = "tvm_practice.course.capstone.answers:modules_here"
_GATE = "tvm_practice.course.capstone.gate:gate_here"
_SCORE = "tvm_practice.course.capstone.scoring:score_here"
_ROOF = "tvm_practice.course.capstone.scoring:roof_here"

Roofs = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Result:
    """An answer to one track.

    Attributes:
        status: scored, refused (by the gate) or todo.
        message: why it has no score.
        score: 0 where it has none.
        tier: none, bronze, silver, gold or platinum.
        cases: what was measured of each size on one core and on all.
        disturbance: what else used the machine meanwhile; None for nothing.
    """

    track: str
    status: str
    message: str = ""
    score: float = 0.0
    tier: str = "none"
    cases: list[Case] = field(default_factory=list)
    disturbance: str | None = None

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def machine_roofs() -> Roofs:
    """The limits of this machine, by threads: one, and all. It takes some ten seconds.

    Raises engines.EngineError.
    """
    found: Roofs = {}
    for threads in _thread_counts():
        with _on_threads(threads):
            found[str(threads)] = engines.call(engines.CURRENT, _ROOF)
    # One core's work is never above what all of them do; under load the measurement may say so.
    alone = found["1"]["peak_gflops"]
    for each in found.values():
        each["peak_gflops"] = max(each["peak_gflops"], alone)
    return found


def run_track(
    track: str,
    path: Path,
    *,
    seed: int,
    roofs: Roofs | None,
    sizes: list[list[int]] | None = None,
    rounds: int = ROUNDS,
    timeout: float = 300,
    output: IO[Any] | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> Result:
    """Let an answer through the gate, and score it.

    Args:
        track: its name.
        path: the file with the answer.
        seed: draws sizes and inputs.
        roofs: of `machine_roofs`; None for the gate alone.
        sizes: the gate's, in place of its own.
        rounds: samples of each side.
        timeout: seconds for the gate, and for each count of threads.
        output: takes what the answer prints; None lets it print.
        tell: takes what is being done.

    Raises engines.EngineUnavailable.
    """
    if problem := source_problem(path.read_text(encoding="utf-8", errors="replace")):
        return Result(track, "refused", problem)
    found = find_track(track)

    def answered(asked: list[list[int]]) -> dict[str, Any]:
        file = {"track": track, "path": str(path.resolve()), "sizes": asked}
        return _called(_ANSWER, file, timeout, output)

    tell(f"{track}: the gate")
    tried = sizes or [list(size) for size in gate_sizes(found, seed)]
    gate = answered(tried)
    arguments = {"track": track, "seed": seed}
    if gate["status"] == "passed":
        given = {**arguments, "sizes": tried, "modules": gate["modules"]}
        gate = _called(_GATE, given, timeout, output)
    if gate["status"] != "passed" or roofs is None:
        status = {"todo": "todo", "passed": "right"}.get(gate["status"], "refused")
        return Result(track, status, gate["message"])
    cases: list[Case] = []
    disturbance = None
    drawn = found.cases(seed)
    for threads in map(int, roofs):
        tell(f"{track}: {len(drawn)} sizes, {threads} thread{'s' * (threads > 1)}")
        with _on_threads(threads):
            timed = answered([each["size"] for each in drawn])
            if timed["status"] == "passed":
                given = {**arguments, "cases": drawn, "modules": timed["modules"]}
                given |= {"roof": roofs[str(threads)], "rounds": rounds}
                timed = _called(_SCORE, given, timeout, output)
        if timed["message"]:
            return Result(track, "refused", timed["message"])
        cases += timed["cases"]
        disturbance = disturbance or timed["disturbance"]
    total = score(cases)
    reached = tier(found, total)
    return Result(track, "scored", "", total, reached, cases, disturbance)


def _called(
    function: str, arguments: dict[str, Any], timeout: float, output: IO[Any] | None
) -> dict[str, Any]:
    """What the function returns, or a failure that says how its process ended."""
    session = engines.Session(engines.CURRENT, output=output)
    try:
        answer: dict[str, Any] = session.call(function, arguments, timeout=timeout)
    except (engines.EngineDied, engines.EngineTimeout) as broken:
        message = (
            f"expected: {arguments['track']} to end\nseen:     {broken}\n"
            "look at:  an endless loop, or a write far outside a buffer"
        )
        return {"status": "failed", "message": message}
    finally:
        session.close(grace=1)
    return answer


def _thread_counts() -> list[int]:
    return sorted({1, engines.thread_count()})


@contextmanager
def _on_threads(threads: int) -> Iterator[None]:
    """Processes that are started in the block have that many threads."""
    name = "TVM_NUM_THREADS"
    before = os.environ.get(name)
    os.environ[name] = str(threads)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
