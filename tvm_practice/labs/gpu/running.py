"""Matmul kernels on a GPU: verified, timed beside cuBLAS, under the GPU's roofline."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_COPIED = 1 << 28  # floats: 1 GiB, more than a GPU's cache holds


def why_no_gpu() -> str | None:
    """One line saying why no kernel can run here; None if they can."""
    import tvm

    from tvm_practice.tvm_export.cuda import NO_COMPILER, compiler

    if not tvm.cuda(0).exist:
        return "TVM finds no CUDA device"
    import torch  # slow, and without a device not needed

    if not torch.cuda.is_available():
        return "this PyTorch has no CUDA, and cuBLAS is called through it"
    return None if compiler() else NO_COMPILER


def beside_cublas(
    schedules: Mapping[str, Any], size: int, moved: Mapping[str, int], folder: Path
) -> dict[str, Any]:
    """Compile, verify and time kernels of one square matmul, in turns with cuBLAS.

    Those of float16 are compared with torch's product of float16 to float32, the others with its
    product of float32 without TF32.

    Args:
        schedules: of main(A, B, C), by name.
        size: of A, B and C.
        moved: bytes of global memory that each kernel asks for, by name.
        folder: where the roofline goes.

    Returns:
        By type, the comparison and GFLOP/s; by name, whether it is right.
    """
    import torch
    import tvm

    from tvm_practice.tvm_export.cuda import use_for_kernels

    major, minor = torch.cuda.get_device_capability()
    arch = f"sm_{major}{minor}"
    use_for_kernels(arch)
    target = tvm.target.Target({"kind": "cuda", "arch": arch}, host="llvm")
    print(f"\nOn {torch.cuda.get_device_name()}, {arch}:")
    torch.backends.cuda.matmul.allow_tf32 = False
    figures: dict[str, Any] = {}
    for dtype in (torch.float32, torch.float16):
        a, b = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
        names = [name for name, each in schedules.items() if _takes(each) == str(dtype)[6:]]
        runs: dict[str, Callable[[], Any]] = {}
        for name in names:
            compiled = tvm.compile(schedules[name].mod, target=target)["main"]
            runs[name] = _on_torch(compiled, a, b)
        options = {"out_dtype": torch.float32} if dtype == torch.float16 else {}
        cublas = functools.partial(torch.mm, a, b, **options)
        figures[str(dtype)[6:]] = compare(runs, cublas, a, b, torch.cuda.synchronize)
    _roofline(figures, size, moved, folder)
    return figures


def _takes(schedule: Any) -> str:
    return str(schedule.mod["main"].params[0].dtype)


def _on_torch(function: Any, a: Any, b: Any) -> Callable[[], Any]:
    """A call of main(A, B, C) on torch's memory; returns C."""
    import torch
    import tvm

    c = torch.full((a.shape[0], b.shape[1]), float("nan"), device=a.device)
    arguments = [tvm.runtime.from_dlpack(each) for each in (a, b, c)]

    def run() -> Any:
        function(*arguments)
        return c

    return run


def compare(
    runs: Mapping[str, Callable[[], Any]],
    reference: Callable[[], Any],
    a: Any,
    b: Any,
    synchronize: Callable[[], Any],
    *,
    seconds: float = 20,
) -> dict[str, Any]:
    """Verify products of torch tensors, then time them in turns with a reference, and print.

    Args:
        runs: each returns the product, by name.
        reference: of torch, called "cuBLAS".
        synchronize: waits until the device is done.
        seconds: of timing, about.

    Returns:
        The comparison, "gflops" and "wrong": largest differences of those that are left out.
    """
    from rich.console import Console
    from rich.table import Table

    from tvm_practice.measure import compare_interleaved

    want = a.double() @ b.double()
    right: dict[str, Callable[[], Any]] = {}
    wrong: dict[str, float] = {}
    for name, run in runs.items():
        got = run()
        synchronize()
        off = float((got.double() - want).abs().max())
        if off <= 1e-5 * a.shape[1]:  # NaN is wrong too
            right[name] = run
        else:
            wrong[name] = off
            print(f"{name} is wrong: it differs by {off:.3g}, and is not timed")

    def waited(run: Callable[[], Any]) -> None:
        run()
        synchronize()

    comparison = compare_interleaved(
        {
            name: functools.partial(waited, run)
            for name, run in {**right, "cuBLAS": reference}.items()
        },
        baseline="cuBLAS",
        rounds=50,
        time_limit=seconds,
    )
    table = Table(str(a.dtype)[6:], "ms", "TFLOP/s", "of cuBLAS", "95% interval")
    for column in table.columns[1:]:
        column.justify = "right"
    gflops = {}
    work = 2 * a.shape[0] * a.shape[1] * b.shape[1]
    for name, latency in comparison.latency.items():
        value, interval = comparison.ratio[name].cells(".2f", inverse=True)
        gflops[name] = work / latency.median / 1e6
        table.add_row(
            name,
            f"{latency.median:.3f}",
            f"{gflops[name] / 1e3:.2f}",
            value,
            "" if name == "cuBLAS" else interval,
        )
    Console().print(table)
    if comparison.disturbance:
        Console().print(comparison.verdict, markup=False)
    if comparison.explanation:
        Console().print(comparison.explanation, markup=False)
    return {"gflops": gflops, "wrong": wrong, **comparison.to_dict()}


def _roofline(figures: dict[str, Any], size: int, moved: Mapping[str, int], folder: Path) -> None:
    """Draw the kernels under cuBLAS's best and the memory's bandwidth, one picture per type."""
    import torch

    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.roofline import Kernel, Roofline, roofline_svg

    source, copy = (torch.empty(_COPIED, device="cuda") for _ in range(2))
    seconds = []
    for _ in range(10):
        start = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        end = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        start.record()
        copy.copy_(source)
        end.record()
        torch.cuda.synchronize()
        seconds.append(start.elapsed_time(end) / 1e3)
    bandwidth = 8 * _COPIED / min(seconds) / 1e9
    for dtype, each in figures.items():
        limits = Roofline(each["gflops"]["cuBLAS"], bandwidth, 0)
        kernels = {
            name: Kernel(rate, 2 * size**3 / moved[name])
            for name, rate in each["gflops"].items()
            if name in moved
        }
        if not kernels:
            continue
        svg = roofline_svg(
            limits,
            kernels,
            title=f"{size}³ {dtype} under cuBLAS and the memory",
            intensity_label="operations per byte requested from global memory "
            "(above the slope, caches serve)",
            rate_label="GFLOP/s",
        )
        file = folder / f"roofline_{dtype}.svg"
        file.write_text(standalone(svg))
        print(f"picture: {file}")
