"""What `tvm-practice capstone`, `submit` and `leaderboard` do, and what they print."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tvm_practice.course.capstone import TRACKS
from tvm_practice.course.capstone.running import Result, Roofs, machine_roofs, run_track
from tvm_practice.course.capstone.scoring import ROUNDS, TIERS
from tvm_practice.course.capstone.submission import Submission, make_submission
from tvm_practice.course.capstone.tracks import find_track, shown
from tvm_practice.course.catalog import MINE, SOLUTIONS
from tvm_practice.course.editing import stub_message
from tvm_practice.course.expect import new_seed
from tvm_practice.course.grading import source_file
from tvm_practice.course.screen import Screen, near
from tvm_practice.tvm_export.writing import write_json

MODULE = "capstone"


def answers_file(*, solutions: bool = False) -> Path:
    """The file of the learner's answers, or of the reference ones."""
    return source_file(MODULE, SOLUTIONS if solutions else MINE)


def run_capstone(
    screen: Screen,
    tracks: Sequence[str],
    file: Path,
    *,
    seed: int | None,
    gate_only: bool = False,
    report: Path | None = None,
    rounds: int = ROUNDS,
) -> int:
    """Let answers through the gate, score them, and say so; the exit code."""
    seed = new_seed() if seed is None else seed
    results, roofs = _results(screen, tracks, file, seed, rounds, gate_only=gate_only)
    scored = [each for each in results if each.status == "scored"]
    if report is not None and scored:
        from tvm_practice.course.capstone.report import write_report

        written = write_report(_submission(file, seed, scored, roofs), report)
        screen.say(f"written to {near(written.resolve())}; the questions in it are yours")
    return int(any(each.status not in ("scored", "right") for each in results))


def submit(
    screen: Screen, tracks: Sequence[str], file: Path, out: Path, *, seed: int | None, rounds: int
) -> int:
    """Score answers and write the file to hand in; the exit code."""
    seed = new_seed() if seed is None else seed
    results, roofs = _results(screen, tracks, file, seed, rounds)
    scored = [each for each in results if each.status == "scored"]
    if not scored:
        screen.note("nothing to hand in: no track has a score")
        return 1
    write_json(out, _submission(file, seed, scored, roofs).model_dump())
    names = ", ".join(each.track for each in scored)
    screen.say(f"{names}: written to {near(out.resolve())}")
    return 0


def _submission(file: Path, seed: int, scored: list[Result], roofs: Roofs) -> Submission:
    from tvm_practice.measure import environment

    return make_submission(file.read_text("utf-8"), seed, scored, environment(), roofs)


def _results(
    screen: Screen,
    tracks: Sequence[str],
    file: Path,
    seed: int,
    rounds: int,
    *,
    gate_only: bool = False,
) -> tuple[list[Result], Roofs]:
    """The result of each track, told as it comes, and the machine's limits."""
    todo = [each for each in tracks or TRACKS if _is_todo(file, each)]
    left = [each for each in tracks or TRACKS if each not in todo]
    roofs: Roofs = {}
    if left and not gate_only:
        with screen.busy("this machine's limits"):
            roofs = machine_roofs()
        for threads, roof in roofs.items():
            screen.say(f"{_threads(int(threads))}: {limits_line(roof)}")
    results = []
    for track in left:
        with screen.busy(track):
            result = run_track(
                track, file, seed=seed, roofs=roofs or None, rounds=rounds, tell=screen.note
            )
        _tell(screen, result)
        results.append(result)
    for track in todo:
        results.append(Result(track, "todo"))
        screen.say(f"{track}: to do in {near(file)}")
    if left:
        screen.say(f"seed {seed}")
    return results, roofs


def _is_todo(file: Path, track: str) -> bool:
    try:
        return stub_message(file.read_text("utf-8"), track) is not None
    except (KeyError, ValueError, SyntaxError):  # the gate says so
        return False


def _threads(count: int) -> str:
    return f"{count} thread{'s' * (count > 1)}"


def limits_line(roof: dict[str, Any]) -> str:
    """A machine's limits in words."""
    cache = f", last cache {roof['cache_gbps']:.0f} GB/s" if roof["cache_gbps"] else ""
    return f"peak {roof['peak_gflops']:.0f} GFLOP/s, memory {roof['memory_gbps']:.0f} GB/s{cache}"


def _tell(screen: Screen, result: Result) -> None:
    if result.status != "scored":
        through = result.status == "right"
        screen.say(f"{result.track}: {'through the gate' if through else 'no score'}")
        screen.say(result.message)
        return
    screen.say()
    for line in table(result):
        screen.say(line)
    screen.say(f"{result.track}: {result.score:.1f}, {result.tier}{_next(result)}", "bold")
    if result.disturbance:
        screen.note(f"the machine was busy: {result.disturbance}")


def _next(result: Result) -> str:
    """What the next tier asks for."""
    thresholds = find_track(result.track).thresholds
    for name, least in zip(TIERS, thresholds, strict=True):
        if result.score < least:
            return f"; {name} from {least:g}"
    return ""


def table(result: Result) -> list[str]:
    """A line for each size and count of threads, at most 80 columns."""
    lines = [f"{'size':<32} {'threads':>7} {'ms':>7} {'GFLOP/s':>7} share  torch points"]
    for each in result.cases:
        size = shown(find_track(result.track), each["size"]) + (" *" if each["drawn"] else "")
        lines.append(
            f"{size:<32} {each['threads']:7} {each['milliseconds']:7.3g} {each['gflops']:7.3g} "
            f"{each['share']:5.0%} {each['speedup']:5.2f}x {each['points']:6.1f}"
        )
    return [*lines, "* drawn by the seed; torch: PyTorch's time over yours"]
