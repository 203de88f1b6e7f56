"""Functions that the tests of index checks call in a child process, on the current engine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROWS = 100
Operator = Callable[[Any, torch.Tensor], torch.Tensor]
# Each is given a module with a table and an embedding, both of ROWS x 8, and a tensor of indices.
OPERATORS: dict[str, Operator] = {
    "embedding": lambda model, i: model.embedding(i),
    "index": lambda model, i: model.table[i],
    "index of two axes": lambda model, i: model.table[i, i % 8],
    "index of a later axis": lambda model, i: model.table.T[:, i],
    "gather": lambda model, i: torch.gather(model.table, 0, i),
    "index_select": lambda model, i: torch.index_select(model.table, 0, i.flatten()),
    "scatter": lambda model, i: torch.scatter(model.table, 0, i, model.table[:3, :5]),
    "index_put": lambda model, i: model.table.index_put((i,), torch.ones(8)),
    "nll_loss": lambda model, i: torch.nn.functional.nll_loss(model.table.T, i.flatten()[:8]),
    "take": lambda model, i: torch.take(model.table, i * 8),
    "computed": lambda model, i: model.embedding(i.flip(0) * 2 - i.flip(0)),
}
# Values in the place of one index. The last is 5 in 32 bits.
VALUES = (-ROWS - 1, -ROWS, -1, 0, ROWS - 1, ROWS, 10**6, 2**32 + 5)


class Model(torch.nn.Module):
    def __init__(self, operator: Operator):
        super().__init__()
        self._operator = operator
        self.table = torch.nn.Parameter(torch.randn(ROWS, 8))
        self.embedding = torch.nn.Embedding(ROWS, 8)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        return self._operator(self, indices)


def _answer(work: Callable[..., Any], *given: Any) -> tuple[Any, str | None]:
    try:
        return work(*given), None
    except (IndexError, RuntimeError, ValueError) as error:
        return None, f"{type(error).__name__}: {error}"


def _run(runner: Any, *inputs: np.ndarray) -> np.ndarray:
    """A runner's only output."""
    runner.set_inputs(inputs)
    runner.run()
    [output] = runner.outputs()
    return np.asarray(output)


def compared() -> dict[str, dict[int, dict[str, Any]]]:
    """By operator and index: PyTorch's error, the artifact's, and whether values are the same."""
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module

    found: dict[str, dict[int, dict[str, Any]]] = {}
    for name, operator in OPERATORS.items():
        model = Model(operator).eval()
        example = torch.randint(0, ROWS, (3, 5))
        built = compile_pytorch_module(model, ExportConfig(example_input={"indices": example}))
        for value in VALUES:
            indices = example.clone()
            indices[1, 2] = value
            with torch.inference_mode():
                want, refused = _answer(model, indices)
            got, error = _answer(built, indices)
            same = got is not None and want is not None and bool(np.allclose(got[0], want))
            found.setdefault(name, {})[value] = {"pytorch": refused, "tvm": error, "same": same}
    return found


def open_extents(folder: str) -> dict[str, Any]:
    """A gather from an input with an open extent, at several of its values.

    Leaves it as artifacts in `folder`, and beside them as C++ wants it: model.so, model.json.
    """
    from tvm_practice.tvm_export import ExportConfig, compile_pytorch_module, export_artifacts
    from tvm_practice.tvm_export.artifacts import load_artifacts
    from tvm_practice.tvm_export.profiling import operators_of
    from tvm_practice.tvm_export.writing import write_json

    class Gather(torch.nn.Module):
        def forward(
            self, table: torch.Tensor, scale: torch.Tensor, rows: torch.Tensor
        ) -> torch.Tensor:
            return torch.index_select(table * scale[:, None], 0, rows)

    example = (torch.randn(6, 4), torch.randn(6), torch.tensor([1, 5, 0]))
    shapes = {"table": ("n", 4), "scale": ("n",), "rows": ("m",)}
    config = ExportConfig(example_input=example, input_shapes=shapes)
    built = compile_pytorch_module(Gather(), config)
    built.compiled.export_library(str(Path(folder) / "model.so"))
    kinds = dict.fromkeys(shapes, "float32") | {"rows": "int64"}
    inputs = [{"name": name, "shape": shapes[name], "dtype": kinds[name]} for name in shapes]
    outputs = [{"name": "output", "shape": ["m", 4], "dtype": "float32"}]
    write_json(Path(folder) / "model.json", {"inputs": inputs, "outputs": outputs})
    again = load_artifacts(export_artifacts(built, folder))
    schedules = {each["name"]: each["schedule"] for each in operators_of(built)}
    found: dict[str, Any] = {"schedule": schedules["check_indices"]}
    for height, rows in ((9, [8, 2, 2, 7]), (1, [0]), (4, [3]), (4, [4]), (4, [-1])):
        table, scale = torch.randn(height, 4), torch.randn(height)
        got, error = _answer(again, table, scale, torch.tensor(rows))
        scaled = (table * scale[:, None]).numpy()
        same = got is not None and bool(np.array_equal(got[0], scaled[rows]))
        found[f"{rows} of {height}"] = {"same": same, "error": error}
    unequal = (torch.randn(3, 4), torch.randn(2), torch.tensor([0]))
    found["unequal"] = _answer(again, *unequal)[1]
    found["rank"] = _answer(again, torch.randn(3), *unequal[1:])[1]
    return found


