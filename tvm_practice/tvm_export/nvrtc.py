"""CUDA text compiled by NVRTC, for classic TVM, whose own callback knows nvcc alone."""

from collections.abc import Sequence
from typing import Any


def compile_text(source: str, arch: str, *, options: Sequence[str], form: str) -> bytes:
    """Machine code of a CUDA text.

    Args:
        source: CUDA C++.
        arch: "sm_80" and the like.
        options: NVRTC's, such as -I with a folder of headers.
        form: "cubin", or "ptx", which later architectures of the family run too.

    Raises RuntimeError with the compiler's messages, one per line.
    """
    from cuda.bindings import nvrtc

    def checked(answer: tuple[Any, ...]) -> Any:
        status, *rest = answer
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            raise RuntimeError(str(status))
        return rest[0] if rest else None

    program = checked(nvrtc.nvrtcCreateProgram(source.encode(), b"kernels.cu", 0, [], []))
    given = [f"--gpu-architecture={arch}".encode(), *(each.encode() for each in options)]
    try:
        [status] = nvrtc.nvrtcCompileProgram(program, len(given), given)
        if status != nvrtc.nvrtcResult.NVRTC_SUCCESS:
            log = bytearray(checked(nvrtc.nvrtcGetProgramLogSize(program)))
            checked(nvrtc.nvrtcGetProgramLog(program, log))
            raise RuntimeError(log.rstrip(b"\0").decode())
        size, content = {
            "cubin": (nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN),
            "ptx": (nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX),
        }[form]
        made = bytearray(checked(size(program)))
        checked(content(program, made))
        return bytes(made)
    finally:
        nvrtc.nvrtcDestroyProgram(program)
