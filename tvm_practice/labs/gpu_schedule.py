"""Lab 1: GPU schedules.

On a GPU thousands of threads run the same kernel. They come in *blocks*; the threads of a block
share a small fast memory and can wait for each other. They run in *warps* of 32, in step: one
instruction of a warp is one request to memory for all 32. A schedule says which loop becomes which:

    bind(loop, "blockIdx.x")        an iteration is a block (also .y and .z)
    bind(loop, "threadIdx.x")       an iteration is a thread of its block; neighbours in x are in
                                    the same warp
    cache_read(block, 0, "shared")  what the block reads first is copied to shared memory before;
                                    a new block, which is returned, does it
    cache_read(block, 0, "local")   likewise to registers, which are a thread's own
    compute_at(copy, loop)          the copy is made inside this loop, of what is needed there
    storage_align(copy, 0, axis, factor, offset)
                                    in the buffer that the copy writes, two neighbours along `axis`
                                    lie `offset` more than a multiple of `factor` elements apart
    tensorize(loop, intrinsic)      the loops from this one inwards are one instruction

Copies to shared memory are shared work: loops of the copy are bound to the same threads as those
of the product, and TVM puts barriers where threads have to wait for each other. Classic TVM has
`bind` too: schedule[C].bind(axis, te.thread_axis("threadIdx.x")).

No GPU is needed. TVM writes the CUDA text without one; what a kernel asks of memory is counted
from its IR (tvm_practice.labs.gpu); its values are computed on the CPU, thread after thread. With a
GPU the same run verifies and times all kernels beside cuBLAS.

The worked examples are a transposition through shared memory, double buffering, and the tiling
that tensor cores need. Write the functions below them, then run

    python -m tvm_practice.labs.gpu_schedule
    pytest -m lab1
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tvm_practice.course.phase import phase_command

if TYPE_CHECKING:
    from tvm_practice.course import Steps
    from tvm_practice.labs.gpu.occupancy import Gpu

FRAGMENT = 16  # rows and columns of what tensor cores multiply at once


def declare(m: int, n: int, k: int, dtype: str = "float32") -> tuple[Any, Any]:
    """Worked: a schedule of C[i, j] = sum over k of A[i, k] * B[k, j], and its block.

    Args:
        dtype: of A (m, k) and B (k, n). C (m, n) is float32, and the products are.

    Returns:
        The tvm.s_tir.Schedule with nothing done yet, and the block "C".
    """
    import tvm
    from tvm import te

    A = te.placeholder((m, k), dtype, name="A")
    B = te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="k")
    C = te.compute(
        (m, n),
        lambda i, j: te.sum(A[i, r].astype("float32") * B[r, j].astype("float32"), axis=r),
        name="C",
    )
    function = te.create_prim_func([A, B, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    return schedule, schedule.get_sblock("C")


def transposed(n: int, *, staged: bool) -> tuple[Any, Any]:
    """Worked example: Y[i, j] = X[j, i] in tiles of 32 x 32, by 8 x 32 threads a block.

    Neighbours in threadIdx.x write neighbours of a row of Y, which are in a column of X: 32 rows,
    32 sectors of memory for one request. Staged, a tile of X is first copied to shared memory row
    by row; there a column costs nothing, if no two of its elements are in the same bank.

    Args:
        n: rows and columns, a multiple of 32.
        staged: whether the tile goes through shared memory.

    Returns:
        The schedule, and the block of the copy (None if there is none).
    """
    import tvm
    from tvm import te

    from tvm_practice.manual_schedule import transpose

    function = te.create_prim_func(transpose(n)).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    block = schedule.get_sblock("Y")
    i, j = schedule.get_loops(block)
    block_i, step, thread_i = schedule.split(i, [None, 4, 8])
    block_j, thread_j = schedule.split(j, [None, 32])
    schedule.reorder(block_i, block_j, step, thread_i, thread_j)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(thread_j, "threadIdx.x")
    if not staged:
        return schedule, None
    copy = schedule.cache_read(block, 0, "shared")
    schedule.compute_at(copy, block_j)
    rows, columns = schedule.get_loops(copy)[-2:]
    _, thread_i = schedule.split(rows, [None, 8])
    schedule.bind(thread_i, "threadIdx.y")
    schedule.bind(columns, "threadIdx.x")
    return schedule, copy


def bind_threads(schedule: Any, block: Any, threads_y: int, threads_x: int) -> None:
    """Give each element of C a thread: split the rows and the columns, reorder, bind.

    The block's three loops are i (rows), j (columns) and k (the sum). Afterwards they are,
    outermost first: row blocks on blockIdx.y, column blocks on blockIdx.x, threads_y rows on
    threadIdx.y, threads_x columns on threadIdx.x, and k. Threads that are neighbours in x then
    read neighbouring elements of B and write neighbouring ones of C, in few sectors. The sizes
    need not divide; `split` guards the block.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block, its loops as declared.
        threads_y: rows of C that a block of threads computes.
        threads_x: columns of C that it computes.
    """
    raise NotImplementedError("split i and j, reorder, then schedule.bind four loops")


def stage_shared(
    schedule: Any,
    block: Any,
    index: int,
    k_outer: Any,
    threads_y: int,
    threads_x: int,
    lanes: int,
) -> Any:
    """Stage what a block reads in shared memory: all threads fetch the tile together.

    Copy the block's input number `index` to a "shared" buffer, inside k_outer: the tile that the
    whole block of threads needs for one step of it. The copy's last two loops, rows and columns of
    the tile, become one, which is shared out: the outermost part serial, then threads_y iterations
    on threadIdx.y, threads_x on threadIdx.x, and `lanes` vectorized, so that in one step the
    threads of a warp read neighbouring pieces of `lanes` elements.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block that reads a matrix of two dimensions, its loops bound.
        index: of that matrix among what the block reads.
        k_outer: the loop, outside the block, whose steps each have a tile of their own.
        threads_y: of a block of threads.
        threads_x: of a block of threads.
        lanes: elements that a thread fetches at once; a tile's rows are a multiple of it, and the
            tile is a multiple of threads_y * threads_x * lanes.

    Returns:
        The block of the copy.
    """
    raise NotImplementedError("cache_read, compute_at, fuse, split, bind twice, vectorize")


def register_tile_gpu(
    schedule: Any,
    block: Any,
    threads_y: int,
    threads_x: int,
    rows: int,
    columns: int,
    step: int,
) -> tuple[Any, Any, Any]:
    """Give each thread a tile of C in registers, and what it multiplies too.

    The block's loops i, j, k become, outermost first: row blocks (blockIdx.y), column blocks
    (blockIdx.x), threads_y (threadIdx.y), threads_x (threadIdx.x), k_outer, k_inner of `step`
    iterations, and the thread's `rows` and `columns`, both unrolled. The block adds up in a
    "local" buffer, written to C inside threadIdx.x when k_outer has ended. At each k_inner a
    thread's column of A and row of B are copied to "local" buffers before they are multiplied: a
    float that is fetched is used `columns` or `rows` times. The last loops of the write-back and
    of the copy of B are vectorized. The reduction is not decomposed: that comes last, when A and B
    are staged.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block, its loops as declared.
        threads_y: of a block of threads.
        threads_x: of a block of threads.
        rows: of C a thread, neighbours.
        columns: of C a thread, neighbours: 2 or 4.
        step: iterations of k_inner. All sizes divide.

    Returns:
        (k_outer, the block that copies A to registers, the block that copies B).
    """
    raise NotImplementedError(
        "split i, j, k; reorder; bind; cache_write; cache_read of both; vectorize; unroll"
    )


def pad_shared(schedule: Any, copy: Any, offset: int) -> None:
    """Pad the rows of a staged tile, so that its columns spread over the banks.

    Shared memory has 32 banks of 4 bytes. In a tile with 32 floats a row all elements of a column
    are in one bank, and 32 threads that read a column wait for each other. With rows that begin
    `offset` elements past a multiple of 32 they do not. `offset` must keep a row's vectors
    aligned: with vectors of 4 floats it is a multiple of 4.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        copy: the block that writes the tile, a buffer of two dimensions.
        offset: elements past a multiple of 32, from one row of the buffer to the next.
    """
    raise NotImplementedError("schedule.storage_align of the buffer's rows")


class WarpTiles(NamedTuple):
    """What `warp_tiles` leaves.

    Attributes:
        product: the block of one product of 16 x 16 x 16.
        load_a: copies A to fragments, loops of rows and columns last.
        load_b: likewise B.
        store: copies the sum to C, likewise.
        k_outer: the loop in which A and B are to be staged.
        warps: of a block of threads, on threadIdx.y; threadIdx.x is for the 32 threads of a warp.
    """

    product: Any
    load_a: Any
    load_b: Any
    store: Any
    k_outer: Any
    warps: int


def warp_tiles(
    schedule: Any,
    block: Any,
    *,
    warps: tuple[int, int] = (4, 2),
    tiles: tuple[int, int] = (2, 4),
    step: int = 32,
) -> WarpTiles:
    """Worked: tile a matmul for tensor cores, which a warp feeds as one.

    A *fragment* is a matrix of 16 x 16 that is spread over the registers of a warp. The loops
    inside a product of three fragments become a block of their own (`blockize`): tensorize will
    replace that block. A block of threads has warps[0] x warps[1] warps, each with
    tiles[0] x tiles[1] accumulators.

    Args:
        block: the matmul block, its loops as declared; all sizes divide.
        step: of k_outer: columns of A that are staged at once, a multiple of 16.
    """
    i, j, k = schedule.get_loops(block)
    (i, i_in), (j, j_in), (k, k_in) = (schedule.split(loop, [None, FRAGMENT]) for loop in (i, j, k))
    schedule.reorder(i, j, k, i_in, j_in, k_in)
    product = schedule.blockize(i_in)
    block_i, warp_i, i = schedule.split(i, [None, warps[0], tiles[0]])
    block_j, warp_j, j = schedule.split(j, [None, warps[1], tiles[1]])
    k_outer, k_inner = schedule.split(k, [None, step // FRAGMENT])
    schedule.reorder(block_i, block_j, warp_i, warp_j, k_outer, k_inner, i, j)
    warp = schedule.fuse(warp_i, warp_j)
    schedule.bind(block_i, "blockIdx.y")
    schedule.bind(block_j, "blockIdx.x")
    schedule.bind(warp, "threadIdx.y")
    schedule.unroll(i)
    schedule.unroll(j)
    store = schedule.cache_write(product, 0, "wmma.accumulator")
    schedule.reverse_compute_at(store, warp)
    load_a = schedule.cache_read(product, 0, "wmma.matrix_a")
    load_b = schedule.cache_read(product, 1, "wmma.matrix_b")
    schedule.compute_at(load_a, k_inner)
    schedule.compute_at(load_b, k_inner)
    return WarpTiles(product, load_a, load_b, store, k_outer, warps[0] * warps[1])


def tensor_cores(
    schedule: Any,
    product: Any,
    load_a: Any,
    load_b: Any,
    store: Any,
    k_outer: Any,
    intrinsics: dict[str, str],
) -> None:
    """Replace the loops of a tiled matmul by instructions of tensor cores.

    The loops are as `warp_tiles` leaves them, A and B staged. Decompose the reduction at k_outer,
    which makes a block that sets accumulators to zero. Then five blocks are tensorized, each from
    the loops of one fragment inwards: load_a, load_b and store, whose last two loops are split by
    16 first and reordered so that the 16 x 16 are innermost; the one inside the zeroing block; and
    the one inside `product`. Of a block that blockize made, schedule.get_child_blocks gives the
    one inside; its loops of 16 are the last of get_loops.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        product: the block of one product of fragments, made by blockize.
        load_a: the block that copies A to fragments.
        load_b: the block that copies B to fragments.
        store: the block that copies the sum to C.
        k_outer: the loop whose steps are staged.
        intrinsics: names for `tensorize` by what they do: "load_a", "load_b", "init", "compute",
            "store".
    """
    raise NotImplementedError("decompose_reduction, then schedule.tensorize five times")


def double_buffer(schedule: Any, copies: list[Any], k_outer: Any) -> None:
    """Worked: fetch the next tile while this one is used, as a software pipeline.

    In k_outer stand, in this order, the copies of A and B and the product. Each copy goes by way
    of registers (the first annotation), which makes five statements of three. Those of stage 1
    work on the tile that stage 0 fetched one step before. The order says how they stand in the
    loop: first the next tile is loaded to registers, then this tile is multiplied, while the
    loads are under way, and then what was loaded goes to shared memory. The second buffer is the
    registers: shared memory is needed once.

    Args:
        copies: the two blocks of `stage_shared`.
        k_outer: the loop they are in; the reduction is decomposed at it.
    """
    for copy in copies:
        schedule.annotate(copy, "tirx.manifest_shared_memory_local_stage", 1)
    schedule.annotate(k_outer, "software_pipeline_stage", [0, 0, 0, 0, 1])
    schedule.annotate(k_outer, "software_pipeline_order", [0, 3, 1, 4, 2])


def bind_threads_classic(
    tensors: list[Any], threads_y: int, threads_x: int
) -> Any:  # a tvm.te.Schedule
    """`bind_threads` in classic TVM's words.

    The loops of the stage of C become row blocks on blockIdx.y, column blocks on blockIdx.x,
    threads_y rows on threadIdx.y, threads_x columns on threadIdx.x, and inside them k. An axis is
    bound to what te.thread_axis("blockIdx.y") and the like return.

    Args:
        tensors: [A, B, C] as `matmul` of phase 1 returns them.
        threads_y: rows of C that a block of threads computes.
        threads_x: columns of C that it computes.

    Returns:
        The tvm.te.Schedule of te.create_schedule.
    """
    raise NotImplementedError("te.create_schedule, split, reorder, then four times bind")


def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """Show, count and check each kernel on the active engine; with a GPU, time them."""
    from tvm_practice import engines

    if engines.active() == engines.CLASSIC:
        return _classic_lane(steps)
    _show_transposition(steps, 4096)
    kernels = _Kernels(steps, 1024 if quick else 4096)
    kernels.add("bind", "one thread for each element of C.", _bound)
    if "bind" in kernels.schedules:
        kernels.add("x on rows", "what `bind` avoids: neighbours in x are rows.", _rows_on_x)
    kernels.add("shared", "the same threads; tiles of A and B through shared memory.", _staged)
    kernels.add("registers", "a thread adds up 16 x 4 elements of C.", _in_registers)
    kernels.add("pipeline", "the same, the next tiles fetched meanwhile.", _pipelined)
    kernels.add("tensor", "float16 in, on tensor cores, one warp 32 x 64.", _on_tensor_cores)
    kernels.add("tensor+pad", "the same, rows of the staged tiles padded.", _padded)
    kernels.add("tensor+pipe", "the same, the next tiles fetched meanwhile.", _tensor_pipelined)
    figures = kernels.figures(quick=quick)
    figures["measured"] = kernels.on_device()
    return figures


class _ToDo(Exception):
    """A kernel needs a function that is not written, or that failed."""


class _Calls:
    """The functions that a kernel is made of.

    The one it is about is the learner's; those it builds on are too, where they are written and
    right, and else the reference ones.

    Attributes:
        about: the last function that a kernel was about.
    """

    def __init__(self, steps: "Steps"):
        self.steps = steps
        self.about = ""

    def subject(self, name: str, *arguments: Any) -> Any:
        """Raises _ToDo if it is to do, or if it raised."""
        self.about = name
        found = self.steps.attempt(name, *arguments)
        if name in self.steps.todo or name in self.steps.failed:
            raise _ToDo
        return found

    def needed(self, name: str, *arguments: Any) -> Any:
        from solutions.labs import gpu_schedule as reference

        if name in self.steps.todo or name in self.steps.failed:
            return getattr(reference, name)(*arguments)
        return self.steps.attempt(name, *arguments)


_THREADS = (8, 32)  # a warp is one row of threads
_TILE = (16, 4)  # of a thread
_STEP = 8  # of k, in shared memory at once


def _sum_in_a_register(schedule: Any, block: Any) -> None:
    """Have a thread add up its element in a register, and write it to C once."""
    write_back = schedule.cache_write(block, 0, "local")
    schedule.reverse_compute_at(write_back, schedule.get_loops(block)[3])


def _bound(calls: _Calls, m: int, n: int, k: int) -> Any:
    schedule, block = declare(m, n, k)
    calls.subject("bind_threads", schedule, block, *_THREADS)
    _sum_in_a_register(schedule, block)
    return schedule


def _rows_on_x(calls: _Calls, m: int, n: int, k: int) -> Any:
    """`bind` with rows and columns exchanged: as many threads, as much work."""
    schedule, block = declare(m, n, k)
    i, j, k_loop = schedule.get_loops(block)
    block_i, thread_i = schedule.split(i, [None, 32])
    block_j, thread_j = schedule.split(j, [None, 8])
    schedule.reorder(block_i, block_j, thread_j, thread_i, k_loop)
    schedule.bind(block_i, "blockIdx.x")
    schedule.bind(block_j, "blockIdx.y")
    schedule.bind(thread_i, "threadIdx.x")
    schedule.bind(thread_j, "threadIdx.y")
    _sum_in_a_register(schedule, block)
    return schedule


def _staged(calls: _Calls, m: int, n: int, k: int) -> Any:
    schedule, block = declare(m, n, k)
    calls.needed("bind_threads", schedule, block, *_THREADS)
    _sum_in_a_register(schedule, block)
    k_outer, _ = schedule.split(schedule.get_loops(block)[-1], [None, 32])
    for index, lanes in ((0, 1), (1, 4)):
        calls.subject("stage_shared", schedule, block, index, k_outer, *_THREADS, lanes)
    return schedule


def _tiled(calls: _Calls, m: int, n: int, k: int) -> tuple[Any, list[Any], Any]:
    schedule, block = declare(m, n, k)
    k_outer, *readers = calls.subject(
        "register_tile_gpu", schedule, block, *_THREADS, *_TILE, _STEP
    )
    copies = [
        calls.needed("stage_shared", schedule, reader, 0, k_outer, *_THREADS, 4)
        for reader in readers
    ]
    schedule.decompose_reduction(block, k_outer)
    return schedule, copies, k_outer


def _in_registers(calls: _Calls, m: int, n: int, k: int) -> Any:
    return _tiled(calls, m, n, k)[0]


def _pipelined(calls: _Calls, m: int, n: int, k: int) -> Any:
    schedule, copies, k_outer = _tiled(calls, m, n, k)
    double_buffer(schedule, copies, k_outer)
    return schedule


def _tensorized(
    calls: _Calls, m: int, n: int, k: int, *, pad: bool = False
) -> tuple[Any, list[Any], Any]:
    from tvm_practice.labs.gpu.wmma import wmma_intrinsics

    schedule, block = declare(m, n, k, "float16")
    tiles = warp_tiles(schedule, block)
    copies = [
        calls.needed("stage_shared", schedule, reader, 0, tiles.k_outer, tiles.warps, 32, 8)
        for reader in (tiles.load_a, tiles.load_b)
    ]
    for copy in copies if pad else ():
        calls.needed("pad_shared", schedule, copy, 8)
    calls.subject("tensor_cores", schedule, *tiles[:5], wmma_intrinsics())
    return schedule, copies, tiles.k_outer


def _on_tensor_cores(calls: _Calls, m: int, n: int, k: int) -> Any:
    return _tensorized(calls, m, n, k)[0]


def _padded(calls: _Calls, m: int, n: int, k: int) -> Any:
    return _tensorized(calls, m, n, k, pad=True)[0]


def _tensor_pipelined(calls: _Calls, m: int, n: int, k: int) -> Any:
    schedule, copies, k_outer = _tensorized(calls, m, n, k, pad=True)
    double_buffer(schedule, copies, k_outer)
    return schedule


_ARCH = "sm_80"  # of the texts that are shown and saved
_SMALL = (256, 128, 64)  # m, n, k of the values on the CPU: two blocks, some steps of k


class _Kernels:
    """Kernels of one matmul: each shown, counted and checked as it comes.

    Attributes:
        size: of A, B and C, which are square.
        schedules: of that size, those that were right, by name.
        counts: what a block of each asks of memory.
        texts: their CUDA texts.
    """

    def __init__(self, steps: "Steps", size: int):
        print(f"\nMatmul of {size}x{size}x{size}: from one thread an element to tensor cores.")
        self.calls = _Calls(steps)
        self.size = size
        self.schedules: dict[str, Any] = {}
        self.counts: dict[str, Any] = {}
        self.texts: dict[str, str] = {}

    def add(self, name: str, what: str, make: Any) -> None:
        """Make a kernel, check its values on the CPU, show it and count its accesses."""
        from rich.console import Console

        from tvm_practice.labs.gpu.counting import count_accesses
        from tvm_practice.tvm_export.cuda import cuda_source, kernel_of, why_no_text

        before = len(self.calls.steps.todo) + len(self.calls.steps.failed)
        try:
            schedule = make(self.calls, self.size, self.size, self.size)
        except _ToDo:
            if len(self.calls.steps.todo) + len(self.calls.steps.failed) == before:
                print(f"       {name} needs it too.")
            return
        print(f"\n{name}: {what}")
        try:
            off = _off_on_cpu(make(self.calls, *_SMALL), _SMALL)
            counts = count_accesses(schedule.mod["main"])
            text = cuda_source(schedule.mod, _ARCH) if why_no_text() is None else ""
        except Exception as error:  # whatever TVM finds wrong with the learner's schedule
            lines = str(error).strip().splitlines() or ["(no message)"]
            self.calls.steps.failed[self.calls.about] = f"{type(error).__name__}: {lines[-1]}"
            Console().print(f"fails  {name}: {lines[-1]}", markup=False, highlight=False)
            return
        self.schedules[name], self.counts[name] = schedule, counts
        print(off)
        if not text:
            print(f"No CUDA text: {why_no_text()}.")
            return
        self.texts[name] = text
        file = self.calls.steps.folder / (re.sub(r"\W", "_", name) + ".cu")
        file.write_text(text)
        if name in ("bind", "shared"):
            _show_text(name, kernel_of(text))
        print(f"CUDA text: {file}, {len(kernel_of(text).splitlines())} lines")

    def figures(self, *, quick: bool) -> dict[str, Any]:
        """Print what the kernels ask of memory and how many fit; returns it."""
        from tvm_practice.labs.gpu.occupancy import GPUS

        if not self.counts:
            return {}
        traffic = _print_traffic(self.counts, self.size)
        kernels = {name: (self.counts[name].threads, text) for name, text in self.texts.items()}
        held = _print_occupancy(kernels, GPUS[1:2] if quick else GPUS)
        return {"size": self.size, "traffic": traffic, "resources": held}

    def on_device(self) -> dict[str, Any]:
        """Run, verify and time the kernels where there is a GPU; returns the times."""
        from tvm_practice.labs.gpu.running import beside_cublas, why_no_gpu

        reason = why_no_gpu()
        if reason is not None:
            print(
                f"\nNothing is timed: {reason}.\nOn a machine with a GPU this runs, "
                "verifies and times all of it beside cuBLAS:\n"
                "    python -m tvm_practice.labs.gpu_schedule --solutions"
            )
            return {}
        moved = {name: counts.global_bytes for name, counts in self.counts.items()}
        return beside_cublas(self.schedules, self.size, moved, self.calls.steps.folder)


def _off_on_cpu(schedule: Any, sizes: tuple[int, int, int]) -> str:
    """Run a kernel's loops on the CPU; a line that says how far it is from numpy.

    Raises:
        ValueError: it is too far.
    """
    import numpy as np

    from tvm_practice.labs.gpu.on_cpu import matmul_on_cpu

    m, n, k = sizes
    got, want = matmul_on_cpu(schedule, declare, m, n, k)
    off = float(np.abs(got - want).max())
    if not off <= 1e-5 * k:  # NaN is wrong too
        raise ValueError(f"at {m}x{n}x{k} its values differ from numpy's by {off:.3g}")
    return f"on the CPU, {m}x{n}x{k}: largest difference from numpy {off:.1e}"


def _show_text(name: str, text: str, lines: int = 40) -> None:
    """Print a CUDA text, in colour where the terminal has it."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.syntax import Syntax

    shown = text.splitlines()
    if len(shown) > lines:
        shown = [*shown[:lines], f"// … {len(shown) - lines} more lines"]
    code = Syntax("\n".join(shown), "cuda", background_color="default", word_wrap=True)
    Console().print(Panel(code, title=f"{name}, CUDA for {_ARCH}", title_align="left"))


