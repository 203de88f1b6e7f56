"""Phase 4: importing models.

A framework runs a model operator by operator; a compiler first imports the whole model as a graph.
Each TVM has its own form of graph (an IR, intermediate representation): Relax (current), Relay
(classic). On the graph, a compiler can do things that no schedule of one operator can: compute
in advance everything that depends on weights alone, fold a normalization into the preceding
convolution, run several operators in one pass over memory.

A pass takes an IRModule and returns a new one. The pieces of current TVM:

    torch.export.export(model, example)     the whole model as one program, or an error
    from_exported_program(program, …)       that program as an IRModule; of
                                            tvm.relax.frontend.torch. Its options:
        keep_params_as_input=False            the weights are constants, not inputs
        unwrap_unit_return_tuple=True         one tensor, not a tuple of one
        custom_convert_map={…}                converters of your own
    tvm.transform.Sequential([a, b])        passes as one pass, run in this order
    tvm.transform.PassContext(opt_level=3)  a pass context: a `with` block of it silently skips
                                            passes of a level above 3. Without it, above 2
        config={…}                            further settings, by name
    tvm.compile(mod, target)                compiles functions and graph; returns an executable
    relax.transform.X()                     a pass. X is
        DecomposeOpsForInference              batch normalization becomes arithmetic
        CanonicalizeBindings                  replaces a variable that only renames a value, such as
                                              an element of a known tuple, by that value
        FoldConstant                          computes what depends on constants alone
        LegalizeOps                           each operator becomes a call of a PrimFunc, call_tir
        AnnotateTIROpPattern                  marks each PrimFunc with its pattern: element-wise,
                                              reduction, …
        FuseOps, FuseTIR                      group calls by pattern; make a group one PrimFunc

The pieces of classic TVM:

    torch.jit.trace(model, example, check_trace=False, strict=False)
                                            records the operators of one run of the model; inside
                                            `with torch.no_grad():`, without gradients. The options
                                            make no second run to check the first, and allow lists
                                            and dicts as results
    relay.frontend.from_pytorch(trace, inputs, custom_convert_map={…})
                                            (the trace as an IRModule, the weights by name); inputs
                                            is a list of (name, shape)
    relay.build_module.bind_params_by_name(function, weights)
                                            the function with its weights as constants
    tvm.IRModule(mod.functions, mod.type_definitions)
                                            a copy, in which copy["main"] = … changes main
    relay.build(mod, target=…, params=…)    compiles functions and graph; returns a graph executor
                                            factory, which holds kernels, graph and weights
    relay.transform.X()                     a pass. X is
        SimplifyInference                     batch normalization becomes arithmetic
        FoldConstant                          computes what depends on constants alone
        FoldScaleAxis                         multiplies scales into weights; level 3
        CanonicalizeOps                       replaces operators by simpler ones: bias_add by add
        EliminateCommonSubexpr                computes equal expressions once
        InferType                             works out the type of every expression
        FuseOps                               makes a function of each group that becomes one kernel

The models are in `tvm_practice.models`: an MLP, and residual networks, whose batch normalizations
can be folded. The worked examples show how PyTorch hands over a graph and how to run passes, first
in current TVM, then in classic TVM. Write the functions below them, then run

    python -m tvm_practice.relay_import
    pytest -m phase4

For each model, the run shows its operators before and after, the kernels they were fused into,
the largest difference from PyTorch, and both times.
"""

from collections import Counter
from typing import Any

from tvm_practice.course.phase import phase_command


def exported_operators(model: Any, example: tuple[Any, ...]) -> Counter[str]:
    """Worked example: the operators in the graph that torch.export.export makes of the model.

    Args:
        model: a torch.nn.Module in eval mode.
        example: the tensors it is called with.

    Returns:
        How often each of PyTorch's operators occurs, by name: "aten.linear.default".
    """
    import torch

    exported = torch.export.export(model, example)
    return Counter(str(node.target) for node in exported.graph.nodes if node.op == "call_function")


def folded(mod: Any) -> Any:  # an IRModule
    """Worked example: two passes over a Relax module, as one.

    FoldConstant computes the calls whose arguments are all constants, such as the transpose of a
    weight, and drops constants that nothing reads any more; DeadCodeElimination drops calls whose
    results nothing reads, and functions that main does not call.

    Args:
        mod: an IRModule of Relax; it is not changed.

    Returns:
        A new IRModule.
    """
    import tvm
    from tvm import relax

    passes = tvm.transform.Sequential(
        [relax.transform.FoldConstant(), relax.transform.DeadCodeElimination()]
    )
    return passes(mod)


