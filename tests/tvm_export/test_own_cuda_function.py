"""The CUDA function of its own of docs/guides/cuda-applications.md: compiled, and its values."""

import re
from pathlib import Path

import pytest

from tests.conftest import Processes
from tests.pages import blocks
from tvm_practice import engines

FUNCTIONS = "tests.tvm_export.own_cuda_function_functions"


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the page's module."""
    folder = tmp_path_factory.mktemp("page")
    [text] = [
        each.text
        for each in blocks("guides/cuda-applications.md")
        if "cat > own_function.py" in each.text
    ]
    [program] = re.findall(r"^cat > own_function\.py <<'END'\n(.*?)^END$", text, re.DOTALL | re.M)
    (folder / "own_function.py").write_text(program)
    return folder


@pytest.mark.pages
@pytest.mark.slow
def test_the_function_is_called_by_the_kernel_and_computes_what_pytorch_does(
    process_of: Processes, module: Path
) -> None:
    found = process_of(engines.CURRENT).call(f"{FUNCTIONS}:exported", {"folder": str(module)})
    assert found["compiled"] in (True, None)
    assert found["defined"] < found["called"]
    assert found["error"] < 1e-5 and found["spread"] > 0.1