def _show_transposition(steps: "Steps", n: int) -> None:
    """The worked example: three ways to transpose, counted."""
    from rich.console import Console
    from rich.table import Table

    from tvm_practice.labs.gpu.counting import count_accesses

    print(
        f"\nWorked example: a transposition of {n}x{n}, 32 x 32 a block. What a warp's 32\n"
        "threads ask for at once, as sectors of 32 bytes and wavefronts of the banks:"
    )
    table = Table("transposed", "read X", "write Y", "write tile", "read tile")
    for column in table.columns[1:]:
        column.justify = "right"

    def row(name: str, schedule: Any) -> None:
        counts = count_accesses(schedule.mod["main"])
        cells = {
            (each.buffer, each.write): f"{each.transactions / each.requests:.0f}"
            for each in counts.accesses
        }
        order = (("X", False), ("Y", True), ("X_shared", True), ("X_shared", False))
        table.add_row(name, *(cells.get(key, "") for key in order))

    row("directly", transposed(n, staged=False)[0])
    row("staged", transposed(n, staged=True)[0])
    schedule, copy = transposed(n, staged=True)
    steps.attempt("pad_shared", schedule, copy, 1)
    if "pad_shared" not in (*steps.todo, *steps.failed):
        row("staged, padded", schedule)
    Console().print(table)
    print(
        "32 floats in a row are 4 sectors; in a column, 32. A wavefront serves 32 threads\n"
        "whose words are in 32 banks; 32 wavefronts are one bank's, in turn."
    )


