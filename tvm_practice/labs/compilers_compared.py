"""Lab 6: compilers compared.

The same five workloads, from a matmul to attention, in numpy, PyTorch, torch.compile, JAX, ONNX
Runtime, Triton and TVM: how much there is to write, how long until the first result, how fast it
then is, and for which machines code is made. Tables of such things are easily found and seldom
say how they were come by; here each cell is counted or measured on this machine, and the command
behind it is said.

What compilers do differently shows in two things that a library cannot do for its caller.

One pass. A softmax reads its row for the maximum, again for the sum and again for the result.
Triton's attention and its kin read once, and carry along a state that can be merged: what was
seen so far, and what of it changes when there is more. In a tensor expression such a state is a
reduction of a tuple:

    te.comm_reducer(merge, identity)
        merge(left, right)     two states to one, each a sequence of numbers
        identity(*types)       the state of nothing at all

    reducer((a, b), axis=j)    each element's state is (a, b); inside te.compute it makes as many
                               tensors as the state has numbers

The worked example, `normalized`, has a state of three. On it `online_softmax` is modelled.

Fusion. torch.compile and XLA write a bias and an activation into the loop that follows a product,
without being asked, but not into the product, which is a library's. Who schedules by hand can:
`fuse_epilogue`.

The other three functions are for the table: what is a line, how long until a result, and does it
pay. The frameworks' files are in tvm_practice/labs/workloads. Write the functions, then run

    python -m tvm_practice.labs.compilers_compared
    pytest -m lab6
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.phase import phase_command

if TYPE_CHECKING:
    from tvm_practice.course import Steps

# In full and, second, with --quick.
_WORKLOADS = (("matmul", "softmax", "layer_norm", "mlp", "attention"), ("softmax",))
_TRIALS = (32, 4)
_FIRST_RESULTS = (3, 1)
_ROUNDS = (40, 5)
_SECONDS = (20.0, 5.0)


def normalized(rows: int, columns: int) -> list[Any]:
    """Worked example: each row less its mean, over its standard deviation, read once for both.

    A state is (count, mean, sum of squared distances from the mean) of some elements. Two states
    merge without looking at the elements again (Chan, Golub, LeVeque 1979): the means move
    towards each other by their weights, and the distance between them adds to the squares. The
    sum of squares less the square of the sum needs one pass too, and loses every digit where the
    mean is large.

    Args:
        rows: of X, each for itself.
        columns: elements of a row.

    Returns:
        The tensors [X, Y] of shape (rows, columns), float32.
    """
    from tvm import te, tirx

    def merge(left: Any, right: Any) -> Any:
        count = left[0] + right[0]
        distance = right[1] - left[1]
        return (
            count,
            left[1] + distance * right[0] / count,
            left[2] + right[2] + distance * distance * left[0] * right[0] / count,
        )

    def nothing(*types: str) -> Any:
        return tuple(tirx.const(0, each) for each in types)

    one, zero = (tirx.const(value, "float32") for value in (1, 0))
    moments = te.comm_reducer(merge, nothing, name="moments")
    X = te.placeholder((rows, columns), name="X")
    j = te.reduce_axis((0, columns), name="j")
    _, mean, squares = te.compute(
        (rows,), lambda i: moments((one, X[i, j], zero), axis=j), name="moments"
    )
    Y = te.compute(
        (rows, columns),
        lambda i, c: (X[i, c] - mean[i]) / te.sqrt(squares[i] / columns),
        name="Y",
    )
    return [X, Y]


def online_softmax(rows: int, columns: int) -> list[Any]:
    """Declare a softmax over each row that reads the row once for its maximum and its sum.

    A state is (maximum, sum of exp(x - maximum)) of some elements; one element's is (x, 1). When
    two merge, the larger maximum stays, and each sum is first scaled to it: by exp of its own
    maximum less the larger one. Of nothing the sum is 0, and the maximum the smallest finite
    float32: masked scores are minus infinity, and less minus infinity that is no number.

    Two stages: the reduction, named "state", of two tensors; and "Y", exp(X - maximum) / sum.

    Args:
        rows: of X, each for itself.
        columns: elements of a row.

    Returns:
        The tensors [X, Y], both of shape (rows, columns), float32.
    """
    raise NotImplementedError("te.comm_reducer of (maximum, sum), then Y")


def fuse_epilogue(schedule: Any, stages: Sequence[str]) -> None:
    """Bring the elementwise stages after a tiled product into its tile.

    The product has been through `register_block` of phase 2: a tile adds up in a local buffer,
    and a block copies it to memory. Stages follow that are elementwise, each of the one before:
    a bias, an activation. They go over the whole result again, a stage at a time. Afterwards the
    block that empties the tile computes them all and writes the last one's result; the product
    itself is never in memory.

    Args:
        schedule: a tvm.s_tir.Schedule, changed in place. Its tiles divide the matrices.
        stages: names of the stages' blocks, in the order in which they are computed.
    """
    raise NotImplementedError("schedule.reverse_compute_inline of each stage")


def count_lines(source: str) -> int:
    """The logical lines of Python source.

    A logical line is a statement, or the head of one that has a body (def, if, for, a decorator),
    over however many lines of the file it goes. Blank lines, comments and docstrings (any line
    that is nothing but a string) are none.

    Args:
        source: whole statements.

    Returns:
        How many there are.
    """
    raise NotImplementedError("tokenize: count what NEWLINE ends, unless it is only a string")


def time_to_first_result(command: Sequence[str], *, runs: int) -> float:
    """How long a program takes from its start to the first line that it prints.

    Each run is a new process. The clock stops when the line is there, not when the process ends:
    many take a while to clean up. The next run starts only after that, though.

    Args:
        command: the program and its arguments.
        runs: how many processes, one after the other.

    Returns:
        Seconds, the median of the runs.

    Raises:
        RuntimeError: a process ended with another exit status than 0, or printed no line; the
            message has the status and the last line of its standard error.
    """
    raise NotImplementedError("subprocess.Popen, and the clock before it and after readline")


def pays_after(
    load_seconds: float, baseline_ms: float, ratio: tuple[float, float, float]
) -> int | None:
    """After how many calls a compiler has saved the time that it took.

    Args:
        load_seconds: what it needs before it can be called, beyond what the baseline needs; 0 or
            less if it needs no more.
        baseline_ms: what a call of the baseline takes, in milliseconds.
        ratio: time of the compiled call over the baseline's, and the low and high end of its 95%
            interval.

    Returns:
        The smallest number of calls whose saving is at least load_seconds; 0 if there is nothing
        to save up for; None if the interval does not say that it is faster.
    """
    raise NotImplementedError("None unless ratio's high end is below 1; else round up")


def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """Show the two schedules, then compare the frameworks, workload by workload."""
    from rich.console import Console

    from tvm_practice import engines
    from tvm_practice.labs.workloads.frameworks import FRAMEWORKS, missing
    from tvm_practice.labs.workloads.portability import FACTS
    from tvm_practice.measure import environment

    _show_one_pass(steps)
    _show_fusion(steps, 128 if quick else 512)
    figures: dict[str, Any] = {
        "environment": environment(),
        "packages": _versions(),
        "threads": engines.thread_count(),
    }
    mine = _written(steps)
    console = Console()
    if any(mine.values()):
        for framework in FRAMEWORKS.values():
            if reason := missing(framework):
                console.print(
                    f"\n{framework.label} is left out: {reason}", markup=False, highlight=False
                )
        figures |= _compare(mine, quick, steps.folder)
    else:
        print("\nThe frameworks are compared as soon as one of the last three is written.")
    if any(mine.values()) or not quick:
        figures["portability"] = _show_portability(("tvm",) if quick else tuple(FACTS))
    return figures


def _versions() -> dict[str, str]:
    """Of what is compared, by package."""
    import importlib.metadata

    found = {}
    for package in ("numpy", "torch", "jax", "onnxruntime", "triton", "apache-tvm"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass  # the tables say so
    return found


def _written(steps: "Steps") -> dict[str, Callable[..., Any] | None]:
    """What makes the tables' columns, by name; None for what is to do. Each is called once."""
    trials: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
        "count_lines": (("x = 1\n",), {}),
        "time_to_first_result": (([sys.executable, "-c", "print(1)"],), {"runs": 1}),
        "pays_after": ((1.0, 2.0, (0.5, 0.4, 0.6)), {}),
    }
    for name, (arguments, options) in trials.items():
        steps.attempt(name, *arguments, **options)
    missing = {*steps.todo, *steps.failed}
    return {name: None if name in missing else partial(steps.attempt, name) for name in trials}


