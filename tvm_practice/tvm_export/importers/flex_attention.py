"""PyTorch's flex_attention as products and a softmax.

An exported program keeps it as one operator, whose functions of a score and of its indices are
graphs of their own. Here its definition takes its place: all scores, each function applied to all
of them at once, and a softmax. The blocks of its mask are hints for kernels, and are left out.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm_practice.tvm_export.importers.tracing import inlined, traced_by


def expand_flex_attention(program: Any) -> None:
    """Replace every flex_attention of an exported program, in place."""
    import torch

    graph_module = program.graph_module
    for node in list(graph_module.graph.nodes):
        if node.target is torch.ops.higher_order.flex_attention:
            _expand(graph_module, node)


def _expand(graph_module: Any, node: Any) -> None:
    import torch
    from torch.utils import _pytree as pytree

    query, key, value, score, block_mask, scale, _, buffers, mask_buffers = node.args
    functions = [getattr(graph_module, each.target) for each in (score, block_mask[-1])]
    operands = (query, key, value, scale, buffers, mask_buffers)
    leaves, tree = pytree.tree_flatten(operands)
    given = [each for each in leaves if isinstance(each, torch.fx.Node)]

    def computed(*values: Any) -> list[Any]:
        known = dict(zip(given, values, strict=True))
        filled = [known.get(each, each) for each in leaves]
        return _attention(*functions, *pytree.tree_unflatten(filled, tree))

    traced = traced_by(computed, given)
    for each in traced.nodes:  # a number that was cast for `vmap`, which takes it for a tensor
        if each.target is torch.ops.aten._to_copy.default and not each.all_input_nodes:
            each.target, each.args = torch.ops.aten.full.default, ([], *each.args)
    made = inlined(graph_module.graph, node, traced, given)
    for user in list(node.users):
        user.replace_all_uses_with(made[user.args[1]])
        graph_module.graph.erase_node(user)
    graph_module.graph.erase_node(node)


def _attention(
    score_mod: Callable[..., Any],
    mask_mod: Callable[..., Any],
    query: Any,
    key: Any,
    value: Any,
    scale: float,
    buffers: Sequence[Any],
    mask_buffers: Sequence[Any],
) -> list[Any]:
    """The values' sums, and of each row the logarithm to base 2 of its sum, and its maximum.

    Args:
        score_mod: from a score and its indices of batch, head, row and token to another score.
        mask_mod: from the indices to whether the score counts.
        query: [batch, heads, rows, size].
        key, value: [batch or 1, heads or a divisor, tokens, size]; value of a width of its own.
        scale: of the scores.
        buffers, mask_buffers: further arguments of the functions.
    """
    import torch

    repeats = query.shape[1] // key.shape[1]
    key, value = (each.repeat_interleave(repeats, 1) for each in (key, value))
    wide = torch.promote_types(query.dtype, torch.float32)
    scores = (query.to(wide) @ key.to(wide).mT) * scale
    indices = [torch.arange(each, device=query.device) for each in scores.shape]
    counts = _for_all(mask_mod, False, len(mask_buffers))(*indices, *mask_buffers)
    scores = _for_all(score_mod, True, len(buffers))(scores, *indices, *buffers)
    scores = scores.to(wide).masked_fill(~counts, -math.inf)
    largest = scores.amax(-1)
    weights = torch._safe_softmax(scores, -1)
    # Of minus infinities alone it is minus infinity, as of no numbers.
    total = torch.logsumexp(scores, -1)
    return [weights.to(query.dtype) @ value, total / math.log(2), largest / math.log(2)]


def _for_all(function: Callable[..., Any], of_score: bool, more: int) -> Callable[..., Any]:
    """A function of single elements as one of tensors.

    Args:
        function: of a score, if it is of one, of four indices, and of `more` whole tensors.
        of_score: whether its first argument is a score.
        more: how many tensors it takes besides.
    """
    import torch

    for axis in reversed(range(4)):
        indices = [0 if each == axis else None for each in range(4)]
        axes = ([0] if of_score else []) + indices + [None] * more
        function = torch.vmap(function, in_dims=tuple(axes))
    return function