def _print_traffic(counts: dict[str, Any], size: int) -> dict[str, Any]:
    """Print what each kernel asks of memory; returns it by kernel."""
    from rich.console import Console
    from rich.table import Table

    print(
        f"\nCounted from the IR at {size}³, all blocks: bytes of the sectors that warps touch,\n"
        "the share of them that is needed, operations per byte; wavefronts of shared\n"
        "memory for 32 multiply-adds, and how many of them are bank conflicts."
    )
    table = Table("kernel", "global GB", "needed", "FLOP/byte", "wavefronts", "conflicts")
    for column in table.columns[1:]:
        column.justify = "right"
    found = {}
    for name, each in counts.items():
        memory, banks = each.total("global"), each.total("shared")
        work = size**3 / each.blocks / 32  # instructions of a block, if each did 32 multiply-adds
        found[name] = {
            "global_bytes": each.global_bytes,
            "needed": memory.fewest / memory.transactions,
            "intensity": 2 * size**3 / each.global_bytes,
            "wavefronts": banks.transactions / work,
            "conflicts": (banks.transactions - banks.fewest) / work,
        }
        row = found[name]
        table.add_row(
            name,
            f"{row['global_bytes'] / 1e9:.2f}",
            f"{row['needed']:.0%}",
            f"{row['intensity']:.3g}",
            f"{row['wavefronts']:.3f}",
            f"{row['conflicts']:.3f}",
        )
    Console().print(table)
    return found


