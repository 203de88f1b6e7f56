"""A model's assertions about values, which TVM has no operators for."""

from typing import Any


def leave_out_assertions(program: Any) -> None:
    """Erase the assertions of an exported program, and what only they use, in place.

    They end a model with an error where its inputs are not what it expects, and change no result.
    """
    import torch

    aten = torch.ops.aten
    asserting = (
        aten._assert_scalar.default,
        aten._assert_async.msg,
        aten._assert_async.default,
        aten._assert_tensor_metadata.default,
        aten.sym_constrain_range.default,
        aten.sym_constrain_range_for_size.default,
    )
    graph = program.graph_module.graph
    for node in list(graph.nodes):
        if node.target in asserting:
            graph.erase_node(node)
    graph.eliminate_dead_code()
