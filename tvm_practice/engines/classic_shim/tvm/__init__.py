"""`import tvm` as classic TVM 0.17, the one bundled in the `bitblas` wheel.

The folder above this one goes first on `sys.path` and in `PYTHONPATH`, so that this process and
the worker processes its tuners start (`python -m tvm.exec.popen_worker`) find the same TVM.
On import this package loads the CUDA libraries that libtvm.so is linked against, then turns
itself into the bundled package.
"""

import ctypes
import functools
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import types
from pathlib import Path

# What libtvm.so takes from the CUDA driver. Without a driver each answers "no device".
_DRIVER_FUNCTIONS = (
    "cuDeviceGetName",
    "cuFuncSetAttribute",
    "cuGetErrorName",
    "cuLaunchKernel",
    "cuMemsetD32_v2",
    "cuModuleGetFunction",
    "cuModuleGetGlobal_v2",
    "cuModuleLoadData",
    "cuModuleUnload",
)
_CUDA_ERROR_NO_DEVICE = 100


def _package_folder(name):
    """The folder of an installed package, found without importing it; None if not installed."""
    try:
        spec = importlib.util.find_spec(name)
    except ModuleNotFoundError:  # a parent of a dotted name is missing
        return None
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)))


def _load_globally(path):
    ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)


def _driver_stub():
    """A library named libcuda.so.1 whose functions report that there is no device."""
    source = "".join(
        f"int {name}(void) {{ return {_CUDA_ERROR_NO_DEVICE}; }}\n" for name in _DRIVER_FUNCTIONS
    )
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
    caches = [
        Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tvm-practice",
        Path(tempfile.gettempdir()) / f"tvm-practice-{os.getuid()}",
    ]
    for cache in caches:
        library = cache / f"no-cuda-driver-{digest}.so"
        if library.exists():
            return library
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise ImportError(
            "classic TVM needs a C compiler (cc, gcc or clang) and none is on the PATH; "
            "on Debian: apt-get install gcc g++"
        )
    for cache in caches:
        try:
            cache.mkdir(parents=True, exist_ok=True)
            building = cache / f".building-{os.getpid()}.so"
            subprocess.run(
                [compiler, "-shared", "-fPIC", "-x", "c", "-", "-Wl,-soname,libcuda.so.1"]
                + ["-o", str(building)],
                input=source.encode(),
                check=True,
                capture_output=True,
            )
        except OSError:  # a read-only or full disk: try the next place
            continue
        library = cache / f"no-cuda-driver-{digest}.so"
        building.replace(library)  # atomic: two processes may be here at once
        return library
    raise ImportError(f"cannot write the CUDA driver stub to any of {', '.join(map(str, caches))}")


def _preload():
    for package, library in (
        ("nvidia.cuda_runtime", "libcudart.so.12"),
        ("nvidia.cuda_nvrtc", "libnvrtc.so.12"),
    ):
        folder = _package_folder(package)
        if folder is None:
            raise ImportError(
                f"classic TVM needs the Python package {package.replace('.', '-')}-cu12"
            )
        _load_globally(folder / "lib" / library)
    try:
        _load_globally("libcuda.so.1")
    except OSError:
        _load_globally(_driver_stub())


def _become_bundled():
    bitblas = _package_folder("bitblas")
    if bitblas is None:
        raise ImportError("classic TVM needs the Python package bitblas")
    bundled = bitblas / "3rdparty" / "tvm"
    package = bundled / "python" / "tvm"
    __spec__.submodule_search_locations[:] = [str(package)]
    globals()["__path__"] = [str(package)]
    globals()["__file__"] = str(package / "__init__.py")
    # The bundled one makes a folder in the working directory at import, and fails where it cannot.
    memoizer = types.ModuleType("tvm.contrib.pickle_memoize")
    memoizer.memoize = lambda key, save_at_exit=False: functools.cache
    sys.modules[memoizer.__name__] = memoizer
    before = os.environ.get("TVM_LIBRARY_PATH")
    os.environ["TVM_LIBRARY_PATH"] = str(bundled / "build")
    try:
        code = compile((package / "__init__.py").read_bytes(), __file__, "exec")
        exec(code, globals())
    finally:
        # Left set, it would make a process of the other engine load this library.
        if before is None:
            del os.environ["TVM_LIBRARY_PATH"]
        else:
            os.environ["TVM_LIBRARY_PATH"] = before


if not sys.platform.startswith("linux"):
    raise ImportError(f"classic TVM runs on Linux x86-64 only, this is {sys.platform}")
_preload()
_become_bundled()
if "tvm.exec.popen_worker" in sys.orig_argv:
    from tvm_practice.engines.orphans import end_with_parent

    end_with_parent()
