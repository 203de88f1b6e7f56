"""An index out of bounds is refused by the compiled model, where PyTorch refuses it."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Processes
from tests.tvm_export.run_time_checks.indices_functions import OPERATORS, ROWS, VALUES

FUNCTIONS = "tests.tvm_export.run_time_checks.indices_functions"


@pytest.fixture(scope="module")
def compared(process_of: Processes) -> Any:
    return process_of("current").call(f"{FUNCTIONS}:compared")


@pytest.mark.parametrize("operator", list(OPERATORS))
def test_indices_are_refused_where_pytorch_refuses_them(operator: str, compared: Any) -> None:
    found = compared[operator]
    assert set(map(int, found)) == set(VALUES)
    for value, judged in found.items():
        if judged["pytorch"] is None:
            assert judged["same"], (value, judged)
        else:
            assert judged["tvm"].startswith("IndexError: "), (value, judged)


def test_the_message_names_input_and_bounds(compared: Any) -> None:
    def said(operator: str) -> str:
        return str(compared[operator][str(10**6)]["tvm"])

    assert said("embedding") == "IndexError: indices: index out of bounds, 0 to 99 are allowed"
    assert f"{-ROWS} to 99" in said("index of a later axis")
    assert "the model computes for take" in said("computed")


def test_open_extents_bound_indices(process_of: Processes, tmp_path: Path) -> None:
    found = process_of("current").call(f"{FUNCTIONS}:open_extents", {"folder": str(tmp_path)})
    assert found["schedule"] == "index check"
    for allowed in ("[8, 2, 2, 7] of 9", "[0] of 1", "[3] of 4"):
        assert found[allowed]["same"], found
    for refused in ("[4] of 4", "[-1] of 4"):
        said = "rows: index out of bounds, 0 to n - 1 are allowed (n: axis 0 of table)"
        assert said in found[refused]["error"]
    assert found["unequal"] == "BadInput: n is 3 in table and 2 in scale"
    assert "table is float32 [3], the model takes float32 [n, 4]" in found["rank"]


def test_coordinates_and_constants(process_of: Processes) -> None:
    found = process_of("current").call(f"{FUNCTIONS}:in_relax")
    assert found["coordinates"] == [[23, 1], None]
    for wrong in ("a row too far", "a column too far"):
        assert found[wrong][1].startswith("IndexError: where: "), found
        assert "0 to 3, 0 to 5" in found[wrong][1]
    assert "CannotImport: take with a constant index 4, 0 to 3" in found["constant"][1]


def test_an_onnx_library_checks_its_indices(process_of: Processes, tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    found = process_of("current").call(f"{FUNCTIONS}:onnx_gather", {"folder": str(tmp_path)})
    assert found["-5"]["same"] and found["4"]["same"]
    for refused in ("-6", "5"):
        assert "token ids: index out of bounds, -5 to 4" in found[refused]["error"]
