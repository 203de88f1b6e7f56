"""The workloads as ONNX graphs. ONNX Runtime runs them, with a kernel for each operator."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
from onnxscript import FLOAT, script
from onnxscript import opset20 as op

from tvm_practice.labs.workloads.loaded import Loaded
from tvm_practice.labs.workloads.problems import EPSILON
from tvm_practice.tvm_export.baselines import open_onnx_session


@script()
def matmul(a: FLOAT, b: FLOAT) -> FLOAT:
    return op.MatMul(a, b)


@script()
def softmax(x: FLOAT) -> FLOAT:
    return op.Softmax(x, axis=-1)


@script()
def layer_norm(x: FLOAT, gain: FLOAT, bias: FLOAT) -> FLOAT:
    return op.LayerNormalization(x, gain, bias, axis=-1, epsilon=EPSILON)


@script()
def mlp(x: FLOAT, w1: FLOAT, b1: FLOAT, w2: FLOAT, b2: FLOAT) -> FLOAT:
    hidden = op.Gelu(op.Add(op.MatMul(x, w1), b1))
    return op.Add(op.MatMul(hidden, w2), b2)


@script()
def attention(q: FLOAT, k: FLOAT, v: FLOAT) -> FLOAT:
    width = op.CastLike(op.Shape(q, start=2, end=3), q)
    scores = op.MatMul(q, op.Transpose(k, perm=[0, 2, 1]))
    return op.MatMul(op.Softmax(op.Div(scores, op.Sqrt(width)), axis=-1), v)


def load(workload: str, inputs: Sequence[np.ndarray]) -> Loaded:
    function = globals()[workload]
    model = function.to_model_proto(
        input_types=[FLOAT[each.shape] for each in inputs],
        output_types=[FLOAT[...]],  # of a shape that ONNX Runtime works out
    )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        onnx.save(model, str(file))
        session = open_onnx_session(file)
    names = [each.name for each in session.get_inputs()]
    feed = dict(zip(names, inputs, strict=True))
    return Loaded(lambda: session.run(None, feed), lambda: np.asarray(session.run(None, feed)[0]))
