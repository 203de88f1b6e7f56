"""What lab 1 shows: a matmul's kernels on a GPU, each counted, checked and, with a GPU, timed."""

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.labs.gpu_kernels import KERNELS, THREADS, Calls, Make, ToDo
from tvm_practice.course.tours.printing import number_table, say, show, show_code

if TYPE_CHECKING:
    from tvm_practice.labs.gpu.counting import KernelCounts
    from tvm_practice.labs.gpu.occupancy import Gpu

_ARCH = "sm_80"  # of the texts that are shown and saved
_SMALL = (256, 128, 64)  # m, n, k of the values on the CPU: two thread blocks, some steps of k
_SHOWN_LINES = 40  # of a CUDA source


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Show, count and check each kernel on the active engine; with a GPU, time them."""
    from tvm_practice import engines

    if engines.active() == engines.CLASSIC:
        return _classic_lane(steps)
    _show_transposition(steps, 4096)
    kernels = _Kernels(steps, 1024 if quick else 4096)
    for name, what, make in KERNELS:
        if name != "x on rows" or "bind" in kernels.schedules:
            kernels.add(name, what, make)
    figures = kernels.figures(quick=quick)
    figures["measured"] = kernels.on_device()
    return figures


def _classic_lane(steps: Steps) -> dict[str, Any]:
    """Classic TVM's kernels: loops, values, CUDA source, traffic; and the template's choice."""
    from tvm_practice.course.stack import earlier
    from tvm_practice.labs.gpu.classic import own_thread_axes

    matmul = earlier("te_basics.matmul")
    kernels = _ClassicKernels()
    tensors = matmul(100, 128, 64)
    schedule = steps.attempt("bind_threads_classic", tensors, *THREADS)
    if steps.ran("bind_threads_classic"):
        with steps.blaming("bind_threads_classic"):
            kernels.add("bind_threads_classic", "one thread per element", schedule, tensors)
    tensors = matmul(128, 128, 64)
    tiled = steps.attempt("register_tile_classic", tensors, 4, 32, 8, 4, 8)
    if steps.ran("register_tile_classic"):
        with steps.blaming("register_tile_classic"), own_thread_axes():
            schedule, local, k_outer = tiled
            for matrix in tensors[:2]:
                steps.attempt("stage_shared_classic", schedule, matrix, local, k_outer, 4, 32)
    if steps.ran("register_tile_classic") and steps.ran("stage_shared_classic"):
        with steps.blaming("stage_shared_classic"):
            what = "tiles in shared memory, sums in registers"
            kernels.add("stage_shared_classic", what, schedule, tensors)
    kernels.print_traffic()
    _show_template(steps)
    return kernels.figures


class _ClassicKernels:
    """Matmuls of classic TVM, each shown, checked and counted as it comes.

    Attributes:
        figures: {"max_error": of all, "traffic": by kernel}; empty if there is none.
    """

    def __init__(self) -> None:
        self.figures: dict[str, Any] = {}

    def add(self, name: str, what: str, schedule: Any, tensors: list[Any]) -> None:
        import numpy as np

        from tvm_practice.labs.gpu.classic import cuda_source, run_on_cpu
        from tvm_practice.labs.gpu.counting import count_accesses
        from tvm_practice.tvm_export.cuda import kernel_of
        from tvm_practice.viz.loop_nest import classic_statement, loop_nest, print_nest

        (m, k), (_, n) = ([int(each) for each in tensor.shape] for tensor in tensors[:2])
        print(f"\n{name}, a matmul of {m}x{n}x{k}:\n{what}")
        print_nest(name, loop_nest(classic_statement(schedule)))
        rng = np.random.default_rng()
        a, b = (rng.standard_normal(shape, dtype="float32") for shape in ((m, k), (k, n)))
        off = float(np.abs(run_on_cpu(schedule, tensors, [a, b]) - a @ b).max())
        print(f"on the CPU: largest difference from numpy {off:.1e}")
        _show_cuda(name, kernel_of(cuda_source(schedule, tensors, _ARCH)))
        counts = count_accesses(schedule, tensors)
        self.figures["max_error"] = max(off, self.figures.get("max_error", 0.0))
        self.figures.setdefault("traffic", {})[name] = _traffic_of(counts, m * n * k)

    def print_traffic(self) -> None:
        if not self.figures:
            return
        print("\nCounted from the IR, like the kernels of current TVM:")
        table = number_table("kernel", "global KB", "needed", "wavefronts")
        for name, row in self.figures["traffic"].items():
            table.add_row(
                name,
                f"{row['global_bytes'] / 1e3:.0f}",
                f"{row['needed']:.0%}",
                f"{row['wavefronts']:.3f}",
            )
        show(table)


def _show_template(steps: Steps) -> None:
    """tensor_core_template: what its knob chooses for two sizes."""
    import tvm
    from tvm import autotvm

    with tvm.target.Target(f"cuda -arch={_ARCH}"):
        for sizes in ((64, 64, 64), (64, 64, 100)):
            space = autotvm.task.ConfigSpace()
            with autotvm.task.ApplyConfig(space):
                steps.attempt("tensor_core_template", *sizes)
            if not steps.ran("tensor_core_template"):
                return
            knobs = {name: [each.val for each in found.entities] for name, found in
                     space.space_map.items()}  # fmt: skip
            print(f"tensor_core_template of {'x'.join(map(str, sizes))}: {knobs}")


def _show_transposition(steps: Steps, n: int) -> None:
    """The worked example: three ways to transpose, counted."""
    from tvm_practice.labs.gpu.worked import transposed

    print(
        f"\nWorked example: a transposition of {n}x{n}, 32 x 32 per thread block. The\n"
        "cost of one request of a warp's 32 threads, in sectors of 32 bytes (X, Y) and in\n"
        "wavefronts of the banks (tile):"
    )
    ways = {
        "directly": transposed(n, staged=False)[0],
        "staged": transposed(n, staged=True)[0],
    }
    schedule, copy = transposed(n, staged=True)
    steps.attempt("pad_shared", schedule, copy, 1)
    if steps.ran("pad_shared"):
        ways["staged, padded"] = schedule
    show(_requests_table(ways))
    print(
        "32 floats in a row are 4 sectors; in a column, 32. A wavefront serves 32 threads\n"
        "whose words are in 32 banks; at 32 wavefronts, one bank serves all in turn."
    )


def _requests_table(ways: Mapping[str, Any]) -> Table:
    """Transactions per request of a transposition's accesses, for each schedule."""
    from tvm_practice.labs.gpu.counting import count_accesses

    order = (("X", False), ("Y", True), ("X_shared", True), ("X_shared", False))
    table = number_table("transposed", "read X", "write Y", "write tile", "read tile")
    for name, schedule in ways.items():
        cells = {
            (each.buffer, each.write): f"{each.transactions / each.requests:.0f}"
            for each in count_accesses(schedule.mod["main"]).accesses
        }
        table.add_row(name, *(cells.get(key, "") for key in order))
    return table


