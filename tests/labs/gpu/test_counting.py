"""Sectors and wavefronts: requests counted by hand, then kernels."""

import numpy as np
import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.labs.gpu.counting import sectors, wavefronts

FUNCTIONS = "tests.labs.gpu.kernels"
LANE = np.arange(32)


@pytest.mark.parametrize(
    ("addresses", "width", "touched"),
    [
        (4 * LANE, 4, 4),  # 32 floats in a row: 128 bytes
        (4 * LANE + 4, 4, 5),  # the same, not aligned to a sector
        (128 * LANE, 4, 32),  # a column of a matrix with 32 floats a row
        (8 * LANE, 4, 8),  # every other float
        (0 * LANE, 4, 1),  # all the same
        (16 * LANE, 16, 16),  # 128 floats in a row, by fours
        (2 * LANE, 2, 2),  # 32 halves in a row
        (32 * LANE + 24, 16, 33),  # each across the end of a sector
    ],
)
def test_sectors_of_a_request(addresses: np.ndarray, width: int, touched: int) -> None:
    assert sectors(addresses[None], width, np.ones((1, 32), bool)).tolist() == [touched]


@pytest.mark.parametrize(
    ("addresses", "width", "taken"),
    [
        (4 * LANE, 4, 1),  # one word of each bank
        (0 * LANE, 4, 1),  # the same word for all
        (8 * LANE, 4, 2),  # every other word: 16 banks, two words each
        (128 * LANE, 4, 32),  # a column of a tile with 32 floats a row: one bank
        (132 * LANE, 4, 1),  # a column with 33 floats a row
        (136 * LANE, 4, 2),  # with 34
        (144 * LANE, 4, 4),  # with 36
        (2 * LANE, 2, 1),  # halves: two lanes want the same word
        (8 * LANE, 8, 2),  # halves of the warp
        (16 * LANE, 16, 4),  # quarters of the warp
        (32 * LANE, 16, 8),  # each quarter: 8 threads, 8 words apart
        (64 * (LANE % 16) + 16 * (LANE // 16), 16, 16),  # ldmatrix, 32 halves a row: 4 a part
        (80 * (LANE % 16) + 16 * (LANE // 16), 16, 4),  # with 40 a row: none
    ],
)
def test_wavefronts_of_a_request(addresses: np.ndarray, width: int, taken: int) -> None:
    assert wavefronts(addresses[None], width, np.ones((1, 32), bool)).tolist() == [taken]


def test_threads_that_take_no_part_cost_nothing() -> None:
    column = 128 * LANE[None]
    active = LANE[None] < 5
    assert sectors(column, 4, active).tolist() == [5]
    assert wavefronts(column, 4, active).tolist() == [5]
    nobody = np.zeros((1, 32), bool)
    assert sectors(column, 4, nobody).tolist() == wavefronts(column, 4, nobody).tolist() == [0]


def test_requests_are_counted_one_by_one() -> None:
    both = np.stack([4 * LANE, 128 * LANE])
    assert sectors(both, 4, np.ones((2, 32), bool)).tolist() == [4, 32]
    assert wavefronts(both, 4, np.ones((2, 32), bool)).tolist() == [1, 32]


def test_a_transposition(current: engines.Session) -> None:
    """A block of 8 warps does a tile of 32 x 32 in 4 steps: 32 requests a buffer."""
    direct = current.call(f"{FUNCTIONS}:transposition", {"staged": False, "offset": 0})
    assert direct["grid"] == [2, 2, 1] and direct["block"] == [32, 8, 1]
    assert direct["X read"] == [32, 32 * 32, 32 * 4, 0]
    assert direct["Y written"] == [32, 32 * 4, 32 * 4, 0]
    staged = current.call(f"{FUNCTIONS}:transposition", {"staged": True, "offset": 0})
    assert staged["X read"] == staged["Y written"] == [32, 32 * 4, 32 * 4, 0]
    assert staged["X_shared written"] == [32, 32, 32, 0]
    assert staged["X_shared read"] == [32, 32 * 32, 32, 0]
    assert staged["shared_bytes"] == 32 * 32 * 4
    padded = current.call(f"{FUNCTIONS}:transposition", {"staged": True, "offset": 1})
    assert padded["X_shared read"] == [32, 32, 32, 0]
    assert padded["shared_bytes"] == 32 * 33 * 4


def test_guards_keep_threads_out(current: engines.Session) -> None:
    """y[i] = x[i] for i < 40, by blocks of 64: the second warp has 8 threads at work."""
    counts = current.call(f"{FUNCTIONS}:guarded_copy", {"n": 40, "threads": 64})
    assert counts["x read"] == [2, 4 + 1, 4 + 1, 0]
    assert counts["y written"] == [2, 4 + 1, 4 + 1, 0]


def test_vectors(current: engines.Session) -> None:
    """128 floats by 32 threads: 4 at once is one request, 16 sectors."""
    counts = current.call(f"{FUNCTIONS}:vector_copy", {"lanes": 4, "begin": 0})
    assert counts["x read"] == [1, 16, 16, 0]
    counts = current.call(f"{FUNCTIONS}:vector_copy", {"lanes": 8, "begin": 0})
    assert counts["x read"] == [2, 2 * 32, 2 * 16, 0]  # 32 bytes a thread are asked in two
    counts = current.call(f"{FUNCTIONS}:vector_copy", {"lanes": 4, "begin": 1})
    assert counts["x read"][3] == 1  # misaligned
    counts = current.call(f"{FUNCTIONS}:vector_copy", {"lanes": 2, "begin": 0})
    assert counts["x read"] == [1, 8, 8, 0]


def test_tensor_core_fragments(current: engines.Session) -> None:
    """Padding by 8 halves takes the conflicts of the fragments' loads away."""
    plain, padded = (current.call(f"{FUNCTIONS}:fragments", {"pad": pad}) for pad in (False, True))
    for name in ("A_shared read", "B_shared read"):
        requests, taken, fewest, misaligned = plain[name]
        assert taken > fewest == 4 * requests and not misaligned
        assert padded[name] == [requests, fewest, fewest, 0]
    assert plain["C written"] == padded["C written"]
    requests, taken, fewest, _ = plain["C written"]
    assert taken == fewest == 8 * requests


def test_a_function_without_threads_is_refused(current: engines.Session) -> None:
    with pytest.raises(engines.RemoteError, match=r"no loop is bound to threadIdx\.x"):
        current.call(f"{FUNCTIONS}:unbound")


def test_classic_copies_are_counted_as_current_ones(process_of: Processes) -> None:
    """The same tiles, fetched by the same threads, on both engines."""
    if reason := engines.unavailable_reason(engines.CLASSIC):
        pytest.skip(reason)
    counted = [
        process_of(engine).call(f"{FUNCTIONS}:staged_copies", {"classic": engine == "classic"})
        for engine in (engines.CURRENT, engines.CLASSIC)
    ]
    assert counted[0] == counted[1]
    assert counted[0].keys() == {"A", "B", "A_shared", "B_shared"}
    assert counted[0]["A"] == [32, 128]  # rows of 8 floats, a sector each: 4 per request
