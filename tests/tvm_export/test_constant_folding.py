"""Constant operators computed without a kernel."""

from tests.conftest import Processes

_FOLDED = "tests.tvm_export.constant_folding_functions:folded"


def test_numpy_makes_the_constants_that_tvm_makes(process_of: Processes) -> None:
    found = process_of("current").call(_FOLDED, {"model": "layer"})
    assert found["operators"] == ["relax.matmul", "relax.add"]
    assert found["constants"] == 2 and found["same"]


def test_elements_are_moved_without_a_kernel(process_of: Processes) -> None:
    found = process_of("current").call(_FOLDED, {"model": "moves"})
    assert found["operators"] == ["relax.add"]
    assert found["constants"] >= 9 and found["same"]
    beyond = process_of("current").call(_FOLDED, {"model": "beyond"})
    assert beyond["operators"] == ["relax.take"]
    made = process_of("current").call(_FOLDED, {"model": "made"})
    assert made["operators"] == [] and made["values"] == [[2, 5, 8], [[-7] * 3] * 2]


def test_what_numpy_cannot_compute_is_compiled_apart_from_the_model(
    process_of: Processes,
) -> None:
    found = process_of("current").call(_FOLDED, {"model": "rest"})
    assert found["operators"][:2] == ["relax.exp", "relax.matmul"]
    assert found["constants"] >= 4 and found["same"], found
