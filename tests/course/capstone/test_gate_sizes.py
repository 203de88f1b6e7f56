"""The sizes at which the gate tries an answer: a condition on sizes would meet one of them."""

import itertools
import math

import numpy as np
import pytest

from tvm_practice.course.capstone import TRACKS
from tvm_practice.course.capstone.gate import gate_sizes
from tvm_practice.course.capstone.tracks import find_track


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", TRACKS)
def test_conditions_on_sizes_are_met(name: str, seed: int) -> None:
    track = find_track(name)
    sizes = [size[:4] for size in gate_sizes(track, seed)[len(track.edges) :]]
    assert all(math.prod(size) < 2**23 for size in sizes)  # what depthwise holds, times its window
    free = range(len(sizes[0]))
    for one in free:
        assert any(size[one] > 256 for size in sizes)
        assert any(size[one] > 2000 for size in sizes)
        assert any(size[one] > 256 and size[one] % 2 == 0 for size in sizes)
        large = [size[one] for size in sizes if size[one] > 256]
        tiles = range(2, 17)
        assert any(all(each % tile and (each + 1) // 2 % tile for tile in tiles) for each in large)
        rest = [(*size[:one], *size[one + 1 :]) for size in sizes]
        assert len(set(rest)) < len(rest), "no two sizes that differ in one extent alone"
    for one, other in itertools.combinations(free, 2):
        assert any(size[one] == size[other] > 1 for size in sizes)
        assert any(
            size[one] == size[other] > 256 and math.prod(size) <= size[one] ** 2 * 16
            for size in sizes
        )
        assert any(size[one] > 8 * size[other] for size in sizes)
        assert any(size[other] > 8 * size[one] for size in sizes)


def test_the_first_and_the_last_key_count() -> None:
    """An answer that leaves one out is wrong by more than a sum of thousands hides."""
    rng = np.random.default_rng(0)
    _, k, _ = find_track("attention").draw((3, 2000), rng, True)
    large = np.abs(k).sum(axis=1)
    assert min(large[0], large[-1]) > 3 * np.median(large)


def test_all_filters_and_strides_are_tried() -> None:
    track = find_track("depthwise")
    tried = {size[4:] for size in gate_sizes(track, 0)[len(track.edges) :]}
    assert tried == {(3, 1), (3, 2), (5, 1), (5, 2)}
