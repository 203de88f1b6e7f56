"""The Transformer layer of lab 4's tour, compiled for symbols and for constants."""

import functools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.table import Table

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.labs.dynamic_artifacts import (
    array_function,
    by_x,
    ratio_cell,
    unplanned,
)
from tvm_practice.course.tours.printing import number_table, say, say_disturbance, show
from tvm_practice.engines.blocking import register_tile

if TYPE_CHECKING:
    from tvm_practice.tvm_export.memory import MemoryPlan


class _Encoders:
    """A Transformer layer, compiled for symbols and for constants.

    Attributes:
        bounds: of "batch" and "length".
        seconds: what compiling each took, by shape ("symbolic" for symbols).
    """

    def __init__(self, *, quick: bool):
        self.sizes = {"width": 128, "heads": 4} if quick else {"width": 768, "heads": 12}
        self.bounds = {"batch": 4, "length": 64 if quick else 128}
        self.axes = ({0: "batch", 1: "length"}, {0: "batch", 1: "length"})
        self.seconds: dict[str, float] = {}
        self.model, _ = self.load(2, 8)

    def load(self, batch: int, length: int) -> tuple[Any, tuple[Any, ...]]:
        from tvm_practice.models import load_encoder

        return load_encoder(batch=batch, length=length, **self.sizes)

    def draw(self, batch: int, length: int) -> tuple[Any, ...]:
        """Tokens of which the last ones may be padding."""
        import numpy as np

        rng = np.random.default_rng()
        x = rng.standard_normal((batch, length, self.sizes["width"]), "float32")
        kept = rng.integers(1, length + 1, batch)
        return x, (np.arange(length)[None, :] < kept[:, None]).astype("float32")

    def pytorch(self, x: Any, keep: Any) -> Any:
        import torch

        with torch.inference_mode():
            return self.model(torch.from_numpy(x), torch.from_numpy(keep)).numpy()

    def fused(self, batch: int, length: int) -> Any:
        """The module for one shape, fused."""
        from tvm_practice.course.stack import earlier

        import_relax = earlier("relay_import.import_relax")
        optimize_relax = earlier("relay_import.optimize_relax")
        model, example = self.load(batch, length)
        return optimize_relax(import_relax(model, example))

    def compiled(self, name: str, fused: Any) -> Callable[..., Any]:
        """With the exporter's default schedules; `seconds` has what it took."""
        from tvm_practice import engines
        from tvm_practice.course.stack import earlier
        from tvm_practice.tvm_export.rules.cpu import schedule_defaults

        build_relax = earlier("relay_import.build_relax")
        started = time.perf_counter()
        target = engines.host_target()
        run = array_function(build_relax(schedule_defaults(fused, target), target))
        self.seconds[name] = time.perf_counter() - started
        return run


def show_encoder(steps: Steps, *, quick: bool, buckets: bool) -> dict[str, Any]:
    """A Transformer layer of symbolic batch and length: memory, values, cost."""
    from tvm_practice.course.stack import earlier
    from tvm_practice.tvm_export.quiet import quiet_frontends

    optimize_relax = earlier("relay_import.optimize_relax")
    encoders = _Encoders(quick=quick)
    width, bounds = encoders.sizes["width"], encoders.bounds
    say(
        f"\nA Transformer layer {width} wide, batch 1 to {bounds['batch']}, length 1 to "
        f"{bounds['length']}:"
    )
    model, example = encoders.load(2, 8)
    with quiet_frontends():
        module = steps.attempt("import_dynamic", model, example, encoders.axes, bounds)
        if module is None:
            return {}
        main = module["main"]
        symbols = [str(extent) for extent in main.params[0].ty.shape][:2]
        say(
            f"main takes x ({', '.join(symbols)}, {width}) and keep ({', '.join(symbols)}): "
            f"PyTorch named the symbols. At most: {_text(main.attrs['tir_var_upper_bound'])}."
        )
        fused = optimize_relax(module)
        figures: dict[str, Any] = {"memory": _memory(steps, encoders, fused, symbols)}
        symbolic = {"symbolic": encoders.compiled("symbolic", fused)}
        tiled = _tiled(steps, fused)
        if tiled is not None:
            symbolic["your tiles"] = encoders.compiled("your tiles", tiled)
        for name, run in symbolic.items():
            figures[f"errors of {name}"] = _verify_the_encoder(steps, encoders, name, run)
        if "verify_over_range" in steps.failed:
            say("A result is wrong, so nothing is timed.")
        else:
            figures["cost"] = _cost(steps, encoders, symbolic, quick=quick, buckets=buckets)
    figures["compile_seconds"] = encoders.seconds
    return figures


