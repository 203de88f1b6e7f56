"""An ONNX file: its model, the inputs and outputs with their shapes, and the model in Relax.

    model = read_model("model.onnx")
    inputs = input_tensors(model, {"image": [1, 3, 224, 224]})
    module = import_model(model, inputs)

The package onnx is optional, and is imported when a function needs it.
"""

import contextlib
import importlib
import io
import re
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tvm_practice.tvm_export.errors import BadInput, CannotImport
from tvm_practice.tvm_export.loading import describe, did_you_mean

_DOMAINS = ("", "ai.onnx")  # two names of ONNX's own


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
    try:
        onnx.load_external_data_for_model(model, str(Path(file).parent))
    except Exception as error:  # of the operating system or onnx's checker
        raise BadInput(f"{file}: its external data does not load: {describe(error)}") from error
    if model.functions:
        model = importlib.import_module("onnx.inliner").inline_local_functions(model)
    return model


def opset(model: Any) -> int:
    """The version of ONNX's own operators that a model is written in."""
    return next(int(each.version) for each in model.opset_import if each.domain in _DOMAINS)


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


def import_model(model: Any, inputs: Sequence[Mapping[str, Any]]) -> Any:
    """The model as a Relax module.

    Args:
        model: an onnx.ModelProto.
        inputs: as `input_tensors` gives them; their shapes are the module's.

    Raises:
        CannotImport: an operator that TVM does not know or cannot convert; the message names it.
    """
    import tvm
    from tvm.relax.frontend.onnx import from_onnx

    said = io.StringIO()
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(said):
            # Of inputs it renames, and of what onnx's checker finds but it does without.
            warnings.simplefilter("ignore")
            return from_onnx(model, {each["name"]: list(each["shape"]) for each in inputs})
    except tvm.error.OpNotImplemented as error:
        names = ", ".join(sorted(str(error).rpartition(": ")[2].split(", ")))
        problem = f"does not know these operators: {names}"
    except Exception as error:
        # Which operator it was is printed, with the whole graph, and not in the exception.
        found = re.search(r"Error converting operator (\w+)", said.getvalue())
        use = f"this use of {found[1]}" if found else "the model"
        problem = f"cannot convert {use}: {describe(error)}"
    # Not within the except block: that would keep the builder, which complains when it ends.
    raise CannotImport(f"TVM's importer {problem}")


def output_tensors(model: Any, module: Any) -> list[dict[str, Any]]:
    """A model's outputs as [{"name", "shape", "dtype"}].

    Args:
        model: an onnx.ModelProto, which has their names.
        module: the Relax module made of it, which has the rest. An extent that depends on values
            is a name.
    """
    from tvm_practice.tvm_export.cpp import describe_tensor, result_types

    return [
        describe_tensor(output.name, kind)
        for output, kind in zip(model.graph.output, result_types(module), strict=True)
    ]
