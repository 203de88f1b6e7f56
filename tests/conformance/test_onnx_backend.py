"""`python -m conformance onnx`: a verdict of each kind, and a draw of ONNX's own cases."""

import importlib.util
import random

import pytest

from conformance import onnx_backend
from tvm_practice import engines

pytestmark = pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="no onnx")
# What TVM has, what it lacks, random numbers, and strings.
_KNOWN = {
    "node test_relu": "right",
    "node test_image_decoder_decode_bmp_rgb": "refused",
    "node test_bernoulli": "left out",
    "node test_string_concat": "left out",
}


def judged(names: list[str], count: int, seed: int) -> dict[str, list[str]]:
    """Verdict and reason of the named cases and of some that are drawn."""
    every = [each.name for each in onnx_backend.cases()]
    assert len(every) > 1500
    drawn = random.Random(seed).sample(every, count)
    outcomes = {name: onnx_backend.judge(name) for name in [*names, *drawn]}
    return {name: [each["verdict"], each["reason"]] for name, each in outcomes.items()}


@pytest.mark.slow
@pytest.mark.parametrize("count", [0, pytest.param(12, marks=pytest.mark.pages)])
def test_each_verdict_and_a_draw(count: int) -> None:
    seed = random.SystemRandom().randrange(10**6)
    with engines.Session(engines.CURRENT) as session:
        arguments = {"names": list(_KNOWN), "count": count, "seed": seed}
        found = session.call(f"{__name__}:judged", arguments)
    assert {name: found[name][0] for name in _KNOWN} == _KNOWN
    assert all(bool(reason) == (verdict != "right") for verdict, reason in found.values())
    bad = {name: each for name, each in found.items() if each[0] in ("wrong", "raw")}
    assert not bad, (seed, bad)


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
