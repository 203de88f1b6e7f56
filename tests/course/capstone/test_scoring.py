"""Points, scores and tiers of given times; nothing is timed."""

import math

import pytest

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
