"""Lab 2 for real: the C++ project is built, run, compared with Python and watched for leaks."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from solutions.labs.deploy_cpp import call_on_threads, wrap_buffer
from tests.conftest import Processes
from tests.pages import ROOT, Ran, blocks, run_once
from tests.test_command_lines import run
from tvm_practice import engines
from tvm_practice.labs.deploy_cpp import tensor_fields
from tvm_practice.tvm_export.cpp import PROJECT, build_project, missing_tool, write_project

FUNCTIONS = "tests.labs.deploy_cpp_functions"
PAGE = "labs/2-deploy_cpp.md"
# Half of the time of an optimized build.
DEBUG = "-DCMAKE_BUILD_TYPE=Debug"

needs_cmake = pytest.mark.skipif(missing_tool() is not None, reason=str(missing_tool()))
needs_onnx = pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="no onnx")


def test_fields_of_a_tensor() -> None:
    matrix = np.zeros((4, 6), "int16")
    fields = tensor_fields(matrix)
    assert fields["data"] == matrix.ctypes.data
    assert (fields["device"], fields["dtype"]) == ((1, 0), (0, 16, 1))
    part = tensor_fields(matrix[1:, ::2])
    assert (part["shape"], part["strides"]) == ([3, 3], [6, 2])
    assert part["data"] + part["byte_offset"] == matrix.ctypes.data + 12


def program(folder: Path, *command: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    environment = {**os.environ, "TVM_NUM_THREADS": "2", **variables}
    return subprocess.run(
        command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300
    )


def ran(folder: Path, *command: str, **variables: str) -> str:
    done = program(folder, *command, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The page's commands: what they build is compiled for minutes, and all tests use it."""
    return run_once(PAGE, tmp_path_factory)


