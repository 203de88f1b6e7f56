"""Lab 4: dynamic shapes.

A request has as many rows as it has, a sentence as many tokens. Relax names an extent that is
known only when the model is called by a symbol: `R.Tensor(("n", 512), "float32")`. One artifact
then serves every n, and what TVM did for a number it now has to do for a symbol: decide where
loops end, allocate memory, choose tiles. What that costs is measured here.

What current TVM has for it:

    n = tirx.Var("n", "int64")          a symbol; equal shapes are the same symbol
    te.placeholder((n, 512))            works in tensor expressions, relax.TensorType((n, 512))
                                        in Relax
    main.attrs["tir_var_upper_bound"]   {"n": 64}: what n is at most, for the memory planner

At a call the virtual machine reads n off the first tensor that has it, checks the others against
it, computes every shape that depends on it, and gives it to the kernels that need it.

The worked example adds two tensors of n rows. Write the functions below it, then run

    python -m tvm_practice.labs.dynamic_shapes
    pytest -m lab4
"""

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.phase import phase_command

if TYPE_CHECKING:
    from tvm_practice.course import Steps

# Chosen so that no two intermediate tensors have the same size.
_CHAIN = (256, 1024, 512, 768, 128, 256)
_CHAIN_BOUND = 64


def added(width: int) -> Any:  # a tvm.IRModule
    """Worked example: main(x, y) = x + y for x and y of shape (n, width), for any n, float32."""
    from tvm import relax, tirx

    n = tirx.Var("n", "int64")
    x, y = (relax.Var(name, relax.TensorType((n, width), "float32")) for name in "xy")
    builder = relax.BlockBuilder()
    with builder.function("main", [x, y]):
        builder.emit_func_output(builder.emit(relax.op.add(x, y)))
    return builder.get()


def symbolic_matmul(k: int, m: int) -> Any:  # a tvm.IRModule
    """A matrix product whose number of rows is a symbol.

    The product is a tensor expression with that symbol in its shapes, and a Relax function calls
    it: `BlockBuilder.emit_te(expression, a, b)` calls `expression` with placeholders of the shapes
    of a and b, makes a PrimFunc of what it returns, and a call_tir of that. The call's shape and
    main's result follow.

    Args:
        k: columns of A, rows of B.
        m: columns of B and C.

    Returns:
        The IRModule: main takes A (n, k) and B (k, m) and returns C = A @ B (n, m), float32; n is
        one symbol. It calls one PrimFunc.
    """
    raise NotImplementedError("a tirx.Var in the shape of A, and BlockBuilder.emit_te")


def schedule_dynamic(schedule: Any, block: Any, rows: int, columns: int) -> None:
    """Tile a matrix product whose number of rows is a symbol, with no guard in its inner loops.

    Where `rows` need not divide the extent of i, split guards the block, and the guard is in the
    innermost loops: each step of the sum asks whether its row exists. `pad_einsum` rounds the
    iterations up instead: it copies A to a buffer with a multiple of `rows` rows, zeros where A
    has none, computes a C of as many rows, and copies those that exist. After that every split is
    exact, and only the copies ask.

    The block's loops are i (a symbol), j and k. Afterwards they are, outermost first, i_outer
    (parallel), j_outer, k, i_inner (unrolled) and j_inner (vectorized); what sets C to zero is a
    statement of its own before k. The copy of A is made inside i_outer, a tile's rows at a time,
    by the thread that will read it.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place.
        block: the matmul block, directly under its three loops.
        rows: rows of a tile, the extent of i_inner.
        columns: columns of a tile, the extent of j_inner; it divides the extent of j.
    """
    raise NotImplementedError("pad_einsum, then split, reorder and compute_at as in phase 2")