def _show_one_pass(steps: "Steps") -> None:
    """Run the worked example and the softmax, and say how often each reads its row."""
    import numpy as np

    from tvm_practice.course.lowering import build_expression

    rows, columns = 64, 1000
    x = np.random.default_rng().uniform(990, 1010, (rows, columns)).astype("float32")
    wide = x.astype("float64")
    expression = normalized(rows, columns)
    wanted = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    error = np.abs(build_expression(expression)(x) - wanted).max()
    naive = (x * x).mean(1) - x.mean(1) ** 2
    loss = np.abs(naive / wide.var(1) - 1).max()
    print(
        f"\nnormalized({rows}, {columns}), values near 1000: off by {error:.1e}. The variance as\n"
        f"mean of squares less square of mean, one pass too, would be off by {loss:.0%}."
    )
    expression = steps.attempt("online_softmax", rows, columns)
    if expression is None:
        return
    exponent = np.exp(wide - wide.max(1, keepdims=True))
    wanted = exponent / exponent.sum(1, keepdims=True)
    error = np.abs(build_expression(expression)(x) / wanted - 1).max()
    print(
        f"online_softmax({rows}, {columns}): off by {error:.1e} of each value. For maximum\n"
        "and sum it read each row once; te_basics.softmax does it twice."
    )


