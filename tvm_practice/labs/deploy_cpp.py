"""Lab 2: a model in a C++ program.

`python -m tvm_practice.compile_onnx` makes a folder of an ONNX file: the library model.so, its
description model.json, and in cpp/ a CMake project around a small class, TVMModel, that loads
both. This lab does the same from PyTorch and then what a program needs beyond a call:

    export_model       PyTorch to model.so
    image_to_label     what stands before and behind the model, compiled into it
    wrap_buffer        memory of the program's own as a tensor, without a copy
    call_on_threads    an instance for each thread, exceptions carried out of them
    call_on_stream     CUDA: kernel, model, kernel on one stream

The last three are C++: the functions return its text, which is compiled and tried at once. How
TVMModel itself does these things is in tvm_practice/tvm_export/cpp/project/tvm_model.h.

The worked example shows what a tensor is when two libraries hand it over. Write the functions
below it, then run

    python -m tvm_practice.labs.deploy_cpp
    pytest -m lab2
"""

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tvm_practice.course.phase import phase_command

if TYPE_CHECKING:
    import numpy as np

    from tvm_practice.course import Steps

# ImageNet's, as its classifiers expect them.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class DLTensor(ctypes.Structure):
    """The struct of dlpack.h, in whose terms every library says what a tensor is."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),  # 1: CPU, 2: CUDA
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),  # 0: int, 1: unsigned, 2: float
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),  # in elements; null: compact
        ("byte_offset", ctypes.c_uint64),  # of the first element from data
    )


def tensor_fields(array: "np.ndarray") -> dict[str, Any]:
    """Worked example: what numpy hands over when another library asks for an array by DLPack.

    Python wraps the pointer to a DLManagedTensor, whose first field is the DLTensor, in a
    capsule. Nothing is copied: `data` is the array's own address.

    Args:
        array: of numbers.

    Returns:
        The DLTensor's fields; "strides" is None where the struct has none.
    """
    capsule = array.__dlpack__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = DLTensor.from_address(pointer(capsule, b"dltensor"))
    return {
        "data": tensor.data,
        "device": (tensor.device_type, tensor.device_id),
        "dtype": (tensor.code, tensor.bits, tensor.lanes),
        "shape": tensor.shape[: tensor.ndim],
        "strides": tensor.strides[: tensor.ndim] if tensor.strides else None,
        "byte_offset": tensor.byte_offset,
    }


def export_model(
    model: Any, example: tuple[Any, ...], folder: Path, *, ends: Callable[[Any], Any] | None = None
) -> Any:  # an IRModule
    """Compile a PyTorch model for this machine's CPU to a library that C++ can load.

    Import it to Relax with its weights as constants, put `ends` around it, optimize, give each
    function a default schedule, build, and link one shared library. A library is what a program
    loads; a .tar holds object files and needs a compiler wherever it is loaded.

    Args:
        model: a torch.nn.Module in eval mode; it is only read.
        example: the tensors it is called with.
        folder: made if it is not there; afterwards it holds model.so, and nothing else new.
        ends: takes the imported IRModule and returns the one to compile; None: as imported.

    Returns:
        The IRModule that was compiled, before it was optimized: `describe_main` of
        tvm_practice.tvm_export.cpp reads off it what goes in and what comes out.
    """
    raise NotImplementedError("phase 4's steps, then export_library to model.so")


def image_to_label(mod: Any, mean: Sequence[float], std: Sequence[float]) -> Any:  # an IRModule
    """Put preprocessing before a classifier and the choice of a label behind it, in one function.

    The new main does (pixels / 255 - mean) / std for each channel, brings the channels from last
    to first, runs the model, and takes the best class. The model's own function is inlined
    (relax.transform.InlinePrivateFunctions), so that fusion sees one graph.

    Args:
        mod: an IRModule as `import_relax` gives it: main takes one float32 image of shape
            (1, 3, height, width) and returns float32 logits (1, classes). It stays as it was.
        mean: of the three channels, for pixels from 0 to 1.
        std: their standard deviations.

    Returns:
        A new IRModule whose only Relax function is main(image): image uint8 of shape
        (1, height, width, 3); it returns the tuple (label, probability), the class of the
        largest logit as int64 (1,), and its softmax as float32 (1,).
    """
    raise NotImplementedError("relax.BlockBuilder: the operators around a call of the model")


def wrap_buffer() -> str:
    """C++: make a DLPack tensor of memory that belongs to somebody else, without a copy.

    Give the text of this function (C++17; <dlpack/dlpack.h>, <cstdint>, <memory>, <stdexcept>,
    <string> and <vector> are included):

        DLManagedTensor* wrap_buffer(float* data, const std::vector<int64_t>& shape,
                                     void (*release)(void*), void* owner)

    data: shape[0] * shape[1] * ... floats on the CPU, row by row without gaps. They stay where
    they are until release(owner), which the tensor's deleter calls, once, when whoever has the
    tensor is done with it. `shape` is the caller's and may be gone right after the call, so the
    tensor needs extents of its own, which the deleter frees together with the DLManagedTensor.

    The code that TVM makes relies on an address that is a multiple of 64: throw
    std::invalid_argument with a text for any other, without a call of release.

    Returns:
        The C++ text. docs/labs/2-deploy_cpp.md has the fields of a DLManagedTensor.
    """
    raise NotImplementedError("fill a DLManagedTensor; its deleter gives everything back")


def call_on_threads() -> str:
    """C++: call a model on many inputs from several threads.

    Give the text of this function (C++17; the standard headers for threads, <atomic>,
    <exception> and <vector> are included):

        template <typename Model, typename Input>
        auto call_on_threads(const Model& model, const std::vector<Input>& inputs, int threads)
            -> std::vector<decltype(model.Clone()(inputs[0]))>

    Result i is that of input i. A model is for one thread at a time, and has state between the
    steps of a call: each thread needs a model.Clone() of its own, made once and not for each
    input (on a GPU it copies the weights). There are at most `threads` of them, and no more than
    inputs. An exception that leaves a thread ends the program: keep it, and throw it in the caller
    once every thread is joined.

    Returns:
        The C++ text.
    """
    raise NotImplementedError("std::thread, a Clone() for each, std::exception_ptr")


def call_on_stream() -> str:
    """C++: a kernel, the model and another kernel on one CUDA stream; the host waits once.

    Give the text of this function (C++17; the CUDA names used here are declared):

        template <typename Model>
        int call_on_stream(Model& model, uint8_t* device_pixels, float* device_input,
                           int* device_label, const std::vector<uint8_t>& pixels,
                           cudaStream_t stream)

    Everything called device_... is memory of the GPU. In this order, all on `stream`:

    - cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream): the pixels, height x width
      x 3 of them, to device_pixels.
    - Preprocess(stream, device_pixels, device_input, height * width) fills device_input, whose
      shape is model.inputs()[0].shape, (1, 3, height, width).
    - The model on device_input as it lies there: model.SetStream(stream), then
      model({Model::Wrap(device_input, shape, model.device())})[0], a tensor.
    - Postprocess(stream, scores, count, device_label), the scores by Model::template
      Data<float>(tensor), their number by tensor.numel().
    - cudaMemcpyAsync(..., cudaMemcpyDeviceToHost, stream): the label to a variable of the host,
      which has it after cudaStreamSynchronize(stream). Return it.

    It is graded on a stand-in for a GPU, whose streams are queues that know nothing of each other.

    Returns:
        The C++ text.
    """
    raise NotImplementedError("copy, Preprocess, the model, Postprocess, copy; then wait")


def lane(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """Export a classifier, build C++ around it, compare and time it; try the C++ functions."""
    import os

    # Two processes are timed in turns: bound workers of both would be on the same cores.
    os.environ["TVM_BIND_THREADS"] = "0"
    _show_tensor()
    figures = _export(steps, quick=quick)
    for name, arguments, shown in _TRIALS:
        answer = steps.attempt(name)
        if answer is not None:
            _try_cpp(name, answer, arguments, shown)
    return figures


# Of each C++ function: the arguments of the program that tries it, and what to show of its answer.
_TRIALS: tuple[tuple[str, tuple[int, ...], tuple[str, ...]], ...] = (
    ("wrap_buffer", (1, 3, 224, 224), ("same_memory", "shape", "dtype", "released", "living")),
    ("call_on_threads", (24, 4, -1), ("clones", "shared", "peak", "results")),
    ("call_on_stream", (224, 224, 1000, 1), ("order", "elsewhere", "waits", "label", "expected")),
)


def _show_tensor() -> None:
    import numpy as np

    matrix = np.zeros((4, 6), "float32")
    print("A tensor as DLPack hands it over: numpy's 4x6 float32, and its columns 1, 3, 5.\n")
    whole, part = tensor_fields(matrix), tensor_fields(matrix[:, 1::2])
    part["data"] = f"+{part['data'] - whole['data']} bytes"
    whole["data"] = "an address"
    for name, value in whole.items():
        print(f"  {name:12}{value!s:20}{part[name]}")
    print("\nNo copy of either: the same memory, described in another way.\n")


def _export(steps: "Steps", *, quick: bool) -> dict[str, Any]:
    """From PyTorch to a C++ program; what could be done of it."""
    import json

    from tvm_practice.models import load_resnet18, load_small_resnet
    from tvm_practice.tvm_export.cpp import describe_main, write_project
    from tvm_practice.tvm_export.errors import DoesNotCompile, Missing

    name, load = ("a small ResNet", load_small_resnet) if quick else ("ResNet-18", load_resnet18)
    model, example = load()
    folder = steps.folder / "model"
    imported = steps.attempt("export_model", model, example, folder)
    if imported is None:
        _attempt_ends(steps, model, example)
        return {}
    if not (folder / "model.so").exists():
        print(f"export_model left no {folder / 'model.so'}")
        return {}
    (folder / "model.json").write_text(json.dumps(describe_main(imported), indent=2))
    print(f"{name}: {folder / 'model.so'}, {(folder / 'model.so').stat().st_size / 1e6:.1f} MB")
    if not _verify(folder, model, example):
        return {}
    write_project(folder)
    whole = _export_with_ends(steps, model, example)
    try:
        programs = _build(folder)
    except (Missing, DoesNotCompile) as error:
        print(f"The C++ program is not built: {error}")
        return {}
    _run_main(programs, folder, [example[0].numpy()])
    if whole is not None:
        _run_main(programs, *whole)
    return {"latency": _time(programs, folder, rounds=5 if quick else 30)}


def _export_with_ends(
    steps: "Steps", model: Any, example: tuple[Any, ...]
) -> "tuple[Path, list[np.ndarray]] | None":
    """The same model with `image_to_label` around it: its folder and an image for it."""
    import json

    import numpy as np

    from tvm_practice.tvm_export.cpp import describe_main

    wrapped: list[Any] = []

    def ends(mod: Any) -> Any:
        wrapped.append(steps.attempt("image_to_label", mod, MEAN, STD))
        return wrapped[0] if wrapped[0] is not None else mod

    folder = steps.folder / "image_to_label"
    exported = steps.attempt("export_model", model, example, folder, ends=ends)
    if exported is None or not wrapped or wrapped[0] is None:
        return None
    (folder / "model.json").write_text(json.dumps(describe_main(wrapped[0]), indent=2))
    print(f"With its ends: {folder / 'model.so'}; from bytes to a label.")
    height, width = example[0].shape[2:]
    random = np.random.default_rng(0)
    return folder, [random.integers(0, 256, (1, height, width, 3), "uint8")]


def _attempt_ends(steps: "Steps", model: Any, example: tuple[Any, ...]) -> None:
    """`image_to_label` by itself, while there is no library to put it into."""
    from solutions.relay_import import import_relax
    from tvm_practice.tvm_export.cpp import describe_main
    from tvm_practice.tvm_export.quiet import quiet_frontends

    with quiet_frontends():
        imported = import_relax(model, example)
    wrapped = steps.attempt("image_to_label", imported, MEAN, STD)
    if wrapped is not None:
        for side, tensors in describe_main(wrapped).items():
            shown = (f"{each['name']} {each['dtype']} {each['shape']}" for each in tensors)
            print(f"image_to_label, {side}: {', '.join(shown)}")


def _verify(folder: Path, model: Any, example: tuple[Any, ...]) -> bool:
    """Load the library in Python and compare it with PyTorch."""
    import torch

    from solutions.relay_import import verify
    from tvm_practice.tvm_export.running import RelaxRunner

    try:
        runner = RelaxRunner.from_file(str(folder / "model.so"))
        runner.set_inputs([each.numpy() for each in example])
        runner.run()
        with torch.inference_mode():
            want = model(*example).numpy()
        error = verify(runner.outputs(), [want], atol=1e-3, rtol=1e-3)
    except (ValueError, RuntimeError) as problem:  # of a learner's export
        print(f"In Python it is not right: {str(problem).splitlines()[-1]}")
        return False
    print(f"In Python: largest difference to PyTorch {error:.1e}")
    return True


def _build(folder: Path) -> Path:
    import time

    from tvm_practice.tvm_export.cpp import build_project

    print(f"\nCMake builds {folder / 'cpp'}: tvm_model.h, main.cpp, patterns.cpp")
    started = time.perf_counter()
    programs = build_project(folder)
    print(f"built in {time.perf_counter() - started:.0f} s: {programs / 'main'}")
    return programs


def _run_main(programs: Path, folder: Path, inputs: "list[np.ndarray]") -> None:
    """Run the C++ program on the inputs, and compare its outputs with Python's, bit by bit."""
    import json
    import subprocess

    import numpy as np

    from tvm_practice.tvm_export.running import RelaxRunner

    files = []
    for position, value in enumerate(inputs):
        files.append(folder / f"input_{position}.bin")
        value.tofile(files[-1])
    command = [str(programs / "main"), str(folder), *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        print(f"The C++ program fails: {done.stderr.strip()}")
        return
    runner = RelaxRunner.from_file(str(folder / "model.so"))
    runner.set_inputs(inputs)
    runner.run()
    described = json.loads((folder / "model.json").read_text())["outputs"]
    for position, (output, want) in enumerate(zip(described, runner.outputs(), strict=True)):
        got = np.fromfile(folder / f"output_{position}.bin", want.dtype).reshape(want.shape)
        same = "the bits of Python's" if np.array_equal(got, want) else "NOT Python's"
        values = ", ".join(f"{each:.4g}" for each in got.ravel()[:2])
        shape = "x".join(map(str, want.shape))
        more = ", ..." if got.size > 2 else ""
        print(f"C++: {output['name']} {shape} {want.dtype}: {values}{more}; {same}")


def _time(programs: Path, folder: Path, *, rounds: int) -> dict[str, Any]:
    from rich.console import Console
    from rich.table import Table

    from tvm_practice import engines
    from tvm_practice.labs.native.latency import compare_calls

    found = compare_calls(programs / "main", folder, rounds=rounds)
    title = f"A call, {engines.thread_count()} threads, {rounds} samples each, in turns"
    table = Table("", "median, ms", "p90, ms", "/ Python", "95% interval", title=title)
    for name, latency in found.latency.items():
        ratio = found.ratio[name]
        interval = "" if name == "Python" else f"{ratio.low:.3g} to {ratio.high:.3g}"
        spread = (latency.median, latency.percentile(90), ratio.value)
        table.add_row(name, *(f"{each:.3g}" for each in spread), interval)
    Console().print(table)
    print(f"C++ against Python: {found.ratio['C++'].verdict}")
    return found.to_dict()


def _try_cpp(name: str, answer: str, arguments: tuple[int, ...], shown: tuple[str, ...]) -> None:
    """Compile a function with the program that tries it, and show what that says."""
    import textwrap

    from tvm_practice.labs.native import run_exercise
    from tvm_practice.tvm_export.errors import DoesNotCompile, Missing

    print(f"\n{name}, tried with {', '.join(map(str, arguments))}")
    try:
        [said] = run_exercise(name, answer, arguments)
    except (Missing, DoesNotCompile) as error:
        print(textwrap.fill(f"not compiled: {error}", 76, initial_indent="  ")[:400])
        return
    for word in shown:
        text = said.get(word, "(nothing)").replace(",", ", ")
        print(f"  {word:12}{text if len(text) <= 62 else text[:58] + ' ...'}")


main = phase_command("labs.deploy_cpp", "Lab 2: from a model to a C++ program.")

if __name__ == "__main__":
    main()