class _Kernels:
    """Kernels of one matmul: each shown, counted and checked as it comes.

    Attributes:
        size: of A, B and C, which are square.
        schedules: of that size, those that were right, by name.
        counts: the memory requests of one thread block of each.
        texts: their CUDA sources.
    """

    def __init__(self, steps: Steps, size: int):
        print(f"\nMatmul of {size}x{size}x{size}: from one thread per element to tensor cores.")
        self.steps = steps
        self.size = size
        self.schedules: dict[str, Any] = {}
        self.counts: dict[str, KernelCounts] = {}
        self.texts: dict[str, str] = {}
        self._calls = Calls(steps)

    def add(self, name: str, what: str, make: Make) -> None:
        """Make a kernel, check its values on the CPU, show it and count its accesses."""
        from tvm_practice.labs.gpu.counting import count_accesses
        from tvm_practice.tvm_export.cuda import cuda_source, why_no_text

        unusable = len(self.steps.todo) + len(self.steps.failed)
        try:
            schedule = make(self._calls, self.size, self.size, self.size)
            small = make(self._calls, *_SMALL)
        except ToDo:
            if len(self.steps.todo) + len(self.steps.failed) == unusable:
                print(f"       {name} needs it too.")
            return
        except Exception:
            with self.steps.blaming(self._calls.about):
                raise
            return
        print(f"\n{name}: {what}")
        with self.steps.blaming(self._calls.about):
            off = _off_on_cpu(small, _SMALL)
            counts = count_accesses(schedule.mod["main"])
            text = cuda_source(schedule.mod, _ARCH) if why_no_text() is None else ""
            self.schedules[name], self.counts[name] = schedule, counts
            print(off)
            self._keep_text(name, text)

    def _keep_text(self, name: str, text: str) -> None:
        """Save a kernel's CUDA source; show it for some kernels."""
        from tvm_practice.tvm_export.cuda import kernel_of, why_no_text

        if not text:
            print(f"No CUDA source: {why_no_text()}.")
            return
        self.texts[name] = text
        file = self.steps.folder / (re.sub(r"\W", "_", name) + ".cu")
        file.write_text(text)
        if name in ("bind", "shared"):
            _show_cuda(name, kernel_of(text))
        print(f"CUDA source: {file}, {len(kernel_of(text).splitlines())} lines")

    def figures(self, *, quick: bool) -> dict[str, Any]:
        """Print the kernels' memory traffic and occupancy; returns both."""
        from tvm_practice.labs.gpu.occupancy import GPUS

        if not self.counts:
            return {}
        traffic = _traffic(self.counts, self.size)
        _print_traffic(traffic, self.size)
        kernels = {name: (self.counts[name].threads, text) for name, text in self.texts.items()}
        held = _occupancy(kernels, GPUS[1:2] if quick else GPUS)
        return {"size": self.size, "traffic": traffic, "resources": held}

    def on_device(self) -> dict[str, Any]:
        """Run, verify and time the kernels where there is a GPU; returns the times."""
        from tvm_practice.labs.gpu.running import beside_cublas, why_no_gpu

        reason = why_no_gpu()
        if reason is not None:
            print(
                f"\nNothing is timed: {reason}.\nOn a machine with a GPU, this command runs,\n"
                "verifies and times all kernels beside cuBLAS:\n"
                "    python -m tvm_practice.labs.gpu_schedule --solutions"
            )
            return {}
        moved = {name: counts.global_bytes for name, counts in self.counts.items()}
        return beside_cublas(self.schedules, self.size, moved, self.steps.folder)


