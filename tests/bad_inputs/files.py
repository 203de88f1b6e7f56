"""The files that stand where each bad input is given."""

import shutil
from pathlib import Path

import onnx
from onnx import TensorProto, helper

_TEXTS = {
    "good.json": '{"model": {"loader": "odd:plain"}, "measure": {"warmup": 1, "repeats": 2}}',
    "broken.json": "{[",
    "list.json": "[1, 2]",
    "empty.json": "",
    "text.json": '"only text"',
    "deep.json": "[" * 100_000,
    "no_loader.json": '{"model": {}}',
    "unknown_key.json": '{"modle": {"loader": "odd:plain"}}',
    "tab.yaml": "model:\n\tloader: odd:plain\n",
    "reference.yaml": 'model: {loader: "${nowhere}"}\n',
    "circle.yaml": 'model: {loader: "${model.loader}"}\n',
    "metrics.json": '{"pipeline": {}, "latency": {"mean": 1.0}, "model": {"loader": "odd:plain"}}',
    "metadata.json": '{"engine": "current", "target": "llvm", "latency": {"mean": 1.0}}',
    "microseconds.json": '{"engine": "current", "latency": {"mean": 1000.0, "unit": "us"}}',
    "negative.json": '{"engine": "current", "latency": {"mean": -1.0}}',
    "infinite.json": '{"engine": "current", "latency": {"mean": Infinity}}',
    "unmeasured.json": '{"engine": "current", "latency": null}',
    "later.json": '{"schema_version": 99, "engine": "current", "latency": {"mean": 1.0}}',
    "later_run.json": '{"schema_version": 99, "pipeline": {}, "latency": {"mean": 1.0}}',
    "of_later/metadata.json": '{"schema_version": 99, "engine": "current", "model": "odd:plain"}',
    "of_another/metadata.json": '{"schema_version": 1, "engine": "current", "model": "odd:other"}',
    "not_an_export/metadata.json": '{"name": "a package"}',
    "half_an_export/deploy_lib.tar": "",
    "broken_export/metadata.json": "{",
    "a_file": "here\n",
    "wrong.npz": "no archive\n",
    "broken_syntax.py": "def plain(:\n",
    "needs_package.py": "import a_package_that_is_missing\n",
    "raises_when_imported.py": 'raise RuntimeError("set DATA_ROOT first")\n',
    "exits_when_imported.py": 'import sys\nsys.exit("no licence")\n',
    "text.onnx": "a text, and not a short one\n",
    "phone.tflite": "\x1c\0\0\0TFL3\0\0\0\0",
    "jitted.mlir": "module @jit_f {\n  %0 = stablehlo.add %a, %a : tensor<2xf32>\n}\n",
    "saved/saved_model.pb": "\n",
    "layers.keras": "PK\n",
    "empty.onnx": "",
    "records.log": "no record\n",
    "outcomes.json": "{",
}


def write(folder: Path) -> None:
    """Write all of them to `folder`."""
    for name, text in _TEXTS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    shutil.copy(Path(__file__).with_name("odd.py"), folder)
    _onnx(folder / "relu.onnx", "Relu")
    _onnx(folder / "unknown.onnx", "Relux")
    _onnx(folder / "domain.onnx", "Relu", domain="a.company")
    _onnx(folder / "symbolic.onnx", "Relu", shape=("batch", 4))
    _onnx(folder / "opset.onnx", "Relu", opset=999)
    _onnx(folder / "ir.onnx", "Relu", ir=99)
    _onnx(folder / "no_nodes.onnx", None)
    _onnx(folder / "undefined.onnx", "Relu", reads="nowhere")


def _onnx(
    file: Path,
    operator: str | None,
    *,
    reads: str = "x",
    shape: tuple[int | str, ...] = (2, 4),
    opset: int = 17,
    ir: int = 8,
    domain: str = "",
) -> None:
    """Write a model of one operator."""
    nodes = [helper.make_node(operator, [reads], ["y"], domain=domain)] if operator else []
    x, y = (helper.make_tensor_value_info(each, TensorProto.FLOAT, shape) for each in "xy")
    graph = helper.make_graph(nodes, "one", [x], [y])
    opsets = [helper.make_opsetid(each, opset) for each in {"", domain}]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=ir), str(file))
