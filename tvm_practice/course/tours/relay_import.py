"""What phase 4 shows: two models imported, optimized, built, verified and timed."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.steps import Steps
from tvm_practice.course.tours.printing import number_table, say, show_comparison
from tvm_practice.wording import number_of

if TYPE_CHECKING:
    from tvm_practice.measure import Comparison
    from tvm_practice.viz.graph import Graph

# Float32 sums in another order differ by about 1e-6 of the values; a wrong weight by far more.
_TOLERANCE = 1e-4
_SHORT_GRAPH = 12  # calls; a longer graph is shown as counts


def lane(steps: Steps, *, quick: bool) -> dict[str, Any]:
    """Import, optimize, build, verify and time two models on the active engine.

    Returns:
        By model, as far as the functions are written: {"imported", "optimized", "kernels": how
        many, "fusion": see viz.graph.fusion, "max_abs_error", "comparison"}.
    """
    import torch

    from tvm_practice import engines
    from tvm_practice.models import load_mlp, load_resnet18, load_small_resnet
    from tvm_practice.tvm_export.quiet import quiet_frontends

    torch.set_num_threads(engines.thread_count())
    second = ("small ResNet", load_small_resnet) if quick else ("ResNet-18", load_resnet18)
    figures = {}
    with quiet_frontends():
        for name, load in (("MLP", load_mlp), second):
            model, example = load()
            figures[name] = _study(steps, name, model, example, seconds=2 if quick else 15)
    return figures


def _study(
    steps: Steps, name: str, model: Any, example: tuple[Any, ...], *, seconds: float
) -> dict[str, Any]:
    """One model from import to timing, as far as the functions are written."""
    from tvm_practice import engines

    if engines.active() == engines.CLASSIC:
        how, record, compile_model = "torch.jit.trace", "traced_operators", _compile_classic
    else:
        how, record, compile_model = "torch.export", "exported_operators", _compile_current
    recorded = getattr(steps.chapter, record)(model, example)
    kinds = ", ".join(f"{count} {kind}" for kind, count in recorded.most_common())
    say(f"\n{name}: {how} records {number_of(recorded.total(), 'operator')}: {kinds}.")
    figures, runner = compile_model(steps, name, model, example)
    if runner is None:
        return figures
    error = _verify(steps, model, example, runner)
    if error is None:
        say("Not verified, so not timed.")
        return figures
    comparison = _time(model, example, runner, seconds)
    _print_latency(name, comparison)
    return {**figures, "max_abs_error": error, "comparison": comparison.to_dict()}


def _compile_classic(
    steps: Steps, name: str, model: Any, example: tuple[Any, ...]
) -> tuple[dict[str, Any], Any]:
    """Import, optimize and build with Relay: figures, and a runner if it got that far."""
    from tvm_practice import engines
    from tvm_practice.tvm_export.running import RelayRunner
    from tvm_practice.viz.graph import graph

    imported = steps.attempt("import_relay", model, example)
    if imported is None:
        return {}, None
    mod, params = imported
    figures = {"imported": graph(mod).operators.total()}
    optimized = steps.attempt("optimize_relay", mod, params)
    if optimized is not None:
        say(
            "As imported, the weights are inputs; optimized, they are constants. The fusion shown "
            "is that of the worked example: FuseOps, which relay.build runs too."
        )
        fused = steps.chapter.fused_classic(optimized)
        figures |= _show_change(name, mod, optimized, fused)
        mod, params = optimized, {}
    lib = steps.attempt("build_relay", mod, params, engines.host_target())
    if lib is None:
        return figures, None
    nodes = json.loads(lib.get_graph_json())["nodes"]
    kernels = [node["name"] for node in nodes if node["op"] == "tvm_op"]
    moves = sum("layout_transform" in kernel for kernel in kernels)
    say(
        f"Built: {len(kernels)} kernel launches, {moves} of them only to change the data's layout. "
        "The kernels have the x86 schedules of TOPI, TVM's library of schedules, at their default "
        "settings; a tuner (phase 5) can search for better ones."
    )
    return figures, RelayRunner(lib)


def _compile_current(
    steps: Steps, name: str, model: Any, example: tuple[Any, ...]
) -> tuple[dict[str, Any], Any]:
    """Import, optimize and build with Relax: figures, and a runner if it got that far."""
    from tvm_practice import engines
    from tvm_practice.tvm_export.running import RelaxRunner
    from tvm_practice.viz.graph import graph

    mod = steps.attempt("import_relax", model, example)
    if mod is None:
        return {}, None
    figures = {"imported": graph(mod).operators.total()}
    left = graph(steps.chapter.folded(mod)).operators.total()
    say(
        f"Worked example: two passes leave {left} of {figures['imported']} operators. The others "
        "read only constants: they are computed once, at compile time."
    )
    optimized = steps.attempt("optimize_relax", mod)
    if optimized is not None:
        say("As imported, the weights are constants already.")
        figures |= _show_change(name, mod, optimized, optimized)
        mod = optimized
    executable = steps.attempt("build_relax", mod, engines.host_target())
    if executable is None:
        return figures, None
    if optimized is not None:
        kinds = list(_loop_kinds(optimized))
        scheduled = sum(kind != "serial" for kind in kinds)
        say(
            f"Built: of the kernels' {len(kinds)} loops, {scheduled} are parallel, vectorized or "
            "unrolled. TVM compiles loops as it finds them: scheduling is done by hand (phase 2) "
            "or by a tuner (phase 5); until then a convolution is slow."
        )
    return figures, RelaxRunner(executable)


def _loop_kinds(mod: Any) -> Iterator[str]:
    """The kind of every loop in a module's PrimFuncs."""
    from tvm_practice.viz.loop_nest import Loop, loop_nest

    pending = [
        node
        for function in mod.functions.values()
        if type(function).__name__ == "PrimFunc"
        for node in loop_nest(function)
    ]
    while pending:
        node = pending.pop()
        if isinstance(node, Loop):
            yield node.kind
            pending.extend(node.children)


