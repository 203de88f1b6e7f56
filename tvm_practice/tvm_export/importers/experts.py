"""Rows split among experts by sizes that are known at run time only, without the split.

A mixture of experts may sort its rows by expert, split them, multiply each part with its expert's
matrix, and join the products. TVM's extents are fixed: here every row is multiplied with every
matrix, and its own expert's product is kept.
"""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm_practice.tvm_export.importers.tracing import replace_by_trace


@dataclass(frozen=True)
class _Split:
    """Nodes of an exported program: linear layers on the parts of a split, joined again.

    Attributes:
        rows: what is split, along its first axis.
        sizes: a scalar tensor for each part.
        weights, biases: of each part's layer; the biases may be None.
    """

    rows: Any
    sizes: Sequence[Any]
    weights: Sequence[Any]
    biases: Sequence[Any]


def keep_rows_together(program: Any) -> None:
    """Replace such splits of an exported program, in place; other splits are left."""
    import torch

    graph = program.graph_module.graph
    for node in list(graph.nodes):
        if node.target is torch.ops.aten.cat.default and (found := _split(node)) is not None:
            given = [found.rows, *found.sizes, *found.weights]
            given += [each for each in found.biases if each is not None]
            replace_by_trace(graph, node, _products(found), given)
            _erase_unused(graph, node)


def _split(joined: Any) -> _Split | None:
    """The split whose parts a concatenation joins; None if it is another one."""
    import torch

    aten = torch.ops.aten
    parts, axis = (*joined.args, 0)[:2]
    if axis != 0 or any(each.target is not aten.linear.default for each in parts):
        return None
    taken = [each.args[0] for each in parts]
    if any(each.target is not operator.getitem for each in taken):
        return None
    [split, *others] = dict.fromkeys(each.args[0] for each in taken)
    if others or split.target not in (aten.split_with_sizes.default, aten.split.sizes):
        return None
    rows, sizes, along = (*split.args, 0)[:3]
    known = not any(isinstance(each, torch.fx.Node) for each in sizes)
    if known or along != 0 or [each.args[1] for each in taken] != list(range(len(sizes))):
        return None
    reading = (aten.item.default, aten._local_scalar_dense.default)
    if any(getattr(each, "target", None) not in reading for each in sizes):
        return None
    return _Split(
        rows=rows,
        sizes=[each.args[0] for each in sizes],
        weights=[each.args[1] for each in parts],
        biases=[each.args[2] if len(each.args) > 2 else None for each in parts],
    )


def _products(split: _Split) -> Any:
    """What replaces a split, as a function of its rows, sizes, weights and biases."""
    import torch

    count = len(split.sizes)

    def computed(rows: Any, *others: Any) -> Any:
        sizes, weights = others[:count], others[count : 2 * count]
        given = iter(others[2 * count :])
        biases = [None if each is None else next(given) for each in split.biases]
        ends = torch.stack(sizes).cumsum(0)
        number = torch.arange(rows.shape[0], device=rows.device)
        expert = (ends.unsqueeze(0) <= number.unsqueeze(1)).sum(1, keepdim=True)
        made = None
        for index, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            product = torch.nn.functional.linear(rows, weight, bias)
            made = product if made is None else torch.where(expert == index, product, made)
        return made

    return computed


def _erase_unused(graph: Any, node: Any) -> None:
    """Erase a node, and those of its inputs that nothing else uses; the model's own stay."""
    if node.users or node.op != "call_function":
        return
    before = node.all_input_nodes
    graph.erase_node(node)
    for each in before:
        _erase_unused(graph, each)