def _off_on_cpu(schedule: Any, sizes: tuple[int, int, int]) -> str:
    """Run a kernel's loops on the CPU; a line that says how far it is from numpy.

    Raises:
        ValueError: it is too far.
    """
    import numpy as np

    from tvm_practice.labs.gpu.on_cpu import matmul_on_cpu

    m, n, k = sizes
    got, want = matmul_on_cpu(schedule, m, n, k)
    off = float(np.abs(got - want).max())
    if not off <= 1e-5 * k:  # NaN is wrong too
        raise ValueError(f"at {m}x{n}x{k} its values differ from numpy's by {off:.3g}")
    return f"on the CPU, {m}x{n}x{k}: largest difference from numpy {off:.1e}"


def _show_cuda(name: str, text: str) -> None:
    lines = text.splitlines()
    if len(lines) > _SHOWN_LINES:
        lines = [*lines[:_SHOWN_LINES], f"// … {len(lines) - _SHOWN_LINES} more lines"]
    show_code(f"{name}, CUDA for {_ARCH}", lines, "cuda")


def _traffic(counts: Mapping[str, "KernelCounts"], size: int) -> dict[str, dict[str, float]]:
    """The requests of each kernel of a matmul of `size` to memory, by name."""
    return {name: _traffic_of(each, size**3) for name, each in counts.items()}


