"""What lab 7 is built on: numpy on TVM's memory, a backend whose work can be saved."""

from pathlib import Path

import numpy as np
import pytest

from tvm_practice import engines
from tvm_practice.labs.blas_backend import linear, view

FUNCTIONS = "tests.labs.custom_operator_functions"


def _tensors(*arrays: np.ndarray) -> list[object]:
    """The arrays as TVM passes them: on the same memory."""
    tvm_ffi = pytest.importorskip("tvm_ffi")
    return [tvm_ffi.from_dlpack(each) for each in arrays]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_a_view_is_no_copy(dtype: str) -> None:
    array = np.zeros((3, 1, 5), dtype)
    seen = view(*_tensors(array))
    seen[1, 0, 2] = 7
    assert array[1, 0, 2] == 7 and seen.shape == array.shape and seen.dtype == array.dtype


def test_a_view_of_every_other_column_is_refused() -> None:
    with pytest.raises(ValueError, match="strides"):
        view(*_tensors(np.zeros((4, 6), "float32")[:, ::2]))


@pytest.mark.parametrize("biased", [False, True])
def test_linear_writes_to_its_last_argument(biased: bool) -> None:
    rng = np.random.default_rng()
    shapes = [(2, 3, 5), (5, 7), (7,), (2, 3, 7)]
    x, w, b, y = (rng.standard_normal(each, dtype="float32") for each in shapes)
    linear(*_tensors(x, w, *([b] if biased else []), y))
    assert y == pytest.approx(x @ w + b * biased, rel=1e-5, abs=1e-5)


@pytest.mark.pages
@pytest.mark.slow
def test_an_offloaded_model_is_saved_and_loaded(tmp_path: Path) -> None:
    """In another process: without the library's function registered, and with it."""
    library = str(tmp_path / "model.so")
    saved = engines.call(engines.CURRENT, f"{FUNCTIONS}:save", {"library": library})
    assert saved["calls"] == 2
    arguments = {"library": library, "x": saved["x"]}
    loaded = engines.call(engines.CURRENT, f"{FUNCTIONS}:load", arguments)
    assert "tvm_practice.linear" in loaded["without"]
    assert loaded["y"] == pytest.approx(saved["y"], rel=1e-4, abs=1e-5)
