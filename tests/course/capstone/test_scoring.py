"""Points, scores and tiers of given times, and the answers that have no score."""

import math
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Processes
from tests.mutants.capstones.kernels import SIZE, kernel_file
from tvm_practice import engines
from tvm_practice.course.capstone import TRACKS
from tvm_practice.course.capstone.scoring import TIERS, limit_gflops, points, score, tier
from tvm_practice.course.capstone.tracks import find_track

ROOF = {
    "peak_gflops": 100.0,
    "cache_gbps": 40.0,
    "memory_gbps": 10.0,
    "second_cache_bytes": 2**20,
    "last_cache_bytes": 2**25,
}


def test_points_are_the_mean_of_share_and_speedup() -> None:
    assert points(0.25, 1.0) == 50
    assert points(1.3, 1.0) == 100  # a limit that a busy machine hid is no merit
    assert points(1.0, 30.0) == pytest.approx(100 * math.sqrt(2))


def test_one_slow_size_lowers_the_score() -> None:
    assert score([{"points": 80.0}, {"points": 20.0}]) == pytest.approx(40)


def test_the_limit_is_the_processor_or_the_memory() -> None:
    track = find_track("product")
    assert limit_gflops(track, (64, 64, 64), ROOF) == 100
    row = (1, 1000, 1000)  # half an operation per byte, 4 MB: the last cache
    assert limit_gflops(track, row, ROOF) == pytest.approx(20, rel=0.01)
    assert limit_gflops(track, (1, 4000, 4000), ROOF) == pytest.approx(5, rel=0.01)
    assert limit_gflops(track, row, {**ROOF, "cache_gbps": None}) == pytest.approx(5, rel=0.01)


@pytest.mark.parametrize("name", TRACKS)
def test_a_tier_begins_at_its_threshold(name: str) -> None:
    track = find_track(name)
    assert list(track.thresholds) == sorted(set(track.thresholds))
    for each, least in zip(TIERS, track.thresholds, strict=True):
        assert tier(track, least) == each
    assert tier(track, track.thresholds[0] - 0.1) == "none"


@pytest.mark.parametrize("name", TRACKS)
def test_half_of_the_sizes_are_drawn_by_the_seed(name: str) -> None:
    track = find_track(name)
    first, again, other = (track.cases(seed) for seed in (1, 1, 2))
    assert first == again != other
    assert [each for each in first if not each["drawn"]] == [
        each for each in other if not each["drawn"]
    ]


def test_an_answer_is_gated_at_the_sizes_of_its_score(
    tmp_path: Path, process_of: Processes
) -> None:
    file = tmp_path / "capstone.py"
    file.write_text(kernel_file("changes_an_input"))
    asked = {"path": str(file), "size": list(SIZE), "roof": ROOF}
    told = process_of(engines.CURRENT).call("tests.course.capstone.functions:scored", asked)
    assert "X was changed" in told


def _timed(process_of: Processes, kind: str) -> dict[str, Any]:
    function = "tests.course.capstone.functions:timed"
    found: dict[str, Any] = process_of(engines.CURRENT).call(function, {"kind": kind})
    return found


def test_each_call_that_is_timed_has_other_inputs(process_of: Processes) -> None:
    """An answer that remembers all results has nothing from it."""
    assert not _timed(process_of, "plain")["message"]
    found = _timed(process_of, "remembers")
    assert not found["message"] and found["hits"] < 0.1


def test_results_are_compared_while_they_are_timed(process_of: Processes) -> None:
    assert "this one left Y as it was" in _timed(process_of, "rests")["message"]
