"""TFLite files for tests, made of operators by the format's own schema (ai-edge-litert's)."""

import importlib
from pathlib import Path
from typing import Any

import numpy as np


class Maker:
    """A graph that is added to, tensor by tensor and operator by operator."""

    def __init__(self) -> None:
        self.schema: Any = importlib.import_module("ai_edge_litert.schema_py_generated")
        self._model = self.schema.ModelT()
        self._model.version, self._model.description = 3, b"tested"
        self._model.buffers, self._model.operatorCodes = [self.schema.BufferT()], []
        self._graph = self.schema.SubGraphT()
        self._graph.name, self._graph.tensors, self._graph.operators = b"main", [], []

    def value(self, name: str, shape: list[int], *, open_extents: list[int] | None = None) -> int:
        """A float32 tensor that is computed or given; its number."""
        return self._tensor(name, shape, "FLOAT32", 0, open_extents)

    def constant(self, name: str, array: np.ndarray) -> int:
        buffer = self.schema.BufferT()
        buffer.data = np.frombuffer(array.tobytes(), np.uint8)
        self._model.buffers.append(buffer)
        kind = {"float32": "FLOAT32", "int32": "INT32"}[str(array.dtype)]
        return self._tensor(name, list(array.shape), kind, len(self._model.buffers) - 1, None)

    def _tensor(
        self, name: str, shape: list[int], kind: str, buffer: int, signature: list[int] | None
    ) -> int:
        made = self.schema.TensorT()
        made.name, made.shape, made.buffer = name.encode(), shape, buffer
        made.type = getattr(self.schema.TensorType, kind)
        if signature is not None:
            made.shapeSignature = signature
        if kind == "INT8":
            made.quantization = self.schema.QuantizationParametersT()
            made.quantization.scale, made.quantization.zeroPoint = [0.5], [3]
        self._graph.tensors.append(made)
        return len(self._graph.tensors) - 1

    def operator(self, name: str, inputs: list[int], output: int, **options: Any) -> int:
        """An operator, `CONV_2D` say; with options "kind" is their class, `Conv2DOptions` say."""
        code = self.schema.OperatorCodeT()
        code.builtinCode = getattr(self.schema.BuiltinOperator, name)
        code.deprecatedBuiltinCode, code.version = min(code.builtinCode, 127), 1
        self._model.operatorCodes.append(code)
        made = self.schema.OperatorT()
        made.opcodeIndex, made.inputs = len(self._model.operatorCodes) - 1, inputs
        made.outputs = [output]
        if options:
            kind = options.pop("kind")
            made.builtinOptionsType = getattr(self.schema.BuiltinOptions, kind)
            made.builtinOptions = getattr(self.schema, f"{kind}T")()
            for each, value in options.items():
                setattr(made.builtinOptions, each, value)
        self._graph.operators.append(made)
        return output

    def write(self, file: Path, inputs: list[int], outputs: list[int]) -> Path:
        flatbuffers: Any = importlib.import_module("flatbuffers")
        self._graph.inputs, self._graph.outputs = inputs, outputs
        self._model.subgraphs = [self._graph]
        builder = flatbuffers.Builder(1024)
        builder.Finish(self._model.Pack(builder), b"TFL3")
        file.write_bytes(bytes(builder.Output()))
        return file


def classifier(file: Path, *, changed: float = 1.0) -> Path:
    """A convolution of any batch, its mean, a linear layer and softmax."""
    random, made = np.random.default_rng(0), Maker()

    def weight(name: str, *shape: int) -> int:
        return made.constant(name, random.standard_normal(shape).astype("float32") * changed)

    image = made.value("image:0", [1, 9, 9, 3], open_extents=[-1, 9, 9, 3])
    found = made.operator(
        "CONV_2D",
        [image, weight("w", 16, 3, 3, 3), weight("b", 16)],
        made.value("c", [1, 5, 5, 16]),
        kind="Conv2DOptions", padding=made.schema.Padding.SAME, strideW=2, strideH=2,
        dilationWFactor=1, dilationHFactor=1,
        fusedActivationFunction=made.schema.ActivationFunctionType.RELU6,
    )  # fmt: skip
    axes = made.constant("axes", np.array([1, 2], "int32"))
    mean = made.value("m", [1, 16])
    made.operator("MEAN", [found, axes], mean, kind="ReducerOptions", keepDims=False)
    layer = [mean, weight("v", 10, 16), weight("a", 10)]
    scores = made.value("s", [1, 10])
    made.operator("FULLY_CONNECTED", layer, scores, kind="FullyConnectedOptions")
    last = made.value("probabilities", [1, 10])
    made.operator("SOFTMAX", [scores], last, kind="SoftmaxOptions", beta=1.0)
    return made.write(file, [image], [last])


def unknown_operator(file: Path) -> Path:
    """An operator that TVM's importer has no converter for."""
    made = Maker()
    x = made.value("x", [4])
    return made.write(file, [x], [made.operator("HASHTABLE", [x], made.value("y", [4]))])


def quantized(file: Path) -> Path:
    """A sum of bytes that stand for halves."""
    made = Maker()
    x, y = (made._tensor(name, [4], "INT8", 0, None) for name in "xy")
    made.operator("ADD", [x, x], y, kind="AddOptions")
    return made.write(file, [x], [y])
