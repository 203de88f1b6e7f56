"""ONNX operators that were wrong or refused are right; what TVM would ignore is refused."""

import importlib.util
from collections.abc import Iterator

import pytest

from tvm_practice import engines

pytestmark = pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="no onnx")
FUNCTIONS = "tests.tvm_export.importers.onnx_functions"


@pytest.fixture(scope="module")
def session() -> Iterator[engines.Session]:
    with engines.Session(engines.CURRENT) as opened:
        yield opened


@pytest.mark.pages
@pytest.mark.slow
def test_values_are_those_of_onnx(session: engines.Session) -> None:
    found = session.call(f"{FUNCTIONS}:errors", {})
    assert len(found) > 30 and not {name: each for name, each in found.items() if each}


def test_what_tvm_would_ignore_is_refused(session: engines.Session) -> None:
    said = session.call(f"{FUNCTIONS}:refusals", {})
    parts = {
        "another's operator": "a.company.Relu",
        "an attribute": "the attribute mode of SpaceToDepth, which is 'CRD'",
        "a mode": "RoiAlign is not supported: mode max",
        "a type": "float8e4m3fn",
        "a value": "TopK",
        "sizes": "Split is not supported: sizes 3, 4 of an axis of 8",
        "an activation": "the activation Elu",
    }
    assert said.keys() == parts.keys()
    for name, part in parts.items():
        assert part in said[name] and "\n" not in said[name], said[name]