def import_dynamic(
    model: Any,
    example: tuple[Any, ...],
    axes: Sequence[Mapping[int, str]],
    bounds: Mapping[str, int],
) -> Any:  # a tvm.IRModule
    """Export a PyTorch model with named extents, and convert the exported program to Relax.

    torch.export takes a torch.export.Dim for each axis that may vary, from 1 to its bound, and the
    importer makes a symbol of each (under PyTorch's name for it) and an upper bound for the
    memory planner. An axis whose extent is 1 in the example PyTorch takes for a constant: repeat
    such a tensor along that axis before it is exported.

    Args:
        model: a torch.nn.Module in eval mode, which returns one tensor.
        example: the tensors it is called with.
        axes: for each tensor, the axes that may vary and the name of their extent,
            ({0: "batch", 1: "length"}, {0: "batch"}); axes of one name have one extent.
        bounds: of each name the largest extent, at least 3: in a range from 1 to 2 PyTorch makes
            a symbol of each axis.

    Returns:
        The IRModule as imported, weights as constants: main has a symbol for each name, its
        attribute "tir_var_upper_bound" the bounds, and it returns a tensor.
    """
    raise NotImplementedError("torch.export.export with dynamic_shapes, then from_exported_program")


def plan_memory(mod: Any, bounds: Mapping[str, int] | None = None) -> Any:  # a tvm.IRModule
    """Lower the calls of a Relax function to kernels and storages, and let storages be reused.

    In this order: give main the attribute "tir_var_upper_bound" (or take it away), then
    RewriteDataflowReshape, ToNonDataflow, RemovePurityChecking, CallTIRRewrite (a call_tir
    becomes an allocation and a call), StaticPlanBlockMemory (allocations become tensors in
    storages, which are used again once they are free), LowerAllocTensor (those that were not
    planned, the result for one, get storages of their own) and KillAfterLastUse.

    Args:
        mod: an IRModule of fused functions, as `optimize_relax` of phase 4 leaves it; it is left
            as it was.
        bounds: of each symbol the largest value, by the symbol's name; None plans without.

    Returns:
        A new IRModule, whose main allocates with relax.memory.alloc_storage.
    """
    raise NotImplementedError("the attribute, then the seven passes in a Sequential")


def verify_over_range(
    run: Callable[..., Any],
    reference: Callable[..., Any],
    draw: Callable[..., tuple[Any, ...]],
    bounds: Sequence[int],
    *,
    tolerance: float = 1e-4,
) -> dict[tuple[int, ...], float]:
    """Compare an artifact of symbolic shapes with its reference, over the range of its symbols.

    One shape proves nothing about the others: guards fail at the edges, an extent of 1 may have
    been broadcast, a tile may be right where it divides. So the shapes are every combination of 1
    and the bound of each symbol; one in which every extent is a prime above 2 and below the
    bound, which no tile divides; and at least eight drawn at random from the whole range, anew at
    each call.

    Args:
        run: the artifact: takes arrays, returns an array.
        reference: takes the same arrays, returns what `run` should.
        draw: takes an extent for each symbol, returns a tuple of arrays.
        bounds: the largest value of each symbol, at least 4.
        tolerance: the largest absolute error that passes.

    Returns:
        The largest absolute error of each shape that was tried, a tuple of extents.

    Raises:
        ValueError: an output of another shape, an error above the tolerance, or NaN. It names the
            shape, and the error or the two output shapes.
    """
    raise NotImplementedError(
        "corners, primes and random shapes; compare each, raise with its name"
    )


def bucketed(artifacts: Mapping[int, Callable[..., Any]], x: Any) -> Any:  # an array
    """Serve a sequence of any length with artifacts of a few fixed lengths.

    The smallest bucket that holds x is taken, x is padded to it with zeros behind its last token,
    the artifact is told which tokens to keep, and what it returns is cut to the length of x.

    Args:
        artifacts: by length. Each takes tokens (batch, length, width) and keep (batch, length),
            float32 both, 1 in keep for a token and 0 for padding, which no token then attends
            to; and returns (batch, length, width).
        x: an array of tokens (batch, length, width), float32; it is only read.

    Returns:
        (batch, length, width), as an artifact of that very length would return it.

    Raises:
        ValueError: x is longer than the longest bucket; it names both lengths.
    """
    raise NotImplementedError("choose the bucket, pad x, make keep, call, cut")


