"""The sizes at which the gate tries an answer: a condition on sizes would meet one of them."""

import itertools
import math

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
        rest = [(*size[:one], *size[one + 1 :]) for size in sizes]
        assert len(set(rest)) < len(rest), "no two sizes that differ in one extent alone"
    for one, other in itertools.combinations(free, 2):
        assert any(size[one] == size[other] > 1 for size in sizes)
        assert any(size[one] > 8 * size[other] for size in sizes)
        assert any(size[other] > 8 * size[one] for size in sizes)


def test_all_filters_and_strides_are_tried() -> None:
    track = find_track("depthwise")
    tried = {size[4:] for size in gate_sizes(track, 0)[len(track.edges) :]}
    assert tried == {(3, 1), (3, 2), (5, 1), (5, 2)}
