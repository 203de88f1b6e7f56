"""What phase 2 shows: a matmul's schedules, each verified, and timed beside the others."""

import functools
import itertools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.catalog import MINE
from tvm_practice.course.steps import Steps
from tvm_practice.course.tours import accepted_but_wrong
from tvm_practice.course.tours.printing import number_table, say, show, show_comparison
from tvm_practice.engines.blocking import packed_blocking, register_tile

if TYPE_CHECKING:
    from tvm_practice.measure import Comparison

_TRANSPOSE_TILE = 16  # floats: a cache line of most processors
_SIZES_AGAINST_TORCH = (1024, 1021)  # the second is prime: no tile divides it
_SCANNED_SIZE = 1024

Run = Callable[[], Any]


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Schedule a matmul step by step on the active engine: show, verify and time each step.

    Returns:
        {"size", "threads", "gflops": by step, and what a Comparison holds}; on current TVM also
        "study": the file that `_look` writes; once packed_matmul is written, "torch" and
        "convolution", and "scan" unless quick.
    """
    from tvm_practice import engines

    _show_transpose(steps, 2048 if quick else 4096)
    matmuls = _Matmuls(steps, 512 if quick else 768)
    matmuls.add("naive", matmuls.naive()[0], "the loops as phase 1 declared them.", "")
    if engines.active() == engines.CLASSIC:
        _add_classic(matmuls)
    else:
        _add_in_tiles(matmuls)
        _add_in_registers(matmuls)
        _add_packed(matmuls)
    accepted_but_wrong.lane()
    figures = matmuls.time(seconds=3 if quick else 10)
    if engines.active() == engines.CURRENT:
        figures["study"] = _look(steps, 256 if quick else 512)
    if "packed_matmul" in matmuls.runs:
        figures["torch"] = _against_torch(matmuls)
        figures["convolution"] = _on_a_convolution()
        if not quick:
            figures["scan"] = _scan_tiles(matmuls)
    return figures


def _show_transpose(steps: Steps, n: int) -> None:
    """The worked example: its loops before and after, and the time of both."""
    from tvm_practice import engines
    from tvm_practice.viz.loop_nest import print_nest

    chapter = steps.chapter
    tensors = chapter.transpose(n)
    before, _ = _fresh_schedule(steps, tensors)
    print(f"\nWorked example: a transposition of {n}x{n}, row by row.")
    print_nest("before", _nest(before))
    if engines.active() == engines.CLASSIC:
        after = chapter.in_tiles_classic(tensors, _TRANSPOSE_TILE)
    else:
        after, block = _fresh_schedule(steps, tensors)
        chapter.in_tiles(after, block, _TRANSPOSE_TILE)
    print(f"Two splits and a reorder: the same in tiles of {_TRANSPOSE_TILE}.")
    print_nest("after", _nest(after))
    _time_transpose(tensors, {"before": before, "after": after}, n)


def _time_transpose(tensors: list[Any], schedules: Mapping[str, Any], n: int) -> None:
    import numpy as np

    from tvm_practice.course.tours.products import compiled, on_device
    from tvm_practice.measure import compare_interleaved

    x = np.random.default_rng().standard_normal((n, n), dtype="float32")
    runs = {}
    for name, schedule in schedules.items():
        arguments = on_device(x, np.zeros_like(x))
        runs[name] = functools.partial(compiled(schedule, tensors)["main"], *arguments)
        runs[name]()
        print(f"{name}: equal to numpy's: {np.array_equal(arguments[-1].numpy(), x.T)}")
    ratio = compare_interleaved(runs, baseline="before", rounds=10).ratio["after"]
    print(f"Time in tiles over time without: {ratio}.")


def _fresh_schedule(steps: Steps, tensors: list[Any]) -> tuple[Any, Any]:
    """The active engine's schedule of an expression as it stands, and the output's block."""
    from tvm import te

    from tvm_practice import engines

    if engines.active() == engines.CLASSIC:
        schedule = te.create_schedule(tensors[-1].op)
        return schedule, schedule[tensors[-1]]
    schedule, block = steps.chapter.fresh_schedule(tensors)
    return schedule, block


def _nest(schedule: Any) -> list[Any]:
    from tvm_practice import engines
    from tvm_practice.viz.loop_nest import classic_statement, loop_nest

    if engines.active() == engines.CLASSIC:
        return loop_nest(classic_statement(schedule))
    return loop_nest(schedule.mod["main"])


class _Matmuls:
    """Schedules of one matmul: each shown and verified as it comes, then timed side by side.

    Attributes:
        size: rows and columns of A, B and C.
        tile: rows and columns of a tile of C.
        tensors: [A, B, C] of phase 1's matmul.
        runs: the schedules that were right, compiled, by name.
    """

    def __init__(self, steps: Steps, size: int):
        import numpy as np

        from tvm_practice.course.stack import earlier

        print(f"\nMatmul of {size}x{size}x{size}, float32: from naive loops to fast ones.")
        self.steps = steps
        self.size = size
        self.tile = register_tile()
        self.tensors = earlier("te_basics.matmul")(size, size, size)
        self.runs: dict[str, Run] = {}
        self._reasons: dict[str, str] = {}
        largest = max(size, *_SIZES_AGAINST_TORCH)
        self._inputs = np.random.default_rng().standard_normal((2, largest, largest), "float32")

    def naive(self) -> tuple[Any, Any]:
        """A fresh schedule of the matmul, and its block."""
        return _fresh_schedule(self.steps, self.tensors)

    def inputs(self, size: int) -> tuple[Any, Any]:
        """A and B of a matmul of that size."""
        a, b = (each[:size, :size].copy() for each in self._inputs)
        return a, b

    def change(
        self, name: str, schedule: Any, block: Any, *numbers: int, what: str, why: str
    ) -> None:
        """Call the step `name`, which changes a schedule in place, and `add` what it made."""
        self.steps.attempt(name, schedule, block, *numbers)
        if self.steps.ran(name):
            self.add(name, schedule, what, why)

    def add(self, name: str, schedule: Any, what: str, why: str) -> None:
        """Print the schedule's loops, compile it, and keep it if its values are numpy's.

        Args:
            what: what the step does, said before.
            why: why it is faster, said after the timing.
        """
        print(f"\n{name}: {what}")
        run = self._build(name, schedule, self.size, show_loops=True)
        if run is not None:
            self.runs[name] = run
            self._reasons[name] = why

    def packed(self, size: int, blocking: Mapping[str, Any], *, quiet: bool = False) -> Run | None:
        """packed_matmul of that size, compiled; None if it is wrong."""
        name = "packed_matmul"
        schedule = self.steps.attempt(name, size, size, size, **blocking)
        return self._build(name, schedule, size, quiet=quiet) if self.steps.ran(name) else None

    def _build(
        self, name: str, schedule: Any, size: int, *, show_loops: bool = False, quiet: bool = False
    ) -> Run | None:
        """Compile a schedule and run it once; None, and a failure of `name`, if it is wrong.

        Args:
            show_loops: print them first.
            quiet: do not say how far from numpy it is.
        """
        from tvm_practice.course.tours.products import Product, compiled
        from tvm_practice.viz.loop_nest import print_nest

        product = Product(*self.inputs(size))
        try:
            if show_loops:
                print_nest(name, _nest(schedule))
            run = functools.partial(compiled(schedule, self.tensors)["main"], *product.arguments)
            run()
        except Exception as error:  # whatever TVM finds wrong with the learner's schedule
            lines = str(error).strip().splitlines() or ["(no message)"]
            self._fail(name, f"{type(error).__name__}: {lines[-1]}")
            return None
        off = product.difference()
        if not product.is_right():
            self._fail(name, f"at {size} its values differ from numpy's by {off:.3g}")
            return None
        if not quiet:
            print(f"built and run: largest difference from numpy {off:.1e}")
        return run

    def _fail(self, name: str, reason: str) -> None:
        from rich.console import Console

        self.steps.failed[name] = reason
        Console().print(f"fails  {name}: {reason}", markup=False, highlight=False)

    def time(self, *, seconds: float) -> dict[str, Any]:
        """Time all of `runs` in turns, for about that long, and print a table."""
        from tvm_practice import engines
        from tvm_practice.measure import compare_interleaved

        print(
            f"\nAll schedules, timed in turns on {engines.thread_count()} threads. "
            "ms is the median, x naive\nhow many times as fast as naive, with the 95% interval."
        )
        comparison = compare_interleaved(
            self.runs, baseline="naive", rounds=10, warmup=1, time_limit=seconds
        )
        _print_comparison(comparison, "step", self.size)
        figures = _figures(comparison, self.size)
        for line in explained(figures["gflops"], self._reasons):
            say(line)
        return {"size": self.size, "threads": engines.thread_count(), **figures}


def explained(gflops: Mapping[str, float], reasons: Mapping[str, str]) -> list[str]:
    """A line for each step: why it is faster than the one before it, if it is.

    Args:
        gflops: by step, in the order in which they were added.
        reasons: why a step should be faster, by step; "" for one with nothing before it.
    """
    lines = []
    for before, name in itertools.pairwise(gflops):
        if not (why := reasons[name]):
            continue
        if gflops[name] > gflops[before]:
            lines.append(f"{name}: {why}.")
        else:
            lines.append(f"{name}: no faster than {before} here. Where it is faster: {why}.")
    return lines


def _add_classic(matmuls: _Matmuls) -> None:
    rows, columns = matmuls.tile
    schedule = matmuls.steps.attempt("tile_classic", matmuls.tensors, rows, columns)
    if matmuls.steps.ran("tile_classic"):
        matmuls.add(
            "tile_classic",
            schedule,
            f"tiles of {rows}x{columns}, each row in vectors, the tiles in parallel.",
            "current TVM's tile, vectorize and parallelize in one",
        )


def _add_in_tiles(matmuls: _Matmuls) -> None:
    """Tile, vectorize, parallelize: each on top of those before it that are written."""
    rows, columns = matmuls.tile
    matmuls.change(
        "tile",
        *matmuls.naive(),
        rows,
        columns,
        what=f"tiles of {rows}x{columns}; all of k for one tile, then the next.",
        why=f"each float of B, once loaded, is used for {rows} rows while it is still in a cache",
    )
    if "tile" not in matmuls.runs:
        say("\nThe next steps build on the reference tile until yours is right.")
    matmuls.change(
        "vectorize",
        *_tiled(matmuls),
        what="the same, a row of the tile in vector instructions.",
        why="one instruction multiplies and adds a register full of floats",
    )
    schedule, block = _tiled(matmuls)
    if "vectorize" in matmuls.runs:
        matmuls.steps.attempt("vectorize", schedule, block)
    matmuls.change(
        "parallelize",
        schedule,
        block,
        what="the same, the tiles shared among the threads.",
        why="tiles do not depend on each other, so no thread waits for another",
    )


def _tiled(matmuls: _Matmuls) -> tuple[Any, Any]:
    """A tiled schedule for the steps after it, even while `tile` is to do."""
    from solutions.manual_schedule import tile as reference_tile

    schedule, block = matmuls.naive()
    if "tile" in matmuls.runs:
        matmuls.steps.attempt("tile", schedule, block, *matmuls.tile)
    else:
        reference_tile(schedule, block, *matmuls.tile)
    return schedule, block


def _add_in_registers(matmuls: _Matmuls) -> None:
    rows, columns = matmuls.tile
    schedule, block = matmuls.naive()
    outer, _ = schedule.split(schedule.get_loops(block)[0], [None, 8 * rows])
    schedule.parallel(outer)
    matmuls.change(
        "register_block",
        schedule,
        block,
        rows,
        columns,
        4,
        what="a tile's sums stay in registers; 8 rows of tiles make a task.",
        why="a tile of C is written to memory once, not at every step of k",
    )


def _add_packed(matmuls: _Matmuls) -> None:
    size = matmuls.size
    blocking = packed_blocking(size)
    packed = matmuls.steps.attempt("packed_matmul", size, size, size, **blocking)
    if matmuls.steps.ran("packed_matmul"):
        matmuls.add(
            "packed_matmul",
            packed,
            f"tiles of {blocking['rows']}x{blocking['columns']}; copies are read in order of use.",
            "the copies are read without strides, so each fetched line and page is used up",
        )


def _look(steps: Steps, size: int) -> str:
    """Draw the schedules' memory accesses, count their cache misses; the file with all of it."""
    from tvm_practice.course.tours.matmuls import matmul_study
    from tvm_practice.viz.study_tables import cache_table

    print(
        f"\nWhy? All accesses of a {size}³ matmul, read from the IR of each schedule, through a\n"
        "model of this machine's caches: misses per 1000 multiply-adds."
    )
    study = matmul_study(size, mine=steps.source == MINE)
    cache = study["cache"]
    show(cache_table(cache))
    print(f"({'; '.join(cache['levels'])})")
    _save_pictures({"access": study["access"], "cache": cache["svg"]}, steps.folder)
    file = steps.folder / "study.json"
    file.write_text(json.dumps(study))
    return str(file)


