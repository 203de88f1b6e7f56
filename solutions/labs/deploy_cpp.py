"""Reference answers of lab 2."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any


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
    import os

    from solutions.relay_import import build_relax, import_relax, optimize_relax
    from tvm_practice import engines
    from tvm_practice.tvm_export.quiet import native_stderr_to, quiet_frontends
    from tvm_practice.tvm_export.rules.cpu import schedule_defaults

    target = engines.host_target()
    folder.mkdir(parents=True, exist_ok=True)
    with quiet_frontends(), native_stderr_to(os.devnull):
        imported = import_relax(model, example)
        if ends is not None:
            imported = ends(imported)
        scheduled = schedule_defaults(optimize_relax(imported), target)
        build_relax(scheduled, target).export_library(str(folder / "model.so"))
    return imported


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
    import numpy as np
    import tvm
    from tvm import relax

    model = mod["main"]
    _, _, height, width = (int(extent) for extent in model.params[0].ty.shape.values)
    scale = 1 / (255 * np.array(std, "float32"))
    shift = -np.array(mean, "float32") / np.array(std, "float32")
    image = relax.Var("image", relax.TensorType((1, height, width, 3), "uint8"))
    builder = relax.BlockBuilder()
    # Without a global symbol it is private, and may be inlined.
    classifier = builder.add_func(model.without_attr("global_symbol"), "classifier")
    with builder.function("main", [image]):
        with builder.dataflow():
            pixels = builder.emit(relax.op.astype(image, "float32"))
            scaled = builder.emit(relax.op.multiply(pixels, relax.const(scale)))
            normalized = builder.emit(relax.op.add(scaled, relax.const(shift)))
            planes = builder.emit(relax.op.permute_dims(normalized, [0, 3, 1, 2]))
            logits = builder.emit(classifier(planes))
            label = builder.emit(relax.op.argmax(logits, axis=1))
            shares = builder.emit(relax.op.nn.softmax(logits, axis=1))
            best = builder.emit(relax.op.max(shares, axis=1))
            result = builder.emit_output(relax.Tuple([label, best]))
        builder.emit_func_output(result)
    passes = [relax.transform.InlinePrivateFunctions(), relax.transform.CanonicalizeBindings()]
    return tvm.transform.Sequential(passes)(builder.get())


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
    return r"""
struct Borrowed {
  DLManagedTensor managed;
  std::vector<int64_t> shape;
  void (*release)(void*);
  void* owner;
};

void give_back(DLManagedTensor* managed) {
  auto* borrowed = static_cast<Borrowed*>(managed->manager_ctx);
  borrowed->release(borrowed->owner);
  delete borrowed;
}

DLManagedTensor* wrap_buffer(float* data, const std::vector<int64_t>& shape,
                             void (*release)(void*), void* owner) {
  if (reinterpret_cast<uintptr_t>(data) % 64 != 0) {
    throw std::invalid_argument("the buffer is not aligned to 64 bytes");
  }
  auto* borrowed = new Borrowed{{}, shape, release, owner};
  DLTensor& tensor = borrowed->managed.dl_tensor;
  tensor.data = data;
  tensor.device = DLDevice{kDLCPU, 0};
  tensor.ndim = static_cast<int32_t>(shape.size());
  tensor.dtype = DLDataType{kDLFloat, 32, 1};
  tensor.shape = borrowed->shape.data();
  tensor.strides = nullptr;  // compact, row by row
  tensor.byte_offset = 0;
  borrowed->managed.manager_ctx = borrowed;
  borrowed->managed.deleter = give_back;
  return &borrowed->managed;
}
"""


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
    return r"""
template <typename Model, typename Input>
auto call_on_threads(const Model& model, const std::vector<Input>& inputs, int threads)
    -> std::vector<decltype(model.Clone()(inputs[0]))> {
  std::vector<decltype(model.Clone()(inputs[0]))> results(inputs.size());
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  std::mutex mutex;
  auto work = [&] {
    try {
      auto mine = model.Clone();
      for (size_t i = next++; i < inputs.size(); i = next++) results[i] = mine(inputs[i]);
    } catch (...) {
      std::lock_guard<std::mutex> lock(mutex);
      failure = std::current_exception();
      next = inputs.size();  // the others begin nothing new
    }
  };
  std::vector<std::thread> workers;
  for (size_t i = 0; i < std::min<size_t>(threads, inputs.size()); ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  if (failure) std::rethrow_exception(failure);
  return results;
}
"""


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
    return r"""
template <typename Model>
int call_on_stream(Model& model, uint8_t* device_pixels, float* device_input, int* device_label,
                   const std::vector<uint8_t>& pixels, cudaStream_t stream) {
  const std::vector<int64_t>& shape = model.inputs()[0].shape;
  int label = -1;
  cudaMemcpyAsync(device_pixels, pixels.data(), pixels.size(), cudaMemcpyHostToDevice, stream);
  Preprocess(stream, device_pixels, device_input, shape[2] * shape[3]);
  model.SetStream(stream);
  // Kept until the stream has used it.
  const auto scores = model({Model::Wrap(device_input, shape, model.device())})[0];
  Postprocess(stream, Model::template Data<float>(scores), scores.numel(), device_label);
  cudaMemcpyAsync(&label, device_label, sizeof label, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  return label;
}
"""
