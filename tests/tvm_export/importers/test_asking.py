"""Functions that PyTorch asks for values in, on the current engine."""

import math

from tests.conftest import Processes
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.importers.decompositions_functions"


def test_values_types_and_shapes_are_pytorchs(process_of: Processes) -> None:
    assert process_of(engines.CURRENT).call(f"{FUNCTIONS}:differences", {"family": "asking"}) == []


def test_what_pytorch_raises_an_error_for_is_nan(process_of: Processes) -> None:
    before, after = process_of(engines.CURRENT).call(f"{FUNCTIONS}:loss_of_a_negative_variance", {})
    assert math.isfinite(before)
    assert math.isnan(after)


def test_bags_of_one_length_need_no_numbers(process_of: Processes) -> None:
    assert max(process_of(engines.CURRENT).call(f"{FUNCTIONS}:bags_at_other_lengths", {})) < 1e-5
