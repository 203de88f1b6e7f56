"""For which targets a framework generates code on this machine, by trial.

    python -m tvm_practice.labs.workloads.portability tvm
    python -m tvm_practice.labs.workloads.portability triton

"yes" if a kernel was compiled for the target here, whether or not this machine could run it. For a
library, "yes" if its kernels came with this build. The line names the output or the missing part.
"""

import contextlib
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from tvm_practice.engines.command_line import Command
from tvm_practice.labs.workloads.frameworks import FRAMEWORKS, missing

Fact = tuple[str, bool, str]
"""A target, whether code was made for it, and the output or the reason for its lack."""

# LLVM's triples; for GPUs, the kind of the target and its other options.
_TRIPLES = {
    "x86-64": "x86_64-linux-gnu",
    "ARM 64": "aarch64-linux-gnu",
    "ARM 32": "armv7l-linux-gnueabihf",
    "RISC-V 64": "riscv64-linux-gnu",
    "WebAssembly": "wasm32-unknown-unknown",
}
_GPUS: dict[str, dict[str, Any]] = {
    "CUDA": {"kind": "cuda", "arch": "sm_80"},
    "ROCm": {"kind": "rocm"},
    "OpenCL": {"kind": "opencl"},
    "Metal": {"kind": "metal"},
    "Vulkan": {"kind": "vulkan"},
    "WebGPU": {"kind": "webgpu"},
}
_PLATFORMS = ("cpu", "cuda", "rocm", "tpu")


def numpy_facts() -> Iterator[Fact]:
    import numpy as np

    blas: Any = np.show_config(mode="dicts")
    found = blas["Build Dependencies"]["blas"]
    yield "this processor", True, f"{found['name']} {found['version']} and loops, as installed"


def torch_facts() -> Iterator[Fact]:
    import torch

    yield "cpu", True, "kernels in this build"
    for name, backend in (("cuda", torch.backends.cuda), ("mps", torch.backends.mps)):
        built = bool(backend.is_built())
        yield name, built, "kernels in this build" if built else "another build has them"


def inductor_facts() -> Iterator[Fact]:
    import torch
    from torch._inductor.codegen import common
    from torch._inductor.utils import run_and_get_code

    x = torch.randn(64, 64)
    _, code = run_and_get_code(torch.compile(lambda x: torch.softmax(x, -1)), x)
    common.init_backend_registration()
    for name in sorted(common.device_codegens):
        if name == "cpu":
            yield name, True, f"{len(code[0])} characters of C++ and Python, for this processor"
        else:
            yield name, False, "it has a generator, and compiles where such a device is"


def jax_facts() -> Iterator[Fact]:
    import jax
    import jax.numpy as jnp
    from jax import export

    shape = jax.ShapeDtypeStruct((64, 64), jnp.float32)
    for name in _PLATFORMS:
        if name == jax.default_backend():
            size = len(jax.jit(jax.nn.softmax).lower(shape).compile().as_text())
            yield name, True, f"machine code (from {size} characters of optimized HLO)"
            continue
        exported = export.export(jax.jit(jax.nn.softmax), platforms=[name])(shape)
        size = len(exported.mlir_module_serialized)
        yield name, False, f"{size} bytes of StableHLO for it; machine code where the device is"


def onnx_facts() -> Iterator[Fact]:
    onnxruntime: Any = importlib.import_module("onnxruntime")  # optional, and without types
    here = onnxruntime.get_available_providers()
    for name in here:
        yield name.removesuffix("ExecutionProvider"), True, "kernels in this build"
    others = [each for each in onnxruntime.get_all_providers() if each not in here]
    names = ", ".join(each.removesuffix("ExecutionProvider") for each in others)
    yield f"{len(others)} others", False, f"in other builds: {names}"


