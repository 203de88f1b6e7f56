"""The roofs, and which of them limit a kernel."""

import re

import pytest

from tvm_practice.viz.roofline import Kernel, Roofline, roofline_svg

LIMITS = Roofline(peak_gflops=200, memory_gbps=5, threads=2, cache_gbps=40)


@pytest.mark.parametrize(
    ("stays_in", "limit"), [(None, 50), ("last cache", 80), ("second cache", 200)]
)
def test_what_stays_in_a_cache_is_not_limited_beyond_it(stays_in: str | None, limit: float) -> None:
    assert LIMITS.limit(Kernel(1, 10, 2, stays_in)) == limit


def test_without_a_last_cache_memory_and_the_peak_are_the_limits() -> None:
    limits = Roofline(peak_gflops=200, memory_gbps=5, threads=2)
    assert [limits.limit(Kernel(1, intensity)) for intensity in (10, 100)] == [50, 200]
    assert limits.limit(Kernel(1, 10, stays_in="second cache")) == 200


def test_the_picture_tells_each_kernels_share_of_its_limit() -> None:
    kernels = {
        "naive": Kernel(0.3, 100, 0.5, "last cache"),
        "tiled": Kernel(50, 100, 10, "last cache"),
        "lucky": Kernel(201, 100, 20, "last cache"),
    }
    svg = roofline_svg(LIMITS, kernels, title="three")
    said = re.findall(r"<!-- (.*?) -->|<text[^>]*>([^<]*)<", svg)
    text = " ".join(a or b for a, b in said)
    for label in ("naive: 0.3, 2% of its limit", "tiled: 50, 25% of its limit", "lucky: 201"):
        assert label in text
    assert "memory 5 GB/s" in text and "last cache 40 GB/s" in text
    assert "lucky: 201," not in text
