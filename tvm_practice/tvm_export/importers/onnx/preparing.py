"""An ONNX model made simpler for TVM's importer: static, its constants folded, functions inlined.

TVM's converters want shapes and axes as constants, and know fewer operators than ONNX has. With
the extents of all inputs fixed, whatever a model computes from shapes is constant; and many
operators that TVM lacks are defined by ONNX as functions of others.
"""

import importlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tvm_practice.tvm_export.importers.onnx.functions import expand
from tvm_practice.tvm_export.importers.onnx.graphs import (
    STANDARD,
    add_constant,
    attributes,
    constants,
    opset,
    static_shape,
    tensor_types,
)
from tvm_practice.tvm_export.importers.onnx.unrolling import unroll

# A larger tensor is a weight: it takes no part in shapes, and folding it would only cost time.
_LARGEST = 4096
_BYTES = ("int8", "uint8")  # that stay what a quantized weight is
_ROUNDS = 12  # functions are made of functions
_IMPURE = frozenset(
    ("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
     "RandomUniformLike")
)  # fmt: skip


def prepared(model: Any, inputs: Sequence[Mapping[str, Any]], converted: Collection[str]) -> Any:
    """A model that computes the same for inputs of these shapes.

    Args:
        model: an onnx.ModelProto; it is left as it was.
        inputs: as `input_tensors` gives them.
        converted: names of ONNX's operators that need not be replaced by their functions.

    Returns:
        A ModelProto without operators that are functions and not in `converted`, without loops
        and branches that are known beforehand, and without what no output depends on. Its
        value_info has the types that ONNX infers.
    """
    made = _static(model, inputs)
    weights = _set_aside(made.graph)
    for _ in range(_ROUNDS):
        made = _with_types(made)
        changed = _fold(made)
        changed |= unroll(made.graph, opset(made))
        _drop_unused(made.graph)
        changed |= expand(made, converted)
        if not changed:
            break
    _put_back(made.graph, weights)
    return made


def _static(model: Any, inputs: Sequence[Mapping[str, Any]]) -> Any:
    """A copy whose inputs have fixed shapes and whose constants are all initializers."""
    onnx: Any = importlib.import_module("onnx")
    made = onnx.ModelProto()
    made.CopyFrom(model)
    imported = {each.domain for each in made.opset_import}
    for domain in sorted(_domains(made.graph) - imported - set(STANDARD)):
        made.opset_import.add(domain=domain, version=1)  # ONNX Runtime takes it for that
    made.ir_version = max(made.ir_version, 4)  # the first whose initializers need not be inputs
    del made.graph.value_info[:]
    del made.graph.input[:]
    for each in inputs:
        code = onnx.helper.np_dtype_to_tensor_dtype(_dtype(each["dtype"]))
        made.graph.input.append(
            onnx.helper.make_tensor_value_info(each["name"], code, each["shape"])
        )
    return made


def _domains(graph: Any) -> set[str]:
    """Of the operators of a graph and of those within it."""
    inner = [each.g for node in graph.node for each in node.attribute if each.HasField("g")]
    return {each.domain for each in graph.node}.union(*map(_domains, inner))


def _dtype(name: str) -> Any:
    try:
        return np.dtype(name)
    except TypeError:
        return np.dtype(getattr(importlib.import_module("ml_dtypes"), name))


def _set_aside(graph: Any) -> list[Any]:
    """Take the weights out of a graph and return them; what is left of them is an input.

    ONNX's tools serialize a model to look at it, and a model above 2 GB cannot be.
    """
    helper: Any = importlib.import_module("onnx.helper")
    nodes = []
    for node in graph.node:
        value = attributes(node).get("value") if node.op_type == "Constant" else None
        if value is None:
            nodes.append(node)
        else:
            graph.initializer.add().CopyFrom(value)
            graph.initializer[-1].name = node.output[0]
    del graph.node[:]
    graph.node.extend(nodes)
    large = [each for each in graph.initializer if np.prod(each.dims) > _LARGEST]
    small = [each for each in graph.initializer if np.prod(each.dims) <= _LARGEST]
    del graph.initializer[:]
    graph.initializer.extend(small)
    for each in large:
        graph.input.append(helper.make_tensor_value_info(each.name, each.data_type, each.dims))
    return large


def _put_back(graph: Any, weights: Sequence[Any]) -> None:
    names = {each.name for each in weights}
    kept = [each for each in graph.input if each.name not in names]
    del graph.input[:]
    graph.input.extend(kept)
    needed = _needed(graph)
    graph.initializer.extend(each for each in weights if each.name in needed)


def _with_types(model: Any) -> Any:
    """A copy of a model, its value_info anew."""
    inference: Any = importlib.import_module("onnx.shape_inference")
    del model.graph.value_info[:]
    for each in model.graph.output:  # a symbolic extent would stay beside the inferred one
        if each.type.HasField("tensor_type"):
            each.type.tensor_type.ClearField("shape")
    nodes = [each for each in model.graph.node if _is_early(each, opset(model))]
    kept = [type(each).FromString(each.SerializeToString()) for each in nodes]
    for each in nodes:
        each.CopyFrom(importlib.import_module("onnx.helper").make_node(
            "Identity", [each.input[0]], [each.output[0]]
        ))  # fmt: skip
    found = inference.infer_shapes(model, data_prop=True)
    for made in (model, found):
        places = {each.output[0]: each for each in made.graph.node}
        for each in kept:
            places[each.output[0]].CopyFrom(each)
    return found


