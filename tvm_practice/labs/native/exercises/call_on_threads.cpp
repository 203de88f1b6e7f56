// Calls `call_on_threads` with a stand-in for TVMModel that records how it is used.
//
//   call_on_threads INPUTS THREADS FAILING
//
// FAILING: the input that throws; -1: none does; -2: Clone() throws; -3: input 1 throws a number;
// -4: every input throws.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "answer.h"

// The answer may define any other name.
namespace tvm_practice_grader {

static std::atomic<int> clones{0}, shared{0}, running{0}, peak{0}, calls{0};
static int failing = -1;

// An exception of the program's own, which arrives as what it is.
class Bad : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class StandIn {
 public:
  StandIn() = default;
  StandIn(StandIn&& other) : user_(other.user_) {}
  StandIn& operator=(StandIn&& other) {
    user_ = other.user_;
    return *this;
  }
  StandIn Clone() const {
    if (failing == -2) throw Bad("no memory for a clone");
    ++clones;
    return StandIn();
  }
  int operator()(const int& input) {
    ++calls;
    const std::thread::id self = std::this_thread::get_id();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      if (user_ == std::thread::id()) user_ = self;
      if (user_ != self) ++shared;
    }
    const int now = ++running;
    for (int seen = peak; seen < now && !peak.compare_exchange_weak(seen, now);) {
    }
    // Later inputs take less time: results in the order of their end would be in another order.
    // One that throws does so at once, while other calls go on. Of many inputs, some take time in
    // each thread's share, also where a share is a row of neighbours.
    if ((input < 100 || input % 64 == 0) && input != failing) {
      std::this_thread::sleep_for(std::chrono::milliseconds(input % 3 == 0 ? 12 : 4));
    }
    --running;
    if (failing == -3 && input == 1) throw 7;
    if (input == failing || failing == -4) throw Bad("input " + std::to_string(input) + " is bad");
    return 10 * input + 1;
  }

 private:
  std::mutex mutex_;
  std::thread::id user_;
};

// Some of the same inputs in another order, none of which throws; the results as text.
static std::string Again(const StandIn& model, const std::vector<int>& inputs, int threads) {
  const size_t count = inputs.size() < 20 ? inputs.size() : 20;
  failing = -1;
  std::string results;
  try {
    const std::vector<int> some(inputs.rbegin(), inputs.rbegin() + count);
    for (int each : call_on_threads(model, some, threads)) {
      results += (results.empty() ? "" : ",") + std::to_string(each);
    }
  } catch (...) {
    return "an exception";
  }
  return results;
}

static void Run(char** arguments) {
  std::vector<int> inputs(std::atoi(arguments[1]));
  for (size_t i = 0; i < inputs.size(); ++i) inputs[i] = static_cast<int>(i);
  failing = std::atoi(arguments[3]);
  const StandIn model;
  std::string caught, results;
  try {
    for (int each : call_on_threads(model, inputs, std::atoi(arguments[2]))) {
      results += (results.empty() ? "" : ",") + std::to_string(each);
    }
  } catch (const Bad& error) {
    caught = error.what();
  } catch (const std::exception& error) {
    caught = std::string("another exception: ") + error.what();
  } catch (int number) {
    caught = "number " + std::to_string(number);
  }
  std::printf("results %s\ncaught %s\n", results.c_str(), caught.c_str());
  std::printf("unfinished %d\nclones %d\nshared %d\npeak %d\ncalls %d\n", running.load(),
              clones.load(), shared.load(), peak.load(), calls.load());
  std::fflush(stdout);
  std::printf("again %s\n", Again(model, inputs, std::atoi(arguments[2])).c_str());
  std::fflush(stdout);
  std::_Exit(0);  // threads that were left behind end here
}

}  // namespace tvm_practice_grader

int main(int, char** arguments) { tvm_practice_grader::Run(arguments); }
