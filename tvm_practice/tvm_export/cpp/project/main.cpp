// Runs a model on values from files, and times it.
//
//   main FOLDER [--calls N] [INPUT.bin ...]
//
// FOLDER holds model.so and model.json. An input file holds an input's elements as they lie in
// memory (numpy's tofile); an input without a file is all ones. Output i is written to
// FOLDER/output_i.bin. With --calls N the model is called for each line that comes on standard
// input, and the milliseconds of the last of N calls are printed.
#include <algorithm>
#include <chrono>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tvm_model.h"

namespace {

using Tensor = TVMModel::Tensor;

void Fill(const Tensor& tensor, const std::string& file) {
  const auto bytes = static_cast<std::streamsize>(tvm::ffi::GetDataSize(tensor));
  std::ifstream stream(file, std::ios::binary | std::ios::ate);
  if (!stream) throw std::runtime_error(file + " cannot be read");
  if (stream.tellg() != bytes) {
    throw std::runtime_error(file + " has " + std::to_string(stream.tellg()) + " bytes, " +
                             TVMModel::Spelled(tensor.dtype(), tensor.shape()) + " takes " +
                             std::to_string(bytes));
  }
  stream.seekg(0);
  stream.read(static_cast<char*>(TVMModel::Bytes(tensor)), bytes);
}

void FillWithOnes(const Tensor& tensor) {
  const DLDataType type = tensor.dtype();
  void* first = TVMModel::Bytes(tensor);
  const int64_t count = tensor.numel();
  if (type.code == kDLFloat && type.bits == 32) {
    std::fill_n(static_cast<float*>(first), count, 1.0f);
  } else if (type.code == kDLInt && type.bits == 64) {
    std::fill_n(static_cast<int64_t*>(first), count, int64_t{1});
  } else if (type.bits == 8) {
    std::fill_n(static_cast<uint8_t*>(first), count, uint8_t{1});
  } else {
    throw std::runtime_error("give a file for an input of type " + TVMModel::Spelled(type));
  }
}

double Milliseconds(TVMModel& model, const std::vector<Tensor>& inputs, int calls) {
  for (int i = 1; i < calls; ++i) model(inputs);
  const auto before = std::chrono::steady_clock::now();
  model(inputs);
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - before;
  return spent.count();
}

void Run(const std::string& folder, int calls, const std::vector<std::string>& files) {
  TVMModel model(folder);
  std::vector<Tensor> inputs;
  for (const TVMModel::Info& info : model.inputs()) {
    inputs.push_back(TVMModel::Empty(info));
    if (inputs.size() <= files.size()) {
      Fill(inputs.back(), files[inputs.size() - 1]);
    } else {
      FillWithOnes(inputs.back());
    }
  }
  if (calls > 0) {
    std::string line;
    while (std::getline(std::cin, line)) {
      std::cout << Milliseconds(model, inputs, calls) << std::endl;
    }
    return;
  }
  const std::vector<Tensor> outputs = model(inputs);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& output = outputs[i];
    const std::string file = folder + "/output_" + std::to_string(i) + ".bin";
    std::ofstream stream(file, std::ios::binary);
    stream.write(static_cast<const char*>(TVMModel::Bytes(output)),
                 static_cast<std::streamsize>(tvm::ffi::GetDataSize(output)));
    if (!stream) throw std::runtime_error(file + " cannot be written");
    std::cout << model.outputs()[i].name << "  "
              << TVMModel::Spelled(output.dtype(), output.shape()) << "  " << file << "\n";
  }
}

}  // namespace

int main(int count, char** values) {
  std::vector<std::string> arguments(values + 1, values + count);
  int calls = 0;
  if (arguments.size() >= 3 && arguments[1] == "--calls") {
    calls = std::atoi(arguments[2].c_str());
    arguments.erase(arguments.begin() + 1, arguments.begin() + 3);
    if (calls < 1) arguments.clear();
  }
  if (arguments.empty()) {
    std::cerr << "usage: main FOLDER [--calls N] [INPUT.bin ...]\n";
    return 2;
  }
  try {
    Run(arguments[0], calls, {arguments.begin() + 1, arguments.end()});
  } catch (const std::exception& error) {
    std::cerr << "main: " << error.what() << "\n";
    return 1;
  }
}
