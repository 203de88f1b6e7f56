// A compiled model as a C++ object: load it, look at its inputs and outputs, call it.
//
//   TVMModel model("tvm_output");                      // model.so and model.json
//   auto image = TVMModel::Wrap(pixels, {1, 3, 224, 224});
//   TVMModel::Tensor logits = model({image})[0];
//   const float* values = TVMModel::Data<float>(logits);
//
// Errors are exceptions (std::exception) with a text: a missing file, an input of another shape or
// type, an index out of bounds, a device that is not there. After one the model can be called again.
//
// Threads. One TVMModel is for one thread at a time; Clone() makes one for another thread, with
// the same weights. A call runs on TVM_NUM_THREADS threads (an environment variable; left out, half
// of the processors), and every thread that calls a model has workers of its own: with 4 threads
// of yours on 8 cores, set it to 2.
//
// It needs C++17 and links with libtvm_runtime and libtvm_ffi; see CMakeLists.txt beside it.
#ifndef TVM_MODEL_H_
#define TVM_MODEL_H_

#include <tvm/ffi/container/array.h>
#include <tvm/ffi/container/map.h>
#include <tvm/ffi/container/tensor.h>
#include <tvm/ffi/dtype.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/extra/json.h>
#include <tvm/ffi/extra/module.h>
#include <tvm/ffi/function.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <new>
#include <sstream>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

class TVMModel {
 public:
  // Counts its owners. Memory that TVM allocated goes back to TVM's pool with the last of them.
  using Tensor = tvm::ffi::Tensor;

  // An input or output, as model.json describes it.
  struct Info {
    std::string name;
    std::vector<int64_t> shape;       // -1: known only at run time
    std::vector<std::string> extents;  // the name of each that is -1, of the others nothing
    DLDataType dtype;
  };

  // Loads model.so and model.json of a folder. On a device that is no CPU the weights are copied
  // there, for each TVMModel anew.
  explicit TVMModel(const std::string& folder, DLDevice device = {kDLCPU, 0})
      : TVMModel(std::make_shared<const Library>(folder), device) {}

  // Another machine on the same library, for another thread or another device. On the CPU they
  // share the weights.
  TVMModel Clone() const { return TVMModel(library_, device_); }
  TVMModel Clone(DLDevice device) const { return TVMModel(library_, device); }

  TVMModel(TVMModel&&) = default;
  TVMModel& operator=(TVMModel&&) = default;

  const std::vector<Info>& inputs() const { return library_->inputs; }
  const std::vector<Info>& outputs() const { return library_->outputs; }
  DLDevice device() const { return device_; }

