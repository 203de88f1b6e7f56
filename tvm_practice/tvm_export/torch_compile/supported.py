"""Which nodes of a functional ATen graph go to TVM."""

import functools
import operator
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from torch import fx
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.fx.passes.operator_support import OperatorSupportBase
from torch.utils import _pytree as pytree

_DTYPES = {
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.bool),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8),
}
# A part of fewer operators than this is not worth the way out of PyTorch and back, unless one of
# them is a product or a convolution, or there is nothing else in the graph.
_FEWEST = 4
_HEAVY = {"mm", "addmm", "bmm", "baddbmm", "convolution", "linear", "matmul"}


class Support(OperatorSupportBase):
    """Says whether the exporter may be asked to take a node.

    Args:
        graph: whose nodes they are.
        refused: names of nodes that it was asked for and did not take.
    """

    def __init__(self, graph: fx.GraphModule, refused: Collection[str] = ()):
        self._refused = refused
        # It reads the memory under a tensor, gaps included, which only PyTorch's views have.
        as_strided = torch.ops.aten.as_strided.default
        self._gaps_matter = bool(graph.graph.find_nodes(op="call_function", target=as_strided))

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        """Whether its operator is known, or one PyTorch takes apart, and its tensors are plain."""
        if node.op != "call_function" or node.name in self._refused:
            return False
        if node.target is operator.getitem:
            source = node.args[0]
            return isinstance(source, fx.Node) and self.is_node_supported(submodules, source)
        if self._gaps_matter and not _computes(node):
            return False
        return _is_known(node.target) and "val" in node.meta and all(map(_is_plain, _values(node)))


def is_worthwhile(nodes: Iterable[fx.Node]) -> bool:
    """Whether a part of these nodes is worth building where PyTorch runs the rest."""
    names = [
        str(each.target.overloadpacket.__name__)
        for each in nodes
        if isinstance(each.target, torch._ops.OpOverload) and _computes(each)
    ]
    return len(names) >= _FEWEST or not _HEAVY.isdisjoint(names)


def computes(nodes: Iterable[fx.Node]) -> bool:
    """Whether any of the nodes does more than look at memory in another way."""
    return any(map(_computes, nodes))


def trim(nodes: dict[fx.Node, Any]) -> None:
    """Take views that none of the other nodes looks at out of `nodes`: PyTorch makes no copy."""
    for node in reversed(list(nodes)):
        looks = isinstance(node.target, torch._ops.OpOverload) and node.target.is_view
        if looks and not any(user in nodes for user in node.users):
            del nodes[node]


def _computes(node: fx.Node) -> bool:
    return isinstance(node.target, torch._ops.OpOverload) and not node.target.is_view


def _values(node: fx.Node) -> list[Any]:
    """What a node takes and gives, as it was traced; of a tuple, the members that are used."""
    given = [each.meta.get("val") for each in node.all_input_nodes]
    made = node.meta["val"]
    if isinstance(made, tuple | list):
        made = [each.meta["val"] for each in node.users if each.target is operator.getitem]
    return pytree.tree_leaves([*given, made])


def _is_plain(value: Any) -> bool:
    """Whether a value is no tensor, or one that TVM can be handed without a copy."""
    if isinstance(value, torch.Tensor | torch.SymInt) and free_unbacked_symbols(value):
        return False
    if not isinstance(value, torch.Tensor):
        return not isinstance(value, torch.SymFloat | torch.SymBool)
    return (
        value.layout == torch.strided
        and value.device.type == "cpu"
        and value.dtype in _DTYPES
        and not any(isinstance(extent, int) and extent == 0 for extent in value.shape)
    )


def _is_known(target: Any) -> bool:
    if not isinstance(target, torch._ops.OpOverload):
        return False
    if torch.Tag.nondeterministic_seeded in target.tags:
        return False  # draws numbers, and PyTorch's own are wanted
    if any(isinstance(each.type, torch.IntType) for each in target._schema.returns):
        return False
    return str(target.__name__) in _converted() or target in _taken_apart()


@functools.cache
def _converted() -> frozenset[str]:
    """The operators that there is a converter for, TVM's or the exporter's own."""
    from tvm.relax.frontend.torch.exported_program_translator import ExportedProgramImporter

    from tvm_practice.tvm_export.importers.converters.own_relax import own_converters

    return frozenset(ExportedProgramImporter().convert_map) | frozenset(own_converters())


@functools.cache
def _taken_apart() -> frozenset[Any]:
    """The operators that the importer has PyTorch take apart."""
    from tvm_practice.tvm_export.importers.decompositions import decompositions

    return frozenset(torch.export.default_decompositions()) | frozenset(
        decompositions(_converted())
    )
