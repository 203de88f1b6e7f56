"""Phase 4: importing models.

A framework runs a model operator by operator; a compiler first takes all of it as a graph. Each
TVM has a graph IR: Relay (classic), Relax (current). On the graph it can do what no schedule of
one operator can: compute what depends on weights alone before the model ever runs, fold a
normalization into the convolution before it, run several operators in one pass over memory.

The models are in `tvm_practice/models.py`: an MLP, and residual networks with the batch
normalizations that make folding worth a look. The worked examples are `traced_operators` and
`exported_operators`: the two ways in which PyTorch hands over a graph. Write the functions below
them, then run

    python -m tvm_practice.relay_import
    pytest -m phase4

What is shown for each model: its operators before and after, the kernels they were fused to,
the largest difference to PyTorch, and the time of both.
"""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.phase import phase_command

if TYPE_CHECKING:
    from tvm_practice.course import Steps

# Float32 sums in another order differ by about 1e-6 of the values; a wrong weight by far more.
TOLERANCE = 1e-4
_SHORT_GRAPH = 12  # calls; a longer graph is shown as counts


def traced_operators(model: Any, example: tuple[Any, ...]) -> Counter[str]:
    """Worked example: what torch.jit.trace records while the model runs once.

    Args:
        model: a torch.nn.Module in eval mode.
        example: the tensors it is called with.

    Returns:
        How often each of PyTorch's operators ran, by name: "aten::linear".
    """
    import torch

    traced = torch.jit.trace(model, example, check_trace=False)  # type: ignore[no-untyped-call]
    kinds = (node.kind() for node in traced.inlined_graph.nodes())
    return Counter(kind for kind in kinds if kind.startswith("aten::"))


def exported_operators(model: Any, example: tuple[Any, ...]) -> Counter[str]:
    """Worked example: what torch.export.export writes down of the model.

    Args:
        model: a torch.nn.Module in eval mode.
        example: the tensors it is called with.

    Returns:
        How often each of PyTorch's operators occurs, by name: "aten.linear.default".
    """
    import torch

    exported = torch.export.export(model, example)
    return Counter(str(node.target) for node in exported.graph.nodes if node.op == "call_function")


