"""CUDA's runtime library for current TVM, with and without a driver; no GPU is needed."""

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest

from tvm_practice.engines import cuda_runtime


class _Loader:
    """In place of ctypes.CDLL: knows some libraries by name, and all files that exist."""

    def __init__(self, *known: str):
        self.known = known
        self.loaded: list[str] = []

    def __call__(self, name: str, mode: Any = None) -> None:
        if name not in self.known and not Path(name).is_file():
            raise OSError(f"{name}: cannot open shared object file")
        self.loaded.append(name)


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel's folder of libraries."""
    folder = tmp_path / "nvidia" / "cu13" / "lib"
    folder.mkdir(parents=True)
    (folder / "libcudart.so.13").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(
        cuda_runtime,
        "in_wheel",
        lambda package, name: tmp_path.joinpath(*package.split("."), name),
    )
    monkeypatch.setenv("LD_LIBRARY_PATH", "/somewhere")
    return folder


def test_without_a_driver_nothing_is_loaded(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = _Loader()
    monkeypatch.setattr(ctypes, "CDLL", loader)
    cuda_runtime.load_runtime()
    assert loader.loaded == [] and os.environ["LD_LIBRARY_PATH"] == "/somewhere"


def test_a_toolkit_of_the_system_comes_first(wheel: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loader = _Loader("libcuda.so.1", "libcudart.so.13")
    monkeypatch.setattr(ctypes, "CDLL", loader)
    cuda_runtime.load_runtime()
    assert loader.loaded == ["libcuda.so.1", "libcudart.so.13"]
    assert os.environ["LD_LIBRARY_PATH"] == "/somewhere"


def test_else_it_is_that_of_a_wheel_for_children_too(
    wheel: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = _Loader("libcuda.so.1")
    monkeypatch.setattr(ctypes, "CDLL", loader)
    cuda_runtime.load_runtime()
    assert loader.loaded[1:] == [str(wheel / "libcudart.so.13")]
    assert os.environ["LD_LIBRARY_PATH"] == f"/somewhere{os.pathsep}{wheel}"