def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """Symbols from one operator to a Transformer layer: shown, verified, timed."""
    import torch

    from tvm_practice import engines

    torch.set_num_threads(engines.thread_count())
    _show_added()
    product, planning = ("symbolic_matmul", "schedule_dynamic"), ("plan_memory",)
    figures: dict[str, Any] = {
        "matmul": _part(steps, product, lambda: _matmuls(steps, quick=quick)),
        "chain": _part(steps, planning, lambda: _plan_of_a_chain(steps)),
    }
    _verify_a_matmul(steps)
    buckets = _part(steps, ("bucketed",), lambda: _show_buckets(steps))
    used = ("import_dynamic", *planning, "schedule_dynamic", "verify_over_range", "bucketed")
    figures["encoder"] = _part(
        steps, used, lambda: _encoder(steps, quick=quick, buckets=bool(buckets))
    )
    return figures


def _part(steps: "Steps", used: Sequence[str], run: Callable[[], Any]) -> Any:
    """What `run` returns; None where it fails on what one of the functions `used` returned."""
    try:
        return run()
    except Exception as error:
        written = [name for name in used if name not in steps.todo]
        if not written:
            raise
        said = (str(error).strip().splitlines() or ["(no message)"])[0]
        steps.failed[written[0]] = f"{type(error).__name__}: {said}"
        _say(
            f"This part cannot go on: {type(error).__name__}: {said}. It uses "
            f"{', '.join(written)}; grade them: pytest -m lab4"
        )
    return None


def _say(text: str) -> None:
    """Print wrapped to the terminal."""
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(text))


def _print_script(title: str, function: Any) -> None:
    """Print a Relax function as TVMScript."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.syntax import Syntax

    script = "\n".join(
        line for line in function.script().splitlines() if line and not line.startswith(("#", "fr"))
    )
    code = Syntax(script, "python", background_color="default", word_wrap=True)
    Console().print(Panel(code, title=title, title_align="left"))


def _array_function(executable: Any) -> Callable[..., Any]:
    """An artifact of one output as a function of arrays."""
    from tvm_practice.tvm_export.running import RelaxRunner

    runner = RelaxRunner(executable)

    def run(*inputs: Any) -> Any:
        runner.set_inputs(inputs)
        runner.run()
        return runner.outputs()[0]

    return run


def _show_added() -> None:
    import numpy as np

    from solutions.relay_import import build_relax
    from tvm_practice import engines

    module = added(8)
    _say("One artifact for every n. The worked example, added(8):")
    _print_script("added(8)", module["main"])
    run = _array_function(build_relax(module, engines.host_target()))
    rows = (1, 5, 1000)
    right = all(
        np.array_equal(
            run(np.ones((n, 8), "float32"), np.ones((n, 8), "float32")), np.full((n, 8), 2)
        )
        for n in rows
    )
    _say(f"Compiled once, {'right' if right else 'WRONG'} for n = {', '.join(map(str, rows))}.")
    try:
        run(np.ones((5, 8), "float32"), np.ones((4, 8), "float32"))
    except Exception as error:
        said = str(error).strip().splitlines()[0]
        _say(f"x of 5 rows and y of 4 are refused, for n is one symbol: {said}")


def _matmuls(steps: "Steps", *, quick: bool) -> list[dict[str, Any]]:
    """The symbolic product and its schedule: loops, values, and time against a constant extent."""
    from solutions.labs.dynamic_shapes import symbolic_matmul
    from tvm_practice.viz.loop_nest import loop_nest, print_nest

    size = 256 if quick else 512
    rows, columns = _tile()
    _say(f"\nA product of n x {size} by {size} x {size}.")
    module = steps.attempt("symbolic_matmul", size, size)
    if module is not None:
        _print_script(f"symbolic_matmul({size}, {size})", module["main"])
        print_nest("its kernel", loop_nest(_kernel(module)))
    # The schedule can be written before the product is.
    module = module or symbolic_matmul(size, size)
    schedule, block = _schedule(module)
    steps.attempt("schedule_dynamic", schedule, block, rows, columns)
    if {"schedule_dynamic"} & {*steps.todo, *steps.failed}:
        return []
    print_nest(f"schedule_dynamic, tiles of {rows} x {columns}", loop_nest(schedule.mod["main"]))
    return _time_matmuls(steps, size, schedule, quick=quick)


def _tile() -> tuple[int, int]:
    from tvm_practice.manual_schedule import register_tile

    return register_tile()


def _kernel(module: Any) -> Any:
    """The module's one PrimFunc."""
    (kernel,) = (each for each in module.functions.values() if type(each).__name__ == "PrimFunc")
    return kernel


