"""The puzzles: the loops that each begins with, and those that it asks for."""

import inspect
import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm_practice.course.expect import expect, fresh_rng
from tvm_practice.viz.loop_nest import format_nest, loop_nest

_WIDTH = 80  # columns of a terminal, for a picture
_GAP = "   "


@dataclass(frozen=True)
class Sizes:
    """The numbers of one instance of a puzzle.

    Attributes:
        rows: extent of the loop i.
        columns: extent of the loop j, or of the sum's loop k.
        factor: the argument of puzzles that take one.
    """

    rows: int
    columns: int
    factor: int

    @property
    def total(self) -> int:
        return self.rows * self.columns

    @property
    def outer(self) -> int:
        """Iterations of the outer loop when `columns` is split by `factor`."""
        return -(-self.columns // self.factor)

    @property
    def wider(self) -> int:
        return self.columns + 1


EXAMPLE = Sizes(rows=6, columns=8, factor=4)


@dataclass(frozen=True)
class Puzzle:
    """One schedule primitive, the loops before it and after it.

    Attributes:
        tensors: [X, …, Y] of te.compute, for some sizes.
        values: Y, from a numpy array X.
        after: the picture of the wanted loops, with fields of `Sizes`.
        look: where to look if the loops are others.
        takes_factor: whether the function takes `factor` after the schedule.
        divides: whether `factor` always divides `columns`.
        stored: a buffer whose shape the pictures show.
        runs: whether the processor can run the result.
        exact: whether a loop of one iteration counts, as the number of loops is the point.
    """

    tensors: Callable[[Sizes], list[Any]]
    values: Callable[[Any], Any]
    after: str
    look: str
    takes_factor: bool = False
    divides: bool = False
    stored: str | None = None
    runs: bool = True
    exact: bool = False

    def start(self, sizes: Sizes) -> Any:  # a tvm.s_tir.Schedule
        """A fresh schedule of the loops that the puzzle begins with."""
        import tvm
        from tvm import te

        tensors = self.tensors(sizes)
        function = te.create_prim_func([tensors[0], tensors[-1]])
        module = tvm.IRModule({"main": function.with_attr("global_symbol", "main")})
        return tvm.s_tir.Schedule(module)

    def arguments(self, sizes: Sizes) -> tuple[int, ...]:
        """What the function takes after the schedule."""
        return (sizes.factor,) if self.takes_factor else ()

    def wanted(self, sizes: Sizes) -> str:
        """The picture of the loops that the puzzle asks for."""
        return inspect.cleandoc(self.after).format(s=sizes)

    def picture(self, schedule: Any) -> str:
        """The loops of a schedule and, where the puzzle is about it, the shape of a buffer."""
        nest = _without_detours(format_nest(loop_nest(schedule.mod["main"])), schedule)
        if self.stored is None:
            return nest
        buffers = schedule.get(schedule.get_sblock("root")).alloc_buffers
        shapes = [
            " x ".join(str(extent) for extent in each.shape)
            for each in buffers
            if str(each.name) == self.stored
        ]
        return f"{self.stored} is stored as {' and '.join(shapes) or 'nothing'}\n{nest}"

    def draw(self) -> list[Sizes]:
        """Sizes for a check: large and wide, tall, small (narrower than `factor`), and square.

        `factor` divides `columns` in the first, and in the others if it must. Only the second is
        run. The square ones have the smallest factors, and one of hundreds; 16 divides its rows.
        """
        rng = fresh_rng()
        factor, outer, rows = (int(rng.integers(*span)) for span in ((3, 7), (7, 13), (8, 18)))
        many = int(rng.integers(17, 40))
        narrow = factor if self.divides else 2
        # Beyond whole parts, and so that two divides the columns: a prime can be cut in one way.
        few = int(
            rng.choice([each for each in range(1, factor) if (factor * outer + each) % 2 == 0])
        )
        columns = factor * outer + (0 if self.divides else few)
        return [
            Sizes(100 * rows, 100 * factor * (rows + outer), factor),
            Sizes(columns + few, columns, factor),
            Sizes(2, narrow, factor),
            Sizes(4, 4, 1),
            Sizes(4, 4, 2),
            Sizes(16 * (outer + many), 16 * (outer + many), 8 * (outer + many)),
        ]

    def far(self) -> list[Sizes]:
        """Far more rows, columns, or iterations of the inner loop than any processor needs."""
        rows, columns, factor = (int(each) for each in fresh_rng().integers(100_000, 400_000, 3))
        return [Sizes(rows, 2, 2), Sizes(2, 2 * columns, 2), Sizes(2, 2 * factor, factor)]

    def edges(self) -> list[Sizes]:
        """A single row or column, odd numbers of both, a factor that is the whole row or large.

        The last ones are far taller than wide, and far wider than tall.
        """
        prime = int(fresh_rng().choice([7, 11, 13]))
        return [
            Sizes(1, 2 * prime, prime),
            Sizes(prime, 3, 3),
            Sizes(prime, 1, 1),
            Sizes(prime, prime, 1 if self.divides else 2),
            Sizes(2 * prime + 1, 3 * prime, 3),
            Sizes(8, 8 * prime + (0 if self.divides else 3), 8),
            Sizes(16, 64 * prime + (0 if self.divides else 24), 64),
            Sizes(200 * prime, 2, 2),
            Sizes(2, 200 * prime, 2),
        ]


def first_difference(seen: str, wanted: str) -> str | None:
    """The first line of a picture that differs from another's, in words; None without one.

    Names of loops and of blocks do not count, nor do the scopes that a buffer had before its last.
    """
    lines = itertools.zip_longest(seen.splitlines(), wanted.splitlines())
    for number, (line, other) in enumerate(lines, start=1):
        if line is None:
            return f"line {number} is missing: `{other.strip()}`"
        if other is None:
            return f"line {number} is one too many: `{line.strip()}`"
        if _nameless(line) != _nameless(other):
            if line.strip() == other.strip():
                loops = f"{'more' if len(line) > len(other) else 'fewer'} loops than wanted"
                return f"line {number}: `{line.strip()}` is in {loops}"
            return f"line {number}: `{line.strip()}`, but should be `{other.strip()}`"
    return None


def without_trifles(picture: str) -> str:
    """A picture without its loops of one iteration, and with unrolled loops in one another as one.

    They do the same work in the same order; primitives differ in whether they leave them.
    """
    lines: list[str] = []
    dropped: list[int] = []  # indents of loops around this line that are left out
    for line in picture.splitlines():
        indent = len(line) - len(line.lstrip())
        dropped = [each for each in dropped if each < indent]
        if loop := re.search(r" in ([\w.]+)\((\d+)\):$", line):
            around = re.search(r" in unrolled\((\d+)\):$", lines[-1]) if lines else None
            if loop[2] == "1":
                dropped.append(indent)
                continue
            if (
                around
                and loop[1] == "unrolled"
                and indent > len(lines[-1]) - len(lines[-1].lstrip())
            ):
                times = int(around[1]) * int(loop[2])
                lines[-1] = f"{lines[-1][: around.start()]} in unrolled({times}):"
                dropped.append(indent)
                continue
        lines.append(line[4 * len(dropped) :])
    return "\n".join(lines)


def _nameless(line: str) -> str:
    line = re.sub(r"for \S+ in", "for _ in", line)
    line = re.sub(r"(?:_(?:global|shared|local|reindex))+(?=_(?:global|shared|local)\b)", "", line)
    return re.sub(r"^( *)\S+: (?=\S+ <-)", r"\1", line)


def _without_detours(picture: str, schedule: Any) -> str:
    """A picture without the names that TVM gives a buffer which set_scope brings back to global."""
    allocated = schedule.get(schedule.get_sblock("root")).alloc_buffers
    names = {str(each.name) for each in (*schedule.mod["main"].params, *allocated)}
    for name in names:
        back = re.fullmatch(r"(\w+?)(_(local|shared|global))*_global", name)
        if back and back[1] not in names:
            picture = re.sub(rf"\b{name}\b", back[1], picture)
    return picture


def expect_picture(puzzle: Puzzle, schedule: Any, sizes: Sizes) -> None:
    """The schedule has the loops that the puzzle asks for."""
    seen, wanted = puzzle.picture(schedule), puzzle.wanted(sizes)
    if not puzzle.exact:
        seen, wanted = without_trifles(seen), without_trifles(wanted)
    if sizes.outer == 1:  # without its loop of one iteration, a sum of one element is that element
        seen, wanted = (each.replace("Y.rf <- X, Y.rf", "Y.rf <- X") for each in (seen, wanted))
    difference = first_difference(seen, wanted)
    kind_alone = wanted == _serial(wanted) and first_difference(_serial(seen), wanted) is None
    look = "the loops are right, but all of them should stay serial"
    expect(
        difference is None,
        expected=_below(wanted),
        seen=_below(seen),
        look=f"{difference}; {look if kind_alone else puzzle.look}",
    )


def _serial(picture: str) -> str:
    """A picture as if all its loops were serial."""
    return re.sub(r"(?<= in )[\w.]+(?=\(\d+\):)", "serial", picture)


def _below(picture: str) -> str:
    return "\n" + "\n".join(f"    {line}" for line in picture.splitlines())


def side_by_side(before: str, after: str) -> str:
    """Two pictures under the headings before and after; below each other if they are too wide."""
    left, right = (["before", *before.splitlines()], ["after", *after.splitlines()])
    width = max(map(len, left))
    if width + len(_GAP) + max(map(len, right)) > _WIDTH:
        return "\n".join([*left, "", *right])
    rows = itertools.zip_longest(left, right, fillvalue="")
    return "\n".join(f"{one:<{width}}{_GAP}{other}".rstrip() for one, other in rows)


def example(name: str) -> str:
    """A puzzle's loops before and after, for `EXAMPLE`. Current TVM; called by engines.call()."""
    puzzle = PUZZLES[name]
    return side_by_side(puzzle.picture(puzzle.start(EXAMPLE)), puzzle.wanted(EXAMPLE))


def to_markdown() -> str:
    """The puzzles' pictures for docs/practice/puzzles.md. Current TVM."""
    return "\n".join(f"### `{name}`\n\n```text\n{example(name)}\n```\n" for name in PUZZLES)


def _doubled(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.columns,), name="X")
    return [X, te.compute((sizes.columns,), lambda i: X[i] * 2.0, name="Y")]


