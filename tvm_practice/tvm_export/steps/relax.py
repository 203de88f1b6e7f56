"""Relax: import, optimize, build."""

from typing import Any


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

    In this order: decompose batch normalization, replace the variables that then only rename a
    value (canonicalize bindings), fold constants, legalize (each operator becomes a PrimFunc),
    annotate each PrimFunc with its pattern, fold constants again, group the calls to fuse, and
    merge each group into one PrimFunc.

    Args:
        mod: the module from `import_relax`; it is not changed.

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
    """Current TVM: compile a Relax module, in the caller's pass context.

    Args:
        mod: an IRModule as `optimize_relax` leaves it, its PrimFuncs scheduled or not; it is not
            changed.
        target: a tvm.target.Target.

    Returns:
        The tvm.runtime.Executable of tvm.compile, which a relax.VirtualMachine runs.
    """
    import tvm

    return tvm.compile(mod, target)