def in_relax() -> dict[str, Any]:
    """Operators that PyTorch's importer does not emit: errors by name, and a constant's."""
    import tvm
    from tvm import relax

    from tvm_practice.tvm_export.run_time_checks.indices import with_index_checks
    from tvm_practice.tvm_export.running import RelaxRunner

    data = np.arange(24, dtype="float32").reshape(4, 6)

    def run(make: Callable[[Any, Any], Any], indices: np.ndarray) -> Any:
        builder = relax.BlockBuilder()
        table = relax.Var("table", relax.TensorType(data.shape, "float32"))
        given = relax.Var("indices", relax.TensorType(indices.shape, str(indices.dtype)))
        with builder.function("main", [table, given]):
            with builder.dataflow():
                result = builder.emit_output(make(table, given))
            builder.emit_func_output(result)
        module = with_index_checks(builder.get(), ["table", "where"])
        runner = RelaxRunner(tvm.compile(module, tvm.target.Target({"kind": "llvm"})))
        got, error = _answer(_run, runner, data, indices)
        return (None if got is None else got.tolist()), error

    def gather_nd(table: Any, given: Any) -> Any:
        return relax.op.gather_nd(table, given)

    def constant_rows(table: Any, given: Any) -> Any:
        return relax.op.take(table, relax.const(np.array([0, 4]), "int64"), axis=0)

    found = {
        "coordinates": run(gather_nd, np.array([[3, 5], [0, 1]])),
        "a row too far": run(gather_nd, np.array([[4, 5], [0, 1]])),
        "a column too far": run(gather_nd, np.array([[3, 5], [0, 6]])),
    }
    try:
        run(constant_rows, np.array([0]))
    except Exception as error:
        found["constant"] = (None, f"{type(error).__name__}: {error}")
    return found


def onnx_gather(folder: str) -> dict[int, Any]:
    """What a library made from an ONNX file with a Gather says to each index."""
    import onnx
    from onnx import helper

    from tvm_practice.tvm_export.onnx_library import LIBRARY, METADATA, compile_file
    from tvm_practice.tvm_export.running import RelaxRunner
    from tvm_practice.tvm_export.writing import write_json

    table = np.arange(20, dtype="float32").reshape(5, 4)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "token ids"], ["out"])],
        "gather",
        [helper.make_tensor_value_info("token ids", onnx.TensorProto.INT64, (2,))],
        [helper.make_tensor_value_info("out", onnx.TensorProto.FLOAT, (2, 4))],
        [onnx.numpy_helper.from_array(table, "table")],
    )
    file = Path(folder) / "gather.onnx"
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), file)
    write_json(Path(folder) / METADATA, compile_file(str(file), folder, {}))
    runner = RelaxRunner.from_file(str(Path(folder) / LIBRARY))
    found = {}
    for value in (-6, -5, 4, 5):
        got, error = _answer(_run, runner, np.array([value, 1]))
        same = got is not None and bool(np.array_equal(got, table[[value, 1]]))
        found[value] = {"same": same, "error": error}
    return found
