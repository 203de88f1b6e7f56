"""Models that come quantized, beside ONNX Runtime's or PyTorch's own run of them."""

import importlib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn

Arrays = dict[str, np.ndarray]
_IMAGE, _ROWS = (1, 3, 18, 20), (2, 5, 32)


class Convolutions(nn.Module):
    """A small network for images: every kind of layer that bytes pass through."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.first = nn.Conv2d(16, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 16, 3, padding=1)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16)
        self.wide = nn.Conv2d(16, 24, 1)
        self.head = nn.Linear(24, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.max_pool2d(torch.relu(self.stem(x)), 3, stride=2, padding=1)
        x = torch.relu(self.second(torch.relu(self.first(x))) + x)
        x = self.wide(nn.functional.relu6(self.depthwise(x)))
        return torch.as_tensor(self.head(torch.relu(x).mean((2, 3))))


class Attention(nn.Module):
    """A transformer's layer."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(32, 32) for _ in range(4))
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)
        self.before, self.after = nn.LayerNorm(32), nn.LayerNorm(32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key, value = (
            layer(x).reshape(2, 5, 4, 8).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        weights = torch.softmax(query @ key.transpose(2, 3) / 8**0.5, -1)
        x = self.before(x + self.out((weights @ value).transpose(1, 2).reshape(x.shape)))
        return torch.as_tensor(self.after(x + self.down(torch.relu(self.up(x)))))


class _Reader:
    """Inputs that ranges are found on."""

    def __init__(self, shape: Sequence[int]):
        random = np.random.default_rng(1)
        self._left = [random.standard_normal(shape).astype("float32") for _ in range(4)]

    def get_next(self) -> Arrays | None:
        return {"x": self._left.pop()} if self._left else None


def onnx_models(folder: str) -> dict[str, dict[str, Any]]:
    """Of each model that ONNX Runtime's quantizer makes, what `_compared` finds."""
    quantization: Any = importlib.import_module("onnxruntime.quantization")
    shapes: Any = importlib.import_module("onnxruntime.quantization.shape_inference")

    found = {}
    for model, shape in ((Convolutions(), _IMAGE), (Attention(), _ROWS)):
        name = type(model).__name__.lower()
        plain, prepared = (Path(folder) / f"{name}{end}.onnx" for end in ("", "-prepared"))
        torch.manual_seed(0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the exporter that needs no other package
            example = (torch.zeros(shape),)
            torch.onnx.export(model.eval(), example, plain, input_names=["x"], dynamo=False)
            shapes.quant_pre_process(plain, prepared, skip_symbolic_shape=True)
        for kind in _OF[type(model)]:
            settings = _KINDS[kind]
            file = Path(folder) / f"{name}-{kind}.onnx"
            if "format" in settings:
                quantization.quantize_static(
                    prepared,
                    file,
                    _Reader(shape),
                    quant_format=quantization.QuantFormat[settings["format"]],
                    activation_type=quantization.QuantType[settings["type"]],
                    weight_type=quantization.QuantType.QInt8,
                    per_channel=settings["by channel"],
                )
            else:
                weights = quantization.QuantType[settings["type"]]
                quantization.quantize_dynamic(
                    prepared, file, weight_type=weights, per_channel=settings["by channel"]
                )
            found[f"{name} {kind}"] = _compared(file, shape)
    return found


_KINDS: dict[str, dict[str, Any]] = {
    "pairs": {"format": "QDQ", "type": "QUInt8", "by channel": True},
    "signed operators": {"format": "QOperator", "type": "QInt8", "by channel": False},
    "dynamic": {"type": "QInt8", "by channel": True},
    "dynamic, unsigned weights": {"type": "QUInt8", "by channel": False},
}
_OF: dict[type, Sequence[str]] = {
    Convolutions: ("pairs", "signed operators", "dynamic, unsigned weights"),
    Attention: ("pairs", "signed operators", "dynamic"),
}


def _compared(file: Path, shape: Sequence[int]) -> dict[str, Any]:
    """A model beside ONNX Runtime, which computes it as it stands.

    Returns:
        {"steps": the largest error in steps of the output's quantization; without one, relative to
        its largest element; "cosine": the least; "float sums": how many products of float32 are
        summed; "rules": those of functions that none but the last resort schedules}.
    """
    import onnx

    onnxruntime: Any = importlib.import_module("onnxruntime")
    model = onnx.load(file)
    module, decisions, run = built(model)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
    random = np.random.default_rng(2)
    errors, cosines = [], []
    for _ in range(3):
        x = random.standard_normal(shape).astype("float32")
        [want], [got] = session.run(None, {"x": x}), run([x])
        step = _step(model) or np.abs(want).max()
        errors.append(float(np.abs(got - want).max() / step))
        lengths = np.linalg.norm(got) * np.linalg.norm(want)
        cosines.append(float((got * want).sum() / lengths))
    return {"steps": max(errors), "cosine": min(cosines), **_told(module, decisions)}


def _step(model: Any) -> float | None:
    """The scale of a model's output, if it is dequantized."""
    from onnx import numpy_helper

    last = next(each for each in model.graph.node if model.graph.output[0].name in each.output)
    scales = {each.name: each for each in model.graph.initializer}
    if last.op_type != "DequantizeLinear":
        return None
    return float(numpy_helper.to_array(scales[last.input[1]]))


def built(model: Any) -> tuple[Any, list[Any], Any]:
    """A model's optimized module, the rules' decisions, and a function that runs it."""
    from tvm_practice.tvm_export.importers.onnx import import_model, input_tensors
    from tvm_practice.tvm_export.relax import schedule_defaults
    from tvm_practice.tvm_export.relax_passes import channels_last
    from tvm_practice.tvm_export.relax_passes.order import optimized
    from tvm_practice.tvm_export.running import run_relax
    from tvm_practice.tvm_export.steps import Steps
    from tvm_practice.tvm_export.targets import resolve_target

    tensors, target = input_tensors(model, {}), resolve_target("llvm")
    names = [each["name"] for each in tensors]
    decisions: list[Any] = []
    with mock.patch.object(channels_last, "_MOST_MOVED", 9.0):  # the models are small
        made = optimized(import_model(model, tensors), Steps(), names=names, target=target)
    scheduled = schedule_defaults(made, target, report=decisions)
    executable = Steps().build_relax(scheduled, target)
    return made, decisions, lambda inputs: run_relax(executable, inputs)


def _told(module: Any, decisions: Sequence[Any]) -> dict[str, Any]:
    """What of a module of fused functions is not in integers, or not scheduled by a rule."""
    last = [each.rule for each in decisions if each.rule in ("fallback", "unscheduled")]
    return {"float sums": sum(map(_sums_float, _functions(module))), "rules": last}


def _functions(module: Any) -> Iterator[Any]:
    import tvm

    return (each for _, each in module.functions_items() if isinstance(each, tvm.tirx.PrimFunc))


def _sums_float(function: Any) -> bool:
    """Whether a function sums products of two float32 tensors."""
    from tvm import tirx
    from tvm.ir.expr import TensorLoad

    from tvm_practice.tvm_export.rules.cpu.loops import only_block, stages

    for stage in stages(function):
        block = only_block(stage)
        if block is None or block.init is None or str(block.body.buffer.dtype) != "float32":
            continue
        product = getattr(block.body.value, "b", None)
        factors = (product.a, product.b) if isinstance(product, tirx.Mul) else ()
        loads = [each.source for each in factors if isinstance(each, TensorLoad)]
        if len(loads) == 2 and not loads[0].same_as(loads[1]):
            return True
    return False


class Drawn(nn.Module):
    """PyTorch's quantization, step by step, as PT2E writes it.

    Padding with a zero point that is not 0, weights and activations of fewer steps than a byte has,
    int8 of both signs, moved bytes, a scale that a call finds, and groups, which stay float32.
    """

    def __init__(self) -> None:
        super().__init__()
        self.weights = nn.ParameterDict()
        shapes: dict[str, tuple[int, ...]] = {
            "image": (8, 4, 3, 3),
            "next": (6, 8, 1, 1),
            "grouped": (8, 4, 3, 3),
        }
        shapes |= {"linear": (7, 24), "free": (5, 7)}
        for name, shape in shapes.items():
            values = torch.randint(-127, 128, shape, dtype=torch.int8)
            self.weights[name] = nn.Parameter(values, requires_grad=False)
            self.register_buffer(f"{name}_scales", torch.rand(shape[0]) / 50 + 0.01)
            self.register_buffer(f"{name}_zeros", torch.zeros(shape[0], dtype=torch.int64))
        self.bias = nn.Parameter(torch.randn(7))

    def _weight(self, name: str) -> torch.Tensor:
        scales, zeros = (getattr(self, f"{name}_{kind}") for kind in ("scales", "zeros"))
        return torch.as_tensor(
            torch.ops.quantized_decomposed.dequantize_per_channel(
                self.weights[name], scales, zeros, 0, -127, 127, torch.int8
            )
        )

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        conv, relu = nn.functional.conv2d, nn.functional.relu
        image = _passed(x, 0.021, 37, 0, 127, torch.uint8)
        first = _passed(
            relu(conv(image, self._weight("image"), padding=1)), 0.4, -128, -128, 127, torch.int8
        )
        pooled = _passed(
            nn.functional.max_pool2d(first, 2, padding=1), 0.4, -128, -128, 127, torch.int8
        )
        second = conv(nn.functional.pad(pooled, (1, 0, 0, 1)), self._weight("next"))
        second = _passed(second, 1.1, 3, -128, 127, torch.int8)
        grouped = conv(first, self._weight("grouped"), groups=2)
        rows = second.flatten(2).transpose(1, 2)[:, 2:].reshape(-1, 24)
        linear = nn.functional.linear(rows, self._weight("linear"), self.bias)
        ops = torch.ops.quantized_decomposed
        chosen = ops.choose_qparams.tensor(linear, -128, 127, 2**-12, torch.int8)
        signed = (-128, 127, torch.int8)
        dynamic = ops.quantize_per_tensor.tensor(linear, *chosen, *signed)
        free = ops.dequantize_per_tensor.tensor(dynamic, *chosen, *signed)
        return grouped, linear, nn.functional.linear(free, self._weight("free"))


def _passed(x: torch.Tensor, *given: Any) -> torch.Tensor:
    """Numbers that are made integers and back."""
    ops = torch.ops.quantized_decomposed
    return torch.as_tensor(ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *given), *given))


def drawn() -> dict[str, Any]:
    """Of Drawn: the largest error of each output, relative to its largest element, and `_told`."""
    import torch.ao.quantization.fx._decomposed

    from tvm_practice.tvm_export.calling import as_call
    from tvm_practice.tvm_export.config import ExportSettings
    from tvm_practice.tvm_export.export import Export
    from tvm_practice.tvm_export.pipeline import build, import_model, schedule

    torch.manual_seed(5)
    model, x = Drawn().eval(), torch.randn(1, 4, 9, 7)
    settings = ExportSettings.model_validate({"engine": "current"})
    export = import_model(Export.of(as_call(model, (x,)), settings, engine="current"))
    made = schedule(export)
    told = _told(export.stages["optimized"], made.decisions)
    got = build(made).result(x.numpy())
    pairs = zip(got, (each.detach().numpy() for each in model(x)), strict=True)
    return {"errors": [float(np.abs(a - b).max() / np.abs(b).max()) for a, b in pairs], **told}


def operators() -> dict[str, int]:
    """By operator of ONNX Runtime's on bytes, the most steps that a result of it is off."""
    from onnx import helper

    from tests.tvm_export.importers.onnx_functions import single

    random = np.random.default_rng(3)

    def tensor(dtype: str, *shape: int) -> list[np.ndarray]:
        """Bytes, their scale and zero point."""
        limits = np.iinfo(dtype)
        values = random.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        zero = np.array(random.integers(limits.min, limits.max), dtype)
        return [values, np.array(random.uniform(0.01, 0.05), "float32"), zero]

    def out(dtype: str, scale: float) -> list[np.ndarray]:
        return [np.array(scale, "float32"), np.array(np.iinfo(dtype).max // 2, dtype)]

    image = [2, 3, 5, 6]
    found = {}
    cases: Mapping[str, tuple[Sequence[Any], Mapping[str, Any]]] = {
        "QLinearAdd": ([*tensor("uint8", 4, 5), *tensor("uint8", 5), *out("uint8", 0.07)], {}),
        "QLinearMul": ([*tensor("int8", 4, 5), *tensor("int8", 5), *out("int8", 0.2)], {}),
        "QLinearGlobalAveragePool": ([*tensor("uint8", *image), *out("uint8", 0.02)], {}),
        "QLinearAveragePool": (
            [*tensor("uint8", *image), *out("uint8", 0.03)], {"kernel_shape": [2, 2]},
        ),
        "QLinearSigmoid": ([*tensor("uint8", 4, 5), *out("uint8", 1 / 200)], {}),
        "QLinearLeakyRelu": ([*tensor("int8", 4, 5), *out("int8", 0.05)], {"alpha": 0.2}),
        "QLinearSoftmax": (
            [*tensor("uint8", 4, 5), np.array(1 / 256, "float32"), np.array(0, "uint8")],
            {"axis": -1},
        ),
        "QLinearConcat": (
            [*out("uint8", 0.05), *tensor("uint8", 2, 5), *tensor("uint8", 3, 5)], {"axis": 0},
        ),
        "QLinearWhere": (
            [random.random((4, 5)) > 0.5, *tensor("uint8", 4, 5), *tensor("uint8", 5),
             *out("uint8", 0.05)], {},
        ),
    }  # fmt: skip
    for name, (inputs, given) in cases.items():
        made = single(name, inputs, domain="com.microsoft", **given)
        if name == "QLinearSoftmax":
            made[0].graph.node[0].attribute.append(helper.make_attribute("opset", 22))
        found[name] = _off(made)
    bias = random.integers(-900, 900, 3).astype("int32")
    values, scale, zero = tensor("uint8", 4, 6)
    weight = random.integers(-127, 128, (3, 6)).astype("int8")
    scales, zeros = random.uniform(0.01, 0.05, 3).astype("float32"), np.zeros(3, "int8")
    bound = {1: scale, 2: zero, 3: weight, 4: scales, 5: zeros, 6: bias}
    for name, more in (("QGemm", out("uint8", 1.5)), ("QGemm to float32", [])):
        bound = {place: each for place, each in bound.items() if place < 7}
        bound |= dict(enumerate(more, 7))
        made = single("QGemm", [values], bound, domain="com.microsoft", transB=1, alpha=0.5)
        found[name] = _off(made)
    return found


def float_operators() -> dict[str, float]:
    """By operator of ONNX Runtime's, what its result in float32 is off of ONNX Runtime's.

    In units of the largest number.
    """
    import onnx

    from tests.tvm_export.importers.onnx_functions import single

    onnxruntime: Any = importlib.import_module("onnxruntime")
    random = np.random.default_rng(4)

    def draw(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype("float32")

    byte, word = (random.integers(0, 256, s).astype("uint8") for s in ((3, 4, 6), (6, 5)))
    x, bias = draw(3, 4, 6), np.ones(5, "float32")
    scale, scales = np.array(0.03, "float32"), random.uniform(0.01, 0.05, 5).astype("float32")
    weight, zero = (word - 128).astype("int8"), np.array(131, "uint8")
    zeros = random.integers(-9, 9, 5).astype("int8")
    blocks = random.integers(0, 256, (5, 2, 8)).astype("uint8")
    of_blocks = random.uniform(0.01, 0.05, 10).astype("float32")
    rows = draw(2, 3, 27)
    bits = {"K": 27, "N": 5, "bits": 4, "block_size": 16}
    cases: Mapping[str, tuple[str, Sequence[Any], Mapping[int, Any], Mapping[str, Any]]] = {
        "integers": ("MatMulIntegerToFloat", [byte], {1: weight, 2: scale, 3: scale}, {}),
        "integers by column": (
            "MatMulIntegerToFloat",
            [byte],
            {1: weight, 2: scale, 3: scales, 4: zero, 5: zeros, 6: bias},
            {},
        ),
        "quantized first": ("DynamicQuantizeMatMul", [x], {1: word, 2: scale, 3: zero}, {}),
        "quantized first, by column": (
            "DynamicQuantizeMatMul",
            [x],
            {1: weight, 2: scales, 3: zeros, 4: bias},
            {},
        ),
        "blocks": ("MatMulNBits", [rows], {1: blocks.reshape(5, 2, 8), 2: of_blocks}, bits),
        "blocks with zero points": (
            "MatMulNBits",
            [rows],
            {1: blocks, 2: of_blocks, 3: random.integers(0, 256, 5).astype("uint8")},
            bits,
        ),
        "fused product": ("FusedMatMul", [x, draw(5, 6)], {}, {"transB": 1, "alpha": 0.5}),
        "fused product of columns": ("FusedMatMul", [x, draw(3, 4, 5)], {}, {"transA": 1}),
        "fused product, scaled": ("FusedMatMul", [x, draw(6, 5)], {}, {"alpha": 0.5}),
        "fused convolution": (
            "FusedConv",
            [draw(1, 3, 6, 6)],
            {1: draw(4, 3, 3, 3), 2: draw(4), 3: draw(1, 4, 6, 6)},
            {"activation": "Relu", "pads": [1, 1, 1, 1]},
        ),
        "fused convolution without bias": (
            "FusedConv",
            [draw(1, 3, 6, 6)],
            {1: draw(4, 3, 3, 3)},
            {"activation": "LeakyRelu", "activation_params": [0.25]},
        ),
        "fused Gemm": (
            "FusedGemm",
            [draw(3, 8)],
            {1: draw(4, 8), 2: draw(4)},
            {"activation": "LeakyRelu", "activation_alpha": 0.25, "transB": 1, "alpha": 0.5},
        ),
        "quick gelu": ("QuickGelu", [x], {}, {"alpha": 1.5}),
        "root mean square": ("SimplifiedLayerNormalization", [x], {1: draw(6)}, {"epsilon": 1e-3}),
        "root mean square of a sum": (
            "SkipSimplifiedLayerNormalization",
            [x, draw(*x.shape)],
            {2: draw(x.shape[-1]), 3: draw(x.shape[-1])},
            {},
        ),
    }
    found = {}
    for name, (operator, inputs, bound, given) in cases.items():
        domain = "" if operator.startswith("Simplified") else "com.microsoft"
        model, arrays = single(operator, inputs, bound, domain=domain, opset=17, **given)
        model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
        session = onnxruntime.InferenceSession(model.SerializeToString())
        names = [each.name for each in model.graph.input]
        [want] = session.run(None, dict(zip(names, arrays, strict=True)))
        *_, run = built(model)
        [got] = run(arrays)
        assert got.dtype == want.dtype and got.shape == want.shape, (name, got.shape, want.shape)
        found[name] = float(np.abs(got - want).max() / np.abs(want).max())
    return found


def _off(case: tuple[Any, list[np.ndarray]]) -> int:
    import onnx

    onnxruntime: Any = importlib.import_module("onnxruntime")
    model, inputs = case
    last = model.graph.node[0].input[-1]  # a zero point, or the bias of a result in float32
    code = next((each.data_type for each in model.graph.initializer if each.name == last), 0)
    types = {each.name: each.type.tensor_type.elem_type for each in model.graph.input}
    kind = types.get(last, code)
    is_word = kind == onnx.TensorProto.INT32
    model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT if is_word else kind
    options = onnxruntime.SessionOptions()
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    names = [each.name for each in model.graph.input]
    [want] = session.run(None, dict(zip(names, inputs, strict=True)))
    *_, run = built(model)
    [got] = run(inputs)
    assert got.dtype == want.dtype, (got.dtype, want.dtype)
    off = np.abs(got.astype("float64") - want.astype("float64")).max()
    return int(np.ceil(off - 1e-4))