def _schedule(module: Any) -> tuple[Any, Any]:
    """A fresh schedule of a module's one PrimFunc, and its one block."""
    import tvm

    kernel = _kernel(module).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": kernel}))
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    return schedule, block


def _guarded(schedule: Any, block: Any, rows: int, columns: int) -> None:
    """The tile of `schedule_dynamic` by split alone: a guard around every step of the sum."""
    i, j, k = schedule.get_loops(block)
    i_outer, i_inner = schedule.split(i, [None, rows])
    j_outer, j_inner = schedule.split(j, [None, columns])
    schedule.reorder(i_outer, j_outer, k, i_inner, j_inner)
    schedule.parallel(i_outer)
    schedule.unroll(i_inner)
    schedule.vectorize(j_inner)
    schedule.decompose_reduction(block, k)


def _time_matmuls(
    steps: "Steps", size: int, scheduled: Any, *, quick: bool
) -> list[dict[str, Any]]:
    import numpy as np
    import torch
    import tvm
    from rich.console import Console
    from rich.table import Table
    from tvm import te

    from solutions.labs.dynamic_shapes import symbolic_matmul
    from solutions.te_basics import matmul
    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved

    rows, columns = _tile()
    target = engines.host_target()

    def built(schedule: Any) -> Any:
        return tvm.compile(schedule.mod, target=target)["main"]

    guarded = _schedule(symbolic_matmul(size, size))
    _guarded(*guarded, rows, columns)
    symbolic = {"guards": built(guarded[0]), "yours": built(scheduled)}
    table = Table("n", "constant n, ms", "guards", "yours", "PyTorch")
    for column in table.columns:
        column.justify = "right"
    figures = []
    b = np.random.default_rng().standard_normal((size, size), "float32")
    for n in (1, 8, 61, 128) if quick else (1, 8, 61, 128, 509, 512):
        constant = tvm.s_tir.Schedule(
            tvm.IRModule({"main": te.create_prim_func(matmul(n, size, size))})
        )
        _guarded(constant, constant.get_sblock("C"), rows, columns)
        a = np.random.default_rng().standard_normal((n, size), "float32")
        want = a @ b
        tensors = [tvm.runtime.tensor(each) for each in (a, b, np.empty_like(want))]
        runs: dict[str, Callable[[], Any]] = {}
        for name, function in {"constant": built(constant), **symbolic}.items():
            function(*tensors)
            if not np.allclose(tensors[2].numpy(), want, atol=1e-3):
                _say(f"{name} is wrong at n = {n}, so it is not timed.")
                if name == "yours":
                    steps.failed["schedule_dynamic"] = f"wrong values at n = {n}"
                continue
            runs[name] = functools.partial(function, *tensors)
        runs["PyTorch"] = functools.partial(torch.matmul, torch.from_numpy(a), torch.from_numpy(b))
        compared = compare_interleaved(
            runs, baseline="constant", rounds=20, time_limit=1 if quick else 3
        )
        table.add_row(
            str(n),
            f"{compared.latency['constant'].median:.3g}",
            *(_ratio(compared.ratio.get(name)) for name in ("guards", "yours", "PyTorch")),
        )
        figures.append({"n": n, **compared.to_dict()})
    _say(
        f"\nTimes against the same tiles of {rows} x {columns} with n a constant, compiled for "
        "each n:"
    )
    Console().print(table)
    return figures


def _ratio(ratio: Any) -> str:
    """A ratio over its interval, for a cell."""
    return "" if ratio is None else f"{ratio.value:.3g}\n{ratio.low:.3g}–{ratio.high:.3g}"


def _chain() -> Any:
    """Products and ReLUs of _CHAIN's widths, n rows, fused; its symbol is n."""
    import numpy as np

    from tvm_practice.course.checks.labs.dynamic_shapes import dense_chain

    return dense_chain([np.zeros(each, "float32") for each in itertools.pairwise(_CHAIN)])


