"""Iterations of parallel loops that threads claim: each runs once, whoever claims it."""

import pytest

from tests.conftest import Processes
from tvm_practice import engines

_COUNTED = "tests.tvm_export.lowering.claimed_loops_functions:counted"


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("extent", [8, 31, 32, 33, 1000])
def test_each_iteration_runs_once(extent: int, threads: int, process_of: Processes) -> None:
    given = {"extent": extent, "threads": threads}
    made = process_of(engines.CURRENT).call(_COUNTED, given)
    assert made == {"times": [3], "in_place": True, "claimed": True}


@pytest.mark.parametrize("settings", [{"level": 0}, {"dtype": "int64"}])
def test_of_any_index_and_without_optimization(
    settings: dict[str, object], process_of: Processes
) -> None:
    given = {"extent": 100, "threads": 2, **settings}
    made = process_of(engines.CURRENT).call(_COUNTED, given)
    assert made == {"times": [3], "in_place": True, "claimed": True}


def test_few_iterations_stay_as_they_are(process_of: Processes) -> None:
    made = process_of(engines.CURRENT).call(_COUNTED, {"extent": 7, "threads": 2})
    assert made == {"times": [3], "in_place": True, "claimed": False}
