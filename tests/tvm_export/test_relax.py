"""The Relax lane, piece by piece."""

import pytest

from tvm_practice import engines


@pytest.mark.pages
def test_batch_normalization_goes_into_the_convolution_before_it() -> None:
    found = engines.call(engines.CURRENT, "tests.tvm_export.relax_functions:folded", {})
    for name, each in found.items():
        assert each["error"] < 1e-4, name
    left = {name: each["normalizations"] for name, each in found.items()}
    assert left["plain"] == left["groups"] == 0
    assert left["before"] == left["bias"] == left["twice"] == 1
    assert {each["convolutions"] for each in found.values()} == {1}


def test_convolutions_are_normalized_in_any_type() -> None:
    found = engines.call(engines.CURRENT, "tests.tvm_export.relax_functions:in_other_types", {})
    assert len(found) == 3
    assert max(found.values()) < 8, found


def test_a_bias_is_added_before_float16_is_rounded() -> None:
    found = engines.call(engines.CURRENT, "tests.tvm_export.relax_functions:rounded_twice", {})
    assert len(found) == 6 and max(found.values()) < 0.1, found  # twice: 0.3


def test_weights_need_not_be_contiguous() -> None:
    name = "tests.tvm_export.relax_functions:channels_last_weights"
    found = engines.call(engines.CURRENT, name, {})
    assert len(found) == 4 and max(found.values()) < 8, found
