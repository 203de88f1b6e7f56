"""Lab 3: one function for other machines.

TVM's compiler runs on this machine; what it compiles need not. A target names the machine:

    {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72", "mattr": ["+crc"]}

    mtriple   architecture, system and ABI; this machine's if it is left out
    mcpu      the processor, and with it the instructions that LLVM may use; the oldest of the
              architecture if it is left out
    mattr     instructions more (+) or fewer (-) than that processor has

What comes out is an object file. It needs neither Python nor TVM's runtime: a C program can call
it, by the convention that TVM calls every function with:

    int __tvm_ffi_main(void* self, const TVMFFIAny* arguments, int32_t count, TVMFFIAny* result);

A TVMFFIAny is 16 bytes: a type_index, and a value. For a tensor the index is kTVMFFIDLTensorPtr and
the value a pointer to a DLTensor: data, device, type, shape and strides. The function checks all of
them and returns 0, or -1 after it has said what is wrong. What it calls itself is of TVM's runtime;
a program without the runtime brings its own:

    void TVMFFIErrorSetRaisedFromCStrParts(const char* kind, const char** parts, int32_t count);
        what is wrong: parts of one message, any of them NULL
    void* (*__TVMBackendAllocWorkspace)(int, int, uint64_t bytes, int, int);
    int (*__TVMBackendFreeWorkspace)(int, int, void* memory);
        memory for buffers between stages, aligned to 64 bytes. They are pointers, weak and null in
        the object: the runtime sets them when it loads a library, a program defines its own.

The worked example is phase 2's register block, compiled for this machine, and its innermost loop.
Write the functions below it, then run

    python -m tvm_practice.labs.cross_compile
    pytest -m lab3

The programs are linked by zig, which is a Python package, and run by qemu-user and Node; where one
of them is missing the run says so and how to get it.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.phase import phase_command
from tvm_practice.tvm_export.errors import Missing

if TYPE_CHECKING:
    from tvm_practice.course import Steps

MACHINES = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64", "wasm32")
# Two that this machine may have, and what stands in for a phone and a browser.
_BESIDE = (("x86-64-v3", "aarch64"), ("x86-64-v4", "wasm32"))
_ARCHS = ("sm_75", "sm_80", "sm_90", "sm_100")
_ROWS, _COLUMNS = 4, 16
_PROGRAM = "matmul"
_MOST_LINES = 28  # of a loop, side by side with another's


def blocked_matmul(size: int) -> Any:
    """Worked: the function that all machines get, phase 2's register block of 4 rows, 16 columns.

    Its innermost loop, over k, adds the product of 4 values of A and 16 of B to 64 sums. The 16
    columns are a vector in the IR: how many registers that is, is the machine's.

    Args:
        size: rows and columns of A, B and C.

    Returns:
        A tvm.IRModule with main(A, B, C), float32, on one thread.
    """
    import tvm
    from tvm import te

    from solutions.manual_schedule import register_block
    from solutions.te_basics import matmul

    function = te.create_prim_func(matmul(size, size, size)).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    register_block(schedule, schedule.get_sblock("C"), _ROWS, _COLUMNS, 1)
    return schedule.mod


def threaded_matmul(size: int) -> Any:
    """Worked: the same product for a GPU, a thread for each element of C, 16x16 threads a block.

    Args:
        size: rows and columns, a multiple of 16.

    Returns:
        A tvm.IRModule with main(A, B, C), float32.
    """
    import tvm
    from tvm import te

    from solutions.te_basics import matmul

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
    | x86-64-v4 | x86_64-linux-gnu | x86-64-v4 | without prefer-256-bit, which halves registers |
    | aarch64 | aarch64-linux-gnu | cortex-a72 | |
    | wasm32 | wasm32-unknown-wasi | | with simd128, or it has no vectors |

    Args:
        machine: one of MACHINES.

    Returns:
        The target as a dictionary: kind, mtriple, and mcpu and mattr where the table has them.

    Raises:
        ValueError: another machine; the message names it.
    """
    raise NotImplementedError("kind, mtriple, mcpu, mattr of each of the five")


