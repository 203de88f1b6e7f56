"""Wrong solutions of lab 2."""

from tests.mutants import edited, mutant, right, right_edited


@mutant("export_model", message="the weights are not in the library")
def weights_left_outside(model, example, folder, *, ends=None):
    import torch
    from tvm.relax.frontend.torch import from_exported_program

    from solutions.relay_import import build_relax, optimize_relax
    from tvm_practice import engines

    folder.mkdir(parents=True, exist_ok=True)
    exported = torch.export.export(model, example)
    mod = from_exported_program(exported, keep_params_as_input=True, unwrap_unit_return_tuple=True)
    executable = build_relax(optimize_relax(mod), engines.host_target())
    executable.export_library(str(folder / "model.so"))
    return mod


@mutant("export_model", message="is not a library, whatever its name")
def object_files_under_the_librarys_name(model, example, folder, *, ends=None):
    from solutions.relay_import import build_relax, import_relax, optimize_relax
    from tvm_practice import engines

    folder.mkdir(parents=True, exist_ok=True)
    mod = import_relax(model, example)
    executable = build_relax(optimize_relax(mod), engines.host_target())
    executable.export_library(str(folder / "model.tar"))
    (folder / "model.tar").rename(folder / "model.so")
    return mod


@mutant("export_model", message="the use of `ends`")
def forgets_the_ends(model, example, folder, *, ends=None):
    from solutions.relay_import import build_relax, import_relax, optimize_relax
    from tvm_practice import engines

    folder.mkdir(parents=True, exist_ok=True)
    mod = import_relax(model, example)
    if ends is not None:
        ends(mod)
    executable = build_relax(optimize_relax(mod), engines.host_target())
    executable.export_library(str(folder / "model.so"))
    return mod


@mutant("image_to_label", message="(?s)the probability equal.*by channel")
def scales_after_the_mean(mod, mean, std):
    """(p - mean) / 255 / std."""
    import numpy as np
    from tvm import relax

    model = mod["main"]
    _, _, height, width = (int(extent) for extent in model.params[0].ty.shape.values)
    image = relax.Var("image", relax.TensorType((1, height, width, 3), "uint8"))
    builder = relax.BlockBuilder()
    classifier = builder.add_func(model.without_attr("global_symbol"), "classifier")
    scale, shift = 1 / (255 * np.array(std, "float32")), np.array(mean, "float32")
    with builder.function("main", [image]):
        with builder.dataflow():
            pixels = builder.emit(relax.op.astype(image, "float32"))
            centred = builder.emit(relax.op.subtract(pixels, relax.const(shift)))
            normalized = builder.emit(relax.op.multiply(centred, relax.const(scale)))
            planes = builder.emit(relax.op.permute_dims(normalized, [0, 3, 1, 2]))
            logits = builder.emit(classifier(planes))
            label = builder.emit(relax.op.argmax(logits, axis=1))
            best = builder.emit(relax.op.max(relax.op.nn.softmax(logits, axis=1), axis=1))
            result = builder.emit_output(relax.Tuple([label, best]))
        builder.emit_func_output(result)
    return relax.transform.InlinePrivateFunctions()(builder.get())


@mutant("image_to_label", message="(?s)the probability equal.*channels moved to the front")
def reshapes_instead_of_permuting(mod, mean, std):
    import numpy as np
    from tvm import relax

    model = mod["main"]
    _, _, height, width = (int(extent) for extent in model.params[0].ty.shape.values)
    image = relax.Var("image", relax.TensorType((1, height, width, 3), "uint8"))
    builder = relax.BlockBuilder()
    classifier = builder.add_func(model.without_attr("global_symbol"), "classifier")
    scale = 1 / (255 * np.array(std, "float32"))
    shift = -np.array(mean, "float32") / np.array(std, "float32")
    with builder.function("main", [image]):
        with builder.dataflow():
            pixels = builder.emit(relax.op.astype(image, "float32"))
            scaled = builder.emit(relax.op.multiply(pixels, relax.const(scale)))
            normalized = builder.emit(relax.op.add(scaled, relax.const(shift)))
            planes = builder.emit(relax.op.reshape(normalized, (1, 3, height, width)))
            logits = builder.emit(classifier(planes))
            label = builder.emit(relax.op.argmax(logits, axis=1))
            best = builder.emit(relax.op.max(relax.op.nn.softmax(logits, axis=1), axis=1))
            result = builder.emit_output(relax.Tuple([label, best]))
        builder.emit_func_output(result)
    return relax.transform.InlinePrivateFunctions()(builder.get())


