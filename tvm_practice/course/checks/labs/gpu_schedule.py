"""Lab 1's exercises and how they are graded: loops, what they ask of memory, values."""

from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.course.catalog import Phase
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_close,
    fail,
    fresh_rng,
    path_to,
    show_nest,
    statements,
    varied,
)
from tvm_practice.course.nests import allocated, expect_axes, shared_loops
from tvm_practice.engines import CLASSIC, CURRENT
from tvm_practice.labs.gpu.matmul import declare
from tvm_practice.labs.gpu.wmma import warp_tiles
from tvm_practice.viz.loop_nest import (
    Loop,
    Node,
    Statement,
    classic_statement,
    format_nest,
    loop_nest,
    paths,
)

PHASE = Phase(
    number=1,
    module="labs.gpu_schedule",
    title="GPU schedules",
    lanes=(CURRENT, CLASSIC),
    builds_on=("te_basics.matmul",),
    question=(
        "Two kernels do the same multiply-adds with the same number of threads. What makes one "
        "ten times as fast, and how much of that can be seen without a GPU?"
    ),
)

Function = Callable[..., Any]


def _reference() -> Any:
    from solutions.labs import gpu_schedule

    return gpu_schedule


def _nest(schedule: Any) -> list[Node]:
    return loop_nest(schedule.mod["main"])


def _counts(schedule: Any) -> Any:
    from tvm_practice.labs.gpu.counting import count_accesses

    return count_accesses(schedule.mod["main"])


def _expect_product(schedule: Any, m: int, n: int, k: int, name: str = "C") -> None:
    """The schedule's loops, run on the CPU thread after thread, give numpy's product."""
    from tvm_practice.labs.gpu.on_cpu import matmul_on_cpu

    got, want = matmul_on_cpu(schedule, m, n, k, name=name)
    expect_close(got, want, what=f"{name} of {m}x{k} by {k}x{n}", look="the primitives")


def _bindings(loops: Sequence[Loop]) -> list[tuple[str, int | str]]:
    return [(loop.thread or loop.kind, loop.extent) for loop in loops]


def _expect_bound(loops: Sequence[Loop], wanted: list[tuple[str, int]], look: str) -> None:
    expect(
        _bindings(loops) == wanted,
        expected="the loops " + " > ".join(f"{name}({extent})" for name, extent in wanted),
        seen=_shown(loops),
        look=look,
    )


def _shown(loops: Sequence[Loop]) -> str:
    return " > ".join(f"{name}({extent})" for name, extent in _bindings(loops)) or "no loops"


def _expect_no_waste(schedule: Any, buffer: str, *, write: bool, look: str) -> None:
    """The requests of a warp for a buffer of global memory touch no more sectors than they must."""
    count = _counts(schedule).of(buffer, write=write)
    expect(
        count.transactions == count.fewest,
        expected=f"the 32 threads of a warp {'write' if write else 'read'} neighbouring elements "
        f"of {buffer}: {count.fewest / count.requests:.3g} sectors a request",
        seen=f"{count.transactions / count.requests:.3g} sectors a request",
        look=look,
    )


_BOUND = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")


