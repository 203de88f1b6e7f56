"""The bug hunts: schedules that TVM accepts and that are wrong or slow, and what shows it."""

import inspect
import math
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, NamedTuple

import numpy as np

from tvm_practice import engines
from tvm_practice.course import symptoms
from tvm_practice.course.expect import fresh_rng
from tvm_practice.course.fences import Fenced
from tvm_practice.course.guarding import CAUSES_READ
from tvm_practice.course.lowering import build_module, build_schedule
from tvm_practice.course.products import matmul_tensors
from tvm_practice.engines import CLASSIC, CURRENT, Engine
from tvm_practice.viz.loop_nest import Loop, Node, format_nest, paths

LETTERS = "abcd"
_RUNS = 5
_FAR_ITERATIONS = 2**21  # of loops that are counted only where they are others than before
_MOST_ITERATIONS = 2**16  # that a symptom is counted in, unless a hunt says how many
_ROUNDING = 1e-4  # of the largest value; another order of additions differs by less
_TELL_THE_CAUSE = ("causes", "__dict__")
_LANES = 4  # floats in the shortest vector register, of 128 bits


class Sizes(NamedTuple):
    """Extents of a hunt's loops; a stage without a sum has no depth."""

    rows: int
    columns: int
    depth: int = 1


class Cause(NamedTuple):
    """A choice: what may be the cause, and how one sees that it is not; the right one has none."""

    text: str
    why_not: str = ""