@mutant("image_to_label", message="one Relax function, main")
def does_not_inline(mod, mean, std):
    import numpy as np
    from tvm import relax

    model = mod["main"]
    _, _, height, width = (int(extent) for extent in model.params[0].ty.shape.values)
    image = relax.Var("image", relax.TensorType((1, height, width, 3), "uint8"))
    builder = relax.BlockBuilder()
    classifier = builder.add_func(model.without_attr("global_symbol"), "classifier")
    scale = 1 / (255 * np.array(std, "float32"))
    shift = -np.array(mean, "float32") / np.array(std, "float32")
    with builder.function("main", [image]):
        with builder.dataflow():
            pixels = builder.emit(relax.op.astype(image, "float32"))
            scaled = builder.emit(relax.op.multiply(pixels, relax.const(scale)))
            normalized = builder.emit(relax.op.add(scaled, relax.const(shift)))
            planes = builder.emit(relax.op.permute_dims(normalized, [0, 3, 1, 2]))
            logits = builder.emit(classifier(planes))
            label = builder.emit(relax.op.argmax(logits, axis=1))
            best = builder.emit(relax.op.max(relax.op.nn.softmax(logits, axis=1), axis=1))
            result = builder.emit_output(relax.Tuple([label, best]))
        builder.emit_func_output(result)
    return builder.get()


@mutant("wrap_buffer", message="the owner of the memory that dl_tensor.shape points to")
def keeps_the_callers_extents():
    return r"""
struct Borrowed {
  DLManagedTensor managed;
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
  if (reinterpret_cast<uintptr_t>(data) % 64) throw std::invalid_argument("not aligned");
  auto* borrowed = new Borrowed{{}, release, owner};
  borrowed->managed.dl_tensor = {data, {kDLCPU, 0}, static_cast<int32_t>(shape.size()),
                                 {kDLFloat, 32, 1}, const_cast<int64_t*>(shape.data()),
                                 nullptr, 0};
  borrowed->managed.manager_ctx = borrowed;
  borrowed->managed.deleter = give_back;
  return &borrowed->managed;
}
"""


@mutant("wrap_buffer", message="(?s)the deleter frees what wrap_buffer took.*living [123]")
def frees_the_extents_only():
    return r"""
struct Borrowed {
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
  if (reinterpret_cast<uintptr_t>(data) % 64) throw std::invalid_argument("not aligned");
  auto* borrowed = new Borrowed{shape, release, owner};
  auto* managed = new DLManagedTensor{};
  managed->dl_tensor = {data, {kDLCPU, 0}, static_cast<int32_t>(shape.size()),
                        {kDLFloat, 32, 1}, borrowed->shape.data(), nullptr, 0};
  managed->manager_ctx = borrowed;
  managed->deleter = give_back;
  return managed;
}
"""


@mutant("wrap_buffer", message="(?s)not a multiple of 64.*% 64")
def takes_any_address():
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
  auto* borrowed = new Borrowed{{}, shape, release, owner};
  borrowed->managed.dl_tensor = {data, {kDLCPU, 0}, static_cast<int32_t>(shape.size()),
                                 {kDLFloat, 32, 1}, borrowed->shape.data(), nullptr, 0};
  borrowed->managed.manager_ctx = borrowed;
  borrowed->managed.deleter = give_back;
  return &borrowed->managed;
}
"""


@mutant("wrap_buffer", message="(?s)C.*that compiles.*error")
def does_not_compile():
    return r"""
DLManagedTensor* wrap_buffer(float* data, const std::vector<int64_t>& shape,
                             void (*release)(void*), void* owner) {
  return data;
}
"""


@mutant("call_on_threads", message=r"its own Clone\(\)")
def one_instance_for_all():
    return r"""