def _save_pictures(pictures: Mapping[str, str], folder: Path) -> None:
    from tvm_practice.viz.drawing import standalone

    for name, svg in pictures.items():
        picture = folder / f"{name}.svg"
        picture.write_text(standalone(svg))
        print(f"picture: {picture}")


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
        _print_comparison(comparison, f"at {size}", size)
        say(f"packed_matmul: {comparison.ratio['packed_matmul'].verdict}")
        figures[str(size)] = _figures(comparison, size)
    return figures


def _on_a_convolution() -> dict[str, Any]:
    """The trace of the reference packed_matmul, replayed on one of ResNet-18's convolutions."""
    from tvm_practice.course.tours.convolution import beside_torch

    comparison, error = beside_torch(128, 28, 28, 128, 1, seconds=1)
    ratio = comparison.ratio["packed"]
    say(
        "\nA schedule is data: the one that the reference packed_matmul makes is replayed on a "
        "convolution of a 128x28x28 image with 128 filters of 3x3 "
        f"(tvm_practice/course/tours/convolution.py). Its time over torch's: {ratio}; largest "
        f"difference from torch {error:.1e}."
    )
    return {"max_error": error, **comparison.to_dict()}


def _scan_tiles(matmuls: _Matmuls) -> dict[str, Any]:
    """Time packed_matmul with other tiles than packed_blocking's."""
    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved

    here = engines.host()
    print(
        f"\nOther tiles of packed_matmul. A register holds {here.vector_lanes} floats, so the "
        f"sums\nof a tile need rows x columns / {here.vector_lanes} registers; this processor has "
        f"{here.vector_registers}."
    )
    built = {
        name: matmuls.packed(_SCANNED_SIZE, blocking, quiet=True)
        for name, blocking in _other_blockings().items()
    }
    runs = {name: run for name, run in built.items() if run is not None}
    if len(runs) < len(built):
        return {}
    comparison = compare_interleaved(runs, baseline=next(iter(runs)), rounds=15, time_limit=10)
    _print_comparison(comparison, f"at {_SCANNED_SIZE}", _SCANNED_SIZE)
    return _figures(comparison, _SCANNED_SIZE)