def _show_change(name: str, imported: Any, optimized: Any, fused: Any) -> dict[str, Any]:
    """Print what optimization and fusion did; counts of operators and kernels, and their names."""
    from tvm_practice.viz.graph import fusion, graph, print_graph, print_kernels, print_operators

    before, after, kernels = graph(imported), graph(optimized), graph(fused)
    if len(before.calls) <= _SHORT_GRAPH:
        print_graph(f"{name} as imported", imported)
        print_graph(f"{name} optimized and fused", fused)
    else:
        print_operators(f"{name}: operators", before, after)
        print_kernels(f"{name}: kernels after fusion", kernels)
    _explain_change(before, after, kernels)
    return {
        "optimized": after.operators.total(),
        "kernels": len(kernels.calls),
        "fusion": fusion(imported, fused),
    }


def _explain_change(before: "Graph", after: "Graph", kernels: "Graph") -> None:
    say(
        f"{before.operators.total()} operators became {after.operators.total()}, fused into "
        f"{len(kernels.calls)} kernels."
    )
    folded = len(before.constant_calls) - len(after.constant_calls)
    if folded > 0:
        say(
            f"{folded} of the imported operators read only constants (a weight's transpose, "
            "for example): they are computed once, at compile time, not in every run."
        )
    normalizations = [key for key in before.operators if key.endswith("batch_norm")]
    if normalizations and not any(key in after.operators for key in normalizations):
        scaled = after.operators["multiply"]
        say(
            "The batch normalizations are gone: "
            + (
                "each is a few element-wise operators on constants now, inside the kernel of the "
                "convolution before it, where a schedule can compute them in its loops."
                if scaled
                else "their scales are in the convolutions' weights, their shifts are the adds in "
                "the convolutions' kernels."
            )
        )


def _verify(steps: Steps, model: Any, example: tuple[Any, ...], runner: Any) -> float | None:
    """The largest difference from PyTorch; None if it is too large or `verify` is to do.

    The inputs stay set in the runner.
    """
    import torch

    runner.set_inputs([each.numpy() for each in example])
    runner.run()
    with torch.inference_mode():
        reference = [model(*example).numpy()]
    error: float | None = steps.attempt(
        "verify", runner.outputs(), reference, atol=_TOLERANCE, rtol=_TOLERANCE
    )
    if error is not None:
        say(
            f"Verified: largest difference from PyTorch {error:.1e}, "
            f"allowed {_TOLERANCE:g} + {_TOLERANCE:g}·|value|."
        )
    return error


def _time(model: Any, example: tuple[Any, ...], runner: Any, seconds: float) -> "Comparison":
    """PyTorch and the runner, whose inputs are set, in turns."""
    import torch

    from tvm_practice import engines
    from tvm_practice.measure import compare_interleaved

    engine = "Relay" if engines.active() == engines.CLASSIC else "Relax"
    with torch.inference_mode():
        return compare_interleaved(
            {"PyTorch": lambda: model(*example), engine: runner.run},
            baseline="PyTorch",
            rounds=50,
            time_limit=seconds,
        )


def _print_latency(name: str, comparison: "Comparison") -> None:
    from tvm_practice import engines

    count = len(comparison.latency["PyTorch"].samples_ms)
    threads = number_of(engines.thread_count(), "thread")
    title = f"{name}: latency, {threads} each, {number_of(count, 'call')} in turn"
    table = number_table("", "median, ms", "p90, ms", "ratio", title=title)
    table.add_column("95% interval")
    for who, latency in comparison.latency.items():
        ratio = comparison.ratio[who]
        value, interval = ratio.cells()
        if ratio.measured:
            interval += f", {ratio.verdict}"
        against = ("1", "") if who == comparison.baseline else (value, interval)
        times = (latency.median, latency.percentile(90))
        table.add_row(who, *(f"{ms:.0f}" if ms >= 100 else f"{ms:.3g}" for ms in times), *against)
    show_comparison(table, comparison)
    unsteady = [who for who, latency in comparison.latency.items() if not latency.stable]
    if unsteady:
        say(
            f"Samples of {' and '.join(unsteady)} scatter: if the machine is busy with other work, "
            "measure again."
        )


def report(results: Mapping[str, Any], folder: Path) -> None:
    """Draw operators and kernels, and latencies, of each model on each engine."""
    from tvm_practice.viz.graph import plot_imports

    finished = {
        (model, "Relay" if engine == "classic" else "Relax"): figures
        for engine, lane_results in results.items()
        for model, figures in lane_results.get("figures", {}).items()
        if "kernels" in figures and "comparison" in figures
    }
    studies = {f"{model}\n{ir}": finished[model, ir] for model, ir in sorted(finished)}
    if studies:
        file = folder / "import.png"
        plot_imports(studies, file)
        print(f"\nOperators, kernels and latencies: {file}")
