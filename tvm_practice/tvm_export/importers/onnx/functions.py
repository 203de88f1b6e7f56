"""Operators that are functions of others, most by ONNX's definition, replaced by their bodies."""

import importlib
from collections.abc import Collection, Mapping
from typing import Any

from tvm_practice.tvm_export.importers.onnx import (
    attention_functions,
    fused_functions,
    quantized_functions,
)
from tvm_practice.tvm_export.importers.onnx.graphs import STANDARD, opset, renamed_nodes


def expand(model: Any, converted: Collection[str]) -> bool:
    """Replace a graph's functions in place; whether there was any.

    Args:
        model: an onnx.ModelProto, types inferred.
        converted: names of ONNX's own operators that stay.
    """
    versions = {each.domain: int(each.version) for each in model.opset_import}
    versions |= dict.fromkeys(STANDARD, opset(model))

    def version_of(node: Any) -> int:
        return versions.get(node.domain, 1)

    nodes: list[Any] = []
    changed = False
    for node in model.graph.node:
        made = _replacement(node, model.graph, version_of(node), converted)
        nodes.extend([node] if made is None else made)
        changed |= made is not None
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return changed


def _replacement(
    node: Any, graph: Any, version: int, converted: Collection[str]
) -> list[Any] | None:
    """The nodes that a node stands for; None where it stays."""
    if node.domain == quantized_functions.DOMAIN:
        return (
            fused_functions.body_of(node)
            or quantized_functions.body_of(node)
            or attention_functions.body_of(node, graph)
        )
    if node.domain in STANDARD and node.op_type in fused_functions.IN_ONNX:
        return fused_functions.body_of(node)
    if node.domain in STANDARD and node.op_type in converted:
        return None
    body = _body(node, graph, version)
    return None if body is None else _called(body, node, version)


def _body(node: Any, graph: Any, version: int) -> Any | None:
    """The FunctionProto that defines a node, None if there is none."""
    onnx: Any = importlib.import_module("onnx")
    domain = "" if node.domain in STANDARD else node.domain
    if not onnx.defs.has(node.op_type, version, domain):
        return None
    schema = onnx.defs.get_schema(node.op_type, version, domain)
    if schema.has_function:
        known = [each for each in schema.function_opset_versions if each <= version]
        text = schema.get_function_with_opset_version(max(known)) if known else None
    elif schema.has_context_dependent_function:
        known = [
            each for each in schema.context_dependent_function_opset_versions if each <= version
        ]
        types = _types(graph)
        nothing = onnx.TypeProto()
        given = [types.get(name, nothing).SerializeToString() for name in node.input]
        make = schema.get_context_dependent_function_with_opset_version
        text = make(max(known), node.SerializeToString(), given) if known else None
    else:
        return None
    return onnx.FunctionProto.FromString(text) if text else None


def _types(graph: Any) -> Mapping[str, Any]:
    """The types of a graph's tensors by name, as TypeProto."""
    helper: Any = importlib.import_module("onnx.helper")
    found = {
        each.name: helper.make_tensor_type_proto(each.data_type, each.dims)
        for each in graph.initializer
    }
    for each in (*graph.value_info, *graph.input, *graph.output):
        found[each.name] = each.type
    return found


def _called(body: Any, node: Any, version: int) -> list[Any]:
    """A function's nodes, with the names and the attributes of the node that calls it."""
    prefix = f"{next(filter(None, node.output))}/"
    names = {name: prefix + name for each in body.node for name in each.output if name}
    for formal, given in ((body.input, node.input), (body.output, node.output)):
        for place, name in enumerate(formal):
            outside = given[place] if place < len(given) else ""
            if outside or formal is body.input:
                names[name] = outside
    values = _defaults(node, version) | {each.name: each for each in node.attribute}
    values = {each.name: each for each in body.attribute_proto} | values
    nodes = renamed_nodes(body.node, names)
    for each in nodes:
        _give_attributes(each, values)
    return nodes


def _defaults(node: Any, version: int) -> dict[str, Any]:
    """The attributes that a node has without saying so."""
    defs: Any = importlib.import_module("onnx.defs")
    schema = defs.get_schema(node.op_type, version, "" if node.domain in STANDARD else node.domain)
    return {
        name: each.default_value
        for name, each in schema.attributes.items()
        if each.default_value.type
    }


def _give_attributes(node: Any, values: Mapping[str, Any]) -> None:
    """Replace references to a function's attributes by their values, in subgraphs too."""
    given = []
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            given.append(attribute)
            if attribute.HasField("g"):
                for inner in attribute.g.node:
                    _give_attributes(inner, values)
        elif attribute.ref_attr_name in values:
            value = type(attribute)()
            value.CopyFrom(values[attribute.ref_attr_name])
            value.name = attribute.name
            given.append(value)
    copies = [type(each).FromString(each.SerializeToString()) for each in given]
    del node.attribute[:]
    node.attribute.extend(copies)
