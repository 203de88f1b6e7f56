"""Convolutions with their channels last: right values, whatever stands between them."""

import pytest

from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.relax_passes.channels_last_functions"
LATER = [pytest.param(seed, marks=pytest.mark.pages) for seed in range(1, 8)]


@pytest.mark.parametrize("seed", [0, *LATER])
def test_random_models(seed: int) -> None:
    found = engines.call(engines.CURRENT, f"{FUNCTIONS}:compared", {"seed": seed})
    assert found["error"] < 1e-4, found
    assert found["last"] and not found["first"], found
    assert not {"fallback", "unscheduled"} & set(found["rules"].values()), found


@pytest.mark.parametrize("seed", [0, *LATER])
def test_random_models_in_bfloat16(seed: int) -> None:
    given = {"seed": seed, "precision": "bfloat16"}
    found = engines.call(engines.CURRENT, f"{FUNCTIONS}:compared", given)
    assert found["error"] < 0.03, found
    assert found["last"] and not found["first"], found
    assert not {"fallback", "unscheduled"} & set(found["rules"].values()), found


@pytest.mark.parametrize(
    ("model", "order"),
    [("1x1", "last"), ("3x3", "last"), ("open", "first"), ("half", "first"), ("input", "last")],
)
def test_what_is_worth_it(model: str, order: str) -> None:
    assert engines.call(engines.CURRENT, f"{FUNCTIONS}:order_of", {"name": model}) == order
