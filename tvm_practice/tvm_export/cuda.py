"""The CUDA text of a schedule, and what a compiler makes of it: no GPU is needed for either.

text = cuda_source(schedule.mod, "sm_80")
if compiler() is not None:
    resources(text, "sm_80").registers
"""

import functools
import importlib.util
import os
import re
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from unittest import mock

NO_COMPILER = (
    "no CUDA compiler: install NVRTC by `pip install 'tvm-practice[gpu]'`, or NVIDIA's CUDA "
    "toolkit, which has nvcc"
)
KEEP_SOURCE = "TVM_COMPILE_FORCE_FALLBACK"  # TVM's switch: kernels are not compiled
_COMPILE = "tvm_callback_cuda_compile"  # the function that TVM calls with a kernel's text
# What NVRTC needs, of the extra `gpu`: itself, its headers, and what calls it.
_NVRTC = "nvidia.cuda_nvrtc"
_HEADERS = ("nvidia.cuda_runtime", "nvidia.cuda_cccl", "nvidia.cuda_nvcc")
_BINDINGS = "cuda.bindings.nvrtc"
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
    """Which CUDA compiler is here: NVRTC of the extra `gpu`, or nvcc on the path."""
    if all(_folder(each) for each in (_NVRTC, _BINDINGS, *_HEADERS)):
        return "nvrtc"
    return "nvcc" if shutil.which("nvcc") else None


def _folder(module: str) -> Path | None:
    """Where a module is, or the file that it is; None if it is not installed."""
    try:
        spec = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        return None
    if spec is None:
        return None
    places = [*(spec.submodule_search_locations or ()), spec.origin]
    return Path(str(places[0]))


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
    headers = [folder for each in _HEADERS if (folder := _folder(each))]
    options = [f"-I{folder / 'include'}" for folder in headers] if found == "nvrtc" else []
    compile_text = _compiled_for_classic if _is_classic() else _compiled_by_tvm
    try:
        return compile_text(source, arch, found, options, form, headers)
    except RuntimeError as error:
        lines = str(error).strip().splitlines()
        said = [line for line in lines if re.search(r"\b(error|fatal)\b", line, re.IGNORECASE)]
        raise CudaCompilerError(f"{found}, {arch}: {(said or lines)[-1].strip()}") from error


def _compiled_by_tvm(
    source: str, arch: str, found: str, options: list[str], form: str, headers: list[Path]
) -> bytes:
    import tvm
    from tvm.support import nvcc

    where = {"CUDA_PATH": str(headers[0])} if found == "nvrtc" else {}
    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="llvm")
    with target, mock.patch.dict(os.environ, where):
        made = nvcc.compile_cuda(
            source, target_format=form, arch=arch, options=options, compiler=found
        )
    return bytes(made)


def _compiled_for_classic(
    source: str, arch: str, found: str, options: list[str], form: str, _: list[Path]
) -> bytes:
    from tvm.contrib import nvcc

    from tvm_practice.tvm_export.nvrtc import compile_text

    if found == "nvrtc":
        return compile_text(source, arch, options=options, form=form)
    return bytes(nvcc.compile_cuda(source, target_format=form, arch=arch, options=options))


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
