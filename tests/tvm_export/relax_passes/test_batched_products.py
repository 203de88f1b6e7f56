"""Products of a batch by one matrix."""

from tvm_practice import engines

_MATRIX = 24 * 32 * 4


def test_a_matrix_that_is_repeated_over_the_batch_is_kept_once() -> None:
    found = engines.call(
        engines.CURRENT, "tests.tvm_export.relax_passes.batched_products_functions:forms", {}
    )
    assert all(each["error"] < 1e-4 for each in found.values()), found
    assert {name: each["weights"] / _MATRIX for name, each in found.items()} == {
        "linear layer": 1,
        "four axes": 1,
        "first operand": 1,
        "both repeated": 1,
        "a matrix each of some": 10,
        "one row repeated": 5,
    }
