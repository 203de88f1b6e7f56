"""Packed sequences of any lengths, beside PyTorch's."""

import pytest

from tests.conftest import Processes
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.importers.packed_sequences_functions"


@pytest.mark.parametrize("engine", ["current", "classic"])
def test_each_sequence_ends_where_its_length_says(
    process_of: Processes, engine: engines.Engine
) -> None:
    """The padding is not a number: no output or state has anything of it."""
    if reason := engines.unavailable_reason(engine):
        pytest.skip(reason)
    found = process_of(engine).call(f"{FUNCTIONS}:errors", {"engine": engine})
    assert len(found) == (6 if engine == "current" else 1)
    limits = {"LSTM in bfloat16": 0.02}
    assert all(each < limits.get(name, 1e-6) for name, each in found.items()), found