@pytest.fixture(scope="module")
def made(page: Ran, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the folder that the page's `compile_onnx` leaves, of the small ResNet.

    The programs write their outputs into it; other test processes have another copy.
    """
    folder = tmp_path_factory.mktemp("made") / "page"
    shutil.copytree(page.folder, folder, ignore=shutil.ignore_patterns("build*", "ship"))
    return folder / "tvm_output"


@pytest.fixture(scope="module")
def programs(page: Ran) -> Path:
    return page.folder / "tvm_output" / PROJECT / "build"


@pytest.fixture(scope="module")
def sanitized(page: Ran) -> Path:
    """The same, with AddressSanitizer and with what is undefined checked."""
    return page.folder / "tvm_output" / PROJECT / "build-sanitized"


def with_only(project: Path, *programs: str) -> None:
    """Have a project build these programs alone: each is compiled for half a minute."""
    lists = project / "CMakeLists.txt"
    listed = " ".join(["programs", *programs])
    lists.write_text(lists.read_text().replace("(programs main patterns)", f"({listed})"))


def in_project(test: Callable[..., None]) -> Callable[..., None]:
    """A test that builds the project: a page's worth of time, and what it needs."""
    for mark in (needs_cmake, needs_onnx, pytest.mark.pages, pytest.mark.slow):
        test = mark(test)
    return test


def pixels(seed: int) -> np.ndarray:
    """The image that patterns.cpp makes, as a camera gives it."""
    index = np.arange(64 * 64 * 3, dtype="uint64") + 7919 * seed
    return ((index * 2654435761 % 2**32) >> 24).astype("uint8").reshape(64, 64, 3)


def logits(*images: np.ndarray) -> list[np.ndarray]:
    """PyTorch's, of images of floats (3, 64, 64)."""
    import torch

    from tvm_practice.models import load_small_resnet

    model, _ = load_small_resnet()
    with torch.inference_mode():
        return [model(torch.from_numpy(each[None])).numpy()[0] for each in images]


def normalized(image: np.ndarray) -> np.ndarray:
    scaled = (image.astype("float32") / np.float32(255) - np.float32(0.5)) / np.float32(0.25)
    return np.ascontiguousarray(scaled.transpose(2, 0, 1))


@in_project
def test_the_program_computes_what_python_does(made: Path, programs: Path) -> None:
    file = made / "input.bin"
    np.random.default_rng(1).standard_normal((1, 3, 64, 64), "float32").tofile(file)
    said = ran(made, str(programs / "main"), str(made), str(file))
    assert said.startswith("logits  float32 [1, 10]")
    [want] = engines.call(
        "current", f"{FUNCTIONS}:run_library", {"folder": str(made), "files": [str(file)]}
    )
    got = np.fromfile(made / "output_0.bin", "float32")
    assert got.tolist() == want[0]


@in_project
def test_the_patterns_agree_with_pytorch(made: Path, programs: Path) -> None:
    said = ran(made, str(programs / "patterns"), str(made))
    images = [normalized(pixels(seed)) for seed in range(3)]
    first, *others, mirrored = logits(*images, images[0][:, :, ::-1].copy())
    shares = np.exp(first - first.max())
    template = np.arange(10, dtype="float32") / 10
    wanted = {
        "pipeline": [shares / shares.sum()],
        "features": [[np.linalg.norm(first - template)]],
        "ensemble": [(first + mirrored) / 2],
        **{f"thread {i}": [each] for i, each in enumerate([first, *others])},
        "device": [first, first],
        "after": [first],
    }
    for name, want in wanted.items():
        lines = re.findall(rf"^{name} ([-\d.e ]+)$", said, flags=re.MULTILINE)
        got = [[float(each) for each in line.split()] for line in lines]
        assert np.allclose(got, want, rtol=1e-3, atol=1e-4), name
    for name, text in {
        "shape": "image is float32 [1, 3, 64, 65], the model takes float32 [1, 3, 64, 64]",
        "type": "image is float64 [1, 3, 64, 64], the model takes float32 [1, 3, 64, 64]",
        "count": "2 inputs given, the model takes 1",
        "reading": "a tensor of float32 read as float64",
        "alignment": "memory at an address that is no multiple of 64 bytes",
        "folder": "no such folder/model.json cannot be read",
        "device": "there is no device 99 of DLPack's type 2, or the program does not hold its",
    }.items():
        assert f"error {name}: {text}" in said


@in_project
def test_no_leak_and_nothing_undefined(made: Path, sanitized: Path) -> None:
    """TVM leaves nothing either, so that nothing need be suppressed."""
    ran(made, str(sanitized / "main"), str(made), UBSAN_OPTIONS="halt_on_error=1")
    said = ran(made, str(sanitized / "patterns"), str(made), UBSAN_OPTIONS="halt_on_error=1")
    assert "\nafter " in said


@in_project
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="no valgrind: apt install valgrind")
def test_valgrind_finds_nothing(made: Path, programs: Path, tmp_path: Path) -> None:
    """It knows no AVX-512, so the library is made for an older processor."""
    shutil.copy(made.parent / "model.onnx", tmp_path)
    for each in made.parent.glob("model.onnx.data"):
        shutil.copy(each, tmp_path)
    target = ["--target", "llvm -mcpu=haswell", "--no-check", "--no-cpp"]
    done = run("compile_onnx", "model.onnx", "--out", "out", *target, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    watched = ["valgrind", "--error-exitcode=9", "--leak-check=full", "--quiet"]
    watched += ["--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"]
    watched += [str(programs / "main"), "out"]
    done = program(tmp_path, *watched, TVM_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr[-3000:]


@in_project
def test_what_is_shipped_needs_no_python(made: Path, programs: Path, tmp_path: Path) -> None:
    ran(made, "cmake", "--install", str(programs), "--prefix", str(tmp_path / "ship"))
    shipped = {each.name for each in (tmp_path / "ship").iterdir()}
    assert {"main", "model.so", "model.json", "libtvm_runtime.so", "libtvm_ffi.so"} <= shipped
    moved = tmp_path / "elsewhere"
    (tmp_path / "ship").rename(moved)
    linked = ran(moved, "ldd", "main")
    for line in linked.splitlines():
        if "tvm" in line:
            assert str(moved) in line, line
    done = subprocess.run(
        ["./main", "."], cwd=moved, env={"TVM_NUM_THREADS": "1"}, capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stdout.startswith("logits"), done.stderr


@in_project
def test_ends_that_are_compiled_in(made: Path, programs: Path, tmp_path: Path) -> None:
    """Bytes to a label, by the library alone: C++ and Python agree with PyTorch."""
    from tvm_practice.labs.deploy_cpp import MEAN, STD

    engines.call("current", f"{FUNCTIONS}:export_labels", {"folder": str(tmp_path)})
    image = pixels(5)
    image.tofile(tmp_path / "image.bin")
    said = ran(tmp_path, str(programs / "main"), str(tmp_path), str(tmp_path / "image.bin"))
    assert "int64 [1]" in said and "float32 [1]" in said
    label = np.fromfile(tmp_path / "output_0.bin", "int64")
    probability = np.fromfile(tmp_path / "output_1.bin", "float32")
    scaled = ((image / 255 - MEAN) / STD).astype("float32").transpose(2, 0, 1)
    [want] = logits(np.ascontiguousarray(scaled))
    shares = np.exp(want - want.max()) / np.exp(want - want.max()).sum()
    assert label == [want.argmax()] and np.allclose(probability, shares.max(), rtol=1e-4)


@in_project
def test_the_answers_hold_with_the_real_model(made: Path, tmp_path: Path) -> None:
    """`wrap_buffer` and `call_on_threads` with TVMModel in place of the stand-ins, under ASan.

    Told to leak a tensor, the program fails: the sanitizer is not deaf.
    """
    project = tmp_path / PROJECT
    shutil.copytree(made / PROJECT, project, ignore=shutil.ignore_patterns("build*"))
    (project / "answers.h").write_text(wrap_buffer() + call_on_threads())
    (project / "main.cpp").write_text(
        """
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>
#include "tvm_model.h"
#include "answers.h"

static std::atomic<int> released{0};

int main(int count, char** arguments) {
  using Tensors = std::vector<TVMModel::Tensor>;
  {
    TVMModel model(arguments[1]);
    std::vector<Tensors> inputs;
    const auto& shape = model.inputs()[0].shape;
    for (int i = 0; i < 7; ++i) {
      auto* data = static_cast<float*>(std::aligned_alloc(64, 4 * 3 * 64 * 64));
      std::fill_n(data, 3 * 64 * 64, 0.1f * i);
      auto release = [](void* memory) { std::free(memory); ++released; };
      inputs.push_back({TVMModel::Tensor::FromDLPack(wrap_buffer(data, shape, release, data), 64)});
    }
    if (count > 2) std::printf("%p", (void*)new Tensors(inputs[0]));
    auto results = call_on_threads(model, inputs, 3);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const float* got = TVMModel::Data<float>(results[i][0]);
      auto alone = model(inputs[i]);
      for (int j = 0; j < 10; ++j) {
        if (got[j] != TVMModel::Data<float>(alone[0])[j]) return 3;
      }
    }
  }
  return released == 7 || count > 2 ? 0 : 4;
}
"""
    )
    with_only(project, "main")
    built = build_project(tmp_path, options=["-DTVM_MODEL_SANITIZE=address,undefined", DEBUG])
    ran(tmp_path, str(built / "main"), str(made))
    leaking = program(tmp_path, str(built / "main"), str(made), "leak")
    assert leaking.returncode != 0 and "LeakSanitizer" in leaking.stderr, leaking.stderr


@in_project
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc: the CUDA toolkit")
def test_the_cuda_program_compiles(tmp_path: Path) -> None:
    """It is linked against the driver's stub; there is a GPU to run it on, or it says why not."""
    with_only(write_project(tmp_path))
    built = build_project(tmp_path, options=["-DTVM_MODEL_CUDA=ON"])
    done = program(tmp_path, str(built / "cuda"))
    assert done.returncode in (2, 127), done.stderr
    assert "usage: cuda FOLDER" in done.stderr or "libcuda.so.1" in done.stderr


@in_project
def test_mistakes_of_the_person_are_a_line(made: Path, programs: Path, tmp_path: Path) -> None:
    main = str(programs / "main")
    (tmp_path / "short.bin").write_bytes(b"1234")
    for arguments, code, text in (
        ([], 2, "usage: main FOLDER"),
        ([str(made), "--calls", "0"], 2, "usage"),
        (["nowhere"], 1, "nowhere/model.json cannot be read"),
        ([str(made), "short.bin"], 1, "short.bin has 4 bytes, float32 [1, 3, 64, 64] takes 49152"),
        ([str(made), "none.bin"], 1, "none.bin cannot be read"),
    ):
        done = program(tmp_path, main, *arguments)
        assert done.returncode == code and text in done.stderr, done.stderr
        assert len(done.stderr.splitlines()) == 1


# A program that calls a model with inputs of which most do not fit.
_CALLS = """
#include <cstdio>
#include <functional>
#include "tvm_model.h"

static TVMModel::Tensor Zeros(const std::vector<int64_t>& shape, DLDataType dtype) {
  TVMModel::Tensor tensor = TVMModel::Empty(shape, dtype);
  std::memset(TVMModel::Bytes(tensor), 0, tvm::ffi::GetDataSize(tensor));
  return tensor;
}
static TVMModel::Tensor Rows(int64_t row) {
  TVMModel::Tensor rows = Zeros({2}, DLDataType{kDLInt, 64, 1});
  TVMModel::Data<int64_t>(rows)[1] = row;
  return rows;
}

int main(int, char** arguments) {
  TVMModel model(arguments[1]);
  const DLDataType f32{kDLFloat, 32, 1}, f64{kDLFloat, 64, 1};
  const std::vector<std::vector<TVMModel::Tensor>> calls = {
      {Zeros({5, 4}, f32), Zeros({5}, f32), Rows(4)},
      {Zeros({5, 4}, f32), Zeros({5}, f32)},
      {Zeros({5, 3}, f32), Zeros({5}, f32), Rows(4)},
      {Zeros({5, 4}, f32), Zeros({5}, f64), Rows(4)},
      {Zeros({0, 4}, f32), Zeros({0}, f32), Rows(4)},
      {Zeros({5, 4}, f32), Zeros({6}, f32), Rows(4)},
      {Zeros({5, 4}, f32), Zeros({5}, f32), Rows(5)},
      {Zeros({5, 4}, f32), Zeros({5}, f32), Rows(-1)},
      {Zeros({5, 4}, f32), Zeros({5}, f32), Rows(int64_t{1} << 40)},
      {Zeros({6, 4}, f32), Zeros({6}, f32), Rows(5)}};
  for (const auto& inputs : calls) {
    try {
      std::printf("%ld rows\\n", static_cast<long>(model(inputs)[0].size(0)));
    } catch (const std::exception& error) {
      std::printf("%s\\n", error.what());
    }
  }
}
"""


@in_project
def test_wrong_inputs_are_refused(tmp_path: Path, process_of: Processes) -> None:
    """A gather of rows from table [n, 4], scaled by scale [n], with open extents."""
    process_of("current").call(
        "tests.tvm_export.run_time_checks.indices_functions:open_extents", {"folder": str(tmp_path)}
    )
    project = write_project(tmp_path)
    (project / "main.cpp").write_text(_CALLS)
    with_only(project, "main")
    built = build_project(tmp_path, options=[DEBUG])
    said = ran(tmp_path, str(built / "main"), str(tmp_path)).splitlines()
    refused = "rows: index out of bounds, 0 to "
    expected = (
        "2 rows",
        "2 inputs given, the model takes 3",
        "table is float32 [5, 3], the model takes float32 [?, 4]",
        "scale is float64 [5], the model takes float32 [?]",
        "table is float32 [0, 4], the model takes",
        "n is 5 in an input and 6 in scale",
        refused,
        refused,
        refused,
        "2 rows",
    )
    assert len(said) == len(expected), said
    for line, begins in zip(said, expected, strict=True):
        assert line.startswith(begins), (line, begins)


@in_project
def test_the_pages_commands(page: Ran) -> None:
    assert "logits  float32 [1, 10]" in page.printed[0]
    assert "logits  float32 [1, 10]" in page.printed[1]  # the shipped program


def test_the_page_shows_the_class_as_it_is() -> None:
    """The methods that the page names are there."""
    header = (ROOT / "tvm_practice" / "tvm_export" / "cpp" / "project" / "tvm_model.h").read_text()
    page = (ROOT / "docs" / PAGE).read_text()
    for name in re.findall(r"`TVMModel::(\w+)", page):
        assert re.search(rf"\b{name}\(", header), name
    assert sys.platform != "linux" or list(blocks(PAGE))
