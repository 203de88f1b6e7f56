"""What stands beside the lines: strides, reuse, misses, threads."""

import numpy as np
import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.viz.explorer.figures import bars, coverage, share, short
from tvm_practice.viz.reuse import BUCKETS, median

FUNCTIONS = "tests.viz.explorer.functions"


@pytest.fixture(scope="module")
def current(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


def _histogram(distances: list[int]) -> list[int]:
    """The same buckets as the counter's, written for clarity."""
    counted = [0] * BUCKETS
    for each in distances:
        counted[0 if each < 0 else 1 + each.bit_length()] += 1
    return counted


def test_reuse_is_that_of_a_list_of_lines(current: engines.Session) -> None:
    found = current.call(f"{FUNCTIONS}:distances", {"size": 24})
    assert set(found["counted"]) == {"A", "B", "C"}
    for name, counted in found["counted"].items():
        assert counted == _histogram(found["plain"][name]), name


def test_strides_of_a_product(current: engines.Session) -> None:
    naive = current.call(f"{FUNCTIONS}:strides", {"name": "naive"})
    assert naive[1:] == [
        ["C", False, 0, True], ["A", False, 1, True], ["B", False, 32, True], ["C", True, 0, True]
    ]  # fmt: skip
    packed = {(each[0], each[1]): each[2:] for each in current.call(
        f"{FUNCTIONS}:strides", {"name": "packed"})}  # fmt: skip
    assert packed["A_packed", False] == [0, True] and packed["B_packed", False] == [1, True]


def test_a_line_has_its_runs_threads_and_accesses(current: engines.Session) -> None:
    found = current.call(f"{FUNCTIONS}:beside", {"size": 32})
    tiled = found["tiled"]
    assert [note for note in tiled["notes"].values() if "8 iterations on" in note]
    tables = list(tiled["accesses"].values())
    assert all("L1 misses" in each[0] and "TLB misses" in each[0] for each in tables)
    loads = {row[0]: row for row in tables[-1][1:]}
    assert loads["load A"][1:3] == ["32.8k", "broadcast"]
    assert loads["load B"][2] == "contiguous"
    assert str(32**3 // 1000) in next(run for run in tiled["runs"].values() if "32.8" in run)
    assert "depends on data" in found["gather"]["unfollowed"]
    assert list(found["gather"]["notes"].values()) == ["# gather"]


def test_threads_without_work_are_said() -> None:
    assert coverage(8, 2) == "# 8 iterations on 2 threads: 4 each"
    assert coverage(5, 4) == "# 5 iterations on 4 threads: 1 to 2 each, 1 without work"


def test_figures_are_short() -> None:
    assert [short(each) for each in (9999, 65536, 2**24)] == ["9999", "65.5k", "16.8M"]
    assert [share(each, 1000) for each in (0, 1, 999)] == ["-", "0.1%", "100%"]
    histogram = np.array([5, 8, 0, 0, 4] + [0] * (BUCKETS - 5))
    assert median(histogram) == "0" and bars(histogram)[:4] == "█  ▄"
    assert median(np.array([3] + [0] * (BUCKETS - 1))) == "never again"
