"""An ONNX file: its model, the inputs and outputs with their shapes."""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tvm_practice.tvm_export.errors import BadInput, CannotImport
from tvm_practice.tvm_export.loading import describe, did_you_mean


def read_model(file: str) -> Any:
    """The ModelProto in a file, its external data loaded and its own functions inlined.

    Raises BadInput if it is none.
    """
    onnx: Any = importlib.import_module("onnx")
    try:
        model = onnx.load(file, load_external_data=False)
    except OSError as error:
        raise BadInput(f"{file}: {error.strerror or error}") from error
    except Exception as error:  # protobuf's DecodeError
        raise BadInput(f"{file} is not an ONNX model: {describe(error)}") from error
    if not model.ir_version or not model.graph.output:
        raise BadInput(f"{file} is not an ONNX model: it has no graph")
    _require_known(model, file)
    _require_defined(model.graph, file)
    try:
        onnx.load_external_data_for_model(model, str(Path(file).parent))
    except Exception as error:  # of the operating system or onnx's checker
        raise BadInput(f"{file}: its external data does not load: {describe(error)}") from error
    if model.functions:
        model = importlib.import_module("onnx.inliner").inline_local_functions(model)
    return model


def _require_known(model: Any, file: str) -> None:
    """Raise BadInput for a version of the format or of its operators that is not out yet."""
    onnx: Any = importlib.import_module("onnx")
    known = onnx.defs.onnx_opset_version()
    for each in model.opset_import:
        if each.domain in ("", "ai.onnx") and each.version > known:
            raise BadInput(
                f"{file} has operators of opset {each.version}; onnx {onnx.__version__} knows "
                f"{known} and earlier ones"
            )
    if model.ir_version > onnx.IR_VERSION:
        raise BadInput(
            f"{file} has IR version {model.ir_version}; onnx {onnx.__version__} knows "
            f"{onnx.IR_VERSION} and earlier ones"
        )


def _require_defined(graph: Any, file: str, outside: frozenset[str] = frozenset()) -> None:
    """Raise BadInput for a tensor that is used before anything makes it.

    Args:
        graph: a GraphProto.
        file: for the message.
        outside: the tensors that the nodes around a subgraph may use.
    """
    made = {"", *outside}  # "" is an optional input that is left out
    made.update(each.name for each in (*graph.input, *graph.initializer))
    made.update(each.values.name for each in graph.sparse_initializer)
    for node in graph.node:
        if undefined := [name for name in node.input if name not in made]:
            raise BadInput(
                f"{file}: {node.op_type} uses {undefined[0]!r}, which is no input or weight and "
                "which no node before it makes"
            )
        for attribute in node.attribute:
            inners = [attribute.g] if attribute.HasField("g") else attribute.graphs
            for inner in inners:
                _require_defined(inner, file, frozenset(made))
        made.update(node.output)
    for output in graph.output:
        if output.name not in made:
            raise BadInput(f"{file}: no node makes the output {output.name!r}")


