"""Reference answers of lab 3."""

from collections.abc import Sequence
from typing import Any


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
    targets: dict[str, dict[str, Any]] = {
        "x86-64-v2": {"mtriple": "x86_64-linux-gnu", "mcpu": "x86-64-v2"},
        "x86-64-v3": {"mtriple": "x86_64-linux-gnu", "mcpu": "x86-64-v3"},
        "x86-64-v4": {
            "mtriple": "x86_64-linux-gnu",
            "mcpu": "x86-64-v4",
            "mattr": ["-prefer-256-bit"],  # else LLVM stays at 256 bits
        },
        "aarch64": {"mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"},
        "wasm32": {"mtriple": "wasm32-unknown-wasi", "mattr": ["+simd128"]},
    }
    if machine not in targets:
        raise ValueError(f"no machine {machine!r}, only {', '.join(targets)}")
    return {"kind": "llvm", **targets[machine]}


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
    import tvm
    from tvm.target import codegen

    resolved = tvm.target.Target(target)

    def has(feature: str) -> bool:
        return bool(codegen.llvm_cpu_has_features(feature, resolved))

    triple = target.get("mtriple") or str(codegen.llvm_get_system_triple())
    architecture = triple.partition("-")[0]
    if architecture == "x86_64":
        bits = 512 if has("avx512f") else 256 if has("avx") else 128
        fma = has("fma")
    elif architecture == "wasm32":
        bits = 128 if has("simd128") else 32
        fma = has("relaxed-simd")
    else:
        bits, fma = 128, True
    return {"architecture": architecture, "vector_bits": bits, "fma": fma}


def compile_object(module: Any, target: dict[str, Any], path: str) -> str:
    """Compile a function for a machine, which need not be this one.

    Args:
        module: a tvm.IRModule.
        target: as `target_for` gives it.
        path: the object file to write.

    Returns:
        Its assembly, as text.
    """
    import tvm

    library = tvm.compile(module, target=tvm.target.Target(target))
    library.mod.write_to_file(path, "o")
    return str(library.mod.inspect_source("asm"))


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
    import re

    counts: dict[str, int] = {}
    for instruction in loop:
        operation, _, operands = instruction.partition(" ")
        if found := re.fullmatch(r"v?(mul|add)ps|v(fma)dd\d+ps", operation):
            what = found[1] or found[2]
            registers = re.findall(r"%([xyz]mm)", operands)[-1]
        elif (found := re.fullmatch(r"f(mul|add|mla)", operation)) and re.match(
            r"v\d+\.4s\b", operands
        ):
            what, registers = found[1].replace("mla", "fma"), "v"
        elif found := re.fullmatch(r"f32x4\.(mul|add|relaxed_madd)", operation):
            what, registers = found[1].replace("relaxed_madd", "fma"), "v128"
        else:
            continue
        key = f"{what} {registers}"
        counts[key] = counts.get(key, 0) + 1
    return counts


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
    import math

    lines = [
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <tvm/ffi/c_api.h>",
        "",
        f"int __tvm_ffi_{name}(void*, const TVMFFIAny*, int32_t, TVMFFIAny*);",
        "",
        "void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t n) {",
        '  fprintf(stderr, "%s: ", kind);',
        '  for (int i = 0; i < n; ++i) fprintf(stderr, "%s", parts[i] ? parts[i] : "");',
        '  fprintf(stderr, "\\n");',
        "}",
        "",
        "static void* allocate(int device, int id, uint64_t bytes, int code, int bits) {",
        "  return aligned_alloc(64, (bytes + 63) / 64 * 64);",
        "}",
        "static int release(int device, int id, void* memory) { free(memory); return 0; }",
        "void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t, int, int) = allocate;",
        "int (*__TVMBackendFreeWorkspace)(int, int, void*) = release;",
        "",
    ]
    count = len(shapes)
    for index, shape in enumerate(shapes):
        strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        lines += [
            f"static _Alignas(64) float data_{index}[{math.prod(shape)}];",
            f"static int64_t shape_{index}[] = {{{', '.join(map(str, shape))}}};",
            f"static int64_t strides_{index}[] = {{{', '.join(map(str, strides))}}};",
            f"static DLTensor tensor_{index} = {{.data = data_{index}, .device = {{kDLCPU, 0}},",
            f"    .ndim = {len(shape)}, .dtype = {{kDLFloat, 32, 1}},",
            f"    .shape = shape_{index}, .strides = strides_{index}}};",
        ]
    lines += ["", "int main(void) {"]
    lines += [
        f"  if (fread(data_{index}, sizeof data_{index}, 1, stdin) != 1) return 1;"
        for index in range(count - 1)
    ]
    lines += [
        f"  TVMFFIAny arguments[{count}] = {{0}};",
        *(
            f"  arguments[{index}].type_index = kTVMFFIDLTensorPtr;\n"
            f"  arguments[{index}].v_ptr = &tensor_{index};"
            for index in range(count)
        ),
        "  TVMFFIAny result = {.type_index = kTVMFFINone};",
        f"  if (__tvm_ffi_{name}(NULL, arguments, {count}, &result) != 0) return 1;",
        f"  fwrite(data_{count - 1}, sizeof data_{count - 1}, 1, stdout);",
        "  return 0;",
        "}",
    ]
    return "\n".join(lines) + "\n"


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
    import tvm

    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="llvm")
    [device] = tvm.compile(module, target=target).mod.imports
    return str(device.inspect_source())