def _show_fusion(steps: "Steps", size: int) -> None:
    """A product with bias and ReLU before and after its epilogue is fused: loops, times."""
    import numpy as np
    import tvm
    from tvm import te

    from solutions.manual_schedule import register_block
    from tvm_practice import engines
    from tvm_practice.manual_schedule import register_tile
    from tvm_practice.measure import compare_interleaved
    from tvm_practice.viz.loop_nest import loop_nest, print_nest

    A, B = (te.placeholder((size, size), name=name) for name in "AB")
    bias = te.placeholder((size,), name="bias")
    k = te.reduce_axis((0, size), name="k")
    C = te.compute((size, size), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    biased = te.compute(C.shape, lambda i, j: C[i, j] + bias[j], name="biased")
    Y = te.compute(C.shape, lambda i, j: te.max(biased[i, j], 0.0), name="Y")
    function = te.create_prim_func([A, B, bias, Y]).with_attr("global_symbol", "main")

    def tiled() -> Any:
        schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
        block = schedule.get_sblock("C")
        outer, _ = schedule.split(schedule.get_loops(block)[0], [None, 64])
        schedule.parallel(outer)
        register_block(schedule, block, *register_tile(), 4)
        return schedule

    apart, fused = tiled(), tiled()
    # It returns nothing, done or to do.
    steps.attempt("fuse_epilogue", fused, ["biased", "Y"])
    if "fuse_epilogue" in steps.todo or "fuse_epilogue" in steps.failed:
        return
    print_nest("fuse_epilogue: bias and ReLU in the tile", loop_nest(fused.mod["main"]))
    rng = np.random.default_rng()
    arrays = [rng.standard_normal(shape, "float32") for shape in ((size, size),) * 2 + ((size,),)]
    wanted = np.maximum(arrays[0].astype("float64") @ arrays[1] + arrays[2], 0)
    runs: dict[str, Any] = {}
    for name, schedule in (("apart", apart), ("fused", fused)):
        main = tvm.compile(schedule.mod, target=engines.host_target())["main"]
        tensors = [tvm.runtime.tensor(each) for each in arrays]
        output = tvm.runtime.tensor(np.zeros((size, size), "float32"))
        main(*tensors, output)
        error = float(np.abs(output.numpy() - wanted).max())
        if error > 1e-5 * size:
            steps.failed["fuse_epilogue"] = f"{name} is off by {error:.2g}"
            print(f"{name}: off by {error:.2g}")
            return
        runs[name] = lambda main=main, tensors=tensors, output=output: main(*tensors, output)
    ratio = compare_interleaved(runs, baseline="apart", rounds=20, time_limit=5).ratio["fused"]
    print(
        f"{size}³, in turns: fused / apart {ratio.value:.2f} ({ratio.low:.2f}–{ratio.high:.2f}), "
        f"{ratio.verdict}"
    )


def _compare(
    mine: dict[str, Callable[..., Any] | None], quick: bool, folder: Path
) -> dict[str, Any]:
    """Measure and print a table for each workload."""
    from tvm_practice.labs.workloads.comparing import Processes, measure
    from tvm_practice.labs.workloads.problems import PROBLEMS

    size: Any = "quick" if quick else "full"
    rows: dict[str, Any] = {}
    print(
        "\nlines: of what was written for the workload. first: seconds from the start of\n"
        "a new process to its first verified result. load: seconds for compiling (and\n"
        f"tuning, {_TRIALS[quick]} trials) in the process that is timed, which has had the\n"
        "workloads above. / eager: time over PyTorch's, in turns, on the same threads;\n"
        "under 1 is faster. pays: calls after which load has paid for itself."
    )
    with Processes(folder / "processes.log") as processes:
        for workload in _WORKLOADS[quick]:
            print(f"\n{workload}, {PROBLEMS[workload][size].text}")
            cells = measure(
                workload,
                processes,
                size=size,
                trials=_TRIALS[quick],
                runs=_FIRST_RESULTS[quick],
                rounds=_ROUNDS[quick],
                seconds=_SECONDS[quick],
                count_lines=mine["count_lines"],
                time_to_first_result=mine["time_to_first_result"],
                say=_progress,
            )
            if mine["pays_after"] is not None:
                _with_calls_to_pay(cells, mine["pays_after"])
            _print_table(cells)
            rows[workload] = {"text": PROBLEMS[workload][size].text, "frameworks": cells}
    return {"workloads": rows, "trials": _TRIALS[quick], "size": size}


def _progress(what: str) -> None:
    """Say on a terminal what goes on; nothing where output is kept."""
    if sys.stderr.isatty():
        print(f"\r  {what:<40}\r", end="", file=sys.stderr, flush=True)


def _with_calls_to_pay(
    cells: dict[str, dict[str, Any]], pays_after: Callable[..., int | None]
) -> None:
    from tvm_practice.labs.workloads.frameworks import BASELINE

    for name, cell in cells.items():
        if name == BASELINE or "ratio" not in cell or BASELINE not in cells:
            continue
        base = cells[BASELINE]
        ratio = (cell["ratio"]["value"], *cell["ratio"]["ci95"])
        extra = cell["load_seconds"] - base["load_seconds"]
        cell["pays_after"] = pays_after(extra, base["latency"]["p50"], ratio)


def _print_table(cells: dict[str, dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.table import Table

    from tvm_practice.labs.workloads.frameworks import FRAMEWORKS
    from tvm_practice.labs.workloads.tables import HEADS, row, why_not

    table = Table(*HEADS, box=None, pad_edge=False, padding=(0, 1))
    for column in table.columns[1:]:
        column.justify = "right"
    for name, cell in cells.items():
        table.add_row(FRAMEWORKS[name].label, *row(cell))
    console = Console()
    console.print(table)
    for name, cell in cells.items():
        if "missing" not in cell and (reason := why_not(cell)):
            console.print(f"{FRAMEWORKS[name].label}: {reason}", markup=False, highlight=False)


def _show_portability(names: Sequence[str]) -> dict[str, Any]:
    """Run the program that tries targets out, framework by framework, and print what it says."""
    from rich.console import Console

    from tvm_practice.labs.workloads.frameworks import FRAMEWORKS, missing
    from tvm_practice.labs.workloads.portability import family, line

    console = Console()
    console.print("\nFor which targets code is made here. Nothing of it is run.")
    found: dict[str, Any] = {}
    for name in names:
        command = ["python", "-m", "tvm_practice.labs.workloads.portability", name]
        console.print(f"\n[bold]{family(name)}[/]: {' '.join(command)}", highlight=False)
        found[name] = {"command": command}
        if reason := missing(FRAMEWORKS[name]):
            found[name]["missing"] = reason
        else:
            ended = subprocess.run(
                [sys.executable, *command[1:], "--json"],
                capture_output=True,
                text=True,
                check=False,
            )
            if ended.returncode:
                found[name]["missing"] = (ended.stderr.strip().splitlines() or ["no reason"])[-1]
            else:
                found[name]["facts"] = json.loads(ended.stdout.splitlines()[-1])
        for each in found[name].get("facts", ()):
            console.print(line(each), markup=False, highlight=False)
        if "missing" in found[name]:
            console.print(f"–    {found[name]['missing']}", markup=False, highlight=False)
    return found


def report(results: dict[str, Any], folder: Path) -> None:
    """Write results.json and tables.md."""
    from tvm_practice.labs.workloads.tables import page

    figures = results.get("current", {}).get("figures")
    if not figures or "workloads" not in figures:
        return
    (folder / "results.json").write_text(json.dumps(figures, indent=1))
    (folder / "tables.md").write_text(page(figures), encoding="utf-8")
    print(f"\ntables: {folder / 'tables.md'}")


main = phase_command("labs.compilers_compared", "Lab 6: compilers compared.")

if __name__ == "__main__":
    main()
