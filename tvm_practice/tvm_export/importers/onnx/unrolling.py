"""Branches that are known beforehand, and loops of a known length, as plain nodes."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.onnx.graphs import (
    STANDARD,
    add_constant,
    attributes,
    constants,
    renamed_nodes,
    static_shape,
    tensor_types,
)

_MOST_NODES = 4096  # that a loop may become


def unroll(graph: Any, version: int) -> bool:
    """Replace the branches and loops of a graph that can be, in place; whether any was.

    Args:
        graph: a GraphProto.
        version: the opset that its nodes are written in.
    """
    unrolled = {"If": _branch, "Loop": _loop, "Scan": _scan}
    found = [
        each for each in graph.node if each.domain in STANDARD and each.op_type in unrolled
    ]  # fmt: skip
    if not found:
        return False
    known = constants(graph)
    nodes: list[Any] = []
    changed = False
    for node in graph.node:
        made = unrolled[node.op_type](node, graph, known, version) if node in found else None
        changed |= made is not None
        nodes.extend([node] if made is None else made)
    if changed:
        del graph.node[:]
        graph.node.extend(nodes)
    return changed


def _branch(
    node: Any, graph: Any, known: Mapping[str, np.ndarray], version: int
) -> list[Any] | None:
    if node.input[0] not in known:
        return None
    taken = attributes(node)["then_branch" if known[node.input[0]].item() else "else_branch"]
    nodes, outputs = _spliced(taken, {}, f"{node.output[0]}/", graph)
    return nodes + [_node("Identity", [each], [to]) for each, to in _pairs(outputs, node.output)]


def _loop(node: Any, graph: Any, known: Mapping[str, np.ndarray], version: int) -> list[Any] | None:
    body = attributes(node)["body"]
    count, condition = (*node.input, "", "")[:2]
    if count not in known or not (condition == "" or known.get(condition, np.array(False)).item()):
        return None
    times = max(int(known[count].item()), 0)
    if not 0 < times * len(body.node) <= _MOST_NODES or not _goes_on(body):
        return None
    carried = list(node.input[2:])
    scanned: list[list[str]] = [[] for _ in body.output[1 + len(carried) :]]
    nodes: list[Any] = []
    for step in range(times):
        prefix = f"{node.output[0]}/{step}/"
        add_constant(graph, f"{prefix}step", np.array(step, np.int64))
        add_constant(graph, f"{prefix}condition", np.array(True))
        given = [f"{prefix}step", f"{prefix}condition", *carried]
        names = dict(zip([each.name for each in body.input], given, strict=True))
        made, outputs = _spliced(body, names, prefix, graph)
        nodes += made
        carried = outputs[1 : 1 + len(carried)]
        for each, rows in zip(outputs[1 + len(carried) :], scanned, strict=True):
            rows.append(each)
    ends = node.output[: len(carried)]
    nodes += [_node("Identity", [each], [to]) for each, to in _pairs(carried, ends)]
    for rows, to in _pairs(scanned, node.output[len(carried) :]):
        nodes += _stacked(rows, 0, to, graph, version)
    return nodes


def _goes_on(body: Any) -> bool:
    """Whether a loop's body never changes its condition."""
    makers = {name: each for each in body.node for name in each.output}
    name = body.output[0].name
    while name in makers and makers[name].op_type == "Identity":
        name = makers[name].input[0]
    if name in makers and makers[name].op_type == "Constant":
        value = attributes(makers[name]).get("value")
        helper: Any = importlib.import_module("onnx.numpy_helper")
        return value is not None and bool(helper.to_array(value).item())
    return bool(name == body.input[1].name)


