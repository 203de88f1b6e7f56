"""A TFLite file: its inputs and outputs, the model in Relax, and what its own interpreter says.

    model = read_model("model.tflite")
    inputs = input_tensors(model, {})
    module = import_model(model, inputs)

The package tflite, which reads the format, is optional, and so are those with its interpreter.
"""

import gc
import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.tvm_export.errors import BadInput, CannotImport

if TYPE_CHECKING:
    import numpy as np

_MARK = b"TFL3"  # four bytes into the file
_INTERPRETERS = ("ai_edge_litert.interpreter", "tflite_runtime.interpreter", "tensorflow.lite")
_UNKNOWN = -1  # an extent that the caller chooses


def is_tflite(file: Path) -> bool:
    """Whether a file is TFLite's, by its mark."""
    if not file.is_file():
        return False
    with file.open("rb") as opened:
        return opened.read(8)[4:] == _MARK


def why_not_readable(file: Path) -> str | None:
    """One line if the package that reads the format is missing; None if it is there."""
    if importlib.util.find_spec("tflite") is not None:
        return None
    reader = "pip install 'tvm-practice[tflite]', which reads it"
    return f"{file} is TFLite's: {reader}; or {way_out(file)}"


def way_out(file: Path | str) -> str:
    """How a file gets to ONNX, which needs neither the package nor TVM's importer of TFLite."""
    return f"convert it to ONNX: python -m tf2onnx.convert --tflite {file} --output model.onnx"


def no_interpreter() -> str | None:
    """One line if TFLite's interpreter is missing, which the result is compared with."""
    if any(importlib.util.find_spec(each.partition(".")[0]) for each in _INTERPRETERS):
        return None
    return "no interpreter of TFLite. To install: pip install 'tvm-practice[tflite]'"


def read_model(file: str) -> Any:
    """The tflite.Model of a file. Raises BadInput if it is none."""
    tflite: Any = importlib.import_module("tflite")
    try:
        model = tflite.Model.GetRootAsModel(Path(file).read_bytes(), 0)
        count = model.SubgraphsLength()
    except Exception as error:  # of struct and numpy, wherever an offset leads
        raise BadInput(f"{file} cannot be read as TFLite ({error}); or {way_out(file)}") from error
    if count < 1:
        raise BadInput(f"{file} has no graph; {way_out(file)}")
    if name := _quantized(model):
        # The importer takes their integers for numbers.
        raise BadInput(
            f"{file} is quantized (tensor {name}): only models in float32 are read; {way_out(file)}"
        )
    return model


def _quantized(model: Any) -> str | None:
    """The first tensor of integers with a scale, by name; None if there is none."""
    tflite: Any = importlib.import_module("tflite")
    floats = {tflite.TensorType.FLOAT16, tflite.TensorType.FLOAT32, tflite.TensorType.FLOAT64}
    for number in range(model.SubgraphsLength()):
        graph = model.Subgraphs(number)
        for index in range(graph.TensorsLength()):
            tensor = graph.Tensors(index)
            scales = tensor.Quantization()
            if scales is not None and scales.ScaleLength() and tensor.Type() not in floats:
                return str(tensor.Name().decode())
    return None


def input_tensors(model: Any, shapes: Mapping[str, Sequence[int]]) -> list[dict[str, Any]]:
    """A model's inputs as [{"name", "shape", "dtype"}]; `shapes` sets extents that are open.

    Raises BadInput for a name of `shapes` that is no input, and a shape that does not fit.
    """
    found = [_described(model, index) for index in model.Subgraphs(0).InputsAsNumpy()]
    names = [each["name"] for each in found]
    for name in shapes.keys() - set(names):
        raise BadInput(f"--shape {name}: the model has no such input, only {', '.join(names)}")
    for each in found:
        given, signature = shapes.get(each["name"]), each.pop("signature")
        if given is None:
            continue
        if len(given) != len(signature) or any(
            fixed not in (_UNKNOWN, extent) for fixed, extent in zip(signature, given, strict=False)
        ):
            said = "x".join("?" if one == _UNKNOWN else str(one) for one in signature)
            raise BadInput(f"--shape {each['name']}={'x'.join(map(str, given))} is not {said}")
        each["shape"] = list(given)
    return found


def output_tensors(model: Any, module: Any) -> list[dict[str, Any]]:
    """A model's outputs as [{"name", "shape", "dtype"}], by the Relax module made of it."""
    from tvm_practice.tvm_export.cpp import describe_tensor, result_types

    indices = model.Subgraphs(0).OutputsAsNumpy()
    return [
        describe_tensor(_described(model, index)["name"], kind)
        for index, kind in zip(indices, result_types(module), strict=True)
    ]


def opset(model: Any) -> None:
    """None: TFLite has no opset, but a version for each operator."""


def import_model(model: Any, inputs: Sequence[Mapping[str, Any]], target: Any = None) -> Any:
    """The model as a Relax module, by TVM's importer.

    Args:
        model: as `read_model` gives it.
        inputs: as `input_tensors` gives them.
        target: as in ONNX's; the module is for any.

    Raises:
        CannotImport: an operator that it does not know or cannot convert, in a line.
    """
    from tvm import relax
    from tvm.relax.frontend.tflite import from_tflite

    from tvm_practice.tvm_export.loading import describe

    shapes = {each["name"]: tuple(each["shape"]) for each in inputs}
    try:
        module = from_tflite(model, shape_dict=shapes)
        return relax.frontend.detach_params(module)[0]
    except Exception as error:  # of TVM, NumPy or the package that reads the format
        problem = (
            f"TVM's importer cannot convert the model: {describe(error)}; tf2onnx may, to ONNX"
        )
    # Not within the except block: that would keep the builder, which complains when it ends. Cycles
    # keep it too, until they are collected: here, where nobody hears it.
    gc.collect()
    raise CannotImport(problem)


def interpreted(file: str, feed: Mapping[str, "np.ndarray"]) -> list["np.ndarray"]:
    """What TFLite's interpreter gives for these inputs, by name."""
    for name in _INTERPRETERS:
        if importlib.util.find_spec(name.partition(".")[0]):
            break
    runner = importlib.import_module(name).Interpreter(model_path=file)
    by_name = {each["name"]: each["index"] for each in runner.get_input_details()}
    for each, array in feed.items():
        runner.resize_tensor_input(by_name[each], list(array.shape))
    runner.allocate_tensors()
    for each, array in feed.items():
        runner.set_tensor(by_name[each], array)
    runner.invoke()
    return [runner.get_tensor(each["index"]) for each in runner.get_output_details()]


def _described(model: Any, index: int) -> dict[str, Any]:
    """Name, shape, the shape with open extents, and type of a tensor of the main graph."""
    tflite: Any = importlib.import_module("tflite")
    tensor = model.Subgraphs(0).Tensors(int(index))
    kinds = {code: name for name, code in vars(tflite.TensorType).items() if name.isupper()}
    shape = [] if tensor.ShapeIsNone() else tensor.ShapeAsNumpy().tolist()
    open_too = shape if tensor.ShapeSignatureIsNone() else tensor.ShapeSignatureAsNumpy().tolist()
    return {
        "name": tensor.Name().decode(),
        "shape": shape,
        "signature": open_too,
        "dtype": str(kinds[tensor.Type()]).lower(),
    }
