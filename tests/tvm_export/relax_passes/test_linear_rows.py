"""What follows a linear layer on sequences goes with its product."""

from typing import Any

import pytest

from tvm_practice import engines

_FUSED = {
    "activation": "gelu",
    "residual": "add",
    "constant first": "subtract",
    "scale per column": "multiply",
    "two layers": "multiply",
    "next layer": "tanh",
}


@pytest.fixture(scope="module")
def forms() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = engines.call(
        engines.CURRENT, "tests.tvm_export.relax_passes.linear_rows_functions:forms", {}
    )
    return found


def test_values_and_shapes_are_pytorchs(forms: dict[str, dict[str, Any]]) -> None:
    assert all(each["error"] < 1e-5 and each["shape"] for each in forms.values()), forms


@pytest.mark.parametrize("form", _FUSED)
def test_elementwise_operators_are_fused_with_the_product(
    form: str, forms: dict[str, dict[str, Any]]
) -> None:
    functions = forms[form]["functions"]
    assert any("matmul" in each and _FUSED[form] in each for each in functions), functions


def test_a_factor_of_other_axes_stays_after_the_product(
    forms: dict[str, dict[str, Any]],
) -> None:
    for form in ("scale per sequence", "scale per row"):
        functions = forms[form]["functions"]
        assert not any("matmul" in each and "multiply" in each for each in functions), functions


def test_a_reshape_and_its_inverse_are_gone(forms: dict[str, dict[str, Any]]) -> None:
    assert sum("reshape" in each for each in forms["next layer"]["functions"]) <= 2
