"""Lab 5: lost workers on a real farm, and the model's two halves beside each other."""

from pathlib import Path

import pytest

from solutions.labs.tuning_farm import predict, throughput
from tvm_practice import engines
from tvm_practice.farm import is_lost
from tvm_practice.farm.stages import Stages

STAGES = Stages(search=1.0, batch=16, build=0.5, builders=2, request=0.0005, upload=0.002, run=0.4)


@pytest.mark.pages
@pytest.mark.slow
def test_what_goes_wrong_on_a_farm(tmp_path: Path) -> None:
    """Lost workers are told from failed candidates; one that crashes takes its server with it."""
    if reason := engines.unavailable_reason("current"):
        pytest.skip(reason)
    arguments = {"folder": str(tmp_path)}
    seen = engines.call("current", "tests.labs.farm_functions:what_goes_wrong", arguments)
    for name, lost in {"killed": True, "silent": True, "crashes": True, "hangs": False}.items():
        [error] = seen[name]["errors"]
        assert is_lost(error) is lost, f"{name}: {error}"
    assert seen["survived"]["errors"] == []
    known = {name: each["servers"] for name, each in seen.items()}
    assert known == {"killed": 1, "survived": 1, "hangs": 2, "silent": 2, "crashes": 1}


def test_rounds_are_never_faster_than_what_bounds_an_overlapped_farm() -> None:
    for count, overlapped, bound in predict(STAGES, range(1, 101)):
        assert throughput(STAGES, count) < overlapped
        assert bound == ("workers" if count < 2 else "build")
