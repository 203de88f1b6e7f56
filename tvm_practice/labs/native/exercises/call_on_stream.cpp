// Calls `call_on_stream` on a stand-in for a GPU: work on a stream waits in its queue until the
// stream is synchronized, and streams know nothing of each other.
//
//   call_on_stream HEIGHT WIDTH CLASSES SEED
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

// The parts of CUDA and DLPack that the exercise needs.
struct FakeStream {
  std::vector<std::function<void()>> queue;
};
using cudaStream_t = FakeStream*;
using cudaError_t = int;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2 };
constexpr cudaError_t cudaSuccess = 0;
enum DLDeviceType { kDLCPU = 1, kDLCUDA = 2 };
struct DLDevice {
  DLDeviceType device_type;
  int device_id;
};

static FakeStream default_stream, given_stream, other_stream;
static FakeStream* given = &given_stream;
static int waits = 0, on_given = 0, elsewhere = 0;
static int64_t scored = -1;  // how many scores the label was chosen from
static int64_t room = 0;     // elements of the pixels and of the input on the GPU
static bool scores_alive = false;
static int dangling = 0;  // uses of scores that were freed
static std::string order, kinds, sizes;  // sizes: bytes of the copies
static bool beside = false;               // whether another stream was waited for

static void Queue(void* stream, const char* name, std::function<void()> work) {
  auto* to = stream == nullptr ? &default_stream : static_cast<FakeStream*>(stream);
  (to == given ? on_given : elsewhere) += 1;
  order += (order.empty() ? "" : ",") + std::string(name);
  to->queue.push_back(std::move(work));
}
static void Drain(FakeStream* stream) {
  std::vector<std::function<void()>> queue;
  queue.swap(stream->queue);
  for (auto& work : queue) work();
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ++waits;
  Drain(stream == nullptr ? &default_stream : stream);
  return cudaSuccess;
}
inline cudaError_t cudaDeviceSynchronize() {
  ++waits;
  Drain(given);
  Drain(&default_stream);
  return cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream = nullptr) {
  sizes += (sizes.empty() ? "" : ",") + std::to_string(bytes);
  kinds += (kinds.empty() ? "" : ",") + std::to_string(static_cast<int>(kind));
  Queue(stream, "copy", [=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  cudaMemcpyAsync(to, from, bytes, kind);
  return cudaStreamSynchronize(nullptr);
}

// The two kernels, as one launches them: preprocess<<<..., stream>>>(...).
inline void Preprocess(cudaStream_t stream, const uint8_t* pixels, float* input, int64_t area) {
  Queue(stream, "preprocess", [=] {
    if (3 * area > room) return;  // the memory of another
    for (int64_t i = 0; i < 3 * area; ++i) input[i % 3 * area + i / 3] = pixels[i] / 255.0f;
  });
}
inline void Postprocess(cudaStream_t stream, const float* scores, int64_t count, int* label) {
  scored = count;
  Queue(stream, "postprocess", [=] {
    if (!scores_alive) {
      ++dangling;
      return;
    }
    int best = 0;
    for (int i = 1; i < count; ++i) best = scores[i] > scores[best] ? i : best;
    *label = best;
  });
}

// Stands in for TVMModel.
class StandIn {
 public:
  struct Tensor {
    std::shared_ptr<std::vector<float>> owned;
    float* data;
    DLDevice device;
    int64_t count;
    std::vector<int64_t> shape;
    int64_t numel() const { return count; }
  };
  struct Info {
    std::vector<int64_t> shape;
  };
  StandIn(std::vector<int64_t> shape, int classes)
      : infos_{{std::move(shape)}}, classes_(classes) {}
  const std::vector<Info>& inputs() const { return infos_; }
  DLDevice device() const { return {kDLCUDA, 0}; }
  void SetStream(void* stream) { stream_ = stream; }
  static Tensor Wrap(float* data, const std::vector<int64_t>& shape,
                     DLDevice device = {kDLCPU, 0}) {
    int64_t count = 1;
    for (int64_t extent : shape) count *= extent;
    return {nullptr, data, device, count, shape};
  }
  template <typename T>
  static T* Data(const Tensor& tensor) {
    return tensor.data;
  }
  std::vector<Tensor> operator()(const std::vector<Tensor>& inputs) {
    if (inputs.size() != 1) throw std::invalid_argument("the model takes 1 input");
    if (inputs[0].device.device_type != kDLCUDA) {
      throw std::invalid_argument("image is on another device than the model");
    }
    if (inputs[0].shape != infos_[0].shape) {
      throw std::invalid_argument("image has another shape than (1, 3, height, width)");
    }
    std::shared_ptr<std::vector<float>> scores(new std::vector<float>(classes_, -1.0f), Drop);
    scores_alive = true;
    const float* input = inputs[0].data;
    const int64_t count = inputs[0].count;
    const int classes = classes_;
    float* written = scores->data();  // the queue does not keep the scores alive
    Queue(stream_, "model", [=] {
      if (scores_alive) Score(input, count, classes, written);
    });
    return {{scores, written, device(), classes_, {1, classes_}}};
  }
  static void Drop(std::vector<float>* scores) {
    scores_alive = false;
    delete scores;
  }
  static void Score(const float* input, int64_t count, int classes, float* scores) {
    for (int j = 0; j < classes; ++j) {
      scores[j] = 1e-4f * j;  // so that the label of many classes has more than 16 bits
      for (int64_t i = j; i < count; i += classes) scores[j] += input[i];
    }
  }

 private:
  std::vector<Info> infos_;
  int classes_;
  void* stream_ = nullptr;
};

#include "answer.h"

// One more call, on another stream: whether its label is right and all of it was on that stream.
static bool Again(StandIn& model, int classes, std::vector<uint8_t> pixels) {
  for (uint8_t& each : pixels) each = 255 - each;
  const int64_t count = pixels.size(), area = count / 3;
  std::vector<uint8_t> device_pixels(count);
  std::vector<float> device_input(count, -1.0f), input(count), scores(classes);
  for (int64_t i = 0; i < count; ++i) input[i % 3 * area + i / 3] = pixels[i] / 255.0f;
  StandIn::Score(input.data(), count, classes, scores.data());
  int best = 0, device_label = -1, label = -2;
  for (int i = 1; i < classes; ++i) best = scores[i] > scores[best] ? i : best;
  given = &other_stream;
  room = count;
  const int before = elsewhere;
  try {
    label = call_on_stream(model, device_pixels.data(), device_input.data(), &device_label, pixels,
                           &other_stream);
  } catch (const std::exception&) {
  }
  return label == best && elsewhere == before && device_input == input;
}

int main(int, char** arguments) {
  const int64_t height = std::atoll(arguments[1]), width = std::atoll(arguments[2]);
  const int64_t area = height * width;
  const int classes = std::atoi(arguments[3]);
  std::vector<uint8_t> pixels(3 * area);
  uint32_t state = static_cast<uint32_t>(std::atoll(arguments[4]));
  for (uint8_t& each : pixels) each = (state = state * 1664525u + 1013904223u) >> 24;

  // Room for an area that is too large, in which nothing may be written.
  room = 3 * (height + width) * (height + width);
  std::vector<uint8_t> device_pixels(room, 1);
  std::vector<float> device_input(room, -1.0f), scores(classes);
  int device_label = -1, label = -2;
  StandIn model({1, 3, height, width}, classes);
  default_stream.queue.push_back([] { beside = true; });  // another's work, which may take long
  try {
    label = call_on_stream(model, device_pixels.data(), device_input.data(), &device_label, pixels,
                           &given_stream);
  } catch (const std::exception& error) {
    std::printf("threw %s\n", error.what());
  }
  std::vector<float> input(room, -1.0f);
  for (int64_t i = 0; i < 3 * area; ++i) input[i % 3 * area + i / 3] = pixels[i] / 255.0f;
  StandIn::Score(input.data(), 3 * area, classes, scores.data());
  int best = 0;
  for (int i = 1; i < classes; ++i) best = scores[i] > scores[best] ? i : best;
  std::printf("input %d\nscored %lld\nkinds %s\nsizes %s\nbeside %d\ndangling %d\n",
              device_input == input, static_cast<long long>(scored), kinds.c_str(), sizes.c_str(),
              beside, dangling);
  std::printf("label %d\nexpected %d\nwaits %d\non_given %d\nelsewhere %d\norder %s\n", label, best,
              waits, on_given, elsewhere, order.c_str());
  std::fflush(stdout);
  std::printf("again %d\n", Again(model, classes, pixels));
  StandIn other({1, 3, width, height + 1}, classes);
  pixels.resize(3 * width * (height + 1), 77);
  std::printf("other %d\n", Again(other, classes, pixels));
}