@dataclass(frozen=True)
class Hunt:
    """One schedule, wrong or slow.

    Attributes:
        engine: the TVM that accepts it.
        tensors: [inputs …, stages …, output].
        inputs: how many of `tensors` are inputs.
        values: the output, from numpy arrays of the inputs.
        suspect: the schedule, made in place; its text is shown.
        symptom: counts what is wrong; takes the schedule and the tensors.
        told: what `symptom` counts, with {count}.
        limit: the largest count of a repaired schedule, for some sizes.
        keeps: what a repaired schedule still has: takes its nest, returns what is missing.
        causes: four.
        look: where to repair it.
        example: sizes of the schedule that is shown.
        values_at: sizes at which the values are often wrong, on several cores; None where they are
            right.
        once: a stage of which a repaired schedule writes each element once; None for any.
        lanes_adjacent: whether the lanes of a repaired schedule's vectors lie side by side.
        most_iterations: that its symptom is counted in.
    """

    engine: Engine
    tensors: Callable[[Sizes], list[Any]]
    inputs: int
    values: Callable[..., Any]
    suspect: Callable[..., None]
    symptom: Callable[[Any, Sequence[Any]], int]
    told: str
    limit: Callable[[Sizes], int]
    keeps: Callable[[list[Node]], str | None]
    causes: tuple[Cause, Cause, Cause, Cause]
    look: str
    example: Sizes
    values_at: Sizes | None = None
    once: str | None = None
    lanes_adjacent: bool = False
    most_iterations: int = _MOST_ITERATIONS

    def __getattribute__(self, name: str) -> Any:
        """Tells of each look at the causes, since an answer has to find its letter itself."""
        if name in _TELL_THE_CAUSE:
            sys.audit(CAUSES_READ)
        return super().__getattribute__(name)

    def written_once(self, tensors: Sequence[Any], schedule: Any) -> bool:
        """Whether a schedule writes each element of the stage `once` once."""
        if self.once is None:
            return True
        return symptoms.writes_per_element(self.once)(schedule, tensors) == 1

    @property
    def cause(self) -> str:
        """The letter of the right cause."""
        return next(
            letter for letter, each in zip(LETTERS, self.causes, strict=True) if not each.why_not
        )

    def start(self, sizes: Sizes) -> tuple[list[Any], Any]:
        """The tensors, and a fresh schedule of them."""
        import tvm
        from tvm import te

        tensors = self.tensors(sizes)
        if self.engine == CLASSIC:
            return tensors, te.create_schedule(tensors[-1].op)
        function = te.create_prim_func([*tensors[: self.inputs], tensors[-1]])
        module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        return tensors, tvm.s_tir.Schedule(module)

    def arguments(self, tensors: list[Any], schedule: Any) -> tuple[Any, ...]:
        """What the suspect and the learner's function take."""
        return (schedule, tensors[-1]) if self.engine == CLASSIC else (schedule,)

    def suspected(self, sizes: Sizes) -> tuple[list[Any], Any]:
        """The tensors, and the wrong schedule of them."""
        tensors, schedule = self.start(sizes)
        self.suspect(*self.arguments(tensors, schedule))
        return tensors, schedule

    def draw(self) -> list[Sizes]:
        """Other sizes than the example's, of the same kind.

        All extents are somewhat larger, the rows odd; then one after the other is as large as
        counting allows. What goes wrong at one odd number of rows may be right at another.
        """
        rows, columns, depth = self.example
        found = [
            Sizes(rows + 4 * more - 1, columns + 16 * more, depth + more * (depth > 1))
            for more in map(int, fresh_rng().permutation([1, 2, 3]))
        ]
        several = self.most_iterations // (rows * columns * depth) - 1
        if several > 0:
            found.append(Sizes(rows + 4 * (rows * several // 4), columns, depth))
            found.append(Sizes(rows, columns + 16 * (columns * several // 16), depth))
            if depth > 1:
                found.append(Sizes(rows, columns, depth + depth * several + 1))
        return found

    def far(self) -> list[Sizes]:
        """One extent after the other far larger than is counted of every repair."""
        times = _FAR_ITERATIONS // math.prod(self.example) // 2 * 2 + 1  # odd: 8 times odd stays so
        rows, columns, depth = self.example
        found = [Sizes(rows * times, columns, depth), Sizes(rows, columns * times, depth)]
        return [*found, Sizes(rows, columns, depth * times)] if depth > 1 else found

    def run(self, tensors: list[Any], schedule: Any, arrays: Sequence[Any]) -> Any:
        """The output that the schedule computes from numpy arrays."""
        output = [int(extent) for extent in tensors[-1].shape]
        wanted = Fenced(np.full(output, np.nan, "float32"))
        if self.engine == CLASSIC:
            built = build_schedule(schedule, [*tensors[: self.inputs], tensors[-1]])
        else:
            built = build_module(schedule.mod)
        given = [Fenced(each) for each in arrays]
        built(*(each.tensor for each in (*given, wanted)))
        wanted.expect_kept("the output")
        return wanted.array


def report(name: str, values: bool = True) -> str:
    """What the learner is shown of a hunt; called by engines.call() on its engine.

    Args:
        name: of the hunt.
        values: whether to run schedules whose values are wrong, and say how far off they are.
    """
    hunt = HUNTS[name]
    tensors, schedule = hunt.suspected(hunt.example)
    lines = [textwrap.dedent(inspect.getsource(hunt.suspect)).replace("def _", "def ", 1), ""]
    lines += [format_nest(symptoms.nest_of(schedule)), ""]
    lines += _wrapped(f"symptom: {hunt.told.format(count=hunt.symptom(schedule, tensors))}")
    if values and hunt.values_at is not None:
        lines += _wrapped(f"values: {_values_told(hunt, hunt.values_at)}")
    for letter, each in zip(LETTERS, hunt.causes, strict=True):
        lines += _wrapped(f"({letter}) {each.text}")
    return "\n".join(lines).replace("\n\n\n", "\n\n")


def reports(names: Sequence[str]) -> dict[str, str]:
    """The reports of these hunts, which are of the active engine, without the values of a run."""
    return {name: report(name, values=False) for name in names}


def page() -> str:
    """The hunts for docs/practice/bug_hunts.md. Needs both TVMs, each in a process of its own."""
    found: dict[str, str] = {}
    for engine in engines.ENGINES:
        names = [name for name, hunt in HUNTS.items() if hunt.engine == engine]
        found |= engines.call(engine, f"{__name__}:reports", {"names": names})
    return "\n".join(f"### `{name}`\n\n```text\n{found[name]}\n```\n" for name in HUNTS)


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 78, subsequent_indent="    ")


def _values_told(hunt: Hunt, sizes: Sizes) -> str:
    """How far a wrong schedule is from numpy, in several runs."""
    tensors, schedule = hunt.suspected(sizes)
    rng = np.random.default_rng(0)
    arrays = [
        rng.random([int(extent) for extent in each.shape], dtype="float32")
        for each in tensors[: hunt.inputs]
    ]
    want = hunt.values(*arrays)
    off = [float(np.abs(hunt.run(tensors, schedule, arrays) - want).max()) for _ in range(_RUNS)]
    numbers = ", ".join(f"{each:.3g}" for each in off)
    lucky = max(off) < _ROUNDING * np.abs(want).max()
    return (
        f"as {' x '.join(map(str, sizes))}, largest difference from numpy in {_RUNS} runs, on "
        f"{engines.thread_count()} threads: {numbers}"
        f"{'; these runs happened to be right' if lucky else ''}"
    )


def _walk(nest: Sequence[Node]) -> list[Loop]:
    """Every loop."""
    return list({id(loop): loop for loops, _ in paths(list(nest)) for loop in loops}.values())


def _share_a_loop(one: Sequence[Loop], other: Sequence[Loop]) -> bool:
    """Whether a loop is around both, of 2 iterations or more: in a single one, all is done."""
    others = {id(loop) for loop in other}
    return any(id(loop) in others and int(loop.extent) > 1 for loop in one)


def _anything(nest: list[Node]) -> str | None:
    return None


def _parallel(nest: list[Node]) -> str | None:
    found = any(loop.kind == "parallel" and int(loop.extent) > 1 for loop in _walk(nest))
    return None if found else "a parallel loop of 2 iterations or more"


def _vectors(nest: list[Node]) -> str | None:
    inner = [loops[-1] for loops, _ in paths(nest) if loops]
    wide = any(loop.kind == "vectorized" and int(loop.extent) >= _LANES for loop in inner)
    return None if wide else f"a vectorized innermost loop of {_LANES} lanes or more"


def _unrolled(nest: list[Node]) -> str | None:
    found = any(loop.kind == "unrolled" and int(loop.extent) > 1 for loop in _walk(nest))
    return None if found else "an unrolled loop of 2 iterations or more"


def _written_back_in_a_loop(nest: list[Node]) -> str | None:
    """A buffer in which the sum adds up, copied to the output inside a loop of the sum."""
    sums = {each.writes: path for path, each in paths(nest) if each.writes in each.reads}
    for path, each in paths(nest):
        for buffer in each.reads:
            if buffer.endswith("_local") and buffer != each.writes and buffer in sums:
                together = _share_a_loop(path, sums[buffer])
                return None if together else "the copy in a loop of the sum of 2 iterations or more"
    return 'a sum in a buffer of scope "local", copied to the output'


def _parallel_with_own_buffers(nest: list[Node]) -> str | None:
    """All uses of a buffer of scope "local" are in one parallel loop: it is each thread's own."""
    if missing := _parallel(nest):
        return missing
    homes = {
        next((id(loop) for loop in loops if loop.kind == "parallel"), None)
        for loops, each in paths(nest)
        if any(name.endswith("_local") for name in (each.writes, *each.reads))
    }
    if None in homes or len(homes) > 1:
        return "every use of the local buffer inside one parallel loop, a buffer per thread"
    return None


def _local_and_parallel(nest: list[Node]) -> str | None:
    return _parallel_with_own_buffers(nest) or _written_back_in_a_loop(nest)


def _parts_in_parallel(nest: list[Node]) -> str | None:
    if missing := _local_and_parallel(nest):
        return missing
    outermost = [loops[0] if loops else None for loops, _ in paths(nest)]
    # The rows of the write-back are ax0: a sum may be moved into its loops.
    of_rows = all(
        loop and loop.kind == "parallel" and loop.name.startswith(("i", "ax0"))
        for loop in outermost
    )
    if not of_rows:
        return "the loop over parts of rows, the outermost one, in parallel"
    sums = {each.writes for _, each in paths(nest) if each.writes in each.reads}
    around = [_outside_the_sum(path[1:]) for path, each in paths(nest) if each.writes in sums]
    first, *others = around
    shared = {id(loop) for loop in first}.intersection(
        *({id(loop) for loop in each} for each in others)
    )
    several = any(id(loop) in shared and int(loop.extent) > 1 for loop in first)
    return None if several else "parts of 2 rows or more, cut into tiles: 2 or more per part"


def _outside_the_sum(loops: Sequence[Loop]) -> list[Loop]:
    """A product's loops as far as the first over k, which is ax2 where it was moved."""
    return list(takewhile(lambda loop: not loop.name.startswith(("k", "ax2")), loops))


def _producer_inside(nest: list[Node]) -> str | None:
    """B is computed inside a loop of Y, or of its partial sums; a copy may be there, too."""
    around = {each.name: path for path, each in paths(nest)}
    inside = "B" in around and any(
        _share_a_loop(around["B"], path)
        for name, path in around.items()
        if name in ("Y", "Y_update") or name.startswith("Y_rf")
    )
    return None if inside else "the stage B, computed inside a loop of Y of 2 iterations or more"


def _matmul(sizes: Sizes) -> list[Any]:
    return matmul_tensors(*sizes)


def _product(a: Any, b: Any) -> Any:
    return a @ b


def _grid(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.rows, sizes.columns), name="X")
    return [X, te.compute(X.shape, lambda i, j: X[i, j] + 1.0, name="Y")]


def _line(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.columns,), name="X")
    return [X, te.compute(X.shape, lambda i: X[i] * 2.0, name="Y")]


def _turned(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.columns, sizes.rows), name="X")
    shape = (sizes.rows, sizes.columns)
    return [X, te.compute(shape, lambda i, j: X[j, i], name="Y")]


def _row_sums(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.rows, sizes.columns), name="X")
    k = te.reduce_axis((0, sizes.columns), name="k")
    return [X, te.compute((sizes.rows,), lambda i: te.sum(X[i, k], axis=k), name="Y")]


def _scaled_product(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.rows, sizes.depth), name="X")
    W = te.placeholder((sizes.depth, sizes.columns), name="W")
    B = te.compute(X.shape, lambda i, k: te.exp(X[i, k]), name="B")
    k = te.reduce_axis((0, sizes.depth), name="k")
    shape = (sizes.rows, sizes.columns)
    return [X, W, B, te.compute(shape, lambda i, j: te.sum(B[i, k] * W[k, j], axis=k), name="Y")]


