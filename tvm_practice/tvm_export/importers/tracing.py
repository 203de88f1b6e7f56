"""How PyTorch traces: nodes replaced by a function's trace, and reads of `Tensor.data`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tvm_practice.tvm_export.importers.refusals import Refused, place_now


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
    traced = traced_by(lambda *tensors: [function(*tensors)], given)
    [made] = inlined(graph, node, traced, given)
    node.replace_all_uses_with(made)


def traced_by(function: Callable[..., list[Any]], given: Sequence[Any]) -> Any:
    """The graph of a function of the values of nodes; it returns a list of tensors."""
    from torch._guards import detect_fake_mode
    from torch.fx.experimental.proxy_tensor import make_fx

    values = [each.meta["val"] for each in given]
    mode: Any = detect_fake_mode(values)
    with mode:
        return make_fx(function)(*values).graph


def copy_before(graph: Any, node: Any, nodes: Iterable[Any], known: dict[Any, Any]) -> None:
    """Copy another graph's nodes before a node that they stand for.

    Args:
        known: what stands for those nodes that they read; the copies are added.
    """
    with graph.inserting_before(node):
        for each in nodes:
            known[each] = graph.node_copy(each, known.__getitem__)
            known[each].meta["stack_trace"] = node.meta.get("stack_trace")


def inlined(graph: Any, node: Any, traced: Any, given: Sequence[Any]) -> list[Any]:
    """Copy a traced graph before a node that it stands for; the nodes of its results."""
    import torch
    from torch.utils import _pytree as pytree

    places = [each for each in traced.nodes if each.op == "placeholder"]
    known = dict(zip(places, given, strict=True))
    copy_before(graph, node, (each for each in traced.nodes if each.op == "call_function"), known)
    found: list[Any] = pytree.tree_map(
        lambda each: known.get(each, each),
        list(traced.output_node().args[0]),
        is_leaf=lambda each: isinstance(each, torch.fx.Node),
    )
    return found


def reshaped_for_views(program: Any) -> bool:
    """Let an exported program reshape where it takes a view, in place; False if it must not.

    What a view is of may lie otherwise in memory once its operators are taken apart. A program that
    writes to tensors may write to the view.
    """
    import torch

    graph = program.graph_module.graph
    called = [node for node in graph.nodes if node.op == "call_function"]
    if any(
        getattr(each.target, "_schema", None) and each.target._schema.is_mutable for each in called
    ):
        return False
    views = [each for each in called if each.target == torch.ops.aten.view.default]
    for each in views:
        each.target = torch.ops.aten.reshape.default
    return bool(views)


@contextmanager
def data_as_elements() -> Iterator[None]:
    """Inside the block, a trace heeds what a model does to `tensor.data`.

    PyTorch's tracer takes it for a constant, which it then refuses, and ignores what is assigned
    to it. Here reading gives `tensor.detach()`, the same elements, and assigning to a parameter's
    copies the elements. For another tensor, of which there may be views, `Refused` is raised.
    """
    import torch
    from torch.overrides import TorchFunctionMode

    data: Any = torch.Tensor.data
    read, write = data.__get__, data.__set__
    given: dict[int, tuple[Any, Any]] = {}  # by what was read: that, and the tensor

    class Elements(TorchFunctionMode):
        def __torch_function__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            if func == read:
                made = torch.Tensor.detach(args[0])
                given[id(made)] = made, args[0]
                return made
            if func == write:
                return self._assign(*args)
            return func(*args, **(kwargs or {}))

        def _assign(self, tensor: Any, value: Any) -> None:
            if given.get(id(value), (None, None))[1] is tensor:
                return  # `tensor.data *= 2` assigns what it has multiplied in place
            if (tensor.shape, tensor.dtype) != (value.shape, value.dtype) or not isinstance(
                tensor, torch.nn.Parameter
            ):
                raise Refused(f"a tensor is assigned to the data of another{place_now()}")
            tensor.detach().copy_(value)

    with Elements():
        yield


@contextmanager
def ordinary_parameters(module: Any) -> Iterator[None]:
    """Inside the block, copies stand for parameters that were assigned in inference mode.

    PyTorch does not export inference tensors.
    """
    import torch

    held = [
        (each, name, parameter)
        for each in module.modules()
        for name, parameter in each._parameters.items()
        if parameter is not None and parameter.is_inference()
    ]
    try:
        for each, name, parameter in held:
            each._parameters[name] = torch.nn.Parameter(parameter.clone(), requires_grad=False)
        yield
    finally:
        for each, name, parameter in held:
            each._parameters[name] = parameter
