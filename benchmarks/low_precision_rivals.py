"""Other runtimes' 16-bit and 8-bit builds of a model, as their users make them.

Each function takes a `Model` and returns a `Side`, or raises Missing with the reason in a line.
"""

import copy
import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tvm_practice.tvm_export.baselines import (
    bound_call,
    compiled_by_openvino,
    missing_package,
    open_onnx_session,
    openvino_call,
)
from tvm_practice.tvm_export.calling import Call, as_array
from tvm_practice.tvm_export.errors import Missing
from tvm_practice.tvm_export.nested import flattened
from tvm_practice.tvm_export.quiet import quiet_frontends

Outputs = list[np.ndarray]
Tensors = Sequence[torch.Tensor]


@dataclass(frozen=True)
class Side:
    """One build of a model.

    Attributes:
        run: a call on the example, to be timed.
        outputs: the outputs on other inputs.
    """

    run: Callable[[], Any]
    outputs: Callable[[Tensors], Outputs]


@dataclass(frozen=True)
class Model:
    """What is built.

    Attributes:
        call: the model and its example.
        calibration: inputs that scales may be chosen on.
        convolutional: whether convolutions take its time, and scales are static; else linear
            layers do, and scales are dynamic.
        folder: for files.
    """

    call: Call
    calibration: Sequence[Tensors]
    convolutional: bool
    folder: Path

    @functools.cached_property
    def onnx(self) -> Path:
        """The model as an ONNX file, float32."""
        if reason := missing_package():
            raise Missing(reason)
        file = self.folder / "float32.onnx"
        with quiet_frontends():
            torch.onnx.export(
                self.call.module,
                tuple(self.call.tensors),
                file,
                input_names=list(self.call.names),
                dynamo=True,
                external_data=False,
                verbose=False,
            )
        return file

    def feed(self, tensors: Tensors) -> dict[str, np.ndarray]:
        return dict(zip(self.call.names, map(as_array, tensors), strict=True))


def _optional(module: str) -> Any:
    """A rival's module; raises Missing, with the package's name, where it is not installed."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise Missing(f"no Python package {package}. To install: pip install {package}") from error


def _of_module(module: Any, cast: Callable[[torch.Tensor], torch.Tensor], example: Tensors) -> Side:
    given = [cast(each) for each in example]

    def outputs(tensors: Tensors) -> Outputs:
        with torch.inference_mode():
            return [as_array(e.float()) for e in flattened(module(*map(cast, tensors)))]

    def run() -> Any:
        with torch.inference_mode():
            return module(*given)

    run()
    return Side(run, outputs)


def _bfloat16(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.bfloat16() if tensor.is_floating_point() else tensor


def torch_bfloat16(model: Model) -> Side:
    """The model and its inputs in bfloat16, without a compiler."""
    module = copy.deepcopy(model.call.module).to(torch.bfloat16)
    return _of_module(module, _bfloat16, model.call.tensors)


def torch_int8(model: Model) -> Side:
    """PyTorch's dynamic quantization of linear layers; of convolutions, PT2E and Inductor."""
    if model.convolutional:
        return _inductor_int8(model)
    import warnings

    with warnings.catch_warnings():  # it is to move to torchao, which has no such kernels yet
        warnings.simplefilter("ignore")
        quantize: Any = torch.ao.quantization.quantize_dynamic
        module = quantize(copy.deepcopy(model.call.module), {torch.nn.Linear}, dtype=torch.qint8)
    return _of_module(module, lambda tensor: tensor, model.call.tensors)


def _inductor_int8(model: Model) -> Side:
    steps = _optional("torchao.quantization.pt2e.quantize_pt2e")
    x86 = _optional("torchao.quantization.pt2e.quantizer.x86_inductor_quantizer")
    quantizer = x86.X86InductorQuantizer()
    quantizer.set_global(x86.get_default_x86_inductor_quantization_config())
    example = tuple(model.call.tensors)
    with torch.inference_mode(), quiet_frontends():
        exported = torch.export.export(model.call.module, example).module()
        prepared = steps.prepare_pt2e(exported, quantizer)
        for tensors in model.calibration:
            prepared(*tensors)
        compiled = torch.compile(steps.convert_pt2e(prepared), options={"freezing": True})
    return _of_module(compiled, lambda tensor: tensor, example)


def onnx_int8(model: Model) -> Side:
    """ONNX Runtime's own quantizer: dynamic for linear layers, static QDQ for convolutions."""
    file = _quantized_onnx(model)
    session = open_onnx_session(file)
    names = [each.name for each in session.get_inputs()]

    def outputs(tensors: Tensors) -> Outputs:
        feed = model.feed(tensors)
        return list(session.run(None, {name: feed[name] for name in names}))

    feed = {name: model.feed(model.call.tensors)[name] for name in names}
    return Side(bound_call(session, feed, outputs(model.call.tensors)), outputs)


def _quantized_onnx(model: Model) -> Path:
    quantization: Any = importlib.import_module("onnxruntime.quantization")
    processing: Any = importlib.import_module("onnxruntime.quantization.shape_inference")
    prepared, file = (model.folder / f"{name}.onnx" for name in ("prepared", "int8"))
    processing.quant_pre_process(model.onnx, prepared, skip_symbolic_shape=True)
    if not model.convolutional:
        quantization.quantize_dynamic(
            prepared, file, weight_type=quantization.QuantType.QInt8, per_channel=True
        )
        return file
    quantization.quantize_static(
        prepared,
        file,
        _Reader(model),
        quant_format=quantization.QuantFormat.QDQ,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
        per_channel=True,
    )
    return file


class _Reader:
    """The calibration's inputs as ONNX Runtime's quantizer asks for them."""

    def __init__(self, model: Model):
        self._left = [model.feed(each) for each in model.calibration]

    def get_next(self) -> Mapping[str, np.ndarray] | None:
        return self._left.pop() if self._left else None


def openvino_bfloat16(model: Model) -> Side:
    """OpenVINO with bfloat16 as its inference precision."""
    return _openvino(model, lambda ov, read: read, "bf16")


def openvino_int8(model: Model) -> Side:
    """OpenVINO with NNCF's post-training quantization."""
    nncf = _optional("nncf")

    def quantized(ov: Any, read: Any) -> Any:
        data = nncf.Dataset([model.feed(each) for each in model.calibration])
        kind = None if model.convolutional else nncf.ModelType.TRANSFORMER
        return nncf.quantize(read, data, model_type=kind, subset_size=len(model.calibration))

    return _openvino(model, quantized, "f32")


def _openvino(model: Model, change: Callable[[Any, Any], Any], precision: str) -> Side:
    ov = _optional("openvino")
    compiled = compiled_by_openvino(change(ov, ov.Core().read_model(model.onnx)), precision)
    run, _ = openvino_call(compiled, model.feed(model.call.tensors))
    other = compiled.create_infer_request()

    def outputs(tensors: Tensors) -> Outputs:
        found = other.infer(model.feed(tensors))
        return [np.array(found[each]) for each in compiled.outputs]

    return Side(run, outputs)
