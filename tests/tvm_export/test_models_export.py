"""The project's models through the current engine as it comes, and the hard ones through both."""

import pytest

from tests.conftest import Processes, needs_classic
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.models_export_functions"
pytestmark = pytest.mark.slow


@pytest.mark.pages
@pytest.mark.parametrize("name", ["gpt2"])
def test_untuned_it_agrees_with_pytorch_and_nothing_is_left_scalar(name: str) -> None:
    built = engines.call("current", f"{FUNCTIONS}:untuned", {"name": name})
    assert built["error"] < 1e-4
    rules = {"attention", "contraction", "reduction", "injective", "index check"}
    assert set(built["rules"].values()) <= rules


@pytest.mark.pages
@pytest.mark.parametrize("engine", ["current", pytest.param("classic", marks=needs_classic)])
@pytest.mark.parametrize("name", ["bert", "mamba", "lstm"])
def test_two_layers_of_it(name: str, engine: engines.Engine, process_of: Processes) -> None:
    """The operators of the large models, in seconds, on both engines."""
    built = process_of(engine).call(f"{FUNCTIONS}:small", {"name": name})
    assert built["error"] < 1e-4
    # Its pictures for the report.
    assert 0 < built["kernels"] < built["operators"]
    if engine == engines.CURRENT:
        assert built["pictures"] == sorted(built["pictures"], reverse=True)
        assert len(built["pictures"]) == 5 and built["pictures"][-1] > 0