def traced_operators(model: Any, example: tuple[Any, ...]) -> Counter[str]:
    """Worked example: the operators that torch.jit.trace records while the model runs once.

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


def fused_classic(mod: Any) -> Any:  # an IRModule
    """Worked example: the fusion of relay.build, by two of the passes that it runs.

    FuseOps fuses as far as the level of the pass context allows. `build_relay` uses 3, too.

    Args:
        mod: an IRModule of Relay; it is not changed.

    Returns:
        A new IRModule, in which each group of fused operators is a function.
    """
    import tvm
    from tvm import relay

    passes = tvm.transform.Sequential([relay.transform.InferType(), relay.transform.FuseOps()])
    with tvm.transform.PassContext(opt_level=3):
        return passes(mod)


def import_relax(
    model: Any, example: tuple[Any, ...], *, converters: dict[str, Any] | None = None
) -> Any:
    """Current TVM: export a PyTorch model and convert the exported program to Relax.

    The function main calls Relax's operators, not yet lowered to loops, and the weights are
    constants of the graph. For a model that returns one tensor, main returns that tensor, not a
    tuple of one. The model is only read.

    Args:
        model: a torch.nn.Module in eval mode.
        example: the tensors it is called with.
        converters: converters of single PyTorch operators to use in place of TVM's, by name
            ("relu.default"); the custom_convert_map of `from_exported_program`.

    Returns:
        The IRModule, whose function main takes the model's inputs only.
    """
    raise NotImplementedError("export the model with torch.export, then convert the program")


def optimize_relax(mod: Any) -> Any:
    """Current TVM: simplify the graph, lower its operators to loops, and fuse them.

    In this order: decompose batch normalization, replace the variables that then only rename a
    value (canonicalize bindings), fold constants, legalize (each operator becomes a PrimFunc),
    annotate each PrimFunc with its pattern, fold constants again, group the calls to fuse, and
    merge each group into one PrimFunc.

    Args:
        mod: the module from `import_relax`; it is not changed.

    Returns:
        A new IRModule in which every call of main is a call_tir of one PrimFunc.
    """
    raise NotImplementedError("run the eight passes from DecomposeOpsForInference to FuseTIR")


def build_relax(mod: Any, target: Any) -> Any:
    """Current TVM: compile a Relax module, in the caller's pass context.

    Args:
        mod: an IRModule as `optimize_relax` leaves it, its PrimFuncs scheduled or not; it is not
            changed.
        target: a tvm.target.Target.

    Returns:
        The tvm.runtime.Executable of tvm.compile, which a relax.VirtualMachine runs.
    """
    raise NotImplementedError("call tvm.compile")


def verify(outputs: list[Any], reference: list[Any], *, atol: float, rtol: float) -> float:
    """Compare a compiled model's outputs with PyTorch's, element by element.

    An element is right if |output - reference| <= atol + rtol * |reference|, computed in float64.
    NaN is never right. An infinity is right only where the reference has the same one, and where
    the reference is infinite, nothing else is right.

    Args:
        outputs: numpy arrays.
        reference: numpy arrays, as many (at least one) and of the same shapes.
        atol: absolute tolerance, in the outputs' unit.
        rtol: relative tolerance.

    Returns:
        The largest absolute error of all outputs.

    Raises:
        ValueError: the number of outputs differs (or is zero), a shape differs, or an element is
            wrong. The message names the output's index, its largest absolute and largest relative
            error (infinite for NaN; a relative one also where only the reference is 0) and the
            position of the worst of its wrong elements, which is furthest above its tolerance.
    """
    raise NotImplementedError("compare count, shapes and elements; raise where they differ")


def import_relay(
    model: Any, example: tuple[Any, ...], *, converters: dict[str, Any] | None = None
) -> tuple[Any, dict[str, Any]]:
    """Classic TVM: trace a PyTorch model and convert the trace to Relay.

    Name the inputs "input_0", "input_1", … in the order of `example`. The model is only read.

    Args:
        model: a torch.nn.Module in eval mode.
        example: the tensors it is called with.
        converters: converters of single PyTorch operators to use in place of TVM's, by name
            ("aten::relu"); the custom_convert_map of `from_pytorch`.

    Returns:
        (mod, params): the IRModule, whose function main takes the inputs and then the weights,
        and the weights by name.
    """
    raise NotImplementedError("trace the model with torch.jit.trace, convert it with from_pytorch")


def optimize_relay(mod: Any, params: dict[str, Any]) -> Any:
    """Classic TVM: bind the weights as constants and simplify the graph; do not fuse yet.

    Decompose batch normalizations, compute everything that depends on constants alone, and fold
    scales into the weights of convolutions. Leave fusion to relay.build and to the tuners.

    Args:
        mod: the module from `import_relay`; it is not changed.
        params: the weights by name.

    Returns:
        A new IRModule whose main takes the model's inputs only.
    """
    raise NotImplementedError("bind the weights, then run the passes at opt_level 3")


def build_relay(
    mod: Any, params: dict[str, Any], target: Any, *, config: dict[str, Any] | None = None
) -> Any:
    """Classic TVM: compile a Relay module at optimization level 3.

    Level 3 also changes the data layout of convolutions to one that fills vector registers. It is
    the level whatever the caller's pass context says.

    Args:
        mod: a Relay IRModule, optimized or as imported; it is not changed.
        params: the weights that main takes as inputs; {} if they are bound.
        target: a tvm.target.Target.
        config: further settings of the pass context, by name; the schedules of a tuner may need
            some.

    Returns:
        The graph executor factory of relay.build.
    """
    raise NotImplementedError("call relay.build at opt_level 3")


main = phase_command("relay_import", "Phase 4: a PyTorch model through Relay and Relax.")

if __name__ == "__main__":
    main()
