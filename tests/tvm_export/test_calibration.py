"""Which range each method makes of the values that a convolution reads."""

from pathlib import Path

import pytest

from tests.conftest import Processes
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.calibration_functions"


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


def test_outliers_widen_the_range_of_all_values_alone(
    session: engines.Session, tmp_path: Path
) -> None:
    found = {
        method: session.call(f"{FUNCTIONS}:ranges", {"folder": str(tmp_path), "method": method})
        for method in ("minmax", "percentile", "entropy")
    }
    [[smallest, largest], behind] = found["minmax"]
    assert largest == 1000 and -6 < smallest < -4 and behind[0] == 0
    for method in ("percentile", "entropy"):
        [[low, high], [zero, most]] = found[method]
        assert high < largest and low <= 0, method
        assert zero == 0 and 0 < most <= behind[1], method
    # 0.01% of three inputs' 49152 values are five; two are outliers.
    assert found["percentile"][0][1] < 10
    assert found["entropy"][0][1] < 500


@pytest.mark.parametrize(
    ("count", "used", "held"),
    [(1, "0", ""), (3, "012", ""), (4, "012", "3"), (9, "0124568", "37")],
)
def test_every_fourth_input_is_held_out(
    session: engines.Session, count: int, used: str, held: str
) -> None:
    assert session.call(f"{FUNCTIONS}:held_out", {"count": count}) == [list(used), list(held)]
