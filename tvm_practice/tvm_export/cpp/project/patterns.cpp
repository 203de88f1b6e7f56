// Ways to use a model in a program, each a function to copy from.
//
//   patterns FOLDER            all of them, on a float32 image model [1, 3, height, width]
//
// Each prints a line that begins with its name. The inputs come from Value(), so that another
// language can make the same ones.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <exception>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tvm_model.h"

namespace {

using Tensor = TVMModel::Tensor;

// The pixel at `index` of image number `seed`.
uint8_t Value(uint32_t index, uint32_t seed) {
  return static_cast<uint8_t>(((index + 7919u * seed) * 2654435761u) >> 24);
}

// An image as a camera gives it: height x width x 3 bytes.
std::vector<uint8_t> Camera(const TVMModel& model, uint32_t seed) {
  const auto& shape = model.inputs().at(0).shape;
  std::vector<uint8_t> pixels(shape.at(2) * shape.at(3) * 3);
  for (uint32_t i = 0; i < pixels.size(); ++i) pixels[i] = Value(i, seed);
  return pixels;
}

// Bytes, pixel by pixel, to floats, channel by channel, straight into the model's input.
void Preprocess(const std::vector<uint8_t>& pixels, const Tensor& input) {
  const int64_t area = input.size(2) * input.size(3);
  float* values = TVMModel::Data<float>(input);
  for (int64_t pixel = 0; pixel < area; ++pixel) {
    for (int channel = 0; channel < 3; ++channel) {
      values[channel * area + pixel] = (pixels[3 * pixel + channel] / 255.0f - 0.5f) / 0.25f;
    }
  }
}

Tensor Image(const TVMModel& model, uint32_t seed) {
  Tensor input = TVMModel::Empty(model.inputs().at(0));
  Preprocess(Camera(model, seed), input);
  return input;
}

// The first output's values; the tensor stays the owner.
std::vector<float> Values(const Tensor& tensor) {
  const float* first = TVMModel::Data<float>(tensor);
  return std::vector<float>(first, first + tensor.numel());
}

void Print(const std::string& name, const std::vector<float>& values) {
  std::cout << name << std::setprecision(9);
  for (size_t i = 0; i < std::min<size_t>(values.size(), 10); ++i) std::cout << " " << values[i];
  std::cout << "\n";
}

// Preprocessing, the model, postprocessing. Where all three are to be one library, put the first
// and the last into the model before it is compiled.
void Pipeline(TVMModel& model) {
  std::vector<float> scores = Values(model({Image(model, 0)})[0]);
  const float largest = *std::max_element(scores.begin(), scores.end());
  float sum = 0;
  for (float& score : scores) sum += score = std::exp(score - largest);
  for (float& score : scores) score /= sum;
  Print("pipeline", scores);
}

// The model's output as the input of code of one's own, where it lies: no copy.
void FeatureExtractor(TVMModel& model) {
  const Tensor features = model({Image(model, 0)})[0];
  const float* feature = TVMModel::Data<float>(features);
  float distance = 0;  // from a template, here the numbers 0, 1/n, 2/n, ...
  for (int64_t i = 0; i < features.numel(); ++i) {
    const float difference = feature[i] - static_cast<float>(i) / features.numel();
    distance += difference * difference;
  }
  Print("features", {std::sqrt(distance)});
}

// Several models on one input; here twice the same one, the second on a mirrored image.
void Ensemble(TVMModel& first, TVMModel& second) {
  const Tensor image = Image(first, 0);
  const Tensor mirrored = TVMModel::Empty(first.inputs().at(0));
  const int64_t width = image.size(3);
  const float* from = TVMModel::Data<float>(image);
  float* to = TVMModel::Data<float>(mirrored);
  for (int64_t row = 0; row < image.numel() / width; ++row) {
    std::reverse_copy(from + row * width, from + (row + 1) * width, to + row * width);
  }
  std::vector<float> scores = Values(first({image})[0]);
  const std::vector<float> other = Values(second({mirrored})[0]);
  for (size_t i = 0; i < scores.size(); ++i) scores[i] = (scores[i] + other[i]) / 2;
  Print("ensemble", scores);
}

// An instance for each thread. An exception must not leave a thread: it is kept, and thrown where
// the threads are joined.
void Threads(const TVMModel& model, int count) {
  std::vector<TVMModel> models;
  for (int i = 0; i < count; ++i) models.push_back(model.Clone());
  std::vector<std::vector<float>> scores(count);
  std::vector<std::exception_ptr> failures(count);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) {
    threads.emplace_back([&, i] {
      try {
        for (int call = 0; call < 20; ++call) scores[i] = Values(models[i]({Image(model, i)})[0]);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  }
  for (std::thread& each : threads) each.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  for (int i = 0; i < count; ++i) Print("thread " + std::to_string(i), scores[i]);
}

// An instance for each device. With GPUs the list is {kDLCUDA, 0}, {kDLCUDA, 1}, ..., and each
// wants inputs that lie on it; here the CPU is the only device, twice.
void Devices(const TVMModel& model) {
  for (const DLDevice device : {DLDevice{kDLCPU, 0}, DLDevice{kDLCPU, 0}}) {
    TVMModel there = model.Clone(device);
    Print("device", Values(there({Image(model, 0)})[0]));
  }
}

template <typename Function>
void Expect(const std::string& what, Function function) {
  try {
    function();
  } catch (const std::exception& error) {
    const std::string text = error.what();
    std::cout << "error " << what << ": " << text.substr(0, text.find('\n')) << "\n";
    return;
  }
  throw std::logic_error(what + " was accepted");
}

// What can go wrong is an exception with a text, and the model goes on to work.
void Errors(TVMModel& model) {
  const Tensor image = Image(model, 0);
  const TVMModel::Info& info = model.inputs().at(0);
  std::vector<int64_t> shape = info.shape;
  shape.back() += 1;
  Expect("shape", [&] { model({TVMModel::Empty(shape, info.dtype)}); });
  Expect("type", [&] { model({TVMModel::Empty(info.shape, DLDataType{kDLFloat, 64, 1})}); });
  Expect("count", [&] { model({image, image}); });
  Expect("reading", [&] { TVMModel::Data<double>(model({image})[0]); });
  std::vector<float> unaligned(image.numel() + 16);
  float* first = unaligned.data();
  while (reinterpret_cast<uintptr_t>(first) % 64 != 4) ++first;
  Expect("alignment", [&] { TVMModel::Wrap(first, info.shape); });
  Expect("folder", [] { TVMModel("no such folder"); });
  Expect("device", [&] { model.Clone(DLDevice{kDLCUDA, 99}); });
  Print("after", Values(model({image})[0]));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::cerr << "usage: patterns FOLDER\n";
    return 2;
  }
  try {
    TVMModel model(arguments[1]);
    TVMModel second = model.Clone();
    Pipeline(model);
    FeatureExtractor(model);
    Ensemble(model, second);
    Threads(model, 3);
    Devices(model);
    Errors(model);
  } catch (const std::exception& error) {
    std::cerr << "patterns: " << error.what() << "\n";
    return 1;
  }
}
