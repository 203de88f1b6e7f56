"""Models whose products have 16-bit operands: types, accuracy, artifacts."""

from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Processes
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.relax_passes.precision_functions"


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_operands_are_rounded_and_sums_are_not(session: engines.Session, precision: str) -> None:
    found = session.call(f"{FUNCTIONS}:operands", {"precision": precision})
    assert [tuple(each) for each in found] == sorted(
        [
            ("conv1d", precision, "float32"),
            ("conv2d", precision, "float32"),
            ("conv2d", "float32", "float32"),  # in groups
            ("layer_norm", "float32", "float32"),
            ("matmul", precision, "float32"),
            ("mean", "float32", "float32"),
            ("softmax", "float32", "float32"),
        ]
    )


def test_float32_changes_nothing(session: engines.Session) -> None:
    found = session.call(f"{FUNCTIONS}:operands", {"precision": "float32"})
    assert {each for _, *types in found for each in types} == {"float32"}


@pytest.mark.parametrize(
    ("name", "precision"),
    [
        ("mixed", "bfloat16"),
        ("mixed", "float16"),
        pytest.param("bert", "bfloat16", marks=[pytest.mark.slow, pytest.mark.pages]),
        pytest.param("bert", "float16", marks=[pytest.mark.slow, pytest.mark.pages]),
        pytest.param("resnet18", "bfloat16", marks=[pytest.mark.slow, pytest.mark.pages]),
    ],
)
def test_a_model_is_near_float64(session: engines.Session, name: str, precision: str) -> None:
    made: dict[str, Any] = session.call(
        f"{FUNCTIONS}:exported", {"name": name, "precision": precision}
    )
    found = made["verification"]
    assert found["verified"] and found["reference"] == "pytorch in float64"
    # Less exact than float32, which is right to seven digits, and as exact as asked for.
    assert 0.999 <= found["cosine"] < 1 - 1e-9 and found["max_error"] > 1e-5
    assert found["top1"] > 0.9 and len(found["trials"]) == 3
    assert set(made["rules"].values()) <= {"contraction", "reduction", "injective", "index check"}


@pytest.mark.pages
def test_weights_take_half_the_room(session: engines.Session, tmp_path: Path) -> None:
    sizes = {}
    for precision in ("float32", "bfloat16"):
        given = {"folder": str(tmp_path / precision), "precision": precision, "min_cosine": None}
        metadata = session.call(f"{FUNCTIONS}:written", given)["metadata"]
        sizes[precision] = sum(each["bytes"] for each in metadata["files"].values())
        assert metadata["configuration"]["precision"] == precision
        assert (metadata["verification"].get("cosine") is None) == (precision == "float32")
    assert metadata["verification"]["min_cosine"] == 0.999
    assert metadata["verification"]["top1"] > 0.9
    assert sizes["bfloat16"] < 0.6 * sizes["float32"]


def test_a_cosine_below_the_limit_is_a_failure(session: engines.Session, tmp_path: Path) -> None:
    given = {"folder": str(tmp_path / "mlp"), "precision": "bfloat16", "min_cosine": 1.0}
    made = session.call(f"{FUNCTIONS}:written", given)
    assert not made["told"]["verified"] and made["metadata"] == {}
    assert "less than --min-cosine 1.0" in made["told"]["reason"]
