"""Products that tours show only if their values are numpy's."""

import pytest

from tests.conftest import Processes
from tvm_practice import engines


@pytest.mark.parametrize("engine", [engines.CURRENT, engines.CLASSIC])
def test_a_wrong_value_or_none_at_all_is_not_right(
    engine: engines.Engine, process_of: Processes
) -> None:
    if (reason := engines.unavailable_reason(engine)) is not None:
        pytest.skip(reason)
    function = "tests.course.tours.products_functions:judged"
    assert process_of(engine).call(function, {"size": 24}) == [True, False, False]