def import_relay(
    model: Any, example: tuple[Any, ...], *, converters: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """Classic TVM: trace a PyTorch model and convert the trace to Relay.

    Name the inputs "input_0", "input_1", … in the order of `example`. The model is only read.

    Args:
        model: a torch.nn.Module in eval mode.
        example: the tensors it is called with.
        converters: converters of single PyTorch operators to use in place of TVM's, by name
            ("aten::relu"); what `from_pytorch` calls custom_convert_map.

    Returns:
        (mod, params): the IRModule, whose function main takes the inputs and then the weights,
        and the weights by name.
    """
    raise NotImplementedError("trace the model with torch.jit.trace, convert it with from_pytorch")


def optimize_relay(mod: Any, params: dict[str, Any]) -> Any:
    """Classic TVM: bind the weights as constants and simplify the graph; do not fuse yet.

    Batch normalizations are taken apart, what depends on constants alone is computed, and scales
    are folded into the convolutions' weights. Fusion is left to relay.build and to the tuners.

    Args:
        mod: what `import_relay` gives; it is left as it was.
        params: the weights by name.

    Returns:
        A new IRModule whose main takes the model's inputs only.
    """
    raise NotImplementedError("bind the weights, then run the passes at opt_level 3")


def build_relay(
    mod: Any, params: dict[str, Any], target: Any, *, config: dict[str, Any] | None = None
) -> Any:
    """Classic TVM: compile a Relay module at optimization level 3.

    Level 3 also changes the data layout of convolutions to one that fills vector registers.

    Args:
        mod: a Relay IRModule, optimized or as imported.
        params: the weights that main takes as inputs; {} if they are bound.
        target: a tvm.target.Target.
        config: further settings of the pass context, by name; tuners have some.

    Returns:
        The graph executor factory of relay.build.
    """
    raise NotImplementedError("call relay.build at opt_level 3")


def import_relax(
    model: Any, example: tuple[Any, ...], *, converters: dict[str, Any] | None = None
) -> Any:
    """Current TVM: export a PyTorch model and convert the exported program to Relax.

    The weights become constants of the graph. A model that returns one tensor returns that
    tensor, not a tuple of one. The model is only read.

    Args:
        model: a torch.nn.Module in eval mode.
        example: the tensors it is called with.
        converters: converters of single PyTorch operators to use in place of TVM's, by name
            ("relu.default"); what `from_exported_program` calls custom_convert_map.

    Returns:
        The IRModule, whose function main takes the model's inputs only.
    """
    raise NotImplementedError("export the model with torch.export, then convert the program")


def optimize_relax(mod: Any) -> Any:
    """Current TVM: simplify the graph, lower its operators to loops, and fuse them.

    In this order: decompose batch normalization, drop the bindings that this leaves, fold
    constants, legalize (each operator becomes a PrimFunc), annotate each PrimFunc with its
    pattern, fold constants again, group what can be fused, and merge each group to one PrimFunc.

    Args:
        mod: what `import_relax` gives; it is left as it was.

    Returns:
        A new IRModule in which every call of main is a call_tir of one PrimFunc.
    """
    raise NotImplementedError("run the eight passes from DecomposeOpsForInference to FuseTIR")


def build_relax(mod: Any, target: Any) -> Any:
    """Current TVM: compile a Relax module.

    Args:
        mod: an IRModule as `optimize_relax` leaves it, its PrimFuncs scheduled or not.
        target: a tvm.target.Target.

    Returns:
        The tvm.runtime.Executable of tvm.compile, which a relax.VirtualMachine runs.
    """
    raise NotImplementedError("call tvm.compile")


def verify(outputs: list[Any], reference: list[Any], *, atol: float, rtol: float) -> float:
    """Compare a compiled model's outputs with PyTorch's, element by element.

    An element is right if |output - reference| <= atol + rtol * |reference|. NaN is never right,
    an infinity only where the reference has the same one.

    Args:
        outputs: numpy arrays.
        reference: numpy arrays, as many (at least one) and of the same shapes.
        atol: absolute tolerance, in the outputs' unit.
        rtol: relative tolerance.

    Returns:
        The largest absolute error of all outputs.

    Raises:
        ValueError: another number of outputs (or none), another shape, or a wrong element. It
            names the output's index, its largest absolute and largest relative error (infinite
            for NaN) and the worst element's position.
    """
    raise NotImplementedError("compare count, shapes and elements; raise where they differ")


def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """Import, optimize, build, verify and time two models on the active engine."""
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
    steps: "Steps", name: str, model: Any, example: tuple[Any, ...], *, seconds: float
) -> dict[str, Any]:
    """One model from import to timing, as far as the functions are written."""
    from tvm_practice import engines

    classic = engines.active() == engines.CLASSIC
    record = (traced_operators if classic else exported_operators)(model, example)
    how = "torch.jit.trace" if classic else "torch.export"
    kinds = ", ".join(f"{count} {kind}" for kind, count in record.most_common())
    _say(f"\n{name}: {how} records {record.total()} operators: {kinds}.")
    figures, runner = (_compile_classic if classic else _compile_current)(
        steps, name, model, example
    )
    if runner is not None:
        figures |= _verify_and_time(steps, name, model, example, runner, seconds=seconds)
    return figures


def _compile_classic(
    steps: "Steps", name: str, model: Any, example: tuple[Any, ...]
) -> tuple[dict[str, Any], Any]:
    """Import, optimize and build with Relay: figures, and a runner if it got that far."""
    from tvm import relay

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
        _say(
            "As imported, the weights are inputs; optimized, they are constants. The fusion shown "
            "is relay.transform.FuseOps, which relay.build runs too."
        )
        fused = relay.transform.FuseOps(fuse_opt_level=2)(optimized)
        figures |= _show_change(name, mod, optimized, fused)
        mod, params = optimized, {}
    lib = steps.attempt("build_relay", mod, params, engines.host_target())
    if lib is None:
        return figures, None
    kernels = [node["name"] for node in _graph_nodes(lib) if node["op"] == "tvm_op"]
    moves = sum("layout_transform" in kernel for kernel in kernels)
    _say(
        f"Built: {len(kernels)} kernel launches, {moves} of them only to change the data's layout. "
        "The kernels have TOPI's x86 schedules at their default settings; phase 5 tunes them."
    )
    return figures, RelayRunner(lib)


def _graph_nodes(lib: Any) -> list[dict[str, Any]]:
    import json

    nodes: list[dict[str, Any]] = json.loads(lib.get_graph_json())["nodes"]
    return nodes


def _compile_current(
    steps: "Steps", name: str, model: Any, example: tuple[Any, ...]
) -> tuple[dict[str, Any], Any]:
    """Import, optimize and build with Relax: figures, and a runner if it got that far."""
    from tvm_practice import engines
    from tvm_practice.tvm_export.running import RelaxRunner
    from tvm_practice.viz.graph import graph

    mod = steps.attempt("import_relax", model, example)
    if mod is None:
        return {}, None
    figures = {"imported": graph(mod).operators.total()}
    optimized = steps.attempt("optimize_relax", mod)
    if optimized is not None:
        _say("As imported, the weights are constants already.")
        figures |= _show_change(name, mod, optimized, optimized)
        mod = optimized
    executable = steps.attempt("build_relax", mod, engines.host_target())
    if executable is None:
        return figures, None
    if optimized is not None:
        loops, scheduled = _count_loops(optimized)
        _say(
            f"Built: of the kernels' {loops} loops, {scheduled} are parallel, vectorized or "
            "unrolled. TVM compiles loops as it finds them: scheduling is done by hand (phase 2) "
            "or by a tuner (phase 5); until then a convolution is slow."
        )
    return figures, RelaxRunner(executable)


