"""The convolution that replays the packed matmul's schedule: values, and the choice of tiles."""

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.course.tours import convolution

# batch, channels, height, width, filters; kernel, stride, padding; rows and columns of a tile.
SHAPES = {
    "no tile divides": (2, 3, 5, 7, 10, 3, 1, 1, 4, 16),
    "stride 2, tiles wider than the output": (1, 3, 5, 7, 33, 3, 2, 1, 8, 16),
    "tiles that fit": (1, 4, 6, 8, 32, 3, 1, 1, 8, 32),
    "1x1": (1, 5, 6, 6, 17, 1, 1, 0, 3, 16),
    "7x7, stride 2": (1, 3, 11, 9, 8, 7, 2, 3, 2, 8),
    "one pixel": (1, 2, 3, 3, 5, 3, 1, 0, 4, 8),
}


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=list(SHAPES))
def test_values_are_torchs(session: engines.Session, shape: tuple[int, ...]) -> None:
    found = session.call("tests.course.tours.convolution_functions:largest_error", {"shape": shape})
    assert found < 1e-5


def test_tiles_end_with_the_rows_of_the_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(convolution, "register_tile", lambda: (8, 32))
    rows = {width: convolution.pixel_tile(width)[0] for width in (56, 28, 14, 7, 9, 1)}
    assert rows == {56: 8, 28: 7, 14: 7, 7: 7, 9: 5, 1: 1}
    assert convolution.pixel_tile(7)[1] == 32
