"""Kernels that the tests of tvm_practice.labs.gpu count, in a child process with an engine."""

from typing import Any

from tvm_practice.labs.gpu.counting import count_accesses


def _counted(function: Any) -> dict[str, Any]:
    """Requests, transactions, fewest, misaligned by buffer; the launch."""
    counts = count_accesses(function)
    found: dict[str, Any] = {
        "grid": counts.grid, "block": counts.block, "shared_bytes": counts.shared_bytes,
    }  # fmt: skip
    for each in counts.accesses:
        name = f"{each.buffer} {'written' if each.write else 'read'}"
        found[name] = [each.requests, each.transactions, each.fewest, each.misaligned]
    return found


def transposition(staged: bool, offset: int) -> dict[str, Any]:
    from solutions.labs.gpu_schedule import pad_shared
    from tvm_practice.labs.gpu.worked import transposed

    schedule, copy = transposed(64, staged=staged)
    if offset:
        pad_shared(schedule, copy, offset)
    return _counted(schedule.mod["main"])


def _copy(n: int, begin: int = 0) -> tuple[Any, Any]:
    import tvm
    from tvm import te

    x = te.placeholder((n + begin,), name="x")
    y = te.compute((n,), lambda i: x[i + begin], name="y")
    schedule = tvm.s_tir.Schedule(te.create_prim_func([x, y]))
    return schedule, schedule.get_sblock("y")


def guarded_copy(n: int, threads: int) -> dict[str, Any]:
    schedule, block = _copy(n)
    (i,) = schedule.get_loops(block)
    blocks, inside = schedule.split(i, [None, threads])
    schedule.bind(blocks, "blockIdx.x")
    schedule.bind(inside, "threadIdx.x")
    return _counted(schedule.mod)


def vector_copy(lanes: int, begin: int) -> dict[str, Any]:
    schedule, block = _copy(32 * lanes, begin)
    (i,) = schedule.get_loops(block)
    thread, vector = schedule.split(i, [None, lanes])
    schedule.bind(thread, "threadIdx.x")
    schedule.vectorize(vector)
    return _counted(schedule.mod)


def fragments(pad: bool) -> dict[str, Any]:
    return _counted(_fragments(pad).mod)


def _fragments(pad: bool) -> Any:
    from solutions.labs import gpu_schedule as reference
    from tvm_practice.labs.gpu.matmul import declare
    from tvm_practice.labs.gpu.wmma import warp_tiles, wmma_intrinsics

    schedule, block = declare(128, 128, 64, "float16")
    tiles = warp_tiles(schedule, block)
    for reader in (tiles.load_a, tiles.load_b):
        copy = reference.stage_shared(schedule, reader, 0, tiles.k_outer, tiles.warps, 32, 8)
        if pad:
            reference.pad_shared(schedule, copy, 8)
    reference.tensor_cores(schedule, *tiles[:5], wmma_intrinsics())
    return schedule


def unbound() -> dict[str, Any]:
    return _counted(_copy(8)[0].mod)


def _transposition_source(arch: str) -> str:
    from solutions.labs.gpu_schedule import pad_shared
    from tvm_practice.labs.gpu.worked import transposed
    from tvm_practice.tvm_export.cuda import cuda_source

    schedule, copy = transposed(64, staged=True)
    pad_shared(schedule, copy, 1)
    return cuda_source(schedule.mod, arch)


def transposition_text(arch: str) -> str:
    from tvm_practice.tvm_export.cuda import kernel_of

    return kernel_of(_transposition_source(arch))


def transposition_by_nvcc(arch: str) -> dict[str, int]:
    """Of the cubin, beside what ptxas says of the same text."""
    import re
    import subprocess
    import tempfile
    from pathlib import Path
    from unittest import mock

    from tvm_practice.tvm_export import cuda as source

    text = _transposition_source(arch)
    with mock.patch.object(source, "compiler", lambda: "nvcc"):
        took = source.resources(text, arch)
        by_nvcc = source.compiled(text, arch, form="ptx")
    with tempfile.TemporaryDirectory() as folder:
        ptx = Path(folder) / "kernel.ptx"
        ptx.write_bytes(by_nvcc)
        said = subprocess.run(
            ["ptxas", "-v", "--register-usage-level=10", f"-arch={arch}", str(ptx), "-o", "out"],
            capture_output=True, text=True, check=True, cwd=folder,
        )  # fmt: skip
    used = re.search(r"Used (\d+) registers", said.stderr + said.stdout)
    assert used, said.stderr
    return {
        "registers": took.registers,
        "shared_bytes": took.shared_bytes,
        "stack_bytes": took.stack_bytes,
        "registers of ptxas": int(used[1]),
    }


