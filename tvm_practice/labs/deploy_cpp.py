"""Lab 2: a model in a C++ program.

`python -m tvm_practice.compile_onnx` turns an ONNX file (a format that many frameworks write) into
a folder: the library model.so, its description model.json, and in cpp/ a CMake project around a
small class, TVMModel, that loads both. This lab does the same from PyTorch and then adds what a
program needs beyond a call:

    export_model       PyTorch to model.so
    image_to_label     pre- and postprocessing, compiled into the model
    wrap_buffer        the program's own memory as a tensor, without a copy
    call_on_threads    one instance per thread, exceptions passed to the caller
    call_on_stream     CUDA: kernel, model, kernel on one stream

The last three are C++: each returns the text of a C++ function, without a main and without macros.
The text is compiled and tried at once. How TVMModel itself does these things is in
tvm_practice/tvm_export/cpp/project/tvm_model.h.

A Relax function is built operator by operator, with `from tvm import relax`:

    image = relax.Var("image", relax.TensorType((1, 4, 4, 3), "uint8"))     a parameter
    builder = relax.BlockBuilder()          makes a module
    with builder.function("main", [image]): what is emitted inside is the body of main
    with builder.dataflow():                inside it: a part without side effects
    builder.emit(relax.op.astype(image, "float32"))
                                            adds a call and returns its result. Other operators:
                                            relax.op.multiply(a, b), relax.op.add(a, b),
                                            relax.op.permute_dims(x, [0, 2, 1]),
                                            relax.op.argmax(x, axis=1), relax.op.max(x, axis=1),
                                            relax.op.nn.softmax(x, axis=1)
    relax.const(array)                      an array as an operand; it broadcasts as in numpy
    model = builder.add_func(function, "model")
                                            adds a function to the module; builder.emit(model(x))
                                            then calls it like an operator.
                                            function.without_attr("global_symbol") is a private
                                            copy, which a pass may inline
    result = builder.emit_output(relax.Tuple([a, b]))
                                            as emit, for the result of the dataflow part
    builder.emit_func_output(result)        makes it the result of the function, after that part
    builder.get()                           the module
    function.params[0].ty.shape.values      the extents of a function's first parameter

A library needs three more pieces:

    from solutions.relay_import import import_relax, optimize_relax, build_relax
                                            phase 4's steps; yours are in tvm_practice.relay_import
    schedule_defaults(mod, target)          returns a copy of mod, with a default schedule for each
                                            PrimFunc, made by the exporter's rules, without a
                                            search; of tvm_practice.tvm_export.rules.cpu
    executable.export_library("model.so")   links what tvm.compile returned into a shared library

The worked example shows a tensor as one library hands it to another. Write the functions below
it, then run

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

# ImageNet's, as its classifiers expect them.
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


class DLTensor(ctypes.Structure):
    """The struct of dlpack.h, in which libraries describe a tensor to each other."""

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
    """Worked example: the struct that numpy hands to a library that asks for an array by DLPack.

    Python wraps the pointer to a DLManagedTensor, whose first field is the DLTensor, in a
    capsule. Nothing is copied: `data` is the array's own address.

    Args:
        array: an array of numbers.

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

    The target is host_target() of tvm_practice.engines, so that the kernels may use all
    instructions of the processor.

    Import the model to Relax with its weights as constants, put `ends` around it, optimize, give
    each function a default schedule, build, and link one shared library. A program can load a
    shared library; a .tar holds object files and needs a compiler wherever it is loaded.

    Args:
        model: a torch.nn.Module in eval mode; it is only read.
        example: the tensors it is called with.
        folder: created if missing; afterwards it holds model.so, and nothing else new.
        ends: takes the imported IRModule and returns the one to compile; None: as imported.

    Returns:
        The compiled IRModule as it was before optimization: `describe_main` of
        tvm_practice.tvm_export.cpp reads its inputs and outputs.
    """
    raise NotImplementedError("phase 4's steps, then export_library to model.so")


def image_to_label(mod: Any, mean: Sequence[float], std: Sequence[float]) -> Any:  # an IRModule
    """Put preprocessing before a classifier and the choice of a label after it, in one function.

    The new main computes (pixels / 255 - mean) / std for each channel, moves the channels from the
    last axis to the second, runs the model, and takes the best class. The model's own function is
    inlined by the pass relax.transform.InlinePrivateFunctions(), so that fusion sees one graph.

    Args:
        mod: an IRModule as `import_relax` gives it: main takes one float32 image of shape
            (1, 3, height, width) and returns float32 logits (1, classes). It stays as it was.
        mean: the means of the three channels, for pixels from 0 to 1.
        std: their standard deviations.

    Returns:
        A new IRModule whose only Relax function is main(image): image uint8 of shape
        (1, height, width, 3); it returns the tuple (label, probability), the class of the
        largest logit as int64 (1,), and its softmax as float32 (1,).
    """
    raise NotImplementedError("relax.BlockBuilder: the operators around a call of the model")


def wrap_buffer() -> str:
    """C++: wrap memory that belongs to the caller in a DLPack tensor, without a copy.

    Return the text of this function (C++17; <dlpack/dlpack.h>, <cstdint>, <memory>, <stdexcept>,
    <string> and <vector> are included):

        DLManagedTensor* wrap_buffer(float* data, const std::vector<int64_t>& shape,
                                     void (*release)(void*), void* owner)

    data: shape[0] * shape[1] * ... floats on the CPU, row by row without gaps. They stay valid
    until release(owner). The tensor's deleter calls that once, when the tensor's holder is done
    with it. `shape` belongs to the caller and may be gone right after the call, so the tensor
    needs extents of its own, which the deleter frees together with the DLManagedTensor.

    TVM's code relies on an address that is a multiple of 64: for any other, throw
    std::invalid_argument with a message, and do not call release.

    Returns:
        The C++ text. docs/labs/2-deploy_cpp.md has the fields of a DLManagedTensor.
    """
    raise NotImplementedError("fill a DLManagedTensor; its deleter gives everything back")


def call_on_threads() -> str:
    """C++: call a model on many inputs from several threads.

    Return the text of this function (C++17; <algorithm>, <thread>, <mutex>, <atomic>, <exception>
    and <vector> are included):

        template <typename Model, typename Input>
        auto call_on_threads(const Model& model, const std::vector<Input>& inputs, int threads)
            -> std::vector<decltype(model.Clone()(inputs[0]))>

    Result i belongs to input i. A model serves one thread at a time and keeps state between the
    steps of a call: each thread needs a model.Clone() of its own, made once and not for each
    input (on a GPU it copies the weights). Use at most `threads` threads (1 or more), and no more
    than there are inputs. An exception that leaves a thread ends the program: keep it, and throw it
    in the caller once every thread is joined. If several threads fail, throw any one of theirs.

    Returns:
        The C++ text.
    """
    raise NotImplementedError("std::thread, a Clone() for each, std::exception_ptr")


def call_on_stream() -> str:
    """C++: a kernel, the model and another kernel on one CUDA stream; the host waits once.

    Return the text of this function (C++17; the CUDA names used here are declared):

        template <typename Model>
        int call_on_stream(Model& model, uint8_t* device_pixels, float* device_input,
                           int* device_label, const std::vector<uint8_t>& pixels,
                           cudaStream_t stream)

    Every device_... pointer is to GPU memory. In this order, all on `stream`:

    - cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream): the pixels, height x width
      x 3 of them, to device_pixels.
    - Preprocess(stream, device_pixels, device_input, height * width) fills device_input, whose
      shape is model.inputs()[0].shape, (1, 3, height, width).
    - Run the model on device_input in place: model.SetStream(stream), then
      model({Model::Wrap(device_input, shape, model.device())})[0], a tensor; keep it until the
      stream has been synchronized.
    - Postprocess(stream, scores, count, device_label) chooses the label. The scores are
      Model::template Data<float>(tensor), a pointer; their count is tensor.numel().
    - cudaMemcpyAsync(..., cudaMemcpyDeviceToHost, stream): the label to a variable of the host,
      which has it after cudaStreamSynchronize(stream). Return it.

    The grader uses a stand-in for a GPU whose streams are independent queues.

    Returns:
        The C++ text.
    """
    raise NotImplementedError("copy, Preprocess, the model, Postprocess, copy; then wait")


main = phase_command("labs.deploy_cpp", "Lab 2: from a model to a C++ program.")

if __name__ == "__main__":
    main()