def input_tensors(model: Any, shapes: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    """A model's inputs as [{"name", "shape", "dtype"}], symbolic dimensions as `shapes` has them.

    Raises BadInput for a symbolic dimension without a shape, a shape that does not fit, and a
    name of `shapes` that is no input.
    """
    weights = {each.name for each in model.graph.initializer}
    inputs = {each.name: each for each in model.graph.input if each.name not in weights}
    for name in shapes.keys() - inputs.keys():
        raise BadInput(
            f"--shape {name}: the model has no such input, only {', '.join(inputs)}"
            f"{did_you_mean(name, list(inputs))}"
        )
    declared: dict[str, list[int | str] | None] = {}
    bound: dict[str, int] = {}  # extents of the symbolic dimensions
    for name, described in inputs.items():
        if not described.type.HasField("tensor_type"):
            raise BadInput(f"input {name} is not a tensor")
        declared[name] = _declared(described.type.tensor_type)
        before = dict(bound)
        if name in shapes and not _fits(declared[name], shapes[name], bound):
            given = "x".join(map(str, shapes[name]))
            known = ", ".join(f"{symbol} = {extent}" for symbol, extent in before.items())
            raise BadInput(
                f"--shape {name}={given} does not fit the input, which is "
                f"{_spelled(declared[name])}" + (f", with {known}" if known else "")
            )
    tensors = []
    for name, described in inputs.items():
        extents = shapes.get(name) or _extents(name, declared[name], bound)
        dtype = _dtype_name(described.type.tensor_type.elem_type)
        tensors.append({"name": name, "shape": list(extents), "dtype": dtype})
    return tensors


def _declared(tensor: Any) -> list[int | str] | None:
    """A tensor type's extents; a symbolic one is its name, or "?"."""
    if not tensor.HasField("shape"):
        return None
    return [
        int(each.dim_value) if each.HasField("dim_value") and each.dim_value > 0
        else each.dim_param or "?"
        for each in tensor.shape.dim
    ]  # fmt: skip


def _fits(
    declared: Sequence[int | str] | None, extents: Sequence[int], bound: dict[str, int]
) -> bool:
    """Whether `extents` are an instance of `declared`; their symbols are added to `bound`."""
    if declared is None:
        return True
    return len(declared) == len(extents) and all(
        extent == (each if isinstance(each, int) else bound.setdefault(each, extent))
        for each, extent in zip(declared, extents, strict=True)
        if each != "?"
    )


def _extents(
    name: str, declared: Sequence[int | str] | None, bound: Mapping[str, int]
) -> list[int]:
    """The extents of an input that --shape does not name. Raises BadInput if one is unknown."""
    if declared is None:
        raise BadInput(f"input {name} has no shape; give it, as in --shape {name}=1x3x224x224")
    extents = [each if isinstance(each, int) else bound.get(each) for each in declared]
    known = [each for each in extents if each is not None]
    if len(known) < len(extents):
        example = "x".join(str(each or 1) for each in extents)
        raise BadInput(
            f"input {name} has a symbolic dimension, it is {_spelled(declared)}; give its shape, "
            f"as in --shape {name}={example}"
        )
    return known


def _spelled(declared: Sequence[int | str] | None) -> str:
    return "×".join(map(str, declared or ())) or "a scalar"


def _dtype_name(code: int) -> str:
    helper: Any = importlib.import_module("onnx.helper")
    return str(helper.tensor_dtype_to_np_dtype(code))


def output_tensors(model: Any, module: Any) -> list[dict[str, Any]]:
    """A model's outputs as [{"name", "shape", "dtype"}].

    Args:
        model: an onnx.ModelProto, which has their names.
        module: the Relax module made of it, which has the rest. An extent that depends on values
            is a name.
    """
    from tvm_practice.tvm_export.cpp import describe_tensor, result_types

    described = []
    for output, kind in zip(model.graph.output, result_types(module), strict=True):
        if kind.shape is None:
            raise CannotImport(f"the shape of {output.name} depends on values")
        described.append(describe_tensor(output.name, kind))
    return described


# Inputs by operator and position that choose shapes, or the way of computing: a compiled model
# has them fixed.
_CHOOSING = {
    "AffineGrid": (1,), "BlackmanWindow": (0,), "CenterCropPad": (1,), "Col2Im": (1, 2),
    "ConstantOfShape": (0,), "CumProd": (1,), "CumSum": (1,), "DFT": (1, 2),
    "Dropout": (2,), "Expand": (1,), "HammingWindow": (0,), "HannWindow": (0,), "Loop": (0, 1),
    "MaxUnpool": (2,), "MelWeightMatrix": (0, 1, 2, 3, 4), "NonMaxSuppression": (2, 3, 4),
    "OneHot": (1,), "Pad": (1, 3), "Range": (0, 1, 2), "Reshape": (1,), "Resize": (1, 2, 3),
    "STFT": (1, 3), "Slice": (1, 2, 3, 4), "Split": (1,), "Squeeze": (1,), "Tile": (1,),
    "TopK": (1,), "Trilu": (1,), "Unsqueeze": (1,), "Upsample": (1,),
}  # fmt: skip
_OF_SHAPES = frozenset(("Shape", "Size"))


def choosing_inputs(model: Any) -> dict[str, str]:
    """The inputs whose values, not only shapes, must be known to compile a model.

    Returns the operator that asks for each, by the input's name; those that reach it through
    arithmetic only if they are whole numbers or one number.
    """
    inputs = {each.name: each.type.tensor_type for each in model.graph.input}
    for each in model.graph.initializer:
        inputs.pop(each.name, None)
    makers = {name: node for node in model.graph.node for name in node.output}
    found: dict[str, str] = {}
    for node in model.graph.node:
        reduces = node.op_type.startswith("Reduce")
        waiting = [
            node.input[place]
            for place in ((1,) if reduces else _CHOOSING.get(node.op_type, ()))
            if place < len(node.input)
        ]
        direct, seen = set(waiting), set()
        while waiting:
            name = waiting.pop()
            if name in inputs and (name in direct or _is_number(inputs[name])):
                found[name] = node.op_type
            if name in makers and name not in seen and makers[name].op_type not in _OF_SHAPES:
                waiting.extend(makers[name].input)
            seen.add(name)
    return found


def _is_number(tensor: Any) -> bool:
    """Whether a tensor type is of whole numbers, or of a single number."""
    dtype = _dtype_name(tensor.elem_type)
    return dtype.startswith(("int", "uint", "bool")) or all(
        each == 1 for each in _declared(tensor) or []
    )


def value_arrays(model: Any, values: Mapping[str, Sequence[float]]) -> dict[str, np.ndarray]:
    """Numbers by input as arrays of the inputs' types and shapes.

    A list of its own where the input's shape is open. Raises BadInput for a name that is no input
    and for a number of numbers that does not fit.
    """
    inputs = {each.name: each.type.tensor_type for each in model.graph.input}
    arrays = {}
    for name, numbers in values.items():
        if name not in inputs:
            raise _no_such(name, inputs)
        declared = _declared(inputs[name])
        extents = ["?"] if declared is None else declared
        fixed = [each for each in extents if isinstance(each, int)]
        shape = fixed if len(fixed) == len(extents) else [len(numbers)]
        array = np.array(numbers).astype(_dtype_name(inputs[name].elem_type))
        if array.size != np.prod(shape, dtype=int):
            raise BadInput(
                f"--value {name}: {array.size} numbers, the input is {_spelled(declared)}"
            )
        arrays[name] = array.reshape(shape)
    return arrays


def _no_such(name: str, inputs: Mapping[str, Any]) -> BadInput:
    return BadInput(
        f"--value {name}: the model has no such input, only {', '.join(inputs)}"
        f"{did_you_mean(name, list(inputs))}"
    )


def with_values(model: Any, values: Mapping[str, Any]) -> Any:
    """A model with some of its inputs bound to arrays.

    Raises BadInput for a name that is no input, an array of another type or one that does not fit
    the input's shape.
    """
    onnx: Any = importlib.import_module("onnx")
    bound = onnx.ModelProto()
    bound.CopyFrom(model)
    inputs = {each.name: each for each in model.graph.input}
    for name, value in values.items():
        if name not in inputs:
            raise _no_such(name, inputs)
        kind = inputs[name].type.tensor_type
        if str(value.dtype) != _dtype_name(kind.elem_type):
            raise BadInput(
                f"--value {name} is {value.dtype}, the input {_dtype_name(kind.elem_type)}"
            )
        if not _fits(_declared(kind), value.shape, {}):
            raise BadInput(
                f"--value {name} has shape {value.shape}, the input {_spelled(_declared(kind))}"
            )
        bound.graph.initializer.append(onnx.numpy_helper.from_array(value, name))
    kept = [each for each in model.graph.input if each.name not in values]
    del bound.graph.input[:]
    bound.graph.input.extend(kept)
    return bound