def describe_target(target: dict[str, Any]) -> dict[str, Any]:
    """Say what LLVM may use of a target's processor for float32.

    It follows from mtriple, mcpu and mattr together, and so LLVM is asked, feature by feature:

    | architecture | vector | fma |
    |---|---|---|
    | x86_64 | 512 with avx512f, else 256 with avx, else 128 | with fma |
    | aarch64 | 128 | always |
    | wasm32 | 128 with simd128, else 32: one value | with relaxed-simd |

    Args:
        target: as `target_for` gives it; without mtriple it is of this machine's architecture.

    Returns:
        {"architecture": the triple's first word, "vector_bits": of a register, "fma": whether one
        instruction multiplies and adds}.
    """
    raise NotImplementedError("tvm.target.codegen.llvm_cpu_has_features of each feature")


def compile_object(module: Any, target: dict[str, Any], path: str) -> str:
    """Compile a function for a machine, which need not be this one.

    Args:
        module: a tvm.IRModule.
        target: as `target_for` gives it.
        path: of the object file to write.

    Returns:
        The assembly of the same, as text.
    """
    raise NotImplementedError("tvm.compile, then write_to_file and inspect_source of its mod")


def vector_arithmetic(loop: list[str]) -> dict[str, int]:
    """Count the instructions of a loop that compute with vectors of float32.

    | | mul | add | fma |
    |---|---|---|---|
    | x86, `%xmm0`, `%ymm0`, `%zmm0` | mulps, vmulps | addps, vaddps | vfmadd132ps, 213, 231 |
    | aarch64, `v0.4s` | fmul | fadd | fmla |
    | wasm32 | f32x4.mul | f32x4.add | f32x4.relaxed_madd |

    Nothing else counts: on x86 ss is a single float and pd are doubles; on aarch64 the first
    operand tells a vector of float32 (`v0.4s`) from a float (`s0`) and from doubles (`v0.2d`).

    Args:
        loop: its instructions, `vaddps (%rax), %ymm1, %ymm0` say: x86's operands are in AT&T's
            order, the last is the register that is written.

    Returns:
        Counts by what is done and in which registers: {"fma zmm": 4}, {"mul xmm": 16, "add xmm":
        16}; the registers are xmm, ymm, zmm, v for aarch64, v128 for wasm32.
    """
    raise NotImplementedError("regular expressions on the instruction and its registers")


def c_harness(name: str, shapes: Sequence[Sequence[int]]) -> str:
    """Write the C program that calls a compiled function.

    The program reads the float32 values of all tensors but the last from standard input, in order
    and without anything between them, calls the function on all tensors, and writes the values of
    the last, the output, to standard output. Its exit code is 0 if the function's was, else 1,
    and then standard error has the function's message. Headers: <tvm/ffi/c_api.h> declares
    TVMFFIAny and DLTensor, <stdlib.h> aligned_alloc, which takes multiples of the alignment. Data
    is aligned to 64 bytes, as the function demands, by _Alignas(64).

    Args:
        name: of the PrimFunc; its symbol is __tvm_ffi_ and the name.
        shapes: of its tensors, of any number of dimensions from one.

    Returns:
        The C source: `main`, and the three names of the module's docstring.
    """
    raise NotImplementedError("a DLTensor for each shape, TVMFFIAny arguments, the call")


def cuda_source(module: Any, arch: str) -> str:
    """Generate CUDA source of a scheduled function, which needs no GPU.

    The target is {"kind": "cuda", "arch": arch} with "llvm" as its host. What is compiled is two
    modules: the host's, which launches the kernel, and, among its imports, the device's.

    Args:
        module: a tvm.IRModule whose loops are bound to blockIdx and threadIdx.
        arch: `sm_90`, say.

    Returns:
        The device's source.
    """
    raise NotImplementedError("tvm.compile, then inspect_source of the host module's import")


def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """Compile one function for every machine, read it, run it, and then a whole model."""
    lab = _Lab(steps, 64 if quick else 256)
    lab.show_here()
    lab.show_targets()
    machines = lab.compile_all()
    lab.run_all(machines)
    figures = {
        "size": lab.size,
        "machines": machines,
        "time": lab.time_here(seconds=2 if quick else 6),
        "cuda": lab.show_cuda(),
    }
    if "target_for" not in steps.todo:
        target = lab.targets["aarch64"]
        text = f"llvm -mtriple={target['mtriple']} -mcpu={target['mcpu']}"
        loader = "load_mlp" if quick else "load_resnet18"
        figures["model"] = _whole_model(steps.folder, loader, text)
    return figures


