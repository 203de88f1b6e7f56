"""`compile_onnx`: what it compiles is what ONNX Runtime computes, and what it says to mistakes."""

import importlib.util
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.test_command_lines import run
from tvm_practice import engines
from tvm_practice.tvm_export.errors import BadInput
from tvm_practice.tvm_export.importers.onnx import input_tensors, read_model, value_arrays
from tvm_practice.tvm_export.onnx_library import check

onnx: Any = pytest.importorskip("onnx")
helper = onnx.helper
FLOAT = onnx.TensorProto.FLOAT
SYMBOLIC = ("batch", 3, "height", "height")
SHAPE = ["--shape", "input.1=2x3x9x9"]

no_runtime = pytest.mark.skipif(
    importlib.util.find_spec("onnxruntime") is None,
    reason="no onnxruntime",
)


def value(name: str, shape: tuple[int | str, ...] | None, dtype: int = FLOAT) -> Any:
    return helper.make_tensor_value_info(name, dtype, shape)


def save(file: Path, nodes: list[Any], inputs: list[Any], *outputs: str, **arrays: Any) -> Path:
    """Write a model of `nodes`; outputs are of the first input's type, `arrays` are weights."""
    weights = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
    given = [value(name, None) for name in outputs]
    graph = helper.make_graph(nodes, "tested", inputs, given, weights)
    opset = [helper.make_opsetid("", 18)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), file)
    return file


