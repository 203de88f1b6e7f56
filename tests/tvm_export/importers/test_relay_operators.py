"""Models that Relay's frontend cannot take as they are, in operators that it can."""

import pytest

from tests.conftest import Processes

FUNCTIONS = "tests.tvm_export.importers.relay_operators_functions"
COMPILED = f"{FUNCTIONS}:compiled"


@pytest.mark.parametrize(
    "name",
    [
        *("slices", "columns", "through a view", "under a view", "through rows"),
        *("under a view that is done", "hypot", "addr", "tensordot", "acosh", "whole numbers"),
        *("hinge", "no dropout", "no dropout in place", "scattered", "sampled"),
    ],
)
def test_a_model_is_taken_apart(process_of: Processes, name: str) -> None:
    found = process_of("classic").call(COMPILED, {"name": name})
    assert not found["refused"], found
    assert found["far"] < 1e-5


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("second output", "output 1 of aten::adaptive_max_pool1d"),
        ("dropout", "aten::dropout draws random numbers"),
        ("dropout in place", "aten::dropout_ draws random numbers"),
        ("empty part", "TVM cannot optimize the model: InternalError: "),
    ],
)
def test_what_tvm_drops_or_checks_is_told_in_a_line(
    process_of: Processes, name: str, said: str
) -> None:
    refused = process_of("classic").call(COMPILED, {"name": name})["refused"]
    assert said in refused and "\n" not in refused


def test_what_a_converter_fails_with_names_the_operator(process_of: Processes) -> None:
    refused = process_of("classic").call(f"{FUNCTIONS}:refused_by_a_converter")
    assert "cannot import the model: aten::sin: ValueError: no sine; " in refused


@pytest.mark.parametrize("name", ["zeta", "erfinv"])
def test_what_is_refused_is_the_model_as_it_was(process_of: Processes, name: str) -> None:
    """`erfinv` could be taken apart, into a formula that takes classic TVM minutes."""
    found = process_of("classic").call(COMPILED, {"name": name})
    assert f"not implemented: ['aten::{name}']" in found["refused"].replace("special_", "")
