"""NVRTC, NVIDIA's compiler of CUDA texts as a library: where it is, and its call.

It is called through ctypes. NVIDIA's own bindings come in one version per major version of CUDA,
and a PyTorch for CUDA 13 brings theirs, while the wheels of CUDA 12.9 know every architecture from
sm_50 on.
"""

import ctypes
import functools
import shutil
from collections.abc import Iterator
from ctypes import byref, c_char_p, c_int, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tvm_practice.engines.cuda_runtime import in_wheel

_HEADER = "cuda_runtime.h"
# The wheels of CUDA 12, one folder each; those of CUDA 13 share `nvidia/cu13`.
_WHEELS_OF_12 = ("nvidia.cuda_runtime", "nvidia.cuda_cccl", "nvidia.cuda_nvcc")
_OPTIONS = (
    "-default-device",
    "--device-int128",
    "-U__CUDA_NO_HALF_OPERATORS__",
    "-U__CUDA_NO_HALF_CONVERSIONS__",
    "-U__CUDA_NO_BFLOAT16_OPERATORS__",
    "-U__CUDA_NO_BFLOAT16_CONVERSIONS__",
)


@dataclass(frozen=True)
class Nvrtc:
    """A library and the headers of the same major version of CUDA.

    Attributes:
        file: libnvrtc.
        headers: the folders to look for them in.
    """

    file: Path
    headers: tuple[Path, ...]

    def compile_text(self, source: str, arch: str, *, form: Literal["cubin", "ptx"]) -> bytes:
        """Machine code of a CUDA text.

        Args:
            source: CUDA C++.
            arch: "sm_80" and the like.
            form: "cubin", or "ptx", which later architectures of the family run too.

        Raises RuntimeError with the compiler's messages, one per line.
        """
        nvrtc = _loaded(self.file)
        program = c_void_p()

        def checked(status: int) -> None:
            if status:
                raise RuntimeError(nvrtc.nvrtcGetErrorString(status).decode())

        def read(size: Any, content: Any) -> bytes:
            count = c_size_t()
            checked(size(program, byref(count)))
            text = ctypes.create_string_buffer(count.value)
            checked(content(program, text))
            return text.raw

        checked(
            nvrtc.nvrtcCreateProgram(byref(program), source.encode(), b"kernels.cu", 0, None, None)
        )
        headers = [f"-I{each}" for each in self.headers]
        options = [f"--gpu-architecture={arch}", *_OPTIONS, *headers]
        given = (c_char_p * len(options))(*(each.encode() for each in options))
        try:
            if nvrtc.nvrtcCompileProgram(program, len(options), given):
                log = read(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog)
                raise RuntimeError(log.rstrip(b"\0\n").decode())
            if form == "ptx":
                return read(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX)
            return read(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN)
        finally:
            nvrtc.nvrtcDestroyProgram(byref(program))

    @functools.cached_property
    def architectures(self) -> frozenset[str]:
        """Those that it compiles for: "sm_80" and the like."""
        nvrtc = _loaded(self.file)
        count = c_int()
        if nvrtc.nvrtcGetNumSupportedArchs(byref(count)):
            return frozenset()
        numbers = (c_int * count.value)()
        nvrtc.nvrtcGetSupportedArchs(numbers)
        return frozenset(f"sm_{each}" for each in numbers)


@functools.cache
def found() -> Nvrtc | None:
    """The first that is here with its headers: of wheels of CUDA 12, then 13, then a toolkit's.

    The headers of a toolkit of CUDA 13 also serve the library of its wheels, such as PyTorch's.
    """
    return next(_places(), None)


def _places() -> Iterator[Nvrtc]:
    library = in_wheel("nvidia.cuda_nvrtc", "lib/libnvrtc.so.12")
    folders = [in_wheel(each, "include") for each in _WHEELS_OF_12]
    headers = [each for each in folders if each is not None]
    if library is not None and len(headers) == len(folders):
        yield Nvrtc(library, tuple(headers))
    of_toolkit = _toolkit()
    library = in_wheel("nvidia.cu13", "lib/libnvrtc.so.13")
    for folder in (in_wheel("nvidia.cu13", "include"), of_toolkit and of_toolkit / "include"):
        if folder is None or not (folder / _HEADER).is_file() or not (folder / "cccl").is_dir():
            continue
        if library is None and of_toolkit is not None:
            library = next(iter(sorted(of_toolkit.glob("lib*/libnvrtc.so.13"))), None)
        if library is not None:
            yield Nvrtc(library, (folder, folder / "cccl"))


def _toolkit() -> Path | None:
    """The folder of the CUDA toolkit whose nvcc is on the path, or that is in its usual place."""
    nvcc = shutil.which("nvcc")
    places = [Path("/usr/local/cuda")]
    if nvcc is not None:
        places.insert(0, Path(nvcc).resolve().parent.parent)
    return next((each for each in places if (each / "include" / _HEADER).is_file()), None)


@functools.cache
def _loaded(library: Path) -> ctypes.CDLL:
    # It loads libnvrtc-builtins by name, which lies beside it and not on the loader's path.
    for builtins in sorted(library.parent.glob("libnvrtc-builtins.so.*")):
        if ".alt." not in builtins.name:
            ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(library))
    nvrtc.nvrtcGetErrorString.restype = c_char_p
    return nvrtc
