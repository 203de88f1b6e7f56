"""An ONNX file: its model, the inputs and outputs with their shapes, and the model in Relax.

    model = read_model("model.onnx")
    inputs = input_tensors(model, {"image": [1, 3, 224, 224]})
    module = import_model(model, inputs)

The package onnx is optional, and is imported when a function needs it.
"""

from tvm_practice.tvm_export.importers.onnx.graphs import opset
from tvm_practice.tvm_export.importers.onnx.importing import import_model
from tvm_practice.tvm_export.importers.onnx.reading import (
    choosing_inputs,
    input_tensors,
    output_tensors,
    read_model,
    value_arrays,
    with_values,
)

__all__ = [
    "choosing_inputs",
    "import_model",
    "input_tensors",
    "opset",
    "output_tensors",
    "read_model",
    "value_arrays",
    "with_values",
]
