"""Classic TVM's pattern of a GPU: threads, registers, shared memory."""

from collections.abc import Sequence
from typing import Any

from tvm_practice.course.checks.labs.gpu_schedule.common import (
    PHASE,
    Function,
    expect_bound,
    expect_nothing_besides_classic,
    reference_answers,
    shown_loops,
)
from tvm_practice.course.checks.labs.gpu_schedule.threads import BOUND, expect_by_all_threads
from tvm_practice.course.expect import (
    draw_distinct,
    expect,
    expect_close,
    fresh_rng,
)
from tvm_practice.engines import CLASSIC
from tvm_practice.viz.loop_nest import (
    Loop,
    Node,
    classic_statement,
    format_nest,
    loop_nest,
    paths,
)


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
    threads += [(7, 11), (2, 9), (2, 9), (4, 3), (3, 8), (5, 16), (8, 32), (32, 4), (32, 32)]
    for (m, n, k), (across, along) in zip(  # sizes that divide, sizes that do not
        (
            (48, 192, 13),
            (26, 70, 13),
            (48, 80, 2),
            (35, 33, 5),
            (16, 27, 4),
            (8, 36, 3),
            (1, 7, 6),
            (7, 1, 6),
            (11, 35, 2),
            # The last ones are not run.
            (40, 40_001, 7),
            (70_001, 9, 3),
            (99, 130, 2048),
        ),
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
        missing = [tag for tag in BOUND if tag not in bound]
        expect(
            not missing,
            expected=f"axes of C bound to {', '.join(BOUND)}",
            seen=f"{shown_loops(loops)}: nothing is bound to {', '.join(missing)}",
            look="schedule[C].bind(axis, te.thread_axis(name)), once for each of the four",
        )
        expect_bound(
            loops,
            [
                *zip(BOUND, (-(-m // across), -(-n // along), across, along), strict=True),
                ("serial", k),
            ],
            "the factors (threads_y for rows, threads_x for columns), the order of reorder, and "
            "the name given to each axis: columns are x",
        )
        expect_nothing_besides_classic(schedule, [tensors[-1]])
        outer = _outer_threads(schedule[tensors[-1]])
        expect(
            not outer,
            expected="neighbours in a thread block compute neighbours in C",
            seen=f"{' and '.join(outer)} bound to the outer part of a split",
            look="split by factor=: a thread is the inner part, a thread block the outer one",
        )
        if max(m, n, k) > 1000:
            continue
        rng = fresh_rng()
        a, b = (rng.standard_normal(shape, dtype="float32") for shape in ((m, k), (k, n)))
        expect_close(run_on_cpu(schedule, tensors, [a, b]), a @ b, what="C", look="the primitives")


def _outer_threads(stage: Any) -> list[str]:
    """The tags of the threads that are the outer parts of splits in a stage of classic TVM."""
    outer = [each.outer for each in stage.relations if type(each).__name__ == "Split"]
    bound = [
        (axis, str(how.bind_thread.thread_tag))
        for axis, how in stage.iter_var_attrs.items()
        if how.bind_thread is not None
    ]
    return [
        tag
        for axis, tag in bound
        if tag.startswith("threadIdx") and any(axis.same_as(each) for each in outer)
    ]


def _classic_nest(bind_threads_classic: Function) -> str:
    from solutions.te_basics import matmul

    schedule = bind_threads_classic(matmul(64, 96, 32), 8, 32)
    return format_nest(loop_nest(classic_statement(schedule)))


# A matmul of a thread's tile in registers: threads_y, threads_x, rows, columns, step.
_CLASSIC_TILES = (
    (4, 8, 3, 4, 9), (1, 36, 9, 2, 3), (8, 1, 1, 5, 2), (3, 5, 4, 1, 7), (2, 4, 3, 2, 1),
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
        _expect_at_thread(schedule, local, tensors[-1])
        expect_bound(
            _longer(reads_most(loops_of_classic(schedule))),
            [
                *zip(BOUND, (2, 3, threads_y, threads_x), strict=True),
                *(("serial", extent) for extent in (4, step) if extent > 1),
                *(("unrolled", extent) for extent in (rows, columns) if extent > 1),
            ],
            "the factors of the splits of C, compute_at of the local stage, the order of its loops "
            "(k_outer, k_inner, rows, columns), and unroll of the last two",
        )  # fmt: skip
        _expect_copied_by_rows(schedule, rows, columns)
        expect_nothing_besides_classic(schedule)
        _expect_axis(schedule, local, returned[2], step)
        if k < 64:
            _expect_classic_product(schedule, tensors)


def _expect_at_thread(schedule: Any, local: Any, C: Any) -> None:
    """The local stage is computed at C's axis on threadIdx.x, even if those inside are of one."""
    axis = schedule[local].attach_ivar
    bound = schedule[C].iter_var_attrs.get(axis) if axis is not None else None
    thread = bound.bind_thread if bound is not None else None
    expect(
        thread is not None and str(thread.thread_tag) == "threadIdx.x",
        expected="the local stage computed at the axis on threadIdx.x",
        seen=f"at {axis.var.name}" if axis is not None else "at none",
        look="schedule[local].compute_at(schedule[C], the axis on threadIdx.x)",
    )


def _classic_tile(register_tile_classic: Function) -> str:
    from solutions.te_basics import matmul

    schedule, _, _ = register_tile_classic(matmul(64, 128, 32), 4, 32, 8, 4, 8)
    return format_nest(loops_of_classic(schedule))


def loops_of_classic(schedule: Any) -> list[Node]:
    return loop_nest(classic_statement(schedule))


def reads_most(nest: list[Node]) -> tuple[Loop, ...]:
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
    nest = loops_of_classic(schedule)
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
        seen=shown_loops(own),
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
    places = [
        next(
            (at for at, leaf in enumerate(schedule[local].leaf_iter_vars) if leaf.same_as(axis)), 0
        )
        for axis in local.op.axis
    ]
    expect(
        places == sorted(places),
        expected="in the local stage the rows of the tile outside its columns, also if there are "
        "as many",
        seen="columns outside rows",
        look="schedule[local].reorder(k_outer, k_inner, *local.op.axis)",
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
        "that are there already. In classic TVM the copy is a stage, and its compute_at takes the "
        "reader's stage and an axis of it.",
        "copy = schedule.cache_read(tensor, 'shared', [reader]); "
        "schedule[copy].compute_at(schedule[reader], k_outer); "
        "tile = schedule[copy].fuse(*copy.op.axis). split(tile, factor=threads_x) gives the "
        "threads of a row, the innermost part; split the outer part by threads_y.",
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
    cases.append((8, 8, 4, 2, 16))  # as many threads down as across
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
_UNRUN_TILES = (
    (1, 1, 1, 1, 1),
    (1, 2, 2, 1, 1),
    (8, 16, 2, 2, 16),
    (16, 16, 1, 1, 16),
    (16, 8, 3, 2, 8),
    (7, 12, 2, 7, 12),
)


def _staged_in_both(
    stage_shared_classic: Function, tile: tuple[int, ...], *, a_first: bool
) -> tuple[Any, list[Any], dict[str, int]]:
    """A tile with both inputs staged; the schedule, [A, B, C], and elements of each copy."""
    from solutions.te_basics import matmul
    from tvm_practice.labs.gpu.classic import own_thread_axes

    threads_y, threads_x, rows, columns, step = tile
    tensors = matmul(2 * threads_y * rows, threads_x * columns, 2 * step)
    schedule, local, k_outer = reference_answers().register_tile_classic(tensors, *tile)
    elements = {"A": threads_y * rows * step, "B": threads_x * columns * step}
    for matrix in tensors[:2] if a_first else tensors[1::-1]:
        name = str(matrix.op.name)
        with own_thread_axes():
            copy = stage_shared_classic(schedule, matrix, local, k_outer, threads_y, threads_x)
        _expect_classic_stage(schedule, copy, name)
        own = expect_by_all_threads(
            loops_of_classic(schedule),
            str(copy.op.name),
            len(BOUND),
            "schedule[copy].compute_at(schedule[reader], k_outer)",
        )
        _expect_shares(own, elements[name] // (threads_y * threads_x), threads_y, threads_x)
    return schedule, tensors, elements


def _check_other_readers(stage_shared_classic: Function) -> None:
    """A reader that is no local stage, with k split twice, and a third input."""
    from tvm import te

    from tvm_practice.labs.gpu.classic import own_thread_axes

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
    schedule = reference_answers().bind_threads_classic([A, B, D], 4, 16)
    schedule[F].bind(schedule[F].op.axis[0], te.thread_axis("blockIdx.x"))
    outer, inner = schedule[D].split(r, factor=32)
    k_outer, _ = schedule[D].split(inner, factor=16)
    del outer
    with own_thread_axes():
        copy = stage_shared_classic(schedule, E, D, k_outer, 4, 16)
    _expect_classic_stage(schedule, copy, name)
    read = [str(each.op.name) for each in schedule[F].op.input_tensors]
    expect(
        read == [name],
        expected="a copy for the stage of `reader` alone: another stage reads the matrix still",
        seen=f"the other stage reads {', '.join(read)}",
        look="the third argument of cache_read, a list of the readers",
    )
    own = expect_by_all_threads(
        loops_of_classic(schedule), str(copy.op.name), len(BOUND) + 1,
        "schedule[copy].compute_at(schedule[reader], k_outer): the axis that was given",
    )  # fmt: skip
    _expect_shares(own, 1, 4, 16)


def _expect_classic_stage(schedule: Any, copy: Any, name: str) -> None:
    """`copy` is the tensor of a stage that copies the matrix to shared memory."""
    scope = _scope(schedule, copy)
    expect(
        scope == "shared",
        expected=f'the tensor of a stage that copies {name} to a buffer of scope "shared"',
        seen=scope,
        look='schedule.cache_read(tensor, "shared", [reader]), and the return statement',
    )
    expect_nothing_besides_classic(schedule, [copy])
    read = [str(each.op.name) for each in copy.op.input_tensors]
    expect(
        read == [name],
        expected=f"the tensor that copies {name} returned",
        seen=f"one that copies {', '.join(read)}",
        look="which tensor is given to cache_read, and which is returned",
    )


def _expect_shares(own: Sequence[Loop], serial: int, threads_y: int, threads_x: int) -> None:
    wanted = [("serial", serial)] * (serial > 1)
    expect_bound(
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
        f"{count.fewest / count.requests:.3g} sectors per request",
        seen=f"{count.transactions / count.requests:.3g} sectors per request",
        look="which part of the split is bound to threadIdx.x: the innermost one",
    )


def _classic_staged(stage_shared_classic: Function) -> str:
    from solutions.te_basics import matmul

    tensors = matmul(64, 128, 32)
    schedule, local, k_outer = reference_answers().register_tile_classic(tensors, 4, 32, 8, 4, 8)
    for matrix in tensors[:2]:
        stage_shared_classic(schedule, matrix, local, k_outer, 4, 32)
    return format_nest(loops_of_classic(schedule))
