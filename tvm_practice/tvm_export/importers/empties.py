"""Operators whose results have no elements, replaced by tensors of these shapes."""

from typing import Any


def make_empty_results(program: Any) -> None:
    """Replace results without elements in a functional exported program, in place.

    Nothing is to be computed for them, and TVM divides by their extents.
    """
    import torch

    graph = program.graph_module.graph
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op != "call_function" or not _is_empty(value):
            continue
        with graph.inserting_before(node):
            made = graph.call_function(
                torch.ops.aten.full.default, (list(value.shape), 0), {"dtype": value.dtype}
            )
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
    graph.eliminate_dead_code()
    program.graph_module.recompile()


def _is_empty(value: Any) -> bool:
    """Whether a value is a tensor of known extents, one of them 0, that TVM has a type for."""
    import torch

    if not isinstance(value, torch.Tensor) or value.is_complex():
        return False
    return all(isinstance(each, int) for each in value.shape) and 0 in value.shape