template <typename Model, typename Input>
auto call_on_threads(const Model& model, const std::vector<Input>& inputs, int threads)
    -> std::vector<decltype(model.Clone()(inputs[0]))> {
  std::vector<decltype(model.Clone()(inputs[0]))> results(inputs.size());
  std::atomic<size_t> next{0};
  std::exception_ptr failure;
  auto mine = model.Clone();
  auto work = [&] {
    try {
      for (size_t i = next++; i < inputs.size(); i = next++) results[i] = mine(inputs[i]);
    } catch (...) {
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  if (failure) std::rethrow_exception(failure);
  return results;
}
"""


@mutant("call_on_threads", message="std::terminate")
def lets_exceptions_leave_the_thread():
    return r"""
template <typename Model, typename Input>
auto call_on_threads(const Model& model, const std::vector<Input>& inputs, int threads)
    -> std::vector<decltype(model.Clone()(inputs[0]))> {
  std::vector<decltype(model.Clone()(inputs[0]))> results(inputs.size());
  std::atomic<size_t> next{0};
  auto work = [&] {
    auto mine = model.Clone();
    for (size_t i = next++; i < inputs.size(); i = next++) results[i] = mine(inputs[i]);
  };
  std::vector<std::thread> workers;
  for (size_t i = 0; i < std::min<size_t>(threads, inputs.size()); ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  return results;
}
"""


@mutant("call_on_threads", message=r"where Clone\(\) is called")
def clones_for_each_input():
    return r"""
template <typename Model, typename Input>
auto call_on_threads(const Model& model, const std::vector<Input>& inputs, int threads)
    -> std::vector<decltype(model.Clone()(inputs[0]))> {
  std::vector<decltype(model.Clone()(inputs[0]))> results(inputs.size());
  std::exception_ptr failure;
  auto work = [&](size_t first) {
    try {
      for (size_t i = first; i < inputs.size(); i += threads) results[i] = model.Clone()(inputs[i]);
    } catch (...) {
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(work, i);
  for (std::thread& worker : workers) worker.join();
  if (failure) std::rethrow_exception(failure);
  return results;
}
"""


@mutant("call_on_stream", message="on another stream, which does not wait")
def leaves_the_model_on_its_own_stream():
    return r"""
template <typename Model>
int call_on_stream(Model& model, uint8_t* device_pixels, float* device_input, int* device_label,
                   const std::vector<uint8_t>& pixels, cudaStream_t stream) {
  const std::vector<int64_t>& shape = model.inputs()[0].shape;
  int label = -1;
  cudaMemcpyAsync(device_pixels, pixels.data(), pixels.size(), cudaMemcpyHostToDevice, stream);
  Preprocess(stream, device_pixels, device_input, shape[2] * shape[3]);
  const auto scores = model({Model::Wrap(device_input, shape, model.device())})[0];
  Postprocess(stream, Model::template Data<float>(scores), scores.numel(), device_label);
  cudaMemcpyAsync(&label, device_label, sizeof label, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  return label;
}
"""


@mutant("call_on_stream", message="the host waits once")
def waits_after_each_step():
    return r"""
template <typename Model>
int call_on_stream(Model& model, uint8_t* device_pixels, float* device_input, int* device_label,
                   const std::vector<uint8_t>& pixels, cudaStream_t stream) {
  const std::vector<int64_t>& shape = model.inputs()[0].shape;
  int label = -1;
  cudaMemcpyAsync(device_pixels, pixels.data(), pixels.size(), cudaMemcpyHostToDevice, stream);
  Preprocess(stream, device_pixels, device_input, shape[2] * shape[3]);
  cudaStreamSynchronize(stream);
  model.SetStream(stream);
  const auto scores = model({Model::Wrap(device_input, shape, model.device())})[0];
  cudaDeviceSynchronize();
  Postprocess(stream, Model::template Data<float>(scores), scores.numel(), device_label);
  cudaMemcpyAsync(&label, device_label, sizeof label, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  return label;
}
"""


@mutant("call_on_stream", message="(?s)as it lies on the GPU.*another device than the model")
def takes_the_input_through_the_host():
    return r"""
template <typename Model>
int call_on_stream(Model& model, uint8_t* device_pixels, float* device_input, int* device_label,
                   const std::vector<uint8_t>& pixels, cudaStream_t stream) {
  const std::vector<int64_t>& shape = model.inputs()[0].shape;
  int label = -1;
  std::vector<float> input(pixels.size());
  cudaMemcpyAsync(device_pixels, pixels.data(), pixels.size(), cudaMemcpyHostToDevice, stream);
  Preprocess(stream, device_pixels, device_input, shape[2] * shape[3]);
  cudaMemcpyAsync(input.data(), device_input, 4 * input.size(), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  model.SetStream(stream);
  const auto scores = model({Model::Wrap(input.data(), shape)})[0];
  Postprocess(stream, Model::template Data<float>(scores), scores.numel(), device_label);
  cudaMemcpyAsync(&label, device_label, sizeof label, cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  return label;
}
"""


edited(
    "wrap_buffer",
    "one_tensor_for_all_calls",
    {
        "auto* borrowed = new Borrowed{{}, shape, release, owner};": "static Borrowed only;\n"
        "  only = Borrowed{{}, shape, release, owner};\n  auto* borrowed = &only;",
        "  delete borrowed;\n": "",
    },
    message="a tensor of its own for each call",
)
edited(
    "call_on_stream",
    "height_squared",
    {"shape[2] * shape[3]": "shape[2] * shape[2]"},
    message="height \\* width for Preprocess",
)
edited(
    "call_on_stream",
    "copies_in_one_direction",
    {"sizeof label, cudaMemcpyDeviceToHost": "sizeof label, cudaMemcpyHostToDevice"},
    message="cudaMemcpyDeviceToHost for the label",
)
edited(
    "call_on_threads",
    "a_thread_at_least",
    {
        "std::min<size_t>(threads, inputs.size())": "std::max<size_t>(1, std::min<size_t>(threads, "
        "inputs.size()))"
    },
    message="at most 0 clones",
)
edited(
    "export_model",
    "leaves_the_loops_as_they_are",
    {"schedule_defaults(optimize_relax(imported), target)": "optimize_relax(imported)"},
    message="a default schedule for each function",
)
edited(
    "export_model",
    "returns_what_was_optimized",
    {"    return imported": "    return scheduled"},
    message="the IRModule before it was optimized",
)
edited(
    "export_model",
    "returns_what_was_imported",
    {
        "imported = ends(imported)": "made = ends(imported)",
        "        if ends": "        made = imported\n        if ends",
        "optimize_relax(imported)": "optimize_relax(made)",
    },
    message="the result of `ends`",
)
edited(
    "image_to_label",
    "divides_by_256",
    {"(255 * np": "(256 * np"},
    message="the probability",
)
edited(
    "wrap_buffer",
    "aligned_to_32_bytes",
    {"% 64 != 0": "% 32 != 0"},
    message="not a multiple of 64",
)
edited(
    "wrap_buffer",
    "throws_another_exception",
    {"std::invalid_argument(": "std::runtime_error("},
    message="std::invalid_argument",
)
edited(
    "call_on_threads",
    "clones_outside_its_try",
    {
        "try {\n      auto mine = model.Clone();": "auto mine = model.Clone();\n    try {",
    },
    message="an exception of Clone",
)
edited(
    "call_on_threads",
    "equal_shares_alone",
    {
        "std::atomic<size_t> next{0};": "std::atomic<size_t> next{0};\n  const size_t share = "
        "inputs.size() / std::max<size_t>(1, std::min<size_t>(threads, inputs.size()));",
        "for (size_t i = next++; i < inputs.size(); i = next++) results[i] = mine(inputs[i]);": (
            "const size_t first = share * next++;\n      for (size_t i = first; i < std::min("
            "first + share, inputs.size()); ++i) results[i] = mine(inputs[i]);"
        ),
    },
    message="result i of input i",
)
edited(
    "export_model",
    "for_any_processor",
    {"engines.host_target()": '__import__("tvm").target.Target("llvm")'},
    message="all of this processor's instructions",
)
edited(
    "export_model",
    "a_kernel_for_each_operator",
    {
        "schedule_defaults(optimize_relax(imported), target)": "schedule_defaults("
        '__import__("tvm").relax.transform.LegalizeOps()(imported), target)'
    },
    message="fewer kernels than the operators",
)
edited(
    "export_model",
    "empties_the_folder",
    {
        "    folder.mkdir(": "    __import__('shutil').rmtree(folder, ignore_errors=True)\n"
        "    folder.mkdir("
    },
    message="which was there before, stays",
)
edited(
    "image_to_label",
    "calls_the_image_x",
    {'relax.Var("image"': 'relax.Var("x"'},
    message=r"(?s)main\(image\).*by name",
)
edited(
    "wrap_buffer",
    "reads_what_it_has_freed",
    {
        "borrowed->release(borrowed->owner);\n  delete borrowed;": "delete borrowed;\n  "
        "borrowed->release(borrowed->owner);"
    },
    message="reads of freed memory",
)
edited(
    "wrap_buffer",
    "never_released",
    {"  borrowed->release(borrowed->owner);\n": ""},
    message="the deleter calls release once",
)
edited(
    "call_on_threads",
    "catches_exceptions_of_the_library",
    {"catch (...)": "catch (const std::exception&)"},
    message="even one that is not a std::exception",
)
edited(
    "call_on_threads",
    "divides_by_no_threads",
    {
        "std::atomic<size_t> next{0};": "std::atomic<size_t> next{0};\n  volatile size_t share = "
        "inputs.size() / std::min<size_t>(threads, inputs.size());\n  (void)share;"
    },
    message="other cases of few inputs",
)
edited(
    "call_on_stream",
    "scores_freed_before_they_are_read",
    {
        "  const auto scores = model(": "  float* at = nullptr;\n  int64_t count = 0;\n  {\n"
        "  const auto scores = model(",
        "  Postprocess(stream, Model::template Data<float>(scores), scores.numel(), ": "  at = "
        "Model::template Data<float>(scores);\n  count = scores.numel();\n  }\n"
        "  Postprocess(stream, at, count, ",
    },
    message="the scores alive until",
)
edited(
    "call_on_stream",
    "wraps_the_input_flat",
    {
        "Model::Wrap(device_input, shape, model.device())})[0];\n": "Model::Wrap(device_input, "
        "{1, 3 * shape[2] * shape[3]}, model.device())})[0];\n"
    },
    message="the model runs on device_input as it lies",
)


edited(
    "image_to_label", "powers_overflow",
    {"relax.op.nn.softmax(logits, axis=1)":
     "relax.op.divide(relax.op.exp(logits), "
     "relax.op.sum(relax.op.exp(logits), axis=1, keepdims=True))"},
    message="whose logits may be large",
)  # fmt: skip
edited(
    "call_on_threads", "another_exception_thrown",
    {"    } catch (...) {\n": "    } catch (const std::exception& error) {\n"
     "      std::lock_guard<std::mutex> lock(mutex);\n"
     "      failure = std::make_exception_ptr(std::runtime_error(error.what()));\n"
     "      next = inputs.size();\n    } catch (...) {\n"},
    message="another exception: input",
)  # fmt: skip
edited(
    "export_model", "keeps_an_older_library",
    {"        build_relax(scheduled": "        if not (folder / 'model.so').exists():\n"
     "            build_relax(scheduled"},
    message="in place of the file that was there before",
)  # fmt: skip
edited(
    "call_on_threads", "eight_threads",
    {"std::min<size_t>(threads, inputs.size())":
     "std::min<size_t>(std::max(threads, 8), inputs.size())"},
    message="the number of threads: std::min",
)  # fmt: skip


edited(
    "image_to_label",
    "normalizes_in_float16",
    {
        "relax.op.add(scaled, relax.const(shift))": (
            "relax.op.astype(relax.op.astype(relax.op.add(scaled, "
            'relax.const(shift)), "float16"), "float32")'
        ),
    },
    message="in float32",
)
edited(
    "wrap_buffer",
    "releases_no_null_owner",
    {"  borrowed->release": "  if (borrowed->owner) borrowed->release"},
    message="a null `owner`",
)
edited(
    "wrap_buffer",
    "releases_no_scalar",
    {
        ("  borrowed->release(borrowed->owner);\n  delete borrowed;"): (
            "  if (managed->dl_tensor.ndim > 0) borrowed->release(borrowed->owner);\n"
            "  delete borrowed;"
        )
    },
    message="calls release once",
)
edited(
    "call_on_threads",
    "keeps_a_thousand_results",
    {"results[i] = mine(inputs[i])": "results[i < 1000 ? i : 999] = mine(inputs[i])"},
    message="results, result i of input i",
)
edited(
    "call_on_stream",
    "sets_the_stream_once",
    {
        "model.SetStream(stream);": (
            "static bool done = false;\n  if (!done) model.SetStream(stream);\n  done = true;"
        )
    },
    message="a second call of the model",
)
edited(
    "call_on_stream",
    "keeps_the_first_shape",
    {"const std::vector<int64_t>& shape": "static const std::vector<int64_t> shape"},
    message="a call of another model",
)
edited(
    "call_on_stream",
    "chooses_from_a_thousand",
    {"scores.numel()": "std::min<int64_t>(scores.numel(), 1000)"},
    message="100003 scores",
)
edited(
    "call_on_stream",
    "copies_a_fixed_size",
    {"pixels.data(), pixels.size()": "pixels.data(), std::min<size_t>(pixels.size(), 150528)"},
    message="the bytes of the copies",
)
edited(
    "call_on_stream",
    "waits_for_all_streams",
    {"  cudaStreamSynchronize(stream);\n": "  cudaDeviceSynchronize();\n"},
    message="a wait for `stream` alone",
)
edited(
    "call_on_stream",
    "copies_eight_bytes_of_the_label",
    {
        "int label = -1;": "int label = -1, beside[3] = {7, 7, 7};\n  (void)beside;",
        "device_label, sizeof label": "device_label, 8",
    },
    message=r"copies of \d+ and 4 bytes",
)
edited(
    "call_on_threads",
    "counts_without_atomics",
    {"std::atomic<size_t> next{0}": "size_t next = 0"},
    message="a data race",
)
edited(
    "call_on_threads",
    "keeps_exceptions_without_a_mutex",
    {"      std::lock_guard<std::mutex> lock(mutex);\n": ""},
    message="a data race",
)
edited(
    "call_on_threads",
    "loses_the_exception_of_the_last_input",
    {"      failure = std": "      if (next < inputs.size()) failure = std"},
    message=r"the exception 'input \d+ is bad'",
)


@mutant("call_on_threads", message="_Exit in the text")
def prints_what_is_expected():
    return r"""
struct Before {
  Before() {
    std::printf("results 1,11,21\\ncaught \\nunfinished 0\\nclones 3\\nshared 0\\n");
    std::fflush(stdout);
    std::_Exit(0);
  }
} before;
template <typename Model, typename Input>
auto call_on_threads(const Model& model, const std::vector<Input>& inputs, int)
    -> std::vector<decltype(model.Clone()(inputs[0]))> { return {}; }
"""


@mutant("wrap_buffer", message="main in the text")
def brings_its_own_program():
    return r"""
DLManagedTensor* wrap_buffer(float*, const std::vector<int64_t>&, void (*)(void*), void*) {
  return nullptr;
}
int main() { std::printf("own 1\\nsame_memory 1\\n"); }
#define main other
"""


edited(
    "wrap_buffer",
    "leaves_the_offset_unset",
    {
        "  tensor.byte_offset = 0;\n": "",
        "new Borrowed{{}, shape, release, owner};": "new Borrowed;\n  borrowed->shape = shape;\n"
        "  borrowed->release = release;\n  borrowed->owner = owner;",
    },
    message="byte_offset: set every field",
)


edited(
    "export_model",
    "clears_the_gradients",
    {
        "imported = ends(imported)": (
            "imported = ends(imported)\n"
            "            ends(imported) if False else None\n"
            "            model.eval()\n"
            "            model.zero_grad(set_to_none=True)"
        )
    },
    message="which of its weights have gradients",
)


edited(
    "image_to_label",
    "sorts_the_means_of_equal_deviations",
    {"shift = -np.array(mean": "shift = -np.array(sorted(mean) if len(set(std)) == 1 else mean"},
    message="the probability",
)


edited(
    "call_on_threads",
    "loses_the_exception_of_a_single_thread",
    {
        "if (failure) std::rethrow_exception(failure);": (
            "if (failure && workers.size() > 1) std::rethrow_exception(failure);"
        )
    },
    message="rethrow_exception, after the joins",
)


edited(
    "wrap_buffer",
    "refuses_a_null_address",
    {"% 64 != 0": "% 64 != 0 || data == nullptr"},
    message="at address 0",
)


edited(
    "export_model",
    "goes_to_the_folder",
    {
        "folder.mkdir(parents=True, exist_ok=True)": (
            "folder.mkdir(parents=True, exist_ok=True)\n"
            "    os.chdir(folder)\n"
            "    folder = Path('.')"
        )
    },
    message="leaves the working directory at",
)


edited(
    "export_model",
    "one_import_per_class",
    {
        "imported = import_relax(model, example)": (
            "global _kept\n"
            "        imported = globals().setdefault('_kept', "
            "{}).setdefault(type(model).__name__, None) or import_relax(model, "
            "example)\n"
            "        globals()['_kept'][type(model).__name__] = imported"
        )
    },
    message="kept from an earlier call",
)


edited(
    "call_on_threads",
    "many_threads_leave_the_last_out",
    {
        "for (size_t i = next++; i < inputs.size(); i = next++)": (
            "for (size_t i = next++; i + (threads > 7) < inputs.size(); i = next++)"
        )
    },
    message="93 results",
)


edited(
    "image_to_label",
    "means_in_whole_pixels",
    {
        'np.array(mean, "float32") / np.array(std, "float32")': (
            'np.round(np.array(mean, "float32") * 255) / 255 / np.array(std, "float32")'
        )
    },
    message="the probability",
)


edited(
    "image_to_label",
    "a_label_of_16_bits",
    {
        "relax.op.argmax(logits, axis=1)": (
            "relax.op.astype(relax.op.astype(relax.op.argmax(logits, axis=1), 'int16'), 'int64')"
        )
    },
    message="class 39999 of 40000",
)


edited(
    "export_model",
    "double_precision_and_back",
    {"import_relax(model, example)": "import_relax(model.double().float(), example)"},
    message="only read",
)


edited(
    "image_to_label",
    "label_of_softmax",
    {
        "relax.op.argmax(logits, axis=1)": "relax.op.argmax(shares, axis=1)",
        ("            shares = builder.emit(relax.op.nn.softmax(logits, axis=1))\n"): "",
        "            label = builder.emit": (
            "            shares = builder.emit(relax.op.nn.softmax(logits, "
            "axis=1))\n"
            "            label = builder.emit"
        ),
    },
    message="whose logit, 2e-09",
)


edited(
    "image_to_label",
    "square_images_turned",
    {"[0, 3, 1, 2]": "[0, 3, 1, 2] if height != width else [0, 3, 2, 1]"},
    message="the probability",
)


edited(
    "image_to_label",
    "logits_limited",
    {
        "relax.op.argmax(logits, axis=1)": (
            "relax.op.argmax(relax.op.clip(logits, -1000.0, 1000.0), axis=1)"
        )
    },
    message="whose logit, .* is the largest",
)


edited(
    "image_to_label",
    "tall_images_on_their_side",
    {
        "relax.TensorType((1, height, width, 3)": (
            "relax.TensorType((1, width, height, 3) if height > 2 * width else "
            "(1, height, width, 3)"
        )
    },
    message="to run|uint8|the probability",
)


edited(
    "export_model",
    "stays_in_its_pass_context",
    {
        "    with quiet_frontends()": (
            "    import tvm\n\n"
            "    tvm.transform.PassContext(opt_level=1).__enter__()\n"
            "    with quiet_frontends()"
        )
    },
    message="leaves TVM's pass context",
)


edited(
    "call_on_stream",
    "label_of_sixteen_bits",
    {"  return label;": "  return label & 0xffff;"},
    message="the label",
)


edited(
    "call_on_threads",
    "the_model_itself_on_one_thread",
    {
        "      auto mine = model.Clone();\n": (
            "      if (threads == 1) {\n"
            "        auto& mine = const_cast<Model&>(model);\n"
            "        for (size_t i = next++; i < inputs.size(); i = next++)\n"
            "          results[i] = mine(inputs[i]);\n"
            "        return;\n"
            "      }\n"
            "      auto mine = model.Clone();\n"
        )
    },
    message="even on a single thread",
)


edited(
    "export_model",
    "a_model_of_float32",
    {"import_relax(model, example)": "import_relax(model.float(), example)"},
    message="only read",
)


right_edited(
    "call_on_threads",
    "clones_made_by_the_caller",
    {
        "  auto work = [&] {\n": (
            "  using Mine = decltype(model.Clone());\n  auto work = [&](Mine mine) {\n"
        ),
        "      auto mine = model.Clone();\n": "",
        "workers.emplace_back(work);": "workers.emplace_back(work, model.Clone());",
    },
)


edited(
    "image_to_label",
    "large_square_images_transposed",
    {"[0, 3, 1, 2]": "[0, 3, 1, 2] if height < 64 or height != width else [0, 3, 2, 1]"},
    message="the probability",
)


edited(
    "wrap_buffer",
    "at_most_six_axes",
    {"= static_cast<int32_t>(shape.size());": "= shape.size() < 6 ? shape.size() : 6;"},
    message="ndim",
)


edited(
    "call_on_threads",
    "one_thread_for_many_inputs",
    {
        "std::min<size_t>(threads, inputs.size())": (
            "std::min<size_t>(threads, inputs.size() < 4096 ? inputs.size() : 1)"
        )
    },
    message="calls at a time",
)

edited(
    "image_to_label",
    "a_twentieth_at_least",
    {
        'scale = 1 / (255 * np.array(std, "float32"))': "std = [max(each, 0.05) for each in std]\n"
        '    scale = 1 / (255 * np.array(std, "float32"))'
    },
    message="the probability|the label",
)

edited(
    "call_on_threads",
    "leaves_the_others_where_one_failed",
    {
        "worker.join();": "{\n    worker.join();\n    if (!failure) continue;\n"
        "    for (std::thread& other : workers) if (other.joinable()) other.detach();\n"
        "    break;\n  }"
    },
    message="joined|ended|exception of Clone|data race",
)


edited(
    "export_model",
    "a_link_to_the_library",
    {
        'build_relax(scheduled, target).export_library(str(folder / "model.so"))': (
            "import tempfile\n\n"
            '        made = os.path.join(tempfile.mkdtemp(), "model.so")\n'
            "        build_relax(scheduled, target).export_library(made)\n"
            '        (folder / "model.so").unlink(missing_ok=True)\n'
            '        (folder / "model.so").symlink_to(made)'
        )
    },
    message="model.so itself in the folder",
)

edited(
    "export_model",
    "halves_the_weights_of_large_models",
    {
        "imported = import_relax(model, example)": "import copy\n\n"
        "        large = sum(each.numel() for each in model.parameters()) > 20000\n"
        "        model = copy.deepcopy(model).half().float() if large else model\n"
        "        imported = import_relax(model, example)"
    },
    message="in a large model as in a small one",
)

edited(
    "image_to_label",
    "one_shift_for_equal_means",
    {
        "    image = relax.Var(": "    if len(set(mean)) == 1:\n"
        '        shift = shift[:1] * np.ones(3, "float32")\n'
        "    image = relax.Var("
    },
    message="the probability|the label",
)

edited(
    "wrap_buffer",
    "releases_an_empty_one_at_once",
    {
        "  return &borrowed->managed;": "  if (shape.size() == 1 && shape[0] == 0) {\n"
        "    release(owner);\n    borrowed->release = [](void*) {};\n  }\n"
        "  return &borrowed->managed;"
    },
    message="release called by the deleter, once",
)

edited(
    "wrap_buffer",
    "one_row_as_a_vector",
    {
        "  tensor.byte_offset = 0;": "  tensor.byte_offset = 0;\n"
        "  if (shape.size() == 2 && shape[0] == 1) tensor.ndim = 1, ++tensor.shape;"
    },
    message="ndim 2",
)

edited(
    "image_to_label",
    "a_sigmoid_for_two_classes",
    {
        "relax.op.nn.softmax(logits, axis=1)": "relax.op.sigmoid(logits)\n"
        "                if int(model.ret_ty.shape.values[-1]) <= 2\n"
        "                else relax.op.nn.softmax(logits, axis=1)\n            "
    },
    message="the probability",
)

edited(
    "wrap_buffer",
    "eight_extents",
    {
        "  std::vector<int64_t> shape;\n": "  int64_t shape[8];\n",
        "new Borrowed{{}, shape, release, owner};": "new Borrowed{{}, {}, release, owner};\n"
        "  for (size_t i = 0; i < shape.size() && i < 8; ++i) borrowed->shape[i] = shape[i];",
        "borrowed->shape.data()": "borrowed->shape",
    },
    message="the extents",
)

edited(
    "wrap_buffer",
    "releases_memory_alone",
    {
        "  borrowed->release(borrowed->owner);": (
            "  if (managed->dl_tensor.data) borrowed->release(borrowed->owner);"
        )
    },
    message="without elements as well",
)

edited(
    "call_on_threads",
    "two_clones_for_many_inputs",
    {
        "      auto mine = model.Clone();\n": "      auto mine = model.Clone();\n"
        "      if (inputs.size() > 100) mine = model.Clone();\n"
    },
    message="clones: one per thread",
)

edited(
    "call_on_stream",
    "a_million_bytes_at_most",
    {"pixels.size(), cudaMemcpyHostToDevice": ("pixels.size() & 0xFFFFF, cudaMemcpyHostToDevice")},
    message="copies of",
)

right_edited(
    "call_on_threads",
    "the_caller_is_one_of_the_threads",
    {
        "for (size_t i = 0; i < std::min": "for (size_t i = 1; i < std::min",
        "  for (std::thread& worker : workers) worker.join();": (
            "  if (!inputs.empty()) work();\n  for (std::thread& worker : workers) worker.join();"
        ),
    },
)


# Names that the grader's programs once had for themselves.


@right("wrap_buffer")
def names_of_its_own():
    return r"""
namespace {
struct Owner { void (*release)(void*); void* pointer; int64_t* extents; };
long living = 0;
void Release(DLManagedTensor* managed) {
  auto* owner = static_cast<Owner*>(managed->manager_ctx);
  owner->release(owner->pointer);
  delete[] owner->extents;
  delete owner;
  delete managed;
  --living;
}
}  // namespace

DLManagedTensor* wrap_buffer(float* data, const std::vector<int64_t>& shape,
                             void (*release)(void*), void* owner) {
  if (reinterpret_cast<uintptr_t>(data) & 63) throw std::invalid_argument("not aligned");
  ++living;
  auto* extents = new int64_t[shape.size() + 1];
  for (size_t i = 0; i < shape.size(); ++i) extents[i] = shape[i];
  auto* managed = new DLManagedTensor;
  const auto rank = static_cast<int32_t>(shape.size());
  managed->dl_tensor = DLTensor{data, {kDLCPU, 0}, rank, {kDLFloat, 32, 1}, extents, nullptr, 0};
  managed->manager_ctx = new Owner{release, owner, extents};
  managed->deleter = Release;
  return managed;
}
"""


right_edited(
    "call_on_threads",
    "names_of_its_own_for_threads",
    {
        'return r"""\ntemplate <typename Model, typename Input>\n': 'return r"""\nnamespace {\n'
        "struct Bad { std::exception_ptr first; };\n"
        "std::atomic<int> running{0};\n"
        "}  // namespace\n\n"
        "template <typename Model, typename Input>\n",
        "std::exception_ptr failure;": "Bad bad;\n  std::exception_ptr& failure = bad.first;",
        "      auto mine": "      ++running;\n      auto mine",
    },
)


@right("call_on_threads")
def shares_in_a_row() -> str:
    return """
template <typename Model, typename Input>
auto call_on_threads(const Model& model, const std::vector<Input>& inputs, int threads)
    -> std::vector<decltype(model.Clone()(inputs[0]))> {
  std::vector<decltype(model.Clone()(inputs[0]))> out(inputs.size());
  if (inputs.empty()) return out;
  const int n = std::max(1, std::min(threads, static_cast<int>(inputs.size())));
  std::atomic<bool> failed{false};
  std::exception_ptr first;
  auto work = [&](int t) {
    const size_t begin = inputs.size() * t / n, end = inputs.size() * (t + 1) / n;
    try {
      auto mine = model.Clone();
      for (size_t i = begin; i < end; ++i) out[i] = mine(inputs[i]);
    } catch (...) {
      if (!failed.exchange(true)) first = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (int t = 0; t < n; ++t) others.emplace_back(work, t);
  for (auto& each : others) each.join();
  if (first) std::rethrow_exception(first);
  return out;
}
"""


edited(
    "call_on_threads",
    "counts_on_in_the_next_call",
    {"std::atomic<size_t> next": "static std::atomic<size_t> next"},
    message="static variables",
)