def _other_blockings() -> dict[str, dict[str, Any]]:
    """packed_blocking's first, then others, by name."""
    blocking = packed_blocking(_SCANNED_SIZE)
    rows, columns = blocking["rows"], blocking["columns"]
    tiles = [
        (rows, columns),
        (1, columns),
        (rows // 2, columns),
        (rows, columns // 2),
        (rows // 2, columns * 2),
        (rows * 2, columns),
        (rows * 2, columns * 2),
    ]
    found = {f"{r}x{c}": {**blocking, "rows": r, "columns": c} for r, c in tiles}
    turned = {**blocking, "rows_first": not blocking["rows_first"]}
    first = "rows" if turned["rows_first"] else "columns"
    return {**found, f"{rows}x{columns}, {first} first": turned}


def _figures(comparison: "Comparison", size: int) -> dict[str, Any]:
    """A comparison of matmuls of that size as JSON, GFLOP/s included."""
    gflops = {
        name: 2 * size**3 / latency.median / 1e6 for name, latency in comparison.latency.items()
    }
    return {"gflops": gflops, **comparison.to_dict()}


def _print_comparison(comparison: "Comparison", what: str, size: int) -> None:
    """Print a table of matmuls of that size."""
    gflops = _figures(comparison, size)["gflops"]
    table = number_table(what, "ms", "GFLOP/s", f"x {comparison.baseline}", "95% interval")
    for name, latency in comparison.latency.items():
        faster, interval = comparison.ratio[name].cells(".2f", inverse=True)
        table.add_row(
            name,
            f"{latency.median:.2f}",
            f"{gflops[name]:.1f}",
            faster,
            "" if name == comparison.baseline else interval,
        )
    show_comparison(table, comparison)


def report(results: Mapping[str, Any], folder: Path) -> None:
    """Plot the GFLOP/s of every step, on each engine that ran."""
    lanes = {engine: lane["figures"] for engine, lane in results.items() if "figures" in lane}
    if lanes:
        path = folder / "gflops_by_step.png"
        _plot(lanes, path)
        print(f"\nplot: {path}")


def _plot(lanes: Mapping[str, Any], path: Path) -> None:
    from matplotlib.figure import Figure

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
    figure.savefig(path, dpi=120)
