"""Complex numbers as pairs of real ones: TVM has no complex type."""

import operator
from collections.abc import Callable, Mapping
from typing import Any

from tvm_practice.tvm_export.importers.decompositions import pairwise
from tvm_practice.tvm_export.importers.refusals import Refused, place_of
from tvm_practice.tvm_export.importers.tracing import inlined
from tvm_practice.tvm_export.loading import describe

Rule = Callable[..., Any]


def has_complex(program: Any) -> bool:
    """Whether any value of an exported program is complex."""
    return any(_is_complex(each) for node in program.graph.nodes for each in _values(node))


def leaving_complex(table: Mapping[Any, Rule]) -> dict[Any, Rule]:
    """Decompositions that leave the operators on complex numbers, for `in_pairs`."""
    import torch

    aten = torch.ops.aten
    making = (aten.polar.default, aten.complex.default)
    return {
        each: rule if _only_names_others(each) else _of_reals_alone(rule)
        for each, rule in table.items()
        if each not in making
    }


def _only_names_others(operator: Any) -> bool:
    """Whether PyTorch itself takes an operator apart, whatever the types of its arguments."""
    import torch

    implicit = "CompositeImplicitAutograd"
    return bool(torch._C._dispatch_has_kernel_for_dispatch_key(operator.name(), implicit))


def _of_reals_alone(rule: Rule) -> Rule:
    """`rule` for real numbers; complex ones are left."""

    def checked(*args: Any, **kwargs: Any) -> Any:
        from torch.utils._pytree import tree_leaves

        if any(_is_complex(each) for each in tree_leaves((args, kwargs))):
            return NotImplemented
        return rule(*args, **kwargs)

    return checked


def in_pairs(program: Any) -> None:
    """Replace an exported program's complex numbers by PyTorch's ComplexTensors, traced.

    Args:
        program: without mutations, its operators on complex numbers PyTorch's primitives; it is
            changed in place. Complex weights and constants become real ones of a further axis.

    Raises:
        Refused: for complex inputs and outputs, and for operators that have no rule.
    """
    import torch
    from torch._guards import detect_fake_mode

    graph = program.graph_module.graph
    mode: Any = detect_fake_mode([value for node in graph.nodes for value in _values(node)])
    check = torch.ops.aten._assert_tensor_metadata.default
    pairs: dict[Any, Any] = {}
    for node in list(graph.nodes):
        if node.op == "placeholder" and any(map(_is_complex, _values(node))):
            pairs[node] = _halves(program, node)
        elif node.op == "output" and any(each in pairs for each in node.all_input_nodes):
            raise Refused("an output of the model is complex; torch.view_as_real gives its pairs")
        elif node.op == "call_function" and node.target is operator.getitem:
            if node.args[0] in pairs:
                pairs[node] = pairs[node.args[0]][node.args[1]]
        elif node.target is check and node.args[0] in pairs:
            graph.erase_node(node)
        elif node.op == "call_function" and (
            any(map(_is_complex, _values(node))) or any(i in pairs for i in node.all_input_nodes)
        ):
            with mode:
                _replace(graph, node, pairs)
    for node in reversed([each for each in graph.nodes if each in pairs]):
        if node.op != "placeholder":
            graph.erase_node(node)
    graph.eliminate_dead_code()


def _halves(program: Any, node: Any) -> tuple[Any, Any]:
    """The two parts of a complex weight or constant, which becomes real."""
    import torch

    spec = next(e for e in program.graph_signature.input_specs if e.arg.name == node.name)
    stored = next(
        (each for each in (program.state_dict, program.constants) if spec.target in each), None
    )
    if stored is None:
        raise Refused("an input of the model is complex; torch.view_as_complex can make it of two")
    given = stored[spec.target]
    real = torch.view_as_real(given.detach().resolve_conj()).contiguous()
    is_parameter = isinstance(given, torch.nn.Parameter)
    stored[spec.target] = torch.nn.Parameter(real, requires_grad=False) if is_parameter else real
    value = node.meta["val"]
    node.meta["val"] = value.new_empty((*value.shape, 2), dtype=value.real.dtype)
    node.meta.pop("tensor_meta", None)
    last = [each for each in node.graph.nodes if each.op == "placeholder"][-1]
    with node.graph.inserting_after(last):
        parts = [node.graph.call_function(torch.ops.aten.select.int, (node, -1, i)) for i in (1, 0)]
    for part in parts:
        part.meta["val"] = node.meta["val"].select(-1, 0)
    return parts[1], parts[0]


def _replace(graph: Any, node: Any, pairs: dict[Any, Any]) -> None:
    """Put what a node does to pairs before it; its own pair, if it is complex, into `pairs`."""
    from torch._subclasses.complex_tensor import ComplexTensor
    from torch.fx.experimental.proxy_tensor import make_fx
    from torch.utils import _pytree as pytree

    leaves, shape = pytree.tree_flatten((node.args, node.kwargs), is_leaf=_is_node)
    given = [part for each in leaves if _is_node(each) for part in pairs.get(each, (each,))]
    made: list[Any] = []  # the result, as the trace finds it

    def computed(*values: Any) -> Any:
        remaining = iter(values)
        filled = [
            each
            if not _is_node(each)
            else ComplexTensor(next(remaining), next(remaining))
            if each in pairs
            else next(remaining)
            for each in leaves
        ]
        args, kwargs = pytree.tree_unflatten(filled, shape)
        made.append(pairwise.call(node.target, args, kwargs))
        found = made[-1] if isinstance(made[-1], (list, tuple)) else [made[-1]]
        return [(each.re, each.im) if isinstance(each, ComplexTensor) else each for each in found]

    try:
        traced = make_fx(computed)(*(each.meta["val"] for each in given)).graph
    except Exception as error:
        raise Refused(f"{_told(node)} of complex numbers: {describe(error)}") from error
    if any(each.op == "get_attr" or any(map(_is_complex, _values(each))) for each in traced.nodes):
        raise Refused(f"{_told(node)} of complex numbers")
    results = inlined(graph, node, traced, given)
    if not isinstance(made[-1], (list, tuple)):
        [results] = results
    if any(map(_is_complex, _values(node))):
        pairs[node] = results
    else:
        node.replace_all_uses_with(results)
        graph.erase_node(node)


def _told(node: Any) -> str:
    return f"{getattr(node.target, '__name__', node.target)}{place_of(node)}"


def _values(node: Any) -> list[Any]:
    value = node.meta.get("val")
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _is_node(value: Any) -> bool:
    import torch

    return isinstance(value, torch.fx.Node)


def _is_complex(value: Any) -> bool:
    import torch

    return isinstance(value, complex) or (isinstance(value, torch.Tensor) and value.is_complex())
