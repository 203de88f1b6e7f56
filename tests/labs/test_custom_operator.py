"""What lab 7 is built on: numpy on TVM's memory, a backend whose work can be saved."""

from pathlib import Path

import pytest

from tvm_practice import engines

FUNCTIONS = "tests.labs.custom_operator_functions"


def test_a_view_is_no_copy() -> None:
    seen = engines.call(engines.CURRENT, f"{FUNCTIONS}:views", {})
    assert seen["shared"] == [True, True] and "strides" in seen["refused"]


@pytest.mark.slow
def test_an_offloaded_model_is_saved_and_loaded(tmp_path: Path) -> None:
    """In another process: with the library's function registered, and without."""
    library = str(tmp_path / "model.so")
    saved = engines.call(engines.CURRENT, f"{FUNCTIONS}:save", {"library": library})
    assert saved["calls"] == 2
    arguments = {"library": library, "x": saved["x"]}
    loaded = engines.call(engines.CURRENT, f"{FUNCTIONS}:load", {**arguments, "registered": True})
    assert loaded["y"] == pytest.approx(saved["y"], rel=1e-4, abs=1e-5)
    without = engines.call(engines.CURRENT, f"{FUNCTIONS}:load", {**arguments, "registered": False})
    assert "tvm_practice.linear" in without["error"]


def test_the_operator_is_one_node_of_both_records() -> None:
    records = engines.call(engines.CURRENT, f"{FUNCTIONS}:records", {})
    assert records["traced"] == 2 and records["exported"] == 2