def _parallel_sum(schedule: Any, C: Any) -> None:
    i, j = C.op.axis
    (k,) = C.op.reduce_axis
    schedule[C].reorder(k, i, j)
    schedule[C].parallel(k)


def _lost_bound(schedule: Any) -> None:
    block = schedule.get_sblock("C")
    write_back = schedule.cache_write(block, 0, "local")
    i, j, k = schedule.get_loops(block)
    part, rows = schedule.split(i, [None, 20])
    tile, row = schedule.split(rows, [None, 3])
    schedule.reorder(part, tile, k, row, j)
    schedule.parallel(part)
    schedule.reverse_compute_at(write_back, tile)
    schedule.decompose_reduction(block, k)


def _column_walk(schedule: Any) -> None:
    i, j = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.reorder(j, i)


def _strided_lanes(schedule: Any) -> None:
    i, j = schedule.get_loops(schedule.get_sblock("Y"))
    _, lanes = schedule.split(i, [None, 4])
    schedule.reorder(j, lanes)
    schedule.vectorize(lanes)


def _guarded_lanes(schedule: Any) -> None:
    (i,) = schedule.get_loops(schedule.get_sblock("Y"))
    _, lanes = schedule.split(i, [None, 16])
    schedule.vectorize(lanes)


def _false_sharing(schedule: Any) -> None:
    i, _ = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.parallel(i)