def _count_loops(mod: Any) -> tuple[int, int]:
    """Loops in a module's PrimFuncs: all, and those that are not serial."""
    from tvm_practice.viz.loop_nest import Loop, loop_nest

    kinds = []
    pending = [
        node
        for function in mod.functions.values()
        if type(function).__name__ == "PrimFunc"
        for node in loop_nest(function)
    ]
    while pending:
        node = pending.pop()
        if isinstance(node, Loop):
            kinds.append(node.kind)
            pending.extend(node.children)
    return len(kinds), sum(kind != "serial" for kind in kinds)


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
    _say(
        f"{before.operators.total()} operators became {after.operators.total()}, fused to "
        f"{len(kernels.calls)} kernels."
    )
    folded = len(before.constant_calls) - len(after.constant_calls)
    if folded > 0:
        _say(
            f"{folded} of the imported operators read only constants (a weight's transpose): "
            "computed now, not at every run."
        )
    normalizations = [key for key in before.operators if key.endswith("batch_norm")]
    if normalizations and not any(key in after.operators for key in normalizations):
        scaled = after.operators["multiply"]
        _say(
            "The batch normalizations are gone: "
            + (
                "each is a few element-wise operators on constants now, inside the kernel of the "
                "convolution before it, where a schedule can compute them in its loops."
                if scaled
                else "their scales are in the convolutions' weights, their shifts are the adds in "
                "the convolutions' kernels."
            )
        )
    return {
        "optimized": after.operators.total(),
        "kernels": len(kernels.calls),
        "fusion": fusion(imported, fused),
    }


def _verify_and_time(
    steps: "Steps",
    name: str,
    model: Any,
    example: tuple[Any, ...],
    runner: Any,
    *,
    seconds: float,
) -> dict[str, Any]:
    """Compare with PyTorch, first the values, then, if they agree, the time."""
    import torch

    from tvm_practice import engines, measure

    inputs = [each.numpy() for each in example]
    runner.set_inputs(inputs)
    runner.run()
    with torch.inference_mode():
        reference = model(*example)
        error = steps.attempt(
            "verify", runner.outputs(), [reference.numpy()], atol=TOLERANCE, rtol=TOLERANCE
        )
        if error is None:
            _say("Not verified, so not timed.")
            return {}
        _say(
            f"Verified: largest difference to PyTorch {error:.1e}, "
            f"allowed {TOLERANCE:g} + {TOLERANCE:g}·|value|."
        )
        engine = "Relay" if engines.active() == engines.CLASSIC else "Relax"
        comparison = measure.compare_interleaved(
            {"PyTorch": lambda: model(*example), engine: runner.run},
            baseline="PyTorch",
            rounds=50,
            time_limit=seconds,
        )
    _print_latency(name, comparison)
    return {"max_abs_error": error, "comparison": comparison.to_dict()}


def _print_latency(name: str, comparison: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    from tvm_practice import engines

    count = len(comparison.latency["PyTorch"].samples_ms)
    title = f"{name}: latency, {engines.thread_count()} threads each, {count} calls in turn"
    table = Table("", "median, ms", "p90, ms", "ratio", "95% interval", title=title)
    for who, latency in comparison.latency.items():
        ratio = comparison.ratio[who]
        against = (
            ("1", "")
            if who == comparison.baseline
            else (f"{ratio.value:.3g}", f"{ratio.low:.3g} to {ratio.high:.3g}, {ratio.verdict}")
        )
        times = (latency.median, latency.percentile(90))
        table.add_row(who, *(f"{ms:.0f}" if ms >= 100 else f"{ms:.3g}" for ms in times), *against)
    Console().print(table)
    unsteady = [who for who, latency in comparison.latency.items() if not latency.stable]
    if unsteady:
        _say(
            f"Samples of {' and '.join(unsteady)} scatter: if the machine is busy with other work, "
            "measure again."
        )


def _say(text: str) -> None:
    """Print wrapped to the terminal."""
    from rich.console import Console
    from rich.text import Text

    Console().print(Text(text))


def report(results: dict[str, Any], folder: Path) -> None:
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


main = phase_command("relay_import", "Phase 4: a PyTorch model through Relay and Relax.")

if __name__ == "__main__":
    main()
