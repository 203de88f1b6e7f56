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


@pytest.mark.parametrize("seed", range(5))
def test_a_score_is_known_as_well_as_float32_does(seed: int) -> None:
    """Scores over 8.001 in place of 8 are further off than sums in another order."""
    track, size = find_track("attention"), (37, 131)
    q, k, v = track.draw(size, np.random.default_rng(seed), True)
    want, most = track.truth(size, [q, k, v])
    other, _ = track.truth(size, [q * np.float32(8 / 8.001), k, v])
    assert (np.abs(other - want) > most).any()
    order = np.random.default_rng(seed).permutation(64)
    same = [each[:, order].astype("float32") for each in (q, k)]
    scores = (same[0] @ same[1].T) / np.float32(8)
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    found = (weights @ v) / weights.sum(axis=1, keepdims=True)
    assert (np.abs(found - want) <= most).all()