def _print_occupancy(kernels: dict[str, tuple[int, str]], gpus: Sequence["Gpu"]) -> dict[str, Any]:
    """Print registers, shared memory and occupancy of (threads, CUDA text) by kernel."""
    from rich.console import Console
    from rich.table import Table

    from tvm_practice.labs.gpu.occupancy import occupancy
    from tvm_practice.tvm_export.cuda import CudaCompilerError, compiler, resources

    print(
        "\nWarps that a multiprocessor holds of the most it could, and what keeps more out"
        + (":" if compiler() else ".\nNo CUDA compiler is here: registers are not known.")
    )
    table = Table("kernel", "threads", *(f"{gpu.name}, {gpu.arch}" for gpu in gpus))
    found: dict[str, Any] = {}
    refused: dict[str, str] = {}
    for name, (threads, text) in kernels.items():
        cells, found[name] = [], {}
        for gpu in gpus:
            try:
                if compiler() is None or gpu.arch in refused:
                    raise CudaCompilerError(refused.get(gpu.arch, ""))
                took = resources(text, gpu.arch)
            except CudaCompilerError as error:
                refused.setdefault(gpu.arch, str(error))
                cells.append("-")
                continue
            held = occupancy(
                gpu, threads=threads, registers=took.registers, shared_bytes=took.shared_bytes
            )
            found[name][gpu.name] = {
                "registers": took.registers,
                "shared_bytes": took.shared_bytes,
                "stack_bytes": took.stack_bytes,
                "occupancy": held.share,
                "limit": held.limit,
            }
            cells.append(f"{held.share:.0%} {held.limit}\n{took.registers} registers")
        table.add_row(name, str(threads), *cells)
    if compiler() is None or not kernels:
        return {}
    Console().print(table)
    for reason in refused.values():
        Console().print(f"- is not known: {reason}", markup=False, highlight=False)
    return found


