"""Nodes of an exported program, replaced by the trace of a function of their inputs."""

from collections.abc import Callable, Sequence
from typing import Any


def replace_by_trace(
    graph: Any, node: Any, function: Callable[..., Any], given: Sequence[Any]
) -> None:
    """Let a node's users use what a function computes instead; the node stays, without a user.

    Args:
        graph: of an exported program.
        node: in it, of one tensor.
        function: of the values of `given`; it returns a tensor.
        given: nodes before it.
    """
    from torch._guards import detect_fake_mode
    from torch.fx.experimental.proxy_tensor import make_fx

    values = [each.meta["val"] for each in given]
    mode: Any = detect_fake_mode(values)
    with mode:
        traced = make_fx(lambda *tensors: [function(*tensors)])(*values).graph
    [made] = inlined(graph, node, traced, given)
    node.replace_all_uses_with(made)


def inlined(graph: Any, node: Any, traced: Any, given: Sequence[Any]) -> list[Any]:
    """Copy a traced graph before a node that it stands for; the nodes of its results."""
    import torch
    from torch.utils import _pytree as pytree

    places = [each for each in traced.nodes if each.op == "placeholder"]
    known = dict(zip(places, given, strict=True))
    with graph.inserting_before(node):
        for each in traced.nodes:
            if each.op == "call_function":
                known[each] = graph.node_copy(each, known.__getitem__)
                known[each].meta["stack_trace"] = node.meta.get("stack_trace")
    found: list[Any] = pytree.tree_map(
        lambda each: known.get(each, each),
        list(traced.output_node().args[0]),
        is_leaf=lambda each: isinstance(each, torch.fx.Node),
    )
    return found
