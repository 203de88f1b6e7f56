"""TorchScript on both engines, verified against the model as it was."""

import pytest

from tests.conftest import Processes
from tvm_practice.engines import Engine

_FUNCTIONS = "tests.tvm_export.importers.torch_script_functions"


@pytest.mark.parametrize("engine", ["current", "classic"])
def test_traced_and_scripted_models(process_of: Processes, engine: Engine) -> None:
    found = process_of(engine).call(f"{_FUNCTIONS}:verified", {"engine": engine})
    assert len(found) == 5


def test_an_unknown_branch_is_refused_in_a_line(process_of: Processes) -> None:
    said = process_of("current").call(f"{_FUNCTIONS}:refused")
    assert "PyTorch cannot convert TorchScript" in said and "\n" not in said
