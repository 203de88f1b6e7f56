"""The CUDA text of a schedule, and what a compiler makes of it: no GPU is needed for either.

text = cuda_source(schedule.mod, "sm_80")
if compiler() is not None:
    resources(text, "sm_80").registers
"""

import functools
import os
import re
import shutil
import struct
import subprocess
from dataclasses import dataclass
from typing import Any, Literal
from unittest import mock

from tvm_practice.tvm_export import nvrtc

NO_COMPILER = (
    "no CUDA compiler: install NVRTC by `pip install 'tvm-practice[gpu]'`, or NVIDIA's CUDA "
    "toolkit, which has nvcc"
)
KEEP_SOURCE = "TVM_COMPILE_FORCE_FALLBACK"  # TVM's switch: kernels are not compiled
_COMPILE = "tvm_callback_cuda_compile"  # the function that TVM calls with a kernel's text
# TVM has nvcc make approximate functions and quotients, and 0 of the smallest numbers; with its
# switch, values are as near as PyTorch's. NVRTC is told nothing of it.
_EXACT = {"TVM_CUDA_NVCC_NO_FAST_MATH": "1"}
# What current TVM's texts take from the host's headers, which NVRTC does without.
_FOR_NVRTC = """\
#include <cuda/std/cstdint>
#include <cuda/std/limits>
using cuda::std::int8_t, cuda::std::int16_t, cuda::std::int32_t, cuda::std::int64_t;
using cuda::std::uint8_t, cuda::std::uint16_t, cuda::std::uint32_t, cuda::std::uint64_t;
#ifndef INFINITY
#define INFINITY (cuda::std::numeric_limits<float>::infinity())
#endif
"""
_OF_THE_HOST = "#include <cuda.h>"
_KERNEL = 'extern "C" __global__'
# Of the section .nv.info of a cubin: what its entries are about, and how long one is.
_REGISTERS, _STACK = 0x2F, 0x11
_ENTRY = struct.Struct("<BBHII")  # form, attribute, length, symbol, value
_WITH_VALUE = 4  # the form of those two
_RESERVED = 1024  # bytes of shared memory that are counted in from sm_90 on: the driver's own


class CudaCompilerError(RuntimeError):
    """The compiler is missing, or refuses the text; one line."""


@dataclass(frozen=True)
class Resources:
    """What a compiled kernel takes.

    Attributes:
        arch: that it was compiled for.
        registers: of a thread.
        shared_bytes: of a block.
        stack_bytes: of a thread, in memory: arrays and registers that found no place.
    """

    arch: str
    registers: int
    shared_bytes: int
    stack_bytes: int


def why_no_text() -> str | None:
    """One line saying why TVM cannot write CUDA here; None if it can."""
    import tvm

    if tvm.get_global_func("target.build.cuda", allow_missing=True) is None:
        return "this platform's TVM has no CUDA code generator"
    return None


def cuda_source(mod: Any, arch: str) -> str:
    """The CUDA text of an IRModule (or PrimFunc) whose loops are bound; current engine.

    Args:
        arch: "sm_80" and the like. Nothing is compiled but TVM's own lowering.
    """
    import tvm

    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="llvm")
    with mock.patch.dict(os.environ, {KEEP_SOURCE: "1"}):
        built = tvm.compile(mod, target=target)
    return str(built.mod.imports[0].inspect_source())


def kernel_of(source: str) -> str:
    """The kernel alone, without what TVM puts before it: definitions, and its own prototype."""
    return source[source.rindex(_KERNEL) :].strip()


@functools.cache
def compiler() -> Literal["nvrtc", "nvcc"] | None:
    """Which CUDA compiler is here: NVRTC with its headers, or nvcc on the path."""
    if nvrtc.found() is not None:
        return "nvrtc"
    return "nvcc" if shutil.which("nvcc") else None


def compiles_for(arch: str) -> bool:
    """Whether the compiler that is here knows an architecture: CUDA 13 has none before sm_75."""
    if compiler() is None:
        return False
    library = nvrtc.found()
    known = library.architectures if library is not None else _known_to_nvcc()
    return arch.rstrip("af") in known


