"""Lab 3: one function for other machines.

TVM's compiler runs on this machine; its output need not. A target names the machine:

    {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72", "mattr": ["+crc"]}

    mtriple   architecture, system and ABI (its calling convention); default: this machine's
    mcpu      the processor, which decides the instructions that LLVM may use; default: the
              architecture's oldest
    mattr     features to add (+) or remove (-): sets of instructions, and preferences of LLVM

    library = tvm.compile(module, target=tvm.target.Target(target))
    library.mod.write_to_file("x.o", "o")   the object file; inspect_source("asm") is its assembly
    tvm.target.codegen.llvm_cpu_has_features("avx", tvm.target.Target(target))
                                            whether mtriple, mcpu and mattr together have it
    tvm.target.codegen.llvm_get_system_triple()
                                            this machine's triple
    tvm.target.Target({"kind": "cuda", "arch": "sm_90"}, host="llvm")
                                            for a GPU. The host is the processor that launches the
                                            kernels: library.mod is its module, and the list
                                            library.mod.imports has the GPU's, whose CUDA source
                                            is inspect_source(), without an argument

The result is an object file: machine code that a linker joins with others into a program. It needs
neither Python nor TVM's runtime: a C program can call it by TVM's calling convention:

    int __tvm_ffi_main(void* self, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result);

`self` is NULL here, and `result` points to a TVMFFIAny of the caller's. A TVMFFIAny is 16 bytes: a
type_index, a value, and zeros. Without a value, as in `result` before the call, the index is
kTVMFFINone. For a tensor it is kTVMFFIDLTensorPtr, and the value, v_ptr, points to a DLTensor, the
struct by which libraries describe a tensor to each other:

    data, ndim       a pointer to the elements; the number of dimensions
    device, dtype    {kDLCPU, 0}; {kDLFloat, 32, 1} for float32
    shape, strides   pointers to ndim values of int64_t; strides are in elements

The function checks all of them and returns 0, or reports an error and returns -1. The functions it
calls come from TVM's runtime; a program without the runtime defines its own:

    void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count);
        reports an error: its kind, and the parts of one message, any of which may be NULL
    void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t bytes, int, int);
    int (*__TVMBackendFreeWorkspace)(int, int, void* memory);
        memory for buffers between stages, aligned to 64 bytes; the second one returns 0. In the
        object these are null pointers, and weak: a definition of the same name elsewhere replaces
        them. The runtime sets them when it loads a library; a program defines its own.

The worked example is phase 2's register block, compiled for this machine, and its innermost loop.
Write the functions below it, then run

    python -m tvm_practice.labs.cross_compile
    pytest -m lab3

zig, a Python package, links the programs; qemu-user and Node run them. If one of these is missing,
the run names it and says how to install it.
"""

from collections.abc import Sequence
from typing import Any

from tvm_practice.course.phase import phase_command

MACHINES = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "wasm32")
TILE = (4, 16)  # rows and columns of C that accumulate in registers


def blocked_matmul(size: int) -> Any:
    """Worked example: the function for all machines, phase 2's register block of 4 by 16.

    Its innermost loop, over k, adds the product of 4 values of A and 16 of B to 64 sums. The 16
    columns are one vector in the IR; the machine decides how many registers it fills.

    Args:
        size: rows and columns of A, B and C.

    Returns:
        A tvm.IRModule with main(A, B, C), float32, on one thread.
    """
    import tvm
    from tvm import te

    from tvm_practice.course.stack import earlier

    register_block = earlier("manual_schedule.register_block")
    matmul = earlier("te_basics.matmul")
    function = te.create_prim_func(matmul(size, size, size)).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    register_block(schedule, schedule.get_sblock("C"), *TILE, 1)
    return schedule.mod


def threaded_matmul(size: int) -> Any:
    """Worked example: the same product for a GPU, in thread blocks of 16x16, a thread per element.

    Args:
        size: rows and columns, a multiple of 16.

    Returns:
        A tvm.IRModule with main(A, B, C), float32.
    """
    import tvm
    from tvm import te

    from tvm_practice.course.stack import earlier

    matmul = earlier("te_basics.matmul")
    function = te.create_prim_func(matmul(size, size, size)).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    i, j, k = schedule.get_loops(schedule.get_sblock("C"))
    i_outer, i_inner = schedule.split(i, [None, 16])
    j_outer, j_inner = schedule.split(j, [None, 16])
    schedule.reorder(i_outer, j_outer, i_inner, j_inner, k)
    names = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    for loop, name in zip((i_outer, j_outer, i_inner, j_inner), names, strict=True):
        schedule.bind(loop, name)
    return schedule.mod