def _scan(node: Any, graph: Any, known: Mapping[str, np.ndarray], version: int) -> list[Any] | None:
    given = attributes(node)
    body, taken = given["body"], int(given["num_scan_inputs"])
    states, sequences = list(node.input[:-taken]), list(node.input[-taken:])
    types = tensor_types(graph)
    shapes = [static_shape(types.get(each)) for each in sequences]
    shapes = [known[name].shape if name in known else shape
              for name, shape in zip(sequences, shapes, strict=True)]  # fmt: skip
    if any(each is None for each in shapes) or len(body.input) != len(node.input):
        return None  # the latter is the Scan of opset 8, which has lengths
    axes = given.get("scan_input_axes", [0] * taken)
    length = shapes[0][axes[0]]  # type: ignore[index]
    if not 0 < length * len(body.node) <= _MOST_NODES:
        return None
    backward = given.get("scan_input_directions", [0] * taken)
    scanned: list[list[str]] = [[] for _ in body.output[len(states) :]]
    nodes: list[Any] = []
    for step in range(length):
        prefix = f"{node.output[0]}/{step}/"
        rows = [f"{prefix}row{index}" for index in range(taken)]
        for index, row in enumerate(rows):
            place = length - 1 - step if backward[index] else step
            add_constant(graph, f"{row}/index", np.array(place, np.int64))
            pick = [sequences[index], f"{row}/index"]
            nodes.append(_node("Gather", pick, [row], axis=axes[index]))
        names = dict(zip([each.name for each in body.input], [*states, *rows], strict=True))
        made, outputs = _spliced(body, names, prefix, graph)
        nodes += made
        states = outputs[: len(states)]
        for each, all_rows in zip(outputs[len(states) :], scanned, strict=True):
            all_rows.append(each)
    ends = node.output[: len(states)]
    nodes += [_node("Identity", [each], [to]) for each, to in _pairs(states, ends)]
    out_axes = given.get("scan_output_axes", [0] * len(scanned))
    reversed_ = given.get("scan_output_directions", [0] * len(scanned))
    for index, to in enumerate(node.output[len(states) :]):
        rows = scanned[index][::-1] if reversed_[index] else scanned[index]
        nodes += _stacked(rows, out_axes[index], to, graph, version)
    return nodes


def _stacked(rows: Sequence[str], axis: int, to: str, graph: Any, version: int) -> list[Any]:
    """Nodes that stack tensors along a new axis."""
    if not to:
        return []
    wide = [f"{to}/{index}" for index in range(len(rows))]
    if version < 13:
        nodes = [_node("Unsqueeze", [row], [each], axes=[axis]) for row, each in _pairs(rows, wide)]
    else:
        axes = f"{to}/axis"
        add_constant(graph, axes, np.array([axis], np.int64))
        nodes = [_node("Unsqueeze", [row, axes], [each]) for row, each in _pairs(rows, wide)]
    return [*nodes, _node("Concat", wide, [to], axis=axis)]


def _spliced(
    body: Any, names: Mapping[str, str], prefix: str, graph: Any
) -> tuple[list[Any], list[str]]:
    """A subgraph's nodes with names of their own, and the names of its outputs.

    Args:
        body: the subgraph; its initializers are added to `graph`.
        names: what the subgraph's inputs are called outside.
        prefix: of the names of everything else that it defines.
        graph: the graph that the nodes are for.
    """
    renamed = dict(names)
    for each in body.initializer:
        renamed[each.name] = prefix + each.name
        graph.initializer.add().CopyFrom(each)
        graph.initializer[-1].name = renamed[each.name]
    for each in body.node:
        renamed |= {name: prefix + name for name in each.output if name}
    return renamed_nodes(body.node, renamed), [
        renamed.get(each.name, each.name) for each in body.output
    ]


def _pairs(made: Sequence[Any], wanted: Sequence[str]) -> list[tuple[Any, str]]:
    return [(one, name) for one, name in zip(made, wanted, strict=False) if name]


def _node(operator: str, inputs: Sequence[str], outputs: Sequence[str], **given: Any) -> Any:
    helper: Any = importlib.import_module("onnx.helper")
    return helper.make_node(operator, list(inputs), list(outputs), **given)
