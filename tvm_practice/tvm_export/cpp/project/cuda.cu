// A model between two kernels of one's own, on one stream, with nothing copied to the host between
// them. For a model that was compiled for CUDA and takes a float32 image [1, 3, height, width].
//
//   cuda FOLDER [DEVICE]
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tvm_model.h"

namespace {

void Require(cudaError_t status, const char* what) {
  if (status != cudaSuccess) {
    throw std::runtime_error(std::string(what) + ": " + cudaGetErrorString(status));
  }
}

// Memory of a device. cudaMalloc aligns to 256 bytes; TVM wants 64.
template <typename T>
std::unique_ptr<T, void (*)(T*)> OnDevice(size_t count) {
  void* memory = nullptr;
  Require(cudaMalloc(&memory, count * sizeof(T)), "cudaMalloc");
  return {static_cast<T*>(memory), [](T* each) { cudaFree(each); }};
}

// Bytes, pixel by pixel, to floats, channel by channel.
__global__ void Preprocess(const uint8_t* pixels, float* input, int64_t area) {
  const int64_t pixel = blockIdx.x * int64_t{blockDim.x} + threadIdx.x;
  if (pixel >= area) return;
  for (int channel = 0; channel < 3; ++channel) {
    input[channel * area + pixel] = (pixels[3 * pixel + channel] / 255.0f - 0.5f) / 0.25f;
  }
}

// The largest score's index, by one thread: there are few of them.
__global__ void Postprocess(const float* scores, int64_t count, int* label) {
  int best = 0;
  for (int i = 1; i < count; ++i) best = scores[i] > scores[best] ? i : best;
  *label = best;
}

int Classify(TVMModel& model, const std::vector<uint8_t>& pixels, cudaStream_t stream) {
  const TVMModel::Info& info = model.inputs().at(0);
  const int64_t area = info.shape.at(2) * info.shape.at(3);
  auto raw = OnDevice<uint8_t>(pixels.size());
  auto input = OnDevice<float>(3 * area);
  auto label = OnDevice<int>(1);
  int found = -1;

  model.SetStream(stream);
  Require(cudaMemcpyAsync(raw.get(), pixels.data(), pixels.size(), cudaMemcpyHostToDevice, stream),
          "the copy of the image");
  const int threads = 256;
  const auto blocks = static_cast<unsigned>((area + threads - 1) / threads);
  Preprocess<<<blocks, threads, 0, stream>>>(raw.get(), input.get(), area);
  Require(cudaGetLastError(), "Preprocess");
  // The output is kept until the stream is through with it.
  const TVMModel::Tensor scores =
      model({TVMModel::Wrap(input.get(), info.shape, model.device())})[0];
  Postprocess<<<1, 1, 0, stream>>>(TVMModel::Data<float>(scores), scores.numel(), label.get());
  Require(cudaGetLastError(), "Postprocess");
  Require(cudaMemcpyAsync(&found, label.get(), sizeof found, cudaMemcpyDeviceToHost, stream),
          "the copy of the label");
  Require(cudaStreamSynchronize(stream), "the stream");  // `found` is there
  return found;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::cerr << "usage: cuda FOLDER [DEVICE]\n";
    return 2;
  }
  try {
    const int device = count > 2 ? std::atoi(arguments[2]) : 0;
    Require(cudaSetDevice(device), "cudaSetDevice");
    TVMModel model(arguments[1], DLDevice{kDLCUDA, device});
    const auto& shape = model.inputs().at(0).shape;
    std::vector<uint8_t> pixels(shape.at(2) * shape.at(3) * 3, 128);
    cudaStream_t stream;
    Require(cudaStreamCreate(&stream), "cudaStreamCreate");
    std::cout << "label " << Classify(model, pixels, stream) << "\n";
    cudaStreamDestroy(stream);
  } catch (const std::exception& error) {
    std::cerr << "cuda: " << error.what() << "\n";
    return 1;
  }
}