def triton_facts() -> Iterator[Fact]:
    os.environ["TRITON_INTERPRET"] = "0"
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        import triton
        from triton.backends.compiler import GPUTarget
        from triton.compiler import ASTSource

        from tvm_practice.labs.workloads.in_triton import softmax_kernel

        signature = {"x": "*fp32", "y": "*fp32", "columns": "i32", "BLOCK": "constexpr"}
        source = ASTSource(softmax_kernel, signature, constexprs={"BLOCK": 1024})
        for name, target in (
            ("CUDA, sm_80", GPUTarget("cuda", 80, 32)),
            ("CUDA, sm_90", GPUTarget("cuda", 90, 32)),
            ("ROCm, gfx942", GPUTarget("hip", "gfx942", 64)),
        ):
            made = triton.compile(source, target=target).asm
            kinds = [kind for kind in ("ptx", "cubin", "amdgcn", "hsaco") if kind in made]
            yield name, True, ", ".join(f"{len(made[kind])} bytes of {kind}" for kind in kinds)
    yield "processors", False, "the interpreter only"


def tvm_facts() -> Iterator[Fact]:
    from tvm_practice import engines

    engines.activate("current")
    import tvm
    from tvm import te

    n = 1024
    X = te.placeholder((n,), name="X")
    Y = te.compute((n,), lambda i: te.exp(X[i]), name="Y")
    module = tvm.IRModule({"main": te.create_prim_func([X, Y]).with_attr("global_symbol", "main")})
    for name, triple in _TRIPLES.items():
        with _told(name) as said, tempfile.TemporaryDirectory() as folder:
            target = tvm.target.Target({"kind": "llvm", "mtriple": triple})
            file = Path(folder) / "kernel.o"
            tvm.compile(module, target=target).mod.write_to_file(str(file), "o")
            said(f"{file.stat().st_size} bytes of object code")
        yield said.fact
    schedule = tvm.s_tir.Schedule(module)
    outer, inner = schedule.split(schedule.get_loops(schedule.get_sblock("Y"))[0], [None, 128])
    schedule.bind(outer, "blockIdx.x")
    schedule.bind(inner, "threadIdx.x")
    for name, description in _GPUS.items():
        with _told(name) as said:
            target = tvm.target.Target(description, host={"kind": "llvm"})
            kernel = tvm.compile(schedule.mod, target=target).mod.imports[0]
            said(f"{len(kernel.inspect_source())} characters of kernel source")
        yield said.fact


class _Said:
    """The outcome for one target: called with the output; `no` keeps a reason instead."""

    def __init__(self, target: str):
        self.fact: Fact = (target, False, "")

    def __call__(self, what: str) -> None:
        self.fact = (self.fact[0], True, what)

    def no(self, reason: str) -> None:
        self.fact = (self.fact[0], False, reason)


@contextlib.contextmanager
def _told(target: str) -> Iterator[_Said]:
    said = _Said(target)
    try:
        yield said
    except Exception as error:  # whatever a code generator that is not there raises
        lines = [each.strip() for each in str(error).splitlines() if each.strip()]
        said.no(lines[-1] if lines else type(error).__name__)


FACTS: dict[str, Callable[[], Iterator[Fact]]] = {
    "numpy": numpy_facts,
    "torch": torch_facts,
    "inductor": inductor_facts,
    "jax": jax_facts,
    "onnx": onnx_facts,
    "triton": triton_facts,
    "tvm": tvm_facts,
}


def family(name: str) -> str:
    """The family that FACTS[name] describes: all ways to use TVM share their targets."""
    return FRAMEWORKS[name].label.partition(",")[0]


def line(fact: Fact) -> str:
    """A fact as a line of text."""
    target, made, detail = fact
    return f"{'yes' if made else 'no':<4} {target:<16} {detail}"


@click.command(
    cls=Command,
    epilog="\b\nExamples:\n  python -m tvm_practice.labs.workloads.portability tvm\n"
    "  python -m tvm_practice.labs.workloads.portability jax",
)
@click.argument("framework", type=click.Choice(list(FACTS)))
@click.option("--json", "as_json", is_flag=True, help="The facts as one JSON list.")
def main(framework: str, as_json: bool) -> None:
    """Try out for which targets FRAMEWORK makes code here; a line each."""
    if reason := missing(FRAMEWORKS[framework]):
        raise click.UsageError(f"{framework}: {reason}")
    from tvm_practice.tvm_export.quiet import native_stderr_to

    with native_stderr_to(os.devnull), contextlib.redirect_stdout(sys.stderr):
        facts = list(FACTS[framework]())
    click.echo(json.dumps(facts) if as_json else "\n".join(map(line, facts)))


if __name__ == "__main__":
    main()
