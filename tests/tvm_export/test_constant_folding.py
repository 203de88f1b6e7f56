"""Constant operators computed without a kernel."""

from tests.conftest import Processes


def test_numpy_makes_the_constants_that_tvm_makes(process_of: Processes) -> None:
    found = process_of("current").call("tests.tvm_export.constant_folding_functions:folded", {})
    assert found["operators"] == ["relax.matmul", "relax.add"]
    assert found["constants"] == 2 and found["same"]
