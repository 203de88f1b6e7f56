"""The operators of an exported program taken apart once each, however often a model calls them.

`ExportedProgram.run_decompositions` traces all of a program again, which is the longest part of
many imports: 24 equal layers call each operator 24 times, and an unrolled scan thousands of times.
"""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

from tvm_practice.tvm_export.importers.converters.arguments import settings_of
from tvm_practice.tvm_export.importers.tracing import copy_before

# Composed by PyTorch of other operators, and yet new memory at each call. Others of that kind may
# return a tensor that they are given, as dropout does.
_OF_NEW_MEMORY = (
    *("aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::linear", "aten::matmul"),
    *("aten::batch_norm", "aten::layer_norm", "aten::group_norm", "aten::instance_norm"),
)

_WORTH_IT = 4  # calls for each that is taken apart: that takes one more trace than the whole


_KEPT = ("its first argument",)


class _TakenWhole(Exception):
    """The program has something that depends on more than one operator and its arguments."""


class _Call(NamedTuple):
    """A call of an operator.

    Attributes:
        node: in the graph.
        function: the operator; that without a write in place of one that writes; None where the
            value is the first argument.
        tensors: the nodes among its arguments, each once, in order.
        values: the tensors that it makes, without elements.
        key: equal for calls that are taken apart alike.
    """

    node: Any
    function: Any
    tensors: list[Any]
    values: list[Any]
    key: tuple[Any, ...]


class _Part(NamedTuple):
    """What stands for a call: nodes of another graph.

    Attributes:
        places: placeholders, one for each of the call's tensors.
        nodes: calls, in order.
        results: a node of `nodes` or of `places` for each of the call's values.
    """

    places: list[Any]
    nodes: list[Any]
    results: list[Any]


def taken_apart_once(program: Any, take_apart: Callable[[Any], Any]) -> bool:
    """Take a program's operators apart, in place, as `take_apart` would the whole.

    Each operator is taken apart alone, for each set of arguments, extents and strides that it is
    called with.

    Args:
        program: an ExportedProgram.
        take_apart: `run_decompositions` with a table; it returns another ExportedProgram.

    Returns:
        False, with the program as it was, if it writes to tensors that are read elsewhere, has open
        extents, branches or complex numbers, if a decomposition makes constants, or if most calls
        are unlike any other.
    """
    graph = program.graph_module.graph
    try:
        _require_results_alone(program.graph_signature)
        calls = list(_calls(graph))
        distinct = {each.key: each for each in calls if each.key != _KEPT}
        if _WORTH_IT * len(distinct) > len(calls):
            return False
        parts = _taken_apart(distinct, take_apart) | {_KEPT: _Part(["x"], [], ["x"])}
    except _TakenWhole:
        return False
    instead: dict[Any, Any] = {}
    for each in calls:
        _put_in(graph, each, parts[each.key], instead)
    _name_results(program)
    return True


def _require_results_alone(signature: Any) -> None:
    from torch.export.graph_signature import InputKind, OutputKind

    given = {InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR, InputKind.USER_INPUT}
    if signature.backward_signature or not (
        all(each.kind in given for each in signature.input_specs)
        and all(each.kind == OutputKind.USER_OUTPUT for each in signature.output_specs)
    ):
        raise _TakenWhole


def _calls(graph: Any) -> Iterator[_Call]:
    """The calls of operators; not those of getitem, nor assertions, which nothing uses."""
    import torch

    written: set[Any] = set()  # nodes whose operator writes to its own result alone
    for node in graph.nodes:
        if node.op in ("placeholder", "output") or _is_part(node):
            continue
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            raise _TakenWhole
        if not node.target._schema.returns and not node.users:
            continue
        function = node.target
        tensors = list(node.all_input_nodes)
        if _writes_nothing(node):
            yield _Call(node, None, tensors, _values(node), _KEPT)
            continue
        if function._schema.is_mutable:
            if not _is_alone(node, written):
                raise _TakenWhole
            written.add(node)
            function = _without_write(function)
        key = (
            function,
            *(_described(each) for each in tensors),
            _text_of((node.args, node.kwargs), tensors),
        )
        yield _Call(node, function, tensors, _values(node), key)


