"""Repetitions whose number PyTorch knew when it exported the model, told to the operator."""

from typing import Any


def keep_known_counts(program: Any) -> None:
    """Give repetitions in an exported program the size of their result, in place.

    PyTorch computes that from constant repeats when it exports the model. When it takes the program
    apart, it no longer knows their values.
    """
    import torch

    aten = torch.ops.aten
    for node in program.graph_module.graph.nodes:
        if node.kwargs.get("output_size") is not None:
            continue
        if node.target is aten.repeat_interleave.Tensor:
            size = node.meta["val"].shape[0]
        elif node.target is aten.repeat_interleave.self_Tensor:
            axis = node.args[2] if len(node.args) > 2 else node.kwargs.get("dim")
            size = node.meta["val"].shape[0 if axis is None else axis]
        else:
            continue
        if isinstance(size, int):
            node.kwargs = {**node.kwargs, "output_size": size}
