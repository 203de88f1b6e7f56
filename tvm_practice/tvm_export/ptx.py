"""CUDA source to PTX, by NVIDIA's run-time compiler (NVRTC), which needs no GPU and no driver.

if (reason := why_no_ptx()) is None:
    text = to_ptx(source, "sm_90")
"""

import ctypes
import ctypes.util
import importlib.util
from pathlib import Path
from typing import Any

_SUCCESS = 0
# What TVM's source includes of NVIDIA's C++ library, for names that a kernel of float32 does not
# use: to declare them is enough, and the library need not be installed.
_INTEGERS = {"8": "char", "16": "short", "32": "int", "64": "long long"}
_HEADERS = {
    "cuda/std/cstdint": "namespace cuda { namespace std {\n"
    + "".join(
        f"typedef signed {kind} int{bits}_t; typedef unsigned {kind} uint{bits}_t;\n"
        for bits, kind in _INTEGERS.items()
    )
    + "} }\n",
    "cuda/std/type_traits": """
        namespace cuda { namespace std {
        template <class A, class B> struct is_same { static constexpr bool value = false; };
        template <class A> struct is_same<A, A> { static constexpr bool value = true; };
        template <class A, class B> constexpr bool is_same_v = is_same<A, B>::value;
        template <class> struct is_integral;
        template <class> struct is_signed;
        template <class> struct is_unsigned;
        template <class> struct is_floating_point;
        template <bool, class = void> struct enable_if;
        template <bool, class, class> struct conditional;
        } }
    """,
}


class CompileError(RuntimeError):
    """NVRTC refused the source; the message is its first error."""


def why_no_ptx() -> str | None:
    """One line that says what is missing for `to_ptx`; None if it works."""
    if _library() is None:
        return "no NVRTC: python -m pip install nvidia-cuda-nvrtc-cu12"
    return None


def to_ptx(source: str, arch: str) -> str:
    """The PTX of CUDA source for `arch`, `sm_90` say.

    Raises:
        CompileError: NVRTC refused the source or does not know the architecture.
        RuntimeError: NVRTC is not installed, see `why_no_ptx`.
    """
    found = _library()
    if found is None:
        raise RuntimeError(why_no_ptx())
    nvrtc = ctypes.CDLL(found)
    program = ctypes.c_void_p()
    names, headers = (
        (ctypes.c_char_p * len(_HEADERS))(*(each.encode() for each in texts))
        for texts in (_HEADERS.keys(), _HEADERS.values())
    )
    nvrtc.nvrtcCreateProgram(
        ctypes.byref(program), source.encode(), b"kernel.cu", len(_HEADERS), headers, names
    )
    try:
        words = [f"--gpu-architecture=compute_{arch.removeprefix('sm_')}".encode()]
        options = (ctypes.c_char_p * len(words))(*words)
        if nvrtc.nvrtcCompileProgram(program, len(words), options) != _SUCCESS:
            log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            errors = [line for line in log.splitlines() if "error" in line]
            raise CompileError(f"{arch}: {(errors or [log.strip()])[0]}")
        return _text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(size_of: Any, get: Any, program: ctypes.c_void_p) -> str:
    size = ctypes.c_size_t()
    size_of(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    get(program, text)
    return text.value.decode()


def _library() -> str | None:
    """NVRTC's file: that of the Python package, else the system's."""
    try:
        spec = importlib.util.find_spec("nvidia.cuda_nvrtc")
    except ModuleNotFoundError:  # nothing of NVIDIA's is installed
        spec = None
    for folder in spec.submodule_search_locations or () if spec else ():
        for file in sorted(Path(folder).glob("lib/libnvrtc.so*")):
            return str(file)
    return ctypes.util.find_library("nvrtc")
