"""The simulated tile registers: their arithmetic, and what they refuse."""

from collections.abc import Mapping

import numpy as np
import pytest

from solutions.labs.low_precision import pack_weights, round_to_bfloat16, tile_configuration
from tvm_practice.labs.simulated_tiles import TileFault, Tiles

FULL = (16, 64)


def _configured(
    shapes: Mapping[int, tuple[int, int]], *arrays: np.ndarray
) -> tuple[Tiles, list[int]]:
    """Tiles of these shapes, and the addresses of the arrays that they may use."""
    configuration = tile_configuration(shapes)
    tiles = Tiles([configuration, *arrays])
    tiles("ldtilecfg", configuration.ctypes.data)
    return tiles, [each.ctypes.data for each in arrays]


def _value(bits: np.ndarray) -> np.ndarray:
    return (bits.astype("uint32") << 16).view("float32").astype("float64")


def test_a_product_of_smaller_tiles_is_added_to_what_is_there() -> None:
    rng = np.random.default_rng(0)
    a = round_to_bfloat16(rng.standard_normal((5, 8), dtype="float32"))
    b = round_to_bfloat16(rng.standard_normal((8, 16), dtype="float32"))
    packed = pack_weights(b, group=2)[0]
    c = rng.standard_normal((5, 16), dtype="float32")
    want = c + _value(a) @ _value(b)
    tiles, (at_a, at_b, at_c) = _configured({0: (5, 64), 1: (5, 16), 2: (4, 64)}, a, packed, c)
    tiles("tileloadd64", 0, at_c, 64)
    tiles("tileloadd64", 1, at_a, 16)
    tiles("tileloadd64", 2, at_b, 64)
    tiles("tdpbf16ps", 0, 1, 2)
    tiles("tilestored64", 0, at_c, 64)
    np.testing.assert_allclose(c, want, rtol=1e-5, atol=1e-5)
    assert tiles.calls.count("tileloadd64") == 3 and tiles.fault is None


def test_a_configuration_sets_tiles_to_zero() -> None:
    given, out = np.arange(256, dtype="float32").reshape(16, 16), np.ones((16, 16), "float32")
    configuration = tile_configuration({0: FULL})
    tiles = Tiles([configuration, given, out])
    for _ in range(2):
        tiles("ldtilecfg", configuration.ctypes.data)
        tiles("tilestored64", 0, out.ctypes.data, 64)
        assert not out.any()
        tiles("tileloadd64", 0, given.ctypes.data, 64)


@pytest.mark.parametrize(
    ("instruction", "message"),
    [
        (("tilezero", 3), "tile 3 is not configured"),
        (("tdpbf16ps", 0, 1, 1), "a product of tiles"),
        (("tdpbf16ps", 0, 1, 2), r"\(16, 64\) and \(8, 64\) bytes into \(16, 64\)"),
        (("tileloadd64", 0, 0, 64), "not inside one of the arrays"),
        (("tdpbssd", 0, 1, 2), "not simulated"),
    ],
)
def test_what_a_processor_refuses(instruction: tuple[str, ...], message: str) -> None:
    tiles, _ = _configured({0: FULL, 1: FULL, 2: (8, 64)})
    with pytest.raises(TileFault, match=message):
        tiles(*instruction)
    assert tiles.fault is not None


def test_a_row_past_the_end_is_refused() -> None:
    array = np.zeros((16, 16), "float32")
    tiles, (address,) = _configured({0: FULL}, array)
    tiles("tileloadd64", 0, address, 64)
    for wrong in ((address + 4, 64), (address, 68), (address, -64)):
        with pytest.raises(TileFault, match="not inside"):
            tiles("tileloadd64", 0, *wrong)


@pytest.mark.parametrize(("byte", "value"), [(0, 0), (1, 1), (17, 1), (48, 17), (40, 1)])
def test_a_configuration_of_another_form_is_refused(byte: int, value: int) -> None:
    configuration = tile_configuration({0: FULL})
    configuration[byte] = value
    tiles = Tiles([configuration])
    with pytest.raises(TileFault, match="palette 1"):
        tiles("ldtilecfg", configuration.ctypes.data)


def test_nothing_is_configured_after_a_release() -> None:
    tiles, _ = _configured({0: FULL})
    tiles("tilerelease")
    with pytest.raises(TileFault, match="not configured"):
        tiles("tilezero", 0)
