"""The packed template's values where tiles do not divide the sizes."""

import pytest

from tvm_practice import engines


@pytest.mark.slow
def test_the_product_is_right_on_odd_sizes() -> None:
    if reason := engines.unavailable_reason("classic"):
        pytest.skip(reason)
    errors = engines.call(
        "classic",
        "tests.tvm_export.tuners.matmul_template_functions:largest_errors",
        {"sizes": [35, 67, 29]},
    )
    assert len(errors) == 2
    assert all(error < 1e-4 for error in errors.values())  # NaN is an error too