def _is_early(node: Any, version: int) -> bool:
    """Whether a node is of an operator that ONNX has only in later versions.

    ONNX Runtime writes it even so, and ONNX infers no type of it: that of its first input.
    """
    return node.op_type == "LayerNormalization" and node.domain in STANDARD and version < 17


def _fold(model: Any) -> bool:
    """Replace nodes by the constants that they compute, in place; whether there was any."""
    graph = model.graph
    known, types = constants(graph), tensor_types(graph)
    known |= _empty(types)
    kept = []
    for node in graph.node:
        values = _values(node, known, types, model)
        if values is None:
            kept.append(node)
            continue
        for name, value in zip(node.output, values, strict=False):
            if name:
                known[name] = value
                add_constant(graph, name, value)
    changed = len(kept) < len(graph.node)
    del graph.node[:]
    graph.node.extend(kept)
    return changed


def _empty(types: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The tensors without an element, which are known whatever computes them."""
    helper: Any = importlib.import_module("onnx.helper")
    return {
        name: np.zeros(shape, helper.tensor_dtype_to_np_dtype(tensor.elem_type))
        for name, tensor in types.items()
        if tensor.elem_type and 0 in (shape := static_shape(tensor) or ())
    }


def _values(
    node: Any, known: Mapping[str, np.ndarray], types: Mapping[str, Any], model: Any
) -> list[np.ndarray] | None:
    """The values of a node's outputs, or None if they are not known beforehand."""
    if node.domain not in STANDARD or node.op_type in _IMPURE:
        return None
    if node.op_type in ("Shape", "Size"):
        shape = static_shape(types.get(node.input[0]))
        if shape is None and node.input[0] in known:
            shape = known[node.input[0]].shape
        if shape is None:
            return None
        given = attributes(node)
        extents = shape[given.get("start", 0) : given.get("end")]
        size = np.prod(shape, dtype=np.int64)
        return [np.array(size if node.op_type == "Size" else extents, np.int64)]
    if any(each.HasField("g") or each.ref_attr_name for each in node.attribute):
        return None
    if any(name and name not in known for name in node.input):
        return None
    if node.op_type == "DequantizeLinear" and known[node.input[0]].dtype in _BYTES:
        return None
    if any(_size(types.get(name)) > _LARGEST for name in node.output):
        return None
    return _evaluated(node, known, types, model)


def _size(tensor: Any) -> int:
    shape = static_shape(tensor)
    return 0 if shape is None else int(np.prod(shape, dtype=np.int64))


def _evaluated(
    node: Any, known: Mapping[str, np.ndarray], types: Mapping[str, Any], model: Any
) -> list[np.ndarray] | None:
    """What ONNX's own evaluator computes; None where it cannot, or gives another type."""
    helper: Any = importlib.import_module("onnx.helper")
    reference: Any = importlib.import_module("onnx.reference")
    anything = helper.make_tensor_value_info
    outputs = [name for name in node.output if name]
    graph = helper.make_graph(
        [node],
        "node",
        [
            anything(name, helper.np_dtype_to_tensor_dtype(known[name].dtype), known[name].shape)
            for name in dict.fromkeys(node.input)
            if name
        ],
        [anything(name, 0, None) for name in outputs],
    )
    single = helper.make_model(graph, opset_imports=model.opset_import)
    try:
        with np.errstate(all="ignore"):
            made = reference.ReferenceEvaluator(single).run(
                outputs, {name: known[name] for name in node.input if name}
            )
    except Exception:  # of the many that an evaluator in Python meets
        return None
    for name, value in zip(outputs, made, strict=True):
        if not isinstance(value, np.ndarray | np.generic):
            return None
        inferred = types.get(name)
        code = helper.np_dtype_to_tensor_dtype(value.dtype)
        if inferred is not None and inferred.elem_type not in (0, code):
            return None
    found = iter(made)
    return [np.asarray(next(found)) if name else np.zeros(0) for name in node.output]


def _needed(graph: Any) -> set[str]:
    """The tensors that a graph's nodes and outputs refer to."""
    return {each.name for each in graph.output} | {
        name for node in graph.node for name in _used(node)
    }


def _used(node: Any) -> Iterator[str]:
    """The tensors that a node reads, within its subgraphs as well."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.HasField("g"):
            for inner in attribute.g.node:
                yield from _used(inner)
            yield from (each.name for each in attribute.g.output)


def _drop_unused(graph: Any) -> None:
    """Remove nodes and initializers that no output depends on."""
    needed = {each.name for each in graph.output}
    kept = []
    for node in reversed(graph.node):
        if needed.intersection(node.output):
            kept.append(node)
            needed.update(_used(node))
    initializers = [each for each in graph.initializer if each.name in needed]
    del graph.node[:]
    graph.node.extend(reversed(kept))
    del graph.initializer[:]
    graph.initializer.extend(initializers)


def all_nodes(graph: Any) -> Iterator[Any]:
    """A graph's nodes, those of its subgraphs too."""
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from all_nodes(attribute.g)