def _text(mapping: Any) -> str:
    return ", ".join(f"{name} {int(value)}" for name, value in mapping.items())


def _kibibytes(size: int) -> str:
    return f"{size / 1024:.0f}"


_Reader = Callable[[Sequence[int]], "MemoryPlan"]


def _reader(module: Any, symbols: Sequence[str]) -> _Reader:
    """From a shape to the allocations of a planned module for it."""
    from tvm_practice.tvm_export.memory import read_memory

    def read(shape: Sequence[int]) -> "MemoryPlan":
        return read_memory(module, **dict(zip(symbols, shape, strict=True)))

    return read


def _memory(steps: Steps, encoders: _Encoders, fused: Any, symbols: list[str]) -> dict[str, Any]:
    """Print storages, bytes held and what a pool keeps, by plan.

    Returns:
        {"held": the bytes held after each event of a call of the largest shape, by plan,
        "shape": that shape}; {} while there is no plan.
    """
    if "plan_memory" in steps.failed:
        return {}
    largest = tuple(encoders.bounds.values())
    limits = dict(zip(symbols, largest, strict=True))
    planned = [steps.attempt("plan_memory", fused, each) for each in (None, limits)]
    if None in planned:
        return {}
    static = steps.attempt("plan_memory", encoders.fused(*largest), None)
    plans = {
        "not planned": unplanned(fused),
        "no bounds": planned[0],
        "bounds": planned[1],
        "constants": static,
    }
    readers = {name: _reader(module, symbols) for name, module in plans.items()}
    show(_memory_table(readers, largest))
    say(
        "held: the most bytes in live storages at one time. A planned storage lives from its first "
        "tensor to its last, and with bounds it has the largest shape's size for every shape. "
        "pool: the memory that the virtual machine has taken from the system by then. The "
        "pool reuses a block for the same size only, so without planning it grows with each size, "
        "and without bounds with each length."
    )
    held = {name: [size for _, size in read(largest).held()] for name, read in readers.items()}
    return {"held": held, "shape": list(largest)}


def _memory_table(readers: "Mapping[str, _Reader]", largest: tuple[int, ...]) -> Table:
    """By plan what is held and kept, for one row, the largest shape, and all lengths in turn."""
    from tvm_practice.tvm_export.memory import pool_bytes

    title = "Bytes of intermediate tensors, in KiB"
    headings = ("held, 1x1", f"held, {by_x(largest)}", f"pool, {by_x(largest)}")
    in_turn = f"pool, 1 to\n{largest[1]} in turn"
    table = number_table("plan", "storages", *headings, in_turn, title=title)
    lengths = [(1, length) for length in range(1, largest[1] + 1)]
    for name, read in readers.items():
        for_all = name != "constants"
        table.add_row(
            name,
            str(len(read(largest).storages)),
            _kibibytes(max(size for _, size in read((1, 1)).held())) if for_all else "",
            _kibibytes(max(size for _, size in read(largest).held())),
            _kibibytes(pool_bytes([read(largest)])),
            _kibibytes(pool_bytes(map(read, lengths))) if for_all else "",
        )
    return table


def _verify_the_encoder(
    steps: Steps, encoders: _Encoders, name: str, run: Callable[..., Any]
) -> dict[str, float]:
    errors = steps.attempt(
        "verify_over_range", run, encoders.pytorch, encoders.draw, tuple(encoders.bounds.values())
    )
    if errors is None:
        return {}
    shown = {by_x(shape): error for shape, error in sorted(errors.items())}
    worst = max(shown, key=lambda shape: shown[shape])
    say(
        f"Verified against PyTorch, {name}, at batch x length {', '.join(shown)}: largest error "
        f"{shown[worst]:.1e}, at {worst}."
    )
    if name != "symbolic":
        return shown
    batch, length = encoders.bounds.values()
    try:
        run(*encoders.draw(batch, length + 1))
    except Exception as error:
        said = " ".join(str(error).split())
        say(f"Past the bounds, {batch}x{length + 1}, a storage is too small: {said}")
    return shown