def _classic_lane(steps: "Steps") -> dict[str, Any]:
    """bind_threads_classic: its loops, its values, its CUDA text."""
    import numpy as np

    from solutions.te_basics import matmul
    from tvm_practice.labs.gpu.classic import cuda_source, run_on_cpu
    from tvm_practice.tvm_export.cuda import kernel_of
    from tvm_practice.viz.loop_nest import classic_statement, loop_nest, print_nest

    m, n, k = 100, 128, 64
    tensors = matmul(m, n, k)
    schedule = steps.attempt("bind_threads_classic", tensors, *_THREADS)
    if "bind_threads_classic" in (*steps.todo, *steps.failed):
        return {}
    print(f"\nbind_threads_classic: one thread for each element of a {m}x{n}x{k} matmul.")
    print_nest("bind_threads_classic", loop_nest(classic_statement(schedule)))
    rng = np.random.default_rng()
    a, b = (rng.standard_normal(shape, dtype="float32") for shape in ((m, k), (k, n)))
    off = float(np.abs(run_on_cpu(schedule, tensors, [a, b]) - a @ b).max())
    print(f"on the CPU: largest difference from numpy {off:.1e}")
    text = cuda_source(schedule, tensors, _ARCH)
    _show_text("bind_threads_classic", kernel_of(text))
    return {"max_error": off}