@PHASE.exercise(
    "bind_threads",
    engine=CURRENT,
    title="give each element of C a thread",
    hints=(
        "The loops are tiled as in phase 2: a thread block computes a tile. Then each loop but "
        "k is bound, as in transposed of labs/gpu/worked.py.",
        "Neighbours in threadIdx.x run in step: columns are x, because neighbouring columns are "
        "neighbours in memory. schedule.split(i, [None, threads_y]), (j, [None, threads_x]).",
        "reorder(block_i, block_j, thread_i, thread_j, k), then bind block_i to blockIdx.y, "
        "block_j to blockIdx.x, thread_i to threadIdx.y, thread_j to threadIdx.x.",
    ),
    looks_like="""
        for i_0 in blockIdx.y(8):
            for j_0 in blockIdx.x(3):
                for i_1 in threadIdx.y(8):
                    for j_1 in threadIdx.x(32):
                        for k in serial(32):
                            C: C <- A, B, C
    """,
    demonstrate=lambda bind_threads: _after(bind_threads, 64, 96, 32, 8, 32),
)
def check_bind_threads(bind_threads: Function) -> None:
    # One thread along an axis, and more than a warp. The block has another name in each case.
    threads = [(8, 32), *((1, each) for each in draw_distinct(1, [40, 64, 96]))]
    threads += [(each, 1) for each in draw_distinct(1, [34, 40, 48])]
    threads += [(each, each) for each in draw_distinct(1, [4, 8, 16])]  # the same along both
    names = ("C", "D", "product", "C")
    for (m, n, k), (across, along), name in zip(  # sizes that divide, sizes that do not
        ((24, 96, 13), (26, 70, 13), (37, 45, 1), (48, 80, 2)), threads, names, strict=True
    ):
        schedule, block = declare(m, n, k, name=name)
        bind_threads(schedule, block, across, along)
        loops = path_to(_nest(schedule), name, look="the primitives")
        missing = [tag for tag in _BOUND if tag not in [loop.thread for loop in loops]]
        expect(
            not missing,
            expected=f"loops of {name} bound to {', '.join(_BOUND)}",
            seen=f"{_shown(loops)}: nothing is bound to {', '.join(missing)}",
            look="schedule.bind(loop, name), once for each of the four",
        )
        for matrix in "AB" if m == 24 else "":
            _expect_no_waste(
                schedule,
                matrix,
                write=False,
                look="the loop bound to threadIdx.x: columns, so that neighbouring threads read "
                "neighbours in a row of B and the same element of A",
            )
        _expect_bound(
            loops,
            [
                *zip(_BOUND, (-(-m // across), -(-n // along), across, along), strict=True),
                ("serial", k),
            ],
            "the factors of split (threads_y rows, threads_x columns), the order of reorder, "
            "and the name given to each loop",
        )
        if across != along:
            _expect_product(schedule, m, n, k, name)
    for m, n, k, across, along in varied(37, 45, 13, 5, 9):
        schedule, block = declare(m, n, k)
        bind_threads(schedule, block, across, along)
        _expect_bound(
            path_to(_nest(schedule), "C", look="the primitives"),
            [
                *zip(_BOUND, (-(-m // across), -(-n // along), across, along), strict=True),
                ("serial", k),
            ],
            "the same primitives for all sizes",
        )
        look = "rows along y and columns along x, even where both have the same extent"
        expect_axes(schedule, block, f"i*{across} j*{along} i j k", look=look)


def _after(function: Function, m: int, n: int, k: int, *arguments: int) -> str:
    schedule, block = declare(m, n, k)
    function(schedule, block, *arguments)
    return format_nest(_nest(schedule))


def _to_stage(
    m: int, n: int, k: int, step: int, *, threads: tuple[int, int] = (8, 32), halves: bool = False
) -> tuple[Any, Any, Any]:
    """A matmul with a thread for each element and k split: schedule, block, k_outer.

    With `halves`, a loop over two halves of k is around k_outer.
    """
    schedule, block = declare(m, n, k)
    _reference().bind_threads(schedule, block, *threads)
    k_loop = schedule.get_loops(block)[-1]
    if halves:
        _, k_loop = schedule.split(k_loop, [2, None])
    k_outer, _ = schedule.split(k_loop, [None, step])
    return schedule, block, k_outer


def _three_to_stage(m: int, n: int, k: int, step: int) -> tuple[Any, Any, Any]:
    """As `_to_stage`, of C[i, j] = sum over k of A[i, k] * B[k, j] * E[i, k]."""
    import tvm
    from tvm import te

    A, B, E = (te.placeholder(shape, name=name) for name, shape in zip(
        "ABE", ((m, k), (k, n), (m, k)), strict=True
    ))  # fmt: skip
    r = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j] * E[i, r], axis=r), name="C")
    function = te.create_prim_func([A, B, E, C]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    block = schedule.get_sblock("C")
    _reference().bind_threads(schedule, block, 8, 32)
    k_outer, _ = schedule.split(schedule.get_loops(block)[-1], [None, step])
    return schedule, block, k_outer


@PHASE.exercise(
    "stage_shared",
    engine=CURRENT,
    title="fetch a tile to shared memory, all threads together",
    hints=(
        "transposed of labs/gpu/worked.py copies a tile to shared memory. New: the existing "
        "threads share the copy's loops, whatever the tile's width.",
        "schedule.cache_read(block, index, 'shared') returns the copy, compute_at moves it into "
        "k_outer. Its own loops are the last two of get_loops(copy). Fused, they run over the "
        "tile row by row; split the fused loop by [None, threads_y, threads_x, lanes].",
        "schedule.bind(second, 'threadIdx.y'), schedule.bind(third, 'threadIdx.x'), "
        "schedule.vectorize(last), return the copy. With the None part outermost, the warp's "
        "threads read neighbouring pieces at each of its steps.",
    ),
    looks_like="""
        for i_0 in blockIdx.y(8):
            for j_0 in blockIdx.x(3):
                for i_1 in threadIdx.y(8):
                    for j_1 in threadIdx.x(32):
                        for k_0 in serial(2):
                            for ax0_ax1_fused_0 in serial(1):
                                for ax0_ax1_fused_1 in threadIdx.y(8):
                                    for ax0_ax1_fused_2 in threadIdx.x(32):
                                        for ax0_ax1_fused_3 in vectorized(1):
                                            A_shared: A_shared <- A
                            for ax0_ax1_fused_0 in serial(1):
                                for ax0_ax1_fused_1 in threadIdx.y(8):
                                    for ax0_ax1_fused_2 in threadIdx.x(32):
                                        for ax0_ax1_fused_3 in vectorized(4):
                                            B_shared: B_shared <- B
                            for k_1 in serial(32):
                                C: C <- A_shared, B_shared, C
    """,
    demonstrate=lambda stage_shared: _staged(stage_shared),
)
def check_stage_shared(stage_shared: Function) -> None:
    m, n, k = 16, 64, 64
    for index, name, lanes in ((0, "A", 1), (1, "B", 4)):
        schedule, block, k_outer = _to_stage(m, n, k, 32)
        copy = stage_shared(schedule, block, index, k_outer, 8, 32, lanes)
        _expect_staged(schedule, copy, name, lanes, tile=(256, 1024)[index])
        _expect_product(schedule, m, n, k)
    # One row of more threads than a warp, vectors of two, and another loop around k_outer.
    schedule, block, k_outer = _to_stage(m, n, k, 16, threads=(1, 64), halves=True)
    copy = stage_shared(schedule, block, 1, k_outer, 1, 64, 2)
    _expect_staged(schedule, copy, "B", 2, tile=1024, threads=(1, 64), k_at=len(_BOUND) + 1)
    _expect_product(schedule, m, n, k)
    # The third input of a block.
    schedule, block, k_outer = _three_to_stage(m, n, k, 32)
    copy = stage_shared(schedule, block, 2, k_outer, 8, 32, 1)
    _expect_staged(schedule, copy, "E", 1, tile=256)
    # Both, of a matmul whose blocks that read are copies to registers.
    schedule, block = declare(32, 64, 16)
    k_outer, *readers = _reference().register_tile_gpu(schedule, block, 4, 8, 4, 4, 8)
    for reader, name, tile, lanes in zip(readers, "AB", (128, 256), (4, 8), strict=True):
        copy = stage_shared(schedule, reader, 0, k_outer, 4, 8, lanes)
        _expect_staged(schedule, copy, name, lanes, tile=tile, threads=(4, 8))
    schedule.decompose_reduction(block, k_outer)
    _expect_product(schedule, 32, 64, 16)


def _staged(stage_shared: Function) -> str:
    schedule, block, k_outer = _to_stage(64, 96, 64, 32)
    for index, lanes in ((0, 1), (1, 4)):
        stage_shared(schedule, block, index, k_outer, 8, 32, lanes)
    return format_nest(_nest(schedule))


def _expect_staged(
    schedule: Any,
    copy: Any,
    name: str,
    lanes: int,
    *,
    tile: int,
    threads: tuple[int, int] = (8, 32),
    k_at: int = len(_BOUND),
) -> None:
    """A tile of `tile` elements of the matrix is fetched by all threads, inside loop `k_at`."""
    own = _expect_copied_at_k_outer(schedule, name, k_at)
    across, along = threads
    wanted = [
        ("serial", tile // (across * along * lanes)), ("threadIdx.y", across),
        ("threadIdx.x", along), ("vectorized", lanes),
    ]  # fmt: skip
    wanted = [pair for pair in wanted if pair[1] != 1]
    bound = [pair for pair in _bindings(own) if pair[1] != 1]
    expected = "the copy's loops " + " > ".join(f"{each}({extent})" for each, extent in wanted)
    expect(
        sorted(map(str, bound)) == sorted(map(str, wanted)),
        expected=expected,
        seen=_shown(own),
        look="fuse of both loops of the tile, the factors of split, vectorize of the last part",
    )
    look = (
        "the order of the factors: [None, threads_y, threads_x, lanes], so that the threads of a "
        "warp are neighbours at each step"
    )
    if along == 32:
        _expect_no_waste(schedule, name, write=False, look=look)
    expect(bound == wanted, expected=expected, seen=_shown(own), look=look)
    expect(
        _name(schedule, copy) == f"{name}_shared",
        expected=f"the block of the copy, {name}_shared, returned",
        seen=_name(schedule, copy),
        look="the return statement",
    )
    if lanes > 1:
        steps = _lane_steps(schedule, copy)
        expect(
            steps == (0, 1),
            expected="a thread's lanes next to each other: one row, the next column",
            seen=f"{steps[0]} rows and {steps[1]} columns from one lane to the next",
            look=look,
        )


def _expect_copied_at_k_outer(schedule: Any, name: str, k_at: int) -> tuple[Loop, ...]:
    """The matrix is copied to shared memory inside k_outer, loop `k_at`, by all threads.

    Returns:
        The copy's own loops, those inside k_outer.
    """
    nest = _nest(schedule)
    staged = f"{name}_shared"
    scopes = {name: str(each.scope()) for name, each in allocated(schedule).items()}
    expect(
        scopes.get(staged) == "shared",
        expected=f'{name} is copied to a buffer of scope "shared"',
        seen=", ".join(f"{buffer}: {scope}" for buffer, scope in scopes.items()) or "no buffers",
        look='schedule.cache_read(block, index, "shared"), and which index',
    )
    return _expect_by_all_threads(nest, staged, k_at, "schedule.compute_at(copy, k_outer)")


def _expect_by_all_threads(
    nest: list[Node], staged: str, k_at: int, compute_at: str
) -> tuple[Loop, ...]:
    """The buffer is written inside loop `k_at` by all threads; the copy's own loops."""
    loops = next(path for path, each in paths(nest) if each.writes == staged)
    readers = [path for path, each in paths(nest) if staged in each.reads]
    shared = shared_loops(loops, readers[0])
    expect(
        shared == k_at + 1,
        expected=f"{staged} is written inside k_outer, before the statement that reads it",
        seen=f"written in {_shown(loops)}, read in {_shown(readers[0])}",
        look=compute_at,
    )
    own = loops[shared:]
    tags = [loop.thread for loop in own if loop.thread]
    expect(
        sorted(tags) == ["threadIdx.x", "threadIdx.y"],
        expected="the copy's loops are bound to threadIdx.y and threadIdx.x",
        seen=f"{_shown(own)}: "
        + ("every thread fetches the whole tile" if not tags else "some threads fetch the same"),
        look="schedule.bind of two of the four loops that split makes",
    )
    return own


def _lane_steps(schedule: Any, copy: Any) -> tuple[int, ...]:
    """How many rows and columns the second lane of a copy is from its first."""
    import tvm

    around = [schedule.get(loop) for loop in schedule.get_loops(copy)]

    def at(lane: int) -> list[int]:
        analyzer = tvm.sym.Analyzer()
        for loop in around:
            value = lane if loop.same_as(around[-1]) else 0
            analyzer.bind(loop.loop_var, tvm.tirx.const(value, str(loop.loop_var.ty.dtype)))
        return [int(analyzer.simplify(value)) for value in around[-1].body.iter_values]

    return tuple(second - first for first, second in zip(at(0), at(1), strict=True))


def _name(schedule: Any, block: Any) -> str:
    """Name of the block or loop behind a handle, or its type if it is no handle."""
    try:
        found = schedule.get(block)
    except Exception:  # of TVM or of Python, whatever was given
        return type(block).__name__
    return str(getattr(found, "name_hint", type(block).__name__))


@PHASE.exercise(
    "register_tile_gpu",
    engine=CURRENT,
    title="give each thread a tile of C in registers",
    hints=(
        "i and j are split in three: thread blocks, threads, and the work of one thread. k is "
        "split in two. The accumulator is as in phase 2's register_block; two more buffers hold "
        "the operands.",
        "cache_write(block, 0, 'local') for C, cache_read(block, index, 'local') for A and B; "
        "split(i, [None, threads_y, rows]), split(j, [None, threads_x, columns]), split(k, "
        "[None, step]); all blocks and threads before k_outer and k_inner in the order, the "
        "thread's own loops last. reverse_compute_at(write_back, the loop on threadIdx.x).",
        "compute_at(both copies, k_inner); vectorize get_loops(...)[-1] of the write-back and of "
        "B's copy, unroll the thread's own two loops, return (k_outer, copy of A, copy of B).",
    ),
    looks_like="""
        for i_0 in blockIdx.y(2):
            for j_0 in blockIdx.x(1):
                for i_1 in threadIdx.y(4):
                    for j_1 in threadIdx.x(32):
                        for k_0 in serial(4):
                            for k_1 in serial(8):
                                for ax0 in serial(8):
                                    A_local: A_local <- A
                                for ax0 in vectorized(4):
                                    B_local: B_local <- B
                                for i_2 in unrolled(8):
                                    for j_2 in unrolled(4):
                                        C: C_local <- A_local, B_local, C_local
                        for ax0 in serial(8):
                            for ax1 in vectorized(4):
                                C_local: C <- C_local
    """,
    demonstrate=lambda register_tile_gpu: _after(register_tile_gpu, 64, 128, 32, 4, 32, 8, 4, 8),
)
def check_register_tile_gpu(register_tile_gpu: Function) -> None:
    for name, threads_y, threads_x, rows, columns, step in (
        ("C", 4, 8, 3, 4, 9), ("D", 1, 36, 9, 2, 3), ("C", 8, 1, 1, 2, 2),
        # Equal ones, odd ones, and large ones: these are not run.
        ("C", 4, 4, 4, 4, 4), ("C", 16, 16, 2, 2, 16), ("C", 3, 5, 4, 2, 7), ("C", 9, 3, 2, 4, 64),
    ):  # fmt: skip
        m, n, k = 2 * threads_y * rows, 3 * threads_x * columns, 4 * step
        schedule, block = declare(m, n, k, name=name)
        returned = register_tile_gpu(schedule, block, threads_y, threads_x, rows, columns, step)
        nest = _nest(schedule)
        loops, update = _product(nest, name)
        _expect_registers(schedule, update)
        _expect_bound(
            loops,
            [
                *zip(_BOUND, (2, 3, threads_y, threads_x), strict=True),
                ("serial", 4), ("serial", step), ("unrolled", rows), ("unrolled", columns),
            ],
            "the factors of the three splits, the order of reorder, bind, and unroll of the "
            "thread's own two loops",
        )  # fmt: skip
        _expect_copies(nest, loops, columns)
        _expect_write_back(nest, loops, columns, name)
        _expect_returned(schedule, block, returned)
        if rows > 1 and rows % 2:
            _expect_product(schedule, m, n, k, name)


def _product(nest: list[Node], name: str) -> tuple[tuple[Loop, ...], Statement]:
    """The statement that multiplies, and its loops."""
    names = [each.name for each in statements(nest)]
    expect(
        f"{name}_update" not in names,
        expected="the reduction is not decomposed yet: the caller does that after staging A and B",
        seen=f"statements {', '.join(names)}",
        look="decompose_reduction, which the caller does",
    )
    for loops, each in paths(nest):
        if each.name == name and len(each.reads) > 1:
            return loops, each
    raise fail(
        f"a statement {name} that multiplies",
        show_nest(nest),
        "the primitive that changes the block",
    )


def _expect_registers(schedule: Any, update: Statement) -> None:
    scopes = {name: str(each.scope()) for name, each in allocated(schedule).items()}
    not_local = [
        name for name in {update.writes, *update.reads} if scopes.get(name, "global") != "local"
    ]
    expect(
        not not_local,
        expected='the product reads and writes buffers of scope "local" only: registers',
        seen=f"{update.name}: {update.writes} <- {', '.join(update.reads)}; not local: "
        f"{', '.join(sorted(not_local))}",
        look='cache_write(block, 0, "local"), and cache_read(block, index, "local") of both',
    )


def _expect_copies(nest: list[Node], loops: tuple[Loop, ...], columns: int) -> None:
    """A and B are copied to registers inside k_inner; B's copy by vectors."""
    k_inner = 6  # loops from the outermost to k_inner
    for name in "AB":
        own = next((path for path, each in paths(nest) if each.reads == (name,)), None)
        expect(
            own is not None and shared_loops(own, loops) == k_inner,
            expected=f"{name} is copied to registers at each k_inner",
            seen=f"copied in {_shown(own or ())}, multiplied in {_shown(loops)}",
            look="schedule.compute_at(copy, k_inner): outside it, the registers of all its steps "
            "are needed at once; inside, nothing is used twice",
        )
        assert own is not None
        last = own[-1]
        expect(
            name == "A" or (last.kind, last.extent) == ("vectorized", columns),
            expected="the last loop of B's copy is vectorized: one load for the row of the tile",
            seen=_shown(own),
            look="schedule.vectorize(schedule.get_loops(copy)[-1])",
        )


def _expect_write_back(nest: list[Node], loops: tuple[Loop, ...], columns: int, name: str) -> None:
    ends = [path for path, each in paths(nest) if each.writes == name]
    expect(
        len(ends) == 1 and shared_loops(ends[0], loops) == len(_BOUND),
        expected=f"{name} is written once per thread: inside threadIdx.x, after k_outer has ended",
        seen=f"written in {_shown(ends[0] if ends else ())}, added up in {_shown(loops)}",
        look="reverse_compute_at(the write-back block, the loop bound to threadIdx.x)",
    )
    expect(
        (ends[0][-1].kind, ends[0][-1].extent) == ("vectorized", columns),
        expected="the last loop of the write-back is vectorized",
        seen=_shown(ends[0]),
        look="schedule.vectorize(schedule.get_loops(write_back)[-1])",
    )


def _expect_returned(schedule: Any, block: Any, returned: Any) -> None:
    is_three = isinstance(returned, tuple | list) and len(returned) == 3
    expect(
        is_three,
        expected="(k_outer, the copy of A, the copy of B) returned",
        seen=type(returned).__name__,
        look="the return statement",
    )
    k_outer, *copies = returned
    names = [_name(schedule, each) for each in copies]
    expect(
        names == ["A_local", "B_local"],
        expected="the blocks A_local and B_local returned, in this order",
        seen=", ".join(names),
        look="the return statement: the blocks from cache_read",
    )
    loop = schedule.get(schedule.get_loops(block)[4])
    given = schedule.get(k_outer)
    expect(
        hasattr(given, "loop_var") and given.loop_var.same_as(loop.loop_var),
        expected="k_outer returned first",
        seen=str(getattr(given, "loop_var", type(given).__name__)),
        look="the return statement: the first part of split(k, [None, step])",
    )


@PHASE.exercise(
    "pad_shared",
    engine=CURRENT,
    title="pad the rows of a staged tile against bank conflicts",
    hints=(
        "One primitive: storage_align sets the distance of neighbours along an axis in a "
        "block's output buffer. Along which axis are rows neighbours?",
        "storage_align(block, buffer_index, axis, factor, offset): the distance is offset more "
        "than a multiple of factor. The last axis is -1; its elements are adjacent.",
        "schedule.storage_align(copy, 0, axis=-2, factor=32, offset=offset).",
    ),
    looks_like="""
        offset 0: 32 wavefronts to read a column, 4096 bytes
        offset 1: 1 wavefronts to read a column, 4224 bytes
        offset 2: 2 wavefronts to read a column, 4352 bytes
        offset 4: 4 wavefronts to read a column, 4608 bytes
    """,
    demonstrate=lambda pad_shared: _wavefronts(pad_shared),
)
def check_pad_shared(pad_shared: Function) -> None:
    from tvm_practice.labs.gpu.on_cpu import run_on_cpu

    schedule, copy = _staged_transposition(64)
    pad_shared(schedule, copy, 1)
    counts = _counts(schedule)
    read = counts.of("X_shared", write=False)
    expect(
        read.transactions == read.requests,
        expected="32 threads that read a column of the tile find it in 32 banks: 1 wavefront",
        seen=f"{read.transactions / read.requests:.3g} wavefronts a request: the tile takes "
        f"{counts.shared_bytes} bytes",
        look="the axis (rows are -2), the factor (32 banks) and the offset of storage_align",
    )
    for offset in (
        1, *draw_distinct(1, [2, 3, 4, 5, 7, 8]), *draw_distinct(1, [9, 12, 20, 31])
    ):  # fmt: skip
        schedule, copy = _staged_transposition(64)
        pad_shared(schedule, copy, offset)
        taken, wanted = _counts(schedule).shared_bytes, 32 * (32 + offset) * 4
        expect(
            taken == wanted,
            expected=f"with offset {offset}, 32 rows of {32 + offset} floats: {wanted} bytes",
            seen=f"{taken} bytes",
            look="factor=32: rows are padded to the next multiple of 32 plus offset, no further",
        )
        x = fresh_rng().standard_normal((64, 64), dtype="float32")
        expect_close(
            run_on_cpu(schedule.mod, [x], (64, 64)), x.T, what="the transposition",
            look="the primitive",
        )  # fmt: skip
    # Of tiles of 48 columns, 16 too many for one multiple of 32.
    for offset in (1, 0):
        schedule, copy = _staged_transposition(96, columns=48)
        pad_shared(schedule, copy, offset)
        taken, wanted = _counts(schedule).shared_bytes, 32 * (64 + offset) * 4
        expect(
            taken == wanted,
            expected=f"of 32 rows of 48 floats each begins {offset} past a multiple of 32: "
            f"{64 + offset} floats apart",
            seen=f"{taken} bytes, not {wanted}",
            look="factor=32, the number of banks, for each offset",
        )
    # A tile that is written by vectors of four: rows stay where vectors may begin.
    schedule, block, k_outer = _to_stage(16, 64, 64, 32)
    copy = _reference().stage_shared(schedule, block, 1, k_outer, 8, 32, 4)
    pad_shared(schedule, copy, 4)
    written = _counts(schedule).of("B_shared", write=True)
    expect(
        written.misaligned == 0,
        expected="with offset 4, vectors of 4 floats begin at multiples of 16 bytes",
        seen=f"{written.misaligned} of {written.requests} requests do not: a GPU stops with an "
        "error there",
        look="the offset is that of the argument",
    )


def _staged_transposition(n: int, *, columns: int = 32) -> tuple[Any, Any]:
    """Y[i, j] = X[j, i], whose warps read columns of a tile of X: schedule, block of the copy."""
    import tvm
    from tvm import te

    X = te.placeholder((n, n), name="X")
    Y = te.compute((n, n), lambda i, j: X[j, i], name="Y")
    function = te.create_prim_func([X, Y]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    block = schedule.get_sblock("Y")
    i, j = schedule.get_loops(block)
    block_i, step, thread_i = schedule.split(i, [None, columns // 8, 8])
    block_j, thread_j = schedule.split(j, [None, 32])
    schedule.reorder(block_i, block_j, step, thread_i, thread_j)
    for loop, name in zip((block_i, block_j, thread_i, thread_j), _BOUND, strict=True):
        schedule.bind(loop, name)
    return schedule, _reference().stage_shared(schedule, block, 0, block_j, 8, 32, 1)


def _wavefronts(pad_shared: Function) -> str:
    lines = []
    for offset in (0, 1, 2, 4):
        schedule, copy = _staged_transposition(64)
        if offset:
            pad_shared(schedule, copy, offset)
        counts = _counts(schedule)
        read = counts.of("X_shared", write=False)
        lines.append(
            f"offset {offset}: {read.transactions // read.requests} wavefronts to read a column, "
            f"{counts.shared_bytes} bytes"
        )
    return "\n".join(lines)


def _fragments(
    warps: tuple[int, int] = (2, 1), fragments: tuple[int, int] = (1, 2), *, around: int = 0
) -> tuple[Any, Any]:
    """A float16 matmul of 64x64x32 tiled for tensor cores, its inputs staged.

    So many loops of one iteration as `around` are around all others.
    """
    schedule, block = declare(64, 64, 32, "float16")
    tiles = warp_tiles(schedule, block, warps=warps, tiles=fragments, step=16)
    for reader in (tiles.load_a, tiles.load_b):
        _reference().stage_shared(schedule, reader, 0, tiles.k_outer, tiles.warps, 32, 8)
    for _ in range(around):
        schedule.add_unit_loop(schedule.get_loops(tiles.product)[0])
    return schedule, tiles


_INTRINSICS = {
    "tvm_load_matrix_sync": "load_a and load_b",
    "tvm_fill_fragment": "the block inside what decompose_reduction returns",
    "tvm_mma_sync": "the block inside product",
    "tvm_store_matrix_sync": "store",
}


def _renamed() -> dict[str, str]:
    """The intrinsics for `tensorize` by purpose, under names drawn anew, in any order."""
    from tvm_practice.labs.gpu.wmma import wmma_intrinsics

    known = wmma_intrinsics()
    return {use: _known_as(known[use]) for use in draw_distinct(len(known), list(known))}


def _expect_instructions(schedule: Any, names: dict[str, str], *purposes: str) -> None:
    """Just the blocks of these purposes are tensorized, by the names given, and C is right."""
    from tvm_practice.labs.gpu.on_cpu import matmul_on_cpu

    used = [str(each.attrs[0]) for each in schedule.trace.insts if each.kind.name == "Tensorize"]
    uses = {name: use for use, name in names.items()}
    expect(
        sorted(used) == sorted(names[use] for use in purposes),
        expected=f"tensorize by the names given, once each for {', '.join(purposes)}",
        seen=", ".join(uses.get(each, each) for each in used) or "none",
        look=f'intrinsics["{purposes[0]}"] and so on, in schedule.tensorize',
    )
    got, want = matmul_on_cpu(schedule, 64, 64, 32)
    expect_close(got, want, what="C without tensorize", look="the primitives", atol=1e-3)


@PHASE.exercise(
    "fragment_loops",
    engine=CURRENT,
    step_of="tensor_cores",
    title="put the loops of one fragment innermost",
    hints=(
        "The same as phase 2's tile, for a block of two loops: which two of four loops count the "
        "fragments?",
        "schedule.get_loops(block)[-2:] are rows and columns; each is split by [None, 16].",
        "schedule.reorder(row_tiles, column_tiles, rows, columns), then return rows, the third.",
    ),
    looks_like="""
        A fragments: 2 x 1 of 16 x 16
        B fragments: 1 x 4 of 16 x 16
        C fragments: 2 x 4 of 16 x 16
    """,
    demonstrate=lambda fragment_loops: _shown_fragments(fragment_loops),
)
def check_fragment_loops(fragment_loops: Function) -> None:
    from tvm_practice.labs.gpu.on_cpu import matmul_on_cpu

    names = _renamed()
    for use, blocks in (("load_a", (2, 1)), ("load_b", (1, 4)), ("store", (2, 4))):
        schedule, block = _to_split(use)
        outside = len(schedule.get_loops(block)) - 2
        before = _kinds(schedule, block)[:outside]
        returned = fragment_loops(schedule, block)
        loops = schedule.get_loops(block)
        extents = [int(schedule.get(loop).extent) for loop in loops[outside:]]
        expect(
            extents == [*blocks, 16, 16],
            expected=f"the last loops of {use}: {blocks[0]} row tiles, {blocks[1]} column "
            "tiles, 16 rows, 16 columns",
            seen=", ".join(map(str, extents)),
            look="split by [None, 16], and the order of the four in schedule.reorder",
        )
        expect(
            _is_loop(schedule, returned, loops[-2]),
            expected="the loop of 16 rows returned",
            seen=_name(schedule, returned),
            look="the return statement: the inner part of the rows",
        )
        kinds = _kinds(schedule, block)
        expect(
            kinds == [*before, *["serial"] * 4],
            expected=f"loops of {use} that are {', '.join([*before, *['serial'] * 4])}: the "
            "outer loops stay as they are, and the four are only split and reordered",
            seen=", ".join(kinds),
            look="a primitive other than split and reorder",
        )
        try:
            schedule.tensorize(returned, names[use])
        except Exception as error:
            raise fail(
                f"loops that tensorize recognizes as a fragment of {use}",
                "tensorize refuses them: the two loops of 16 are in another order, or are other "
                "loops",
                "schedule.reorder(row_tiles, column_tiles, rows, columns)",
            ) from error
        got, want = matmul_on_cpu(schedule, 64, 64, 32)
        expect_close(got, want, what="C", look="the primitives", atol=1e-3)


def _kinds(schedule: Any, block: Any) -> list[str]:
    """The kinds of a block's loops, or the threads that they are bound to."""
    name = _name(schedule, block)
    return [loop.thread or loop.kind for loop in path_to(_nest(schedule), name, look="the block")]


def _to_split(use: str) -> tuple[Any, Any]:
    """A matmul whose copies are of several fragments: the schedule, the block of one copy."""
    schedule, tiles = _fragments((1, 1), (2, 4))
    return schedule, getattr(tiles, use)


def _is_loop(schedule: Any, returned: Any, wanted: Any) -> bool:
    """Whether both are handles of the same loop."""
    try:
        seen = schedule.get(returned).loop_var
    except Exception:  # of TVM or of Python, whatever was given
        return False
    return bool(seen.same_as(schedule.get(wanted).loop_var))


def _shown_fragments(fragment_loops: Function) -> str:
    lines = []
    for matrix, use in (("A", "load_a"), ("B", "load_b"), ("C", "store")):
        schedule, block = _to_split(use)
        fragment_loops(schedule, block)
        loops = [int(schedule.get(loop).extent) for loop in schedule.get_loops(block)[-4:]]
        lines.append("{} fragments: {} x {} of {} x {}".format(matrix, *loops))
    return "\n".join(lines)


@PHASE.exercise(
    "tensorize_copies",
    engine=CURRENT,
    step_of="tensor_cores",
    title="replace the copies of fragments by instructions",
    hints=(
        "Three blocks, one after the other, each with an intrinsic of its own name. Your "
        "fragment_loops gives the loop that tensorize needs.",
        "schedule.tensorize(loop, name) replaces the loops from `loop` inwards.",
        "for block, name in ((load_a, 'load_a'), (load_b, 'load_b'), (store, 'store')): "
        "schedule.tensorize(fragment_loops(schedule, block), intrinsics[name]).",
    ),
    looks_like="""
        load_a: tvm_load_matrix_sync
        load_b: tvm_load_matrix_sync
        store: tvm_store_matrix_sync
    """,
    demonstrate=lambda tensorize_copies: _shown_instructions(
        lambda schedule, tiles, names: tensorize_copies(
            schedule, tiles.load_a, tiles.load_b, tiles.store, names
        )
    ),
)
def check_tensorize_copies(tensorize_copies: Function) -> None:
    names = _renamed()
    schedule, tiles = _fragments()
    tensorize_copies(schedule, tiles.load_a, tiles.load_b, tiles.store, names)
    _expect_instructions(schedule, names, "load_a", "load_b", "store")


def _shown_instructions(function: Callable[[Any, Any, dict[str, str]], None]) -> str:
    """What tensorize replaced, by purpose, in the order of the trace."""
    import tvm

    from tvm_practice.labs.gpu.wmma import wmma_intrinsics

    names = wmma_intrinsics()
    schedule, tiles = _fragments()
    function(schedule, tiles, names)
    uses = {name: use for use, name in names.items()}
    used = [str(each.attrs[0]) for each in schedule.trace.insts if each.kind.name == "Tensorize"]
    lines = []
    for name in sorted(used, key=lambda each: list(names.values()).index(each)):
        script = tvm.s_tir.TensorIntrin.get(name).impl.script()
        called = next(each for each in _INTRINSICS if f"{each}(" in script)
        lines.append(f"{uses[name]}: {called}")
    return "\n".join(lines)


@PHASE.exercise(
    "tensorize_product",
    engine=CURRENT,
    step_of="tensor_cores",
    title="replace the product of fragments, and the zeroing before it",
    hints=(
        "First the primitive that makes zeroing a block of its own. Then both blocks, the new "
        "one and the product, contain the block to tensorize.",
        "zero = schedule.decompose_reduction(product, k_outer); schedule.get_child_blocks(zero) "
        "is a list of one block. Its 16 x 16 are get_loops(…)[-2:]; in product, 16 x 16 x 16 are "
        "[-3:].",
        "[inside] = schedule.get_child_blocks(zero); schedule.tensorize("
        "schedule.get_loops(inside)[-2], intrinsics['init']); the same for product with [-3] and "
        "'compute'.",
    ),
    looks_like="""
        init: tvm_fill_fragment
        compute: tvm_mma_sync
    """,
    demonstrate=lambda tensorize_product: _shown_instructions(
        lambda schedule, tiles, names: tensorize_product(
            schedule, tiles.product, tiles.k_outer, names
        )
    ),
)
def check_tensorize_product(tensorize_product: Function) -> None:
    from tvm_practice.labs.gpu.on_cpu import untensorized

    names = _renamed()
    (around,) = draw_distinct(1, (2, 3))
    schedule, tiles = _fragments(around=around)
    tensorize_product(schedule, tiles.product, tiles.k_outer, names)
    _expect_instructions(schedule, names, "init", "compute")
    plain = untensorized(schedule, declare(64, 64, 32, "float16")[0].mod)
    _expect_zeroed_once(plain, around=around)


@PHASE.exercise(
    "tensor_cores",
    engine=CURRENT,
    title="replace loops by tensor-core instructions",
    hints=(
        "Five blocks, five intrinsics: the steps above hold all of them. tensorize compares the "
        "intrinsic with the loops from the given one inwards.",
        "tensorize_product decomposes the reduction and does two of them, tensorize_copies the "
        "other three. In one piece: decompose_reduction, then split, reorder and tensorize of each "
        "copy, and tensorize inside get_child_blocks of the other two.",
        "tensorize_product(schedule, product, k_outer, intrinsics), then tensorize_copies("
        "schedule, load_a, load_b, store, intrinsics).",
    ),
    looks_like="""
        nvcuda::wmma::fill_fragment
        nvcuda::wmma::fill_fragment
        for (int k_0_0 = 0; k_0_0 < 2; ++k_0_0):
          nvcuda::wmma::load_matrix_sync
          for (int ax1_0 = 0; ax1_0 < 2; ++ax1_0):
            nvcuda::wmma::load_matrix_sync
          nvcuda::wmma::mma_sync
          nvcuda::wmma::mma_sync
        for (int ax1_0_1 = 0; ax1_0_1 < 2; ++ax1_0_1):
          nvcuda::wmma::store_matrix_sync
    """,
    demonstrate=lambda tensor_cores: _wmma_calls(tensor_cores),
)
def check_tensor_cores(tensor_cores: Function) -> None:
    from tvm_practice.labs.gpu.on_cpu import matmul_on_cpu, untensorized
    from tvm_practice.tvm_export.cuda import cuda_source, why_no_text

    names = _renamed()
    schedule, tiles = _fragments(around=1)
    tensor_cores(schedule, *tiles[:5], names)
    used = {str(each.attrs[0]) for each in schedule.trace.insts if each.kind.name == "Tensorize"}
    expect(
        used <= set(names.values()),
        expected="the intrinsics tensorized by the names given",
        seen=", ".join(sorted(used)) or "none",
        look='intrinsics["load_a"] and so on, in schedule.tensorize',
    )
    text = schedule.mod.script()
    for name, where in _INTRINSICS.items():
        wanted = 2 if name == "tvm_load_matrix_sync" else 1
        expect(
            text.count(f"T.{name}(") == wanted,
            expected=f"{wanted} statement{'s' * (wanted > 1)} {name}",
            seen=f"{text.count(f'T.{name}(')}",
            look=f"tensorize of {where}",
        )
    _expect_zeroed_once(untensorized(schedule, declare(64, 64, 32, "float16")[0].mod), around=1)
    source = cuda_source(schedule.mod, "sm_80") if why_no_text() is None else None
    expect(
        source is None or ("mma_sync(" in source and "load_matrix_sync(" in source),
        expected="the CUDA text calls nvcuda::wmma::mma_sync",
        seen="it does not",
        look="tensorize",
    )
    got, want = matmul_on_cpu(schedule, 64, 64, 32)
    expect_close(got, want, what="C without tensorize", look="the primitives", atol=1e-3)


def _expect_zeroed_once(plain: Any, *, around: int) -> None:
    """Of a module without tensor-core instructions: the sum is zeroed before k_outer."""
    loops = {each.name: path for path, each in paths(loop_nest(plain["main"]))}
    start, update = loops["C_init"], loops["C"]
    expect(
        shared_loops(start, update) == around + 3,  # two of thread blocks, the warps
        expected="accumulators are set to zero once, before k_outer",
        seen=f"zeroed in {_shown(start)}, added to in {_shown(update)}",
        look="schedule.decompose_reduction(product, k_outer)",
    )


def _known_as(name: str) -> str:
    """Another name of a tensor intrinsic, drawn anew."""
    from tvm.s_tir import TensorIntrin

    known = TensorIntrin.get(name)
    other = f"{name}_{int(fresh_rng().integers(10**6))}"
    TensorIntrin.register(other, known.desc, known.impl, override=True)
    return other


def _wmma_calls(tensor_cores: Function) -> str:
    """The tensor-core calls of the CUDA text, in their order, with their loops."""
    from tvm_practice.labs.gpu.wmma import wmma_intrinsics
    from tvm_practice.tvm_export.cuda import cuda_source, kernel_of

    schedule, tiles = _fragments()
    tensor_cores(schedule, *tiles[:5], wmma_intrinsics())
    return _wmma_lines(kernel_of(cuda_source(schedule.mod, "sm_80")))


def _wmma_lines(text: str) -> str:
    """Of a kernel's text, the tensor-core calls and the loops."""
    shown = []
    for line in text.splitlines():
        if ("wmma::" in line and "_sync(" in line) or "fill_fragment(" in line:
            name = line.partition("(")[0].strip()
            depth = len(line) - len(line.lstrip())
            shown.append(" " * (depth - 2) + name)
        elif line.strip().startswith("for ("):
            shown.append(line[2:].partition("{")[0].rstrip() + ":")
    return "\n".join(shown)


@PHASE.exercise(
    "bind_threads_classic",
    engine=CLASSIC,
    title="give each element of C a thread with te.create_schedule",
    hints=(
        "As tile_classic of phase 2, with bind in place of parallel and vectorize. In classic TVM, "
        "bind takes an axis and a thread axis.",
        "te.thread_axis('threadIdx.x') is one. "
        "schedule[C].split(i, factor=threads_y), split(j, factor=threads_x), reorder to block_i, "
        "block_j, thread_i, thread_j, k.",
        "schedule[C].bind(block_i, te.thread_axis('blockIdx.y')), and so on for blockIdx.x, "
        "threadIdx.y and threadIdx.x; return the schedule.",
    ),
    looks_like="""
        for blockIdx.y in blockIdx.y(8):
            for blockIdx.x in blockIdx.x(3):
                for threadIdx.y in threadIdx.y(8):
                    for threadIdx.x in threadIdx.x(32):
                        C: C <- constant
                        for k in serial(32):
                            C: C <- A, B, C
    """,
    demonstrate=lambda bind_threads_classic: _classic_nest(bind_threads_classic),
)
def check_bind_threads_classic(bind_threads_classic: Function) -> None:
    from tvm import te

    from solutions.te_basics import matmul
    from tvm_practice.labs.gpu.classic import run_on_cpu

    # One thread along an axis, and more than a warp.
    threads = [(1, each) for each in draw_distinct(1, [40, 64, 96])]
    threads += [(each, 1) for each in draw_distinct(1, [16, 34, 40])]
    threads += [(each, each) for each in draw_distinct(1, [4, 8, 16])]  # the same along both
    threads += [(7, 11), (2, 9), (2, 9)]
    for (m, n, k), (across, along) in zip(  # sizes that divide, sizes that do not
        ((48, 192, 13), (26, 70, 13), (48, 80, 2), (35, 33, 5), (16, 27, 4), (8, 36, 3)),
        threads,
        strict=True,
    ):
        tensors = matmul(m, n, k)
        schedule = bind_threads_classic(tensors, across, along)
        expect(
            isinstance(schedule, te.schedule.Schedule),
            expected="bind_threads_classic returns the schedule of te.create_schedule",
            seen=type(schedule).__name__,
            look="the return statement",
        )
        nest = loop_nest(classic_statement(schedule))
        loops = next((path for path, each in paths(nest) if len(each.reads) > 1), ())
        bound = {loop.thread: loop.extent for loop in loops if loop.thread}
        missing = [tag for tag in _BOUND if tag not in bound]
        expect(
            not missing,
            expected=f"axes of C bound to {', '.join(_BOUND)}",
            seen=f"{_shown(loops)}: nothing is bound to {', '.join(missing)}",
            look="schedule[C].bind(axis, te.thread_axis(name)), once for each of the four",
        )
        _expect_bound(
            loops,
            [
                *zip(_BOUND, (-(-m // across), -(-n // along), across, along), strict=True),
                ("serial", k),
            ],
            "the factors (threads_y for rows, threads_x for columns), the order of reorder, and "
            "the name given to each axis: columns are x",
        )
        outer = _outer_threads(schedule[tensors[-1]])
        expect(
            not outer,
            expected="neighbours in a thread block compute neighbours in C",
            seen=f"{' and '.join(outer)} bound to the outer part of a split",
            look="split by factor=: a thread is the inner part, a thread block the outer one",
        )
        rng = fresh_rng()
        a, b = (rng.standard_normal(shape, dtype="float32") for shape in ((m, k), (k, n)))
        expect_close(run_on_cpu(schedule, tensors, [a, b]), a @ b, what="C", look="the primitives")


def _outer_threads(stage: Any) -> list[str]:
    """The names of the threads that are the outer parts of splits in a stage of classic TVM."""
    outer = [each.outer for each in stage.relations if type(each).__name__ == "Split"]
    bound = [
        (axis, str(how.bind_thread.var.name))
        for axis, how in stage.iter_var_attrs.items()
        if how.bind_thread is not None
    ]
    return [
        name
        for axis, name in bound
        if name.startswith("threadIdx") and any(axis.same_as(each) for each in outer)
    ]


def _classic_nest(bind_threads_classic: Function) -> str:
    from solutions.te_basics import matmul

    schedule = bind_threads_classic(matmul(64, 96, 32), 8, 32)
    return format_nest(loop_nest(classic_statement(schedule)))


# A matmul of a thread's tile in registers: threads_y, threads_x, rows, columns, step.
_CLASSIC_TILES = (
    (4, 8, 3, 4, 9), (1, 36, 9, 2, 3), (8, 1, 1, 5, 2), (3, 5, 4, 1, 7),
    # Equal ones, and large ones: these are not run.
    (4, 4, 4, 4, 4), (16, 16, 2, 2, 16), (2, 2, 16, 16, 2), (9, 3, 2, 4, 64),
)  # fmt: skip
_DRAWN_TILES = ((2, 3, 5), (6, 7, 10), (3, 6, 7), (2, 3, 6), (3, 5, 10))
# Each number by itself as powers of two, and a square tile; and one once more. Few are run.
_POWERS = tuple(
    tuple(power if place == at else size for place, size in enumerate((2, 4, 2, 3, 20)))
    for at in range(5)
    for power in (4, 8, 16, 32)
)
_FURTHER_TILES = (*_POWERS, (2, 4, 8, 8, 20), (2, 4, 8, 8, 20))


@PHASE.exercise(
    "register_tile_classic",
    engine=CLASSIC,
    title="give each thread a tile of C in registers with cache_write",
    hints=(
        "Two stages. C is tiled twice, by thread blocks and by threads, and only copies. The stage "
        "that cache_write makes holds the sum; it comes first, while C has its two axes alone.",
        "local = schedule.cache_write(C, 'local'), then split C.op.axis by threads_y * rows and by "
        "rows, likewise the columns: with factor= the outer parts are blocks and threads. "
        "schedule[local].compute_at(schedule[C], the axis on threadIdx.x).",
        "k_outer, k_inner = schedule[local].split(local.op.reduce_axis[0], factor=step); "
        "schedule[local].reorder(k_outer, k_inner, *local.op.axis); unroll both axes; return "
        "(schedule, local, k_outer).",
    ),
    looks_like="""
        for blockIdx.y in blockIdx.y(2):
            for blockIdx.x in blockIdx.x(1):
                for threadIdx.y in threadIdx.y(4):
                    for threadIdx.x in threadIdx.x(32):
                        for i.c.init in unrolled(8):
                            for j.c.init in unrolled(4):
                                C.local: C.local <- constant
                        for k.outer in serial(4):
                            for k.inner in serial(8):
                                for i.c in unrolled(8):
                                    for j.c in unrolled(4):
                                        C.local: C.local <- A, B, C.local
                        for i.inner.inner in serial(8):
                            for j.inner.inner in serial(4):
                                C: C <- C.local
    """,
    demonstrate=lambda register_tile_classic: _classic_tile(register_tile_classic),
)
def check_register_tile_classic(register_tile_classic: Function) -> None:
    from solutions.te_basics import matmul

    drawn = tuple(draw_distinct(1, among)[0] for among in _DRAWN_TILES)
    for tile in (drawn, *_CLASSIC_TILES, *_FURTHER_TILES):
        threads_y, threads_x, rows, columns, step = tile
        m, n, k = 2 * threads_y * rows, 3 * threads_x * columns, 4 * step
        tensors = matmul(m, n, k)
        returned = register_tile_classic(tensors, threads_y, threads_x, rows, columns, step)
        schedule, local = _expect_local_stage(returned)
        expect(
            any(each.origin_op.same_as(tensors[-1].op) for each in schedule.stages),
            expected="a schedule of the tensors that were given",
            seen="one of other tensors, of an earlier call perhaps",
            look="te.create_schedule(C.op), which each call makes anew",
        )
        _expect_adjacent(schedule, tensors, (threads_y, threads_x), (rows, columns))
        _expect_bound(
            _longer(_reads_most(_classic_loops(schedule))),
            [
                *zip(_BOUND, (2, 3, threads_y, threads_x), strict=True),
                ("serial", 4), ("serial", step),
                *(("unrolled", extent) for extent in (rows, columns) if extent > 1),
            ],
            "the factors of the splits of C, compute_at of the local stage, the order of its loops "
            "(k_outer, k_inner, rows, columns), and unroll of the last two",
        )  # fmt: skip
        _expect_copied_by_rows(schedule, rows, columns)
        _expect_axis(schedule, local, returned[2], step)
        if k < 64:
            _expect_classic_product(schedule, tensors)


def _classic_tile(register_tile_classic: Function) -> str:
    from solutions.te_basics import matmul

    schedule, _, _ = register_tile_classic(matmul(64, 128, 32), 4, 32, 8, 4, 8)
    return format_nest(_classic_loops(schedule))


def _classic_loops(schedule: Any) -> list[Node]:
    return loop_nest(classic_statement(schedule))


def _reads_most(nest: list[Node]) -> tuple[Loop, ...]:
    """The loops around the statement that multiplies."""
    return max(paths(nest), key=lambda found: len(found[1].reads))[0]


def _longer(loops: Sequence[Loop]) -> list[Loop]:
    """Loops of threads, and others of more than one iteration: classic TVM drops the rest."""
    return [loop for loop in loops if loop.thread or loop.extent != 1]


def _expect_local_stage(returned: Any) -> tuple[Any, Any]:
    """(schedule, tensor of a stage in registers, axis) was returned; the first two."""
    from tvm import te

    three = list(returned) if isinstance(returned, tuple | list) else []
    expect(
        len(three) == 3 and isinstance(three[0], te.schedule.Schedule),
        expected="(the schedule, the tensor of the local stage, k_outer) returned",
        seen=", ".join(type(each).__name__ for each in three) or type(returned).__name__,
        look="the return statement",
    )
    scope = _scope(three[0], three[1])
    expect(
        scope == "local",
        expected='the tensor of a stage in a buffer of scope "local": registers',
        seen=scope,
        look='schedule.cache_write(C, "local"), whose result is returned second',
    )
    return three[0], three[1]


def _expect_copied_by_rows(schedule: Any, rows: int, columns: int) -> None:
    """A thread writes its tile of C once, row after row, from where it was added up."""
    nest = _classic_loops(schedule)
    own, copy = next((path, each) for path, each in paths(nest) if each.writes == "C")
    written = {each.writes for _, each in paths(nest)}
    expect(
        len(written) == 2,
        expected="two stages: the local one adds up, and that of C copies from it",
        seen=f"stages that write {', '.join(sorted(written))}",
        look=f"the calls of cache_read and cache_write; C reads {', '.join(copy.reads)}",
    )
    inside = [loop for loop in own if not loop.thread and loop.extent != 1]
    expect(
        [loop.extent for loop in inside] == [each for each in (rows, columns) if each != 1],
        expected=f"the copy to C inside the threads: {rows} rows, then {columns} columns",
        seen=_shown(own),
        look="the order of reorder of C's loops, the thread's own rows and columns last",
    )


def _scope(schedule: Any, tensor: Any) -> str:
    """Where the stage of a tensor keeps it, or what else was given."""
    from tvm import te

    if not isinstance(tensor, te.Tensor):
        return f"a {type(tensor).__name__}"
    return str(schedule[tensor].scope) or "global"


def _expect_axis(schedule: Any, local: Any, k_outer: Any, step: int) -> None:
    """The third that was returned is the outer part of the split of k."""
    made = [each.outer for each in schedule[local].relations if type(each).__name__ == "Split"]
    expect(
        len(made) == 1 and made[0].same_as(k_outer),
        expected=f"k_outer returned last, the outer part of k split by {step}",
        seen=str(getattr(k_outer, "var", type(k_outer).__name__)),
        look="the return statement, and split of local.op.reduce_axis[0] alone",
    )


def _expect_adjacent(
    schedule: Any, tensors: list[Any], threads: tuple[int, int], tile: tuple[int, int]
) -> None:
    """Neighbours in a thread block are a tile apart in C, so a thread's elements are adjacent."""
    found = _steps_in(schedule, tensors)
    wanted = {
        "blockIdx.y": (threads[0] * tile[0], 0), "blockIdx.x": (0, threads[1] * tile[1]),
        "threadIdx.y": (tile[0], 0), "threadIdx.x": (0, tile[1]),
    }  # fmt: skip
    for tag, step in wanted.items():
        expect(
            found.get(tag, step) == step,
            expected=f"{step[0]} rows and {step[1]} columns of C from one {tag} to the next",
            seen="{} rows and {} columns".format(*found.get(tag, step)),
            look="which part of a split is bound: blocks and threads are the outer parts, what one "
            "thread does the innermost",
        )


def _steps_in(schedule: Any, tensors: list[Any]) -> dict[str, tuple[int, ...]]:
    """How far a step of each thread axis goes in what is written to the last tensor."""
    import tvm
    from tvm.tir import stmt_functor

    from tvm_practice.viz.access import classic_loops

    body = classic_loops(schedule, tensors).body
    tags, stores = {}, []

    def visit(node: Any) -> None:
        if str(getattr(node, "attr_key", "")) == "thread_extent":
            tags[node.node.var] = str(node.node.thread_tag)
        elif isinstance(node, tvm.tir.BufferStore) and node.buffer.name == tensors[-1].op.name:
            stores.append(node)

    stmt_functor.post_order_visit(body, visit)
    used: list[Any] = []
    for index in stores[-1].indices:
        stmt_functor.post_order_visit(
            index, lambda node: used.append(node) if isinstance(node, tvm.tir.Var) else None
        )
    analyzer = tvm.arith.Analyzer()

    def at(moved: Any) -> list[int]:
        values = {each: int(each.same_as(moved)) for each in used}
        return [
            int(analyzer.simplify(stmt_functor.substitute(each, values)))
            for each in stores[-1].indices
        ]

    start = at(None)
    return {
        tag: tuple(new - old for new, old in zip(at(each), start, strict=True))
        for each, tag in tags.items()
        if any(each.same_as(other) for other in used)
    }


def _expect_classic_product(schedule: Any, tensors: list[Any]) -> None:
    """The loops of a matmul's schedule, run thread after thread, give numpy's product."""
    from tvm_practice.labs.gpu.classic import run_on_cpu

    rng = fresh_rng()
    inputs = [
        rng.standard_normal(tuple(map(int, each.shape))).astype(str(each.dtype))
        for each in tensors[:-1]
    ]
    want = inputs[0].astype("float32") @ inputs[1].astype("float32")
    got = run_on_cpu(schedule, tensors, inputs)
    expect_close(got, want, what="C", look="the primitives", atol=1e-3)


@PHASE.exercise(
    "stage_shared_classic",
    engine=CLASSIC,
    title="fetch a tile to shared memory with cache_read, all threads together",
    hints=(
        "As stage_shared: a copy inside k_outer, its axes fused and shared out among the threads "
        "that are there already. In classic TVM the copy is a stage, and compute_at takes two.",
        "copy = schedule.cache_read(tensor, 'shared', [reader]); "
        "schedule[copy].compute_at(schedule[reader], k_outer); "
        "tile = schedule[copy].fuse(*copy.op.axis). split(tile, factor=threads_x) gives the "
        "threads of a row, the innermost part; split what is outside of it by threads_y.",
        "schedule[copy].bind(inner part of the second split, te.thread_axis('threadIdx.y')), bind "
        "the inner part of the first to te.thread_axis('threadIdx.x'), return copy.",
    ),
    looks_like="""
        for blockIdx.y in blockIdx.y(2):
            for blockIdx.x in blockIdx.x(1):
                for threadIdx.y in threadIdx.y(4):
                    for threadIdx.x in threadIdx.x(32):
                        for i.c.init in unrolled(8):
                            for j.c.init in unrolled(4):
                                C.local: C.local <- constant
                        for k.outer in serial(4):
                            for ax0.ax1.fused.outer.outer in serial(2):
                                for threadIdx.y in threadIdx.y(4):
                                    for threadIdx.x in threadIdx.x(32):
                                        A.shared: A.shared <- A
                            for ax0.ax1.fused.outer.outer in serial(8):
                                for threadIdx.y in threadIdx.y(4):
                                    for threadIdx.x in threadIdx.x(32):
                                        B.shared: B.shared <- B
                            for k.inner in serial(8):
                                for i.c in unrolled(8):
                                    for j.c in unrolled(4):
                                        C.local: C.local <- A.shared, B.shared, C.local
                        for i.inner.inner in serial(8):
                            for j.inner.inner in serial(4):
                                C: C <- C.local
    """,
    demonstrate=lambda stage_shared_classic: _classic_staged(stage_shared_classic),
)
def check_stage_shared_classic(stage_shared_classic: Function) -> None:
    from tvm_practice.labs.gpu.classic import cuda_source

    for tile in _UNRUN_TILES:
        _staged_in_both(stage_shared_classic, tile, a_first=False)
    # A thread block of one warp, rows longer than a warp, one row, and many; whole warps.
    across, along, drawn = (draw_distinct(1, each)[0] for each in ((2, 3, 5), (32, 64), (1, 3, 6)))
    cases = [(4, 8, 4, 4, 8), (2, 48, 4, 2, 24), (1, 64, 8, 1, 16), (6, 32, 2, 4, 48)]
    cases.insert(1, (across, along, drawn, across, along))
    for at, tile in enumerate(cases):
        schedule, tensors, fetched = _staged_in_both(stage_shared_classic, tile, a_first=at % 2 > 0)
        counts = _classic_counts(schedule, tensors)
        for name, elements in fetched.items():
            _expect_fetched_once(counts.of(name, write=False), name, 2 * elements, tile[1])
        _expect_classic_product(schedule, tensors)
    text = cuda_source(schedule, tensors, "sm_80")
    expect(
        text.count("__shared__ float") == 2 and "__syncthreads();" in text,
        expected="CUDA text with two buffers in shared memory, and barriers around their use",
        seen=f"{text.count('__shared__')} buffers",
        look='schedule.cache_read(tensor, "shared", [reader])',
    )
    _check_other_readers(stage_shared_classic)


# As those below: threads_y, threads_x, rows, columns, step. Only their loops are looked at.
_UNRUN_TILES = ((8, 16, 2, 2, 16), (16, 16, 1, 1, 16), (16, 8, 3, 2, 8), (7, 12, 2, 7, 12))


def _staged_in_both(
    stage_shared_classic: Function, tile: tuple[int, ...], *, a_first: bool
) -> tuple[Any, list[Any], dict[str, int]]:
    """A tile with both inputs staged; the schedule, [A, B, C], and elements of each copy."""
    from solutions.te_basics import matmul

    threads_y, threads_x, rows, columns, step = tile
    tensors = matmul(2 * threads_y * rows, threads_x * columns, 2 * step)
    schedule, local, k_outer = _reference().register_tile_classic(tensors, *tile)
    elements = {"A": threads_y * rows * step, "B": threads_x * columns * step}
    for matrix in tensors[:2] if a_first else tensors[1::-1]:
        name = str(matrix.op.name)
        copy = stage_shared_classic(schedule, matrix, local, k_outer, threads_y, threads_x)
        _expect_classic_stage(schedule, copy, name)
        own = _expect_by_all_threads(
            _classic_loops(schedule),
            str(copy.op.name),
            len(_BOUND),
            "schedule[copy].compute_at(schedule[reader], k_outer)",
        )
        _expect_shares(own, elements[name] // (threads_y * threads_x), threads_y, threads_x)
    return schedule, tensors, elements


def _check_other_readers(stage_shared_classic: Function) -> None:
    """A reader that is no local stage, with k split twice, and a third input."""
    from tvm import te

    m, n, k = 8, 64, 64
    name = f"X{draw_distinct(1, range(100))[0]}"
    A, B, E = (te.placeholder(shape, name=each) for each, shape in zip(
        ("left", "right", name), ((m, k), (k, n), (m, k)), strict=True
    ))  # fmt: skip
    F = te.compute((m, k), lambda i, j: E[i, j] + 1.0, name="F")  # reads the third input, too
    r = te.reduce_axis((0, k), name="r")
    D = te.compute(
        (m, n), lambda i, j: te.sum(A[i, r] * B[r, j] * E[i, r] * F[i, r], axis=r), name="D"
    )
    schedule = _reference().bind_threads_classic([A, B, D], 4, 32)
    schedule[F].bind(schedule[F].op.axis[0], te.thread_axis("blockIdx.x"))
    outer, inner = schedule[D].split(r, factor=32)
    k_outer, _ = schedule[D].split(inner, factor=16)
    del outer
    copy = stage_shared_classic(schedule, E, D, k_outer, 2, 32)
    _expect_classic_stage(schedule, copy, name)
    read = [str(each.op.name) for each in schedule[F].op.input_tensors]
    expect(
        read == [name],
        expected="a copy for the stage of `reader` alone: another stage reads the matrix still",
        seen=f"the other stage reads {', '.join(read)}",
        look="the third argument of cache_read, a list of the readers",
    )
    own = _expect_by_all_threads(
        _classic_loops(schedule), f"{name}.shared", len(_BOUND) + 1,
        "schedule[copy].compute_at(schedule[reader], k_outer): the axis that was given",
    )  # fmt: skip
    _expect_shares(own, 1, 2, 32)


def _expect_classic_stage(schedule: Any, copy: Any, name: str) -> None:
    """`copy` is the tensor of a stage that copies the matrix to shared memory."""
    scope = _scope(schedule, copy)
    expect(
        scope == "shared",
        expected=f'the tensor of a stage that copies {name} to a buffer of scope "shared"',
        seen=scope,
        look='schedule.cache_read(tensor, "shared", [reader]), and the return statement',
    )
    read = [str(each.op.name) for each in copy.op.input_tensors]
    expect(
        read == [name],
        expected=f"the tensor that copies {name} returned",
        seen=f"one that copies {', '.join(read)}",
        look="which tensor is given to cache_read, and which is returned",
    )


def _expect_shares(own: Sequence[Loop], serial: int, threads_y: int, threads_x: int) -> None:
    wanted = [("serial", serial)] * (serial > 1)
    _expect_bound(
        _longer(own),
        [*wanted, ("threadIdx.y", threads_y), ("threadIdx.x", threads_x)],
        "fuse of both axes, and the factors of the splits: threads_x of the fused axis first, then "
        "threads_y of what is outside of it",
    )


def _classic_counts(schedule: Any, tensors: list[Any]) -> Any:
    from tvm_practice.labs.gpu.counting import count_accesses

    return count_accesses(schedule, tensors)


def _expect_fetched_once(count: Any, name: str, elements: int, threads_x: int) -> None:
    """A thread block reads each element of its tiles once, and those of a warp lie together."""
    asked = 32 * count.requests
    expect(
        asked == elements,
        expected=f"{elements} elements of {name} read per thread block: each once",
        seen=f"{asked} read",
        look="whether the copy's loops are shared out among the threads, and where it is computed",
    )
    expect(
        threads_x % 32 != 0 or count.transactions == count.fewest,
        expected=f"the threads of a warp read neighbouring elements of {name}: "
        f"{count.fewest / count.requests:.3g} sectors a request",
        seen=f"{count.transactions / count.requests:.3g} sectors a request",
        look="which part of the split is bound to threadIdx.x: the innermost one",
    )


def _classic_staged(stage_shared_classic: Function) -> str:
    from solutions.te_basics import matmul

    tensors = matmul(64, 128, 32)
    schedule, local, k_outer = _reference().register_tile_classic(tensors, 4, 32, 8, 4, 8)
    for matrix in tensors[:2]:
        stage_shared_classic(schedule, matrix, local, k_outer, 4, 32)
    return format_nest(_classic_loops(schedule))


_TENSOR_CORES = "use_tensorcore"
_PLAIN_THREADS = (8, 32)


@PHASE.exercise(
    "tensor_core_template",
    engine=CLASSIC,
    title="a knob of AutoTVM that chooses tensor cores",
    hints=(
        "A template is one function with two schedules in it, and a knob's value says which. Which "
        "sizes leave no choice?",
        "cfg.define_knob('use_tensorcore', [0, 1] if 16 divides m, n and k else [0]). "
        "cfg['use_tensorcore'].val is its value in this trial. te.sum(A[i, r].astype('float32') * "
        "B[r, j].astype('float32'), axis=r) adds up in float32.",
        "for name, (stage, axis) in fragment_stages(schedule, [A, B, C]).items(): "
        "schedule[stage].tensorize(axis, wmma_instructions()[name]); otherwise "
        "bind_threads_classic([A, B, C], 8, 32). Return the schedule and [A, B, C].",
    ),
    looks_like="""
        use_tensorcore = 0
        for blockIdx.y in blockIdx.y(6):
            for blockIdx.x in blockIdx.x(1):
                for threadIdx.y in threadIdx.y(8):
                    for threadIdx.x in threadIdx.x(32):
                        C: C <- constant
                        for k in serial(64):
                            C: C <- A, B, C
        use_tensorcore = 1
        nvcuda::wmma::fill_fragment
        for (int k_outer = 0; k_outer < 4; ++k_outer):
          for (int ax0_ax1_fused_outer = 0; ax0_ax1_fused_outer < 8; ++ax0_ax1_fused_outer):
          nvcuda::wmma::load_matrix_sync
          for (int ax0_ax1_fused_outer_1 = 0; ax0_ax1_fused_outer_1 < 8; ++ax0_ax1_fused_outer_1):
          nvcuda::wmma::load_matrix_sync
          nvcuda::wmma::mma_sync
        nvcuda::wmma::store_matrix_sync
        for (int i_inner_j_inner_fused_outer = 0; i_inner_j_inner_fused_outer < 8; ++i_inner_j_inner_fused_outer):
    """,  # noqa: E501
    demonstrate=lambda tensor_core_template: _shown_choices(tensor_core_template),
)
def check_tensor_core_template(tensor_core_template: Function) -> None:
    m, n, k = (16 * each for each in draw_distinct(3, range(1, 6)))
    for sizes in ((m, n, k), (16, 16, 16), (n, n, m), (16 * m, 32, n), (48, 16 * n, 16 * k)):
        task = _expect_choices(tensor_core_template, sizes, {0, 1})
        for index in range(len(task.config_space)):
            _expect_chosen(task, index)
    alone = draw_distinct(3, (1, 8, 24, 33, 40))
    odd = [[*(m, n, k)[:at], other, *(m, n, k)[at + 1 :]] for at, other in enumerate(alone)]
    for each in odd:
        task = _expect_choices(tensor_core_template, each, {0})
        _expect_chosen(task, 0)
    # Remainders that are equal, and some whose sum 16 divides; equal sizes.
    (rest,) = draw_distinct(1, range(1, 16))
    for rests in ((rest, rest, rest), (0, 8, 8), (8, 0, 8), (8, 8, 0), (rest, 16 - rest, 0)):
        uneven = [size + each for size, each in zip((m, n, k), rests, strict=True)]
        _expect_choices(tensor_core_template, uneven, {0})
    for size in (8, rest, 32 + rest):
        _expect_choices(tensor_core_template, (size,) * 3, {0})


def _template_task(template: Function, sizes: Sequence[int]) -> Any:
    import tvm

    from tvm_practice.tvm_export.tuners.autotvm import make_task

    return make_task(template, sizes, tvm.target.Target("cuda -arch=sm_80"), name="graded.wmma")


def _expect_choices(template: Function, sizes: Sequence[int], wanted: set[int]) -> Any:
    """The space of a template for these sizes has these values of the knob; the task."""
    task = _template_task(template, sizes)
    knobs = task.config_space.space_map
    expect(
        _TENSOR_CORES in knobs,
        expected=f'a knob "{_TENSOR_CORES}"',
        seen=f"knobs {', '.join(knobs)}" if knobs else "no knobs",
        look=f'cfg.define_knob("{_TENSOR_CORES}", …) of cfg = autotvm.get_config()',
    )
    expect(
        len(knobs) == 1,
        expected=f'"{_TENSOR_CORES}" as the only knob: AutoTVM tries all values of each',
        seen=f"knobs {', '.join(knobs)}",
        look="the other calls of define_knob and its like",
    )
    values = {int(each.val) for each in knobs[_TENSOR_CORES].entities}
    expect(
        values == wanted,
        expected=f"the values {' and '.join(map(str, sorted(wanted)))} for {_times(sizes)}",
        seen=" and ".join(map(str, sorted(values))),
        look="the values of the knob: a fragment is 16 x 16, so each of m, n and k has to be a "
        "multiple of 16",
    )
    return task


def _times(sizes: Sequence[int]) -> str:
    return "x".join(map(str, sizes))


def _expect_chosen(task: Any, index: int) -> None:
    """A configuration has the schedule that its knob says, and the right values."""
    m, n, k = task.args
    schedule, tensors = _instance(task, index)
    chosen = int(task.config_space.get(index)[_TENSOR_CORES].val)
    seen = [f"{each.dtype} {_times(list(map(int, each.shape)))}" for each in tensors]
    wanted = [f"float16 {m}x{k}", f"float16 {k}x{n}", f"float32 {m}x{n}"]
    expect(
        seen == wanted,
        expected=f"the tensors [A, B, C]: {', '.join(wanted)}",
        seen=", ".join(seen),
        look="te.placeholder, te.compute and the return statement",
    )
    _expect_wmma(schedule, tensors, chosen)
    if not chosen:
        across, along = _PLAIN_THREADS
        _expect_bound(
            _reads_most(_classic_loops(schedule)),
            [*zip(_BOUND, (-(-m // across), -(-n // along), across, along), strict=True),
             *[("serial", k)] * (k > 1)],
            "bind_threads_classic([A, B, C], 8, 32)",
        )  # fmt: skip
    _expect_sums_of_float32(task, index)


def _instance(task: Any, index: int) -> tuple[Any, list[Any]]:
    with task.target:
        schedule, tensors = task.instantiate(task.config_space.get(index))
    return schedule, list(tensors)


def _expect_wmma(schedule: Any, tensors: list[Any], chosen: int) -> None:
    """The lowered loops use tensor cores if they were chosen, and else not."""
    import tvm

    try:
        text = tvm.lower(schedule, tensors).script()
    except Exception as error:
        raise fail(
            "loops that TVM can replace by the instructions",
            str(error).strip().splitlines()[-1][:200],
            "schedule[stage].tensorize(axis, instruction), each of the same name",
        ) from error
    for name in (*_INTRINSICS, "wmma"):
        wanted = {"tvm_load_matrix_sync": 2}.get(name, 1) * chosen
        seen = int("wmma" in text) if name == "wmma" else text.count(f"{name}(")
        expect(
            seen == wanted,
            expected=f"{wanted or 'no'} {name} with {_TENSOR_CORES} = {chosen}",
            seen=str(seen),
            look=f'tensorize of all four stages, and what cfg["{_TENSOR_CORES}"].val decides',
        )


def _expect_sums_of_float32(task: Any, index: int) -> None:
    """The loops of a configuration, without instructions, give the product of float32."""
    from unittest import mock

    from tvm import te

    from tvm_practice.labs.gpu.classic import run_on_cpu

    with mock.patch.object(te.schedule.Stage, "tensorize", lambda *_: None):
        schedule, tensors = _instance(task, index)
        m, n, k = task.args
        rng = fresh_rng()
        # Products of these exceed float16's largest number.
        a, b = (rng.uniform(200, 400, shape).astype("float16") for shape in ((m, k), (k, n)))
        got = run_on_cpu(schedule, tensors, [a, b])
    expect_close(
        got,
        a.astype("float32") @ b.astype("float32"),
        what=f"C with {_TENSOR_CORES} = {task.config_space.get(index)[_TENSOR_CORES].val}",
        look="the formula, and the casts to float32 before the product",
        rtol=1e-3,
    )


def _shown_choices(tensor_core_template: Function) -> str:
    from tvm_practice.labs.gpu.classic import cuda_source
    from tvm_practice.tvm_export.cuda import kernel_of

    task = _template_task(tensor_core_template, (48, 32, 64))
    (plain, _), (schedule, tensors) = (_instance(task, index) for index in (0, 1))
    shown = [f"{_TENSOR_CORES} = 0", format_nest(_classic_loops(plain)), f"{_TENSOR_CORES} = 1"]
    return "\n".join([*shown, _wmma_lines(kernel_of(cuda_source(schedule, tensors, "sm_80")))])