def _tiled(steps: Steps, fused: Any) -> Any:
    """The module with `schedule_dynamic` on its products of a symbolic number of rows.

    None if that is not written, or fails. What is added to a product is computed after it.
    """
    import tvm

    from tvm_practice import engines
    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of, is_reduction
    from tvm_practice.tvm_export.rules.cpu.scheduling import extent_of, schedule_stage

    rows, columns = register_tile()
    cpu = cpu_of(engines.host_target())
    tiled = fused.clone()
    for name, function in fused.functions_items():
        if not isinstance(function, tvm.tirx.PrimFunc):
            continue
        schedule = tvm.s_tir.Schedule(function)
        block, *after = schedule.get_child_blocks(schedule.get_sblock("root"))
        extents = [extent_of(schedule, loop) for loop in schedule.get_loops(block)]
        symbols = [extent is None for extent in extents]
        if not is_reduction(schedule.get(block)) or symbols != [True, False, False]:
            continue
        if (extents[1] or 0) % columns:
            continue
        steps.attempt("schedule_dynamic", schedule, block, rows, columns)
        if not steps.ran("schedule_dynamic"):
            return None
        (copy,) = schedule.get_consumers(block)
        if after:
            schedule.compute_inline(copy)
        for each in after or [copy]:
            schedule_stage(schedule, each, cpu)
        # The attribute by which the default rules know what to leave alone.
        done = schedule.mod["main"].with_attr("tirx.is_scheduled", True)
        tiled[name] = done.without_attr("global_symbol")
    return tiled


def _cost(
    steps: Steps,
    encoders: _Encoders,
    symbolic: Mapping[str, Callable[..., Any]],
    *,
    quick: bool,
    buckets: bool,
) -> list[dict[str, Any]]:
    """Time by shape: symbolic artifacts against one for each shape, buckets, PyTorch.

    Returns:
        For each shape the comparison as figures.
    """
    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved

    batch, length = encoders.bounds.values()
    shapes = [(1, length // 4), (1, length // 4 + 5), (1, length - 3), (batch, length)]
    static = functools.cache(lambda shape: encoders.compiled(by_x(shape), encoders.fused(*shape)))
    sizes = (length // 4, length // 2, length) if buckets else ()
    artifacts = {size: static((1, size)) for size in sizes}
    rivals = (*symbolic, *(("bucket",) if buckets else ()), "PyTorch")
    table = number_table("batch x\nlength", "static, ms", *rivals)
    figures = []
    for shape in shapes:
        runs = _runs(steps, encoders, shape, {"static": static(shape), **symbolic}, artifacts)
        compared = compare_interleaved(
            runs, baseline="static", rounds=30, time_limit=2 if quick else 10
        )
        table.add_row(
            by_x(shape),
            f"{compared.latency['static'].median:.3g}",
            *(ratio_cell(compared.ratio.get(who)) for who in rivals),
        )
        figures.append({"shape": by_x(shape), **compared.to_dict()})
    if "your tiles" in symbolic:
        say(
            "\nThe default rules give symbolic rows tiles of one row; `your tiles` has those of "
            "schedule_dynamic in the products with a constant weight."
        )
    say(
        f"\nTime relative to an artifact for that shape alone, {engines.thread_count()} threads "
        "each, in turns; each ratio has its 95% interval below it:"
    )
    show(table)
    say_disturbance(each["verdict"] for each in figures)
    _say_what_compiling_took(encoders, symbolic)
    return figures


def _runs(
    steps: Steps,
    encoders: _Encoders,
    shape: tuple[int, int],
    compiled: Mapping[str, Callable[..., Any]],
    artifacts: Mapping[int, Callable[..., Any]],
) -> dict[str, Callable[[], Any]]:
    """Calls on tokens of one shape: of the artifacts, of PyTorch, and of buckets."""
    import numpy as np

    x, _ = encoders.draw(*shape)
    keep = np.ones(shape, "float32")
    runs: dict[str, Callable[[], Any]] = {
        name: functools.partial(run, x, keep)
        for name, run in {**compiled, "PyTorch": encoders.pytorch}.items()
    }
    if artifacts and shape[0] == 1:
        runs["bucket"] = functools.partial(steps.attempt, "bucketed", artifacts, x)
    return runs


def _say_what_compiling_took(encoders: _Encoders, symbolic: Mapping[str, Any]) -> None:
    once = encoders.seconds["symbolic"]
    others = [spent for name, spent in encoders.seconds.items() if name not in symbolic]
    say(
        f"Scheduling and building took {once:.1f} s for all shapes at once, and {sum(others):.1f} "
        f"s for the {len(others)} static artifacts."
    )
