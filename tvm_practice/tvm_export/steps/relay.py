"""Relay: import, optimize, build."""

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
            ("aten::relu"); the custom_convert_map of `from_pytorch`.

    Returns:
        (mod, params): the IRModule, whose function main takes the inputs and then the weights,
        and the weights by name.
    """
    import torch
    from tvm import relay

    # Without types: the trace has them.
    inputs = [(f"input_{position}", tuple(each.shape)) for position, each in enumerate(example)]
    with torch.no_grad():
        # No second run to check the trace: verify() compares with PyTorch.
        traced = torch.jit.trace(  # type: ignore[no-untyped-call]
            model, example, check_trace=False, strict=False
        )
    mod, params = relay.frontend.from_pytorch(traced, inputs, custom_convert_map=converters)
    return mod, params


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
    import tvm
    from tvm import relay

    bound = tvm.IRModule(mod.functions, mod.type_definitions)
    bound["main"] = relay.build_module.bind_params_by_name(mod["main"], params)
    passes = tvm.transform.Sequential(
        [
            relay.transform.SimplifyInference(),
            relay.transform.FoldConstant(),
            relay.transform.FoldScaleAxis(),
            relay.transform.CanonicalizeOps(),  # makes calls that reshape the biases
            relay.transform.FoldConstant(),
            relay.transform.EliminateCommonSubexpr(),
        ]
    )
    # A Sequential silently skips the passes above the level of the pass context (default 2).
    with tvm.transform.PassContext(opt_level=3):
        return passes(bound)


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
    import tvm
    from tvm import relay

    with tvm.transform.PassContext(opt_level=3, config=config):
        return relay.build(mod, target=target, params=params)