def _unplanned(module: Any) -> Any:
    """As `plan_memory`, without planning: every tensor has a storage of its own."""
    import tvm
    from tvm import relax

    passes = [
        relax.transform.RewriteDataflowReshape(),
        relax.transform.ToNonDataflow(),
        relax.transform.RemovePurityChecking(),
        relax.transform.CallTIRRewrite(),
        relax.transform.LowerAllocTensor(),
        relax.transform.KillAfterLastUse(),
    ]
    return tvm.transform.Sequential(passes)(module)


def _plan_of_a_chain(steps: "Steps") -> dict[str, Any]:
    """plan_memory on a chain of layers, with and without a bound."""
    from tvm_practice.tvm_export.memory import read_memory

    widths = " > ".join(map(str, _CHAIN))
    _say(f"\nMemory. A chain of dense layers, {widths}, n rows:")
    module = _chain()
    plans = {"not planned": _unplanned(module)}
    for name, bounds in (("no bound", None), (f"n <= {_CHAIN_BOUND}", {"n": _CHAIN_BOUND})):
        planned = steps.attempt("plan_memory", module, bounds)
        if planned is None:
            return {}
        plans[f"planned, {name}"] = planned
    figures = {}
    for name, planned in plans.items():
        formulas = read_memory(planned, n=1).formulas.values()
        if not formulas:
            raise ValueError(f"{name}: main allocates no storage")
        _say(f"- {name}: {len(formulas)} storages of {', '.join(formulas)} bytes")
        figures[name] = list(formulas)
    _say(
        "Sizes in n are reused only where they are the same; with a bound all of them are numbers, "
        "and a smaller tensor can lie in a larger storage. The result is never planned."
    )
    return figures


def _verify_a_matmul(steps: "Steps") -> None:
    """verify_over_range on a product of n rows."""
    import numpy as np

    from solutions.labs.dynamic_shapes import symbolic_matmul
    from solutions.relay_import import build_relax
    from tvm_practice import engines

    run = _array_function(build_relax(symbolic_matmul(24, 16), engines.host_target()))
    rng = np.random.default_rng()

    def draw(n: int) -> tuple[Any, ...]:
        return rng.standard_normal((n, 24), "float32"), rng.standard_normal((24, 16), "float32")

    errors = steps.attempt("verify_over_range", run, lambda a, b: a @ b, draw, (40,))
    if errors is not None:
        shapes = ", ".join(str(n) for (n,) in sorted(errors))
        _say(
            f"\nverify_over_range: a product of n rows, n = {shapes}: largest error "
            f"{max(errors.values()):.1e}."
        )


def _show_buckets(steps: "Steps") -> bool:
    """`bucketed` with PyTorch in place of artifacts: whether it is written, and right."""
    import numpy as np
    import torch

    from tvm_practice.models import load_encoder

    model, (x, _) = load_encoder(batch=1, length=11, width=32, heads=2)

    def artifact(tokens: Any, keep: Any) -> Any:
        with torch.inference_mode():
            return model(torch.from_numpy(tokens), torch.from_numpy(keep)).numpy()

    out = steps.attempt("bucketed", {8: artifact, 16: artifact, 32: artifact}, x.numpy())
    if out is None:
        return False
    error = float(np.abs(out - artifact(x.numpy(), np.ones((1, 11), "float32"))).max())
    _say(
        f"\nbucketed: 11 tokens through a bucket of 16: {error:.1e} from the same tokens unpadded."
    )
    if error > 1e-4:
        steps.failed["bucketed"] = f"{error:.1e} from the same tokens unpadded"
    return error <= 1e-4


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
        from solutions.relay_import import import_relax, optimize_relax

        model, example = self.load(batch, length)
        return optimize_relax(import_relax(model, example))

    def compiled(self, name: str, fused: Any) -> Callable[..., Any]:
        """With the exporter's default schedules; `seconds` has what it took."""
        import time

        from solutions.relay_import import build_relax
        from tvm_practice import engines
        from tvm_practice.tvm_export.rules.cpu import schedule_defaults

        started = time.perf_counter()
        target = engines.host_target()
        run = _array_function(build_relax(schedule_defaults(fused, target), target))
        self.seconds[name] = time.perf_counter() - started
        return run


