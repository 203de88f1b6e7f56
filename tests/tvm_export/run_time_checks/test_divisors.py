"""Whole numbers divided by 0 end a run with an error, and not the process."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tests.conftest import Processes
from tests.tvm_export.run_time_checks.divisors_functions import DTYPES

FUNCTIONS = "tests.tvm_export.run_time_checks.divisors_functions"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("divisions")


@pytest.fixture(scope="module")
def divided(process_of: Processes, folder: Path) -> Any:
    return process_of("current").call(f"{FUNCTIONS}:divided", {"folder": str(folder)})


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_divisor_of_0_is_refused_and_others_give_pytorchs_values(
    dtype: str, divided: Any
) -> None:
    found = divided[dtype]
    assert found["same"]  # the least number over -1 too
    assert found["error"] == "DividedByZero: y: a whole number is divided by 0"
    assert found["after"]  # the next run is not disturbed


def test_divisors_that_the_model_computes(divided: Any) -> None:
    assert divided["computed"] == (
        "DividedByZero: divisors that the model computes: a whole number is divided by 0"
    )


def test_the_command_line_says_so_in_a_line(divided: Any, folder: Path) -> None:
    from tvm_practice.artifact import main

    x, y = np.full((1, 4), 9), np.array([[1, 2, 0, 4]])
    np.savez(folder / "zero.npz", x=x, y=y)
    files = {"--inputs": folder / "zero.npz", "--outputs": folder / "out.npz"}
    arguments = ["run", folder / "int64", *(part for pair in files.items() for part in pair)]
    result = CliRunner().invoke(main, [str(each) for each in arguments])
    assert result.exit_code != 0
    assert "refuses its inputs: y: a whole number is divided by 0" in result.output
