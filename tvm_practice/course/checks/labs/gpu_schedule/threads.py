"""Threads, shared memory and registers, on current TVM."""

from collections.abc import Iterator
from typing import Any

from tvm_practice.course.checks.labs.gpu_schedule.common import (
    PHASE,
    Function,
    bindings_of,
    counts_of,
    expect_bound,
    expect_no_waste,
    expect_product,
    nest_of,
    reference_answers,
    shown_loops,
)
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
from tvm_practice.course.nests import (
    accepted,
    allocated,
    expect_axes,
    expect_no_pragma,
    shared_loops,
)
from tvm_practice.engines import CURRENT
from tvm_practice.labs.gpu.matmul import declare
from tvm_practice.viz.loop_nest import (
    Loop,
    Node,
    Statement,
    format_nest,
    paths,
)

BOUND = ("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")


@PHASE.exercise(
    "bind_threads",
    engine=CURRENT,
    title="give each element of C a thread",
    hints=(
        "The loops are tiled as in phase 2: a thread block computes a tile. Then each loop but "
        "k is bound, as in transposed of labs/gpu/worked.py.",
        "Neighbours in threadIdx.x run in step: columns are x, because neighbouring columns are "
        "neighbours in memory. schedule.split(i, [None, threads_y]), and j by threads_x.",
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
        accepted(bind_threads, schedule, block, across, along)
        loops = path_to(nest_of(schedule), name, look="the primitives")
        missing = [tag for tag in BOUND if tag not in [loop.thread for loop in loops]]
        expect(
            not missing,
            expected=f"loops of {name} bound to {', '.join(BOUND)}",
            seen=f"{shown_loops(loops)}: nothing is bound to {', '.join(missing)}",
            look="schedule.bind(loop, name), once for each of the four",
        )
        found = sorted(str(loop.extent) for loop in loops if loop.thread.startswith("threadIdx"))
        as_asked = found == sorted(map(str, (across, along)))  # along whichever axis
        for matrix in "AB" if m == 24 and as_asked else "":
            expect_no_waste(
                schedule,
                matrix,
                write=False,
                look="the loop bound to threadIdx.x: columns, so that neighbouring threads read "
                "neighbours in a row of B and the same element of A",
            )
        expect_bound(
            loops,
            [
                *zip(BOUND, (-(-m // across), -(-n // along), across, along), strict=True),
                ("serial", k),
            ],
            "the factors of split (threads_y rows, threads_x columns), the order of reorder, "
            "and the name given to each loop",
        )
        if across != along:
            expect_product(schedule, m, n, k, name)
    huge = [(300_001, 45, 2048, 4, 9), (37, 300_001, 3, 2, 128), (99, 65, 3, 32, 32)]
    for m, n, k, across, along in (*huge, *varied(37, 45, 13, 5, 9, large=True, small=True)):
        schedule, block = declare(m, n, k)
        accepted(bind_threads, schedule, block, across, along)
        expect_bound(
            path_to(nest_of(schedule), "C", look="the primitives"),
            [
                *zip(BOUND, (-(-m // across), -(-n // along), across, along), strict=True),
                ("serial", k),
            ],
            "the same primitives for all sizes",
        )
        look = "rows along y and columns along x, even where both have the same extent"
        expect_axes(schedule, block, f"i*{across} j*{along} i j k", look=look)


def _after(function: Function, m: int, n: int, k: int, *arguments: int) -> str:
    schedule, block = declare(m, n, k)
    function(schedule, block, *arguments)
    return format_nest(nest_of(schedule))


def _to_stage(
    m: int, n: int, k: int, step: int, *, threads: tuple[int, int] = (8, 32), halves: bool = False
) -> tuple[Any, Any, Any]:
    """A matmul with a thread for each element and k split: schedule, block, k_outer.

    With `halves`, a loop over two halves of k is around k_outer.
    """
    schedule, block = declare(m, n, k)
    reference_answers().bind_threads(schedule, block, *threads)
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
    reference_answers().bind_threads(schedule, block, 8, 32)
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
        expect_product(schedule, m, n, k)
    # One row of more threads than a warp, vectors of two, and another loop around k_outer.
    schedule, block, k_outer = _to_stage(m, n, k, 16, threads=(1, 64), halves=True)
    copy = stage_shared(schedule, block, 1, k_outer, 1, 64, 2)
    _expect_staged(schedule, copy, "B", 2, tile=1024, threads=(1, 64), k_at=len(BOUND) + 1)
    expect_product(schedule, m, n, k)
    # Both inputs of one block, one after the other; a column of threads.
    schedule, block, k_outer = _to_stage(m, n, k, 32)
    for index, name, lanes in ((0, "A", 1), (1, "B", 4)):
        copy = stage_shared(schedule, block, index, k_outer, 8, 32, lanes)
        _expect_staged(schedule, copy, name, lanes, tile=(256, 1024)[index])
    schedule, block, k_outer = _to_stage(64, 8, 32, 16, threads=(32, 1))
    copy = stage_shared(schedule, block, 0, k_outer, 32, 1, 2)
    _expect_staged(schedule, copy, "A", 2, tile=512, threads=(32, 1))
    # Few threads that fetch a large tile, in many rounds.
    schedule, block, k_outer = _to_stage(8, 64, 256, 128, threads=(2, 32))
    copy = stage_shared(schedule, block, 1, k_outer, 2, 32, 1)
    _expect_staged(schedule, copy, "B", 1, tile=4096, threads=(2, 32))
    # A tall tile, and a wide one.
    for index, name, sizes, step, threads in (
        (0, "A", (64, 8, 32), 4, (32, 1)), (1, "B", (8, 64, 32), 4, (2, 32)),
    ):  # fmt: skip
        schedule, block, k_outer = _to_stage(*sizes, step, threads=threads)
        copy = stage_shared(schedule, block, index, k_outer, *threads, 1)
        _expect_staged(schedule, copy, name, 1, tile=128, threads=threads)
    # The third input of a block, and the second of three.
    for index, name, tile in ((2, "E", 256), (1, "B", 1024)):
        schedule, block, k_outer = _three_to_stage(m, n, k, 32)
        copy = stage_shared(schedule, block, index, k_outer, 8, 32, 1)
        _expect_staged(schedule, copy, name, 1, tile=tile)
    # Both, of a matmul whose blocks that read are copies to registers.
    schedule, block = declare(32, 64, 16)
    k_outer, *readers = reference_answers().register_tile_gpu(schedule, block, 4, 8, 4, 4, 8)
    for reader, name, tile, lanes in zip(readers, "AB", (128, 256), (4, 8), strict=True):
        copy = stage_shared(schedule, reader, 0, k_outer, 4, 8, lanes)
        _expect_staged(schedule, copy, name, lanes, tile=tile, threads=(4, 8))
    schedule.decompose_reduction(block, k_outer)
    expect_product(schedule, 32, 64, 16)


def _staged(stage_shared: Function) -> str:
    schedule, block, k_outer = _to_stage(64, 96, 64, 32)
    for index, lanes in ((0, 1), (1, 4)):
        stage_shared(schedule, block, index, k_outer, 8, 32, lanes)
    return format_nest(nest_of(schedule))


def _expect_staged(
    schedule: Any,
    copy: Any,
    name: str,
    lanes: int,
    *,
    tile: int,
    threads: tuple[int, int] = (8, 32),
    k_at: int = len(BOUND),
) -> None:
    """A tile of `tile` elements of the matrix is fetched by all threads, inside loop `k_at`."""
    expect_no_pragma(schedule)
    own = _expect_copied_at_k_outer(schedule, name, k_at)
    across, along = threads
    wanted = [
        ("serial", tile // (across * along * lanes)), ("threadIdx.y", across),
        ("threadIdx.x", along), ("vectorized", lanes),
    ]  # fmt: skip
    wanted = [pair for pair in wanted if pair[1] != 1]
    bound = [pair for pair in bindings_of(own) if pair[1] != 1]
    expected = "the copy's loops " + " > ".join(f"{each}({extent})" for each, extent in wanted)
    expect(
        sorted(map(str, bound)) == sorted(map(str, wanted)),
        expected=expected,
        seen=shown_loops(own),
        look="fuse of both loops of the tile, the factors of split, vectorize of the last part",
    )
    look = (
        "the order of the factors: [None, threads_y, threads_x, lanes], so that the threads of a "
        "warp are neighbours at each step"
    )
    if along == 32:
        expect_no_waste(schedule, name, write=False, look=look)
    expect(bound == wanted, expected=expected, seen=shown_loops(own), look=look)
    staged = _copy_of(schedule, name, "shared")
    expect(
        staged is not None and block_name(schedule, copy) == staged.name,
        expected=f"the block of the copy, {staged and staged.name}, returned",
        seen=block_name(schedule, copy),
        look="the return statement",
    )
    for part, steps, one in _steps_of_fetch(schedule, copy, k_at + 1):
        expect(
            steps == one,
            expected=f"row after row of the tile: {one[0]} rows and {one[1]} columns from one "
            f"iteration of {part} to the next",
            seen=f"{steps[0]} rows and {steps[1]} columns",
            look=f"fuse of the rows and the columns, in this order; {look}",
        )


def _expect_copied_at_k_outer(schedule: Any, name: str, k_at: int) -> tuple[Loop, ...]:
    """The matrix is copied to shared memory inside k_outer, loop `k_at`, by all threads.

    Returns:
        The copy's own loops, those inside k_outer.
    """
    staged = _copy_of(schedule, name, "shared")
    if staged is None:
        scopes = {name: str(each.scope()) for name, each in allocated(schedule).items()}
        raise fail(
            f'{name} is copied to a buffer of scope "shared"',
            ", ".join(f"{buffer}: {scope}" for buffer, scope in scopes.items()) or "no buffers",
            'schedule.cache_read(block, index, "shared"), and which index',
        )
    at_k_outer = "schedule.compute_at(copy, k_outer)"
    return expect_by_all_threads(nest_of(schedule), staged.writes, k_at, at_k_outer)


def _copy_of(schedule: Any, name: str, scope: str) -> Statement | None:
    """The statement that copies a matrix to a buffer of a scope, whatever that is called."""
    buffers = {name for name, each in allocated(schedule).items() if str(each.scope()) == scope}
    found = (each for _, each in paths(nest_of(schedule)) if each.reads == (name,))
    return next((each for each in found if each.writes in buffers), None)


def expect_by_all_threads(
    nest: list[Node], staged: str, k_at: int, compute_at: str
) -> tuple[Loop, ...]:
    """The buffer is written inside loop `k_at` by all threads; the copy's own loops."""
    writers = [path for path, each in paths(nest) if each.writes == staged]
    readers = [path for path, each in paths(nest) if staged in each.reads]
    if not (writers and readers):
        raise fail(f"the copy {staged}, written and read", f"no statement of {staged}", compute_at)
    loops = writers[0]
    shared = shared_loops(loops, readers[0])
    expect(
        shared == k_at + 1,
        expected=f"{staged} is written inside k_outer, before the statement that reads it",
        seen=f"written in {shown_loops(loops)}, read in {shown_loops(readers[0])}",
        look=compute_at,
    )
    own = loops[shared:]
    tags = [loop.thread for loop in own if loop.thread]
    expect(
        sorted(tags) == ["threadIdx.x", "threadIdx.y"],
        expected="the copy's loops are bound to threadIdx.y and threadIdx.x",
        seen=f"{shown_loops(own)}: "
        + ("every thread fetches the whole tile" if not tags else "some threads fetch the same"),
        look="schedule.bind of two of the four loops that split makes",
    )
    return own


def _steps_of_fetch(
    schedule: Any, copy: Any, outside: int
) -> Iterator[tuple[str, tuple[int, ...], tuple[int, int]]]:
    """Of a copy's loops inside so many: where each one's second iteration is, and should be.

    Yields how the loop runs, how many rows and columns its second iteration is from its first, and
    how many it would be if the tile were fetched row after row.
    """
    import tvm

    around = [schedule.get(loop) for loop in schedule.get_loops(copy)]
    own = [each for each in around[outside:] if int(each.extent) > 1]

    def at(*values: int) -> list[int]:
        """The row and the column at these iterations of the own loops, at the others' first."""
        analyzer = tvm.sym.Analyzer()
        for loop in around:
            value = next(
                (value for each, value in zip(own, values, strict=True) if each.same_as(loop)), 0
            )
            analyzer.bind(loop.loop_var, tvm.tirx.const(value, str(loop.loop_var.ty.dtype)))
        return [int(analyzer.simplify(value)) for value in around[-1].body.iter_values]

    first = at(*[0] * len(own))
    last = at(*(int(each.extent) - 1 for each in own))
    columns = last[1] - first[1] + 1
    ahead = 1
    for place in reversed(range(len(own))):
        second = at(*(int(place == each) for each in range(len(own))))
        steps = tuple(new - old for new, old in zip(second, first, strict=True))
        kind = tvm.tirx.ForKind(int(own[place].kind)).name.lower()
        bound = own[place].thread_binding
        part = kind if bound is None else str(bound.thread_tag)
        yield part, steps, divmod(ahead, columns)
        ahead *= int(own[place].extent)


def block_name(schedule: Any, block: Any) -> str:
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
    for at, (name, threads_y, threads_x, rows, columns, step) in enumerate((
        ("C", 4, 8, 3, 4, 9), ("D", 1, 36, 9, 2, 3), ("C", 8, 1, 1, 2, 2),
        # Equal ones, odd ones, and large ones: these are not run.
        ("C", 4, 4, 4, 4, 4), ("C", 16, 16, 2, 2, 16), ("C", 3, 5, 4, 2, 7), ("C", 9, 3, 2, 4, 64),
        ("C", 2, 4, 2, 2, 1), ("C", 32, 32, 4, 2, 8), ("C", 2, 16, 32, 4, 2),
        ("C", 1, 1, 2, 2, 2), ("C", 5, 2, 1, 4, 512),
    )):  # fmt: skip
        steps = (4, 1)[at % 2]
        m, n, k = 2 * threads_y * rows, 3 * threads_x * columns, steps * step
        schedule, block = declare(m, n, k, name=name)
        returned = register_tile_gpu(schedule, block, threads_y, threads_x, rows, columns, step)
        expect_no_pragma(schedule)
        nest = nest_of(schedule)
        loops, update = _product(nest, name)
        _expect_registers(schedule, update)
        expect_bound(
            loops,
            [
                *zip(BOUND, (2, 3, threads_y, threads_x), strict=True),
                ("serial", steps), ("serial", step), ("unrolled", rows), ("unrolled", columns),
            ],
            "the factors of the three splits, the order of reorder, bind, and unroll of the "
            "thread's own two loops",
        )  # fmt: skip
        look = "split: blocks and threads are the outer parts, a thread's rows and columns adjacent"
        own = f"i*{threads_y * rows} j*{threads_x * columns} i*{rows} j*{columns} k*{step} k i j"
        expect_axes(schedule, block, own, look=look)
        _expect_copies(nest, loops, columns)
        _expect_write_back(nest, loops, columns, name)
        _expect_returned(schedule, block, returned)
        if rows > 1 and rows % 2:
            expect_product(schedule, m, n, k, name)


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
            seen=f"copied in {shown_loops(own or ())}, multiplied in {shown_loops(loops)}",
            look="schedule.compute_at(copy, k_inner): outside it, the registers of all its steps "
            "are needed at once; inside, nothing is used twice",
        )
        assert own is not None
        last = own[-1]
        expect(
            name == "B" or all(loop.kind in ("serial", "unrolled") for loop in own[k_inner:]),
            expected="the loops of A's copy serial or unrolled: a column is not adjacent in A",
            seen=shown_loops(own),
            look="schedule.vectorize of loops that are not named",
        )
        expect(
            name == "A" or (last.kind, last.extent) == ("vectorized", columns),
            expected="the last loop of B's copy is vectorized: one load for the row of the tile",
            seen=shown_loops(own),
            look="schedule.vectorize(schedule.get_loops(copy)[-1])",
        )


def _expect_write_back(nest: list[Node], loops: tuple[Loop, ...], columns: int, name: str) -> None:
    ends = [path for path, each in paths(nest) if each.writes == name]
    expect(
        len(ends) == 1 and shared_loops(ends[0], loops) == len(BOUND),
        expected=f"{name} is written once per thread: inside threadIdx.x, after k_outer has ended",
        seen=f"written in {shown_loops(ends[0] if ends else ())}, added up in {shown_loops(loops)}",
        look="reverse_compute_at(the write-back block, the loop bound to threadIdx.x)",
    )
    expect(
        (ends[0][-1].kind, ends[0][-1].extent) == ("vectorized", columns),
        expected="the last loop of the write-back is vectorized",
        seen=shown_loops(ends[0]),
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
    names = [block_name(schedule, each) for each in copies]
    made = [_copy_of(schedule, each, "local") for each in "AB"]
    wanted = [each.name if each else "none" for each in made]
    expect(
        names == wanted,
        expected=f"the blocks {' and '.join(wanted)} returned, in this order",
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
    said = sorted(str(key) for key in schedule.get(copy).annotations)
    expect(
        said == ["buffer_dim_align"],
        expected="the copy annotated as storage_align does it, and in no other way",
        seen=", ".join(said) or "no annotation",
        look="schedule.storage_align, which is all that pads a buffer",
    )
    counts = counts_of(schedule)
    read = counts.of("X_shared", write=False)
    expect(
        read.transactions == read.requests,
        expected="32 threads that read a column of the tile find it in 32 banks: 1 wavefront",
        seen=f"{read.transactions / read.requests:.3g} wavefronts per request: the tile takes "
        f"{counts.shared_bytes} bytes",
        look="the axis (rows are -2), the factor (32 banks) and the offset of storage_align",
    )
    for offset in (
        1, *(draw_distinct(1, each)[0] for each in ([2, 3, 4, 5, 7, 8], [9, 12], [17, 20, 31]))
    ):  # fmt: skip
        schedule, copy = _staged_transposition(64)
        pad_shared(schedule, copy, offset)
        taken, wanted = counts_of(schedule).shared_bytes, 32 * (32 + offset) * 4
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
        taken, wanted = counts_of(schedule).shared_bytes, 32 * (64 + offset) * 4
        expect(
            taken == wanted,
            expected=f"32 rows of 48 floats, each {64 + offset} floats after the one before: the "
            f"next multiple of 32, plus {offset}",
            seen=f"{taken} bytes, not {wanted}",
            look="factor=32, the number of banks, for each offset",
        )
    # A tile that is written by vectors of four: rows stay where vectors may begin.
    schedule, block, k_outer = _to_stage(16, 64, 64, 32)
    copy = reference_answers().stage_shared(schedule, block, 1, k_outer, 8, 32, 4)
    pad_shared(schedule, copy, 4)
    written = counts_of(schedule).of("B_shared", write=True)
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
    for loop, name in zip((block_i, block_j, thread_i, thread_j), BOUND, strict=True):
        schedule.bind(loop, name)
    return schedule, reference_answers().stage_shared(schedule, block, 0, block_j, 8, 32, 1)


def _wavefronts(pad_shared: Function) -> str:
    lines = []
    for offset in (0, 1, 2, 4):
        schedule, copy = _staged_transposition(64)
        if offset:
            pad_shared(schedule, copy, offset)
        counts = counts_of(schedule)
        read = counts.of("X_shared", write=False)
        lines.append(
            f"offset {offset}: {read.transactions // read.requests} wavefronts to read a column, "
            f"{counts.shared_bytes} bytes"
        )
    return "\n".join(lines)
