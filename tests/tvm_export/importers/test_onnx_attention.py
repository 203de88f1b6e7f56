"""ONNX Runtime's operators of attention give what ONNX Runtime gives."""

import importlib.util

import pytest

from tests.conftest import Processes
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.importers.onnx_attention_functions"
pytestmark = pytest.mark.skipif(
    not all(map(importlib.util.find_spec, ("onnx", "onnxruntime"))), reason="onnx is not installed"
)


@pytest.mark.parametrize(
    ("operator", "cases"),
    [
        ("Attention", 15),
        ("GroupQueryAttention", 10),
        ("MultiHeadAttention", 10),
        ("RotaryEmbedding", 5),
    ],
)
def test_attention_is_onnx_runtimes(operator: str, cases: int, process_of: Processes) -> None:
    found = process_of(engines.CURRENT).call(f"{FUNCTIONS}:off", {"operator": operator})
    assert len(found) == cases
    assert {name: each for name, each in found.items() if each > 1e-5} == {}


def test_an_encoder_is_onnx_runtimes(process_of: Processes) -> None:
    found = process_of(engines.CURRENT).call(f"{FUNCTIONS}:blocks", {})
    assert len(found) == 9 and max(found.values()) < 1e-5, found
