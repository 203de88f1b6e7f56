"""Models that come quantized: values, and what is computed in integers."""

import importlib.util
from pathlib import Path

import pytest

from tests.conftest import Processes
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.relax_passes.quantized_models_functions"
with_onnx = pytest.mark.skipif(
    any(importlib.util.find_spec(each) is None for each in ("onnx", "onnxruntime")),
    reason="no onnx, or no onnxruntime",
)


@pytest.fixture(scope="module")
def session(process_of: Processes) -> engines.Session:
    return process_of(engines.CURRENT)


@with_onnx
def test_onnx_models_multiply_bytes(session: engines.Session, tmp_path: Path) -> None:
    found = session.call(f"{FUNCTIONS}:onnx_models", {"folder": str(tmp_path)})
    assert len(found) == 6
    for name, each in found.items():
        assert each["rules"] == [] and each["cosine"] > 0.9999, (name, each)
        # A value between two steps may become either; a dynamic model's output has no steps.
        assert each["steps"] < (1e-4 if "dynamic" in name else 1.01), (name, each)
        # Attention multiplies activations by each other, twice.
        allowed = 0 if "convolutions" in name or "operators" in name else 2
        assert each["float sums"] == allowed, (name, each)


def test_programs_of_pytorch_multiply_bytes(session: engines.Session) -> None:
    found = session.call(f"{FUNCTIONS}:drawn", {})
    assert max(found["errors"]) < 1e-5, found
    assert found["float sums"] == 1 and found["rules"] == []  # that of groups


@with_onnx
def test_onnx_runtimes_operators_on_bytes(session: engines.Session) -> None:
    found = session.call(f"{FUNCTIONS}:operators", {})
    assert len(found) == 11 and max(found.values()) <= 1, found


@with_onnx
def test_operators_in_float32_are_onnx_runtimes(session: engines.Session) -> None:
    found = session.call(f"{FUNCTIONS}:float_operators", {})
    assert len(found) == 15 and max(found.values()) < 1e-5, found
