"""`python -m conformance onnx`: a verdict of each kind, and a draw of ONNX's own cases."""

import importlib.util

import pytest

from conformance import onnx_backend
from conformance.cases import try_all

pytestmark = pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="no onnx")
# What TVM has, what it lacks, random numbers, and strings.
_KNOWN = {
    "node test_relu": "right",
    "node test_image_decoder_decode_bmp_rgb": "refused",
    "node test_bernoulli": "left out",
    "node test_string_concat": "left out",
}


@pytest.mark.slow
def test_each_verdict() -> None:
    cases = list(onnx_backend.cases())
    assert len(cases) > 1500
    chosen = [each for each in cases if each.name in _KNOWN]
    outcomes = try_all(onnx_backend.JUDGE, chosen, jobs=1)
    assert {each.name: each.verdict for each in outcomes} == _KNOWN
    assert [bool(each.reason) for each in outcomes] == [
        each.verdict != "right" for each in outcomes
    ]


def test_a_difference_is_found() -> None:
    import numpy as np

    class Test:
        rtol, atol = 1e-3, 1e-7

    one = np.arange(6, dtype="float32")
    assert onnx_backend.difference([one], [one], Test) == ""
    assert "1 outputs" in onnx_backend.difference([one], [one, one], Test)
    assert "float64" in onnx_backend.difference([one], [one.astype("float64")], Test)
    assert "shape" in onnx_backend.difference([one], [one.reshape(2, 3)], Test)
    assert "output 0" in onnx_backend.difference([one], [one * np.float32(1.01)], Test)
