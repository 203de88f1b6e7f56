"""Recurrent layers of any number of steps, beside PyTorch's."""

import platform

import pytest

from tests.conftest import Processes

FUNCTIONS = "tests.tvm_export.importers.recurrent_layers_functions"


@pytest.mark.parametrize("mcpu", ["", " -mcpu=x86-64-v3", " -mcpu=x86-64"])
def test_outputs_and_states(process_of: Processes, mcpu: str) -> None:
    """With tiles for this processor, and for registers of 256 and of 128 bits."""
    if mcpu and platform.machine() != "x86_64":
        pytest.skip("the processor is of another kind")
    found = process_of("current").call(f"{FUNCTIONS}:errors", {"target": f"llvm{mcpu}"})
    assert len(found) == 13
    assert all(each < 1e-6 for each in found.values()), found


def test_steps_and_examples_may_be_open(process_of: Processes) -> None:
    """PyTorch's export fixes the number of steps."""
    found = process_of("current").call(f"{FUNCTIONS}:with_open_extents")
    assert len(found) == 9
    assert all(each < 1e-5 for each in found.values()), found


def test_steps_cost_no_operators(process_of: Processes) -> None:
    """Written out, as PyTorch exports them, 2000 steps took minutes and gigabytes to compile."""
    few, many = (
        process_of("current").call(f"{FUNCTIONS}:operators_of", {"steps": steps})
        for steps in (2, 2000)
    )
    assert few == many < 40, (few, many)
