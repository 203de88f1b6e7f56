"""The judge: right models are right, and each kind of fault is seen."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from fuzz.graphs import Graph, Step
from fuzz.judging import JUDGE, judge, processor_time
from fuzz.rounding import is_rounding
from tests.conftest import Processes
from tvm_practice import engines


def graph(*codes: str, exact: bool = True) -> Graph:
    """Steps v0, v1, … on x0 of shape (3, 5); the last one is the output."""
    steps = [Step(f"v{i}", code, "any", exact) for i, code in enumerate(codes)]
    return Graph({"x0": "values((3, 5), 'float32', 0)"}, {}, steps, [steps[-1].name])


_PRODUCT = Graph(
    {"x0": "values((7, 33), 'float32', 0)"},
    {"c0": "weights((33, 48), 'float32', 0, 0.2)"},
    [
        Step("v0", "torch.matmul(x0, self.c0)", "matmul", False),
        Step("v1", "F.pad(v0, (1, 2))", "pad", True),
    ],
    ["v1"],
)


@pytest.mark.parametrize("mode", ["rules", "tiles"])
def test_a_model_is_right(process_of: Processes, mode: str) -> None:
    arguments = {"graph": _PRODUCT.to_dict(), "mode": mode, "seed": 1}
    assert process_of("current").call(JUDGE, arguments) == {"verdict": "right", "reason": ""}


def test_a_model_is_right_on_the_classic_engine(process_of: Processes) -> None:
    arguments = {"graph": _PRODUCT.to_dict(), "mode": "classic", "seed": 1}
    found = process_of("classic").call(JUDGE, arguments)
    assert found["verdict"] == "right" or "not installed" in found["reason"]


def test_faults_are_seen(process_of: Processes) -> None:
    found = process_of("current").call(f"{__name__}:with_faults")
    assert found["refused"][0] == "refused" and "ldl_factor" in found["refused"][1]
    assert found["values"][0] == "wrong" and "output" in found["values"][1]
    assert found["rule"] == ["raw", "KeyError: 'of a rule'"]
    assert found["random"] == ["wrong", "output 0 differs between two runs"]


def test_a_model_that_takes_a_processor_too_long_ends_the_process() -> None:
    with pytest.raises(engines.EngineDied, match="SIGXCPU"):
        engines.call("current", f"{__name__}:compute_for_ever", timeout=120)


def compute_for_ever() -> None:
    with processor_time(0.5):
        while True:
            pass


def with_faults() -> dict[str, Any]:
    """Verdicts on models that are refused, or compiled by a compiler with a fault."""
    from fuzz import judging
    from tvm_practice.tvm_export.graph_module import GraphModule
    from tvm_practice.tvm_export.rules import cpu

    found = {
        "refused": judge(graph("torch.linalg.ldl_factor_ex(x0[:2, :2])[0]").to_dict(), "rules")
    }
    run = GraphModule.__call__
    with patch.object(GraphModule, "__call__", lambda *given: [each + 1 for each in run(*given)]):
        found["values"] = judge(graph("-x0").to_dict(), "rules")

    def fails(func: Any, cpu: Any) -> Any:
        raise KeyError("of a rule")

    with patch.object(cpu, "_RULES", (("fails", fails),)):
        found["rule"] = judge(graph("-x0").to_dict(), "rules")

    def other(built: Any) -> list[np.ndarray]:
        return [each + 1 for each in built.outputs()]

    with patch.object(judging, "_on_unwritten_memory", other):
        found["random"] = judge(graph("-x0").to_dict(), "rules")
    return {name: list(each.values()) for name, each in found.items()}


def test_what_rounding_explains() -> None:
    [near] = [each.numpy() for each in _PRODUCT.evaluated()]
    assert is_rounding(_PRODUCT, [near])
    assert is_rounding(_PRODUCT, [near + np.float32(1e-6)])
    assert not is_rounding(_PRODUCT, [near + np.float32(1e-4)])
    unwritten = near.copy()
    unwritten[0, 0] = np.nan
    assert not is_rounding(_PRODUCT, [unwritten])


def test_an_overflow_within_a_sum_is_rounding() -> None:
    """-inf and a product beyond float32's range: NaN, or -inf where it was never rounded."""
    code = "torch.matmul(x0 * 0.5, x0.transpose(-1, -2))"
    step = Step("v0", code, "matmul of two", False)
    inputs = {"x0": "rare((8, 17, 4), 'float32', 2, 'any')"}
    sums = Graph(inputs, {}, [step], ["v0"])
    [near] = [each.numpy() for each in sums.evaluated()]
    infinite, finite = np.argwhere(np.isinf(near)), np.argwhere(np.isfinite(near))
    other = near.copy()
    other[tuple(infinite[0])] = np.nan
    assert is_rounding(sums, [other])
    other[tuple(finite[0])] = np.nan
    assert not is_rounding(sums, [other])