def _inner_parallel(schedule: Any) -> None:
    _, j = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.parallel(j)


def _recomputed_stage(schedule: Any) -> None:
    _, j, _ = schedule.get_loops(schedule.get_sblock("Y"))
    schedule.compute_at(schedule.get_sblock("B"), j)


def _written_every_step(schedule: Any) -> None:
    block = schedule.get_sblock("Y")
    write_back = schedule.cache_write(block, 0, "local")
    _, k = schedule.get_loops(block)
    schedule.reverse_compute_at(write_back, k)


def _huge_unroll(schedule: Any) -> None:
    for loop in schedule.get_loops(schedule.get_sblock("C")):
        schedule.unroll(loop)


HUNTS = {
    "parallel_sum": Hunt(
        CLASSIC,
        _matmul,
        2,
        _product,
        _parallel_sum,
        symptoms.doubly_written,
        "{count} elements of C are written by two iterations of the parallel loop",
        lambda sizes: 0,
        _parallel,
        (
            Cause(
                "The order k, i, j changes the order of the additions.",
                "k runs from first to last in either order of the loops; another order of "
                "additions moves the last digits only, and the same way in every run",
            ),
            Cause(
                "Threads that run different k add to the same elements of C at once, and "
                "additions get lost."
            ),
            Cause(
                "C is not set to zero before the sum begins.",
                "the loops show a statement that sets C to a constant first",
            ),
            Cause(
                "float32 cannot hold a sum of so many products.",
                "float32 holds such sums to six digits; the naive loops prove it",
            ),
        ),
        "which loop is parallel: the iterations of a loop over rows or columns write elements of "
        "their own",
        Sizes(16, 16, 64),
        values_at=Sizes(128, 128, 4096),
    ),
    "lost_bound": Hunt(
        CURRENT,
        _matmul,
        2,
        _product,
        _lost_bound,
        symptoms.doubly_written,
        "{count} elements of C are written by two iterations of the parallel loop",
        lambda sizes: 0,
        _parts_in_parallel,
        (
            Cause(
                "decompose_reduction comes last, so a tile begins with the values of the tile "
                "before it.",
                "the loops show C_init in each tile, before its loop over k",
            ),
            Cause(
                "The parts run in parallel, but add up in one buffer.",
                "TVM allocates C_local inside the parallel loop: each part has its own",
            ),
            Cause(
                "3 does not divide 20. The write-back keeps the bound of all rows and loses that "
                "of a part: a part's last tile also writes a row of the next part."
            ),
            Cause(
                "The write-back copies a tile before its sum is complete.",
                "the loops show the copy after the loop over k has ended",
            ),
        ),
        "the two factors of the rows: the inner one must divide the outer one",
        Sizes(84, 32, 24),
        values_at=Sizes(84, 128, 4096),
        once="C",
        most_iterations=2**18,
    ),
    "column_walk": Hunt(
        CURRENT,
        _turned,
        1,
        lambda x: x.T,
        _column_walk,
        symptoms.misses_per_thousand,
        "{count} of 1000 accesses miss an L1 cache of 32 KiB",
        lambda sizes: 250,
        _anything,
        (
            Cause(
                "X and Y share cache lines and evict each other.",
                "two buffers have no line in common",
            ),
            Cause(
                "Each float is used once, so no cache can help.",
                "a line holds 16 floats: with all of them used, 62 of 1000 accesses miss",
            ),
            Cause(
                "X and Y are larger than the cache; no order of the loops helps.",
                "what counts is what is touched between two uses of a line; an order that uses "
                "lines up needs few of them at once",
            ),
            Cause(
                "The inner loop goes down a column of Y: each write is in another line, which is "
                "evicted before its next float is written. With the loops swapped, X has the same "
                "trouble."
            ),
        ),
        "tiles, as in phase 2's worked example: split both loops, and reorder",
        Sizes(640, 640),
        most_iterations=2**22,
    ),
    "strided_lanes": Hunt(
        CURRENT,
        _grid,
        1,
        lambda x: x + 1,
        _strided_lanes,
        symptoms.widest_lane_step,
        "adjacent lanes are {count} floats apart in memory",
        lambda sizes: 1,
        _vectors,
        (
            Cause(
                "4 lanes are too few for any vector register.",
                "registers of 128 bits hold 4 floats",
            ),
            Cause(
                "The vectorized loop goes down a column: its lanes lie a row apart, and are loaded "
                "and stored one by one."
            ),
            Cause(
                "vectorize must be called before reorder.",
                "the loops are the same in either order of the calls",
            ),
            Cause(
                "4 does not divide the rows, so the lanes are guarded.",
                "4 divides the rows, and the block has no guard; a guard would not move the lanes "
                "apart",
            ),
        ),
        "which loop is split and vectorized: that over columns",
        Sizes(64, 48),
    ),
    "guarded_lanes": Hunt(
        CURRENT,
        _line,
        1,
        lambda x: x * 2,
        _guarded_lanes,
        symptoms.guarded_iterations,
        "a bound is tested {count} times",
        lambda sizes: 0,
        _vectors,
        (
            Cause(
                "16 floats do not fit one vector register.",
                "the compiler splits wide vectors into registers, without testing a bound",
            ),
            Cause(
                "The outer loop is not parallel.",
                "that would share the tests among the threads, not remove them",
            ),
            Cause(
                "16 does not divide the length: every vector tests the bound, though only the "
                "last one reaches it."
            ),
            Cause(
                "The loop was split before it was vectorized.",
                "the whole loop is no vector: it has to be split first",
            ),
        ),
        "the factor of split: one that divides every multiple of 8",
        Sizes(4, 1000),
        lanes_adjacent=True,
        most_iterations=2**20,
    ),
    "false_sharing": Hunt(
        CURRENT,
        _row_sums,
        1,
        lambda x: x.sum(1),
        _false_sharing,
        symptoms.writes_to_shared_lines,
        "{count} writes are to cache lines that other iterations of the parallel loop write, too",
        lambda sizes: sizes.rows,
        _parallel_with_own_buffers,
        (
            Cause(
                "Each row adds up in Y itself, and 16 elements of Y share a cache line: every "
                "addition can take the line away from another core."
            ),
            Cause(
                "Threads add to the same element of Y.",
                "each row has an element of its own, and the values are right; only lines are "
                "shared",
            ),
            Cause(
                "The loop over k should be parallel: it is the longer one.",
                "then all threads would add to one element, and TVM refuses it",
            ),
            Cause(
                "The rows of X lie too far apart for the cache.",
                "the writes that are counted are to Y; X is only read",
            ),
        ),
        "where a row adds up: in a local buffer, written to Y once",
        Sizes(32, 64),
    ),
    "inner_parallel": Hunt(
        CURRENT,
        _grid,
        1,
        lambda x: x + 1,
        _inner_parallel,
        symptoms.parallel_starts,
        "the threads are started and awaited {count} times",
        lambda sizes: 1,
        _parallel,
        (
            Cause(
                "Two threads write the same element of Y.",
                "each column has elements of its own",
            ),
            Cause(
                "A row has fewer columns than the machine has cores.",
                "then some threads would idle; they would be started as often",
            ),
            Cause(
                "parallel and serial loops cannot be nested.",
                "they can, in either order; what differs is the cost",
            ),
            Cause(
                "The parallel loop is inside the loop over rows, so that every row starts the "
                "threads and waits for the slowest."
            ),
        ),
        "which loop is parallel: the outermost one",
        Sizes(64, 48),
        most_iterations=2**22,
    ),
    "recomputed_stage": Hunt(
        CURRENT,
        _scaled_product,
        2,
        lambda x, w: np.exp(x) @ w,
        _recomputed_stage,
        symptoms.computed_per_element("B"),
        "each element of B is computed {count} times",
        lambda sizes: 1,
        _producer_inside,
        (
            Cause(
                "B is computed inside the loop over columns. A row of B serves all columns, and is "
                "computed again for each."
            ),
            Cause(
                "B is stored and read again; without the buffer it would be computed once.",
                "inlined into Y, exp would be computed for every column as well",
            ),
            Cause(
                "Y reads B in another order than B is computed in.",
                "the order changes the cache's work, not how often B is computed",
            ),
            Cause(
                "The loop over k of Y computes B at every step.",
                "B's loop is beside the loop over k, not inside it",
            ),
        ),
        "the loop given to compute_at: the outermost in which a row of B is used up",
        Sizes(12, 16, 10),
    ),
    "written_every_step": Hunt(
        CURRENT,
        _row_sums,
        1,
        lambda x: x.sum(1),
        _written_every_step,
        symptoms.writes_per_element("Y"),
        "each element of Y is written {count} times",
        lambda sizes: 1,
        _written_back_in_a_loop,
        (
            Cause(
                "The sum is set to zero at every k.",
                "then the values would be wrong; they are right",
            ),
            Cause(
                "The write-back is inside the loop over k: every partial sum is copied to Y, not "
                "only the last."
            ),
            Cause(
                "A local buffer holds one element, so it is emptied at every step.",
                "it holds what the loops need; the place of the write-back decides how often it is "
                "copied",
            ),
            Cause(
                "cache_write must be called after the loops are moved.",
                "either order is possible; the place of the copy is what counts",
            ),
        ),
        "the loop given to reverse_compute_at: that over rows",
        Sizes(12, 32),
    ),
    "huge_unroll": Hunt(
        CURRENT,
        _matmul,
        2,
        _product,
        _huge_unroll,
        symptoms.unrolled_copies,
        "the compiled code holds {count} copies of the multiply-add",
        lambda sizes: 64,
        _unrolled,
        (
            Cause(
                "unroll needs loops whose extent is a power of two.",
                "it takes any constant extent",
            ),
            Cause(
                "k is a reduction, whose iterations may not be written out.",
                "they may: unrolling keeps their order",
            ),
            Cause(
                "All loops are unrolled: the code has a copy for every iteration, more than the "
                "instruction cache holds, and takes long to compile."
            ),
            Cause(
                "Without a vectorized loop, unroll makes copies of its own.",
                "vectors would need fewer copies, but each iteration of an unrolled loop is one "
                "either way",
            ),
        ),
        "which loops are unrolled, and how long: split first, and unroll a few iterations",
        Sizes(16, 16, 16),
    ),
}
