"""Models as C: compiled by this machine's compiler, run, and for other machines emulated."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from tests.pages import run_blocks
from tests.test_command_lines import run
from tvm_practice import engines
from tvm_practice.engines.host import flags, own_architecture
from tvm_practice.tvm_export import cross
from tvm_practice.tvm_export.c_source.writing import name_of
from tvm_practice.tvm_export.errors import Missing
from tvm_practice.tvm_export.request import ExportRequest

_FUNCTIONS = "tests.tvm_export.c_source.functions"
_STRICT = ("-std=c11", "-D_POSIX_C_SOURCE=200809L", "-Wall", "-Wextra", "-Werror", "-O1")
OTHERS = {
    "aarch64": "llvm -mtriple=aarch64-linux-gnu -mcpu=cortex-a72",
    "raspberry-pi-4": "raspberry-pi-4",
    "riscv64": "llvm -mtriple=riscv64-linux-gnu -mattr=+m,+a,+f,+d,+c",
    "wasm32": "llvm -mtriple=wasm32-unknown-wasi -mattr=+simd128",
}


def _call(function: str, **arguments: Any) -> Any:
    return engines.call(engines.CURRENT, f"{_FUNCTIONS}:{function}", arguments)


def _results(data: bytes) -> tuple[np.ndarray, bytes]:
    """The probabilities, which may be rounded in another way, and what must be equal."""
    return np.frombuffer(data, "float32", 10), data[40:]


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
def test_a_model_is_a_c_function(tmp_path: Path) -> None:
    """Its C compiles without a warning; the program needs no TVM, and refuses a wrong index."""
    found = _call("written", folder=str(tmp_path), target="llvm")
    assert found["not_run"] is None and found["verification"]["verified"]
    folder, program = tmp_path / "net", tmp_path / "program"
    names = {each.name for each in folder.iterdir()}
    assert names == {
        *("net.h", "net.c", "net_kernels.o", "net.weights"),
        *("main.c", "model_runtime.h", "model_runtime.c"),
    }
    assert (folder / "net.weights").stat().st_size == found["weights"]
    files = [str(each) for each in sorted(folder.iterdir()) if each.suffix in (".c", ".o")]
    command = ["cc", *_STRICT, *files, "-lm", "-pthread", "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    inputs = (tmp_path / "inputs").read_bytes()
    wanted, exactly = _results((tmp_path / "outputs").read_bytes())
    for threads in ("1", "2", "5"):
        given = [str(program), str(folder / "net.weights"), threads]
        told = subprocess.run(given, input=inputs, capture_output=True)
        got, rest = _results(told.stdout)
        assert told.returncode == 0, told.stderr
        assert np.allclose(got, wanted, rtol=1e-5, atol=1e-6) and rest == exactly
    wrong = inputs[:-8] + np.array(10, "int64").tobytes()
    told = subprocess.run(given, input=wrong, capture_output=True, text=False)
    assert told.returncode == 1 and b"IndexError: input_1" in told.stderr, told.stderr
    told = subprocess.run([program, "nowhere"], input=inputs, capture_output=True)
    assert told.returncode == 1 and told.stderr == b"no weights\n"


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.skipif(
    own_architecture() != "x86_64" or "amx_tile" in flags(), reason="not older than Sapphire Rapids"
)
def test_a_program_for_a_newer_processor_is_not_run(tmp_path: Path) -> None:
    found = _call("written", folder=str(tmp_path), target="llvm -mcpu=sapphirerapids")
    assert found["not_run"].startswith("this processor has no amx-bf16") and found["program"]


def test_what_cannot_be_written_as_c_is_said(tmp_path: Path) -> None:
    said = _call("refusals", folder=str(tmp_path))
    assert re.fullmatch(
        r"the model cannot be written as C: \w+ calls tvm\.\S+ of TVM's runtime", said["sorts"]
    )
    assert said["full"].endswith("full holds thesis.tex, which is no model's C")
    assert said["gpu"] == "--c-source is for processors; the target is opencl"
    assert not (tmp_path / "net").exists()


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"engine": "classic"}, "only the current engine writes C"),
        ({"input_shapes": {"x": ("batch", 8)}}, "batch is left open"),
    ],
)
def test_a_request_for_c_that_no_engine_meets(asked: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        ExportRequest.model_validate({"model": "a:b", "artifacts": "a", "c_source": "c", **asked})


@pytest.mark.parametrize(
    ("folder", "name"), [("runs/net", "net"), ("a-b.c", "a_b_c"), ("3d", "model_3d")]
)
def test_the_name_is_the_folders(folder: str, name: str) -> None:
    assert name_of(Path(folder)) == name


@pytest.mark.pages  # zig builds the machine's C library at its first use
@pytest.mark.slow
@pytest.mark.drawn
@pytest.mark.parametrize("machine", OTHERS)
def test_a_model_for_another_machine(machine: str, tmp_path: Path) -> None:
    found = _call("written", folder=str(tmp_path), target=OTHERS[machine])
    if found["not_run"]:
        pytest.skip(found["not_run"])
    assert found["verification"]["verified"] and found["verification"]["max_error"] < 1e-5


@pytest.mark.pages
@pytest.mark.slow
def test_mobilenet_is_small(tmp_path: Path) -> None:
    """Verified on this machine, and at most 300 kB without its weights."""
    try:
        cross.compiler("x86_64-linux-gnu")
    except Missing as missing:
        pytest.skip(str(missing))
    model, short = "tvm_practice.models:load_mobilenet_v2", ("--measure-repeats", "5")
    done = run("run_autotvm", model, *short, "--c-source", "mobilenet", folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verified  the C program" in done.stdout
    [size] = re.findall(r"program +([\d.]+) kB", done.stdout)
    assert float(size) <= 300


@pytest.mark.pages
@pytest.mark.slow
def test_the_pages_commands(tmp_path: Path) -> None:
    told = run_blocks("c_source.md", tmp_path)
    assert "verified  the C program" in told[0]
    assert told[1].split() == [str(32 * 10 * 4)]