def _traffic_of(counts: "KernelCounts", products: int) -> dict[str, float]:
    """The requests of one kernel that does so many multiply-adds."""
    memory, banks = counts.total("global"), counts.total("shared")
    # Instructions of a thread block, if each did 32 multiply-adds.
    work = products / counts.blocks / 32
    return {
        "global_bytes": counts.global_bytes,
        "needed": memory.fewest / memory.transactions,
        "intensity": 2 * products / counts.global_bytes,
        "wavefronts": banks.transactions / work,
        "conflicts": (banks.transactions - banks.fewest) / work,
    }


def _print_traffic(traffic: Mapping[str, Mapping[str, float]], size: int) -> None:
    print(
        f"\nCounted from the IR at {size}³, all thread blocks: bytes of the sectors that warps\n"
        "touch, the share of them that is needed, operations per byte; wavefronts of\n"
        "shared memory per 32 multiply-adds, and how many of them are bank conflicts."
    )
    headings = ("global GB", "needed", "FLOP/byte", "wavefronts", "conflicts")
    table = number_table("kernel", *headings)
    for name, row in traffic.items():
        table.add_row(
            name,
            f"{row['global_bytes'] / 1e9:.2f}",
            f"{row['needed']:.0%}",
            f"{row['intensity']:.3g}",
            f"{row['wavefronts']:.3f}",
            f"{row['conflicts']:.3f}",
        )
    show(table)


def _occupancy(
    kernels: Mapping[str, tuple[int, str]], gpus: Sequence["Gpu"]
) -> dict[str, dict[str, Any]]:
    """Print registers, shared memory and occupancy of (threads, CUDA source) by kernel.

    Returns:
        By kernel and GPU what is printed and what bounds it; empty without a CUDA compiler.
    """
    from tvm_practice.tvm_export.cuda import CudaCompilerError, compiler

    print(
        "\nOccupancy, the share of a multiprocessor's possible warps that fit on it at\n"
        "once, and its limit"
        + (":" if compiler() else ".\nNo CUDA compiler is installed, so registers are unknown.")
    )
    if compiler() is None or not kernels:
        return {}
    table = Table("kernel", "threads", *(f"{gpu.name}, {gpu.arch}" for gpu in gpus))
    found: dict[str, dict[str, Any]] = {name: {} for name in kernels}
    refused: dict[str, str] = {}
    for name, (threads, text) in kernels.items():
        cells = []
        for gpu in gpus:
            if gpu.arch not in refused:
                try:
                    found[name][gpu.name] = _held(gpu, threads, text)
                except CudaCompilerError as error:
                    refused[gpu.arch] = str(error)
            cells.append(_held_text(found[name].get(gpu.name)))
        table.add_row(name, str(threads), *cells)
    show(table)
    for reason in refused.values():
        say(f'"-" is unknown: {reason}')
    return found


def _held(gpu: "Gpu", threads: int, text: str) -> dict[str, Any]:
    """What a kernel takes of a GPU, and its occupancy; raises CudaCompilerError."""
    from tvm_practice.labs.gpu.occupancy import occupancy
    from tvm_practice.tvm_export.cuda import resources

    took = resources(text, gpu.arch)
    held = occupancy(gpu, threads=threads, registers=took.registers, shared_bytes=took.shared_bytes)
    return {
        "registers": took.registers,
        "shared_bytes": took.shared_bytes,
        "stack_bytes": took.stack_bytes,
        "occupancy": held.share,
        "limit": held.limit,
    }


def _held_text(held: Mapping[str, Any] | None) -> str:
    if held is None:
        return "-"
    return f"{held['occupancy']:.0%} {held['limit']}\n{held['registers']} registers"


def report(results: dict[str, Any], folder: Path) -> None:
    """Save the figures; plot operations per byte and wavefronts of each kernel."""
    figures = {engine: lane.get("figures") or {} for engine, lane in results.items()}
    (folder / "figures.json").write_text(json.dumps(figures, indent=2))
    current = figures.get("current", {})
    if current.get("traffic"):
        from tvm_practice.viz.gpu_traffic import traffic_figure

        figure = traffic_figure(current["traffic"], size=current["size"])
        figure.savefig(folder / "traffic.png", dpi=120, facecolor="white")
        print(f"\nplot: {folder / 'traffic.png'}")