def tensor_core_resources(arch: str) -> dict[str, int]:
    from dataclasses import asdict

    from tvm_practice.tvm_export.cuda import cuda_source, resources

    took = asdict(resources(cuda_source(_fragments(pad=False).mod, arch), arch))
    return {name: value for name, value in took.items() if name != "arch"}


def refused(arch: str) -> str:
    from tvm_practice.tvm_export.cuda import CudaCompilerError, compiled

    try:
        compiled(_transposition_source("sm_90"), arch)
    except CudaCompilerError as error:
        return str(error)
    return "compiled"


def quotient_in_ptx(arch: str) -> str | None:
    """What becomes of x / y; None without a compiler."""
    from tvm import te

    from tvm_practice.tvm_export import cuda as source
    from tvm_practice.tvm_export.rules.gpu import schedule_default
    from tvm_practice.tvm_export.targets import resolve_target

    if source.compiler() is None:
        return None
    x, y = (te.placeholder((1024,), name=name) for name in "xy")
    function = te.create_prim_func([x, y, te.compute((1024,), lambda i: x[i] / y[i])])
    module = schedule_default(function, resolve_target(f"cuda -arch={arch}"))
    return source.compiled(source.cuda_source(module, arch), arch, form="ptx").decode()


def no_compiler() -> str:
    from unittest import mock

    from tvm_practice.tvm_export import cuda as source

    with mock.patch.object(source, "compiler", lambda: None):
        try:
            source.compiled("", "sm_90")
        except source.CudaCompilerError as error:
            return str(error)
    return "compiled"


def values_on_cpu() -> float:
    """Largest difference from numpy of a matmul with threads, shared buffers and a pipeline."""
    import numpy as np

    from solutions.labs import gpu_schedule as reference
    from tvm_practice.labs.gpu.matmul import declare
    from tvm_practice.labs.gpu.on_cpu import matmul_on_cpu
    from tvm_practice.labs.gpu.worked import double_buffer

    schedule, block = declare(64, 64, 32)
    k_outer, *readers = reference.register_tile_gpu(schedule, block, 4, 16, 8, 4, 8)
    copies = [reference.stage_shared(schedule, reader, 0, k_outer, 4, 16, 4) for reader in readers]
    schedule.decompose_reduction(block, k_outer)
    double_buffer(schedule, copies, k_outer)
    got, want = matmul_on_cpu(schedule, 64, 64, 32)
    return float(np.abs(got - want).max())


def unwritten_on_cpu() -> list[bool]:
    """Which of six elements are written, if the threads of one block write four."""
    import numpy as np
    import tvm

    from tvm_practice.labs.gpu.on_cpu import run_on_cpu

    text = """@T.prim_func(s_tir=True)
def main(x: T.Buffer((6,), "float32"), y: T.Buffer((6,), "float32")):
    for t in T.thread_binding(4, thread="threadIdx.x"):
        y[t] = x[t]
"""
    function = tvm.script.from_source(text).with_attr("global_symbol", "main")
    x = np.arange(6, dtype="float32")
    return [bool(each) for each in run_on_cpu(tvm.IRModule({"main": function}), [x], (6,)) == x]


def staged_copies(classic: bool) -> dict[str, tuple[int, int]]:
    """(requests, transactions) of the copies to shared memory, of the same tiles on an engine."""
    from solutions.labs import gpu_schedule as reference
    from tvm_practice.labs.gpu.counting import count_accesses

    m, n, k = 64, 128, 32
    if classic:
        from solutions.te_basics import matmul

        tensors = matmul(m, n, k)
        schedule, reader, k_outer = reference.register_tile_classic(tensors, 4, 32, 8, 4, 8)
        for matrix in tensors[:2]:
            reference.stage_shared_classic(schedule, matrix, reader, k_outer, 4, 32)
        counts = count_accesses(schedule, tensors, block=(0, 1, 0))
    else:
        from tvm_practice.labs.gpu.matmul import declare

        schedule, block = declare(m, n, k)
        k_outer, *readers = reference.register_tile_gpu(schedule, block, 4, 32, 8, 4, 8)
        for each in readers:
            reference.stage_shared(schedule, each, 0, k_outer, 4, 32, 1)
        counts = count_accesses(schedule.mod["main"], block=(0, 1, 0))
    found = {}
    for each in counts.accesses:
        copies = each.write == (each.scope == "shared") and each.buffer[0] in "AB"
        if copies:
            found[each.buffer.replace(".", "_")] = (each.requests, each.transactions)
    return found
