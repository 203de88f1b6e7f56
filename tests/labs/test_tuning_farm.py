"""Lab 5: lost workers on a real farm, and the model's two halves beside each other."""

import pytest

from solutions.labs.tuning_farm import predict, throughput
from tvm_practice import engines
from tvm_practice.farm import is_lost
from tvm_practice.farm_stages import Stages

STAGES = Stages(search=1.0, batch=16, build=0.5, builders=2, request=0.0005, upload=0.002, run=0.4)


@pytest.mark.slow
def test_lost_workers_are_told_from_failed_candidates() -> None:
    if reason := engines.unavailable_reason("current"):
        pytest.skip(reason)
    seen = engines.call("current", "tests.labs.farm_functions:lose_a_worker")
    assert len(seen["killed"]) == 1 and len(seen["silent"]) == 1
    assert all(is_lost(each) for each in seen["killed"] + seen["silent"])
    assert seen["survived"] == []


def test_rounds_are_never_faster_than_what_bounds_an_overlapped_farm() -> None:
    for count, overlapped, bound in predict(STAGES, range(1, 101)):
        assert throughput(STAGES, count) < overlapped
        assert bound == ("workers" if count < 2 else "build")
