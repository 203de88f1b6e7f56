"""Phase 2: manual schedules.

A schedule rearranges the loops that phase 1 declared and never touches the formula: whatever it
does, the values stay. It is built from primitives, each a small step that TVM checks before it
takes it. Those of current TVM, `schedule` being a tvm.s_tir.Schedule:

    get_sblock("C")                 the block of a stage, by name
    get_loops(block)                its loops, outermost first
    split(loop, [None, 8])          one loop becomes two: i_0, and i_1 of 8 iterations, with
                                    i = 8 * i_0 + i_1; None is worked out, rounded up, and the
                                    block guarded where 8 does not divide
    reorder(a, b, c)                these loops in this order, other loops where they are
    fuse(a, b)                      two loops, one right inside the other, become one
    vectorize(loop)                 its iterations become the lanes of vector instructions
    parallel(loop)                  its iterations are shared among the threads
    unroll(loop)                    its body is written out, iteration after iteration
    cache_write(block, 0, "local")  the block writes to a new buffer instead of its output; a
                                    new block, which is returned, copies the one to the other
    set_scope(block, 0, "local")    the block's own output becomes such a buffer
    compute_at(block, loop)         a block that produces moves into a loop of its consumer
    reverse_compute_at(block, loop) a block that consumes moves into a loop of its producer
    decompose_reduction(block, loop)
                                    a sum's start at zero becomes a block of its own, just
                                    before `loop`; call it last: what is left of the sum can no
                                    longer be vectorized or run in parallel

Classic TVM has the same ideas under other names. A schedule has one stage for each tensor, and
the primitives are methods of the stage:

    schedule = te.create_schedule(C.op)
    i, j = C.op.axis                                      (k,) = C.op.reduce_axis
    outer, inner = schedule[C].split(i, factor=8)         schedule[C].reorder(outer, k, inner)
    fused = schedule[C].fuse(outer, j)                    schedule[C].parallel(fused)

The worked example is a transposition in blocks, in both. Write the functions below it, then run

    python -m tvm_practice.manual_schedule
    pytest -m phase2
"""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.phase import phase_command

if TYPE_CHECKING:
    from tvm_practice.course import Steps
    from tvm_practice.measure import Comparison

_TRANSPOSE_BLOCK = 16  # floats: a cache line of most processors
_SIZES_AGAINST_TORCH = (1024, 1021)  # the second is prime: no tile divides it
_SCANNED_SIZE = 1024


def transpose(n: int) -> list[Any]:
    """The worked example's expression: Y[i, j] = X[j, i].

    Args:
        n: rows and columns of X and Y.

    Returns:
        The tensors [X, Y], float32.
    """
    from tvm import te

    X = te.placeholder((n, n), name="X")
    Y = te.compute((n, n), lambda i, j: X[j, i], name="Y")
    return [X, Y]


def in_blocks(schedule: Any, block: Any, size: int) -> None:
    """Worked example: run the two loops of `transpose` block by block.

    Row after row of Y reads X column by column: every read is in another cache line, and the
    line is gone again before its next element is wanted. In blocks of size x size, the lines of
    a block of X stay in the cache until all their elements are used.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the block of Y.
        size: rows and columns of a block.
    """
    i, j = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, size])
    j_outer, j_inner = schedule.split(j, [None, size])
    schedule.reorder(i_outer, j_outer, i_inner, j_inner)


def in_blocks_classic(tensors: list[Any], size: int) -> Any:
    """Worked example: `in_blocks` in classic TVM, as a tvm.te.Schedule."""
    from tvm import te

    Y = tensors[-1]
    schedule = te.create_schedule(Y.op)
    i, j = Y.op.axis
    i_outer, i_inner = schedule[Y].split(i, factor=size)
    j_outer, j_inner = schedule[Y].split(j, factor=size)
    schedule[Y].reorder(i_outer, j_outer, i_inner, j_inner)
    return schedule