@functools.cache
def _known_to_nvcc() -> frozenset[str]:
    listed = subprocess.run(["nvcc", "--list-gpu-code"], capture_output=True, text=True)
    return frozenset(listed.stdout.split())


def use_for_kernels(arch: str) -> None:
    """Have TVM load its kernels as the compiler that is here makes them, for one architecture."""

    def compile_kernels(code: str, *_: Any) -> bytes:
        return compiled(str(code), arch)

    if _is_classic():
        import tvm

        tvm.register_func(_COMPILE, compile_kernels, override=True)
    else:
        import tvm_ffi

        tvm_ffi.register_global_func(_COMPILE, compile_kernels, override=True)


def _is_classic() -> bool:
    """Whether this process's TVM is the classic one; a tuner's worker has no active engine."""
    import tvm

    return hasattr(tvm, "relay")


def compiled(source: str, arch: str, *, form: Literal["cubin", "ptx"] = "cubin") -> bytes:
    """Compile a CUDA text of the process's TVM for one architecture.

    Raises:
        CudaCompilerError: there is no compiler, or it refuses: its first error.
    """
    found = compiler()
    if found is None:
        raise CudaCompilerError(NO_COMPILER)
    library = nvrtc.found()
    try:
        if found == "nvrtc" and library is not None:
            return library.compile_text(_for_nvrtc(source), arch, form=form)
        return _compiled_by_nvcc(source, arch, form)
    except RuntimeError as error:
        lines = str(error).strip().splitlines()
        said = [line for line in lines if re.search(r"\b(error|fatal)\b", line, re.IGNORECASE)]
        raise CudaCompilerError(f"{found}, {arch}: {(said or lines)[-1].strip()}") from error


def _for_nvrtc(source: str) -> str:
    if _is_classic():
        return source
    kept = [line for line in source.splitlines() if line.strip() != _OF_THE_HOST]
    return _FOR_NVRTC + "\n".join(kept)


def _compiled_by_nvcc(source: str, arch: str, form: str) -> bytes:
    import tvm

    if _is_classic():
        from tvm.contrib import nvcc

        return bytes(nvcc.compile_cuda(source, target_format=form, arch=arch))
    from tvm.support import nvcc

    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="llvm")
    with target, mock.patch.dict(os.environ, _EXACT):
        made = nvcc.compile_cuda(source, target_format=form, arch=arch, compiler="nvcc")
    return bytes(made)


def resources(source: str, arch: str) -> Resources:
    """Registers and shared memory of the kernel in a text, as the compiler gives them.

    Raises:
        CudaCompilerError: as `compiled`.
    """
    registers = shared = stack = 0
    for name, content in _sections(compiled(source, arch)):
        if name == ".nv.info":
            found = {each[1]: each[4] for each in _ENTRY.iter_unpack(content) if _has_value(each)}
            registers, stack = found.get(_REGISTERS, 0), found.get(_STACK, 0)
        elif name.startswith(".nv.shared.") and not name.startswith(".nv.shared.reserved"):
            shared = len(content) - (_RESERVED if _generation(arch) >= 90 else 0)
    return Resources(arch, registers, shared, stack)


def _has_value(entry: tuple[int, ...]) -> bool:
    return entry[0] == _WITH_VALUE and entry[2] == _ENTRY.size - 4


def _generation(arch: str) -> int:
    """90 of sm_90a."""
    return int("".join(filter(str.isdigit, arch)))


def _sections(elf: bytes) -> list[tuple[str, bytes]]:
    """Names and contents of the sections of a 64-bit ELF file, which a cubin is.

    What takes no space in the file (shared memory) is zeros.
    """
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names_at = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQII", elf, table + size * n) for n in range(count)]
    names = headers[names_at][4]

    def name(offset: int) -> str:
        begin = names + offset
        return elf[begin : elf.index(b"\0", begin)].decode()

    without_content = 8  # SHT_NOBITS
    return [
        (
            name(header[0]),
            bytes(header[5])
            if header[1] == without_content
            else elf[header[4] : header[4] + header[5]],
        )
        for header in headers
    ]
