"""What is known of an ONNX graph: constants, types; a constant or a node added to it."""

import importlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

STANDARD = ("", "ai.onnx")  # two names of the domain of ONNX's own operators


def opset(model: Any) -> int:
    """The version of ONNX's own operators that a model is written in."""
    return next((int(each.version) for each in model.opset_import if each.domain in STANDARD), 1)


def constants(graph: Any) -> dict[str, np.ndarray]:
    """A graph's initializers by name."""
    helper: Any = importlib.import_module("onnx.numpy_helper")
    return {each.name: helper.to_array(each) for each in graph.initializer}


def add_constant(graph: Any, name: str, value: np.ndarray) -> None:
    helper: Any = importlib.import_module("onnx.numpy_helper")
    graph.initializer.append(
        helper.from_array(np.ascontiguousarray(value).reshape(np.shape(value)), name)
    )


def tensor_types(graph: Any) -> dict[str, Any]:
    """The known types of a graph's tensors by name, as TypeProto.Tensor."""
    return {
        each.name: each.type.tensor_type
        for each in (*graph.value_info, *graph.input, *graph.output)
        if each.type.HasField("tensor_type")
    }


def static_shape(tensor: Any) -> tuple[int, ...] | None:
    """A tensor type's extents, or None if one of them is not known."""
    if tensor is None or not tensor.HasField("shape"):
        return None
    if not all(each.HasField("dim_value") for each in tensor.shape.dim):
        return None
    return tuple(int(each.dim_value) for each in tensor.shape.dim)


def attributes(node: Any) -> dict[str, Any]:
    """A node's attributes by name."""
    helper: Any = importlib.import_module("onnx.helper")
    return {each.name: helper.get_attribute_value(each) for each in node.attribute}


def renamed_nodes(nodes: Sequence[Any], renamed: Mapping[str, str]) -> list[Any]:
    """Copies of nodes, tensors called by other names, within their subgraphs as well."""
    onnx: Any = importlib.import_module("onnx")
    copies = []
    for each in nodes:
        copy = onnx.NodeProto()
        copy.CopyFrom(each)
        copy.input[:] = [renamed.get(name, name) for name in each.input]
        copy.output[:] = [renamed.get(name, name) for name in each.output]
        for attribute in copy.attribute:
            if attribute.HasField("g"):
                inner = renamed_nodes(attribute.g.node, renamed)
                del attribute.g.node[:]
                attribute.g.node.extend(inner)
                for output in attribute.g.output:
                    output.name = renamed.get(output.name, output.name)
        copies.append(copy)
    return copies