def _grid(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.rows, sizes.columns), name="X")
    return [X, te.compute(X.shape, lambda i, j: X[i, j] + 1.0, name="Y")]


def _row_sums(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.rows, sizes.columns), name="X")
    k = te.reduce_axis((0, sizes.columns), name="k")
    return [X, te.compute((sizes.rows,), lambda i: te.sum(X[i, k], axis=k), name="Y")]


def _two_stages(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.rows, sizes.columns), name="X")
    B = te.compute(X.shape, lambda i, j: X[i, j] * 2.0, name="B")
    return [X, B, te.compute(X.shape, lambda i, j: B[i, j] + 1.0, name="Y")]


def _sums_then_doubled(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.rows, sizes.columns), name="X")
    k = te.reduce_axis((0, sizes.columns), name="k")
    B = te.compute((sizes.rows,), lambda i: te.sum(X[i, k], axis=k), name="B")
    return [X, B, te.compute((sizes.rows,), lambda i: B[i] * 2.0, name="Y")]


def _neighbours(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.rows, sizes.wider), name="X")
    shape = (sizes.rows, sizes.columns)
    return [X, te.compute(shape, lambda i, j: X[i, j] + X[i, j + 1], name="Y")]


def _turned(sizes: Sizes) -> list[Any]:
    from tvm import te

    X = te.placeholder((sizes.columns, sizes.rows), name="X")
    B = te.compute(X.shape, lambda j, i: X[j, i] * 2.0, name="B")
    shape = (sizes.rows, sizes.columns)
    return [X, B, te.compute(shape, lambda i, j: B[j, i] + 1.0, name="Y")]


