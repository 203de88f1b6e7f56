"""The library of CUDA that current TVM's part for NVIDIA's GPUs is linked against."""

import ctypes
import importlib.util
import os
from pathlib import Path

_DRIVER = "libcuda.so.1"
_RUNTIME = "libcudart.so.13"
_PACKAGE = "nvidia.cu13"  # of the wheel nvidia-cuda-runtime, which PyTorch installs too
_SEARCHED = "LD_LIBRARY_PATH"


def load_runtime() -> None:
    """Make CUDA's runtime library known to this process and those that it starts.

    TVM asks the loader for it by name, and does without GPUs where it is not found. In a wheel it
    lies where the loader does not look. Without a driver nothing is loaded.
    """
    try:
        ctypes.CDLL(_DRIVER)
    except OSError:
        return
    try:
        ctypes.CDLL(_RUNTIME, mode=ctypes.RTLD_GLOBAL)
        return
    except OSError:
        library = in_wheel(_PACKAGE, f"lib/{_RUNTIME}")
    if library is None:
        return
    ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
    folder = str(library.parent)
    before = os.environ.get(_SEARCHED, "").split(os.pathsep)
    # A process that is started reads it; this one has done so.
    os.environ[_SEARCHED] = os.pathsep.join([*filter(None, before), folder])


def in_wheel(package: str, name: str) -> Path | None:
    """A file or folder of an installed package; None if either is not there."""
    try:
        spec = importlib.util.find_spec(package)
    except ModuleNotFoundError:
        return None
    places = (spec and spec.submodule_search_locations) or ()
    return next((Path(each) / name for each in places if (Path(each) / name).exists()), None)