def _is_alone(node: Any, written: set[Any]) -> bool:
    """Whether nothing else reads the memory that a call writes to."""
    source: Any = settings_of(node).get("self")
    if source not in node.all_input_nodes or list(source.users) != [node]:
        return False
    return source in written or _makes_memory(source)


def _writes_nothing(node: Any) -> bool:
    """Whether a call does nothing to its argument, as dropout outside of training."""
    name = str(node.target._schema.name)
    return name == "aten::dropout_" and not settings_of(node)["train"]


def _without_write(function: Any) -> Any:
    """`add.Tensor` of `add_.Tensor`."""
    import torch

    schema = function._schema
    space, _, name = schema.name.partition("::")
    if space != "aten" or not name.endswith("_"):
        raise _TakenWhole
    form = schema.overload_name or "default"
    found = getattr(getattr(torch.ops.aten, name[:-1], None), form, None)
    if found is None:
        raise _TakenWhole
    told = [[each.name for each in one.arguments[1:]] for one in (schema, found._schema)]
    if told[0] != told[1] or found._schema.is_mutable:
        raise _TakenWhole
    return found


def _makes_memory(node: Any) -> bool:
    """Whether a node's value shares its memory with no other's."""
    import torch

    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return False
    schema = node.target._schema
    composed = torch._C._dispatch_has_kernel_for_dispatch_key(
        node.target.name(),  # type: ignore[no-untyped-call]
        torch._C.DispatchKey.CompositeImplicitAutograd,
    )
    return not (
        any(each.alias_info for each in schema.returns)
        or (composed and schema.name not in _OF_NEW_MEMORY)
    )


def _is_part(node: Any) -> bool:
    """Whether a node takes one tensor of a value of several."""
    return node.target is operator.getitem


def _values(node: Any) -> list[Any]:
    """The tensors of a call's value: itself, or some of which each is read by getitem."""
    import torch

    value = node.meta.get("val")
    if isinstance(value, torch.Tensor):
        return [value]
    if not isinstance(value, (list, tuple)) or not (
        all(isinstance(each, torch.Tensor) for each in value)
        and all(_is_part(each) for each in node.users)
    ):
        raise _TakenWhole
    return list(value)


def _value(node: Any) -> Any:
    """The fake tensor that a node's value was when the model was traced."""
    import torch

    value = node.meta.get("val")
    if (
        not isinstance(value, torch.Tensor)
        or value.layout != torch.strided
        or value.is_complex()
        or not all(type(each) is int for each in (*value.shape, *value.stride()))
    ):
        raise _TakenWhole
    return value


def _described(node: Any) -> tuple[Any, ...]:
    """What a decomposition may look at; the trace takes gradients of parameters alone."""
    value = _value(node)
    trained = node.op == "placeholder" and value.requires_grad
    return tuple(value.shape), value.stride(), value.dtype, value.device, trained


def _text_of(given: Any, tensors: Sequence[Any]) -> str:
    """Arguments as a text in which tensors are numbers; 1, 1.0 and True differ."""
    import torch
    from torch.utils import _pytree as pytree

    return repr(
        pytree.tree_map_only(torch.fx.Node, lambda each: f"tensor {tensors.index(each)}", given)
    )