PUZZLES = {
    "split_loop": Puzzle(
        _doubled,
        lambda x: x * 2,
        """
        for i_0 in serial({s.outer}):
            for i_1 in serial({s.factor}):
                Y: Y <- X
        """,
        "the factors of split, outermost first; None is worked out by TVM",
        takes_factor=True,
        exact=True,
    ),
    "columns_first": Puzzle(
        _grid,
        lambda x: x + 1,
        """
        for j in serial({s.columns}):
            for i in serial({s.rows}):
                Y: Y <- X
        """,
        "the order of the loops given to reorder, outermost first",
    ),
    "one_loop": Puzzle(
        _grid,
        lambda x: x + 1,
        """
        for i_j_fused in serial({s.total}):
            Y: Y <- X
        """,
        "fuse takes the outer loop first, then the loop right inside it",
        exact=True,
    ),
    "rows_to_threads": Puzzle(
        _grid,
        lambda x: x + 1,
        """
        for i in parallel({s.rows}):
            for j in serial({s.columns}):
                Y: Y <- X
        """,
        "the loop given to parallel: the outermost, so that the threads start once",
    ),
    "columns_to_lanes": Puzzle(
        _grid,
        lambda x: x + 1,
        """
        for i in serial({s.rows}):
            for j in vectorized({s.columns}):
                Y: Y <- X
        """,
        "the loop given to vectorize: the innermost, which walks along a row",
    ),
    "written_out": Puzzle(
        _row_sums,
        lambda x: x.sum(1),
        """
        for i in serial({s.rows}):
            for k in unrolled({s.columns}):
                Y: Y <- X, Y
        """,
        "the loop given to unroll: the sum's, k",
    ),
    "no_middle_stage": Puzzle(
        _two_stages,
        lambda x: x * 2 + 1,
        """
        for i in serial({s.rows}):
            for j in serial({s.columns}):
                Y: Y <- X
        """,
        "compute_inline takes the block that is to disappear, B",
    ),
    "row_by_row": Puzzle(
        _two_stages,
        lambda x: x * 2 + 1,
        """
        for i in serial({s.rows}):
            for ax0 in serial({s.columns}):
                B: B <- X
            for j in serial({s.columns}):
                Y: Y <- B
        """,
        "compute_at takes the producer's block, and a loop of the consumer: that over rows",
    ),
    "follow_the_sum": Puzzle(
        _sums_then_doubled,
        lambda x: x.sum(1) * 2,
        """
        for i in serial({s.rows}):
            for k in serial({s.columns}):
                B: B <- B, X
            Y: Y <- B
        """,
        "reverse_compute_at takes the consumer's block, and a loop of the producer: that over "
        "rows, so that the sum is complete when it is read",
    ),
    "row_copy": Puzzle(
        _neighbours,
        lambda x: x[:, :-1] + x[:, 1:],
        """
        for i in serial({s.rows}):
            for ax0 in serial({s.wider}):
                X_local: X_local <- X
            for j in serial({s.columns}):
                Y: Y <- X_local
        """,
        'cache_read(block, 0, "local") returns the copying block; compute_at moves it into the '
        "loop over rows",
    ),
    "local_sum": Puzzle(
        _row_sums,
        lambda x: x.sum(1),
        """
        for i in serial({s.rows}):
            for k in serial({s.columns}):
                Y: Y_local <- X, Y_local
            Y_local: Y <- Y_local
        """,
        'cache_write(block, 0, "local") returns the block that copies to Y; reverse_compute_at '
        "moves it into the loop over rows",
    ),
    "zero_first": Puzzle(
        _row_sums,
        lambda x: x.sum(1),
        """
        for i in serial({s.rows}):
            Y_init: Y <- constant
            for k in serial({s.columns}):
                Y_update: Y <- X, Y
        """,
        "the loop given to decompose_reduction: the zeroing goes right before it",
    ),
    "partial_sums": Puzzle(
        _row_sums,
        lambda x: x.sum(1),
        """
        for i in serial({s.rows}):
            for k_0 in serial({s.outer}):
                for k_1 in serial({s.factor}):
                    Y_rf: Y.rf <- X, Y.rf
        for i in serial({s.rows}):
            for k_1 in serial({s.factor}):
                Y: Y <- Y, Y.rf
        """,
        "split k by factor, and give rfactor the inner loop: one partial sum per iteration of it",
        takes_factor=True,
        divides=True,
    ),
    "stored_by_columns": Puzzle(
        _turned,
        lambda x: x.T * 2 + 1,
        """
        B is stored as {s.rows} x {s.columns}
        for j in serial({s.columns}):
            for i in serial({s.rows}):
                B: B <- X
        for i in serial({s.rows}):
            for j in serial({s.columns}):
                Y: Y <- B
        """,
        "the function given to transform_layout takes B's old indices and returns the new ones",
        stored="B",
    ),
    "grid_of_threads": Puzzle(
        _grid,
        lambda x: x + 1,
        """
        for i in blockIdx.x({s.rows}):
            for j in threadIdx.x({s.columns}):
                Y: Y <- X
        """,
        'bind takes a loop and the name of a thread axis, "blockIdx.x" or "threadIdx.x"',
        runs=False,
    ),
}
