// Calls `wrap_buffer` on a buffer of the given extents and prints the outcome.
#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "answer.h"

// The answer may define any other name.
namespace tvm_practice_grader {

static long living = 0;  // blocks of memory

// Each block begins with its size, so that what is freed can be overwritten: nothing may read it.
// A new block is full of 0xa5: a field that nobody sets is not 0 by chance.
static constexpr size_t kHeader = alignof(std::max_align_t);

}  // namespace tvm_practice_grader

void* operator new(size_t bytes) {
  using tvm_practice_grader::kHeader;
  auto* block = static_cast<char*>(std::malloc(kHeader + bytes));
  if (block == nullptr) throw std::bad_alloc();
  std::memcpy(block, &bytes, sizeof bytes);
  std::memset(block + kHeader, 0xa5, bytes);
  ++tvm_practice_grader::living;
  return block + kHeader;
}
void operator delete(void* given) noexcept {
  if (given == nullptr) return;
  using tvm_practice_grader::kHeader;
  char* block = static_cast<char*>(given) - kHeader;
  size_t bytes;
  std::memcpy(&bytes, block, sizeof bytes);
  std::memset(block, 0xdd, kHeader + bytes);
  --tvm_practice_grader::living;
  std::free(block);
}
void operator delete(void* block, size_t) noexcept { operator delete(block); }

namespace tvm_practice_grader {

struct Owner {
  int released = 0;
  bool same = false;
};
static Owner* expected_owner = nullptr;
static int released = 0;
static void Release(void* owner) {
  ++released;
  if (owner == expected_owner) expected_owner->same = true;
}

static int released_other = 0;
static void ReleaseOther(void*) { ++released_other; }

static void Print(const char* name, const int64_t* values, int count) {
  std::printf("%s", name);
  for (int i = 0; i < count; ++i) std::printf("%c%lld", i ? ',' : ' ', (long long)values[i]);
  std::printf("\n");
}

static int Run(int count, char** arguments) {
  const int ndim = count - 1;
  const long before = living;
  bool refused = false;
  {
    std::vector<int64_t> shape;
    int64_t elements = 1;
    for (int i = 1; i < count; ++i) shape.push_back(std::atoll(arguments[i]));
    for (int64_t extent : shape) elements *= extent;
    auto* data = static_cast<float*>(std::aligned_alloc(64, (elements / 16 + 2) * 64));
    Owner owner;
    expected_owner = &owner;

    DLManagedTensor* managed = wrap_buffer(data, shape, Release, &owner);
    // As a caller's variables go: what was on the heap is another thing's now.
    for (int64_t& extent : shape) extent = -1;
    shape = std::vector<int64_t>(3, -2);
    if (managed == nullptr) {
      std::printf("null 1\n");
      return 0;
    }
    // Another buffer, while the first is in use.
    const void* first = managed->dl_tensor.data;
    auto* other = static_cast<float*>(std::aligned_alloc(64, 64));
    DLManagedTensor* second = wrap_buffer(other, {3, 5}, ReleaseOther, nullptr);
    const bool own = second != nullptr && second != managed && managed->dl_tensor.data == first;
    if (own && second->deleter != nullptr) second->deleter(second);
    std::printf("own %d\n", own && released_other <= 1 && released == 0);
    std::printf("released_null %d\n", released_other);
    std::fflush(stdout);
    const DLTensor& tensor = managed->dl_tensor;
    std::printf("same_memory %d\n", tensor.data == data);
    std::printf("ndim %d\n", tensor.ndim);
    if (tensor.ndim == ndim) {
      Print("shape", tensor.shape, ndim);
      if (tensor.strides != nullptr) Print("strides", tensor.strides, ndim);
    }
    std::printf("dtype %d,%d,%d\n", tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes);
    std::printf("device %d,%d\n", (int)tensor.device.device_type, tensor.device.device_id);
    std::printf("offset %llu\n", (unsigned long long)tensor.byte_offset);
    std::printf("released_early %d\n", released);
    std::fflush(stdout);
    if (managed->deleter != nullptr) managed->deleter(managed);
    std::printf("released %d\nowner %d\n", released, owner.same);
    std::fflush(stdout);
    refused = true;
    for (const int offset : {1, 4, 8}) {  // multiples of 4, 16 and 32 bytes
      try {
        wrap_buffer(data + offset, {1}, Release, &owner);
        refused = false;
      } catch (const std::invalid_argument& error) {
        refused = refused && error.what()[0] != '\0';
      } catch (...) {
        refused = false;
      }
    }
    std::printf("refused %d\nreleased_refused %d\n", refused, released - 1);
    bool empty = false;  // of a tensor without elements
    int early = 0, late = 0;
    released = 0;
    try {
      DLManagedTensor* none = wrap_buffer(nullptr, {0}, Release, &owner);
      empty = none != nullptr && none->dl_tensor.data == nullptr && none->dl_tensor.ndim == 1;
      early = released;
      if (none != nullptr) none->deleter(none);
      late = released;
    } catch (...) {
    }
    std::printf("empty %d\nreleased_empty %d,%d\n", empty, early, late);
    std::free(data);
    std::free(other);
  }
  std::printf("living %ld\n", living - before);
  return 0;
}

}  // namespace tvm_practice_grader

int main(int count, char** arguments) { return tvm_practice_grader::Run(count, arguments); }