def _encoder(steps: "Steps", *, quick: bool, buckets: bool) -> dict[str, Any]:
    """A Transformer layer of symbolic batch and length: memory, values, cost."""
    from solutions.relay_import import optimize_relax
    from tvm_practice.tvm_export.quiet import quiet_frontends

    encoders = _Encoders(quick=quick)
    width, bounds = encoders.sizes["width"], encoders.bounds
    _say(
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
        _say(
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
            _say("Not right, so not timed.")
        else:
            figures["cost"] = _cost(steps, encoders, symbolic, quick=quick, buckets=buckets)
    figures["compile_seconds"] = encoders.seconds
    return figures


def _text(mapping: Any) -> str:
    return ", ".join(f"{name} {int(value)}" for name, value in mapping.items())


def _times(shape: Sequence[int]) -> str:
    return "x".join(map(str, shape))


def _kibibytes(size: int) -> str:
    return f"{size / 1024:.0f}"


def _reader(module: Any, symbols: Sequence[str]) -> Callable[[Sequence[int]], Any]:
    """From a shape to the allocations of a planned module for it."""
    from tvm_practice.tvm_export.memory import read_memory

    def read(shape: Sequence[int]) -> Any:
        return read_memory(module, **dict(zip(symbols, shape, strict=True)))

    return read


def _memory(steps: "Steps", encoders: _Encoders, fused: Any, symbols: list[str]) -> dict[str, Any]:
    """Storages, bytes held, and what a pool keeps, by plan; the held bytes at the largest shape."""
    from rich.console import Console
    from rich.table import Table

    from tvm_practice.tvm_export.memory import pool_bytes

    if "plan_memory" in steps.failed:
        return {}
    largest = tuple(encoders.bounds.values())
    limits = dict(zip(symbols, largest, strict=True))
    planned = [steps.attempt("plan_memory", fused, each) for each in (None, limits)]
    if None in planned:
        return {}
    static = steps.attempt("plan_memory", encoders.fused(*largest), None)
    plans = {
        "not planned": _unplanned(fused),
        "no bounds": planned[0],
        "bounds": planned[1],
        "constants": static,
    }
    table = Table("plan", "storages", title="Bytes of intermediate tensors, in KiB")
    for heading in ("held, 1x1", f"held, {_times(largest)}", f"pool, {_times(largest)}"):
        table.add_column(heading, justify="right")
    table.add_column(f"pool, 1 to\n{largest[1]} in turn", justify="right")
    lengths = [(1, length) for length in range(1, largest[1] + 1)]
    held: dict[str, list[int]] = {}
    for plan, planned_module in plans.items():
        read = _reader(planned_module, symbols)
        held[plan] = [size for _, size in read(largest).held()]
        for_all = plan != "constants"
        table.add_row(
            plan,
            str(len(read(largest).storages)),
            _kibibytes(max(size for _, size in read((1, 1)).held())) if for_all else "",
            _kibibytes(max(held[plan])),
            _kibibytes(pool_bytes([read(largest)])),
            _kibibytes(pool_bytes(map(read, lengths))) if for_all else "",
        )
    Console().print(table)
    _say(
        "Held is what live storages have at most at once: a planned storage lives from its first "
        "tensor to its last, and with bounds it has the largest shape's size for every shape. Pool "
        "is what the virtual machine has then taken from the system: it gives a block again for "
        "the same size only, so without planning each size costs, and without bounds each length."
    )
    return {"held": held, "shape": list(largest)}


def _verify_the_encoder(
    steps: "Steps", encoders: _Encoders, name: str, run: Callable[..., Any]
) -> dict[str, float]:
    errors = steps.attempt(
        "verify_over_range", run, encoders.pytorch, encoders.draw, tuple(encoders.bounds.values())
    )
    if errors is None:
        return {}
    shown = {_times(shape): error for shape, error in sorted(errors.items())}
    worst = max(shown, key=lambda shape: shown[shape])
    _say(
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
        _say(f"Past the bounds, {batch}x{length + 1}, a storage is too small: {said}")
    return shown


def _tiled(steps: "Steps", fused: Any) -> Any:
    """The module with `schedule_dynamic` on its products of a symbolic number of rows.

    None if that is not written, or fails. What is added to a product is computed after it.
    """
    import tvm

    from tvm_practice import engines
    from tvm_practice.tvm_export.rules.cpu.loops import cpu_of, is_reduction
    from tvm_practice.tvm_export.rules.cpu.scheduling import extent_of, schedule_stage

    rows, columns = _tile()
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
        if {"schedule_dynamic"} & {*steps.todo, *steps.failed}:
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
    steps: "Steps",
    encoders: _Encoders,
    symbolic: Mapping[str, Callable[..., Any]],
    *,
    quick: bool,
    buckets: bool,
) -> list[dict[str, Any]]:
    """Time by shape: symbolic artifacts against one for each shape, buckets, PyTorch."""
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved

    batch, length = encoders.bounds.values()
    shapes = [(1, length // 4), (1, length // 4 + 5), (1, length - 3), (batch, length)]
    artifacts: dict[int, Callable[..., Any]] = {}
    static: dict[tuple[int, int], Callable[..., Any]] = {}

    def for_shape(shape: tuple[int, int]) -> Callable[..., Any]:
        if shape not in static:
            static[shape] = encoders.compiled(_times(shape), encoders.fused(*shape))
        return static[shape]

    if buckets:
        artifacts = {size: for_shape((1, size)) for size in (length // 4, length // 2, length)}
    rivals = (*symbolic, *(("bucket",) if buckets else ()), "PyTorch")
    table = Table("batch x\nlength", "static, ms", *rivals)
    for column in table.columns[1:]:
        column.justify = "right"
    figures = []
    for shape in shapes:
        x, _ = encoders.draw(*shape)
        keep = np.ones(shape, "float32")
        runs: dict[str, Callable[[], Any]] = {
            "static": functools.partial(for_shape(shape), x, keep),
            **{name: functools.partial(run, x, keep) for name, run in symbolic.items()},
            "PyTorch": functools.partial(encoders.pytorch, x, keep),
        }
        if buckets and shape[0] == 1:
            runs["bucket"] = functools.partial(steps.attempt, "bucketed", artifacts, x)
        compared = compare_interleaved(
            runs, baseline="static", rounds=30, time_limit=2 if quick else 10
        )
        table.add_row(
            _times(shape),
            f"{compared.latency['static'].median:.3g}",
            *(_ratio(compared.ratio.get(who)) for who in rivals),
        )
        figures.append({"shape": _times(shape), **compared.to_dict()})
    if "your tiles" in symbolic:
        _say(
            "\nThe default rules give symbolic rows tiles of one row; `your tiles` has those of "
            "schedule_dynamic in the products with a constant weight."
        )
    _say(
        f"\nTime against an artifact for that very shape, {engines.thread_count()} threads each, "
        "in turns; below each ratio its 95% interval:"
    )
    Console().print(table)
    once = encoders.seconds["symbolic"]
    others = [spent for name, spent in encoders.seconds.items() if name not in symbolic]
    _say(
        f"Scheduling and building took {once:.1f} s for all shapes at once, and {sum(others):.1f} "
        f"s for the {len(others)} static artifacts."
    )
    return figures


def report(results: dict[str, Any], folder: Path) -> None:
    """Draw the bytes held over a call, and the times by shape."""
    from tvm_practice.viz.shapes import plot_costs, plot_held

    encoder = results.get("current", {}).get("figures", {}).get("encoder") or {}
    if encoder.get("memory"):
        memory = encoder["memory"]
        file = plot_held(
            folder / "memory.png",
            memory["held"],
            title=f"A Transformer layer, {_times(memory['shape'])}: intermediate tensors",
        )
        print(f"\nMemory, kernel by kernel: {file}")
    if encoder.get("cost"):
        rows = [
            {
                "shape": row["shape"],
                "ratio": {
                    name: (each["value"], *each["ci95"])
                    for name, each in row["ratio"].items()
                    if name != row["baseline"]
                },
            }
            for row in encoder["cost"]
        ]
        file = plot_costs(
            folder / "cost.png",
            rows,
            baseline="an artifact for that shape",
            title="A Transformer layer: one artifact for all shapes, and its rivals",
        )
        print(f"Times by shape: {file}")


main = phase_command("labs.dynamic_shapes", "Lab 4: one artifact for many shapes.")

if __name__ == "__main__":
    main()