def _taken_apart(
    distinct: Mapping[tuple[Any, ...], _Call], take_apart: Callable[[Any], Any]
) -> dict[tuple[Any, ...], _Part]:
    """What stands for each of these calls: all in one program, which is traced."""
    import torch

    graph, example = _side_by_side(list(distinct.values()))
    module = torch.fx.GraphModule(torch.nn.Module(), graph)
    try:
        program = take_apart(torch.export.export(module, tuple(example)))
    except Exception as error:  # a rule's refusal, or PyTorch's: the whole tells it, with its place
        raise _TakenWhole from error
    _require_results_alone(program.graph_signature)
    if len(program.graph_signature.user_inputs) != len(program.graph_signature.input_specs):
        raise _TakenWhole  # a decomposition has constants
    places = iter(program.graph.find_nodes(op="placeholder"))
    results = iter(program.graph.output_node().args[0])
    parts = {}
    for key, call in distinct.items():
        own_places = [next(places) for _ in call.tensors]
        own_results = [next(results) for _ in call.values]
        for made, wanted in zip(own_results, call.values, strict=True):
            value = made.meta["val"]
            if (value.dtype, value.shape) != (wanted.dtype, wanted.shape):
                raise _TakenWhole
        parts[key] = _Part(own_places, _between(own_places, own_results), own_results)
    return parts


def _side_by_side(calls: Sequence[_Call]) -> tuple[Any, list[Any]]:
    """A graph that calls them all, of tensors of their own; such tensors."""
    import torch
    from torch._guards import detect_fake_mode

    graph = torch.fx.Graph()
    places = [
        [graph.placeholder(f"x{at}_{each}") for each in range(len(call.tensors))]
        for at, call in enumerate(calls)
    ]
    results: list[Any] = []
    for call, own in zip(calls, places, strict=True):
        known = dict(zip(call.tensors, own, strict=True))
        args, kwargs = (
            torch.fx.node.map_arg(given, known.__getitem__)
            for given in (call.node.args, call.node.kwargs)
        )
        made = graph.call_function(call.function, args, kwargs)
        if isinstance(call.node.meta["val"], torch.Tensor):
            results.append(made)
            continue
        counted = range(len(call.values))
        results += [graph.call_function(operator.getitem, (made, each)) for each in counted]
    graph.output(tuple(results))
    given = [tensor for call in calls for tensor in call.tensors]
    mode: Any = detect_fake_mode([_value(each) for each in given]) or nullcontext()
    with mode:
        return graph, [_as_described(*_described(each)) for each in given]


def _as_described(shape: Any, stride: Any, dtype: Any, device: Any, trained: bool) -> Any:
    import torch

    tensor = torch.empty_strided(shape, stride, dtype=dtype, device=device)
    return tensor.requires_grad_(trained)


def _between(places: Sequence[Any], results: Sequence[Any]) -> list[Any]:
    """The nodes that results need, in order, without the placeholders of their call."""
    found: dict[Any, None] = {}
    wanted = list(results)
    while wanted:
        node = wanted.pop()
        if node in found or node in places:
            continue
        if node.op != "call_function":
            raise _TakenWhole
        found[node] = None
        wanted.extend(node.all_input_nodes)
    return sorted(found)


def _put_in(graph: Any, call: _Call, part: _Part, instead: dict[Any, Any]) -> None:
    """Let copies of a part's nodes stand for a call.

    Args:
        instead: by node that is gone, the one that stands for it; those of this call are added.
    """
    given = [instead.get(each, each) for each in call.tensors]
    known: dict[Any, Any] = dict(zip(part.places, given, strict=True))
    copy_before(graph, call.node, part.nodes, known)
    gone = {user: part.results[user.args[1]] for user in call.node.users if _is_part(user)}
    for node, result in (gone or {call.node: part.results[0]}).items():
        instead[node] = known[result]
        node.replace_all_uses_with(known[result])
        graph.erase_node(node)
    if gone:
        graph.erase_node(call.node)


def _name_results(program: Any) -> None:
    """The signature names the nodes that are the program's results now."""
    results = program.graph.output_node().args[0]
    for spec, node in zip(program.graph_signature.output_specs, results, strict=True):
        if hasattr(node, "name"):
            spec.arg.name = node.name