  // Runs the model. Inputs are in the order of inputs() and are not copied; outputs are new
  // tensors, and stay until their last owner is gone, also over later calls.
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) {
    Check(inputs);
    std::vector<tvm::ffi::AnyView> arguments(inputs.begin(), inputs.end());
    tvm::ffi::Any result;
    {
      OnStream guard(device_, stream_);
      main_.CallPacked(tvm::ffi::PackedArgs(arguments.data(), arguments.size()), &result);
    }
    std::vector<Tensor> outputs;
    Flatten(result, &outputs);
    return outputs;
  }

  // The stream (a cudaStream_t) that calls are queued on from now on. A call returns before its
  // kernels have run: keep its inputs and outputs, and synchronize before the host reads them.
  void SetStream(void* stream) { stream_ = stream; }

  // A tensor on memory of yours, without a copy; the memory must outlive the tensor. It has to be
  // compact, row by row, and aligned to 64 bytes, which compiled code relies on. What cudaMalloc
  // or std::aligned_alloc(64, ...) returns is. Tensors of other libraries come by
  // Tensor::FromDLPack, which takes over a DLManagedTensor.
  static Tensor Wrap(void* data, const std::vector<int64_t>& shape, DLDataType dtype,
                     DLDevice device = {kDLCPU, 0}) {
    Tensor tensor = Tensor::FromNDAlloc(Borrowed{data}, View(shape), dtype, device);
    if (!tensor.IsAligned(kAlignment)) {
      throw std::invalid_argument("memory at an address that is no multiple of 64 bytes");
    }
    return tensor;
  }
  template <typename T>
  static Tensor Wrap(T* data, const std::vector<int64_t>& shape, DLDevice device = {kDLCPU, 0}) {
    return Wrap(static_cast<void*>(data), shape, TypeOf<T>(), device);
  }

  // A tensor of one's own on the CPU, aligned as it should be, its values not set.
  static Tensor Empty(const std::vector<int64_t>& shape, DLDataType dtype) {
    return Tensor::FromNDAlloc(HostMemory(), View(shape), dtype, DLDevice{kDLCPU, 0});
  }
  static Tensor Empty(const Info& info) { return Empty(info.shape, info.dtype); }

  // The first element of a tensor, in the memory of its device. Throws if T is not its type.
  template <typename T>
  static T* Data(const Tensor& tensor) {
    if (tensor.dtype() != TypeOf<T>()) {
      throw std::invalid_argument("a tensor of " + Spelled(tensor.dtype()) + " read as " +
                                  Spelled(TypeOf<T>()));
    }
    return static_cast<T*>(Bytes(tensor));
  }
  static void* Bytes(const Tensor& tensor) {
    // An output may begin in the middle of a block of memory.
    return static_cast<char*>(tensor.data_ptr()) + tensor.byte_offset();
  }

  // "float32 [1, 3, 224, 224]"
  template <typename Shape>
  static std::string Spelled(DLDataType dtype, const Shape& shape) {
    std::ostringstream text;
    text << Spelled(dtype) << " [";
    const char* separator = "";
    for (int64_t extent : shape) {
      text << separator << (extent < 0 ? "?" : std::to_string(extent));
      separator = ", ";
    }
    return text.str() + "]";
  }
  static std::string Spelled(DLDataType dtype) {
    return std::string(tvm::ffi::DLDataTypeToString(dtype));
  }

 private:
  static constexpr size_t kAlignment = 64;
  static constexpr int kPooled = 2;  // memory of a call is kept for the next one

  struct Borrowed {
    void* data;
    void AllocData(DLTensor* tensor) { tensor->data = data; }
    void FreeData(DLTensor*) {}
  };

  struct HostMemory {
    void AllocData(DLTensor* tensor) {
      size_t bytes = tvm::ffi::GetDataSize(*tensor);
      bytes = (bytes / kAlignment + 1) * kAlignment;  // aligned_alloc wants a multiple, and not 0
      tensor->data = std::aligned_alloc(kAlignment, bytes);
      if (tensor->data == nullptr) throw std::bad_alloc();
    }
    void FreeData(DLTensor* tensor) { std::free(tensor->data); }
  };

  // While it lives, this thread's calls for a device go to a stream. TVM keeps one a thread.
  class OnStream {
   public:
    OnStream(DLDevice device, void* stream) : device_(device), active_(stream != nullptr) {
      if (active_) Set(stream, &before_);
    }
    ~OnStream() {
      if (active_) Set(before_, nullptr);
    }
    OnStream(const OnStream&) = delete;
    OnStream& operator=(const OnStream&) = delete;

   private:
    void Set(void* stream, void** before) {
      TVMFFIEnvSetStream(device_.device_type, device_.device_id, stream, before);
    }
    DLDevice device_;
    bool active_;
    void* before_ = nullptr;
  };

  // What the instances for several threads share: read only.
  struct Library {
    explicit Library(const std::string& folder)
        : description(Described(folder + "/model.json")),
          inputs(Infos(description, "inputs")),
          outputs(Infos(description, "outputs")),
          executable(tvm::ffi::Module::LoadFromFile(folder + "/model.so")) {}
    tvm::ffi::json::Object description;
    std::vector<Info> inputs, outputs;
    tvm::ffi::Module executable;
  };

  TVMModel(std::shared_ptr<const Library> library, DLDevice device)
      : library_(std::move(library)), device_(device), machine_(library_->executable) {
    auto load = library_->executable->GetFunction("vm_load_executable");
    if (!load.has_value()) {
      throw std::runtime_error(
          "model.so is no executable of TVM's virtual machine, or the program does not hold "
          "libtvm_runtime, which linkers leave out unless told --no-as-needed");
    }
    machine_ = (*load)().cast<tvm::ffi::Module>();
    const int type = device.device_type, index = device.device_id, cpu = kDLCPU, exists = 0;
    auto attribute = tvm::ffi::Function::GetGlobalRequired("runtime.GetDeviceAttr");
    if (attribute(type, index, exists).cast<int>() == 0) {
      throw std::runtime_error("there is no device " + std::to_string(index) +
                               " of DLPack's type " + std::to_string(type) +
                               ", or the program does not hold its runtime, "
                               "libtvm_runtime_cuda for CUDA");
    }
    auto initialize = machine_->GetFunction("vm_initialization").value();
    if (type == cpu) {
      initialize(type, index, kPooled);
    } else {
      initialize(type, index, kPooled, cpu, 0, kPooled);  // shapes are computed on the host
    }
    main_ = machine_->GetFunction("main").value();
  }

  static tvm::ffi::json::Object Described(const std::string& file) {
    std::ifstream stream(file);
    std::stringstream text;
    if (!stream || !(text << stream.rdbuf())) throw std::runtime_error(file + " cannot be read");
    tvm::ffi::String problem;
    tvm::ffi::Any parsed = tvm::ffi::json::Parse(text.str(), &problem);
    if (!problem.empty()) throw std::runtime_error(file + " is no JSON: " + std::string(problem));
    return parsed.cast<tvm::ffi::json::Object>();
  }

  static std::vector<Info> Infos(const tvm::ffi::json::Object& description, const char* which) {
    namespace json = tvm::ffi::json;
    using tvm::ffi::String;
    std::vector<Info> infos;
    for (const tvm::ffi::Any& each : description.at(String(which)).cast<json::Array>()) {
      auto entry = each.cast<json::Object>();
      Info info;
      info.name = entry.at(String("name")).cast<std::string>();
      info.dtype = tvm::ffi::StringToDLDataType(entry.at(String("dtype")).cast<String>());
      for (const tvm::ffi::Any& extent : entry.at(String("shape")).cast<json::Array>()) {
        const auto known = extent.as<int64_t>();
        info.shape.push_back(known.value_or(-1));
        info.extents.push_back(known ? "" : extent.cast<std::string>());
      }
      infos.push_back(std::move(info));
    }
    return infos;
  }

  // TVM checks shapes too, but names neither the input nor, always, what is wrong with it.
  void Check(const std::vector<Tensor>& given) const {
    if (given.size() != inputs().size()) {
      throw std::invalid_argument(std::to_string(given.size()) + " inputs given, the model takes " +
                                  std::to_string(inputs().size()));
    }
    std::map<std::string, int64_t> open;  // the same extent wherever the name occurs
    for (size_t i = 0; i < given.size(); ++i) {
      const Info& info = inputs()[i];
      if (!given[i].defined()) throw std::invalid_argument(info.name + " is no tensor");
      const auto shape = given[i].shape();
      bool fits = given[i].dtype() == info.dtype && shape.size() == info.shape.size();
      for (size_t axis = 0; fits && axis < info.shape.size(); ++axis) {
        const bool is_open = info.shape[axis] < 0;
        fits = is_open ? shape[axis] > 0 : info.shape[axis] == shape[axis];
      }
      if (!fits) {
        throw std::invalid_argument(info.name + " is " + Spelled(given[i].dtype(), shape) +
                                    ", the model takes " + Spelled(info.dtype, info.shape));
      }
      for (size_t axis = 0; axis < info.shape.size(); ++axis) {
        if (info.shape[axis] >= 0) continue;
        const int64_t before = open.emplace(info.extents[axis], shape[axis]).first->second;
        if (before != shape[axis]) {
          throw std::invalid_argument(info.extents[axis] + " is " + std::to_string(before) +
                                      " in an input and " + std::to_string(shape[axis]) + " in " +
                                      info.name);
        }
      }
      const DLDevice at = given[i].device();
      if (at.device_type != device_.device_type || at.device_id != device_.device_id) {
        throw std::invalid_argument(info.name + " is on another device than the model");
      }
      if (!given[i].IsContiguous() || !given[i].IsAligned(kAlignment)) {
        throw std::invalid_argument(info.name + " is not compact, or not aligned to 64 bytes");
      }
    }
  }

  static tvm::ffi::ShapeView View(const std::vector<int64_t>& shape) {
    return tvm::ffi::ShapeView(shape.data(), shape.size());
  }

  // A model returns a tensor or a tuple, of tuples perhaps.
  static void Flatten(const tvm::ffi::Any& result, std::vector<Tensor>* outputs) {
    if (auto tensor = result.as<Tensor>()) {
      outputs->push_back(*tensor);
      return;
    }
    for (const tvm::ffi::Any& each : result.cast<tvm::ffi::Array<tvm::ffi::Any>>()) {
      Flatten(each, outputs);
    }
  }

  template <typename T>
  static constexpr DLDataType TypeOf() {
    static_assert(std::is_arithmetic_v<T>, "give the type as a DLDataType");
    constexpr uint8_t code = std::is_same_v<T, bool>       ? kDLBool
                             : std::is_floating_point_v<T> ? kDLFloat
                             : std::is_signed_v<T>         ? kDLInt
                                                           : kDLUInt;
    return DLDataType{code, 8 * sizeof(T), 1};
  }

  // Destroyed from the last to the first: a function before the library that it is in.
  std::shared_ptr<const Library> library_;
  DLDevice device_;
  tvm::ffi::Module machine_;
  tvm::ffi::Function main_;
  void* stream_ = nullptr;
};

#endif  // TVM_MODEL_H_
