"""torch-mlir's suite, in the form of which this writes a small one."""

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from conformance.__main__ import main
from tests.conftest import Processes
from tvm_practice import engines

_FILES = {
    "registry.py": """
from types import SimpleNamespace
GLOBAL_TEST_REGISTRY = []
def register_test_case(module_factory):
    def registered(function):
        GLOBAL_TEST_REGISTRY.append(SimpleNamespace(
            program_factory=module_factory, program_invoker=function, unique_name=function.__name__
        ))
        return function
    return registered
""",
    "framework.py": """
import multiprocess, torch
from types import SimpleNamespace
multiprocess.set_start_method("spawn")
class TestUtils:
    def rand(self, *sizes):
        return torch.rand(sizes)
class _Tracer:
    def __init__(self, module, path, trace):
        self.module, self.trace = module, trace
    def forward(self, *args):
        self.trace.append(SimpleNamespace(symbol="forward", inputs=args))
        return self.module(*args)
""",
    "test_suite/__init__.py": "from torch_mlir._version import version\n",
    "test_suite/sums.py": """
import torch
from torch_mlir_e2e_test.registry import register_test_case
class Doubled(torch.nn.Module):
    def forward(self, x):
        return x * 2
class Added(torch.nn.Module):
    def forward(self, x, y):
        return x + y if x.shape[0] % 2 else x - y
    forward._torch_mlir_arg_annotations = [None, ([-1, 3], 0, True), ([-1, 3], 0, True)]
@register_test_case(module_factory=lambda: Doubled())
def Doubled_basic(module, tu):
    module.forward(tu.rand(4))
@register_test_case(module_factory=lambda: Added())
def Added_basic(module, tu):
    module.forward(tu.rand(5, 3), tu.rand(5, 3))
""",
    "test_suite/others.py": "import not_there\n",
}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in _FILES.items():
        file = tmp_path / "projects/pt1/python/torch_mlir_e2e_test" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_cases_are_judged_at_their_extents_and_at_others(
    checkout: Path, process_of: Processes
) -> None:
    found = process_of(engines.CURRENT).call(f"{__name__}:judged", {"checkout": str(checkout)})
    assert found["Doubled_basic"] == ["sums", "right", ""]
    assert found["Added_basic"] == ["sums", "right", ""]
    group, verdict, reason = found["Added_basic open"]
    assert (group, verdict) == ("sums", "refused")
    assert "at (6, 3), (6, 3): the model is only for extents where" in reason
    assert len(found) == 3


def judged(checkout: str) -> dict[str, Any]:
    """Group, verdict and reason of each case of a suite."""
    import os

    os.environ["TORCH_MLIR"] = checkout
    from conformance import torch_mlir_suite

    found = {}
    for each in torch_mlir_suite.cases():
        outcome = torch_mlir_suite.judge(**each.arguments)
        found[each.name] = [each.group, outcome["verdict"], outcome["reason"]]
    return found


def test_without_a_checkout_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TORCH_MLIR", raising=False)
    run = CliRunner().invoke(main, ["torch-mlir"])
    assert run.exit_code == 2
    assert "no cases here; conformance.torch_mlir_suite says what they need" in run.output
