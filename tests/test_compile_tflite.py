"""`compile_onnx` of TFLite files: what it compiles is what TFLite's interpreter computes."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_command_lines import run
from tests.tflite_files import classifier, quantized, unknown_operator
from tvm_practice import engines
from tvm_practice.tvm_export.onnx_library import check

_PACKAGES = ("tflite", "ai_edge_litert")
missing = [each for each in _PACKAGES if importlib.util.find_spec(each) is None]
installed = pytest.mark.skipif(bool(missing), reason=f"no {' and no '.join(missing)}")


@pytest.mark.slow
@installed
@pytest.mark.parametrize("batch", [1, 3])
def test_a_model_is_compiled_and_checked(batch: int, tmp_path: Path) -> None:
    classifier(tmp_path / "model.tflite")
    shape = [] if batch == 1 else ["--shape", f"image:0={batch}x9x9x3"]
    done = run("compile_onnx", "model.tflite", "--out", "out", *shape, "--json", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    metadata = json.loads(done.stdout)
    assert metadata["inputs"] == [
        {"name": "image:0", "shape": [batch, 9, 9, 3], "dtype": "float32"}
    ]
    assert metadata["outputs"] == [
        {"name": "probabilities", "shape": [batch, 10], "dtype": "float32"}
    ]
    assert metadata["check"]["status"] == "ok" and 0 < metadata["check"]["max_error"] < 1e-5
    assert metadata["opset"] is None
    assert (tmp_path / "out/cpp/tvm_model.h").exists()


@pytest.mark.slow
@installed
def test_the_check_finds_a_wrong_library(tmp_path: Path) -> None:
    """The library of one model is no library of another."""
    classifier(tmp_path / "one.tflite")
    other = classifier(tmp_path / "other.tflite", changed=1.5)
    done = run("compile_onnx", "one.tflite", "--out", "out", "--no-cpp", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "as TFLite's interpreter, largest error" in done.stdout
    inputs = json.loads((tmp_path / "out/model.json").read_text())["inputs"]
    given = {"library": str(tmp_path / "out/model.so"), "inputs": inputs, "target": "llvm"}
    with engines.Session("current") as session:
        judged = session.call(f"{check.__module__}:check", {"file": str(other), **given})
    assert judged["status"] == "failed" and "elements are wrong" in judged["reason"]


@pytest.mark.slow
@installed
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["known.tflite", "--shape", "image:0=1x8x9x3"], 2, "is not ?x9x9x3"),
        (["known.tflite", "--shape", "picture=1x9x9x3"], 2, "only image:0"),
        (["known.tflite", "--value", "image:0=1"], 2, "--value fixes inputs of ONNX files"),
        (["unknown.tflite"], 1, "HASHTABLE"),
        (["halves.tflite"], 2, "is quantized (tensor x)"),
        (["cut.tflite"], 2, "tf2onnx.convert --tflite cut.tflite"),
    ],
)
def test_what_is_refused_is_one_line(
    arguments: list[str], code: int, message: str, tmp_path: Path
) -> None:
    whole = classifier(tmp_path / "known.tflite")
    unknown_operator(tmp_path / "unknown.tflite")
    quantized(tmp_path / "halves.tflite")
    (tmp_path / "cut.tflite").write_bytes(whole.read_bytes()[:8])
    done = run("compile_onnx", *arguments, "--out", "out", folder=tmp_path)
    assert done.returncode == code, done.stdout + done.stderr
    assert message in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr
    assert not list(tmp_path.rglob("*model.so"))


@pytest.mark.skipif(not missing, reason="both packages are installed")
def test_a_missing_package_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "phone.tflite").write_bytes(b"\x1c\0\0\0TFL3\0\0\0\0")
    done = run("compile_onnx", "phone.tflite", "--out", "out", folder=tmp_path)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    if "tflite" in missing:
        assert "pip install 'tvm-practice[tflite]', which reads it" in done.stderr
    assert "python -m tf2onnx.convert --tflite phone.tflite" in done.stderr


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="no jax")
def test_the_importer_of_stablehlo_still_stops(tmp_path: Path) -> None:
    """`compile_onnx` refuses StableHLO: once this passes, it need not."""
    program = (
        "from tvm_practice import engines; engines.activate('current')\n"
        "import jax; from tvm.relax.frontend.stablehlo import from_stablehlo\n"
        "text = jax.jit(lambda x: x + x).lower(jax.numpy.ones(2)).as_text(dialect='stablehlo')\n"
        "open('jitted.mlir', 'w').write(text); from_stablehlo(text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode != 0 and "isinstance" in done.stderr, done.stderr
    done = run("compile_onnx", "jitted.mlir", "--out", "out", folder=tmp_path)
    assert done.returncode == 2 and "is StableHLO" in done.stderr