def register_tile() -> tuple[int, int]:
    """Worked: rows and columns of the tile of C that this processor's registers can hold.

    At each step of k a tile needs its accumulators (rows x columns), one row of B (columns), and
    one value of A copied to a whole register. Two registers of columns give every value of A
    two uses; rows are then the largest power of two that leaves room for the rest. A tile that
    is too small waits for the multiply-adds to come out of the pipeline and loads more than it
    computes; one that is too large moves accumulators to memory and back.

    Returns:
        (rows, columns): 8 x 32 where 32 registers hold 16 floats each.
    """
    from tvm_practice import engines

    here = engines.host()
    row_of_b = 2
    most_rows = (here.vector_registers - row_of_b - 1) // row_of_b
    return 1 << (most_rows.bit_length() - 1), row_of_b * here.vector_lanes


def packed_blocking(n: int) -> dict[str, Any]:
    """Worked: the blocking of `packed_matmul` for n columns on this processor.

    Its tiles need not divide the matrix, since the copies are padded, and can fill the registers.
    An eighth of them holds a row of B, and rows are as many as leave one for the values of A. A
    tile is wider than tall because A passes by once for every column block.

    Returns:
        rows and columns (6 x 64 where 32 registers hold 16 floats each, 6 x 16 where 16 hold 8),
        and rows_first, which is set where there are not two column blocks for every thread.
    """
    from tvm_practice import engines

    here = engines.host()
    row_of_b = here.vector_registers // 8
    columns = row_of_b * here.vector_lanes
    return {
        "rows": (here.vector_registers - row_of_b - 1) // row_of_b,
        "columns": columns,
        "rows_first": -(-n // columns) < 2 * engines.thread_count(),
    }


def tile(schedule: Any, block: Any, tile_m: int, tile_n: int) -> list[Any]:
    """Compute C tile by tile: split the rows and the columns, then reorder.

    The block's last three loops are i (rows), j (columns) and k (the sum). Afterwards they are,
    outermost first, i_outer, j_outer, k, i_inner, j_inner: all of k for one tile before the next
    tile. Loops outside i stay as they are. Tiles need not divide the matrix: `split` rounds the
    outer loop up and guards the block.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block, as schedule.get_sblock gives it.
        tile_m: rows of a tile, the extent of i_inner.
        tile_n: columns of a tile, the extent of j_inner.

    Returns:
        The loops [i_outer, j_outer, k, i_inner, j_inner].
    """
    raise NotImplementedError("split i and j with schedule.split, then schedule.reorder")


def vectorize(schedule: Any, block: Any) -> None:
    """Have the innermost loop of a tiled block done by vector instructions.

    Of i_outer, j_outer, k, i_inner, j_inner only the last walks along a row of B and of C, so
    that neighbouring iterations touch neighbouring floats. The other loops stay serial.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block whose loops are as `tile` leaves them.
    """
    raise NotImplementedError("schedule.vectorize of the innermost loop")


def parallelize(schedule: Any, block: Any) -> None:
    """Share the tiles among the threads.

    Fuse i_outer and j_outer, so that every tile is a task of its own, and run the fused loop in
    parallel. Never k: its iterations add to the same elements of C.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: a block whose loops are as `tile` leaves them: i_outer, j_outer, k, i_inner,
            j_inner (the last may be vectorized).
    """
    raise NotImplementedError("schedule.fuse of the two tile loops, then schedule.parallel")


def register_block(schedule: Any, block: Any, rows: int, columns: int, unroll_k: int) -> None:
    """Keep a tile of C in registers while all of k is added to it.

    The block's last three loops are i, j and k; loops outside i stay as they are. Tile them to
    i_outer, j_outer, k_outer, k_inner, i_inner, j_inner, with j_inner vectorized and i_inner and
    k_inner unrolled. The block adds up in a buffer of scope "local", which is written to C once a
    tile, inside j_outer and after k_outer. What sets the buffer to zero is a statement of its
    own before k_outer: decompose_reduction, as the last primitive, for vectorize is refused
    after it.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block.
        rows: rows of a tile, the extent of i_inner.
        columns: columns of a tile, the extent of j_inner.
        unroll_k: the extent of k_inner. None of the three need divide its loop.
    """
    raise NotImplementedError(
        "cache_write, split, reorder, vectorize, unroll, then decompose_reduction"
    )


def packed_matmul(
    m: int, n: int, k: int, *, rows: int, columns: int, unroll_k: int = 4, rows_first: bool = False
) -> Any:  # a tvm.s_tir.Schedule
    """A matmul near the processor's peak: packed inputs, a register block, all threads.

    Declare and schedule a PrimFunc main(A, B, C) of float32 buffers (m, k), (k, n), (m, n):

    - A_packed [m/rows][k][rows]: the rows of A that one tile reads, one column after the other
      without a gap. Packed first, its outermost loop parallel.
    - B_packed [n/columns][k][columns]: likewise for the columns of B. Packed inside the parallel
      loop over column blocks, just before they are used, its columns vectorized.
    - Tiles of rows x columns accumulate in a "local" buffer, as in `register_block`: columns
      vectorized, rows and unroll_k steps of k unrolled, set to zero before k, written to C once.
    - The loop over column blocks is parallel, that over row blocks is next: a column block of B
      stays in a near cache while all of A passes by. With rows_first A and B change places.

    The packed buffers round m, n and k up and hold zeros there, so that the loop over k needs no
    guard whatever the sizes; only the write-back has one.

    Args:
        m: rows of A and C.
        n: columns of B and C.
        k: columns of A, rows of B.
        rows: rows of a tile.
        columns: columns of a tile, a multiple of the vector's lanes for speed.
        unroll_k: steps of k that are unrolled.
        rows_first: whether the parallel loop is over row blocks, with A packed inside it and B
            before: where there are fewer column blocks than threads.

    Returns:
        The tvm.s_tir.Schedule.
    """
    raise NotImplementedError("declare the packed stages and schedule them as register_block does")


def tile_classic(tensors: list[Any], tile_m: int, tile_n: int) -> Any:  # a tvm.te.Schedule
    """`tile`, `vectorize` and `parallelize` in classic TVM's words.

    A classic schedule holds one stage for each tensor, schedule[C], and its loops are the axes of
    that stage: C.op.axis (rows, columns) and C.op.reduce_axis (k). The loops become i_outer and
    j_outer fused and parallel, k, i_inner, and j_inner vectorized.

    Args:
        tensors: [A, B, C] as `matmul` of phase 1 returns them.
        tile_m: rows of a tile.
        tile_n: columns of a tile.

    Returns:
        The tvm.te.Schedule of te.create_schedule.
    """
    raise NotImplementedError("te.create_schedule, then the same steps on the stage of C")


def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """Schedule a matmul step by step on the active engine: show, verify and time each step."""
    from tvm_practice import engines

    _show_transpose(2048 if quick else 4096)
    matmuls = _Matmuls(steps, 512 if quick else 768)
    matmuls.add("naive", matmuls.naive()[0], "the loops as phase 1 declared them.", "")
    if engines.active() == engines.CLASSIC:
        _classic_steps(matmuls)
    else:
        _current_steps(matmuls)
    figures = matmuls.time(seconds=3 if quick else 10)
    if engines.active() == engines.CURRENT:
        figures["study"] = _look(steps, 256 if quick else 512)
    if "packed_matmul" in matmuls.runs:
        figures["torch"] = _against_torch(matmuls)
        figures["convolution"] = _on_a_convolution()
        if not quick:
            figures["scan"] = _scan_tiles(matmuls)
    return figures


def _look(steps: "Steps", size: int) -> str:
    """Draw the schedules' memory accesses, count their cache misses; the file with all of it."""
    import json

    from rich.console import Console
    from rich.table import Table

    from tvm_practice.viz.drawing import standalone
    from tvm_practice.viz.studies import matmul_study

    print(
        f"\nWhy? All accesses of a {size}³ matmul, read from the IR of each schedule, through a\n"
        "model of this machine's caches: misses for 1000 multiply-adds."
    )
    study = matmul_study(size, source=steps.source)
    cache = study["cache"]
    levels = [each.partition(":")[0] for each in cache["levels"]]
    table = Table("schedule", "accesses", *levels)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, counts in cache["counts"].items():
        rates = (1000 * sum(counts["misses"][level].values()) / cache["work"] for level in levels)
        accesses = 1000 * sum(counts["accesses"].values()) / cache["work"]
        table.add_row(name, f"{accesses:.0f}", *(f"{rate:.4g}" for rate in rates))
    Console().print(table)
    print(f"({'; '.join(cache['levels'])})")
    file = steps.folder / "study.json"
    file.write_text(json.dumps(study))
    for name, svg in (("access", study["access"]), ("cache", cache["svg"])):
        picture = steps.folder / f"{name}.svg"
        picture.write_text(standalone(svg))
        print(f"picture: {picture}")
    return str(file)


def _current_steps(matmuls: "_Matmuls") -> None:
    from solutions.manual_schedule import tile as reference_tile

    rows, columns = register_tile()
    schedule, block = matmuls.naive()
    if matmuls.done("tile", schedule, block, rows, columns):
        matmuls.add(
            "tile",
            schedule,
            f"tiles of {rows}x{columns}; all of k for one tile, then the next.",
            f"each float of B that is loaded is used by {rows} rows while it is near",
        )

    def tiled() -> tuple[Any, Any]:
        """A tiled schedule for the steps after it, even while `tile` is to do."""
        schedule, block = matmuls.naive()
        if "tile" in matmuls.runs:
            matmuls.steps.attempt("tile", schedule, block, rows, columns)
        else:
            reference_tile(schedule, block, rows, columns)
        return schedule, block

    schedule, block = tiled()
    if matmuls.done("vectorize", schedule, block):
        matmuls.add(
            "vectorize",
            schedule,
            "the same, a row of the tile in vector instructions.",
            "one instruction multiplies and adds a register full of floats",
        )

    schedule, block = tiled()
    if "vectorize" in matmuls.runs:
        matmuls.steps.attempt("vectorize", schedule, block)
    if matmuls.done("parallelize", schedule, block):
        matmuls.add(
            "parallelize",
            schedule,
            "the same, the tiles shared among the threads.",
            "tiles do not depend on each other, so no thread waits for another",
        )

    schedule, block = matmuls.naive()
    outer, _ = schedule.split(schedule.get_loops(block)[0], [None, 8 * rows])
    schedule.parallel(outer)
    if matmuls.done("register_block", schedule, block, rows, columns, 4):
        matmuls.add(
            "register_block",
            schedule,
            "a tile adds up in registers; 8 rows of tiles make a task.",
            "the tile of C goes to memory once, not once for every k",
        )

    size = matmuls.size
    blocking = packed_blocking(size)
    packed = matmuls.steps.attempt("packed_matmul", size, size, size, **blocking)
    if matmuls.ran("packed_matmul"):
        matmuls.add(
            "packed_matmul",
            packed,
            f"tiles of {blocking['rows']}x{blocking['columns']}; copies are read in order of use.",
            "no strides: each cache line and page that is fetched is used up",
        )


def _classic_steps(matmuls: "_Matmuls") -> None:
    rows, columns = register_tile()
    schedule = matmuls.steps.attempt("tile_classic", matmuls.tensors, rows, columns)
    if matmuls.ran("tile_classic"):
        matmuls.add(
            "tile_classic",
            schedule,
            f"tiles of {rows}x{columns}, their rows vectorized, the tiles in parallel.",
            "current TVM's tile, vectorize and parallelize in one",
        )


class _Matmuls:
    """Schedules of one matmul: each shown and verified as it comes, then timed side by side.

    Attributes:
        size: rows and columns of A, B and C.
        tensors: [A, B, C] of phase 1's matmul.
        runs: the schedules that were right, compiled, by name.
    """

    def __init__(self, steps: "Steps", size: int):
        import numpy as np

        from solutions.te_basics import matmul

        print(f"\nMatmul of {size}x{size}x{size}, float32: from naive loops to fast ones.")
        self.steps = steps
        self.size = size
        self.tensors = matmul(size, size, size)
        self.runs: dict[str, Callable[[], Any]] = {}
        self._reasons: dict[str, str] = {}
        largest = max(size, *_SIZES_AGAINST_TORCH)
        self._inputs = np.random.default_rng().standard_normal((2, largest, largest), "float32")

    def naive(self) -> tuple[Any, Any]:
        """A fresh schedule of the matmul, and its block."""
        return _fresh_schedule(self.tensors)

    def done(self, name: str, *arguments: Any) -> bool:
        """Call a step that changes a schedule in place; whether it is written and ran."""
        self.steps.attempt(name, *arguments)
        return self.ran(name)

    def ran(self, name: str) -> bool:
        return name not in self.steps.todo and name not in self.steps.failed

    def inputs(self, size: int) -> tuple[Any, Any]:
        """A and B of a matmul of that size."""
        a, b = (each[:size, :size].copy() for each in self._inputs)
        return a, b

    def build(
        self, name: str, schedule: Any, size: int, *, show: bool = False, quiet: bool = False
    ) -> Callable[[], Any] | None:
        """Compile a schedule and run it once; None, and a failure of `name`, if it is wrong.

        Args:
            show: print its loops first.
            quiet: do not say how far from numpy it is.
        """
        import numpy as np

        from tvm_practice.viz.loop_nest import print_nest

        a, b = self.inputs(size)
        try:
            if show:
                print_nest(name, _nest(schedule))
            run, values = _compile(schedule, self.tensors, [a, b], (size, size))
            run()
        except Exception as error:  # whatever TVM finds wrong with the learner's schedule
            lines = str(error).strip().splitlines() or ["(no message)"]
            self._fail(name, f"{type(error).__name__}: {lines[-1]}")
            return None
        off = np.abs(values() - a @ b).max()
        if not off <= 1e-5 * size:  # NaN is wrong too
            self._fail(name, f"at {size} its values differ from numpy's by {off:.3g}")
            return None
        if not quiet:
            print(f"built and run: largest difference from numpy {off:.1e}")
        return run

    def _fail(self, name: str, reason: str) -> None:
        from rich.console import Console

        self.steps.failed[name] = reason
        Console().print(f"fails  {name}: {reason}", markup=False, highlight=False)

    def add(self, name: str, schedule: Any, what: str, why: str) -> None:
        """Print the schedule's loops, compile it, and keep it if its values are numpy's.

        Args:
            what: what the step does, said before.
            why: why it is faster, said after the timing.
        """
        print(f"\n{name}: {what}")
        run = self.build(name, schedule, self.size, show=True)
        if run is not None:
            self.runs[name] = run
            self._reasons[name] = why

    def packed(
        self, size: int, blocking: Mapping[str, Any], *, quiet: bool = False
    ) -> Callable[[], Any] | None:
        """packed_matmul of that size, built."""
        name = "packed_matmul"
        schedule = self.steps.attempt(name, size, size, size, **blocking)
        return self.build(name, schedule, size, quiet=quiet) if self.ran(name) else None

    def time(self, *, seconds: float) -> dict[str, Any]:
        """Time all of `runs` in turns, for about that long, and print a table."""
        from tvm_practice import engines
        from tvm_practice.measure import compare_interleaved

        print(
            f"\nAll of them in turns, on {engines.thread_count()} threads. ms is the median, "
            "`x naive` says how\nmany times as fast as naive, with its 95% interval."
        )
        comparison = compare_interleaved(
            self.runs, baseline="naive", rounds=10, warmup=1, time_limit=seconds
        )
        figures = _print_comparison(comparison, "step", self.size)
        for name, why in self._reasons.items():
            if why:
                print(f"{name}: {why}.")
        return {"size": self.size, "threads": engines.thread_count(), **figures}


def _against_torch(matmuls: _Matmuls) -> dict[str, Any]:
    """packed_matmul and torch.matmul in turns, also at a prime size, which no tile divides."""
    import torch

    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved

    torch.set_num_threads(engines.thread_count())
    figures = {}
    for size in _SIZES_AGAINST_TORCH:
        print(
            f"\npacked_matmul and torch.matmul in turns at {size}"
            + (", a prime:" if size % 2 else ":")
        )
        run = matmuls.packed(size, packed_blocking(size))
        if run is None:
            continue
        a, b = (torch.from_numpy(each) for each in matmuls.inputs(size))
        comparison = compare_interleaved(
            {"packed_matmul": run, "torch.matmul": functools.partial(torch.matmul, a, b)},
            baseline="torch.matmul",
            time_limit=3,
        )
        figures[str(size)] = _print_comparison(comparison, f"at {size}", size)
        print(f"packed_matmul: {comparison.ratio['packed_matmul'].verdict}")
    return figures


def _on_a_convolution() -> dict[str, Any]:
    """Worked: the trace of packed_matmul replayed on one of ResNet-18's convolutions."""
    from tvm_practice.course.tours.convolution import beside_torch

    comparison, error = beside_torch(128, 28, 28, 128, 1, seconds=1)
    ratio = comparison.ratio["packed"]
    print(
        "\nA schedule is data: the reference packed_matmul's is replayed on a convolution\n"
        f"of 128x28x28 by 128 filters of 3x3 (tvm_practice/course/tours/convolution.py). It takes\n"
        f"{ratio.value:.2f} of torch's time [{ratio.low:.2f}, {ratio.high:.2f}]: {ratio.verdict}; "
        f"largest difference\nfrom torch {error:.1e}."
    )
    return {"max_error": error, **comparison.to_dict()}


def _scan_tiles(matmuls: _Matmuls) -> dict[str, Any]:
    """Time packed_matmul with other tiles than packed_blocking's."""
    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved

    here = engines.host()
    blocking = packed_blocking(_SCANNED_SIZE)
    rows, columns = blocking["rows"], blocking["columns"]
    print(
        f"\nOther tiles of packed_matmul. A register holds {here.vector_lanes} floats: a tile "
        f"adds up in\nrows x columns / {here.vector_lanes} registers, of which there are "
        f"{here.vector_registers}."
    )
    tiles = [
        (rows, columns),
        (1, columns),
        (rows // 2, columns),
        (rows, columns // 2),
        (rows // 2, columns * 2),
        (rows * 2, columns),
        (rows * 2, columns * 2),
    ]
    default = f"{rows}x{columns}"
    built = {
        f"{r}x{c}": matmuls.packed(_SCANNED_SIZE, {**blocking, "rows": r, "columns": c}, quiet=True)
        for r, c in tiles
    }
    turned = {**blocking, "rows_first": not blocking["rows_first"]}
    first = "rows" if turned["rows_first"] else "columns"
    built[f"{default}, {first} first"] = matmuls.packed(_SCANNED_SIZE, turned, quiet=True)
    runs = {name: run for name, run in built.items() if run is not None}
    if len(runs) < len(built):
        return {}
    comparison = compare_interleaved(runs, baseline=default, rounds=15, time_limit=10)
    return _print_comparison(comparison, f"at {_SCANNED_SIZE}", _SCANNED_SIZE)


def _print_comparison(comparison: "Comparison", what: str, size: int) -> dict[str, Any]:
    """Print a table of matmuls of that size; returns it as figures, GFLOP/s included."""
    from rich.console import Console
    from rich.table import Table

    table = Table(what)
    for title in ("ms", "GFLOP/s", f"x {comparison.baseline}", "95% interval"):
        table.add_column(title, justify="right")
    gflops = {}
    for name, latency in comparison.latency.items():
        ratio = comparison.ratio[name]
        gflops[name] = 2 * size**3 / latency.median / 1e6
        table.add_row(
            name,
            f"{latency.median:.2f}",
            f"{gflops[name]:.1f}",
            f"{1 / ratio.value:.2f}",
            "" if name == comparison.baseline else f"{1 / ratio.high:.2f} to {1 / ratio.low:.2f}",
        )
    Console().print(table)
    return {"gflops": gflops, **comparison.to_dict()}


def _show_transpose(n: int) -> None:
    """The worked example: its loops before and after, and the time of both."""
    import numpy as np

    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved
    from tvm_practice.viz.loop_nest import print_nest

    tensors = transpose(n)
    before, block = _fresh_schedule(tensors)
    print(f"\nWorked example: a transposition of {n}x{n}, row by row.")
    print_nest("before", _nest(before))
    if engines.active() == engines.CLASSIC:
        after = in_blocks_classic(tensors, _TRANSPOSE_BLOCK)
    else:
        after, block = _fresh_schedule(tensors)
        in_blocks(after, block, _TRANSPOSE_BLOCK)
    print(f"Two splits and a reorder: the same in blocks of {_TRANSPOSE_BLOCK}.")
    print_nest("after", _nest(after))
    x = np.random.default_rng().standard_normal((n, n), dtype="float32")
    runs = {}
    for name, schedule in (("before", before), ("after", after)):
        runs[name], values = _compile(schedule, tensors, [x], (n, n))
        runs[name]()
        print(f"{name}: equal to numpy's: {np.array_equal(values(), x.T)}")
    ratio = compare_interleaved(runs, baseline="before", rounds=10).ratio["after"]
    print(
        f"In blocks it takes {ratio.value:.2f} of the time "
        f"[{ratio.low:.2f}, {ratio.high:.2f}]: {ratio.verdict}."
    )


def _fresh_schedule(tensors: list[Any]) -> tuple[Any, Any]:
    """The active engine's schedule of an expression as it stands, and the output's block."""
    from tvm import te

    from tvm_practice import engines

    output = tensors[-1]
    if engines.active() == engines.CLASSIC:
        schedule = te.create_schedule(output.op)
        return schedule, schedule[output]
    import tvm

    function = te.create_prim_func(tensors).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    return schedule, schedule.get_sblock(output.op.name)


def _nest(schedule: Any) -> list[Any]:
    from tvm_practice import engines
    from tvm_practice.viz.loop_nest import classic_statement, loop_nest

    if engines.active() == engines.CLASSIC:
        return loop_nest(classic_statement(schedule))
    return loop_nest(schedule.mod["main"])


def _compile(
    schedule: Any, tensors: list[Any], inputs: list[Any], shape: tuple[int, int]
) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """Compile a schedule for this machine's processor.

    Returns a function that runs it on the inputs, and one that gives the output it left.
    """
    import numpy as np
    import tvm

    from tvm_practice import engines

    if engines.active() == engines.CLASSIC:
        function = tvm.build(schedule, tensors, target=engines.host_target())
        on_device = tvm.nd.array
    else:
        function = tvm.compile(schedule.mod, target=engines.host_target())["main"]
        on_device = tvm.runtime.tensor
    output = on_device(np.zeros(shape, "float32"))
    return functools.partial(function, *(on_device(each) for each in inputs), output), output.numpy


def report(results: Mapping[str, Any], folder: Path) -> None:
    """Plot the GFLOP/s of every step, on each engine that ran."""
    from matplotlib.figure import Figure

    lanes = {engine: lane["figures"] for engine, lane in results.items() if "figures" in lane}
    if not lanes:
        return
    count = sum(len(figures["gflops"]) for figures in lanes.values())
    figure = Figure(figsize=(8, 1.5 + 0.4 * count), layout="constrained")
    axes = figure.subplots()
    labels: list[str] = []
    for engine, figures in lanes.items():
        values = list(figures["gflops"].values())
        rows = range(len(labels), len(labels) + len(values))
        bars = axes.barh(rows, values, label=f"{engine} TVM")
        axes.bar_label(bars, fmt="%.3g", padding=3)
        labels += figures["gflops"]
    some = next(iter(lanes.values()))
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.margins(x=0.15)
    axes.set_xlabel("GFLOP/s (log scale)")
    axes.set_title(f"Matmul {some['size']}³ float32, {some['threads']} threads")
    axes.legend(loc="upper right")
    path = folder / "gflops_by_step.png"
    figure.savefig(path, dpi=120)
    print(f"\nplot: {path}")


main = phase_command(
    "manual_schedule", "Phase 2: manual schedules, the same matmul made faster step by step."
)

if __name__ == "__main__":
    main()