def target_for(machine: str) -> dict[str, Any]:
    """Name a machine to TVM.

    | machine | triple | processor | besides |
    |---|---|---|---|
    | x86-64-v2 | x86_64-linux-gnu | x86-64-v2 | |
    | x86-64-v3 | x86_64-linux-gnu | x86-64-v3 | |
    | x86-64-v4 | x86_64-linux-gnu | x86-64-v4 | without prefer-256-bit, which halves vectors |
    | aarch64 | aarch64-linux-gnu | cortex-a72 | |
    | wasm32 | wasm32-unknown-wasi | | with simd128, or it has no vectors |

    Args:
        machine: one of MACHINES.

    Returns:
        The target as a new dictionary: kind, mtriple, and mcpu and mattr where the table has them.

    Raises:
        ValueError: another machine; the message names it.
    """
    raise NotImplementedError("kind, mtriple, mcpu, mattr of each of the five")


def describe_target(target: dict[str, Any]) -> dict[str, Any]:
    """Describe the vectors of float32 that LLVM may use on a target's processor.

    They depend on mtriple, mcpu and mattr together, so ask LLVM, feature by feature:

    | architecture | vector | fma |
    |---|---|---|
    | x86_64 | 512 with avx512f, else 256 with avx, else 128 | with fma |
    | aarch64 | 128 | always |
    | wasm32 | 128 with simd128, else 32: one value | with relaxed-simd |

    Args:
        target: as `target_for` gives it; without mtriple, for this machine's architecture.

    Returns:
        {"architecture": the triple's first word, "vector_bits": bits per register, "fma": whether
        one instruction multiplies and adds}.
    """
    raise NotImplementedError("tvm.target.codegen.llvm_cpu_has_features of each feature")


def compile_object(module: Any, target: dict[str, Any], path: str) -> str:
    """Compile a function for a machine, which need not be this one.

    Args:
        module: a tvm.IRModule.
        target: as `target_for` gives it.
        path: the object file to write.

    Returns:
        Its assembly, as text.
    """
    raise NotImplementedError("tvm.compile, then write_to_file and inspect_source of its mod")


def vector_arithmetic(loop: list[str]) -> dict[str, int]:
    """Count the instructions of a loop that compute with vectors of float32.

    | | mul | add | fma |
    |---|---|---|---|
    | x86, `%xmm0`, `%ymm0`, `%zmm0` | mulps, vmulps | addps, vaddps | vfmadd132ps, 213, 231 |
    | aarch64, `v0.4s` | fmul | fadd | fmla |
    | wasm32 | f32x4.mul | f32x4.add | f32x4.relaxed_madd |

    Nothing else counts: on x86, ss means one float and pd means doubles; on aarch64 the first
    operand tells a vector of float32 (`v0.4s`) from a float (`s0`) and from doubles (`v0.2d`).

    Args:
        loop: its instructions, such as `vaddps (%rax), %ymm1, %ymm0`. x86 operands are in AT&T
            order, the destination register last; a mask in braces may follow it.

    Returns:
        Counts by operation and register: {"fma zmm": 4}, {"mul xmm": 16, "add xmm": 16}; the
        registers are xmm, ymm, zmm, v for aarch64, v128 for wasm32.
    """
    raise NotImplementedError("regular expressions on the instruction and its registers")


def c_harness(name: str, shapes: Sequence[Sequence[int]]) -> str:
    """Write the C program that calls a compiled function.

    The program reads the float32 values of all tensors but the last from standard input, in order
    and without anything between them, calls the function on all tensors, and writes the values of
    the last, the output, to standard output. Its exit code is 0 if the function returned 0, else 1;
    then standard error has the function's message, and standard output has nothing.

    Headers: <tvm/ffi/c_api.h> declares TVMFFIAny and DLTensor, <stdlib.h> aligned_alloc, whose size
    is a multiple of the alignment. The function demands data that is aligned to 64 bytes:
    _Alignas(64) before an array does that. Make the arrays static: large ones do not fit a stack.

    Args:
        name: the PrimFunc's name; its symbol is __tvm_ffi_ followed by the name.
        shapes: the shapes of its tensors, any number of them, each of at least one dimension.

    Returns:
        The C source: `main`, and the three names of the module's docstring.
    """
    raise NotImplementedError("a DLTensor for each shape, TVMFFIAny arguments, the call")


def cuda_source(module: Any, arch: str) -> str:
    """Generate the CUDA source of a scheduled function; this needs no GPU.

    The target is {"kind": "cuda", "arch": arch} with "llvm" as its host. Compilation gives two
    modules: the host's, which launches the kernel, and the device's, among the host's imports.

    Args:
        module: a tvm.IRModule whose loops are bound to blockIdx and threadIdx.
        arch: such as `sm_90`.

    Returns:
        The device's source.
    """
    raise NotImplementedError("tvm.compile, then inspect_source of the host module's import")


main = phase_command("labs.cross_compile", "Lab 3: one function for other machines.")

if __name__ == "__main__":
    main()