class _Lab:
    """The function on its way to every machine; what is to do is done by the reference."""

    def __init__(self, steps: "Steps", size: int):
        self.steps = steps
        self.size = size
        self.module = blocked_matmul(size)
        self.targets: dict[str, dict[str, Any]] = {}

    def ask(self, name: str, *arguments: Any) -> tuple[Any, bool]:
        """What a step gives, and True; what the reference does where it is to do, and False."""
        from solutions.labs import cross_compile as reference
        from tvm_practice.tvm_export.quiet import native_stderr_to

        right = getattr(reference, name)
        with native_stderr_to(os.devnull):  # TVM warns of wasm32's vectors, which are 128 bits wide
            given = self.steps.attempt(name, *arguments)
        if name not in self.steps.todo and name not in self.steps.failed:
            wanted = dict if "dict" in str(right.__annotations__["return"]) else str
            if isinstance(given, wanted):
                return given, True
            self._fail(name, f"it returned {type(given).__name__}, not {wanted.__name__}")
        with native_stderr_to(os.devnull):
            return right(*arguments), False

    def _fail(self, name: str, reason: str) -> None:
        self.steps.failed[name] = reason
        _say(f"fails  {name}: {reason}")

    def show_here(self) -> None:
        """Worked: the loops, this machine's innermost loop, and the values."""
        import numpy as np
        import tvm

        from tvm_practice.engines import host_target
        from tvm_practice.viz.assembly import innermost_loop
        from tvm_practice.viz.loop_nest import loop_nest, print_nest

        size = self.size
        print(f"\nWorked example: a matmul of {size}x{size}x{size} for this machine.")
        print_nest("the function", loop_nest(self.module["main"]))
        library = tvm.compile(self.module, target=host_target())
        loop = innermost_loop(library.mod.inspect_source("asm"))
        print("Its innermost loop, of which LLVM may have made several steps of k:")
        print("".join(f"    {_cut(each, 76)}\n" for each in loop), end="")
        a, b = self._inputs()
        c = tvm.runtime.tensor(np.zeros_like(a))
        library["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
        print(f"largest difference from numpy {np.abs(c.numpy() - a @ b).max():.1e}")

    def _inputs(self) -> Any:
        import numpy as np

        random = np.random.default_rng(0)
        return random.standard_normal((2, self.size, self.size), "float32")

    def show_targets(self) -> None:
        from rich.console import Console
        from rich.table import Table

        print("\nThe machines, and what LLVM may use of each.")
        table = Table("machine", "triple", "processor, features", "vector", "FMA")
        for machine in MACHINES:
            target, _ = self.ask("target_for", machine)
            self.targets[machine] = target
            described, mine = self.ask("describe_target", target)
            words = " ".join([target.get("mcpu", ""), *target.get("mattr", ())])
            found = [
                f"{described.get('vector_bits')} bits",
                "yes" if described.get("fma") else "no",
            ]
            shown = found if mine else ["to do"] * 2
            table.add_row(machine, target.get("mtriple", "-"), words, *shown)
        Console().print(table)

    def compile_all(self) -> dict[str, dict[str, Any]]:
        """The function for each machine: object and assembly files, the innermost loop counted."""
        from rich.console import Console
        from rich.table import Table

        from tvm_practice.viz.assembly import innermost_loop

        print("\nThe same function for each. 64 sums get a product at every step of k:")
        table = Table("machine", "object", "inner loop", "steps", "of it on vectors of float32")
        machines: dict[str, dict[str, Any]] = {}
        for machine, target in self.targets.items():
            object_file = self.steps.folder / f"{machine}.o"
            assembly, _ = self.ask("compile_object", self.module, target, str(object_file))
            (self.steps.folder / f"{machine}.s").write_text(assembly)
            try:
                loop = innermost_loop(assembly)
            except ValueError as error:
                self._fail("compile_object", f"for {machine}: {error}")
                loop = []
            counts, mine = self.ask("vector_arithmetic", loop)
            size = object_file.stat().st_size if object_file.exists() else 0
            machines[machine] = {"object_bytes": size, "loop": loop, "arithmetic": counts}
            arithmetic = ", ".join(f"{count} {what}" for what, count in counts.items())
            shown = [f"{_steps(counts):g}", arithmetic] if mine else ["to do"] * 2
            table.add_row(machine, f"{size} B", f"{len(loop)} instructions", *shown)
        Console().print(table)
        for one, other in _BESIDE:
            _print_beside(one, machines[one]["loop"], other, machines[other]["loop"])
        _say(f"all of it: {self.steps.folder}/*.s")
        return machines

    def run_all(self, machines: dict[str, dict[str, Any]]) -> None:
        """Link each object with the C program, and run it where something here can."""
        import numpy as np
        from rich.console import Console
        from rich.table import Table

        from tvm_practice.tvm_export import cross

        source, mine = self.ask("c_harness", "main", [(self.size, self.size)] * 3)
        if not mine:
            return
        file = self.steps.folder / f"{_PROGRAM}.c"
        file.write_text(source)
        print()
        _say(f"A C program calls it ({file}); it has no runtime of TVM's.")
        a, b = self._inputs()
        table = Table("machine", "program", "run by", "largest error")
        results: dict[bytes, list[str]] = {}
        for machine, target in self.targets.items():
            program = self.steps.folder / f"{_PROGRAM}-{machine}"
            triple = target["mtriple"]
            try:
                self._require_features(target)
                command = cross.launcher(triple)
                cross.link([file, self.steps.folder / f"{machine}.o"], triple, program)
                written = cross.run_program(program, triple, a.tobytes() + b.tobytes())
            except Missing as missing:
                machines[machine]["missing"] = str(missing)
                table.add_row(machine, "", f"- {missing}", "")
                continue
            except RuntimeError as failure:
                self._fail("c_harness", f"for {machine}: {failure}")
                continue
            results.setdefault(written, []).append(machine)
            c = np.frombuffer(written, "float32").reshape(a.shape)
            error = float(np.abs(c - a @ b).max())
            by = Path(command[0]).name if command else "itself"
            machines[machine] |= {"run_by": by, "max_error": error}
            table.add_row(machine, f"{program.stat().st_size / 1e3:.0f} kB", by, f"{error:.1e}")
        Console().print(table)
        if len(results) > 1:
            groups = "; ".join(" and ".join(each) for each in results.values())
            _say(f"the same bit for bit: {groups}; an FMA rounds once, a product and a sum twice")

    def _require_features(self, target: Mapping[str, Any]) -> None:
        """Raises Missing for a processor of this architecture that can more than this one."""
        import tvm

        from tvm_practice.tvm_export.targets import why_not_runnable

        reason = why_not_runnable(tvm.target.Target(dict(target)))
        if reason and not reason.startswith("code for"):
            raise Missing(reason)

    def time_here(self, *, seconds: float) -> dict[str, Any]:
        """The machines that this one is, in turns."""
        import functools

        import numpy as np
        import tvm
        from rich.console import Console
        from rich.table import Table

        from tvm_practice.measure import compare_interleaved
        from tvm_practice.tvm_export.targets import why_not_runnable

        a, b = map(tvm.runtime.tensor, self._inputs())
        runs = {}
        for machine, described in self.targets.items():
            target = tvm.target.Target(described)
            if why_not_runnable(target) is None:
                c = tvm.runtime.tensor(np.zeros(a.shape, "float32"))
                function = tvm.compile(self.module, target=target)["main"]
                runs[machine] = functools.partial(function, a, b, c)
        if len(runs) < 2:
            return {}
        first = next(iter(runs))
        print("\nThose that this machine can be, in turns, on one thread:")
        comparison = compare_interleaved(runs, baseline=first, rounds=30, time_limit=seconds)
        table = Table("machine", "ms", "GFLOP/s", f"x {first}", "95% interval")
        for name, latency in comparison.latency.items():
            ratio = comparison.ratio[name]
            interval = "" if name == first else f"{1 / ratio.high:.2f} to {1 / ratio.low:.2f}"
            gflops = 2 * self.size**3 / latency.median / 1e6
            table.add_row(
                name, f"{latency.median:.3f}", f"{gflops:.1f}", f"{1 / ratio.value:.2f}", interval
            )
        Console().print(table)
        print("An emulator's time says nothing about the machine that it stands in for.")
        return comparison.to_dict()

    def show_cuda(self) -> dict[str, Any]:
        """The same product as CUDA source, and as PTX where a CUDA compiler is."""
        from rich.console import Console
        from rich.table import Table

        from tvm_practice.tvm_export.cuda import NO_COMPILER, CudaCompilerError, compiled, compiler

        print("\nThe same product for GPUs, a thread for each element; no GPU is needed for it.")
        module = threaded_matmul(self.size)
        figures: dict[str, Any] = {}
        table = Table("arch", "CUDA source", "same text", "PTX", "PTX version", "fma.rn.f32")
        first = None
        for arch in _ARCHS:
            source, mine = self.ask("cuda_source", module, arch)
            if not mine:
                return {}
            (self.steps.folder / f"{arch}.cu").write_text(source)
            first = first or source
            figures[arch] = {"source_bytes": len(source), "same": source == first}
            cells = ["-", "-", "-"]
            if compiler() is not None:
                try:
                    text = compiled(source, arch, form="ptx").decode()
                except CudaCompilerError as error:
                    _say(str(error))
                else:
                    (self.steps.folder / f"{arch}.ptx").write_text(text)
                    version = text.partition(".version ")[2].split()[0]
                    cells = [f"{len(text)} B", version, str(text.count("fma.rn.f32"))]
                    figures[arch] |= {"ptx_bytes": len(text), "fma": text.count("fma.rn.f32")}
            table.add_row(arch, f"{len(source)} B", "yes" if source == first else "no", *cells)
        Console().print(table)
        if compiler() is None:
            _say(f"PTX: {NO_COMPILER}")
        return figures


def _say(text: str) -> None:
    """Print in the width of the terminal."""
    from rich.console import Console

    Console().print(text, markup=False, highlight=False)


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"


def _print_beside(one: str, loop: Sequence[str], other: str, other_loop: Sequence[str]) -> None:
    """Two loops' instructions side by side."""
    import itertools

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(one, other)
    narrow = min(36, max(map(len, other_loop), default=0))
    shown = [_shortened(each) for each in (loop, other_loop)]
    for left, right in itertools.zip_longest(*shown, fillvalue=""):
        # As text: square brackets are rich's markup, and aarch64's addresses.
        table.add_row(Text(_cut(left, 72 - narrow)), Text(_cut(right, narrow)))
    Console().print(table)


def _shortened(loop: Sequence[str]) -> list[str]:
    if len(loop) <= _MOST_LINES:
        return list(loop)
    return [*loop[: _MOST_LINES - 1], f"… {len(loop) - _MOST_LINES + 1} more"]


def _steps(counts: Mapping[str, int]) -> float:
    """Steps of k in a loop: its products over those of a step."""
    lanes = {"ymm": 8, "zmm": 16}
    products = sum(
        count * lanes.get(what.split()[-1], 4)
        for what, count in counts.items()
        if not what.startswith("add")
    )
    return products / (_ROWS * _COLUMNS)


def _whole_model(folder: Path, loader: str, target: str) -> dict[str, Any]:
    """Export a model for aarch64; run it under qemu where all that this needs is here."""
    from solutions.relay_import import verify
    from tvm_practice.tvm_export import cross
    from tvm_practice.tvm_export.calling import as_array, as_call
    from tvm_practice.tvm_export.config import ATOL, RTOL
    from tvm_practice.tvm_export.loading import load
    from tvm_practice.tvm_export.pipeline import export_model

    model = f"tvm_practice.models:{loader}"
    artifacts = folder / loader
    print()
    _say(f"A whole model for aarch64, exported by run_autotvm {model} --target '{target}':")
    asked = {"model": model, "artifacts": artifacts, "target": target, "force": True}
    result = export_model(asked)
    _say(f"written to {artifacts}, library {result['size'] / 1e6:.1f} MB")
    _say(f"not run: {result['not_run']}")
    figures = {"library_bytes": result["size"], "not_run": result["not_run"]}
    if reason := cross.why_no_artifact("aarch64-linux-gnu"):
        _say(f"nor emulated: {reason}")
        return figures
    loaded = load(model, example=None, seed=0)
    call = as_call(loaded.module, loaded.args, loaded.kwargs)
    outputs = cross.run_artifact(artifacts, [as_array(each) for each in call.tensors])
    reference = [as_array(each) for each in loaded.outputs]
    error = verify(outputs, reference, atol=ATOL, rtol=RTOL)
    _say(f"emulated, with TVM's runtime for aarch64: largest difference from PyTorch {error:.1e}")
    return {**figures, "max_error": error}


main = phase_command("labs.cross_compile", "Lab 3: one function for other machines.")

if __name__ == "__main__":
    main()
