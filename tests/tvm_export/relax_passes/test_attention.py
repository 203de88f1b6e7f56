"""Scores, softmax and values as one function."""

from typing import Any

import pytest

from tests.tvm_export.relax_passes.attention_functions import APART, FORMS
from tvm_practice import engines

_MODULE = "tests.tvm_export.relax_passes.attention_functions"


@pytest.fixture(scope="module", params=["llvm", "llvm -mcpu=haswell"])
def judged(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = engines.call(
        engines.CURRENT, f"{_MODULE}:judged", {"target": request.param}
    )
    return found


@pytest.mark.parametrize("form", [*FORMS, *APART])
def test_values_are_pytorchs(judged: dict[str, Any], form: str) -> None:
    assert judged[form]["error"] < 2e-6, judged[form]
    assert judged[form]["same"], judged[form]


@pytest.mark.parametrize("form", FORMS)
def test_it_is_one_function(judged: dict[str, Any], form: str) -> None:
    assert "attention" in judged[form]["rules"], judged[form]
    assert "contraction" not in judged[form]["rules"], judged[form]


@pytest.mark.parametrize("form", APART)
def test_what_does_not_suit_stays_apart(judged: dict[str, Any], form: str) -> None:
    assert "attention" not in judged[form]["rules"], judged[form]


def test_nan_and_infinities_come_through_as_in_pytorch() -> None:
    found = engines.call(engines.CURRENT, f"{_MODULE}:extremes", {})
    assert all(each["same"] and each["error"] < 1e-4 for each in found.values()), found
    assert all("attention" in each["rules"] for each in found.values()), found


def test_open_extents() -> None:
    assert engines.call(engines.CURRENT, f"{_MODULE}:open_extents", {}) < 1e-5


def test_it_is_left_to_its_rule_by_a_tuner() -> None:
    found = engines.call(engines.CURRENT, f"{_MODULE}:tuned", {})
    assert found["rules"] == ["attention"]
    assert "no task" in found["note"]