def convolution(file: Path, shape: tuple[int | str, ...] = SYMBOLIC) -> Path:
    """Convolution, batch normalization and ReLU, whose input has a name of the old exporter."""
    random = np.random.default_rng(0)

    def draw(*extents: int) -> np.ndarray:
        return random.standard_normal(extents, np.float32)

    nodes = [
        helper.make_node("Conv", ["input.1", "w", "b"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "var"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("ReduceMean", ["r", "axes"], ["m"], keepdims=0),
    ]
    return save(
        file, nodes, [value("input.1", shape)], "r", "m",
        w=draw(8, 3, 3, 3), b=draw(8), scale=draw(8), shift=draw(8), mean=draw(8),
        var=np.abs(draw(8)), axes=np.array([2, 3]),
    )  # fmt: skip


@pytest.mark.slow
@no_runtime
def test_a_model_is_compiled_checked_and_loadable(tmp_path: Path) -> None:
    file = convolution(tmp_path / "convolution.onnx")
    done = run("compile_onnx", file.name, "--out", "a/b", *SHAPE, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    metadata = json.loads(done.stdout)
    assert metadata == json.loads((tmp_path / "a/b/model.json").read_text())
    assert metadata["inputs"] == [{"name": "input.1", "shape": [2, 3, 9, 9], "dtype": "float32"}]
    assert metadata["outputs"] == [
        {"name": "r", "shape": [2, 8, 9, 9], "dtype": "float32"},
        {"name": "m", "shape": [2, 8], "dtype": "float32"},
    ]
    assert metadata["check"]["status"] == "ok" and 0 < metadata["check"]["max_error"] < 1e-4
    assert metadata["schema_version"] == 1 and metadata["versions"]["apache-tvm"]
    assert {each.name for each in (tmp_path / "a/b").iterdir()} == {"model.so", "model.json", "cpp"}
    assert (tmp_path / "a/b/cpp/tvm_model.h").exists()


@pytest.mark.slow
@no_runtime
def test_the_check_finds_a_wrong_library(tmp_path: Path) -> None:
    """The library of one model is no library of another."""
    file = convolution(tmp_path / "one.onnx", (1, 3, 5, 5))
    options = ["--out", "out", "--no-check", "--no-cpp"]
    done = run("compile_onnx", "one.onnx", *options, folder=tmp_path)
    assert done.returncode == 0 and "off: --no-check" in done.stdout, done.stdout + done.stderr
    assert "cmake" not in done.stdout and not (tmp_path / "out/cpp").exists()
    model = onnx.load(file)
    weights = onnx.numpy_helper.to_array(model.graph.initializer[0])
    changed = onnx.numpy_helper.from_array(weights * np.float32(1.01), "w")
    model.graph.initializer[0].CopyFrom(changed)
    onnx.save(model, tmp_path / "other.onnx")
    inputs = json.loads((tmp_path / "out/model.json").read_text())["inputs"]
    library = str(tmp_path / "out" / "model.so")
    judged = {}
    with engines.Session("current") as session:
        for name in ("one", "other"):
            given = {"file": str(tmp_path / f"{name}.onnx"), "library": library}
            given |= {"inputs": inputs, "target": "llvm"}
            judged[name] = session.call(f"{check.__module__}:check", given)
    assert judged["one"]["status"] == "ok"
    assert (
        judged["other"]["status"] == "failed" and "elements are wrong" in judged["other"]["reason"]
    )


def unknown_operator(file: Path) -> Path:
    nodes = [
        helper.make_node("Det", ["x"], ["d"]),
        helper.make_node("Relu", ["d"], ["r"]),
        helper.make_node("Unheard", ["r"], ["y"], domain="a.company"),
    ]
    return save(file, nodes, [value("x", (2, 2))], "y")


def refused_operator(file: Path) -> Path:
    """TopK of a k that is an input."""
    nodes = [helper.make_node("TopK", ["x", "k"], ["v", "i"])]
    inputs = [value("x", (4,)), value("k", (1,), onnx.TensorProto.INT64)]
    return save(file, nodes, inputs, "v")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "arguments", "code", "message"),
    [
        (unknown_operator, [], 1, "Unheard"),
        (refused_operator, [], 1, "--value k="),
        (convolution, [], 2, "batch×3×height×height"),
        (convolution, [*SHAPE, "--target", "llvmm"], 2, "llvmm"),
        (convolution, [*SHAPE, "--target", "hexagon"], 2, "for llvm, cuda"),
        (convolution, [*SHAPE, "--target", "llvm -mtriple=riscv64-linux-gnu"], 1, "set CXX"),
    ],
)
def test_what_the_child_refuses_is_one_line(
    make: Any, arguments: list[str], code: int, message: str, tmp_path: Path
) -> None:
    make(tmp_path / "model.onnx")
    done = run("compile_onnx", "model.onnx", "--out", "out", *arguments, folder=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert not done.stdout and not list(tmp_path.rglob("*model.so"))


@pytest.mark.slow
@no_runtime
def test_an_input_that_chooses_shapes_is_fixed(tmp_path: Path) -> None:
    refused_operator(tmp_path / "top.onnx")
    done = run("compile_onnx", "top.onnx", "--out", "out", "--value", "k=3", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    metadata = json.loads((tmp_path / "out/model.json").read_text())
    assert [each["name"] for each in metadata["inputs"]] == ["x"]
    assert metadata["outputs"] == [{"name": "v", "shape": [3], "dtype": "float32"}]
    assert metadata["values"] == {"k": [3]} and metadata["check"]["status"] == "ok"


@pytest.mark.parametrize(
    ("values", "message"),
    [({"kk": [1]}, "did you mean k"), ({"k": [1, 2]}, "--value k: 2 numbers, the input is 1")],
)
def test_values_that_do_not_fit(
    values: dict[str, list[float]], message: str, tmp_path: Path
) -> None:
    model = read_model(str(refused_operator(tmp_path / "top.onnx")))
    with pytest.raises(BadInput, match=message):
        value_arrays(model, values)


@pytest.mark.slow
def test_a_library_for_cuda_needs_no_gpu(tmp_path: Path) -> None:
    convolution(tmp_path / "model.onnx")
    arguments = ["--target", "cuda -arch=sm_80", "--no-check", "--out", "out", *SHAPE]
    done = run("compile_onnx", "model.onnx", *arguments, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    described = json.loads((tmp_path / "out/model.json").read_text())
    assert "sm_80" in described["target"] and (tmp_path / "out/model.so").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.onnx", "--out", "out"], "nothing.onnx: no such file"),
        ([".", "--out", "out"], "it is a folder"),
        (["here.onnx", "--out", "out", "--shape", "x=1,3"], "'x=1,3'"),
        (["here.onnx", "--out", "out", "--shape", "x=0"], "'x=0'"),
        (["here.onnx", "--out", "out", "--value", "x=a"], "'x=a'"),
        (["here.onnx"], "--out"),
    ],
)
def test_a_mistake_is_found_at_once(arguments: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "here.onnx").touch()
    done = run("compile_onnx", *arguments, folder=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "content", [b"", b"a text, and not a short one\n", b"\x08\x09", b"\0" * 99]
)
def test_what_is_no_onnx_file(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    with pytest.raises(BadInput, match=r"model\.onnx is not an ONNX model"):
        read_model(str(file))


def test_weights_that_are_not_there(tmp_path: Path) -> None:
    model = onnx.load(convolution(tmp_path / "model.onnx"))
    onnx.save(
        model, tmp_path / "model.onnx", save_as_external_data=True, location="w", size_threshold=0
    )
    assert len(read_model(str(tmp_path / "model.onnx")).graph.initializer) == 7
    (tmp_path / "w").unlink()
    with pytest.raises(BadInput, match="external data does not load"):
        read_model(str(tmp_path / "model.onnx"))


def tokens(*shapes: tuple[int | str, ...] | None) -> Any:
    inputs = [value(f"ids{index}", each) for index, each in enumerate(shapes)]
    nodes = [helper.make_node("Sum", [each.name for each in inputs], ["y"])]
    return helper.make_model(helper.make_graph(nodes, "g", inputs, [value("y", None)]))


@pytest.mark.parametrize(
    ("shapes", "given", "found"),
    [
        ([(2, 3)], {}, [[2, 3]]),
        ([()], {}, [[]]),
        ([("n", 3)], {"ids0": [4, 3]}, [[4, 3]]),
        # One shape tells what the symbols of the others are, in either order.
        ([("n", "m"), ("m", "n")], {"ids0": [4, 3]}, [[4, 3], [3, 4]]),
        ([("n", "m"), ("m", "n")], {"ids1": [4, 3]}, [[3, 4], [4, 3]]),
        ([None], {"ids0": [7]}, [[7]]),
        ([(0, 3)], {"ids0": [7, 3]}, [[7, 3]]),  # some exporters write 0 for unknown
    ],
)
def test_shapes(shapes: list[Any], given: dict[str, list[int]], found: list[list[int]]) -> None:
    assert [each["shape"] for each in input_tensors(tokens(*shapes), given)] == found


@pytest.mark.parametrize(
    ("shapes", "given", "message"),
    [
        ([("n", 3)], {}, r"ids0 .* it is n×3; .* --shape ids0=1x3"),
        ([("n", 3), ("n", "k")], {"ids0": [5, 3]}, r"ids1 .* --shape ids1=5x1"),
        ([None], {}, "ids0 has no shape"),
        ([("n", 3)], {"ids0": [4, 2]}, r"ids0=4x2 does not fit the input, which is n×3$"),
        ([("n", 3)], {"ids0": [3]}, "does not fit"),
        ([(2, 3)], {"ids0": [4, 3]}, "does not fit"),
        ([("n",), ("n",)], {"ids0": [4], "ids1": [5]}, r"ids1=5 .* with n = 4"),
        ([("n", 3)], {"ids": [4, 3]}, "no such input, only ids0; did you mean ids0"),
    ],
)
def test_shapes_that_are_refused(
    shapes: list[Any], given: dict[str, list[int]], message: str
) -> None:
    with pytest.raises(BadInput, match=message):
        input_tensors(tokens(*shapes), given)


def test_weights_listed_as_inputs_are_none() -> None:
    """As files of IR version 3 have it."""
    model = tokens((2, 3), (2, 3))
    model.graph.initializer.append(helper.make_tensor("ids1", FLOAT, (2, 3), [0.0] * 6))
    assert [each["name"] for each in input_tensors(model, {})] == ["ids0"]


@pytest.mark.parametrize(
    ("opset", "ir", "said"),
    [(999, 8, "has operators of opset 999; onnx"), (17, 99, "has IR version 99; onnx")],
)
def test_a_version_that_is_not_out_is_refused_before_work(
    opset: int, ir: int, said: str, tmp_path: Path
) -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])],
        "relu",
        [value("x", (2,))],
        [value("y", (2,))],
    )
    opsets = [helper.make_opsetid("", opset)]
    onnx.save(
        helper.make_model(graph, opset_imports=opsets, ir_version=ir), tmp_path / "model.onnx"
    )
    with pytest.raises(BadInput, match=said):
        read_model(str(tmp_path / "model.onnx"))
