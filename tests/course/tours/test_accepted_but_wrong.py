"""Both cases are accepted by TVM, and wrong as the page says."""

import pytest

from tests.conftest import Processes
from tvm_practice import engines

LANE = "tvm_practice.course.tours.accepted_but_wrong:lane"


@pytest.mark.pages
@pytest.mark.skipif(
    engines.unavailable_reason(engines.CLASSIC) is not None, reason="classic TVM is not here"
)
def test_classic_tvm_lets_threads_share_a_sum(process_of: Processes) -> None:
    assert process_of(engines.CLASSIC).call(LANE, {})["parallel_sum"] > 1


def test_current_tvm_loses_a_bound_that_another_order_shows(process_of: Processes) -> None:
    found = process_of(engines.CURRENT).call(LANE, {})
    assert found["in_order"] < 1e-3 < 1 < found["parts_reordered"]
