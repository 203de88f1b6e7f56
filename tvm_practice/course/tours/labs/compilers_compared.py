"""What lab 6 shows: two schedules, and the same five workloads in nine frameworks."""

import importlib.metadata
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.printing import number_table, say, show
from tvm_practice.engines.blocking import register_tile
from tvm_practice.measure import MIN_ROUNDS

# In full and, second, with --quick.
_WORKLOADS = (("matmul", "softmax", "layer_norm", "mlp", "attention"), ("softmax",))
_TRIALS = (32, 4)
_FIRST_RESULTS = (3, 1)
_ROUNDS = (40, MIN_ROUNDS)
_SECONDS = (20.0, 5.0)


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Show the two schedules, then compare the frameworks, workload by workload."""
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
    if any(mine.values()):
        for framework in FRAMEWORKS.values():
            if reason := missing(framework):
                say(f"\n{framework.label} is left out: {reason}")
        figures |= _compare(mine, quick, steps.folder)
    else:
        print("\nThe frameworks are compared as soon as one of the last three is written.")
    if any(mine.values()) or not quick:
        figures["portability"] = _show_portability(("tvm",) if quick else tuple(FACTS))
    return figures


def _versions() -> dict[str, str]:
    """Of what is compared, by package."""
    found = {}
    for package in ("numpy", "torch", "jax", "onnxruntime", "triton", "apache-tvm"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass  # the tables say so
    return found


def _written(steps: Steps) -> dict[str, Callable[..., Any] | None]:
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


def _show_one_pass(steps: Steps) -> None:
    """Run the worked example and the softmax, and say how often each reads its row."""
    import numpy as np

    from tvm_practice.course.lowering import build_expression

    rows, columns = 64, 1000
    x = np.random.default_rng().uniform(990, 1010, (rows, columns)).astype("float32")
    wide = x.astype("float64")
    expression = steps.chapter.normalized(rows, columns)
    wanted = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    error = np.abs(build_expression(expression)(x) - wanted).max()
    naive = (x * x).mean(1) - x.mean(1) ** 2
    loss = np.abs(naive / wide.var(1) - 1).max()
    print(
        f"\nnormalized({rows}, {columns}), values near 1000: off by {error:.1e}. "
        "Computed as mean of\nsquares minus squared mean, also in one pass, the variance "
        f"would be off by {loss:.0%}."
    )
    expression = steps.attempt("online_softmax", rows, columns)
    if expression is None:
        return
    exponent = np.exp(wide - wide.max(1, keepdims=True))
    wanted = exponent / exponent.sum(1, keepdims=True)
    error = np.abs(build_expression(expression)(x) / wanted - 1).max()
    print(
        f"online_softmax({rows}, {columns}): relative error {error:.1e}. It reads each row\n"
        "once for maximum and sum; te_basics.softmax reads it twice."
    )


def _show_fusion(steps: Steps, size: int) -> None:
    """A product with bias and ReLU before and after its epilogue is fused: loops, times."""
    from tvm_practice.measure import compare_interleaved
    from tvm_practice.viz.loop_nest import loop_nest, print_nest

    apart, fused = _tiled_layer(size), _tiled_layer(size)
    # It returns nothing, done or to do.
    steps.attempt("fuse_epilogue", fused, ["biased", "Y"])
    if not steps.ran("fuse_epilogue"):
        return
    print_nest("fuse_epilogue: bias and ReLU in the tile", loop_nest(fused.mod["main"]))
    with steps.blaming("fuse_epilogue"):
        runs = _verified_layers({"apart": apart, "fused": fused}, size)
        compared = compare_interleaved(runs, baseline="apart", rounds=20, time_limit=5)
        print(f"{size}³, in turns: fused / apart {compared.ratio['fused']}")


def _tiled_layer(size: int) -> Any:
    """A schedule of Y = max(A · B + bias, 0), whose product is tiled and nothing fused."""
    import tvm
    from tvm import te

    from tvm_practice.course.stack import earlier

    register_block = earlier("manual_schedule.register_block")
    A, B = (te.placeholder((size, size), name=name) for name in "AB")
    bias = te.placeholder((size,), name="bias")
    k = te.reduce_axis((0, size), name="k")
    C = te.compute((size, size), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    biased = te.compute(C.shape, lambda i, j: C[i, j] + bias[j], name="biased")
    Y = te.compute(C.shape, lambda i, j: te.max(biased[i, j], 0.0), name="Y")
    function = te.create_prim_func([A, B, bias, Y]).with_attr("global_symbol", "main")
    schedule = tvm.s_tir.Schedule(tvm.IRModule({"main": function}))
    block = schedule.get_sblock("C")
    outer, _ = schedule.split(schedule.get_loops(block)[0], [None, 64])
    schedule.parallel(outer)
    register_block(schedule, block, *register_tile(), 4)
    return schedule


def _verified_layers(schedules: Mapping[str, Any], size: int) -> dict[str, Callable[[], Any]]:
    """Compile schedules of `_tiled_layer`; a call of each, on the same inputs.

    Raises:
        ValueError: a result is wrong.
    """
    import numpy as np
    import tvm

    from tvm_practice import engines

    rng = np.random.default_rng()
    arrays = [rng.standard_normal(shape, "float32") for shape in ((size, size),) * 2 + ((size,),)]
    wanted = np.maximum(arrays[0].astype("float64") @ arrays[1] + arrays[2], 0)
    runs: dict[str, Callable[[], Any]] = {}
    for name, schedule in schedules.items():
        main = tvm.compile(schedule.mod, target=engines.host_target())["main"]
        output = tvm.runtime.tensor(np.zeros((size, size), "float32"))
        runs[name] = partial(main, *map(tvm.runtime.tensor, arrays), output)
        runs[name]()
        error = float(np.abs(output.numpy() - wanted).max())
        if error > 1e-5 * size:
            raise ValueError(f"{name} is off by {error:.2g}")
    return runs


def _compare(
    mine: dict[str, Callable[..., Any] | None], quick: bool, folder: Path
) -> dict[str, Any]:
    """Measure and print a table for each workload."""
    from tvm_practice.labs.workloads.comparing import Processes, measure
    from tvm_practice.labs.workloads.problems import PROBLEMS

    size: Any = "quick" if quick else "full"
    rows: dict[str, Any] = {}
    print(
        "\nlines: of the code written for the workload. first: seconds from the start of a\n"
        "new process to its first verified result. load: seconds for compiling (and\n"
        f"tuning, {_TRIALS[quick]} trials) in the timed process, which has already run the\n"
        "workloads above. / eager: time over PyTorch's, in turns, on the same threads;\n"
        "under 1 is faster. It is the median of the rounds' ratios, not the quotient of\n"
        "two medians in ms. pays: calls after which load has paid for itself."
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
        if cell["ratio"]["value"] is None:
            continue
        base = cells[BASELINE]
        ratio = (cell["ratio"]["value"], *cell["ratio"]["ci95"])
        extra = cell["load_seconds"] - base["load_seconds"]
        cell["pays_after"] = pays_after(extra, base["latency"]["p50"], ratio)


def _print_table(cells: dict[str, dict[str, Any]]) -> None:

    from tvm_practice.labs.workloads.frameworks import FRAMEWORKS
    from tvm_practice.labs.workloads.tables import HEADS, row, why_not

    table = number_table(*HEADS, box=None, pad_edge=False, padding=(0, 1))
    for name, cell in cells.items():
        table.add_row(FRAMEWORKS[name].label, *row(cell))
    show(table)
    for name, cell in cells.items():
        if "missing" not in cell and (reason := why_not(cell)):
            say(f"{FRAMEWORKS[name].label}: {reason}")


def _show_portability(names: Sequence[str]) -> dict[str, Any]:
    """Run the program that tries targets out, framework by framework, and print what it says."""
    from tvm_practice.labs.workloads.portability import family, line

    say("\nThe targets for which code is made here; none of it is run.")
    found: dict[str, Any] = {}
    for name in names:
        command = ["python", "-m", "tvm_practice.labs.workloads.portability", name]
        say(f"\n{family(name)}: {' '.join(command)}")
        found[name] = {"command": command, **_portability(name, command)}
        for each in found[name].get("facts", ()):
            say(line(each))
        if "missing" in found[name]:
            say(f"–    {found[name]['missing']}")
    return found


def _portability(name: str, command: Sequence[str]) -> dict[str, Any]:
    """{"facts": what the command says of each target}, or {"missing": why it says nothing}."""
    from tvm_practice.labs.workloads.frameworks import FRAMEWORKS, missing

    if reason := missing(FRAMEWORKS[name]):
        return {"missing": reason}
    ended = subprocess.run(
        [sys.executable, *command[1:], "--json"], capture_output=True, text=True, check=False
    )
    if ended.returncode:
        return {"missing": (ended.stderr.strip().splitlines() or ["no reason"])[-1]}
    return {"facts": json.loads(ended.stdout.splitlines()[-1])}


def report(results: dict[str, Any], folder: Path) -> None:
    """Write results.json and tables.md."""
    from tvm_practice.labs.workloads.tables import page

    figures = results.get("current", {}).get("figures")
    if not figures or "workloads" not in figures:
        return
    (folder / "results.json").write_text(json.dumps(figures, indent=1))
    (folder / "tables.md").write_text(page(figures), encoding="utf-8")
    print(f"\ntables: {folder / 'tables.md'}")
