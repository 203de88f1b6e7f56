"""Reference answers of phase 4."""

from typing import Any


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
    import torch
    from tvm import relay

    # The types need not be given: the trace has them.
    inputs = [(f"input_{position}", tuple(each.shape)) for position, each in enumerate(example)]
    with torch.no_grad():
        # Not checked by running it again: verify() will compare with PyTorch.
        traced = torch.jit.trace(  # type: ignore[no-untyped-call]
            model, example, check_trace=False, strict=False
        )
    mod, params = relay.frontend.from_pytorch(traced, inputs, custom_convert_map=converters)
    return mod, params


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
    import tvm
    from tvm import relay

    bound = tvm.IRModule(mod.functions, mod.type_definitions)
    bound["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    passes = tvm.transform.Sequential(
        [
            relay.transform.SimplifyInference(),
            relay.transform.FoldConstant(),
            relay.transform.FoldScaleAxis(),
            relay.transform.FoldConstant(),
            relay.transform.CanonicalizeOps(),
            relay.transform.EliminateCommonSubexpr(),
        ]
    )
    # A Sequential leaves out, without a word, the passes above the context's level (default 2).
    with tvm.transform.PassContext(opt_level=3):
        return passes(bound)


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
    import tvm
    from tvm import relay

    with tvm.transform.PassContext(opt_level=3, config=config):
        return relay.build(mod, target=target, params=params)


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
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    return from_exported_program(
        torch.export.export(model, example),
        keep_params_as_input=False,
        unwrap_unit_return_tuple=True,
        custom_convert_map=converters,
    )


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
    import tvm
    from tvm import relax

    passes = tvm.transform.Sequential(
        [
            relax.transform.DecomposeOpsForInference(),
            relax.transform.CanonicalizeBindings(),
            relax.transform.FoldConstant(),
            relax.transform.LegalizeOps(),
            relax.transform.AnnotateTIROpPattern(),
            relax.transform.FoldConstant(),
            relax.transform.FuseOps(),
            relax.transform.FuseTIR(),
        ]
    )
    return passes(mod)


def build_relax(mod: Any, target: Any) -> Any:
    """Current TVM: compile a Relax module.

    Args:
        mod: an IRModule as `optimize_relax` leaves it, its PrimFuncs scheduled or not.
        target: a tvm.target.Target.

    Returns:
        The tvm.runtime.Executable of tvm.compile, which a relax.VirtualMachine runs.
    """
    import tvm

    return tvm.compile(mod, target)


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
    import numpy as np

    if len(outputs) != len(reference) or not reference:
        raise ValueError(f"{len(outputs)} outputs to compare with {len(reference)} of reference")
    largest = 0.0
    for index, (got, want) in enumerate(zip(outputs, reference, strict=True)):
        if got.shape != want.shape:
            raise ValueError(f"output {index} has shape {got.shape}, the reference {want.shape}")
        if not want.size:
            continue
        exact, wanted = got.astype("float64"), want.astype("float64")
        with np.errstate(invalid="ignore", divide="ignore"):
            error = np.where(exact == wanted, 0.0, np.abs(exact - wanted))
            relative = np.where(error == 0, 0.0, error / np.abs(wanted))
            allowed = atol + rtol * np.abs(wanted)
        error, relative = (
            np.nan_to_num(each, nan=np.inf, posinf=np.inf) for each in (error, relative)
        )
        allowed = np.nan_to_num(allowed, nan=0.0, posinf=0.0)  # an infinity must be met exactly
        wrong = error > allowed
        if wrong.any():
            worst = np.unravel_index(int((error - allowed).argmax()), want.shape)
            raise ValueError(
                f"output {index}: {int(wrong.sum())} of {want.size} elements are wrong; largest "
                f"absolute error {error.max():.3g}, largest relative error {relative.max():.3g}; "
                f"the worst, at {[int(i) for i in worst]}, is {got[worst]:.6g}, the reference "
                f"has {want[worst]:.6g}"
            )
        largest = max(largest, float(error.max()))
    return largest
