"""Passes over the graph that are there for speed alone, and exports without them."""

from typing import get_args

import pytest

from tests.conftest import Processes
from tvm_practice import engines
from tvm_practice.tvm_export.speed_passes import SpeedPass


@pytest.mark.parametrize("name", get_args(SpeedPass))
def test_a_pass_that_is_left_out(name: str, process_of: Processes) -> None:
    made = process_of(engines.CURRENT).call(
        "tests.tvm_export.relax_passes.order_functions:without", {"name": name}
    )
    assert max(made["errors"].values()) < 1e-4, made
    if name == "tiles-on-stack" and made["bytes"] < 1024:
        pytest.skip("this processor's vector registers hold less than TVM puts on the stack")
    assert not made["same"], made
