"""Truth values compared and added, a vector at a time."""

from tvm_practice import engines


def test_operators_of_truth_values() -> None:
    found = engines.call(engines.CURRENT, "tests.tvm_export.lowering.truth_functions:compared", {})
    assert len(found) == 13
    assert [name for name, is_right in found.items() if not is_right] == []
