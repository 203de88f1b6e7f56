"""Results without elements, and results of tensors without any, replaced by constant tensors."""

from typing import Any


def make_empty_results(program: Any) -> None:
    """Replace such results in a functional exported program, in place.

    Nothing is to be computed for a tensor without elements, and TVM divides by its extents. What is
    made of such tensors alone, as a sum over an axis of extent 0, is the same each time: PyTorch
    computes it here.
    """
    import torch

    graph = program.graph_module.graph
    for node in list(graph.nodes):
        value = node.meta.get("val")
        if node.op != "call_function" or not _is_known(value):
            continue
        filling = 0 if not value.numel() else _filling(node)
        if filling is None:
            continue
        with graph.inserting_before(node):
            made = graph.call_function(
                torch.ops.aten.full.default, (list(value.shape), filling), {"dtype": value.dtype}
            )
        made.meta = dict(node.meta)
        node.replace_all_uses_with(made)
    graph.eliminate_dead_code()


def _is_known(value: Any) -> bool:
    """Whether a value is a tensor of known extents that TVM has a type for."""
    import torch

    if not isinstance(value, torch.Tensor) or value.is_complex():
        return False
    return all(isinstance(each, int) for each in value.shape)


def _filling(node: Any) -> Any:
    """The one number that an operator makes of tensors without elements; None: it is another."""
    import torch
    from torch.utils import _pytree as pytree

    read = [each.meta.get("val") for each in node.all_input_nodes]
    if not read or not all(_is_known(each) and not each.numel() for each in read):
        return None
    if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()):
        return None

    def empty(each: Any) -> Any:
        if not isinstance(each, torch.fx.Node):
            return each
        return torch.empty(each.meta["val"].shape, dtype=each.meta["val"].dtype)

    is_node = {"is_leaf": lambda each: isinstance(each, torch.fx.Node)}
    args, kwargs = pytree.tree_map(empty, (node.args, node.kwargs), **is_node)
    made = node.target(*args, **kwargs).reshape(-1)
    same = (made == made[0]) | ((made != made) & (made[0] != made[0]))
    return made[0].item() if bool(same.all()) else None
