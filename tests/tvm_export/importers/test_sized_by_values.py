"""Results of a size that depends on values, with more and fewer elements than in the example."""

from pathlib import Path

import pytest

from tests.conftest import Processes
from tests.tvm_export.importers.sized_by_values_functions import MODELS

FUNCTIONS = "tests.tvm_export.importers.sized_by_values_functions"
# In `make test`; the others in `make follow`.
_OFTEN = (
    "indices", "elements", "layers", "rows written", "divided by counts", "distinct", "repeated",
    "first",
)  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [each if each in _OFTEN else pytest.param(each, marks=pytest.mark.pages) for each in MODELS],
)
def test_a_model_is_right_for_any_values(process_of: Processes, name: str) -> None:
    assert process_of("current").call(f"{FUNCTIONS}:compiled", {"name": name}) == []


def test_models_of_open_extents_are_right_for_any_values(process_of: Processes) -> None:
    assert process_of("current").call(f"{FUNCTIONS}:of_open_extents") == []


def test_an_extent_that_was_fixed_is_refused_in_a_line(process_of: Processes) -> None:
    said = process_of("current").call(f"{FUNCTIONS}:of_another_size")
    assert said.startswith("an extent that the model computes is 1 in this call"), said


@pytest.mark.pages
def test_an_artifact_is_right_for_any_values(process_of: Processes, tmp_path: Path) -> None:
    call = process_of("current").call
    assert call(f"{FUNCTIONS}:written", {"folder": str(tmp_path / "artifact")}) == []