def report(results: dict[str, Any], folder: Path) -> None:
    """Save the figures; plot operations per byte and wavefronts of each kernel."""
    import json

    figures = {engine: lane.get("figures") or {} for engine, lane in results.items()}
    record = folder / "figures.json"
    record.write_text(json.dumps(figures, indent=2))
    traffic = figures.get("current", {}).get("traffic")
    if not traffic:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 1.4 + 0.35 * len(traffic)), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    names = list(traffic)
    rows = list(traffic.values())
    bars = left.barh(names, [row["intensity"] for row in rows])
    left.bar_label(bars, fmt="%.3g", padding=3)
    left.set_xscale("log")
    left.margins(x=0.2)
    left.invert_yaxis()
    left.set_xlabel("operations per byte of global memory (log scale)")
    conflicts = [row["conflicts"] for row in rows]
    useful = [row["wavefronts"] - row["conflicts"] for row in rows]
    right.barh(names, useful, label="needed")
    right.barh(names, conflicts, left=useful, label="bank conflicts")
    right.set_xlabel("wavefronts of shared memory for 32 multiply-adds")
    right.margins(x=0.1)
    right.legend(loc="lower right")
    figure.suptitle(f"Counted from the IR, matmul {figures['current']['size']}³")
    path = folder / "traffic.png"
    figure.savefig(path, dpi=120)
    print(f"\nplot: {path}")


main = phase_command("labs.gpu_schedule", "Lab 1: GPU schedules, from threads to tensor cores.")

if __name__ == "__main__":
    main()
